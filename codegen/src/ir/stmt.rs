//! Statements: effects and control flow.

use super::{
    Atomic, Awaited, BulkCopy, Expr, Fence, FragmentLoad, GlobalMatrix, LocalId, MapEdit, MapRef,
    MatrixStore, Mma, MmaSync, Origin, ParamId, RemoteCopy, RowOp, Scope, TileCopy, WarpOp, WarpStore,
};

/// Statements in order.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The statements.
    pub stmts: Vec<Stmt>,
}

/// An effect and where it comes from.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its name in this kernel.
    pub id: StmtId,
    /// What it does.
    pub kind: StmtKind,
    /// Where it comes from.
    pub origin: Origin,
}

/// Counts the statements of a kernel, each before those inside it. Only a finished kernel is
/// counted; while it is parsed, all are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(pub u32);

impl Stmt {
    /// A statement of a kernel that is being parsed.
    pub fn new(kind: StmtKind, origin: Origin) -> Self {
        Self { id: StmtId::default(), kind, origin }
    }
}

/// Names a loop or block, for those that leave it; unique within a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// What a statement does.
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `local[index]… = value`; no index for a scalar or a whole array. Indices are `usize`.
    Assign { local: LocalId, index: Vec<Expr>, value: Expr },
    /// `if`.
    If { condition: Expr, then: Block, otherwise: Block },
    /// `match` on an integer or `bool`: the first arm with a range that holds the value, else
    /// `otherwise`.
    Match { value: Expr, arms: Vec<Arm>, otherwise: Block },
    /// `loop`.
    Loop { label: Label, body: Block },
    /// `while`: `header` computes what `condition` reads, before every turn.
    While { label: Label, header: Block, condition: Expr, body: Block },
    /// `for variable in range`.
    For(Box<For>),
    /// Statements that a [`StmtKind::Leave`] inside may end: an inlined function.
    Labelled { label: Label, body: Block },
    /// Ends the loop.
    Break(Label),
    /// Goes on with the loop's next turn.
    Continue(Label),
    /// Ends the labelled block.
    Leave(Label),
    /// Ends the thread.
    Return,

    // Tiles, arrays and barriers may be `Remote`; of barriers those only that are arrived at. Where
    // `dest` or `value` is an array, an access to a tile or to global memory is of so many
    // consecutive elements, by one instruction.
    /// `dest = tile[at]`, with the swizzle applied.
    TileGet { dest: LocalId, tile: Expr, at: Vec<Expr> },
    /// `tile[at] = value`, with the swizzle applied.
    TileSet { tile: Expr, at: Vec<Expr>, value: Expr },
    /// `dest = array[index]`.
    SharedGet { dest: LocalId, array: Expr, index: Expr },
    /// `array[index] = value`.
    SharedSet { array: Expr, index: Expr, value: Expr },
    /// `dest = global[index]`; traps out of bounds.
    GlobalGet { dest: LocalId, global: ParamId, index: Expr },
    /// `global[index] = value`; traps out of bounds.
    GlobalSet { global: ParamId, index: Expr, value: Expr },
    /// A load, store or atomic operation with an order and a scope.
    Atomic(Box<Atomic>),

    /// A copy by a tensor map.
    TileCopy(Box<TileCopy>),
    /// A copy of consecutive elements between global and shared memory.
    BulkCopy(Box<BulkCopy>),
    /// A copy of consecutive elements to another block of the cluster.
    RemoteCopy(Box<RemoteCopy>),
    /// Brings a tensor map into the cache of descriptors (`prefetch.tensormap`).
    PrefetchMap(MapRef),
    /// An mbarrier operation; `scope` tells between whom an arrival and a wait order memory.
    Barrier { barrier: Expr, op: BarrierOp, scope: Scope },
    /// Changes a map in shared memory.
    EditMap { map: Expr, edit: MapEdit },
    /// Makes what was published as `maps[index]` visible to the copies of this thread; traps out of
    /// bounds.
    AcquireMap { maps: ParamId, index: Expr },
    /// Closes the group of the bulk stores that this thread has issued.
    BulkCommitGroup,
    /// Waits until at most `pending` of this thread's groups are unfinished: reading their source
    /// (`read_only`), or altogether.
    BulkWaitGroup { pending: u32, read_only: bool },

    /// Starts a multiplication by the tensor cores, as a group of its own.
    Mma(Box<Mma>),
    /// Waits until these multiplications of `accumulator` are complete.
    MmaWait { accumulator: LocalId, awaited: Awaited },
    /// `dest` is `accumulator`, converted to the elements of a left operand.
    Pack { dest: LocalId, accumulator: LocalId },
    /// `tile = accumulator[.., first..]`, converted, by the whole warpgroup; `first` is a `u32`.
    StoreAccumulator { accumulator: LocalId, first: Expr, tile: Expr },
    /// Goes on only if all of a matrix is in its slice; otherwise traps.
    CheckMatrix(Box<GlobalMatrix>),
    /// `matrix[at..] = accumulator[.., first..]`, converted, each thread its elements.
    StoreMatrix(Box<MatrixStore>),
    /// `dest` has `op` of each row of `accumulator`, over all threads that have elements of the
    /// row.
    ReduceRows { dest: LocalId, op: RowOp, accumulator: LocalId },
    /// `dest` is a part of a tile, as an operand in the registers of a warp (`ldmatrix`).
    LoadFragment(Box<FragmentLoad>),
    /// `accumulator += left · rightᵀ`, all in the registers of a warp (`mma.sync`).
    MmaSync(Box<MmaSync>),
    /// A part of a tile is an accumulator of a warp, converted.
    StoreWarp(Box<WarpStore>),
    /// Gives the warpgroup's threads this many registers, which is more than they have
    /// (`increase`), or less.
    SetMaxRegisters { increase: bool, registers: u32 },

    /// Orders memory accesses.
    Fence(Fence),
    /// Threads meet.
    Sync(Sync),
    /// `threads` threads meet at barrier `id` (`barrier.sync id, threads`).
    NamedBarrierSync { id: Expr, threads: Expr },
    /// Counts this thread in at barrier `id`, where `threads` meet (`barrier.arrive id, threads`).
    NamedBarrierArrive { id: Expr, threads: Expr },
    /// All threads of the grid meet: one of each block counts it in at `counter[0]`, a `u32`, and
    /// waits for the others.
    SyncGrid { counter: ParamId },
    /// Waits for the grids before this one, or lets the next one start.
    GridDependency(GridDependency),
    /// `dest` is true in one thread of the warp (`elect.sync`).
    ElectOne { dest: LocalId },
    /// `dest` is what the lanes of the warp make of the `value` of each.
    Warp { dest: LocalId, value: Expr, op: WarpOp },

    /// Stops the grid with an error.
    Trap,
    /// Stops the grid with `message` unless `condition` holds; if it is `assumed`, in checked
    /// kernels alone.
    Assert { condition: Expr, message: String, assumed: bool },
    /// Prints from the GPU.
    Printf { pieces: Vec<PrintfPiece>, args: Vec<Expr> },
    /// Prints the elements of a tile from the GPU, in rows.
    PrintTile { tile: Expr },
}

/// What a checked kernel says where something does not hold that it assumes.
pub const ASSUMPTION_FAILED: &str = "an assumption does not hold";

/// An arm of a `match`.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Inclusive ranges of values.
    pub ranges: Vec<(i128, i128)>,
    /// What to do for these.
    pub body: Block,
}

/// A `for` over a range.
#[derive(Clone, Debug)]
pub struct For {
    /// Names the loop.
    pub label: Label,
    /// Takes each value of the range.
    pub variable: LocalId,
    /// The first value.
    pub start: Expr,
    /// The bound, of the same type as `start`.
    pub end: Expr,
    /// Whether the bound belongs to the range (`..=`).
    pub inclusive: bool,
    /// How far apart values are; a `usize`; 1 unless `step_by` says otherwise.
    pub step: Expr,
    /// Whether the loop must be gone from the PTX.
    pub unroll: bool,
    /// What to do for each.
    pub body: Block,
}

/// What is done to an mbarrier. Source: PTX ISA, "mbarrier".
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum BarrierOp {
    /// `mbarrier.init`: `count` arrivals complete each phase.
    Init { count: Expr },
    /// `mbarrier.inval`: the memory may be used for something else.
    Invalidate,
    /// `mbarrier.arrive`.
    Arrive,
    /// `mbarrier.arrive` with a count: as that many arrivals.
    ArriveMany { count: Expr },
    /// `mbarrier.arrive` with its result: `dest` is the state of the phase that was arrived at.
    ArriveToken { dest: LocalId },
    /// `mbarrier.arrive_drop`: arrives, and is not counted in the phases after this one.
    ArriveDrop,
    /// `mbarrier.arrive.expect_tx`: raises the phase's transaction count by `bytes`, then arrives.
    ArriveExpectTx { bytes: Expr },
    /// `mbarrier.expect_tx`.
    ExpectTx { bytes: Expr },
    /// Blocks until the phase of `parity` has completed.
    Wait { parity: Expr },
    /// Blocks until the phase whose state `token` is has completed.
    WaitToken { token: Expr },
    /// `dest` tells whether the phase of `parity` has completed, at once (`mbarrier.test_wait`).
    TestWait { dest: LocalId, parity: Expr },
    /// `dest` tells whether the phase of `parity` has completed; may wait a little
    /// (`mbarrier.try_wait`).
    TryWait { dest: LocalId, parity: Expr },
    /// As `TryWait`, waiting up to about `nanoseconds`.
    TryWaitFor { dest: LocalId, parity: Expr, nanoseconds: Expr },
}

/// Where threads meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// All threads of the block (`barrier.sync 0`).
    Threads,
    /// All threads of the warp (`bar.warp.sync`).
    Warp,
    /// All threads of the warpgroup (`barrier.sync`, of a barrier that is the warpgroup's).
    Warpgroup,
    /// All threads of the cluster (`barrier.cluster.arrive`, `.wait`).
    Cluster,
    /// The first half of [`Sync::Cluster`]: this thread is there.
    ClusterArrive,
    /// The second half: waits for all others.
    ClusterWait,
}

/// What a grid tells or asks the grids beside it in its stream. Source: PTX ISA, "griddepcontrol".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GridDependency {
    /// Waits until the grids that this one depends on have ended, and sees what they wrote
    /// (`griddepcontrol.wait`).
    Wait,
    /// The next grid may start once all blocks have said this or ended
    /// (`griddepcontrol.launch_dependents`).
    Launch,
}

/// A piece of a format string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintfPiece {
    /// Text as it is.
    Text(String),
    /// An argument, by position.
    Arg {
        /// Counts the arguments.
        index: usize,
        /// `{:x}`.
        hex: bool,
        /// `{:.3}`.
        precision: Option<u32>,
        /// `{:8}`.
        width: Option<u32>,
    },
}
