//! The table of words: every built-in function and method. Types, constants and macros are in
//! [`types`](super::types).
//!
//! A row is a word's signature, as `tma_runtime::lang` declares it, and its enum variant. Parameters
//! have their [shape](super::shape), the constraint on the argument. If a method depends on a
//! property of its receiver, the rows are `on` it. Headings are those of `docs/language`.
//!
//! `for op in ReduceOp: fn reduce_{op}(..)` stands for one row per operation, marked after the colon.
//! A method takes its receiver by value, unless it is marked:
//!
//! * `#[ByRef]`, `#[ByMut]`: it takes `&self` or `&mut self`;
//! * `#[Remote]`: it also exists for an object of another block;
//! * `#[Peer]`: it also exists for a slice of another rank;
//! * `#[Sliced]`: it requires a kernel whose attribute fixes the extents of a cluster.
//!
//! A new word has its row here, its declaration in `tma_runtime::lang`, and an arm for its calls.

use std::borrow::Cow;

use super::arguments::counted;
use super::shape::{self, Shape};
use super::{Callable, Generic, MapType, Mark, Parameter, Signature, Word};
use crate::infer::Typing;
use crate::ir::{AtomicOp, Expr, FetchOp, ReduceOp, Scalar, Span, TileType, WarpReduceOp};

words! {
    /// A free function.
    Functions of lang: FunctionWord => FunctionCall, on () {
        "Places" {
            fn thread_idx() => ThreadIdx; fn block_idx() => BlockIdx;
            fn grid_dim() => GridDim; fn block_dim() => BlockDim;
            fn lane_idx() => LaneIdx; fn warp_idx() => WarpIdx;
            fn warpgroup_idx() => WarpgroupIdx; fn elect_one() => ElectOne;
        }
        "Shared memory" {
            fn shared<Shared>() => Shared;
            fn reuse<SharedData>(object: Any) => Reuse;
        }
        "Control flow" {
            fn unroll<Range>(range: Any) => Unroll;
        }
        "Conversions" {
            fn cast<Number>(value: Any) => Cast;
            fn size_of<Sized>() => SizeOf;
        }
        "Arithmetic" {
            fn mul_hi<WordInteger>(a: Any, b: Any) => MulHi;
        }
        "Math" {
            fn min<Number>(a: Any, b: Any) => Min; fn max<Number>(a: Any, b: Any) => Max;
            fn abs<Number>(x: Any) => Abs;
            fn fma<Number>(a: Any, b: Any, c: Any) => Fma;
            fn sqrt<Number>(x: Any) => Sqrt;
            fn recip<Number>(x: Any) => Recip;
            fn rsqrt(x: Any) => Rsqrt;
            fn exp2(x: Any) => Exp2; fn exp2_half<Half>(x: Any) => Exp2Half;
            fn exp2_ftz(x: Any) => Exp2Ftz; fn log2(x: Any) => Log2;
            fn exp(x: Any) => Exp; fn log(x: Any) => Log;
            fn sin(x: Any) => Sin; fn cos(x: Any) => Cos;
            fn tanh(x: Any) => Tanh;
            fn pow(x: Any, y: Any) => Pow;
            fn clamp<Number>(x: Any, low: Any, high: Any) => Clamp;
            fn copysign<Number>(x: Any, sign: Any) => CopySign;
        }
        "Ordering" {
            fn sync_threads() => SyncThreads; fn sync_warp() => SyncWarp;
            fn sync_warpgroup() => SyncWarpgroup;
            fn named_barrier_sync(id: U32, threads: U32) => NamedBarrierSync;
            fn named_barrier_arrive(id: U32, threads: U32) => NamedBarrierArrive;
            fn fence_proxy_async() => FenceProxyAsync;
            fn fence_proxy_async_global() => FenceProxyAsyncGlobal;
            fn fence() => Fence;
            fn fence_barrier_init() => FenceBarrierInit;
        }
        "Tensor cores" {
            fn setmaxnreg_inc<Registers>() => SetmaxnregInc;
            fn setmaxnreg_dec<Registers>() => SetmaxnregDec;
        }
        "Warps" {
            fn shuffle_xor<Element>(value: Any, mask: U32) => ShuffleXor;
            fn shuffle_up<Element>(value: Any, distance: U32) => ShuffleUp;
            fn shuffle_down<Element>(value: Any, distance: U32) => ShuffleDown;
            fn shuffle_idx<Element>(value: Any, lane: U32) => ShuffleIdx;
            fn vote_all(condition: Bool) => VoteAll; fn vote_any(condition: Bool) => VoteAny;
            fn ballot(condition: Bool) => Ballot;
            fn match_any<Element>(value: Any) => MatchAny;
            fn match_all<Element>(value: Any) => MatchAll;
            for op in WarpReduceOp: fn warp_reduce_{op}<Element>(value: Any) => WarpReduce;
        }
        "Bulk groups" {
            fn bulk_commit_group() => BulkCommitGroup;
            fn bulk_wait_group<Groups>() => BulkWaitGroup;
            fn bulk_wait_group_read<Groups>() => BulkWaitGroupRead;
        }
        "The L2 cache" {
            fn l2_evict_first(fraction: F32) => L2EvictFirst;
            fn l2_evict_last(fraction: F32) => L2EvictLast;
            fn l2_evict_normal(fraction: F32) => L2EvictNormal;
            fn l2_evict_unchanged(fraction: F32) => L2EvictUnchanged;
        }
        "Clusters" {
            fn cluster_rank() => ClusterRank; fn block_in_cluster() => BlockInCluster;
            fn cluster_idx() => ClusterIdx; fn cluster_dim() => ClusterDim;
            fn sync_cluster() => SyncCluster;
            fn cluster_arrive() => ClusterArrive; fn cluster_wait() => ClusterWait;
            fn remote<Shared>(thing: Any, rank: U32) => Remote;
        }
        "Grids" {
            fn sync_grid(counter: Counter) => SyncGrid;
            fn grid_dependency_wait() => GridDependencyWait;
            fn grid_dependency_launch() => GridDependencyLaunch;
        }
        "Teams" {
            fn rank() => Rank; fn ranks() => Ranks;
        }
        "Printing and stopping" {
            fn trap() => Trap;
            fn assume(condition: Bool) => Assume;
            fn print_tile<Tile>(tile: PrintedTile) => PrintTile;
        }
    }

    /// A method of a tile in shared memory.
    Methods of Tile: TileWord => TileCall, on TileType {
        "Tiles" {
            #[Remote] fn get(at: Coordinates) => Get;
            #[Remote] fn set(at: Coordinates, value: Element) => Set;
            fn get_vec<Lanes>(at: Coordinates) => GetVec;
            fn set_vec(at: Coordinates, value: Any) => SetVec;
            #[Remote] fn bytes() => Bytes;
            #[Remote] fn rows() => Rows;
            #[Remote] fn cols() => Cols;
            fn tile_at(index: TileCoordinates) => TileAt;
        }
        "Tensor cores" {
            fn band<Count>(i: U32) => Band;
            fn columns<Count>(j: U32) => Columns;
            fn batch(i: U32) => Batch;
            fn sparse(metadata: Any) => Sparse;
            fn t() => T;
            fn t_if<Flag>() => TIf;
        }
        "Bulk copies" {
            fn bulk_copy_to(to: RemoteSequence, at: U32, count: U32, barrier: RemoteBarrier) => CopyTo;
            for op in ReduceOp:
            fn bulk_reduce_{op}_to(to: RemoteSequence, at: U32, count: U32, barrier: RemoteBarrier) => ReduceTo;
        }
    }

    /// A method of an array in shared memory.
    Methods of SharedArray: ArrayWord => ArrayCall, on Scalar {
        "Shared arrays and stages" {
            #[Remote] fn get(i: U32) => Get;
            #[Remote] fn set(i: U32, value: Element) => Set;
            fn get_vec<Lanes>(i: U32) => GetVec;
            fn set_vec(i: U32, value: Any) => SetVec;
            #[Remote] fn len() => Len;
        }
        "Orders and scopes" {
            #[Remote] fn load(i: U32, order: Order, scope: Scope) => Load;
            #[Remote] fn store(i: U32, value: Element, order: Order, scope: Scope) => Store;
            #[Remote] fn swap(i: U32, value: Element, order: Order, scope: Scope) => Swap;
            #[Remote] fn compare_exchange(
                i: U32, current: Element, new: Element, order: Order, scope: Scope
            ) => CompareExchange;
            for op in FetchOp: #[Remote] fn fetch_{op}(i: U32, value: Element, order: Order, scope: Scope) => Fetch;
        }
        "Bulk copies" {
            fn bulk_copy_to(to: RemoteSequence, at: U32, count: U32, barrier: RemoteBarrier) => CopyTo;
            for op in ReduceOp:
            fn bulk_reduce_{op}_to(to: RemoteSequence, at: U32, count: U32, barrier: RemoteBarrier) => ReduceTo;
        }
    }

    /// A method of stages in shared memory.
    Methods of Stages: StagesWord => StagesCall, on () {
        "Shared arrays and stages" {
            #[Remote] fn len() => Len;
        }
    }

    /// A method of an mbarrier.
    Methods of Barrier: BarrierWord => BarrierCall, on () {
        "Barriers" {
            fn init(count: Arrivals) => Init;
            #[Remote] fn arrive() => Arrive;
            fn arrive_many(count: U32) => ArriveMany;
            fn arrive_token() => ArriveToken;
            fn arrive_drop() => ArriveDrop;
            #[Remote] fn arrive_expect_tx(bytes: Bytes) => ArriveExpectTx;
            fn expect_tx(bytes: Bytes) => ExpectTx;
            fn wait(parity: Parity) => Wait;
            fn wait_token(token: Token) => WaitToken;
            fn wait_next(phase: Phase) => WaitNext;
            fn test_wait(parity: Parity) => TestWait;
            fn try_wait(parity: Parity) => TryWait;
            fn try_wait_for(parity: Parity, nanoseconds: U32) => TryWaitFor;
            fn invalidate() => Invalidate;
        }
    }

    /// An associated function of the phase type.
    Functions of Phase: PhaseFunction => PhaseFunctionCall, on () {
        "Barriers" {
            fn new() => New;
            fn opposite() => Opposite;
        }
    }

    /// A method of a phase.
    Methods of Phase: PhaseWord => PhaseCall, on () {
        "Barriers" {
            #[ByRef] fn parity() => Parity;
            #[ByMut] fn flip() => Flip;
        }
    }

    /// A method of a pipeline.
    Methods of Pipeline: PipelineWord => PipelineCall, on () {
        "Pipelines" {
            fn init(consumers: U32) => Init;
            fn producer() => Producer;
            fn consumer() => Consumer;
            fn len() => Len;
            fn invalidate() => Invalidate;
        }
    }

    /// A method of a pipeline's producer state.
    Methods of Producer: ProducerWord => ProducerCall, on () {
        "Pipelines" {
            #[ByMut] fn acquire() => Acquire;
            #[ByMut] fn wait() => Wait;
            #[ByRef] fn ready() => Ready;
            #[ByRef] fn drain() => Drain;
        }
    }

    /// A method of a pipeline's consumer state.
    Methods of Consumer: ConsumerWord => ConsumerCall, on () {
        "Pipelines" {
            #[ByMut] fn wait() => Wait;
            #[ByRef] fn ready() => Ready;
            #[ByMut] fn skip(steps: U32) => Skip;
        }
    }

    /// A method of an empty stage.
    Methods of EmptySlot: EmptySlotWord => EmptySlotCall, on () {
        "Pipelines" {
            fn announce() => Announce;
            #[ByRef] fn stage() => Stage;
        }
    }

    /// A method of a stage that copies are filling.
    Methods of LoadingSlot: LoadingSlotWord => LoadingSlotCall, on () {
        "Pipelines" {
            #[ByRef] fn barrier() => Barrier;
            #[ByRef] fn stage() => Stage;
        }
    }

    /// A method of a full stage.
    Methods of FullSlot: FullSlotWord => FullSlotCall, on () {
        "Pipelines" {
            fn release() => Release;
            fn release_to(rank: U32) => ReleaseTo;
            fn release_cluster() => ReleaseCluster;
            #[ByRef] fn stage() => Stage;
        }
    }

    /// An associated function of an accumulator type.
    Functions of Accumulator: AccumulatorFunction => AccumulatorFunctionCall, on () {
        "Tensor cores" {
            fn zero() => Zero;
        }
    }

    /// A method of an accumulator.
    Methods of Accumulator: AccumulatorWord => AccumulatorCall, on () {
        "Tensor cores" {
            #[ByMut] fn mma(a: Any, b: Any, keep: Any) => Mma;
            #[ByMut] fn mma_saturating(a: Any, b: Any, keep: Any) => MmaSaturating;
            #[ByMut] fn mma_and_popc(a: Any, b: Any, keep: Any) => MmaAndPopc;
            #[ByRef] fn len() => Len;
            #[ByRef] fn row(i: Usize) => Row;
            #[ByRef] fn at(i: Usize) => At;
            #[ByRef] fn columns<Count>(j: U32) => Columns;
            #[ByRef] fn store(tile: StoredTile) => Store;
            #[ByRef] fn store_to(matrix: StoredMatrix, at: RowAndColumn) => StoreTo;
            #[ByRef] fn pack<OperandElement>() => Pack;
            #[ByRef] fn row_max() => RowMax;
            #[ByRef] fn row_sum() => RowSum;
        }
    }

    /// An associated function of a left operand type.
    Functions of Fragment: FragmentFunction => FragmentFunctionCall, on () {
        "Tensor cores" {
            fn load(tile: LoadedTile, at: RowAndColumn) => Load;
            fn widen(tile: LoadedTile, at: RowAndColumn) => Widen;
        }
    }

    /// A method of a left operand in registers.
    Methods of Fragment: FragmentWord => FragmentCall, on () {
        "Tensor cores" {
            fn sparse(metadata: Any) => Sparse;
            #[ByRef] fn unpack() => Unpack;
        }
    }

    /// A method of some columns of an accumulator.
    Methods of Columns: ColumnsWord => ColumnsCall, on () {
        "Tensor cores" {
            #[ByRef] fn len() => Len;
            #[ByRef] fn at(i: Usize) => At;
            #[ByRef] fn store(tile: StoredTile) => Store;
            #[ByRef] fn store_to(matrix: StoredMatrix, at: RowAndColumn) => StoreTo;
        }
    }

    /// An associated function of the type of an accumulator's rows.
    Functions of Rows: RowsFunction => RowsFunctionCall, on Scalar {
        "Tensor cores" {
            fn filled(value: Element) => Filled;
        }
    }

    /// A method of an accumulator's rows.
    Methods of Rows: RowsWord => RowsCall, on () {
        "Tensor cores" {
            #[ByRef] fn len() => Len;
        }
    }

    /// A method of a multiplication in flight.
    Methods of Flight: FlightWord => FlightCall, on () {
        "Tensor cores" {
            #[ByMut] fn mma(a: Any, b: Any, keep: Any) => Mma;
            #[ByMut] fn mma_saturating(a: Any, b: Any, keep: Any) => MmaSaturating;
            #[ByMut] fn mma_and_popc(a: Any, b: Any, keep: Any) => MmaAndPopc;
            fn wait() => Wait;
        }
    }

    /// A method of a tensor map.
    Methods of TensorMap: MapWord => MapCall, on MapType {
        "TMA" {
            fn load(tile: MovedTile, at: Coordinates, barrier: Barrier) => Load;
            fn load_multicast(tile: MovedTile, at: Coordinates, barrier: Barrier, mask: U16) => LoadMulticast;
            #[Sliced] fn load_sliced(tile: WholeTile, at: Coordinates, barrier: Barrier, axis: ClusterAxis) => LoadSliced;
            fn tile_at(index: TileCoordinates) => TileAt;
            fn block_tile() => BlockTile;
            fn store(at: Coordinates, tile: MovedTile) => Store;
            fn prefetch(at: Coordinates) => Prefetch;
            fn prefetch_descriptor() => PrefetchDescriptor;
            fn hint(policy: CachePolicy) => Hint;
        }
        "Reductions" {
            for op in ReduceOp: fn reduce_{op}(at: Coordinates, tile: MovedTile) => Reduce;
        }
    }

    /// A method of a tensor map in im2col mode.
    Methods of Im2colMap: ColumnWord => ColumnCall, on MapType {
        "Columns of pixels" {
            fn load(tile: MovedTile, at: Coordinates, offsets: Offsets, barrier: Barrier) => Load;
            fn load_multicast(
                tile: MovedTile, at: Coordinates, offsets: Offsets, barrier: Barrier, mask: U16
            ) => LoadMulticast;
            fn store(at: Coordinates, tile: MovedTile) => Store;
            fn prefetch(at: Coordinates, offsets: Offsets) => Prefetch;
            fn prefetch_descriptor() => PrefetchDescriptor;
            fn hint(policy: CachePolicy) => Hint;
            for op in ReduceOp: fn reduce_{op}(at: Coordinates, tile: MovedTile) => Reduce;
        }
    }

    /// A method of tensor maps that kernels create, where they are used.
    Methods of Maps: MapsWord => MapsCall, on () {
        "Maps that kernels make" {
            fn at(i: U32) => At;
            fn acquire(i: U32) => Acquire;
        }
    }

    /// A method of a tensor map in shared memory, where it is modified.
    Methods of SharedMap: SharedMapWord => SharedMapCall, on TileType {
        "Maps that kernels make" {
            fn copy_from(map: SameMap) => CopyFrom;
            fn set_address(global: SameElements, i: GlobalIndex) => SetAddress;
            fn set_extent<Dimension>(extent: U32) => SetExtent;
            fn set_stride<Dimension>(bytes: U64) => SetStride;
            fn publish(maps: SameMaps, i: U32) => Publish;
        }
    }

    /// A method of the memory of all ranks.
    Methods of Peers: PeersWord => PeersCall, on () {
        "Teams" {
            fn of(rank: U32) => Of;
            fn own() => Own;
        }
    }

    /// A method of a slice of global memory.
    Methods of Global: GlobalWord => GlobalCall, on Scalar {
        "Global memory" {
            #[Peer] fn get(i: GlobalIndex) => Get;
            #[Peer] fn set(i: GlobalIndex, value: Element) => Set;
            #[Peer] fn get_vec<Lanes>(i: GlobalIndex) => GetVec;
            #[Peer] fn set_vec(i: GlobalIndex, value: Any) => SetVec;
            fn get_nc(i: GlobalIndex) => GetNc;
            fn get_vec_nc<Lanes>(i: GlobalIndex) => GetVecNc;
            #[Peer] fn len() => Len;
            for op in AtomicOp: fn atomic_{op}(i: GlobalIndex, value: Element) => Atomic;
        }
        "Orders and scopes" {
            #[Peer] fn load(i: GlobalIndex, order: Order, scope: Scope) => Load;
            #[Peer] fn store(i: GlobalIndex, value: Element, order: Order, scope: Scope) => Store;
            #[Peer] fn swap(i: GlobalIndex, value: Element, order: Order, scope: Scope) => Swap;
            #[Peer] fn compare_exchange(
                i: GlobalIndex, current: Element, new: Element, order: Order, scope: Scope
            ) => CompareExchange;
            #[Peer] fn add_vec(i: GlobalIndex, value: Any, order: Order, scope: Scope) => AddVec;
            for op in FetchOp: #[Peer] fn fetch_{op}(i: GlobalIndex, value: Element, order: Order, scope: Scope) => Fetch;
        }
        "Tensor cores" {
            fn matrix(first: GlobalIndex, extents: RowAndColumn, stride: U32) => Matrix;
        }
        "Bulk copies" {
            #[Peer] fn bulk_load(
                array: Sequence, at: U32, count: U32, i: GlobalIndex, barrier: Barrier
            ) => BulkLoad;
            #[Peer] fn bulk_load_multicast(
                array: Sequence, at: U32, count: U32, i: GlobalIndex, barrier: Barrier, mask: U16
            ) => BulkLoadMulticast;
            #[Peer] fn bulk_store(i: GlobalIndex, array: Sequence, at: U32, count: U32) => BulkStore;
            fn bulk_prefetch(i: GlobalIndex, count: U32) => BulkPrefetch;
            fn hint(policy: CachePolicy) => Hint;
            for op in ReduceOp: #[Peer]
            fn bulk_reduce_{op}(i: GlobalIndex, array: Sequence, at: U32, count: U32) => BulkReduce;
        }
    }

    /// A method of a number, from Rust or from the crates of the 16- and 8-bit floats.
    Methods of Number: NumberWord => NumberCall, on () {
        "Math" {
            fn min(other: Any) => Min;
            fn max(other: Any) => Max;
            fn abs() => Abs;
            fn mul_add(a: Any, b: Any) => MulAdd; fn sqrt() => Sqrt;
            fn recip() => Recip; fn clamp(low: Any, high: Any) => Clamp;
            fn copysign(sign: Any) => CopySign;
            fn powi(n: I32) => Powi;
        }
        "Arithmetic" {
            fn wrapping_add(other: Any) => WrappingAdd; fn wrapping_sub(other: Any) => WrappingSub;
            fn wrapping_mul(other: Any) => WrappingMul; fn wrapping_neg() => WrappingNeg;
            fn wrapping_shl(n: U32) => WrappingShl; fn wrapping_shr(n: U32) => WrappingShr;
            fn saturating_add(other: Any) => SaturatingAdd; fn saturating_sub(other: Any) => SaturatingSub;
            fn saturating_mul(other: Any) => SaturatingMul;
            fn abs_diff(other: Any) => AbsDiff;
            fn pow(n: U32) => Pow; fn ilog2() => Ilog2;
            fn is_power_of_two() => IsPowerOfTwo; fn next_multiple_of(other: Any) => NextMultipleOf;
            fn div_ceil(other: Any) => DivCeil;
            fn count_ones() => CountOnes; fn count_zeros() => CountZeros;
            fn leading_zeros() => LeadingZeros; fn leading_ones() => LeadingOnes;
            fn trailing_zeros() => TrailingZeros; fn trailing_ones() => TrailingOnes;
            fn reverse_bits() => ReverseBits; fn swap_bytes() => SwapBytes;
            fn rotate_left(n: U32) => RotateLeft; fn rotate_right(n: U32) => RotateRight;
        }
        "Conversions" {
            fn to_f32() => ToF32; fn to_f64() => ToF64;
            fn to_bits() => ToBits;
        }
    }

    /// An associated function of a number type, such as `f16::from_f32`.
    Functions of Number: ConversionWord => ConversionCall, on Scalar {
        "Conversions" {
            fn from_f32(x: F32) => FromF32;
            fn from_f64(x: F64) => FromF64;
            fn from_bits(bits: Bits) => FromBits;
        }
    }

    /// A method, from Rust, of the range of a `for`.
    Methods of Range: RangeWord => RangeCall, on () {
        "Control flow" {
            fn step_by(n: Usize) => StepBy;
            fn rev() => Rev;
        }
    }
}
