//! What instructions do: the operations of decoded code.

use super::asynchronous::{BulkCode, CopyCode, MapCode, Mbarrier, RemoteCode, TensorCode};
use super::{Address, Guard, Memory, Row};
use super::{Fence, Order, Space};
use crate::exec::alu::{One, Three, Two};
use crate::isa::Comparison;
use crate::isa::Integer;
use crate::isa::float::format::Round;
use crate::isa::float::{FloatOp, FloatType, Mode};

/// How the operands of a comparison are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    Integer(Integer),
    Float(FloatType, bool),
}

/// What a comparison's result is combined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    And,
    Or,
    Xor,
}

/// What `set` gives for true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// `setp`: a predicate.
    Predicate,
    /// These bits.
    Bits(u64),
}

/// An operand's type for `cvt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numeric {
    Integer(Integer),
    Float(FloatType),
    Tf32,
}

/// `cvt` of one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) from: Numeric,
    pub(crate) to: Numeric,
    pub(crate) round: Round,
    /// `.rni` and its like: to an integral value.
    pub(crate) integral: bool,
    pub(crate) mode: Mode,
    pub(crate) finite: bool,
    /// Bits of the destination register, which may be wider than the type.
    pub(crate) width: u32,
}

/// `cvt` of two numbers that share a register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PairConversion {
    /// Two singles to two halves.
    ToHalves { to: FloatType, round: Round, relu: bool, finite: bool },
    /// Two singles to two numbers of 8 bits.
    ToEights { e4m3: bool, relu: bool },
    /// Two halves in a register to two of 8 bits.
    HalvesToEights { e4m3: bool, relu: bool },
    /// Two of 8 bits to two halves.
    EightsToHalves { e4m3: bool, relu: bool },
}

/// Additions and multiplications that read or write the carry flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry {
    pub(crate) op: CarryOp,
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// What is added, with a carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryOp {
    Add,
    Sub,
    MadLow,
    MadHigh,
}

/// `shfl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// `vote`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// `redux`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redux {
    Add,
    Min(bool),
    Max(bool),
    And,
    Or,
    Xor,
}

/// What an atomic operation puts in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    Add(Integer),
    Min(Integer),
    Max(Integer),
    AddFloat(FloatType, Mode, bool),
    MinFloat(FloatType, bool),
    MaxFloat(FloatType, bool),
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Inc,
    Dec,
}

/// How a `barrier` instruction takes part, and what it gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockBarrier {
    pub(crate) id: Row,
    pub(crate) threads: Option<Row>,
    pub(crate) arrive_only: bool,
    pub(crate) aligned: bool,
    /// `.red`: the predicate, whether negated, what is asked and where the answer goes.
    pub(crate) vote: Option<(Row, bool, BlockVote, Row)>,
}

/// What `barrier.red` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockVote {
    Count,
    All,
    Any,
}

/// Matrices of 8 by 8 numbers of 16 bits that a warp moves.
#[derive(Clone, Debug)]
pub(crate) enum MatrixCode {
    /// `ldmatrix`, of as many matrices as there are registers.
    Load { space: Space, address: Address, rows: Vec<Row>, transpose: bool },
    /// `stmatrix`.
    Store { space: Space, address: Address, rows: Vec<Row>, transpose: bool },
    /// `movmatrix`, which transposes.
    Move { d: Row, a: Row },
}

/// What lanes of a warp do together.
#[derive(Clone, Debug)]
pub(crate) enum Collective {
    /// `bar.warp.sync`.
    Barrier,
    Shuffle {
        how: Shuffle,
        d: Row,
        valid: Row,
        a: Row,
        b: Row,
        clamp: Row,
    },
    Vote {
        how: Vote,
        d: Row,
        a: Guard,
    },
    Match {
        all: bool,
        d: Row,
        valid: Row,
        a: Row,
    },
    Redux {
        how: Redux,
        d: Row,
        a: Row,
    },
    Elect {
        leader: Row,
        d: Row,
    },
    /// Of all lanes.
    Matrix(Box<MatrixCode>),
}

/// `atom` or `red` of a vector: each element is changed at once, the vector is not.
#[derive(Clone, Debug)]
pub(crate) struct AtomicVector {
    pub(crate) op: AtomicOp,
    pub(crate) space: Space,
    pub(crate) order: Order,
    /// Bytes of one element.
    pub(crate) bytes: u32,
    pub(crate) address: Address,
    pub(crate) d: Vec<Row>,
    pub(crate) of: Vec<Row>,
}

/// `atom.exch` or, with something to compare, `atom.cas` of 128 bits, in registers of two rows.
#[derive(Clone, Debug)]
pub(crate) struct WideAtomic {
    pub(crate) space: Space,
    pub(crate) order: Order,
    pub(crate) address: Address,
    pub(crate) d: Row,
    pub(crate) compare: Option<Row>,
    pub(crate) new: Row,
}

/// A load or store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) memory: Memory,
    pub(crate) order: Order,
    /// Bytes of one element.
    pub(crate) bytes: u32,
    /// Elements: 1, 2, 4 or 8.
    pub(crate) count: u32,
    pub(crate) address: Address,
    pub(crate) rows: [Row; 8],
    /// A load's sign extension: bits of the type and of the register.
    pub(crate) extend: Option<(u32, u32)>,
}

/// What an instruction does.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    One(One, Row, Row),
    Two(Two, Row, [Row; 2]),
    Three(Three, Row, [Row; 3]),
    Lop3(u8, Row, [Row; 3]),
    /// `bfi`: the width, and four operands.
    Insert(u32, Row, [Row; 4]),
    Float {
        op: FloatOp,
        ty: FloatType,
        mode: Mode,
        pair: bool,
        d: Row,
        of: [Row; 3],
    },
    /// Arithmetic with the carry flag.
    Carry(Carry, Row, [Row; 3]),
    Compare {
        compared: Compared,
        comparison: Comparison,
        of: [Row; 2],
        combine: Option<(Combine, Guard)>,
        truth: Truth,
        d: Row,
        /// The predicate that gets the opposite.
        opposite: Row,
    },
    ComparePair {
        ty: FloatType,
        flush: bool,
        comparison: Comparison,
        of: [Row; 2],
        combine: Option<(Combine, Guard)>,
        truth: Truth,
        d: [Row; 2],
    },
    Convert(Conversion, Row, Row),
    ConvertPair(PairConversion, Row, [Row; 2]),
    /// `mov` of a vector into a register: parts of so many bits, the first lowest.
    Pack(u32, Row, Vec<Row>),
    Unpack(u32, Vec<Row>, Row),
    /// Adds to an address that is not null.
    Window {
        d: Row,
        a: Row,
        window: u64,
        to_generic: bool,
    },
    IsSpace {
        d: Row,
        a: Row,
        space: Memory,
        constant: bool,
    },
    MapToRank {
        d: Row,
        address: Row,
        rank: Row,
        generic: bool,
    },
    RankOf {
        d: Row,
        address: Row,
        generic: bool,
    },
    Clock {
        d: Row,
        wide: bool,
    },
    /// `applypriority` or `discard` of 128 bytes.
    CacheLine {
        address: Address,
        discards: bool,
    },
    Load(Access),
    Store(Access),
    Atomic {
        op: AtomicOp,
        memory: Memory,
        order: Order,
        bytes: u32,
        d: Row,
        address: Address,
        of: [Row; 2],
    },
    AtomicVector(Box<AtomicVector>),
    WideAtomic(Box<WideAtomic>),
    /// `cp.async`.
    CopyAsync(CopyCode),
    CopyAsyncCommit,
    /// `cp.async.wait_group`, and without a number `wait_all`.
    CopyAsyncWait(Option<u32>),
    /// `cp.async.mbarrier.arrive`.
    CopyAsyncArrive {
        space: Space,
        address: Address,
        no_increment: bool,
    },
    Branch(u32),
    BranchIndexed(Row, Vec<u32>),
    /// The function's start, and the register of its return address.
    Call(u32, Row),
    Return(Row),
    Exit,
    Trap,
    Nothing,
    CopyLocal {
        from: u32,
        to: u32,
        bytes: u32,
    },
    Printf {
        format: u32,
        args: u32,
        result: Option<u32>,
    },
    AssertFail {
        message: u32,
        file: u32,
        line: u32,
        function: u32,
    },
    BlockBarrier(BlockBarrier),
    /// What the lanes that `mask` names do together.
    Collective {
        mask: Row,
        what: Collective,
    },
    ClusterArrive {
        order: Order,
        aligned: bool,
    },
    ClusterWait(Order),
    ActiveMask(Row),
    Mbarrier {
        space: Space,
        address: Address,
        op: Mbarrier,
    },
    PendingCount {
        d: Row,
        state: Row,
    },
    Fence(Fence),
    Tensor(Box<TensorCode>),
    Map(Box<MapCode>),
    Bulk(Box<BulkCode>),
    Remote(Box<RemoteCode>),
    BulkCommit,
    BulkWait {
        pending: u32,
        read: bool,
    },
    /// What only asks for something soon: the turn ends.
    Yield,
}
