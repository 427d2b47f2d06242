//! The memory of the ranks of a team. Addresses and tensor maps of all ranks are parameters, and a
//! rank is an index into them.

use inkwell::IntPredicate;
use inkwell::values::{BasicValue, IntValue, PointerValue};
use tma_front::ir::{Expr, ExprKind, Presence, TeamNumber};
use tma_front::limits::{MAP_BYTES, TEAM_RANKS};

use super::kernel::Param;
use super::types::{GLOBAL, int};
use super::{Cx, Lower, expr, print, tile};
use crate::backend::BackendError;

/// The size of an address in bytes.
const ADDRESS_BYTES: u32 = 8;

/// Emits the address of the slice of this rank, which is one of `addresses`.
///
/// The load is invariant: nothing changes parameters. LLVM then merges loads by the same rank across
/// accesses to memory.
pub(super) fn address<'c>(
    cx: &Cx<'c, '_>,
    addresses: PointerValue<'c>,
    rank: IntValue<'c>,
) -> Lower<PointerValue<'c>> {
    let location = member(cx, addresses, rank, ADDRESS_BYTES)?;
    let number = cx.builder.build_load(cx.context.i64_type(), location, "")?;
    if let Some(load) = number.as_instruction_value() {
        let (nothing, invariant) = (cx.context.metadata_node(&[]), cx.context.get_kind_id("invariant.load"));
        load.set_metadata(nothing, invariant)
            .map_err(|_| BackendError::Unchecked("metadata at what is no load".to_owned()))?;
    }
    Ok(cx.builder.build_int_to_ptr(int(number)?, cx.pointer_type(GLOBAL), "")?)
}

/// Emits the generic address of the tensor map of this rank, which is one of `maps`.
pub(super) fn map<'c>(cx: &mut Cx<'c, '_>, maps: PointerValue<'c>, rank: &Expr) -> Lower<PointerValue<'c>> {
    let rank = checked(cx, rank)?;
    member(cx, maps, rank, MAP_BYTES)
}

/// Emits a rank. A checked kernel stops if the team does not have it.
pub(super) fn checked<'c>(cx: &mut Cx<'c, '_>, rank: &Expr) -> Lower<IntValue<'c>> {
    let span = rank.span;
    let is_own = if let ExprKind::Param(id) = rank.kind {
        cx.kernel.kernel().param(id).presence == Presence::Team(TeamNumber::Rank)
    } else {
        false
    };
    let needs_check = cx.checked && !is_own;
    let rank = expr::value(cx, rank).and_then(int)?;
    if needs_check {
        let inside = cx.builder.build_int_compare(IntPredicate::ULT, rank, ranks(cx)?, "")?;
        print::assert(cx, inside, "the team has no such rank", span)?;
    }
    Ok(rank)
}

/// Returns the number of ranks.
fn ranks<'c>(cx: &Cx<'c, '_>) -> Lower<IntValue<'c>> {
    let params = cx.kernel.kernel().params.iter().zip(&cx.params);
    let found = params.filter_map(|(param, value)| match (param.presence, value) {
        (Presence::Team(TeamNumber::Ranks), Param::Scalar(ranks)) => Some(int(*ranks)),
        _ => None,
    });
    let none = || Err(BackendError::Unchecked("a kernel with peers and without a team".to_owned()));
    found.into_iter().next().unwrap_or_else(none)
}

/// Emits the address of the part of this rank, of so many bytes. A rank that no team has is taken
/// modulo the most that one has, so that every address is one of these parts.
fn member<'c>(
    cx: &Cx<'c, '_>,
    parts: PointerValue<'c>,
    rank: IntValue<'c>,
    bytes: u32,
) -> Lower<PointerValue<'c>> {
    const { assert!(TEAM_RANKS.is_power_of_two()) };
    let within = cx.builder.build_and(rank, cx.u32_const(TEAM_RANKS - 1), "")?;
    let offset = cx.builder.build_int_mul(within, cx.u32_const(bytes), "")?;
    tile::byte_offset(cx, parts, offset)
}
