//! Mbarriers, fences and asynchronous copies.

use super::access::{check_policy, take_cache_hints, take_order, take_scope};
use super::operands::Decoder;
use super::remote::take_reduction;
use super::{bulk, copy_async, mbarrier};
use crate::isa::{
    Fence, FencedMemory, MemoryFence, MemoryScope, Op, Order, Reg, Scope, Space, TensorCode,
    TensorCodeAction, TmaOp, Type,
};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

const WORD: Type = Type::Bits(32);

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    match d.instruction.opcode {
        "mbarrier" => mbarrier::decode(d),
        "cp" => copy(d),
        "membar" => {
            if d.take("proxy") {
                return proxy_fence(d);
            }
            // "membar.{cta,gl,sys} is equivalent to fence.sc.{cta,gpu,sys}": PTX ISA, "membar,
            // fence".
            let scope = d.take_of(&[
                ("cta", MemoryScope::Block),
                ("gl", MemoryScope::Device),
                ("sys", MemoryScope::System),
            ]);
            let scope = scope.unwrap_or(MemoryScope::System);
            Ok(Op::MemoryFence(MemoryFence { order: Order::AcqRel, sequential: true, scope }))
        }
        _ => fence(d),
    }
}

fn fence(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if d.take("proxy") {
        return proxy_fence(d);
    }
    if d.take("mbarrier_init") {
        if d.take("release") && d.take("cluster") {
            return Ok(Op::Fence(Fence::MbarrierInit));
        }
        return Err(d.unsupported());
    }
    let sequential = d.take("sc");
    let order = take_order(d).unwrap_or(Order::AcqRel);
    let scope = take_scope(d).unwrap_or(MemoryScope::System);
    Ok(Op::MemoryFence(MemoryFence { order, sequential, scope }))
}

fn proxy_fence(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if d.take("async") {
        let block = FencedMemory::Shared(Scope::Block);
        let named = d.take_of(&[
            ("shared::cta", block),
            ("shared", block),
            ("shared::cluster", FencedMemory::Shared(Scope::Cluster)),
            ("global", FencedMemory::Global),
        ]);
        return Ok(Op::Fence(Fence::ProxyAsync(named.unwrap_or(FencedMemory::All))));
    }
    if d.take("alias") {
        return Ok(Op::Fence(Fence::ProxyAlias));
    }
    if d.take("tensormap::generic") {
        return super::tensor_map::fence(d);
    }
    Err(d.unsupported())
}

pub(super) fn take_shared(d: &mut Decoder<'_, '_, '_>) -> Space {
    d.take_of(&[
        ("shared", Space::Shared),
        ("shared::cta", Space::Shared),
        ("shared::cluster", Space::SharedCluster),
    ])
    .unwrap_or(Space::Generic)
}

fn copy(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let reduces = d.take("reduce");
    if !d.take("async") {
        return Err(d.unsupported());
    }
    if !d.take("bulk") {
        return copy_async::decode(d);
    }
    if d.take("commit_group") {
        return Ok(Op::Tma(TmaOp::Commit));
    }
    if d.take("wait_group") {
        d.expect_count(1, 1)?;
        let pending = d.immediate(0)?.min(u64::from(u32::MAX)) as u32;
        return Ok(Op::Tma(TmaOp::Wait { pending, read: d.take("read") }));
    }
    let prefetch = d.take("prefetch");
    match (d.take("tensor"), prefetch) {
        (true, _) => tensor_copy(d, prefetch, reduces),
        (false, true) => bulk::prefetch(d),
        (false, false) => bulk::copy(d, reduces),
    }
}

fn tensor_copy(d: &mut Decoder<'_, '_, '_>, prefetch: bool, reduces: bool) -> Result<Op, LoadError> {
    let rank =
        d.take_of(&[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)]).ok_or_else(|| d.unsupported())?;
    let to_global = d.instruction.modifiers.iter().position(|name| *name == "global")
        < d.instruction.modifiers.iter().position(|name| name.starts_with("shared"));
    let space = take_shared(d);
    if !d.take("global") {
        return Err(d.unsupported());
    }
    let mode = take_mode(d, rank, to_global)?;
    let with = take_reduction(d);
    d.take("L2");
    let hint = usize::from(take_cache_hints(d));
    if prefetch {
        let operands = 1 + mode.operands() + hint;
        d.expect_count(operands, operands)?;
        check_policy(d, hint == 1)?;
        return tensor(d, 0, 1, mode, TensorCodeAction::Prefetch);
    }
    if to_global {
        if !d.take("bulk_group") || reduces != with.is_some() {
            return Err(d.unsupported());
        }
        d.expect_count(2 + hint, 2 + hint)?;
        check_policy(d, hint == 1)?;
        let tile = d.address(1)?;
        let action = match with {
            Some(with) => TensorCodeAction::Reduce { tile, with },
            None => TensorCodeAction::Store { tile },
        };
        return tensor(d, 0, 2, mode, action);
    }
    if !d.take("mbarrier::complete_tx::bytes") || reduces {
        return Err(d.unsupported());
    }
    let multicast = d.take("multicast::cluster");
    let operands = 3 + mode.operands();
    let count = operands + usize::from(multicast) + hint;
    d.expect_count(count, count)?;
    check_policy(d, hint == 1)?;
    let multicast = if multicast { Some(d.source(operands, Type::Bits(16))?) } else { None };
    let action = TensorCodeAction::Load { space, tile: d.address(0)?, barrier: d.address(2)?, multicast };
    tensor(d, 1, 3, mode, action)
}

/// The rank and mode of a tensor copy.
#[derive(Clone, Copy)]
struct CopyMode {
    rank: usize,
    im2col: bool,
    /// Whether there is an operand with offsets.
    offsets: bool,
}

impl CopyMode {
    /// Returns the number of operands that the mode adds.
    fn operands(self) -> usize {
        usize::from(self.offsets)
    }
}

/// Takes `.tile`, which is optional, `.im2col` for loads, or `.im2col_no_offs` for stores.
fn take_mode(d: &mut Decoder<'_, '_, '_>, rank: usize, stores: bool) -> Result<CopyMode, LoadError> {
    let im2col = d.take(if stores { "im2col_no_offs" } else { "im2col" });
    if im2col && rank < 3 {
        return Err(d.error("im2col mode is for ranks 3 to 5"));
    }
    if !im2col {
        d.take("tile");
    }
    Ok(CopyMode { rank, im2col, offsets: im2col && !stores })
}

/// Takes the offsets of im2col mode, which follow the other operands.
fn take_offsets(d: &mut Decoder<'_, '_, '_>, index: usize, mode: CopyMode) -> Result<Vec<Reg>, LoadError> {
    if !mode.offsets {
        return Ok(Vec::new());
    }
    let offsets = d.parts(d.operand(index)?, mode.rank - 2, "offsets")?;
    offsets.iter().map(|offset| d.inner(offset, Type::Bits(16))).collect()
}

fn tensor(
    d: &mut Decoder<'_, '_, '_>,
    index: usize,
    offsets: usize,
    mode: CopyMode,
    action: TensorCodeAction,
) -> Result<Op, LoadError> {
    let CopyMode { rank, im2col, .. } = mode;
    let offsets = take_offsets(d, offsets, mode)?;
    let operand = d.operand(index)?;
    let map = d.address_of(operand)?;
    let Operand::Address { more, .. } = operand else { return Err(d.unsupported()) };
    let coordinates = match more.as_slice() {
        [Operand::Vector(coordinates)] if coordinates.len() == rank => coordinates,
        _ => return Err(d.error(format!("expected {rank} coordinates in braces"))),
    };
    let mut at = Vec::new();
    for coordinate in coordinates {
        at.push(d.inner(coordinate, WORD)?);
    }
    Ok(Op::Tma(TmaOp::Tensor(Box::new(TensorCode { map, at, im2col, offsets, action }))))
}
