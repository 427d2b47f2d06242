//! The types of kernels, with their generic parameters; constants and macros.

use super::Generic;
use crate::ir::{Scalar, TileSwizzle};

types! {
    /// A type.
    TypeWord {
        "Values" {
            type Dim3;
            for ty in Scalar;
        }
        "Shared memory" {
            type Tile<Element, Shape, Swizzle>;
            type SharedArray<Element, Count>;
            type Stages<Shared, Count>;
        }
        "Tiles" {
            type Shape1<Count>;
            type Shape2<Count, Count>;
            type Shape3<Count, Count, Count>;
            type Shape4<Count, Count, Count, Count>;
            type Shape5<Count, Count, Count, Count, Count>;
            for ty in TileSwizzle;
        }
        "Barriers" {
            type Barrier;
            type Token;
            type Phase;
        }
        "Pipelines" {
            type Pipeline<Tiles, Count>;
            type Producer<Tiles, Count>;
            type Consumer<Tiles, Count>;
            type EmptySlot<Tiles>;
            type LoadingSlot<Tiles>;
            type FullSlot<Tiles>;
        }
        "TMA" {
            type TensorMap<Tile>;
        }
        "Tensor cores" {
            type Accumulator<AccumulatorElement, MatrixRows, Count>;
            type Columns<Lifetime, AccumulatorElement, MatrixRows, Count>;
            type Rows<AccumulatorElement, MatrixRows>;
            type Fragment<OperandElement, MatrixRows, K>;
            type GlobalMatrix<Element>;
            type Flight<Lifetime, AccumulatorElement, MatrixRows, Count, KeptValue>;
            type Transposed<Tile, Flag>;
            type Negated<Operand>;
            type Sparse<Tile, K>;
        }
        "Multiplications by a warp" {
            type WarpAccumulator<WarpAccumulatorElement, MatrixRows, Count>;
            type WarpRows<WarpAccumulatorElement, MatrixRows>;
            type WarpLeft<WarpOperandElement, MatrixRows, K>;
            type WarpRight<WarpOperandElement, Count, K>;
        }
        "Columns of pixels" {
            type Im2colMap<Tile, Rank>;
        }
        "Maps that kernels make" {
            type Maps<Tile>;
            type SharedMap<Tile>;
        }
        "Global memory" {
            type Global<Element>;
        }
        "Teams" {
            type Peers<PeerMemory>;
            type Peer<PeerMemory>;
        }
        "Orders and scopes" {
            type Order;
            type Scope;
        }
        "The L2 cache" {
            type CachePolicy;
        }
        "Clusters" {
            type Remote<Shared>;
        }
        "Multicast" {
            type ClusterAxis;
        }
    }
}

names! {
    /// A constant of a scalar, such as `u32::MAX`.
    ConstantWord in "Conversions" {
        MIN => Min,
        MAX => Max,
        BITS => Bits,
        EPSILON => Epsilon,
        INFINITY => Infinity,
        NEG_INFINITY => NegInfinity,
        NAN => Nan,
        ZERO => Zero,
        ONE => One,
    }

    /// A macro.
    MacroWord in "Printing and stopping" {
        printf => Printf,
        assert => Assert,
        ptx => Ptx,
        trace_span => TraceSpan,
    }
}
