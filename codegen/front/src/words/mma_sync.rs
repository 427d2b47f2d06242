//! The built-ins for multiplications by a warp: further rows of the [table](super::table), which
//! documents their format.

use std::borrow::Cow;

use super::arguments::counted;
use super::shape::{self, Shape};
use super::{Callable, Generic, Mark, Parameter, Signature, Word};
use crate::infer::Typing;
use crate::ir::{Expr, Scalar, Span};

words! {
    /// An associated function of a warp's accumulator type.
    Functions of WarpAccumulator: WarpAccumulatorFunction => WarpAccumulatorFunctionCall, on () {
        "Multiplications by a warp" {
            fn zero() => Zero;
        }
    }

    /// A method of a warp's accumulator.
    Methods of WarpAccumulator: WarpAccumulatorWord => WarpAccumulatorCall, on () {
        "Multiplications by a warp" {
            #[ByMut] fn mma_sync(a: Any, b: Any) => MmaSync;
            #[ByMut] fn mma_sync_saturating(a: Any, b: Any) => MmaSyncSaturating;
            #[ByMut] fn mma_sync_and_popc(a: Any, b: Any) => MmaSyncAndPopc;
            #[ByMut] fn mma_sync_xor_popc(a: Any, b: Any) => MmaSyncXorPopc;
            #[ByRef] fn len() => Len;
            #[ByRef] fn row(i: Usize) => Row;
            #[ByRef] fn at(i: Usize) => At;
            #[ByRef] fn store(tile: StoredTile, at: RowAndColumn) => Store;
            #[ByRef] fn store_to(matrix: StoredMatrix, at: RowAndColumn) => StoreTo;
            #[ByRef] fn pack<OperandElement>() => Pack;
            #[ByRef] fn row_max() => RowMax;
            #[ByRef] fn row_sum() => RowSum;
        }
    }

    /// An associated function of the type of the rows of a warp's accumulator.
    Functions of WarpRows: WarpRowsFunction => WarpRowsFunctionCall, on Scalar {
        "Multiplications by a warp" {
            fn filled(value: Element) => Filled;
        }
    }

    /// A method of the rows of a warp's accumulator.
    Methods of WarpRows: WarpRowsWord => WarpRowsCall, on () {
        "Multiplications by a warp" {
            #[ByRef] fn len() => Len;
        }
    }

    /// An associated function of a warp's left operand type.
    Functions of WarpLeft: WarpLeftFunction => WarpLeftFunctionCall, on () {
        "Multiplications by a warp" {
            fn load(tile: LoadedTile, at: RowAndColumn) => Load;
            fn widen(tile: LoadedTile, at: RowAndColumn) => Widen;
        }
    }

    /// An associated function of a warp's right operand type.
    Functions of WarpRight: WarpRightFunction => WarpRightFunctionCall, on () {
        "Multiplications by a warp" {
            fn load(tile: LoadedTile, at: RowAndColumn) => Load;
            fn widen(tile: LoadedTile, at: RowAndColumn) => Widen;
        }
    }
}
