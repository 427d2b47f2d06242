//! Wavefronts of a warp's access to shared memory.
//!
//! Shared memory has 32 banks of 4 bytes, and serves an access of a warp in *wavefronts*. In each
//! wavefront every bank transfers one word, from or to all lanes that access that word. An access
//! of 8 bytes per lane is served by half-warps, and one of 16 bytes by quarter-warps, so that
//! without conflicts each wavefront moves 128 bytes. Lanes of an atomic operation that access the
//! same word are serialised.
//!
//! Sources: CUDA C++ Programming Guide, "Compute Capability 5.x", "Shared Memory", which later
//! architectures keep (banks, and words that lanes share), and "SIMT Architecture" (atomics on the
//! same address are serialised); Nsight Compute, "Kernel Profiling Guide", "Shared Memory" and
//! "wavefront". The guide describes half-warps for 8 bytes per lane in its chapter on compute
//! capability 2.x. For 16 bytes per lane, the only documented fact is that a wavefront moves at
//! most 128 bytes. A GPU may merge two such phases if their lanes access the same words.

const BANKS: u32 = 32;
/// Bytes that one bank transfers in a wavefront.
const WORD: u32 = 4;
/// Bytes that all banks together transfer in a wavefront.
const WAVEFRONT: u32 = BANKS * WORD;

/// The wavefronts of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wavefronts {
    /// Wavefronts that the access needs.
    pub needed: u32,
    /// Wavefronts that it would need without bank conflicts.
    pub ideal: u32,
}

impl Wavefronts {
    /// Returns the number of wavefronts beyond the ideal.
    pub const fn conflicts(self) -> u32 {
        self.needed.saturating_sub(self.ideal)
    }
}

/// Counts the wavefronts of one access of `bytes` bytes per lane. `offsets` are the lanes' offsets
/// in shared memory, and `lanes` is the mask of active lanes. If `serial`, lanes that access the
/// same word do not share it.
pub fn wavefronts(offsets: &[u64; 32], lanes: u32, bytes: u32, serial: bool) -> Wavefronts {
    let mut sum = Wavefronts::default();
    // Lanes served together: together they access at most one word per bank.
    let together = (WAVEFRONT / bytes.max(1)).clamp(1, 32);
    for first in (0..32).step_by(together as usize) {
        let phase = lanes & (u32::MAX >> (32 - together)) << first;
        if phase != 0 {
            sum.ideal += 1;
            sum.needed += busiest_bank(offsets, phase, bytes.div_ceil(WORD), serial);
        }
    }
    sum
}

/// Returns the largest number of words that any one bank has to serve.
fn busiest_bank(offsets: &[u64; 32], phase: u32, words: u32, serial: bool) -> u32 {
    let mut wanted = [0_u32; BANKS as usize];
    // The first word of each bank, which is usually the only one. `more` holds the others.
    let mut first = [0_u32; BANKS as usize];
    let mut more = Vec::new();
    let mut most = 1;
    for lane in (0..32).filter(|lane| phase >> lane & 1 == 1) {
        let start = offsets[lane as usize] as u32 / WORD;
        for word in start..start.saturating_add(words) {
            let bank = (word % BANKS) as usize;
            if wanted[bank] == 0 {
                (wanted[bank], first[bank]) = (1, word);
            } else if serial || first[bank] != word && !more.contains(&word) {
                more.push(word);
                wanted[bank] += 1;
                most = most.max(wanted[bank]);
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needed and ideal wavefronts of a full warp, in which lane i accesses `offset(i)`.
    fn of(bytes: u32, offset: impl Fn(u64) -> u64) -> (u32, u32) {
        some(u32::MAX, bytes, offset)
    }

    fn some(lanes: u32, bytes: u32, offset: impl Fn(u64) -> u64) -> (u32, u32) {
        let offsets = std::array::from_fn(|lane| offset(lane as u64));
        let sum = wavefronts(&offsets, lanes, bytes, false);
        assert_eq!(sum.conflicts(), sum.needed - sum.ideal);
        (sum.needed, sum.ideal)
    }

    #[test]
    fn words() {
        assert_eq!(of(4, |i| i * 4), (1, 1), "stride 1");
        assert_eq!(of(4, |i| 4096 + (31 - i) * 4), (1, 1), "backwards, elsewhere");
        assert_eq!(of(4, |i| i * 8), (2, 1), "stride 2: lanes i and i + 16");
        assert_eq!(of(4, |i| i * 12), (1, 1), "stride 3 is odd");
        assert_eq!(of(4, |i| i * 128), (32, 1), "stride 32: one bank");
        assert_eq!(of(4, |i| i * 132), (1, 1), "stride 33: a padded column");
        assert_eq!(of(4, |_| 64), (1, 1), "broadcast");
        assert_eq!(of(4, |i| i % 2 * 128), (2, 1), "two words of one bank, each for 16 lanes");
        assert_eq!(of(4, |i| i / 4 * 4 + i % 4 * 128), (4, 1), "8 banks, four words each");
    }

    #[test]
    fn parts_of_words() {
        assert_eq!(of(1, |i| i), (1, 1), "32 bytes are 8 words");
        assert_eq!(of(2, |i| i * 2), (1, 1));
        assert_eq!(of(2, |i| i * 4 + 2), (1, 1));
        // A column of a matrix with 64 halves per row.
        assert_eq!(of(2, |i| i * 128), (32, 1));
        // A column with 32 halves per row: the words are 16 apart, so two banks serve 16 each.
        assert_eq!(of(2, |i| i * 64), (16, 1));
    }

    #[test]
    fn pairs_are_served_by_half_warps() {
        assert_eq!(of(8, |i| i * 8), (2, 2), "stride 1");
        assert_eq!(of(8, |i| i * 16), (4, 2), "stride 2: lanes i and i + 8 of each half");
        assert_eq!(of(8, |i| i * 128), (32, 2), "stride 16: 16 of each half in one bank");
        assert_eq!(of(8, |_| 8), (2, 2), "broadcast");
        // The two halves are separate phases, so they cannot conflict.
        assert_eq!(of(8, |i| i % 16 * 8 + i / 16 * 128), (2, 2));
    }

    #[test]
    fn quads_are_served_by_quarter_warps() {
        assert_eq!(of(16, |i| i * 16), (4, 4), "stride 1");
        assert_eq!(of(16, |i| i * 32), (8, 4), "stride 2: lanes i and i + 4 of each quarter");
        assert_eq!(of(16, |i| i * 128), (32, 4), "a column of 128-byte rows: 8 of each quarter in 4 banks");
        // The same column, with its chunks permuted by the 128-byte swizzle.
        assert_eq!(of(16, |i| i * 128 + i % 8 * 16), (4, 4));
    }

    #[test]
    fn lanes_that_do_not_take_part() {
        assert_eq!(some(0, 4, |i| i * 4), (0, 0));
        assert_eq!(some(1 << 9, 4, |i| i * 128), (1, 1));
        assert_eq!(some(0xffff, 4, |i| i * 128), (16, 1));
        assert_eq!(some(0x0001_0001, 4, |i| i * 8), (2, 1), "lanes 0 and 16 of stride 2");
        assert_eq!(some(0xffff, 8, |i| i * 8), (1, 1), "the other half has no phase");
        assert_eq!(some(0x8000_0001, 8, |i| i * 128), (2, 2));
        assert_eq!(some(0xff00, 16, |i| i * 128), (8, 1));
    }

    #[test]
    fn atomics_on_one_word_are_serial() {
        let same = wavefronts(&[64; 32], u32::MAX, 4, true);
        assert_eq!((same.needed, same.ideal), (32, 1));
        let apart = wavefronts(&std::array::from_fn(|lane| lane as u64 * 4), u32::MAX, 4, true);
        assert_eq!((apart.needed, apart.ideal), (1, 1));
        // Four bins of eight lanes each.
        let bins = wavefronts(&std::array::from_fn(|lane| lane as u64 % 4 * 4), u32::MAX, 4, true);
        assert_eq!((bins.needed, bins.ideal), (8, 1));
    }
}
