//! Stores of accumulators to tiles and to matrices in global memory.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::ir::{Expr, GlobalMatrix, LocalId, MatrixStore, Scalar, Span, Team, TileType, Type};

use super::{AccumulatorAlloca, FirstRow, accumulator, element, lane, pair};
use crate::backend::BackendError;
use crate::lower::types::{float_type, int, pointer};
use crate::lower::{Cx, Lower, expr, locals, memory, nvvm, print, tile};

/// Lowers `tile = accumulator[.., first..]`.
pub(in crate::lower) fn store(cx: &mut Cx<'_, '_>, from: LocalId, first: &Expr, to: &Expr) -> Lower<()> {
    let alloca = accumulator(cx, from)?;
    let Type::Tile(ty) = &to.ty else {
        return Err(BackendError::Unchecked(format!("an accumulator stored to `{}`", to.ty)));
    };
    let base = expr::value(cx, to).and_then(pointer)?;
    let first = expr::int_value(cx, first)?;
    // A thread holds two of every four elements of its two rows.
    let first = cx.builder.build_right_shift(first, cx.u32_const(1), false, "")?;
    let (lane, row) = (lane(cx, to.span)?, FirstRow::of_team(cx, alloca.ty.team, to.span)?);
    store_at(cx, &alloca, &Target { base, ty, first, lane, columns: ty.inner_extent(), row, byte: None })
}

/// Stores to a tile.
pub(super) fn store_at<'c>(
    cx: &mut Cx<'c, '_>,
    alloca: &AccumulatorAlloca<'c>,
    target: &Target<'c, '_>,
) -> Lower<()> {
    match target.ty.element.bytes() {
        2 => matrices(cx, alloca, target),
        _ => pairs(cx, alloca, target),
    }
}

/// The destination of an accumulator's store.
pub(super) struct Target<'c, 't> {
    pub(super) base: PointerValue<'c>,
    pub(super) ty: &'t TileType,
    /// The index of the first element to store among a thread's elements of each band.
    pub(super) first: IntValue<'c>,
    pub(super) lane: IntValue<'c>,
    /// The number of columns.
    pub(super) columns: u32,
    /// The row of the tile that receives the warp's first row.
    pub(super) row: FirstRow<'c>,
    /// The offset in bytes of the first column in a row of the tile, unless it is 0.
    pub(super) byte: Option<IntValue<'c>>,
}

impl<'c> Target<'c, '_> {
    /// Emits the offset of a row's first byte. The row of the tile is the sum of those of the band,
    /// of the warp within it, and `row`.
    fn row(&self, cx: &Cx<'c, '_>, first_of_band: u32, row: IntValue<'c>) -> Lower<IntValue<'c>> {
        let row = self.row.and(cx, row)?;
        let row = cx.builder.build_int_add(row, cx.u32_const(first_of_band), "")?;
        Ok(cx.builder.build_int_mul(row, cx.bytes_const(self.ty.row_pitch())?, "")?)
    }

    fn address(&self, cx: &Cx<'c, '_>, row: IntValue<'c>, byte: IntValue<'c>) -> Lower<PointerValue<'c>> {
        let byte = match self.byte {
            Some(first) => cx.builder.build_int_add(first, byte, "")?,
            None => byte,
        };
        let offset = tile::in_panels(cx, self.ty, row, byte)?;
        tile::byte_offset(cx, self.base, offset)
    }

    /// Emits the index of a thread's element `i` of a band, counted from the first one that is
    /// stored.
    fn element(
        &self,
        cx: &Cx<'c, '_>,
        alloca: &AccumulatorAlloca<'c>,
        band: u32,
        i: u32,
    ) -> Lower<IntValue<'c>> {
        let at = cx.u32_const(band * alloca.ty.elements_of_band() + i);
        Ok(cx.builder.build_int_add(self.first, at, "")?)
    }
}

/// Stores 16-bit elements as matrices of 8 × 8. Four of them cover 16 rows and 16 columns. The
/// lanes hold the addresses of the rows, of the left two matrices first, then of the right two.
/// Source: PTX ISA, "stmatrix".
fn matrices<'c>(cx: &mut Cx<'c, '_>, alloca: &AccumulatorAlloca<'c>, target: &Target<'c, '_>) -> Lower<()> {
    let columns = target.columns;
    let row = cx.builder.build_and(target.lane, cx.u32_const(15), "")?;
    let side = cx.builder.build_right_shift(target.lane, cx.u32_const(4), false, "")?;
    let side = cx.builder.build_int_mul(side, cx.u32_const(16), "")?;
    for band in 0..alloca.ty.bands() {
        let row = target.row(cx, band * alloca.ty.team.rows(), row)?;
        for chunk in (0..columns / 8).step_by(2) {
            let count = if chunk + 1 < columns / 8 { 4 } else { 2 };
            // If only two matrices are left, the addresses are those of the first 16 lanes.
            let column_offset = if count == 4 { side } else { cx.u32_const(0) };
            let byte = cx.builder.build_int_add(column_offset, cx.u32_const(chunk * 16), "")?;
            let mut args = vec![target.address(cx, row, byte)?.into()];
            for register in 0..count {
                let i = target.element(cx, alloca, band, chunk * 4 + register * 2)?;
                args.push(pair(cx, alloca, i, target.ty.element)?);
            }
            nvvm::emit(cx, &nvvm::stmatrix(args.len() - 1), &args)?;
        }
    }
    Ok(())
}

/// Stores other elements, two adjacent ones at a time.
fn pairs<'c>(cx: &mut Cx<'c, '_>, alloca: &AccumulatorAlloca<'c>, target: &Target<'c, '_>) -> Lower<()> {
    let element_bytes = target.ty.element.bytes();
    let quad = cx.builder.build_right_shift(target.lane, cx.u32_const(2), false, "")?;
    let in_quad = cx.builder.build_and(target.lane, cx.u32_const(3), "")?;
    let column_offset = cx.builder.build_int_mul(in_quad, cx.u32_const(2 * element_bytes), "")?;
    for band in 0..alloca.ty.bands() {
        for half in 0..2 {
            let row = cx.builder.build_int_add(quad, cx.u32_const(8 * half), "")?;
            let row = target.row(cx, band * alloca.ty.team.rows(), row)?;
            for group in 0..target.columns / 8 {
                let byte =
                    cx.builder.build_int_add(column_offset, cx.u32_const(group * 8 * element_bytes), "")?;
                let address = target.address(cx, row, byte)?;
                let i = target.element(cx, alloca, band, group * 4 + half * 2)?;
                let value = if element_bytes == 1 {
                    pair(cx, alloca, i, target.ty.element)?
                } else {
                    neighbours(cx, alloca, i)?
                };
                cx.builder.build_store(address, value)?;
            }
        }
    }
    Ok(())
}

/// Emits two adjacent elements of a row, unconverted, as a vector.
fn neighbours<'c>(
    cx: &Cx<'c, '_>,
    alloca: &AccumulatorAlloca<'c>,
    i: IntValue<'c>,
) -> Lower<BasicValueEnum<'c>> {
    let next = cx.builder.build_int_add(i, cx.u32_const(1), "")?;
    let both = [element(cx, alloca, i)?, element(cx, alloca, next)?];
    let mut vector = match alloca.ty.element.is_float() {
        true => float_type(cx.scalar_type(alloca.ty.element))?.vec_type(2).get_poison(),
        false => cx.bits_type(alloca.ty.element).vec_type(2).get_poison(),
    };
    for (i, value) in (0..).zip(both) {
        vector = cx.builder.build_insert_element(vector, value, cx.u32_const(i), "")?;
    }
    Ok(vector.into())
}

/// Checks that the whole of `matrix` lies in its slice. The sums do not exceed 64 bits: all rows
/// but one, of at most 2^32 - 1 elements each, plus one more row.
pub(in crate::lower) fn check_matrix(cx: &mut Cx<'_, '_>, matrix: &GlobalMatrix, span: Span) -> Lower<()> {
    let (_, len, _) = memory::slice(cx, matrix.global)?;
    let [first, stride] = [expr::widened(cx, &matrix.first)?, expr::widened(cx, &matrix.stride)?];
    let [rows, columns] = &matrix.extents;
    let [rows, columns] = [expr::widened(cx, rows)?, expr::widened(cx, columns)?];
    let (zero, one) = (len.get_type().const_zero(), len.get_type().const_int(1, false));
    let no_rows = cx.builder.build_int_compare(IntPredicate::EQ, rows, zero, "")?;
    let no_columns = cx.builder.build_int_compare(IntPredicate::EQ, columns, zero, "")?;
    let is_empty = cx.builder.build_or(no_rows, no_columns, "")?;
    let before_last = cx.builder.build_int_sub(rows, one, "")?;
    let all = cx.builder.build_int_mul(before_last, stride, "")?;
    let all = cx.builder.build_int_add(all, columns, "")?;
    let remaining = cx.builder.build_int_sub(len, first, "")?;
    let begins = cx.builder.build_int_compare(IntPredicate::ULE, first, len, "")?;
    let ends = cx.builder.build_int_compare(IntPredicate::ULE, all, remaining, "")?;
    let is_there = cx.builder.build_and(begins, ends, "")?;
    let inside = cx.builder.build_or(is_empty, is_there, "")?;
    let name = &cx.kernel.kernel().param(matrix.global).name;
    print::assert(cx, inside, &format!("matrix out of bounds of `{name}`"), span)
}

/// Lowers `matrix[at..] = accumulator[.., first..]`. Of every eight columns of a row, a thread
/// holds two adjacent ones. They are stored as one vector if they are aligned and both within the
/// matrix.
pub(in crate::lower) fn store_matrix(cx: &mut Cx<'_, '_>, store: &MatrixStore, span: Span) -> Lower<()> {
    let alloca = accumulator(cx, store.accumulator)?;
    let first = expr::int_value(cx, &store.first)?;
    let first = cx.builder.build_right_shift(first, cx.u32_const(1), false, "")?;
    let to = Rows::of(cx, alloca.ty.team, &store.matrix, &store.at, span)?;
    let groups = store.columns / 8;
    for band in 0..alloca.ty.bands() {
        for half in 0..2 {
            let values: Lower<Vec<_>> = (0..groups)
                .map(|group| {
                    let i = band * alloca.ty.elements_of_band() + group * 4 + half * 2;
                    let i = cx.builder.build_int_add(first, cx.u32_const(i), "")?;
                    neighbours_as(cx, &alloca, i, to.element)
                })
                .collect();
            to.store_row(cx, band * alloca.ty.team.rows() + half * 8, &values?)?;
        }
    }
    Ok(())
}

/// The destination rows of a thread in global memory.
struct Rows<'c> {
    element: Scalar,
    /// The address of the thread's first element.
    address: PointerValue<'c>,
    /// The distance between rows in elements, in 64 bits.
    stride: IntValue<'c>,
    /// The numbers of rows and columns of the matrix, from the thread's first element on.
    left: [IntValue<'c>; 2],
    /// Whether pairs of adjacent elements are aligned for vectors, in every row.
    is_aligned: IntValue<'c>,
}

impl<'c> Rows<'c> {
    fn of(cx: &mut Cx<'c, '_>, team: Team, matrix: &GlobalMatrix, at: &[Expr; 2], span: Span) -> Lower<Self> {
        let (base, _, element) = memory::slice(cx, matrix.global)?;
        let first = expr::widened(cx, &matrix.first)?;
        let stride = expr::widened(cx, &matrix.stride)?;
        let (row, column) = (expr::int_value(cx, &at[0])?, expr::int_value(cx, &at[1])?);
        // The first element of the whole accumulator.
        let wide = cx.context.i64_type();
        let above = cx.builder.build_int_z_extend(row, wide, "")?;
        let above = cx.builder.build_int_mul(above, stride, "")?;
        let column_offset = cx.builder.build_int_z_extend(column, wide, "")?;
        let start = cx.builder.build_int_add(first, above, "")?;
        let start = cx.builder.build_int_add(start, column_offset, "")?;
        let start = memory::element_address(cx, base, element, start)?;
        let is_aligned = is_aligned(cx, start, stride, element.bytes())?;

        // The thread's own first element: two columns of a row in each 8 × 8.
        let (lane, first_row) = (lane(cx, span)?, FirstRow::of_team(cx, team, span)?);
        let quad = cx.builder.build_right_shift(lane, cx.u32_const(2), false, "")?;
        let own_row = first_row.and(cx, quad)?;
        let in_quad = cx.builder.build_and(lane, cx.u32_const(3), "")?;
        let own_column = cx.builder.build_int_mul(in_quad, cx.u32_const(2), "")?;
        let mut left = [row, column];
        for (i, (own, extent)) in [own_row, own_column].into_iter().zip(&matrix.extents).enumerate() {
            let extent = expr::int_value(cx, extent)?;
            let remaining = less(cx, extent, left[i])?;
            left[i] = less(cx, remaining, own)?;
        }
        let above = cx.builder.build_int_z_extend(own_row, wide, "")?;
        let above = cx.builder.build_int_mul(above, stride, "")?;
        let column_offset = cx.builder.build_int_z_extend(own_column, wide, "")?;
        let own = cx.builder.build_int_add(above, column_offset, "")?;
        let address = memory::element_address(cx, start, element, own)?;
        Ok(Self { element, address, stride, left, is_aligned })
    }

    /// Stores the part within the matrix of a thread's pairs, which are 8 columns apart.
    fn store_row(&self, cx: &mut Cx<'c, '_>, row: u32, pairs: &[BasicValueEnum<'c>]) -> Lower<()> {
        let [rows, columns] = self.left;
        let inside = more(cx, rows, row)?;
        let wide = cx.context.i64_type();
        let offset = cx.builder.build_int_mul(self.stride, wide.const_int(row.into(), false), "")?;
        let start = memory::element_address(cx, self.address, self.element, offset)?;
        let pairs: Lower<Vec<_>> = (0..)
            .step_by(8)
            .zip(pairs)
            .map(|(column, &pair)| {
                let offset = wide.const_int(u64::from(column), false);
                let address = memory::element_address(cx, start, self.element, offset)?;
                Ok(StoredPair { column, address, pair })
            })
            .collect();
        let pairs = pairs?;
        let last = pairs.last().map_or(0, |last| last.column + 1);
        let whole = more(cx, columns, last)?;
        let whole = cx.builder.build_and(whole, self.is_aligned, "")?;
        when(cx, inside, |cx| {
            // Most tiles are not at an edge, and need no further tests.
            either(
                cx,
                whole,
                |cx| pairs.iter().try_for_each(|pair| self.store_both(cx, pair)),
                |cx| pairs.iter().try_for_each(|pair| self.store_some(cx, pair)),
            )
        })
    }

    /// Stores the part of a pair that is within the matrix.
    fn store_some(&self, cx: &mut Cx<'c, '_>, stored: &StoredPair<'c>) -> Lower<()> {
        let StoredPair { column, address, pair } = *stored;
        let [_, columns] = self.left;
        let (one, both) = (more(cx, columns, column)?, more(cx, columns, column + 1)?);
        let together = cx.builder.build_and(both, self.is_aligned, "")?;
        either(
            cx,
            together,
            |cx| self.store_both(cx, stored),
            |cx| {
                let [left, right] = parts_of(cx, pair)?;
                when(cx, one, |cx| self.store_one(cx, address, left))?;
                let next = cx.context.i64_type().const_int(1, false);
                let next = memory::element_address(cx, address, self.element, next)?;
                when(cx, both, |cx| self.store_one(cx, next, right))
            },
        )
    }

    fn store_both(&self, cx: &mut Cx<'c, '_>, stored: &StoredPair<'c>) -> Lower<()> {
        let store = cx.builder.build_store(stored.address, stored.pair)?;
        locals::align(store, 2 * self.element.bytes())
    }

    fn store_one(&self, cx: &mut Cx<'c, '_>, at: PointerValue<'c>, value: BasicValueEnum<'c>) -> Lower<()> {
        let store = cx.builder.build_store(at, value)?;
        locals::align(store, self.element.bytes())
    }
}

/// Two adjacent elements of a row, to be stored.
struct StoredPair<'c> {
    /// The first one's column, relative to the thread's first.
    column: u32,
    address: PointerValue<'c>,
    pair: BasicValueEnum<'c>,
}

/// Emits whether pairs of elements of `bytes` each are aligned, from `start` on and in every row.
fn is_aligned<'c>(
    cx: &Cx<'c, '_>,
    start: PointerValue<'c>,
    stride: IntValue<'c>,
    bytes: u32,
) -> Lower<IntValue<'c>> {
    let wide = cx.context.i64_type();
    let start = cx.builder.build_ptr_to_int(start, wide, "")?;
    let between = cx.builder.build_int_mul(stride, wide.const_int(bytes.into(), false), "")?;
    let bits = cx.builder.build_or(start, between, "")?;
    let rest = cx.builder.build_and(bits, wide.const_int(u64::from(2 * bytes) - 1, false), "")?;
    Ok(cx.builder.build_int_compare(IntPredicate::EQ, rest, wide.const_zero(), "")?)
}

/// Emits `a - b`, or 0 if that is negative.
fn less<'c>(cx: &Cx<'c, '_>, a: IntValue<'c>, b: IntValue<'c>) -> Lower<IntValue<'c>> {
    cx.intrinsic_value("llvm.usub.sat", &[a.get_type().into()], &[a.into(), b.into()]).and_then(int)
}

/// Emits whether there are more than this number.
fn more<'c>(cx: &Cx<'c, '_>, there: IntValue<'c>, than: u32) -> Lower<IntValue<'c>> {
    Ok(cx.builder.build_int_compare(IntPredicate::UGT, there, cx.u32_const(than), "")?)
}

/// Emits `then` for the case that `condition` holds, and `otherwise` for the case that it does not.
fn either<'c, 'k>(
    cx: &mut Cx<'c, 'k>,
    condition: IntValue<'c>,
    then: impl FnOnce(&mut Cx<'c, 'k>) -> Lower<()>,
    otherwise: impl FnOnce(&mut Cx<'c, 'k>) -> Lower<()>,
) -> Lower<()> {
    let (taken, other, after) = (cx.new_block("then"), cx.new_block("otherwise"), cx.new_block("after"));
    cx.builder.build_conditional_branch(condition, taken, other)?;
    cx.builder.position_at_end(taken);
    then(cx)?;
    cx.branch_to(after)?;
    cx.builder.position_at_end(other);
    otherwise(cx)?;
    cx.branch_to(after)?;
    cx.builder.position_at_end(after);
    Ok(())
}

/// Emits `then` for the case that `condition` holds.
fn when<'c, 'k>(
    cx: &mut Cx<'c, 'k>,
    condition: IntValue<'c>,
    then: impl FnOnce(&mut Cx<'c, 'k>) -> Lower<()>,
) -> Lower<()> {
    either(cx, condition, then, |_| Ok(()))
}

/// Emits two adjacent elements of a row as elements of `to`, in the form they have together in
/// memory.
fn neighbours_as<'c>(
    cx: &mut Cx<'c, '_>,
    alloca: &AccumulatorAlloca<'c>,
    i: IntValue<'c>,
    to: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    if to.bytes() >= 4 { neighbours(cx, alloca, i) } else { pair(cx, alloca, i, to) }
}

/// Emits the two elements of the result of [`neighbours_as`].
fn parts_of<'c>(cx: &Cx<'c, '_>, pair: BasicValueEnum<'c>) -> Lower<[BasicValueEnum<'c>; 2]> {
    if let BasicValueEnum::VectorValue(vector) = pair {
        let element = |i| cx.builder.build_extract_element(vector, cx.u32_const(i), "");
        return Ok([element(0)?, element(1)?]);
    }
    let both = int(pair)?;
    let bits = both.get_type().get_bit_width() / 2;
    let one = if bits == 8 { cx.context.i8_type() } else { cx.context.i16_type() };
    let shift = both.get_type().const_int(bits.into(), false);
    let high = cx.builder.build_right_shift(both, shift, false, "")?;
    let low = cx.builder.build_int_truncate(both, one, "")?;
    Ok([low.into(), cx.builder.build_int_truncate(high, one, "")?.into()])
}
