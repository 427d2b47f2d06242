//! `st.async` and `red.async`.

use super::operands::Decoder;
use crate::isa::float::FloatType;
use crate::isa::{EngineReduction, Integer, Op, RemoteCode, Space, TmaOp, Type};
use crate::parse::LoadError;
use tma_model::{ReduceFamily, ReduceOp, Scalar};

/// Takes the state space of the destination, and checks the completion mechanism.
fn take_target(d: &mut Decoder<'_, '_, '_>) -> Result<Space, LoadError> {
    let space = if d.take("shared::cluster") { Space::SharedCluster } else { Space::Generic };
    if d.take("mbarrier::complete_tx::bytes") {
        Ok(space)
    } else {
        Err(d.error("expected `.mbarrier::complete_tx::bytes`: sm_90 has no other form"))
    }
}

/// Decodes
/// `st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.v2,.v4}.type [a], b, [mbar]`.
pub(super) fn store(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    d.take("weak");
    let space = take_target(d)?;
    let count = d.take_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    let ty = d.take_type()?;
    let bits = ty.bits();
    let plain = match ty {
        Type::Bits(_) | Type::Integer(_) | Type::Float(_) => true,
        Type::Pred
        | Type::FloatPair(_)
        | Type::IntegerPair(_)
        | Type::Tf32
        | Type::Float8Pair(_)
        | Type::B128 => false,
    };
    if !plain || !matches!(bits, 32 | 64) || bits * count > 128 {
        return Err(d.error("expected elements of 32 or 64 bits, and vectors of at most 16 bytes"));
    }
    d.expect_count(3, 3)?;
    let mut values = Vec::new();
    if count == 1 {
        values.push(d.source(1, ty)?);
    } else {
        for part in d.parts(d.operand(1)?, count as usize, "registers")? {
            values.push(d.inner(part, ty)?);
        }
    }
    let (to, barrier) = (d.address(0)?, d.address(2)?);
    let code = RemoteCode { space, to, values, bytes: bits / 8, barrier, reduce: None };
    Ok(Op::Tma(TmaOp::Remote(Box::new(code))))
}

/// Decodes `red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.op.type`
/// `[a], b, [mbar]`.
pub(super) fn reduce(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("relaxed") || !d.take("cluster") {
        return Err(d.error("expected `.relaxed.cluster`"));
    }
    let space = take_target(d)?;
    let with = take_reduction(d).ok_or_else(|| d.unsupported())?;
    let ty = d.take_type()?;
    // Like ptxas, this accepts a signed 64-bit sum, unlike `cp.reduce.async.bulk`.
    let signed_64 = |element| element == Scalar::I64 && with == ReduceOp::Add;
    let is_taken = |&element: &Scalar| with.takes_remote(element) || signed_64(element);
    let Some(element) = element_of(with, ty).filter(is_taken) else {
        return Err(d.error("its operation has no such type"));
    };
    d.expect_count(3, 3)?;
    let (to, values, barrier) = (d.address(0)?, vec![d.source(1, ty)?], d.address(2)?);
    let (bytes, reduce) = (ty.bits() / 8, Some(EngineReduction { op: with, element: element.data_type() }));
    Ok(Op::Tma(TmaOp::Remote(Box::new(RemoteCode { space, to, values, bytes, barrier, reduce }))))
}

pub(super) fn take_reduction(d: &mut Decoder<'_, '_, '_>) -> Option<ReduceOp> {
    d.take_of(&ReduceOp::ALL.map(|op| (op.name(), op)))
}

/// Returns the element type for a reduction's type, whether or not the operation supports it. Bit
/// types map to unsigned integers.
pub(super) fn element_of(with: ReduceOp, ty: Type) -> Option<Scalar> {
    let is_bitwise = with.family() == ReduceFamily::Bits;
    match ty {
        Type::Bits(32) if is_bitwise => Some(Scalar::U32),
        Type::Bits(64) if is_bitwise => Some(Scalar::U64),
        Type::Integer(Integer { bits: 32, signed }) if !is_bitwise => {
            Some(if signed { Scalar::I32 } else { Scalar::U32 })
        }
        Type::Integer(Integer { bits: 64, signed }) if !is_bitwise => {
            Some(if signed { Scalar::I64 } else { Scalar::U64 })
        }
        Type::Float(float) => Some(match float {
            FloatType::F16 => Scalar::F16,
            FloatType::Bf16 => Scalar::Bf16,
            FloatType::F32 => Scalar::F32,
            FloatType::F64 => Scalar::F64,
        }),
        Type::Pred | Type::Bits(_) | Type::Integer(_) | Type::FloatPair(_) => None,
        Type::IntegerPair(_) | Type::Tf32 | Type::Float8Pair(_) | Type::B128 => None,
    }
}
