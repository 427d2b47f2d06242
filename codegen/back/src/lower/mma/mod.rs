//! Multiplications on the tensor cores, and operations on accumulators.
//!
//! An accumulator is an array of the elements that a thread holds, band after band: of 64 rows for
//! a warpgroup, of 16 for a warp. Two elements of `f16` share a register.

mod store;
pub(super) mod warp;
mod widen;

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::check::mma::{accumulated, geometry};
use tma_front::ir::{
    AccumulatorType, Awaited, Expr, ExprKind, FragmentType, LeftOperand, LocalId, Mma, MmaOp, RowOp, Scalar,
    SharedOperand, Span, Special, StmtId, Team, Type, WarpReduceOp,
};
use tma_model::mma::Operand as Element;
use tma_model::mma::{Form, OperandTile};

use super::arith::cast::cast;
use super::nvvm::{LeftOperandSource, Metadata, Multiplication, Operand, PreviousValue, Side, Step, Wait};
use super::ptxas::{self, loop_groups};
use super::types::{int, pointer};
use super::{Cx, Lower, expr, locals, nvvm, warp as lanes};
use crate::backend::BackendError;

pub(super) use self::store::{check_matrix, store, store_matrix};

/// The address bits that a descriptor holds. Source: PTX ISA, "Matrix Descriptor Format".
const SHARED_ADDRESS: u32 = 0x3_ffff;

/// An accumulator's type and its alloca.
struct AccumulatorAlloca<'c> {
    ty: AccumulatorType,
    address: PointerValue<'c>,
}

/// Lowers `accumulator += left · rightᵀ`.
pub(super) fn multiply(cx: &mut Cx<'_, '_>, mma: &Mma, id: StmtId) -> Lower<()> {
    let alloca = accumulator(cx, mma.accumulator)?;
    let before = ptxas::previous_value(cx, id);
    let right = shared_side(cx, mma.op, &mma.right)?;
    let bands = alloca.ty.bands();
    let sparse = mma.metadata.is_some();
    // The part of a row of the right operand that one instruction reads.
    let unit = if sparse { 2 } else { 1 };
    let steps = right.tile.k() / (right.tile.step() * unit);
    let left = left_side(cx, mma)?;
    let step_of = |step: u32, band: u32| {
        let left = left.matrix.source(step, band);
        let left =
            left.ok_or_else(|| BackendError::Unchecked("a band of a tile that has none".to_owned()))?;
        let metadata = sparse.then(|| Metadata::of(right.tile.element, steps, step, band));
        Ok(Step { left, right: right.tile.advance_k(step * unit) / 16, metadata })
    };
    let steps = (0..steps).map(|step| (0..bands).map(|band| step_of(step, band)).collect());
    let (form, register) = form(cx, &alloca, mma, right.tile.element)?;
    let multiplication = Multiplication {
        form,
        op: mma.op,
        registers: form.accumulator_registers() as usize,
        register,
        before,
        steps: steps.collect::<Lower<Vec<Vec<Step>>>>()?,
        left: left.side,
        right: right.side,
    };
    let metadata = mma.metadata.map_or(0, |local| count_of(cx, local));
    let in_registers = if let LeftMatrix::Registers(_) = left.matrix { left.args.len() } else { 0 };
    let instruction = nvvm::multiply(&multiplication, in_registers, metadata);
    let sums = if before == PreviousValue::Discarded { vec![] } else { registers(cx, &alloca)? };
    let mut args: Vec<_> = left.args.into_iter().chain([right.descriptor]).collect();
    if let Some(metadata) = mma.metadata {
        args.extend(words(cx, metadata)?);
    }
    let after = nvvm::emit_in_place(cx, &instruction, &sums, &args)?;
    set_registers(cx, &alloca, &after)
}

/// The left operand: its descriptor, or its registers.
struct LeftSide<'c> {
    matrix: LeftMatrix,
    side: Side,
    args: Vec<BasicValueEnum<'c>>,
}

/// The location of a left operand.
enum LeftMatrix {
    Shared(OperandTile),
    Registers(FragmentType),
}

impl LeftMatrix {
    /// Returns the part for a step along K and a band of 64 rows, if the tile has this band.
    fn source(&self, step: u32, band: u32) -> Option<LeftOperandSource> {
        match self {
            Self::Shared(tile) => {
                Some(LeftOperandSource::Shared((tile.advance_k(step) + tile.advance_band(band)?) / 16))
            }
            Self::Registers(ty) => {
                let first = (band * ty.steps() + step) * Form::LEFT_REGISTERS;
                Some(LeftOperandSource::Registers(first as usize))
            }
        }
    }
}

fn left_side<'c>(cx: &mut Cx<'c, '_>, mma: &Mma) -> Lower<LeftSide<'c>> {
    match &mma.left {
        LeftOperand::Shared(operand) => {
            let SharedSide { tile, side, descriptor } = shared_side(cx, mma.op, operand)?;
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

/// Lowers the wait for multiplications of `accumulator`.
pub(super) fn wait(
    cx: &mut Cx<'_, '_>,
    accumulator_local: LocalId,
    awaited: Awaited,
    id: StmtId,
) -> Lower<()> {
    let alloca = accumulator(cx, accumulator_local)?;
    // Operands in registers must not be overwritten before this point either.
    let mut operands = vec![];
    for &local in cx.kernel.flights().registers(accumulator_local) {
        operands.extend(words(cx, local)?);
    }
    let before = registers(cx, &alloca)?;
    let wait = Wait {
        register: register_of(alloca.ty.element),
        registers: before.len(),
        operands: operands.len(),
        pending: loop_groups::pending(cx, id),
        sums: ptxas::awaited_sums(cx, id, awaited, alloca.ty.element),
    };
    let after = nvvm::emit_wait(cx, &wait, &before, &operands)?;
    set_registers(cx, &alloca, &after)
}

/// An operand in shared memory.
struct SharedSide<'c> {
    tile: OperandTile,
    side: Side,
    descriptor: BasicValueEnum<'c>,
}

fn shared_side<'c>(cx: &mut Cx<'c, '_>, op: MmaOp, operand: &SharedOperand) -> Lower<SharedSide<'c>> {
    let unchecked = || BackendError::Unchecked(format!("`{}` as an operand", operand.ty));
    let element = op.operand(operand.ty.tile.element).ok_or_else(unchecked)?;
    let tile = geometry(&operand.ty, element).ok_or_else(unchecked)?;
    let address = expr::value(cx, &operand.tile).and_then(pointer)?;
    let address = cx.builder.build_ptr_to_int(address, cx.context.i32_type(), "")?;
    // The shared memory of a block ends below 2^18. In a cluster, an address also holds the block's
    // rank in the bits above, where the descriptor has its first offset: `S2UR SR_CgaCtaId` in the
    // SASS of ptxas 13.
    let address = match cx.has_clusters() {
        true => cx.builder.build_and(address, cx.u32_const(SHARED_ADDRESS), "")?,
        false => address,
    };
    let start = cx.builder.build_right_shift(address, cx.u32_const(4), false, "")?;
    let start = cx.builder.build_int_z_extend(start, cx.context.i64_type(), "")?;
    let fields = cx.context.i64_type().const_int(tile.descriptor(0).encode(), false);
    let descriptor = cx.builder.build_or(start, fields, "")?.into();
    let major = element.is_transposable().then_some(tile.major);
    Ok(SharedSide { tile, side: Side { negated: operand.ty.negated, major }, descriptor })
}

/// Returns the instruction's form, and the register type of `D`.
fn form(
    cx: &Cx<'_, '_>,
    alloca: &AccumulatorAlloca<'_>,
    mma: &Mma,
    right: Element,
) -> Lower<(Form, Operand)> {
    let left = match &mma.left {
        LeftOperand::Shared(operand) => operand.ty.tile.element,
        LeftOperand::Registers(local) => fragment_type(cx, *local)?.element,
    };
    let unchecked = || BackendError::Unchecked(format!("an operand of `{left}`"));
    let a = mma.op.operand(left).ok_or_else(unchecked)?;
    let d = accumulated(alloca.ty.element)
        .ok_or_else(|| BackendError::Unchecked(format!("an accumulator of `{}`", alloca.ty.element)))?;
    let sparse = mma.metadata.is_some();
    Ok((Form { d, a, b: right, n: alloca.ty.columns, sparse }, register_of(alloca.ty.element)))
}

/// Returns the register type of an accumulator of this element type.
fn register_of(element: Scalar) -> Operand {
    if element == Scalar::F32 { Operand::F32 } else { Operand::B32 }
}

fn accumulator<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<AccumulatorAlloca<'c>> {
    let Type::Accumulator(ty) = cx.kernel.kernel().local(local).ty else {
        return Err(BackendError::Unchecked(format!("local {}, which is no accumulator", local.0)));
    };
    Ok(AccumulatorAlloca { ty, address: locals::alloca_of(cx, local)? })
}

fn fragment_type(cx: &Cx<'_, '_>, local: LocalId) -> Lower<FragmentType> {
    let Type::Fragment(ty) = cx.kernel.kernel().local(local).ty else {
        return Err(BackendError::Unchecked(format!("local {}, which is no fragment", local.0)));
    };
    Ok(ty)
}

/// Returns the registers of a left operand, and its type.
fn fragment<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<(Vec<BasicValueEnum<'c>>, FragmentType)> {
    Ok((words(cx, local)?, fragment_type(cx, local)?))
}

/// Returns the number of 32-bit registers of a fragment or an array of metadata.
fn count_of(cx: &Cx<'_, '_>, local: LocalId) -> usize {
    let ty = &cx.kernel.kernel().local(local).ty;
    let count = if let Type::Fragment(fragment) = ty {
        fragment.registers()
    } else {
        ty.elements().map_or(0, |(_, len)| len)
    };
    count as usize
}

/// Loads the registers of a fragment or of metadata.
fn words<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<Vec<BasicValueEnum<'c>>> {
    let (address, register) = (locals::alloca_of(cx, local)?, cx.context.i32_type());
    let load = |i| {
        let at = locals::at(cx, register.into(), address, cx.u32_const(i))?;
        Ok(cx.builder.build_load(register, at, "")?)
    };
    (0..count_of(cx, local) as u32).map(load).collect()
}

/// Returns the number of registers of an accumulator, and the type of one.
fn shape<'c>(cx: &Cx<'c, '_>, ty: AccumulatorType) -> (u32, BasicTypeEnum<'c>) {
    match ty.element == Scalar::F16 {
        true => (ty.elements() / 2, cx.context.i32_type().into()),
        false => (ty.elements(), cx.scalar_type(ty.element)),
    }
}

fn registers<'c>(cx: &Cx<'c, '_>, alloca: &AccumulatorAlloca<'c>) -> Lower<Vec<BasicValueEnum<'c>>> {
    let (count, register) = shape(cx, alloca.ty);
    let load = |i| {
        let at = locals::at(cx, register, alloca.address, cx.u32_const(i))?;
        Ok(cx.builder.build_load(register, at, "")?)
    };
    (0..count).map(load).collect()
}

fn set_registers<'c>(
    cx: &Cx<'c, '_>,
    alloca: &AccumulatorAlloca<'c>,
    values: &[BasicValueEnum<'c>],
) -> Lower<()> {
    let (_, register) = shape(cx, alloca.ty);
    for (i, value) in (0..).zip(values) {
        let at = locals::at(cx, register, alloca.address, cx.u32_const(i))?;
        cx.builder.build_store(at, *value)?;
    }
    Ok(())
}

/// Loads element `i` of the elements that a thread holds.
fn element<'c>(
    cx: &Cx<'c, '_>,
    alloca: &AccumulatorAlloca<'c>,
    i: IntValue<'c>,
) -> Lower<BasicValueEnum<'c>> {
    let ty = cx.scalar_type(alloca.ty.element);
    let at = locals::at(cx, ty, alloca.address, i)?;
    Ok(cx.builder.build_load(ty, at, "")?)
}

/// Emits two adjacent elements of a row, converted and packed.
fn pair<'c>(
    cx: &mut Cx<'c, '_>,
    alloca: &AccumulatorAlloca<'c>,
    i: IntValue<'c>,
    to: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    if alloca.ty.element == Scalar::F16 {
        let register = cx.context.i32_type();
        let half = cx.builder.build_right_shift(i, cx.u32_const(1), false, "")?;
        let at = locals::at(cx, register.into(), alloca.address, half)?;
        return Ok(cx.builder.build_load(register, at, "")?);
    }
    let next = cx.builder.build_int_add(i, cx.u32_const(1), "")?;
    let both = [element(cx, alloca, i)?, element(cx, alloca, next)?];
    nvvm::emit_value(cx, &nvvm::packed(to.name(), to.bytes() == 1), &both)
}

/// Lowers `dest = accumulator` as a left operand. In each 16 columns, a thread holds the same
/// elements of both. Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", A and D.
pub(super) fn pack(cx: &mut Cx<'_, '_>, dest: LocalId, from: LocalId) -> Lower<()> {
    let alloca = accumulator(cx, from)?;
    let (element, registers) = if let Type::WarpFragment(to) = cx.kernel.kernel().local(dest).ty {
        (to.element, to.registers())
    } else {
        let to = fragment_type(cx, dest)?;
        (to.element, to.registers())
    };
    let (address, register) = (locals::alloca_of(cx, dest)?, cx.context.i32_type());
    for i in 0..registers {
        let value = pair(cx, &alloca, cx.u32_const(2 * i), element)?;
        let at = locals::at(cx, register.into(), address, cx.u32_const(i))?;
        cx.builder.build_store(at, value)?;
    }
    Ok(())
}

/// Lowers `dest = fragment` as an accumulator of f32: the inverse of [`pack`].
pub(super) fn unpack(cx: &mut Cx<'_, '_>, dest: LocalId, from: LocalId) -> Lower<()> {
    let alloca = accumulator(cx, dest)?;
    let (packed, FragmentType { element, .. }) = fragment(cx, from)?;
    let (bits, ty) = (cx.context.i16_type(), cx.scalar_type(element));
    let mut values = vec![];
    for register in packed {
        let register = int(register)?;
        for shift in [0, 16] {
            let part = cx.builder.build_right_shift(register, cx.u32_const(shift), false, "")?;
            let part = cx.builder.build_int_truncate(part, bits, "")?;
            let part = cx.builder.build_bit_cast(part, ty, "")?;
            values.push(cast(cx, part, element, Scalar::F32)?);
        }
    }
    set_registers(cx, &alloca, &values)
}

/// Lowers `dest = op` of each row: first over a thread's own elements, then over the four threads
/// that share the row.
pub(super) fn reduce_rows(cx: &mut Cx<'_, '_>, dest: LocalId, op: RowOp, from: LocalId) -> Lower<()> {
    let alloca = accumulator(cx, from)?;
    let address = locals::alloca_of(cx, dest)?;
    let (scalar, ty) = (alloca.ty.element, cx.scalar_type(alloca.ty.element));
    let op = match op {
        RowOp::Max => WarpReduceOp::Max,
        RowOp::Sum => WarpReduceOp::Add,
    };
    for row in 0..alloca.ty.bands() * 2 {
        let (band, half) = (row / 2, row % 2);
        let of_row = (0..alloca.ty.elements_of_band()).filter(|i| i / 2 % 2 == half);
        let mut all = of_row.map(|i| band * alloca.ty.elements_of_band() + i);
        let first = all.next().ok_or_else(|| BackendError::Unchecked("a row without elements".to_owned()))?;
        let mut value = element(cx, &alloca, cx.u32_const(first))?;
        for i in all {
            let next = element(cx, &alloca, cx.u32_const(i))?;
            value = lanes::combined(cx, op, value, next, scalar)?;
        }
        for mask in [1, 2] {
            value = lanes::with_lane(cx, op, value, scalar, mask)?;
        }
        let at = locals::at(cx, ty, address, cx.u32_const(row))?;
        cx.builder.build_store(at, value)?;
    }
    Ok(())
}

fn lane<'c>(cx: &mut Cx<'c, '_>, span: Span) -> Lower<IntValue<'c>> {
    special(cx, Special::LaneIdx, span)
}

/// The first row of a warp.
#[derive(Clone, Copy)]
enum FirstRow<'c> {
    /// Row 0.
    Top,
    /// The row after those of the preceding warps in its warpgroup, 16 each.
    OfWarp(IntValue<'c>),
    /// At this row.
    Row(IntValue<'c>),
}

impl<'c> FirstRow<'c> {
    /// Returns the first row of this warp in a band of its team.
    fn of_team(cx: &mut Cx<'c, '_>, team: Team, span: Span) -> Lower<Self> {
        match team {
            Team::Warpgroup => {
                let warp = special(cx, Special::WarpIdx, span)?;
                Ok(Self::OfWarp(cx.builder.build_and(warp, cx.u32_const(3), "")?))
            }
            Team::Warp => Ok(Self::Top),
        }
    }

    fn and(self, cx: &Cx<'c, '_>, row: IntValue<'c>) -> Lower<IntValue<'c>> {
        let first = match self {
            Self::Top => return Ok(row),
            Self::OfWarp(warp) => cx.builder.build_int_mul(warp, cx.u32_const(16), "")?,
            Self::Row(first) => first,
        };
        Ok(cx.builder.build_int_add(first, row, "")?)
    }
}

fn special<'c>(cx: &mut Cx<'c, '_>, special: Special, span: Span) -> Lower<IntValue<'c>> {
    let kind = ExprKind::Special(special);
    expr::int_value(cx, &Expr { kind, ty: Scalar::U32.into(), span })
}

/// Lowers the change of the warpgroup's register count.
pub(super) fn set_max_registers(cx: &mut Cx<'_, '_>, increase: bool, registers: u32) -> Lower<()> {
    nvvm::emit(cx, &nvvm::set_max_registers(increase, registers), &[])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Target, compile};

    fn product(options: &str) -> String {
        let source = format!(
            "#[tma_kernel(threads = 128{options})]
             pub fn kernel() {{
                 let tile: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
                 let mut sum = Accumulator::<f32, 64, 64>::zero();
                 sum.mma(tile.t(), tile.t(), ()).wait();
                 sum.store(tile);
             }}"
        );
        let compiled = compile("src/kernel.rs", &source, Target::Sm90a);
        compiled.unwrap_or_else(|error| panic!("{error}")).kernels.remove(0).text
    }

    /// In blocks other than the first of a cluster, an address has bits above the offset. These
    /// would corrupt the descriptor's field for the distance between panels.
    #[test]
    fn a_descriptor_in_a_cluster_holds_the_offset_alone() {
        // Bits 4 to 17 of the address, without those that are zero by the tile's alignment.
        let (of_cluster, alone) = (product(", cluster = 2"), product(""));
        assert!(of_cluster.contains(", 16320;"), "{of_cluster}");
        assert!(!alone.contains(", 16320;"), "{alone}");
    }
}
