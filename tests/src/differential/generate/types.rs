//! The scalars of generated kernels.

use crate::rng::Rng;

/// A scalar with operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Usize,
    F16,
    Bf16,
    F32,
    F64,
}

impl Ty {
    pub(super) const ALL: [Self; 14] = [
        Self::Bool,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::Usize,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];
    pub(super) const INTEGERS: [Self; 9] =
        [Self::I8, Self::U8, Self::I16, Self::U16, Self::I32, Self::U32, Self::I64, Self::U64, Self::Usize];
    pub(super) const FLOATS: [Self; 4] = [Self::F16, Self::Bf16, Self::F32, Self::F64];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Usize => "usize",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub(super) fn is_integer(self) -> bool {
        Self::INTEGERS.contains(&self)
    }

    pub(super) fn is_float(self) -> bool {
        Self::FLOATS.contains(&self)
    }

    pub(super) const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns whether `as` supports the type; for a float also whether Rust has its methods.
    pub(super) const fn is_primitive(self) -> bool {
        !matches!(self, Self::F16 | Self::Bf16)
    }

    /// Returns the width of an integer in bits.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::I8 | Self::U8 => 8,
            Self::I16 | Self::U16 => 16,
            Self::I32 | Self::U32 => 32,
            _ => 64,
        }
    }

    /// Returns the size of an element in memory.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::Usize | Self::F64 => 8,
        }
    }

    /// Returns a literal of the type.
    pub(super) fn literal(self, rng: &Rng) -> String {
        let name = self.name();
        match self {
            Self::Bool => rng.one_of(&["true", "false"]).to_string(),
            Self::F16 | Self::Bf16 => {
                let bits = [
                    "0", "1", "0x3c00", "0x3f81", "0x7bff", "0x8000", "0x7c00", "0x7f80", "0xc2f7", "0x4248",
                ];
                format!("{name}::from_bits({}u16)", rng.one_of(&bits))
            }
            Self::F32 | Self::F64 => match rng.below(8) {
                0 => format!(
                    "{name}::{}",
                    rng.one_of(&["MAX", "MIN", "EPSILON", "INFINITY", "NEG_INFINITY", "NAN"])
                ),
                1 => format!("(-0.0{name})"),
                2 => format!("1e-{}{name}", rng.below(45)),
                // A tie of two `f32`, or a number so close to one that no `f64` is between. The
                // adjacent element decides its type.
                3 => {
                    let near_ties =
                        ["16777217.0", "16777217.00000000000000000001", "16777218.99999999999999999999"];
                    format!("[{}, 0.0{name}][0]", rng.one_of(&near_ties))
                }
                4 => format!("(-{}.{}{name})", rng.below(300), rng.below(1000)),
                _ => format!("{}.{}{name}", rng.below(300), rng.below(1000)),
            },
            _ => self.integer(rng),
        }
    }

    /// Returns an integer: small, at a limit of the type, or any.
    fn integer(self, rng: &Rng) -> String {
        let name = self.name();
        let unused = 64 - self.bits();
        let bits = match rng.below(4) {
            0 => return format!("{name}::{}", rng.one_of(&["MAX", "MIN"])),
            1 => rng.bits() << unused >> unused,
            _ => rng.below(9) as u64,
        };
        if self.is_signed() {
            let value = (bits << unused) as i64 >> unused;
            // The minus sign is an operator, and the minimum is not a literal in all compilers.
            return if value < 0 {
                format!("(-{}{name})", value.unsigned_abs() & !(1 << (self.bits() - 1)))
            } else {
                format!("{value}{name}")
            };
        }
        format!("{bits}{name}")
    }
}

/// Operations that make operands so small that an operator does not overflow.
pub(super) struct Small {
    /// The text after the left operand.
    pub(super) left: &'static str,
    /// The text after the right operand.
    pub(super) right: &'static str,
}

impl Small {
    /// Returns the operations for the operands of `op`; `None` if it never overflows.
    pub(super) fn of(op: &str, ty: Ty) -> Option<Self> {
        match op {
            "+" | "*" => Some(Self { left: " & 7", right: " & 7" }),
            "-" if !ty.is_signed() => Some(Self { left: " | 8", right: " & 7" }),
            "-" => Some(Self { left: " & 63", right: " & 63" }),
            _ => None,
        }
    }
}
