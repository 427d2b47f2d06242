//! `cp.async.bulk` and `cp.reduce.async.bulk` without a tensor map.

use super::access::{check_policy, take_cache_hints};
use super::operands::Decoder;
use super::remote::{element_of, take_reduction};
use crate::isa::{BulkCode, EngineReduction, Op, Space, TmaOp, Type};
use crate::parse::LoadError;
use crate::tensor_map::DataType;
use tma_model::Scalar;

const WORD: Type = Type::Bits(32);

pub(super) fn prefetch(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("L2") || !d.take("global") {
        return Err(d.unsupported());
    }
    let hint = d.take("L2::cache_hint");
    d.expect_count(2 + usize::from(hint), 2 + usize::from(hint))?;
    check_policy(d, hint)?;
    let code = BulkCode::Prefetch { from: d.address(0)?, bytes: d.source(1, WORD)? };
    Ok(Op::Tma(TmaOp::Bulk(Box::new(code))))
}

/// The source and destination, as the instruction names them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToBlock,
    ToCluster,
    ToGlobal,
    Across,
}

/// Takes the state spaces: the modifiers name the destination first, then the source.
fn take_direction(d: &mut Decoder<'_, '_, '_>) -> Option<Direction> {
    let spaces: Vec<&str> = d.instruction.modifiers.iter().copied().filter(|name| is_space(name)).collect();
    for space in &spaces {
        d.take(space);
    }
    match spaces.as_slice() {
        ["shared::cta", "global"] => Some(Direction::ToBlock),
        ["shared::cluster", "global"] => Some(Direction::ToCluster),
        ["global", "shared::cta"] => Some(Direction::ToGlobal),
        ["shared::cluster", "shared::cta"] => Some(Direction::Across),
        _ => None,
    }
}

fn is_space(name: &str) -> bool {
    matches!(name, "global" | "shared::cta" | "shared::cluster")
}

pub(super) fn copy(d: &mut Decoder<'_, '_, '_>, reduces: bool) -> Result<Op, LoadError> {
    let Some(direction) = take_direction(d) else { return Err(d.unsupported()) };
    let completes =
        if direction == Direction::ToGlobal { "bulk_group" } else { "mbarrier::complete_tx::bytes" };
    if !d.take(completes) {
        return Err(d.error(format!("expected `.{completes}`")));
    }
    let hint = direction != Direction::Across && take_cache_hints(d);
    let multicast = direction == Direction::ToCluster && d.take("multicast::cluster");
    let reduce = if reduces { Some(reduction(d, direction)?) } else { None };
    let barriers = usize::from(direction != Direction::ToGlobal);
    let count = 3 + barriers + usize::from(multicast) + usize::from(hint);
    d.expect_count(count, count)?;
    check_policy(d, hint)?;
    let (to, from, bytes) = (d.address(0)?, d.address(1)?, d.source(2, WORD)?);
    let code = match direction {
        Direction::ToGlobal => BulkCode::Store { to, from, bytes, reduce },
        Direction::Across => BulkCode::ToCluster { to, from, bytes, barrier: d.address(3)?, reduce },
        Direction::ToBlock | Direction::ToCluster => {
            let space = if direction == Direction::ToCluster { Space::SharedCluster } else { Space::Shared };
            let multicast = if multicast { Some(d.source(4, Type::Bits(16))?) } else { None };
            BulkCode::Load { space, to, from, bytes, barrier: d.address(3)?, multicast }
        }
    };
    Ok(Op::Tma(TmaOp::Bulk(Box::new(code))))
}

/// Takes the reduction and its type.
fn reduction(d: &mut Decoder<'_, '_, '_>, direction: Direction) -> Result<EngineReduction, LoadError> {
    let op = take_reduction(d).ok_or_else(|| d.unsupported())?;
    let no_flush = d.take("noftz");
    let element = element_of(op, d.take_type()?);
    if no_flush != element.is_some_and(|element| op.wants_noftz(element)) {
        return Err(d.error("`.noftz` is required for sums of `.f16` and `.bf16`, and not allowed otherwise"));
    }
    let taken = element.filter(|&element| match direction {
        Direction::Across => op.takes_remote(element),
        Direction::ToGlobal => op.takes_bulk(element),
        Direction::ToBlock | Direction::ToCluster => false,
    });
    let element = taken.ok_or_else(|| d.error("its operation has no such type"))?;
    Ok(EngineReduction { op, element: data_type(element) })
}

/// Returns the element type with which the engine reduces. Source: PTX ISA, "cp.reduce.async.bulk":
/// a sum of `.f32` flushes subnormals to zero.
fn data_type(element: Scalar) -> DataType {
    if element == Scalar::F32 { DataType::F32Ftz } else { element.data_type() }
}
