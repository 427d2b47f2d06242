//! The protocol by which a kernel reports a failed assertion without calling anything. The
//! compiler, the runtime and the simulator share it.
//!
//! The kernel's PTX has a variable, [`VARIABLE`], that holds the address of a buffer in host
//! memory, or 0 if the host does not listen. A thread whose assertion fails writes a [`Record`] to
//! the buffer, makes it visible to the host and traps. The record contains the number of the
//! assertion. The line of PTX with the trap ends in a [`Remark`], which contains the assertion's
//! source location and message.

use std::fmt;

/// Name of the 64-bit variable in global memory that holds the address of the host's buffer.
pub const VARIABLE: &str = "tma_failure";

/// Length of a [`Record`] in 32-bit words. One instruction writes them all.
pub const WORDS: usize = 4;

/// Left shifts of a thread's y and z indices within their word. Source: CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability": a block has at most 1024 threads along x and
/// y, and 64 along z.
pub const THREAD_SHIFTS: [u32; 2] = [10, 20];

/// Left shift of a block's z index within its word. Source: as for [`THREAD_SHIFTS`]: a grid has at
/// most 65535 blocks along y and z.
pub const BLOCK_SHIFT: u32 = 16;

/// The record that a thread writes when its assertion fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the assertion, from 1.
    pub number: u32,
    /// Index of the thread in its block.
    pub thread: [u32; 3],
    /// Index of the block in the grid.
    pub block: [u32; 3],
}

impl Record {
    /// Decodes a record from these words. Returns `None` if no thread has written one.
    pub const fn decode(words: [u32; WORDS]) -> Option<Self> {
        let [number, thread, x, yz] = words;
        if number == 0 {
            return None;
        }
        let [y, z] = THREAD_SHIFTS;
        let low = (1 << y) - 1;
        Some(Self {
            number,
            thread: [thread & low, thread >> y & low, thread >> z],
            block: [x, yz & ((1 << BLOCK_SHIFT) - 1), yz >> BLOCK_SHIFT],
        })
    }
}

/// The description of an assertion, in the comment after its trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark<'s> {
    /// Number of the assertion, from 1.
    pub number: u32,
    /// File, line and column, such as `src/main.rs:12:20`.
    pub location: &'s str,
    /// The assertion's message.
    pub message: &'s str,
}

/// The text that introduces a remark.
const BEGINNING: &str = "// assertion ";

impl<'s> Remark<'s> {
    /// Finds the remark at the end of a line of PTX, if there is one.
    pub fn find(line: &'s str) -> Option<Self> {
        let (_, remark) = line.split_once(BEGINNING)?;
        let (number, rest) = remark.split_once(": ")?;
        let (location, message) = rest.split_once(": ")?;
        Some(Self { number: number.parse().ok()?, location, message })
    }
}

impl fmt::Display for Remark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, location, message } = self;
        write!(f, "{BEGINNING}{number}: {location}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_all_coordinates() {
        assert_eq!(Record::decode([0; WORDS]), None);
        let [y, z] = THREAD_SHIFTS;
        let words = [7, 1023 | 1022 << y | 63 << z, u32::MAX >> 1, 65535 | 65534 << BLOCK_SHIFT];
        let thread = [1023, 1022, 63];
        let block = [u32::MAX >> 1, 65535, 65534];
        assert_eq!(Record::decode(words), Some(Record { number: 7, thread, block }));
    }

    #[test]
    fn remarks_are_found_as_they_are_written() {
        let remark = Remark { number: 3, location: "src/a.rs:12:20", message: "a: b" };
        assert_eq!(Remark::find(&format!("\ttrap; {remark}")), Some(remark));
        for line in ["\ttrap;", "trap; // assertion", "// assertion x: a:1:1: b", "// assertion 3: a"] {
            assert_eq!(Remark::find(line), None, "{line}");
        }
    }
}
