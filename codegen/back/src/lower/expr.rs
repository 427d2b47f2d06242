//! Expressions.

use inkwell::values::{BasicValueEnum, IntValue};
use tma_front::ir::{Axis, Const, Expr, ExprKind, ParamId, Scalar, Special, Strictness};
use tma_front::limits::{WARP_THREADS, WARPGROUP_THREADS};

use super::arith::overflow;
use super::kernel::Param;
use super::types::{int, int_const, pointer, scalar_of};
use super::{Cx, Lower, arith, cast, cluster, debug, integer, locals, nvvm, tile};
use crate::backend::BackendError;

/// Emits the computation of `expr`.
pub(super) fn value<'c>(cx: &mut Cx<'c, '_>, expr: &Expr) -> Lower<BasicValueEnum<'c>> {
    debug::at_expr(cx, expr.span, |cx| kind(cx, expr))
}

/// Emits the computation of an integer or `bool`.
pub(super) fn int_value<'c>(cx: &mut Cx<'c, '_>, expr: &Expr) -> Lower<IntValue<'c>> {
    value(cx, expr).and_then(int)
}

/// Emits the computation of several expressions, in order.
pub(super) fn values<'c>(cx: &mut Cx<'c, '_>, exprs: &[Expr]) -> Lower<Vec<BasicValueEnum<'c>>> {
    exprs.iter().map(|expr| value(cx, expr)).collect()
}

/// Emits the computation of an integer, extended to 64 bits according to its signedness.
pub(super) fn widened<'c>(cx: &mut Cx<'c, '_>, expr: &Expr) -> Lower<IntValue<'c>> {
    let narrow = int_value(cx, expr)?;
    let wide = cx.context.i64_type();
    let signed = scalar_of(&expr.ty)?.is_signed();
    Ok(cx.builder.build_int_cast_sign_flag(narrow, wide, signed, "")?)
}

fn kind<'c>(cx: &mut Cx<'c, '_>, expr: &Expr) -> Lower<BasicValueEnum<'c>> {
    match &expr.kind {
        ExprKind::Const(known) => constant(cx, *known, scalar_of(&expr.ty)?),
        ExprKind::Local(local) => locals::load(cx, *local),
        ExprKind::Shared(id) => {
            let offset = cx.u32_const(cx.kernel.layout().offset(*id));
            Ok(tile::byte_offset(cx, cx.shared, offset)?.into())
        }
        ExprKind::Param(id) => match param(cx, *id)? {
            Param::Scalar(value) => Ok(value),
            Param::TensorMap(address) | Param::Global { address, .. } => Ok(address.into()),
            Param::PeerMaps(_) | Param::PeerGlobals { .. } => {
                Err(BackendError::Unchecked("the memory of all ranks as a value".to_owned()))
            }
        },
        ExprKind::GlobalLen(id) => match param(cx, *id)? {
            Param::Global { len, .. } | Param::PeerGlobals { len, .. } => Ok(len.into()),
            Param::Scalar(_) | Param::TensorMap(_) | Param::PeerMaps(_) => {
                Err(BackendError::Unchecked("the length of what is no slice".to_owned()))
            }
        },
        ExprKind::Special(special) => special_value(cx, *special).map(Into::into),
        ExprKind::Unary(op, a) => arith::unary(cx, *op, a, expr.span),
        ExprKind::Binary(op, a, b, Strictness::Lazy) if cx.checked && overflow::may_stop(b) => {
            overflow::lazy(cx, *op, a, b)
        }
        ExprKind::Binary(op, a, b, strictness) => {
            let is_strict = cx.checked && *strictness == Strictness::Strict;
            arith::binary(cx, *op, is_strict, a, b, expr.span)
        }
        ExprKind::Math(op, operands) => arith::math(cx, *op, operands, expr.span),
        ExprKind::Integer(op, operands) => integer::apply(cx, *op, operands),
        ExprKind::Cast(a) => {
            let from = value(cx, a)?;
            cast::cast(cx, from, scalar_of(&a.ty)?, scalar_of(&expr.ty)?)
        }
        ExprKind::Bits(a) => {
            let from = value(cx, a)?;
            let ty = cx.scalar_type(scalar_of(&expr.ty)?);
            Ok(cx.builder.build_bit_cast(from, ty, "")?)
        }
        ExprKind::Array(elements) => {
            let elements = values(cx, elements)?;
            locals::array(cx, &expr.ty, elements)
        }
        ExprKind::Repeat(element) => {
            let element = value(cx, element)?;
            let len = expr.ty.elements().map_or(0, |(_, len)| len);
            locals::array(cx, &expr.ty, std::iter::repeat_n(element, len as usize))
        }
        ExprKind::ZeroAccumulator => Ok(cx.value_type(&expr.ty)?.const_zero()),
        ExprKind::Index(array, index) => locals::element(cx, array, index),
        ExprKind::Stage(stages, index) => {
            let base = value(cx, stages).and_then(pointer)?;
            Ok(tile::stage(cx, base, stages, index)?.into())
        }
        ExprKind::CachePolicy(priority, fraction) => {
            let fraction = value(cx, fraction)?;
            nvvm::emit_value(cx, &nvvm::cache_policy(*priority), &[fraction])
        }
        ExprKind::Remote(thing, rank) => cluster::remote(cx, thing, rank),
        ExprKind::Choice(_)
        | ExprKind::Hinted(..)
        | ExprKind::Compound(_)
        | ExprKind::Member(..)
        | ExprKind::Unit
        | ExprKind::Error => Err(BackendError::Unchecked("an expression without value".to_owned())),
    }
}

/// Returns the parameter `id`.
pub(super) fn param<'c>(cx: &Cx<'c, '_>, id: ParamId) -> Lower<Param<'c>> {
    cx.params
        .get(id.0 as usize)
        .copied()
        .ok_or_else(|| BackendError::Unchecked(format!("parameter {}, which is not declared", id.0)))
}

fn constant<'c>(cx: &mut Cx<'c, '_>, known: Const, scalar: Scalar) -> Lower<BasicValueEnum<'c>> {
    match (known, scalar) {
        (Const::Bool(known), _) => Ok(cx.context.bool_type().const_int(u64::from(known), false).into()),
        (Const::Int(known), _) if scalar.is_integer() => Ok(int_const(cx.bits_type(scalar), known).into()),
        (Const::Float(known), Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2) => {
            let wide = cx.context.f64_type().const_float(known);
            cast::cast(cx, wide.into(), Scalar::F64, scalar)
        }
        (Const::Float(known), Scalar::F16) => Ok(cx.context.f16_type().const_float(known).into()),
        (Const::Float(known), Scalar::Bf16) => Ok(cx.context.bf16_type().const_float(known).into()),
        (Const::Float(known), Scalar::F32) => Ok(cx.context.f32_type().const_float(known).into()),
        (Const::Float(known), Scalar::F64) => Ok(cx.context.f64_type().const_float(known).into()),
        _ => Err(BackendError::Unchecked(format!("the constant {known:?} as `{scalar}`"))),
    }
}

fn special_value<'c>(cx: &Cx<'c, '_>, special: Special) -> Lower<IntValue<'c>> {
    match special {
        Special::ThreadIdx(axis) => register(cx, "tid", axis),
        Special::BlockIdx(axis) => register(cx, "ctaid", axis),
        Special::GridDim(axis) => register(cx, "nctaid", axis),
        Special::ClusterIdx(axis) => register(cx, "clusterid", axis),
        Special::BlockInCluster(axis) => register(cx, "cluster.ctaid", axis),
        Special::ClusterDim(axis) => register(cx, "cluster.nctaid", axis),
        Special::ClusterRank => cluster::rank(cx),
        Special::LaneIdx => cx.intrinsic_value("llvm.nvvm.read.ptx.sreg.laneid", &[], &[]).and_then(int),
        Special::WarpIdx => linear_thread_over(cx, WARP_THREADS),
        Special::WarpgroupIdx => linear_thread_over(cx, WARPGROUP_THREADS),
    }
}

/// Reads one axis of a special register.
pub(super) fn register<'c>(cx: &Cx<'c, '_>, name: &str, axis: Axis) -> Lower<IntValue<'c>> {
    let axis = match axis {
        Axis::X => "x",
        Axis::Y => "y",
        Axis::Z => "z",
    };
    cx.intrinsic_value(&format!("llvm.nvvm.read.ptx.sreg.{name}.{axis}"), &[], &[]).and_then(int)
}

/// Emits the linear thread index, divided: `(x + y × X + z × X × Y) / divisor`.
fn linear_thread_over<'c>(cx: &Cx<'c, '_>, divisor: u32) -> Lower<IntValue<'c>> {
    let [threads_x, threads_y, threads_z] = cx.kernel.kernel().launch.threads;
    let mut linear = register(cx, "tid", Axis::X)?;
    let outer = [(Axis::Y, threads_y, threads_x), (Axis::Z, threads_z, threads_x * threads_y)];
    for (axis, extent, stride) in outer {
        if extent > 1 {
            let step = cx.builder.build_int_mul(register(cx, "tid", axis)?, cx.u32_const(stride), "")?;
            linear = cx.builder.build_int_add(linear, step, "")?;
        }
    }
    Ok(cx.builder.build_int_unsigned_div(linear, cx.u32_const(divisor), "")?)
}
