//! Statements: effects and control flow.

use super::{
    Atomic, Awaited, BulkCopy, Expr, Fence, FragmentLoad, GlobalMatrix, GlobalRef, LocalId, MapEdit, MapRef,
    MatrixStore, Mma, MmaSync, Origin, ParamId, Ptx, RemoteCopy, RowOp, Scope, SpanEdge, TileCopy, WarpOp,
    WarpStore,
};

/// A sequence of statements.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The statements, in order.
    pub stmts: Vec<Stmt>,
}

/// An effect and its source.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The number within the kernel.
    pub id: StmtId,
    /// The effect.
    pub kind: StmtKind,
    /// The source.
    pub origin: Origin,
}

/// The number of a statement in its kernel, in pre-order. Assigned once the kernel is finished;
/// until then every id is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(pub u32);

impl Stmt {
    /// Creates a statement of a kernel that is being parsed.
    pub fn new(kind: StmtKind, origin: Origin) -> Self {
        Self { id: StmtId::default(), kind, origin }
    }
}

/// Identifies a loop or block for the statements that leave it. Unique within a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// The path by which a plain load reads global memory. Source: PTX ISA, "ld.global.nc".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPath {
    /// `ld.global`, which sees the writes that are ordered before it.
    Coherent,
    /// `ld.global.nc`, which need not see any write of the same launch.
    NonCoherent,
}

/// The effect of a statement.
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `local[index]… = value`. `index` is empty for a scalar or a whole array; indices are
    /// `usize`.
    Assign { local: LocalId, index: Vec<Expr>, value: Expr },
    /// `if`.
    If { condition: Expr, then: Block, otherwise: Block },
    /// `match` on an integer or `bool`: runs the first arm with a range that contains the value,
    /// else `otherwise`.
    Match { value: Expr, arms: Vec<Arm>, otherwise: Block },
    /// `loop`.
    Loop { label: Label, body: Block },
    /// `while`: `header` computes the operands of `condition` before every iteration.
    While { label: Label, header: Block, condition: Expr, body: Block },
    /// `for variable in range`.
    For(Box<For>),
    /// Statements that a [`StmtKind::Leave`] inside may end: an inlined function.
    Labelled { label: Label, body: Block },
    /// Ends the loop.
    Break(Label),
    /// Continues with the loop's next iteration.
    Continue(Label),
    /// Ends the labelled block.
    Leave(Label),
    /// Ends the thread.
    Return,

    // Tiles, arrays and barriers may be `Remote`; a remote barrier can only be arrived at. If
    // `dest` or `value` is an array, an access to a tile or to global memory covers that many
    // consecutive elements with one instruction.
    /// `dest = tile[at]`, with the swizzle applied.
    TileGet { dest: LocalId, tile: Expr, at: Vec<Expr> },
    /// `tile[at] = value`, with the swizzle applied.
    TileSet { tile: Expr, at: Vec<Expr>, value: Expr },
    /// `dest = array[index]`.
    SharedGet { dest: LocalId, array: Expr, index: Expr },
    /// `array[index] = value`.
    SharedSet { array: Expr, index: Expr, value: Expr },
    /// `dest = global[index]`; traps out of bounds. `hint` is the cache policy.
    GlobalGet { dest: LocalId, global: GlobalRef, index: Expr, path: LoadPath, hint: Option<Box<Expr>> },
    /// `global[index] = value`; traps out of bounds. `hint` is the cache policy.
    GlobalSet { global: GlobalRef, index: Expr, value: Expr, hint: Option<Box<Expr>> },
    /// A load, store or atomic operation with an order and a scope.
    Atomic(Box<Atomic>),

    /// A copy that uses a tensor map.
    TileCopy(Box<TileCopy>),
    /// A copy of consecutive elements between global and shared memory.
    BulkCopy(Box<BulkCopy>),
    /// A copy of consecutive elements to another block of the cluster.
    RemoteCopy(Box<RemoteCopy>),
    /// Prefetches a tensor map into the descriptor cache (`prefetch.tensormap`).
    PrefetchMap(MapRef),
    /// An mbarrier operation. `scope` is the scope within which an arrival and a wait order memory.
    Barrier { barrier: Expr, op: BarrierOp, scope: Scope },
    /// Modifies a tensor map in shared memory.
    EditMap { map: Expr, edit: MapEdit },
    /// Makes the tensor map that was published as `maps[index]` visible to copies of this thread.
    /// Traps out of bounds.
    AcquireMap { maps: ParamId, index: Expr },
    /// Closes the bulk group of the stores that this thread has issued
    /// (`cp.async.bulk.commit_group`).
    BulkCommitGroup,
    /// Waits until at most `pending` bulk groups of this thread are incomplete
    /// (`cp.async.bulk.wait_group`). With `read_only`, a group counts as complete once its sources
    /// have been read.
    BulkWaitGroup { pending: u32, read_only: bool },

    /// Starts a matrix multiplication on the tensor cores, committed as a group of its own.
    Mma(Box<Mma>),
    /// Waits until the `awaited` multiplications of `accumulator` are complete.
    MmaWait { accumulator: LocalId, awaited: Awaited },
    /// `dest = accumulator`, converted to the element type of a left operand.
    Pack { dest: LocalId, accumulator: LocalId },
    /// `dest = fragment`, converted to an accumulator of f32.
    Unpack { dest: LocalId, fragment: LocalId },
    /// `tile = accumulator[.., first..]`, converted, by the whole warpgroup. `first` is a `u32`.
    StoreAccumulator { accumulator: LocalId, first: Expr, tile: Expr },
    /// Traps unless the whole matrix lies in its slice.
    CheckMatrix(Box<GlobalMatrix>),
    /// `matrix[at..] = accumulator[.., first..]`, converted. Each thread stores its own elements.
    StoreMatrix(Box<MatrixStore>),
    /// `dest = op` of each row of `accumulator`, over all threads that hold elements of the row.
    ReduceRows { dest: LocalId, op: RowOp, accumulator: LocalId },
    /// `dest = tile[at..]`, loaded as an operand into registers (`ldmatrix`).
    LoadFragment(Box<FragmentLoad>),
    /// `accumulator += left · rightᵀ`, all in registers of a warp (`mma.sync`).
    MmaSync(Box<MmaSync>),
    /// `tile[at..] = accumulator`, from the registers of a warp, converted.
    StoreWarp(Box<WarpStore>),
    /// Raises (`increase`) or lowers the number of registers of each thread of the warpgroup to
    /// `registers` (`setmaxnreg`).
    SetMaxRegisters { increase: bool, registers: u32 },

    /// Orders memory accesses.
    Fence(Fence),
    /// Synchronises threads.
    Sync(Sync),
    /// Synchronises `threads` threads at barrier `id` (`barrier.sync id, threads`).
    NamedBarrierSync { id: Expr, threads: Expr },
    /// Arrives at barrier `id` of `threads` threads without waiting (`barrier.arrive id, threads`).
    NamedBarrierArrive { id: Expr, threads: Expr },
    /// Synchronises all threads of the grid. One thread of each block increments `counter[0]`, a
    /// `u32`, and waits until all blocks have done so.
    SyncGrid { counter: ParamId },
    /// Waits for the preceding grids, or lets the next grid start.
    GridDependency(GridDependency),
    /// `dest` is true in exactly one thread of the warp (`elect.sync`).
    ElectOne { dest: LocalId },
    /// `dest = op` over the `value` of every lane of the warp.
    Warp { dest: LocalId, value: Expr, op: WarpOp },

    /// Instructions that the kernel writes itself (`ptx!`).
    Ptx(Box<Ptx>),

    /// Stops the grid with an error.
    Trap,
    /// Stops the grid with `message` unless `condition` holds. An `assumed` condition is tested in
    /// checked kernels alone.
    Assert { condition: Expr, message: String, assumed: bool },
    /// Prints from the GPU.
    Printf { pieces: Vec<PrintfPiece>, args: Vec<Expr> },
    /// Prints the elements of a tile from the GPU, row by row.
    PrintTile { tile: Expr },
    /// Marks an end of the span `name` for traces and timelines. It is no instruction.
    TraceSpan { name: String, edge: SpanEdge },
}

/// The message of a checked kernel when an assumption does not hold.
pub const ASSUMPTION_FAILED: &str = "an assumption does not hold";

/// The message of a kernel that iterates with a step of zero.
pub const STEP_BY_ZERO: &str = "step_by(0) never ends";

/// An arm of a `match`.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Inclusive ranges of values.
    pub ranges: Vec<(i128, i128)>,
    /// The statements to run for these values.
    pub body: Block,
}

/// A `for` over a range.
#[derive(Clone, Debug)]
pub struct For {
    /// The loop's label.
    pub label: Label,
    /// The local that takes each value of the range.
    pub variable: LocalId,
    /// The first value.
    pub start: Expr,
    /// The bound, of the same type as `start`.
    pub end: Expr,
    /// Whether the bound belongs to the range (`..=`).
    pub inclusive: bool,
    /// The increment, a `usize`. It is 1 without `step_by`.
    pub step: Expr,
    /// Whether the loop must be fully unrolled in the PTX.
    pub unroll: bool,
    /// The statements of one iteration.
    pub body: Block,
}

/// An operation on an mbarrier. Source: PTX ISA, "mbarrier".
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum BarrierOp {
    /// `mbarrier.init`: `count` arrivals complete each phase.
    Init { count: Expr },
    /// `mbarrier.inval`: the memory may be used for other purposes.
    Invalidate,
    /// `mbarrier.arrive`.
    Arrive,
    /// `mbarrier.arrive` with a count: equivalent to that many arrivals.
    ArriveMany { count: Expr },
    /// `mbarrier.arrive` with its result: `dest` is the state of the phase arrived at.
    ArriveToken { dest: LocalId },
    /// `mbarrier.arrive_drop`: arrives, and lowers the number of arrivals that later phases expect.
    ArriveDrop,
    /// `mbarrier.arrive.expect_tx`: raises the phase's transaction count by `bytes`, then arrives.
    ArriveExpectTx { bytes: Expr },
    /// `mbarrier.expect_tx`.
    ExpectTx { bytes: Expr },
    /// Blocks until the phase with `parity` has completed.
    Wait { parity: Expr },
    /// Blocks until the phase with the state `token` has completed.
    WaitToken { token: Expr },
    /// `dest` = whether the phase with `parity` has completed, without blocking
    /// (`mbarrier.test_wait`).
    TestWait { dest: LocalId, parity: Expr },
    /// `dest` = whether the phase with `parity` has completed. May block for a system-dependent
    /// time (`mbarrier.try_wait`).
    TryWait { dest: LocalId, parity: Expr },
    /// Like `TryWait`, with a time limit of about `nanoseconds`.
    TryWaitFor { dest: LocalId, parity: Expr, nanoseconds: Expr },
}

/// A synchronisation of a fixed group of threads, or one half of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// All threads of the block (`barrier.sync 0`).
    Threads,
    /// All threads of the warp (`bar.warp.sync`).
    Warp,
    /// All threads of the warpgroup (`barrier.sync` on a barrier reserved for the warpgroup).
    Warpgroup,
    /// All threads of the cluster (`barrier.cluster.arrive`, then `.wait`).
    Cluster,
    /// The first half of [`Sync::Cluster`]: arrives without waiting.
    ClusterArrive,
    /// The second half: waits until all other threads have arrived.
    ClusterWait,
}

/// A dependency between grids of a stream. Source: PTX ISA, "griddepcontrol".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GridDependency {
    /// Waits until the grids that this one depends on have completed and their writes are visible
    /// (`griddepcontrol.wait`).
    Wait,
    /// Lets the next grid start once every block has executed this or ended
    /// (`griddepcontrol.launch_dependents`).
    Launch,
}

/// A piece of a format string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintfPiece {
    /// Literal text.
    Text(String),
    /// A formatted argument.
    Arg {
        /// The position among the arguments.
        index: usize,
        /// Hexadecimal: `{:x}`.
        hex: bool,
        /// Digits after the point: `{:.3}`.
        precision: Option<u32>,
        /// Minimum width: `{:8}`.
        width: Option<u32>,
    },
}
