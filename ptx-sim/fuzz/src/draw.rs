//! Numbers drawn from an input. Where its bytes are used up, each is the least that it may be.

use arbitrary::{Result, Unstructured};

/// Values at and beyond the ends of what things hold.
const EDGES: [u64; 18] = [
    0,
    1,
    2,
    15,
    16,
    17,
    255,
    256,
    257,
    1023,
    1024,
    1025,
    65_535,
    65_536,
    1 << 20,
    u32::MAX as u64,
    1 << 40,
    u64::MAX,
];

/// A number below `limit`; 0 if that is 0.
pub(crate) fn below(u: &mut Unstructured<'_>, limit: usize) -> Result<usize> {
    u.int_in_range(0..=limit.saturating_sub(1))
}

/// True once in so many times.
pub(crate) fn once_in(u: &mut Unstructured<'_>, times: usize) -> Result<bool> {
    Ok(below(u, times)? + 1 == times)
}

/// A number that is likely to be an edge: small, near a power of two, or anything.
pub(crate) fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match below(u, 5)? {
        0 => below(u, 8)? as u64,
        1 => 1 << below(u, 64)?,
        2 => (1_u64 << below(u, 64)?).wrapping_add(below(u, 3)? as u64).wrapping_sub(1),
        3 => *u.choose(&EDGES)?,
        _ => u.arbitrary::<u64>()? >> below(u, 64)?,
    })
}

/// `usual` mostly, else a [`number`].
pub(crate) fn mostly(u: &mut Unstructured<'_>, usual: u64) -> Result<u64> {
    if once_in(u, 6)? { number(u) } else { Ok(usual) }
}

/// `len` random bytes, the same for a seed: the sequence SplitMix64. Source: Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014, figure 15.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let words = (1..).flat_map(|index: u64| {
        let state = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let once = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (twice ^ twice >> 31).to_le_bytes()
    });
    words.take(len).collect()
}
