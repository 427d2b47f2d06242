//! Operations of the lanes of a warp on a value that each of them has.

use super::{Expr, Scalar};

/// What the lanes of a warp do together. All 32 of them take part.
#[derive(Clone, Debug)]
pub enum WarpOp {
    /// Reads the value of another lane, which `by` (a `u32`) tells (`shfl.sync`).
    Shuffle {
        /// How the lane is found.
        op: ShuffleOp,
        /// A mask, a distance, or a lane.
        by: Expr,
    },
    /// What holds for a `bool` of each lane (`vote.sync`).
    Vote(VoteOp),
    /// Which lanes have the same bits (`match.sync`): a mask of 32 bits.
    Match(MatchOp),
    /// One value out of those of all lanes.
    Reduce(WarpReduceOp),
}

/// Which lane a shuffle reads. Source: PTX ISA, "shfl.sync".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShuffleOp {
    /// The lane whose number differs in the bits of a mask.
    Xor,
    /// The lane so many below; a lane that has none below keeps its own value.
    Up,
    /// The lane so many above; a lane that has none above keeps its own value.
    Down,
    /// The lane of this number.
    Idx,
}

impl ShuffleOp {
    /// Its name; a kernel's function is `shuffle_` and this.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xor => "xor",
            Self::Up => "up",
            Self::Down => "down",
            Self::Idx => "idx",
        }
    }
}

/// What a vote tells. Source: PTX ISA, "vote.sync".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VoteOp {
    /// Whether the condition holds in all lanes.
    All,
    /// Whether it holds in at least one.
    Any,
    /// In which lanes it holds: bit `i` is lane `i`.
    Ballot,
}

impl VoteOp {
    /// Its name in PTX.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Any => "any",
            Self::Ballot => "ballot",
        }
    }

    /// What it gives.
    pub const fn result(self) -> Scalar {
        match self {
            Self::All | Self::Any => Scalar::Bool,
            Self::Ballot => Scalar::U32,
        }
    }
}

/// Which lanes are compared. Source: PTX ISA, "match.sync".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchOp {
    /// The lanes with this lane's value.
    Any,
    /// All lanes if they have one value, else none.
    All,
}

impl MatchOp {
    /// Its name; a kernel's function is `match_` and this.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
        }
    }
}

/// How the values of a warp become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WarpReduceOp {
    /// The sum; integers wrap.
    Add,
    /// The least.
    Min,
    /// The greatest.
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

    /// Its name; a kernel's function is `warp_reduce_` and this.
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

    /// Whether it is on values of this type.
    pub const fn takes(self, scalar: Scalar) -> bool {
        match self {
            Self::Add | Self::Min | Self::Max => scalar.is_arithmetic(),
            Self::And | Self::Or | Self::Xor => scalar.is_integer(),
        }
    }

    /// The types that it takes, for a message.
    pub const fn types(self) -> &'static str {
        match self {
            Self::Add | Self::Min | Self::Max => "integers, f16, bf16, f32 and f64",
            Self::And | Self::Or | Self::Xor => "integers",
        }
    }

    /// How values of this type are reduced.
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

/// How the values of a warp are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceMethod {
    /// By `redux.sync`, which is on 32 bits: narrower integers are extended, and 64 bits are two
    /// halves. Lanes that are not there are left out.
    Instruction,
    /// By five shuffles, which need all 32 lanes.
    Shuffles,
}
