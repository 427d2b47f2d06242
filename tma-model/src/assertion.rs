//! How a kernel that may call nothing tells which of its assertions failed: what the compiler, the
//! runtime and the simulator agree on.
//!
//! The kernel's PTX has a variable, [`VARIABLE`], with the address of memory of the host, or 0 if
//! nobody listens. A thread whose assertion fails writes a [`Record`] there, makes it visible to
//! the host and traps. The record has the assertion's number; the line of the PTX with the trap has
//! its place and message in a [`Remark`].

use std::fmt;

/// The variable in global memory, of 64 bits, that has the address of the host's memory.
pub const VARIABLE: &str = "tma_failure";

/// How many words of 32 bits a [`Record`] has. They are written by one instruction.
pub const WORDS: usize = 4;

/// By how many bits the coordinates of a thread along y and z are moved in their word. Source: CUDA
/// C++ Programming Guide, "Technical Specifications per Compute Capability": a block has at most
/// 1024 threads along x and y, and 64 along z.
pub const THREAD_SHIFTS: [u32; 2] = [10, 20];

/// By how many bits the coordinate of a block along z is moved in its word. Source: as for
/// [`THREAD_SHIFTS`]: a grid has at most 65535 blocks along y and z.
pub const BLOCK_SHIFT: u32 = 16;

/// What a thread writes whose assertion failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which assertion it was, from 1.
    pub number: u32,
    /// The thread's place in its block.
    pub thread: [u32; 3],
    /// The block's place in the grid.
    pub block: [u32; 3],
}

impl Record {
    /// The record in these words; none if nobody has written one.
    pub const fn decode([number, thread, x, yz]: [u32; WORDS]) -> Option<Self> {
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

/// What the comment behind a trap says of its assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark<'s> {
    /// Which one it is, from 1.
    pub number: u32,
    /// File, line and column, as in `src/main.rs:12:20`.
    pub place: &'s str,
    /// What does not hold.
    pub message: &'s str,
}

/// What stands before a remark.
const BEGINNING: &str = "// assertion ";

impl<'s> Remark<'s> {
    /// The remark that ends a line of PTX, if one does.
    pub fn find(line: &'s str) -> Option<Self> {
        let (_, remark) = line.split_once(BEGINNING)?;
        let (number, rest) = remark.split_once(": ")?;
        let (place, message) = rest.split_once(": ")?;
        Some(Self { number: number.parse().ok()?, place, message })
    }
}

impl fmt::Display for Remark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, place, message } = self;
        write!(f, "{BEGINNING}{number}: {place}: {message}")
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
        let remark = Remark { number: 3, place: "src/a.rs:12:20", message: "a: b" };
        assert_eq!(Remark::find(&format!("\ttrap; {remark}")), Some(remark));
        for line in ["\ttrap;", "trap; // assertion", "// assertion x: a:1:1: b", "// assertion 3: a"] {
            assert_eq!(Remark::find(line), None, "{line}");
        }
    }
}
