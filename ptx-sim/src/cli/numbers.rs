//! The number types of arguments and buffers.

use half::{bf16, f16};

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

const TYPES: [(&str, Type); 12] = [
    ("u8", Type::U8),
    ("u16", Type::U16),
    ("u32", Type::U32),
    ("u64", Type::U64),
    ("i8", Type::I8),
    ("i16", Type::I16),
    ("i32", Type::I32),
    ("i64", Type::I64),
    ("f16", Type::F16),
    ("bf16", Type::Bf16),
    ("f32", Type::F32),
    ("f64", Type::F64),
];

impl Type {
    pub(crate) fn from_name(name: &str) -> Result<Type, String> {
        let found = TYPES.iter().find(|(known, _)| *known == name);
        found.map(|(_, ty)| *ty).ok_or_else(|| {
            let names: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
            format!("unknown type `{name}`; use one of: {}", names.join(", "))
        })
    }

    pub(crate) fn name(self) -> &'static str {
        TYPES.iter().find(|(_, ty)| *ty == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Type::U8 | Type::I8 => 1,
            Type::U16 | Type::I16 | Type::F16 | Type::Bf16 => 2,
            Type::U32 | Type::I32 | Type::F32 => 4,
            Type::U64 | Type::I64 | Type::F64 => 8,
        }
    }

    /// Parses a number, and returns its little-endian bytes. `None` if the text is no number of
    /// this type.
    pub(crate) fn parse(self, text: &str) -> Option<Vec<u8>> {
        Some(match self {
            Type::U8 => text.parse::<u8>().ok()?.to_le_bytes().to_vec(),
            Type::U16 => text.parse::<u16>().ok()?.to_le_bytes().to_vec(),
            Type::U32 => text.parse::<u32>().ok()?.to_le_bytes().to_vec(),
            Type::U64 => text.parse::<u64>().ok()?.to_le_bytes().to_vec(),
            Type::I8 => text.parse::<i8>().ok()?.to_le_bytes().to_vec(),
            Type::I16 => text.parse::<i16>().ok()?.to_le_bytes().to_vec(),
            Type::I32 => text.parse::<i32>().ok()?.to_le_bytes().to_vec(),
            Type::I64 => text.parse::<i64>().ok()?.to_le_bytes().to_vec(),
            Type::F16 | Type::Bf16 | Type::F32 | Type::F64 => self.float_bytes(text.parse().ok()?)?,
        })
    }

    /// Rounds a floating-point number to this type, and returns its bytes. `None` for integer
    /// types.
    fn float_bytes(self, value: f64) -> Option<Vec<u8>> {
        match self {
            Type::F16 => Some(f16::from_f64(value).to_le_bytes().to_vec()),
            Type::Bf16 => Some(bf16::from_f64(value).to_le_bytes().to_vec()),
            Type::F32 => Some((value as f32).to_le_bytes().to_vec()),
            Type::F64 => Some(value.to_le_bytes().to_vec()),
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => None,
            Type::I8 | Type::I16 | Type::I32 | Type::I64 => None,
        }
    }

    /// Makes a number of random bits: any integer, or a floating-point number in [-1, 1).
    fn random(self, bits: u64) -> Vec<u8> {
        let unit = (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        self.float_bytes(unit).unwrap_or_else(|| bits.to_le_bytes()[..self.bytes()].to_vec())
    }

    /// Fills `bytes` with random numbers from `seed`.
    pub(crate) fn fill_randomly(self, bytes: &mut [u8], seed: u64) {
        let mut state = seed;
        for number in bytes.chunks_exact_mut(self.bytes()) {
            number.copy_from_slice(&self.random(next_random(&mut state)));
        }
    }

    /// Formats a number from its little-endian bytes. Missing bytes are taken as zeros.
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        for (to, from) in wide.iter_mut().zip(bytes) {
            *to = *from;
        }
        let bits = u64::from_le_bytes(wide);
        match self {
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => bits.to_string(),
            Type::I8 => (bits as i8).to_string(),
            Type::I16 => (bits as i16).to_string(),
            Type::I32 => (bits as i32).to_string(),
            Type::I64 => (bits as i64).to_string(),
            Type::F16 => f16::from_bits(bits as u16).to_string(),
            Type::Bf16 => bf16::from_bits(bits as u16).to_string(),
            Type::F32 => f32::from_bits(bits as u32).to_string(),
            Type::F64 => f64::from_bits(bits).to_string(),
        }
    }
}

/// Returns the next number of the SplitMix64 sequence. Source: Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014, figure 15.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let once = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ twice >> 31
}
