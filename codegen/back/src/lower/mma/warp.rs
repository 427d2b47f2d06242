//! Multiplications by a warp, with operands in registers. The left operands of warpgroups are
//! loaded in the same way.
//!
//! An operand is an array of registers. Each register holds, across all lanes, 8 rows of 16 bytes:
//! a matrix in the terms of `ldmatrix`. The registers of one instruction are adjacent.

use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::ir::{
    Expr, FragmentLoad, LoadedType, LocalId, MmaSync, OperandType, Scalar, Type, WarpFragmentType, WarpMmaOp,
    WarpStore,
};
use tma_model::mma::{Accumulator, DoubleForm, Operand, WARP_ROWS, WarpForm};

use super::store::{Target, store_at};
use super::{AccumulatorAlloca, FirstRow, accumulator, lane, shape, widen};
use crate::backend::BackendError;
use crate::lower::nvvm::{self, WarpProduct};
use crate::lower::types::pointer;
use crate::lower::{Cx, Lower, bounds, expr, locals, memory, narrow, tile};

/// Lowers `dest = tile[at..]` as an operand.
pub(in crate::lower) fn load(cx: &mut Cx<'_, '_>, load: &FragmentLoad) -> Lower<()> {
    let ty = LoadedType::of(&cx.kernel.kernel().local(load.dest).ty);
    let ty = ty.ok_or_else(|| {
        BackendError::Unchecked(format!("local {}, which is not loaded as an operand", load.dest.0))
    })?;
    let from = Source::of(cx, load, ty)?;
    let address = locals::alloca_of(cx, load.dest)?;
    let of_warp = ty.of_warp();
    let register = cx.operand_register(of_warp.element);
    let in_tile = ty.widened_from().filter(|in_tile| in_tile.element == load.from.ty.tile.element);
    if load.widens
        && let Some(in_tile) = in_tile
    {
        return widen::load(cx, &from, ty, in_tile, address);
    }
    let mut next = 0;
    while next < of_warp.registers() {
        let values = if of_warp.element == Scalar::F64 {
            vec![from.element(cx, ty.origin(next))?]
        } else {
            let left = of_warp.registers() - next;
            let origins: Vec<_> = (next..next + left.min(4)).map(|i| ty.origin(i)).collect();
            from.matrices(cx, loaded_together(&origins))?
        };
        for (i, value) in (next..).zip(&values) {
            let at = locals::at(cx, register, address, cx.u32_const(i))?;
            cx.builder.build_store(at, *value)?;
        }
        next += narrow(values.len() as u64)?.max(1);
    }
    Ok(())
}

/// Returns the first origins, of at most four, that one instruction loads: four if they are the
/// corners of a rectangle, otherwise two or one.
pub(super) fn loaded_together(origins: &[[u32; 2]]) -> &[[u32; 2]] {
    let count = match origins {
        [a, b, c, d] if (0..2).all(|i| a[i] + d[i] == b[i] + c[i]) => 4,
        [_, _, ..] => 2,
        _ => 1,
    };
    origins.get(..count).unwrap_or(origins)
}

/// The source of an operand.
pub(super) struct Source<'c, 'l> {
    base: PointerValue<'c>,
    ty: &'l OperandType,
    /// Row and column of the start of this warp's part, in the operand's matrix.
    at: [IntValue<'c>; 2],
    lane: IntValue<'c>,
}

impl<'c, 'l> Source<'c, 'l> {
    fn of(cx: &mut Cx<'c, '_>, load: &'l FragmentLoad, ty: LoadedType) -> Lower<Self> {
        let tile = &load.from.tile;
        let base = expr::value(cx, tile).and_then(pointer)?;
        let at = [expr::int_value(cx, &load.at[0])?, expr::int_value(cx, &load.at[1])?];
        let from = &load.from.ty;
        let (inner, columns) = (usize::from(!from.transposed), from.tile.inner_extent());
        let rows = from.band.unwrap_or_else(|| rows_of(from));
        let whole = if from.transposed { [columns, rows] } else { [rows, columns] };
        let part = Part { tile, at: &load.at, extents: ty.extents(), whole, inner };
        part.check(cx, &at, from.tile.element)?;
        let first = FirstRow::of_team(cx, ty.team(), tile.span)?;
        let at = [first.and(cx, at[0])?, at[1]];
        Ok(Self { base, ty: from, at, lane: lane(cx, tile.span)? })
    }

    /// Whether rows of the operand's matrix are columns of the tile.
    pub(super) const fn is_transposed(&self) -> bool {
        self.ty.transposed
    }

    /// Emits the address of a byte of the tile, from the row and the byte within the row.
    fn address(&self, cx: &Cx<'c, '_>, row: IntValue<'c>, byte: IntValue<'c>) -> Lower<PointerValue<'c>> {
        let row = cx.builder.build_int_mul(row, cx.bytes_const(self.ty.tile.row_pitch())?, "")?;
        let offset = tile::in_panels(cx, &self.ty.tile, row, byte)?;
        tile::byte_offset(cx, self.base, offset)
    }

    /// Converts row and column in the operand's matrix to row and column in the tile.
    const fn in_tile<T: Copy>(&self, at: [T; 2]) -> [T; 2] {
        let [row, column] = at;
        if self.ty.transposed { [column, row] } else { [row, column] }
    }

    /// Loads one, two or four matrices: lane `8 · i + r` holds the address of row `r` of matrix i.
    /// Source: PTX ISA, "ldmatrix".
    pub(super) fn matrices(
        &self,
        cx: &mut Cx<'c, '_>,
        origins: &[[u32; 2]],
    ) -> Lower<Vec<BasicValueEnum<'c>>> {
        let [row, column] = self.in_tile(self.at);
        let in_matrix = cx.builder.build_and(self.lane, cx.u32_const(7), "")?;
        let mut at = [cx.builder.build_int_add(row, in_matrix, "")?, column];
        let first = self.in_tile(origins.first().copied().unwrap_or_default());
        // The second matrix is next to the first, and the third and fourth are next to these two.
        for (bit, other) in [(3, 1), (4, 2)] {
            let Some(&other) = origins.get(other) else { continue };
            let number = cx.builder.build_right_shift(self.lane, cx.u32_const(bit), false, "")?;
            let number = cx.builder.build_and(number, cx.u32_const(1), "")?;
            for ((at, from), to) in at.iter_mut().zip(first).zip(self.in_tile(other)) {
                if to != from {
                    let step = cx.u32_const(to.wrapping_sub(from));
                    let step = cx.builder.build_int_mul(number, step, "")?;
                    *at = cx.builder.build_int_add(*at, step, "")?;
                }
            }
        }
        let row = cx.builder.build_int_add(at[0], cx.u32_const(first[0]), "")?;
        let column = cx.builder.build_int_add(at[1], cx.u32_const(first[1]), "")?;
        let byte = cx.builder.build_int_mul(column, cx.u32_const(self.ty.tile.element.bytes()), "")?;
        let address = self.address(cx, row, byte)?;
        let instruction = nvvm::ldmatrix(origins.len(), self.ty.transposed);
        nvvm::emit_in_place(cx, &instruction, &[], &[address.into()])
    }

    /// Loads a lane's element of 8 rows and 4 columns. Source: PTX ISA, "Matrix Fragments for
    /// mma.m16n8k4".
    fn element(&self, cx: &mut Cx<'c, '_>, origin: [u32; 2]) -> Lower<BasicValueEnum<'c>> {
        let [row, column] = origin;
        let element = self.ty.tile.element;
        let own_row = cx.builder.build_right_shift(self.lane, cx.u32_const(2), false, "")?;
        let own_column = cx.builder.build_and(self.lane, cx.u32_const(3), "")?;
        let row = cx.builder.build_int_add(own_row, cx.u32_const(row), "")?;
        let row = cx.builder.build_int_add(row, self.at[0], "")?;
        let column = cx.builder.build_int_add(own_column, cx.u32_const(column), "")?;
        let column = cx.builder.build_int_add(column, self.at[1], "")?;
        let [row, column] = self.in_tile([row, column]);
        let byte = cx.builder.build_int_mul(column, cx.u32_const(element.bytes()), "")?;
        let address = self.address(cx, row, byte)?;
        memory::load_any(cx, address, element, None)
    }
}

/// Returns the number of rows of an operand's tile. A batch of 1 adds none.
fn rows_of(ty: &OperandType) -> u32 {
    ty.tile.extents.iter().rev().nth(1).copied().unwrap_or(1)
}

/// A part of a tile. A checked kernel tests its start.
struct Part<'l> {
    tile: &'l Expr,
    at: &'l [Expr; 2],
    extents: [u32; 2],
    whole: [u32; 2],
    /// The index of the coordinate that runs along the rows of the tile.
    inner: usize,
}

impl Part<'_> {
    fn check<'c>(&self, cx: &mut Cx<'c, '_>, at: &[IntValue<'c>; 2], element: Scalar) -> Lower<()> {
        for (i, noun) in ["rows", "columns"].into_iter().enumerate() {
            let part = bounds::Part { tile: self.tile, count: self.extents[i], extent: self.whole[i], noun };
            bounds::part(cx, at[i], &part, self.at[i].span)?;
        }
        bounds::chunk(cx, at[self.inner], element, self.at[self.inner].span)
    }
}

/// Lowers `accumulator += left · rightᵀ`.
pub(in crate::lower) fn multiply(cx: &mut Cx<'_, '_>, mma: &MmaSync) -> Lower<()> {
    let alloca = accumulator(cx, mma.accumulator)?;
    let (left, right) = (operand(cx, mma.left)?, operand(cx, mma.right)?);
    let most = if left.ty.element == Scalar::F64 { 4 } else { 2 };
    let mut done = 0;
    while done < left.ty.units() {
        // Whole instructions come first, then a half or a quarter of one.
        let left_over = left.ty.units() - done;
        let units = if left_over >= most { most } else { 1 << left_over.ilog2() };
        let instruction = nvvm::mma_sync(product(&alloca, mma.op, [left.ty, right.ty], units)?, mma.op);
        for band in 0..left.ty.bands() {
            for group in 0..right.ty.bands() {
                let factors = [left.part(band, done, units), right.part(group, done, units)].concat();
                let part = AccumulatorPart { alloca: &alloca, band, group };
                add(cx, &part, &instruction, &factors)?;
            }
        }
        done += units;
    }
    Ok(())
}

/// The part of an accumulator that one instruction adds to.
struct AccumulatorPart<'a, 'c> {
    alloca: &'a AccumulatorAlloca<'c>,
    /// The band of 16 rows.
    band: u32,
    /// The group of 8 columns.
    group: u32,
}

/// Adds to a part of an accumulator.
fn add<'c>(
    cx: &mut Cx<'c, '_>,
    part: &AccumulatorPart<'_, 'c>,
    instruction: &nvvm::InPlace,
    factors: &[BasicValueEnum<'c>],
) -> Lower<()> {
    let AccumulatorPart { alloca, band, group } = *part;
    let (registers, register) = shape(cx, alloca.ty);
    let groups = alloca.ty.columns / 8;
    let each = registers / (alloca.ty.bands() * groups);
    let first = (band * groups + group) * each;
    let mut addresses = vec![];
    for i in first..first + each {
        addresses.push(locals::at(cx, register, alloca.address, cx.u32_const(i))?);
    }
    let mut before = vec![];
    for &at in &addresses {
        before.push(cx.builder.build_load(register, at, "")?);
    }
    let after = nvvm::emit_in_place(cx, instruction, &before, factors)?;
    for (at, value) in addresses.into_iter().zip(after) {
        cx.builder.build_store(at, value)?;
    }
    Ok(())
}

/// An operand, as the registers of a lane.
struct Registers<'c> {
    ty: WarpFragmentType,
    values: Vec<BasicValueEnum<'c>>,
}

impl<'c> Registers<'c> {
    /// Returns the registers of a band of rows and this number of units.
    fn part(&self, band: u32, unit: u32, units: u32) -> Vec<BasicValueEnum<'c>> {
        let halves = self.ty.side.halves();
        let first = (band * self.ty.units() + unit) * halves;
        self.values.iter().skip(first as usize).take((units * halves) as usize).copied().collect()
    }
}

fn operand<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<Registers<'c>> {
    let (ty, address) = (operand_type(cx, local)?, locals::alloca_of(cx, local)?);
    let register = cx.operand_register(ty.element);
    let load = |i| {
        let at = locals::at(cx, register, address, cx.u32_const(i))?;
        Ok(cx.builder.build_load(register, at, "")?)
    };
    let values: Lower<Vec<_>> = (0..ty.registers()).map(load).collect();
    Ok(Registers { ty, values: values? })
}

fn operand_type(cx: &Cx<'_, '_>, local: LocalId) -> Lower<WarpFragmentType> {
    let Type::WarpFragment(ty) = cx.kernel.kernel().local(local).ty else {
        return Err(BackendError::Unchecked(format!("local {}, which is no operand of a warp", local.0)));
    };
    Ok(ty)
}

/// Returns the shape of the instruction that takes this number of units.
fn product(
    alloca: &AccumulatorAlloca<'_>,
    op: WarpMmaOp,
    operands: [WarpFragmentType; 2],
    units: u32,
) -> Lower<WarpProduct> {
    let [left, right] = operands.map(|operand| operand.element);
    if left == Scalar::F64 {
        return Ok(WarpProduct::Double(DoubleForm { rows: WARP_ROWS, k: units * operands[0].unit() }));
    }
    let of = |element| op.operand(element);
    let (Some(a), Some(b), Some(d)) = (of(left), of(right), Accumulator::of(alloca.ty.element)) else {
        return Err(BackendError::Unchecked(format!("a product of `{left}` and `{right}`")));
    };
    Ok(WarpProduct::Of(WarpForm { d, a, b, k: units * Operand::per_chunk(a) }))
}

/// Lowers `tile[at..] = accumulator`, converted.
pub(in crate::lower) fn store(cx: &mut Cx<'_, '_>, store: &WarpStore) -> Lower<()> {
    let alloca = accumulator(cx, store.accumulator)?;
    let Type::Tile(ty) = &store.tile.ty else {
        return Err(BackendError::Unchecked(format!("an accumulator stored to `{}`", store.tile.ty)));
    };
    let base = expr::value(cx, &store.tile).and_then(pointer)?;
    let at = [expr::int_value(cx, &store.at[0])?, expr::int_value(cx, &store.at[1])?];
    let whole = [rows_of(&ty.clone().into()), ty.inner_extent()];
    let extents = [alloca.ty.rows, alloca.ty.columns];
    Part { tile: &store.tile, at: &store.at, extents, whole, inner: 1 }.check(cx, &at, ty.element)?;
    let byte = cx.builder.build_int_mul(at[1], cx.u32_const(ty.element.bytes()), "")?;
    let target = Target {
        base,
        ty,
        first: cx.u32_const(0),
        lane: lane(cx, store.tile.span)?,
        columns: alloca.ty.columns,
        row: FirstRow::Row(at[0]),
        byte: Some(byte),
    };
    store_at(cx, &alloca, &target)
}
