//! Operands of `f16` from tiles of `e4m3`.
//!
//! A matrix of `ldmatrix` has 16 bytes in a row: 16 elements where the operand has 8. The elements of
//! two of the operand's registers arrive in one, so that a lane converts what it has, and the operand's
//! order of rows or columns is that of the lanes. `WarpLeft::widen` documents it.

use inkwell::values::{BasicValueEnum, PointerValue};
use tma_front::ir::{LoadedType, WarpFragmentType};

use super::warp::{Source, loaded_together};
use crate::lower::nvvm;
use crate::lower::{Cx, Lower, locals, narrow};

/// The matrices that one instruction loads at most.
const MATRICES: usize = 4;

/// Loads the operand `ty`, whose elements are those of `in_tile`.
pub(super) fn load<'c>(
    cx: &mut Cx<'c, '_>,
    from: &Source<'c, '_>,
    ty: LoadedType,
    in_tile: WarpFragmentType,
    address: PointerValue<'c>,
) -> Lower<()> {
    let pairs = pairs(ty, from.is_transposed(), in_tile.unit());
    let mut rest = pairs.as_slice();
    while !rest.is_empty() {
        let origins: Vec<_> = rest.iter().take(MATRICES).map(|pair| pair.origin).collect();
        let matrices = from.matrices(cx, loaded_together(&origins))?;
        let (now, later) = rest.split_at(matrices.len().min(rest.len()));
        for (pair, matrix) in now.iter().zip(matrices) {
            store_pair(cx, pair, matrix, from.is_transposed(), address)?;
        }
        rest = later;
    }
    Ok(())
}

/// Two registers of an operand, whose elements are those of one matrix in the tile.
struct Pair {
    registers: [u32; 2],
    /// Row and column, in the operand's matrix, of the matrix's first element.
    origin: [u32; 2],
}

/// Returns the pairs of an operand's registers: their blocks follow each other along the rows of the
/// tile, where a matrix has `unit` elements.
fn pairs(ty: LoadedType, is_transposed: bool, unit: u32) -> Vec<Pair> {
    let inner = usize::from(!is_transposed);
    let registers = || 0..ty.of_warp().registers();
    let first = registers().filter(|&i| ty.origin(i)[inner].is_multiple_of(unit));
    let pair = |i| {
        let origin = ty.origin(i);
        let mut next = origin;
        next[inner] += unit / 2;
        let other = registers().find(|&other| ty.origin(other) == next)?;
        Some(Pair { registers: [i, other], origin })
    };
    first.filter_map(pair).collect()
}

/// Converts the elements of a matrix, and stores them as two registers of the operand.
fn store_pair<'c>(
    cx: &mut Cx<'c, '_>,
    pair: &Pair,
    matrix: BasicValueEnum<'c>,
    is_transposed: bool,
    address: PointerValue<'c>,
) -> Lower<()> {
    // Bytes 0 and 1 become the first register, 2 and 3 the second. In a transposed matrix, whose
    // elements are pairs of bytes, the first bytes of both pairs are in the same row of the operand.
    let matrix =
        if is_transposed { nvvm::emit_value(cx, &nvvm::MIDDLE_BYTES_SWAPPED, &[matrix])? } else { matrix };
    let bits = matrix.into_int_value();
    for (half, &i) in pair.registers.iter().enumerate() {
        let shift = cx.u32_const(16 * narrow(half as u64)?);
        let bytes = cx.builder.build_right_shift(bits, shift, false, "")?;
        let bytes = cx.builder.build_int_truncate(bytes, cx.context.i16_type(), "")?;
        let value = nvvm::emit_value(cx, &nvvm::E4M3_TO_F16X2, &[bytes.into()])?;
        let at = locals::at(cx, cx.context.i32_type().into(), address, cx.u32_const(i))?;
        cx.builder.build_store(at, value)?;
    }
    Ok(())
}
