//! Random numbers, biased towards those that break things.

use std::cell::Cell;

use crate::random::hash;

/// A sequence of random numbers, which depends only on the seed.
#[derive(Debug)]
pub struct Rng {
    seed: u64,
    count: Cell<u64>,
}

/// Values at and beyond the limits of types and extents.
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

impl Rng {
    /// Returns the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, count: Cell::new(0) }
    }

    /// Returns 64 random bits.
    pub fn bits(&self) -> u64 {
        self.count.set(self.count.get() + 1);
        hash(self.seed, self.count.get())
    }

    /// Returns a number below `limit`, or 0 if that is 0.
    pub fn below(&self, limit: usize) -> usize {
        (self.bits() % limit.max(1) as u64) as usize
    }

    /// Returns true with a probability of one in `times`.
    pub fn once_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of several values, of which there must be at least one.
    pub fn one_of<'a, T>(&self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Returns a number that is likely to be an edge: small, close to a power of two, or any.
    pub fn number(&self) -> u64 {
        match self.below(5) {
            0 => self.below(8) as u64,
            1 => 1 << self.below(64),
            2 => (1_u64 << self.below(64)).wrapping_add(self.below(3) as u64).wrapping_sub(1),
            3 => *self.one_of(&EDGES),
            _ => self.bits() >> self.below(64),
        }
    }

    /// Returns mostly `usual`, otherwise a [`number`](Self::number).
    pub fn mostly(&self, usual: u64) -> u64 {
        if self.once_in(6) { self.number() } else { usual }
    }
}
