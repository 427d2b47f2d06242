//! Maps with small keys. Checks run in unoptimised macros, and spend much of their time in maps.
//! They need neither protection against chosen keys nor a seed.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with small keys. Its iteration order is the same each time.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;
/// A set of small keys.
pub type QuickSet<K> = HashSet<K, BuildHasherDefault<Mixer>>;

/// Mixes each number with one multiplication. The factor is odd and has the bits of the golden
/// ratio, as in Fibonacci hashing (Knuth, volume 3, section 6.4).
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixer(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Mixer {
    fn mix(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(FACTOR);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            self.mix(rest.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.mix(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_u128(&mut self, number: u128) {
        self.mix(number as u64);
        self.mix((number >> 64) as u64);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn write_i128(&mut self, number: i128) {
        self.write_u128(number as u128);
    }

    fn write_isize(&mut self, number: isize) {
        self.mix(number as u64);
    }
}
