//! Operations across the lanes of a warp, on one value of each lane.

use super::{Expr, Scalar};

/// An operation across the lanes of a warp. All 32 lanes take part.
#[derive(Clone, Debug)]
pub enum WarpOp {
    /// Reads the value of the lane that `by` (a `u32`) selects (`shfl.sync`).
    Shuffle {
        /// The meaning of `by`.
        op: ShuffleOp,
        /// A mask, a distance, or a lane index.
        by: Expr,
    },
    /// A vote on a `bool` of each lane (`vote.sync`).
    Vote(VoteOp),
    /// The 32-bit mask of lanes with the same bits (`match.sync`).
    Match(MatchOp),
    /// A reduction of the values of all lanes.
    Reduce(WarpReduceOp),
}

/// The lane that a shuffle reads. Source: PTX ISA, "shfl.sync".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShuffleOp {
    /// The lane whose index is this lane's XOR the mask.
    Xor,
    /// The lane whose index is lower by the distance. A lane without such a lane keeps its own
    /// value.
    Up,
    /// The lane whose index is higher by the distance. A lane without such a lane keeps its own
    /// value.
    Down,
    /// The lane with this index.
    Idx,
}

impl ShuffleOp {
    /// Returns the name. The kernel's function is `shuffle_` followed by this name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xor => "xor",
            Self::Up => "up",
            Self::Down => "down",
            Self::Idx => "idx",
        }
    }
}

/// The result of a vote. Source: PTX ISA, "vote.sync".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VoteOp {
    /// Whether the condition holds in all lanes.
    All,
    /// Whether the condition holds in at least one lane.
    Any,
    /// The lanes in which the condition holds: bit `i` is lane `i`.
    Ballot,
}

impl VoteOp {
    /// Returns the name in PTX.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Any => "any",
            Self::Ballot => "ballot",
        }
    }

    /// Returns the result type.
    pub const fn result(self) -> Scalar {
        match self {
            Self::All | Self::Any => Scalar::Bool,
            Self::Ballot => Scalar::U32,
        }
    }
}

/// The lanes in the result of a match. Source: PTX ISA, "match.sync".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchOp {
    /// The lanes with the same value as this lane.
    Any,
    /// All lanes if they have the same value, else none.
    All,
}

impl MatchOp {
    /// Returns the name. The kernel's function is `match_` followed by this name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
        }
    }
}

/// A reduction of the values of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WarpReduceOp {
    /// The sum; integers wrap.
    Add,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// Bitwise AND.
    And,
    /// Bitwise OR.
    Or,
    /// Bitwise XOR.
    Xor,
}

impl WarpReduceOp {
    /// Every operation, in the order of declaration.
    pub const ALL: [WarpReduceOp; 6] = [Self::Add, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];

    /// Returns the name. The kernel's function is `warp_reduce_` followed by this name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        }
    }

    /// Whether it applies to values of this type.
    pub const fn takes(self, scalar: Scalar) -> bool {
        match self {
            Self::Add | Self::Min | Self::Max => scalar.is_arithmetic(),
            Self::And | Self::Or | Self::Xor => scalar.is_integer(),
        }
    }

    /// Returns the types that it applies to, for a message.
    pub const fn types(self) -> &'static str {
        match self {
            Self::Add | Self::Min | Self::Max => "an integer, f16, bf16, f32 or f64",
            Self::And | Self::Or | Self::Xor => "an integer",
        }
    }

    /// Returns the implementation for values of this type.
    pub const fn method(self, scalar: Scalar) -> ReduceMethod {
        match self {
            Self::Add | Self::Min | Self::Max if scalar.is_integer() && scalar.bytes() <= 4 => {
                ReduceMethod::Instruction
            }
            Self::Add | Self::Min | Self::Max => ReduceMethod::Shuffles,
            Self::And | Self::Or | Self::Xor => ReduceMethod::Instruction,
        }
    }
}

/// The implementation of a reduction across a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceMethod {
    /// `redux.sync` on 32 bits. Narrower integers are extended, 64-bit ones are reduced in two
    /// halves. Inactive lanes are left out.
    Instruction,
    /// Five shuffles, which need all 32 lanes.
    Shuffles,
}
