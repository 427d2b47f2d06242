//! Multiplications by the tensor cores, and what becomes of accumulators.
//!
//! An accumulator is an array of what a thread holds of it, band after band of 64 rows. Of `f32`
//! and `i32` each element is a register; of `f16` two are.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_model::mma::Operand as Element;
use tma_model::mma::{Form, OperandTile, ROWS};

use super::nvvm::{LeftPlace, Multiplication, Operand, Side, Step, Wait};
use super::types::{float_type, pointer};
use super::{Cx, Lower, expr, nvvm, place, tile, warp};
use crate::backend::BackendError;
use crate::check::mma::{accumulated, geometry};
use crate::ir::{
    AccumulatorType, Awaited, Expr, ExprKind, FragmentType, LeftOperand, LocalId, Mma, RowOp, Scalar,
    SharedOperand, Span, Special, StmtId, TileType, Type, WarpReduceOp,
};

/// What an accumulator is, and where it lives.
struct Home<'c> {
    ty: AccumulatorType,
    address: PointerValue<'c>,
}

/// `accumulator += left · rightᵀ`.
pub(super) fn multiply(cx: &mut Cx<'_, '_>, mma: &Mma, id: StmtId) -> Lower<()> {
    let home = accumulator(cx, mma.accumulator)?;
    let begins = cx.kernel.flights().is_first(id);
    let right = shared_side(cx, &mma.right)?;
    let bands = home.ty.rows / ROWS;
    let steps = right.tile.k() / right.tile.step();
    let left = left_side(cx, &mma.left)?;
    let place_of = |step: u32, band: u32| {
        let left = left.matrix.place(step, band);
        let left =
            left.ok_or_else(|| BackendError::Unchecked("a band of a tile that has none".to_owned()))?;
        Ok(Step { left, right: right.tile.advance_k(step) / 16 })
    };
    let steps = (0..steps).map(|step| (0..bands).map(|band| place_of(step, band)).collect());
    let (form, register) = form(cx, &home, mma, right.tile.element)?;
    let multiplication = Multiplication {
        form,
        registers: form.accumulator_registers() as usize,
        register,
        begins,
        steps: steps.collect::<Lower<Vec<Vec<Step>>>>()?,
        left: left.side,
        right: right.side,
    };
    let in_registers = if let LeftMatrix::Registers(_) = left.matrix { left.args.len() } else { 0 };
    let instruction = nvvm::multiply(&multiplication, in_registers);
    let before = if begins { vec![] } else { registers(cx, &home)? };
    let args: Vec<_> = left.args.into_iter().chain([right.descriptor]).collect();
    let after = nvvm::emit_in_place(cx, &instruction, &before, &args)?;
    set_registers(cx, &home, &after)
}

/// The left operand: its descriptor, or its registers.
struct LeftSide<'c> {
    matrix: LeftMatrix,
    side: Side,
    args: Vec<BasicValueEnum<'c>>,
}

/// Where the parts of a left operand are.
enum LeftMatrix {
    Shared(OperandTile),
    Registers(FragmentType),
}

impl LeftMatrix {
    /// The part for a step along K and a band of 64 rows; none if the tile has no such band.
    fn place(&self, step: u32, band: u32) -> Option<LeftPlace> {
        match self {
            Self::Shared(tile) => {
                Some(LeftPlace::Shared((tile.advance_k(step) + tile.advance_band(band)?) / 16))
            }
            Self::Registers(ty) => {
                let first = (band * ty.steps() + step) * Form::LEFT_REGISTERS;
                Some(LeftPlace::Registers(first as usize))
            }
        }
    }
}

fn left_side<'c>(cx: &mut Cx<'c, '_>, left: &LeftOperand) -> Lower<LeftSide<'c>> {
    match left {
        LeftOperand::Shared(operand) => {
            let SharedSide { tile, side, descriptor } = shared_side(cx, operand)?;
            Ok(LeftSide { matrix: LeftMatrix::Shared(tile), side, args: vec![descriptor] })
        }
        LeftOperand::Registers(local) => {
            let (args, ty) = fragment(cx, *local)?;
            Ok(LeftSide {
                matrix: LeftMatrix::Registers(ty),
                side: Side { negated: false, major: None },
                args,
            })
        }
    }
}

/// Waits until multiplications of `accumulator` are complete.
pub(super) fn wait(
    cx: &mut Cx<'_, '_>,
    accumulator_local: LocalId,
    awaited: Awaited,
    id: StmtId,
) -> Lower<()> {
    let home = accumulator(cx, accumulator_local)?;
    let flights = cx.kernel.flights();
    let pending = flights.pending(id);
    // Operands in registers must not be written before this either.
    let mut operands = vec![];
    for &local in flights.fragments(accumulator_local) {
        operands.extend(fragment(cx, local)?.0);
    }
    let before = registers(cx, &home)?;
    let wait = Wait {
        register: register_of(home.ty.element),
        registers: before.len(),
        operands: operands.len(),
        pending,
        is_passed: cx.halves_apart && home.ty.element == Scalar::F16 && awaited == Awaited::All,
    };
    let instruction = nvvm::wgmma_wait(&wait);
    let after = nvvm::emit_in_place(cx, &instruction, &before, &operands)?;
    set_registers(cx, &home, &after)
}

/// An operand in shared memory.
struct SharedSide<'c> {
    tile: OperandTile,
    side: Side,
    descriptor: BasicValueEnum<'c>,
}

fn shared_side<'c>(cx: &mut Cx<'c, '_>, operand: &SharedOperand) -> Lower<SharedSide<'c>> {
    let unchecked = || BackendError::Unchecked(format!("`{}` as an operand", operand.ty));
    let element = Element::of(operand.ty.tile.element).ok_or_else(unchecked)?;
    let tile = geometry(&operand.ty, element).ok_or_else(unchecked)?;
    let address = expr::value(cx, &operand.tile).and_then(pointer)?;
    let address = cx.builder.build_ptr_to_int(address, cx.context.i32_type(), "")?;
    // Shared memory ends before 2^18, so that the bits above are none.
    let start = cx.builder.build_right_shift(address, cx.u32_const(4), false, "")?;
    let start = cx.builder.build_int_z_extend(start, cx.context.i64_type(), "")?;
    let fields = cx.context.i64_type().const_int(tile.descriptor(0).encode(), false);
    let descriptor = cx.builder.build_or(start, fields, "")?.into();
    let major = element.is_transposable().then_some(tile.major);
    Ok(SharedSide { tile, side: Side { negated: operand.ty.negated, major }, descriptor })
}

/// The instruction, and what `D` is in a register.
fn form(cx: &Cx<'_, '_>, home: &Home<'_>, mma: &Mma, right: Element) -> Lower<(Form, Operand)> {
    let left = match &mma.left {
        LeftOperand::Shared(operand) => operand.ty.tile.element,
        LeftOperand::Registers(local) => fragment_type(cx, *local)?.element,
    };
    let unchecked = || BackendError::Unchecked(format!("an operand of `{left}`"));
    let a = Element::of(left).ok_or_else(unchecked)?;
    let d = accumulated(home.ty.element)
        .ok_or_else(|| BackendError::Unchecked(format!("an accumulator of `{}`", home.ty.element)))?;
    Ok((Form { d, a, b: right, n: home.ty.columns, sparse: false }, register_of(home.ty.element)))
}

/// What an accumulator of these elements is in a register.
fn register_of(element: Scalar) -> Operand {
    if element == Scalar::F32 { Operand::F32 } else { Operand::B32 }
}

fn accumulator<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<Home<'c>> {
    let Type::Accumulator(ty) = cx.kernel.kernel().local(local).ty else {
        return Err(BackendError::Unchecked(format!("local {}, which is no accumulator", local.0)));
    };
    Ok(Home { ty, address: place::home(cx, local)? })
}

fn fragment_type(cx: &Cx<'_, '_>, local: LocalId) -> Lower<FragmentType> {
    let Type::Fragment(ty) = cx.kernel.kernel().local(local).ty else {
        return Err(BackendError::Unchecked(format!("local {}, which is no fragment", local.0)));
    };
    Ok(ty)
}

/// The registers of a left operand, and what it is.
fn fragment<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<(Vec<BasicValueEnum<'c>>, FragmentType)> {
    let ty = fragment_type(cx, local)?;
    let (address, register) = (place::home(cx, local)?, cx.context.i32_type());
    let load = |i| {
        let at = place::at(cx, register.into(), address, cx.u32_const(i))?;
        Ok(cx.builder.build_load(register, at, "")?)
    };
    Ok(((0..ty.registers()).map(load).collect::<Lower<_>>()?, ty))
}

/// How many registers an accumulator takes, and the type of one.
fn shape<'c>(cx: &Cx<'c, '_>, ty: AccumulatorType) -> (u32, BasicTypeEnum<'c>) {
    match ty.element == Scalar::F16 {
        true => (ty.elements() / 2, cx.context.i32_type().into()),
        false => (ty.elements(), cx.scalar_type(ty.element)),
    }
}

fn registers<'c>(cx: &Cx<'c, '_>, home: &Home<'c>) -> Lower<Vec<BasicValueEnum<'c>>> {
    let (count, register) = shape(cx, home.ty);
    let load = |i| {
        let at = place::at(cx, register, home.address, cx.u32_const(i))?;
        Ok(cx.builder.build_load(register, at, "")?)
    };
    (0..count).map(load).collect()
}

fn set_registers<'c>(cx: &Cx<'c, '_>, home: &Home<'c>, values: &[BasicValueEnum<'c>]) -> Lower<()> {
    let (_, register) = shape(cx, home.ty);
    for (i, value) in (0..).zip(values) {
        let at = place::at(cx, register, home.address, cx.u32_const(i))?;
        cx.builder.build_store(at, *value)?;
    }
    Ok(())
}

/// Element `i` of what a thread holds.
fn element<'c>(cx: &Cx<'c, '_>, home: &Home<'c>, i: IntValue<'c>) -> Lower<BasicValueEnum<'c>> {
    let ty = cx.scalar_type(home.ty.element);
    let at = place::at(cx, ty, home.address, i)?;
    Ok(cx.builder.build_load(ty, at, "")?)
}

/// Two neighbours of a row, converted and packed.
fn pair<'c>(cx: &mut Cx<'c, '_>, home: &Home<'c>, i: IntValue<'c>, to: Scalar) -> Lower<BasicValueEnum<'c>> {
    if home.ty.element == Scalar::F16 {
        let register = cx.context.i32_type();
        let half = cx.builder.build_right_shift(i, cx.u32_const(1), false, "")?;
        let at = place::at(cx, register.into(), home.address, half)?;
        return Ok(cx.builder.build_load(register, at, "")?);
    }
    let next = cx.builder.build_int_add(i, cx.u32_const(1), "")?;
    let both = [element(cx, home, i)?, element(cx, home, next)?];
    nvvm::emit_value(cx, &nvvm::packed(to.name(), to.bytes() == 1), &both)
}

/// `dest` is `accumulator`, as a left operand: of each 16 columns a thread holds the same elements.
/// Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", A and D.
pub(super) fn pack(cx: &mut Cx<'_, '_>, dest: LocalId, from: LocalId) -> Lower<()> {
    let (home, to) = (accumulator(cx, from)?, fragment_type(cx, dest)?);
    let (address, register) = (place::home(cx, dest)?, cx.context.i32_type());
    for i in 0..to.registers() {
        let value = pair(cx, &home, cx.u32_const(2 * i), to.element)?;
        let at = place::at(cx, register.into(), address, cx.u32_const(i))?;
        cx.builder.build_store(at, value)?;
    }
    Ok(())
}

/// `dest` has `op` of each row: of a thread's own elements, then of those of the four that share
/// it.
pub(super) fn reduce_rows(cx: &mut Cx<'_, '_>, dest: LocalId, op: RowOp, from: LocalId) -> Lower<()> {
    let home = accumulator(cx, from)?;
    let address = place::home(cx, dest)?;
    let (scalar, ty) = (home.ty.element, cx.scalar_type(home.ty.element));
    let op = match op {
        RowOp::Max => WarpReduceOp::Max,
        RowOp::Sum => WarpReduceOp::Add,
    };
    for row in 0..home.ty.rows / 32 {
        let (band, half) = (row / 2, row % 2);
        let of_row = (0..home.ty.elements_of_band()).filter(|i| i / 2 % 2 == half);
        let mut all = of_row.map(|i| band * home.ty.elements_of_band() + i);
        let first = all.next().ok_or_else(|| BackendError::Unchecked("a row without elements".to_owned()))?;
        let mut value = element(cx, &home, cx.u32_const(first))?;
        for i in all {
            let next = element(cx, &home, cx.u32_const(i))?;
            value = warp::combined(cx, op, (value, next), scalar)?;
        }
        for mask in [1, 2] {
            value = warp::with_lane(cx, op, value, scalar, mask)?;
        }
        let at = place::at(cx, ty, address, cx.u32_const(row))?;
        cx.builder.build_store(at, value)?;
    }
    Ok(())
}

/// `tile = accumulator[.., first..]`.
pub(super) fn store(cx: &mut Cx<'_, '_>, from: LocalId, first: &Expr, to: &Expr) -> Lower<()> {
    let home = accumulator(cx, from)?;
    let Type::Tile(ty) = &to.ty else {
        return Err(BackendError::Unchecked(format!("an accumulator stored to `{}`", to.ty)));
    };
    let base = expr::value(cx, to).and_then(pointer)?;
    let first = expr::int_value(cx, first)?;
    // A thread holds two of each four columns of its two rows.
    let first = cx.builder.build_right_shift(first, cx.u32_const(1), false, "")?;
    let target = Target { base, ty, first, lane: lane(cx, to.span)?, warp: warp_in_group(cx, to.span)? };
    match ty.element.bytes() {
        2 => matrices(cx, &home, &target),
        _ => pairs(cx, &home, &target),
    }
}

/// Where an accumulator is stored.
struct Target<'c, 't> {
    base: PointerValue<'c>,
    ty: &'t TileType,
    /// The first element of a thread in each band.
    first: IntValue<'c>,
    lane: IntValue<'c>,
    /// The warp's number in its warpgroup.
    warp: IntValue<'c>,
}

fn lane<'c>(cx: &mut Cx<'c, '_>, span: Span) -> Lower<IntValue<'c>> {
    special(cx, Special::LaneIdx, span)
}

fn warp_in_group<'c>(cx: &mut Cx<'c, '_>, span: Span) -> Lower<IntValue<'c>> {
    let warp = special(cx, Special::WarpIdx, span)?;
    Ok(cx.builder.build_and(warp, cx.u32_const(3), "")?)
}

fn special<'c>(cx: &mut Cx<'c, '_>, special: Special, span: Span) -> Lower<IntValue<'c>> {
    let kind = ExprKind::Special(special);
    expr::int_value(cx, &Expr { kind, ty: Scalar::U32.into(), span })
}

impl<'c> Target<'c, '_> {
    /// The offset of a row's first byte: the row of the tile is `64 · band + 16 · warp + row`.
    fn row(&self, cx: &Cx<'c, '_>, band: u32, row: IntValue<'c>) -> Lower<IntValue<'c>> {
        let of_warp = cx.builder.build_int_mul(self.warp, cx.u32_const(16), "")?;
        let row = cx.builder.build_int_add(of_warp, row, "")?;
        let row = cx.builder.build_int_add(row, cx.u32_const(band * ROWS), "")?;
        let pitch = u32::try_from(self.ty.row_pitch()).unwrap_or(u32::MAX);
        Ok(cx.builder.build_int_mul(row, cx.u32_const(pitch), "")?)
    }

    fn address(&self, cx: &Cx<'c, '_>, row: IntValue<'c>, byte: IntValue<'c>) -> Lower<PointerValue<'c>> {
        let offset = tile::in_panels(cx, self.ty, row, byte)?;
        tile::byte_offset(cx, self.base, offset)
    }

    /// A thread's element `i` of a band, counted from the first that is stored.
    fn element(&self, cx: &Cx<'c, '_>, home: &Home<'c>, band: u32, i: u32) -> Lower<IntValue<'c>> {
        let at = cx.u32_const(band * home.ty.elements_of_band() + i);
        Ok(cx.builder.build_int_add(self.first, at, "")?)
    }
}

/// Elements of 16 bits, as matrices of 8 × 8: four of them are 16 rows and 16 columns, and the
/// lanes name the rows of the left two and then of the right two. Source: PTX ISA, "stmatrix".
fn matrices<'c>(cx: &mut Cx<'c, '_>, home: &Home<'c>, target: &Target<'c, '_>) -> Lower<()> {
    let columns = target.ty.inner_extent();
    let row = cx.builder.build_and(target.lane, cx.u32_const(15), "")?;
    let side = cx.builder.build_right_shift(target.lane, cx.u32_const(4), false, "")?;
    let side = cx.builder.build_int_mul(side, cx.u32_const(16), "")?;
    for band in 0..home.ty.rows / ROWS {
        let row = target.row(cx, band, row)?;
        for chunk in (0..columns / 8).step_by(2) {
            let count = if chunk + 1 < columns / 8 { 4 } else { 2 };
            // The last two matrices alone take the addresses of the first 16 lanes.
            let beside = if count == 4 { side } else { cx.u32_const(0) };
            let byte = cx.builder.build_int_add(beside, cx.u32_const(chunk * 16), "")?;
            let mut args = vec![target.address(cx, row, byte)?.into()];
            for register in 0..count {
                let i = target.element(cx, home, band, chunk * 4 + register * 2)?;
                args.push(pair(cx, home, i, target.ty.element)?);
            }
            nvvm::emit(cx, &nvvm::stmatrix(args.len() - 1), &args)?;
        }
    }
    Ok(())
}

/// Other elements, two neighbours at a time.
fn pairs<'c>(cx: &mut Cx<'c, '_>, home: &Home<'c>, target: &Target<'c, '_>) -> Lower<()> {
    let element_bytes = target.ty.element.bytes();
    let quad = cx.builder.build_right_shift(target.lane, cx.u32_const(2), false, "")?;
    let in_quad = cx.builder.build_and(target.lane, cx.u32_const(3), "")?;
    let beside = cx.builder.build_int_mul(in_quad, cx.u32_const(2 * element_bytes), "")?;
    for band in 0..home.ty.rows / ROWS {
        for half in 0..2 {
            let row = cx.builder.build_int_add(quad, cx.u32_const(8 * half), "")?;
            let row = target.row(cx, band, row)?;
            for group in 0..target.ty.inner_extent() / 8 {
                let byte = cx.builder.build_int_add(beside, cx.u32_const(group * 8 * element_bytes), "")?;
                let address = target.address(cx, row, byte)?;
                let i = target.element(cx, home, band, group * 4 + half * 2)?;
                let value = if element_bytes == 1 {
                    pair(cx, home, i, target.ty.element)?
                } else {
                    neighbours(cx, home, i)?
                };
                cx.builder.build_store(address, value)?;
            }
        }
    }
    Ok(())
}

/// Two neighbours of a row as they are, in a vector.
fn neighbours<'c>(cx: &Cx<'c, '_>, home: &Home<'c>, i: IntValue<'c>) -> Lower<BasicValueEnum<'c>> {
    let next = cx.builder.build_int_add(i, cx.u32_const(1), "")?;
    let both = [element(cx, home, i)?, element(cx, home, next)?];
    let mut vector = match home.ty.element.is_float() {
        true => float_type(cx.scalar_type(home.ty.element))?.vec_type(2).get_poison(),
        false => cx.bits_type(home.ty.element).vec_type(2).get_poison(),
    };
    for (i, value) in (0..).zip(both) {
        vector = cx.builder.build_insert_element(vector, value, cx.u32_const(i), "")?;
    }
    Ok(vector.into())
}

/// Gives the warpgroup's threads this many registers.
pub(super) fn set_max_registers(cx: &mut Cx<'_, '_>, increase: bool, registers: u32) -> Lower<()> {
    nvvm::emit(cx, &nvvm::set_max_registers(increase, registers), &[])?;
    Ok(())
}
