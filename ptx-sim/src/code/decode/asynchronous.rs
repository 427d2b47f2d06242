//! Mbarriers, fences, and copies that run on their own.

use super::access::{take_cache_hints, take_order};
use super::copy_async;
use super::operands::Decoder;
use crate::code::types::Type;
use crate::code::{BulkCode, Mbarrier, Op, Row, TensorCode, TensorCodeAction};
use crate::machine::{FenceKind, Order, Reduction, Space};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

const WORD: Type = Type::Bits(32);
const LONG: Type = Type::Bits(64);

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    match d.instruction.opcode {
        "mbarrier" => mbarrier(d),
        "cp" => copy(d),
        "membar" => {
            if d.take("proxy") {
                return proxy_fence(d);
            }
            d.take_of(&[("cta", ()), ("gl", ()), ("sys", ())]);
            Ok(Op::Fence(FenceKind::Memory))
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
            return Ok(Op::Fence(FenceKind::MbarrierInit));
        }
        return Err(d.unsupported());
    }
    take_order(d, Order::AcqRel);
    Ok(Op::Fence(FenceKind::Memory))
}

fn proxy_fence(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if d.take("async") {
        let shared = ["shared::cta", "shared::cluster", "shared"].into_iter().any(|space| d.take(space));
        let kind =
            if d.take("global") && !shared { FenceKind::ProxyAsyncGlobal } else { FenceKind::ProxyAsync };
        return Ok(Op::Fence(kind));
    }
    if d.take("alias") {
        return Ok(Op::Fence(FenceKind::OtherProxy));
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

fn mbarrier(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let what = d.take_first().ok_or_else(|| d.unsupported())?;
    let expects = d.take("expect_tx");
    let no_complete = d.take("noComplete");
    let parity = d.take("parity");
    let default = if matches!(what, "test_wait" | "try_wait") { Order::Acquire } else { Order::Release };
    let order = take_order(d, default);
    let space = take_shared(d);
    if !d.take("b64") {
        return Err(d.unsupported());
    }
    let one = d.builder.bits(1);
    let (place, op) = match what {
        "init" => {
            d.expect_count(2, 2)?;
            (0, Mbarrier::Init { count: d.source(1, WORD)? })
        }
        "inval" => {
            d.expect_count(1, 1)?;
            (0, Mbarrier::Invalidate)
        }
        "expect_tx" | "complete_tx" => {
            d.expect_count(2, 2)?;
            let bytes = d.source(1, WORD)?;
            (
                0,
                if what == "expect_tx" {
                    Mbarrier::ExpectTx { bytes }
                } else {
                    Mbarrier::CompleteTx { bytes }
                },
            )
        }
        "arrive" | "arrive_drop" => {
            // The state may be left out where the mbarrier is another block's.
            let first = usize::from(!matches!(d.operand(0)?, Operand::Address { .. }));
            d.expect_count(first + 1, first + 2)?;
            let state = if first == 1 { d.dest(0, LONG)? } else { Row::SINK };
            let last = if d.count() == first + 2 { Some(d.source(first + 1, WORD)?) } else { None };
            let drop = what == "arrive_drop";
            let (count, expect_tx) = if expects { (one, last) } else { (last.unwrap_or(one), None) };
            (first, Mbarrier::Arrive { count, expect_tx, drop, no_complete, order, state })
        }
        "test_wait" | "try_wait" => {
            d.expect_count(3, 4)?;
            let phase = d.source(2, if parity { WORD } else { LONG })?;
            let (done, may_block) = (d.dest(0, Type::Pred)?, what == "try_wait");
            (1, Mbarrier::TestWait { phase, parity, order, done, may_block })
        }
        "pending_count" => {
            d.expect_count(2, 2)?;
            return Ok(Op::PendingCount { d: d.dest(0, WORD)?, state: d.source(1, LONG)? });
        }
        _ => return Err(d.unsupported()),
    };
    Ok(Op::Mbarrier { space, address: d.address(place)?, op })
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
        return Ok(Op::BulkCommit);
    }
    if d.take("wait_group") {
        d.expect_count(1, 1)?;
        let pending = d.immediate(0)?.min(u64::from(u32::MAX)) as u32;
        return Ok(Op::BulkWait { pending, read: d.take("read") });
    }
    let prefetch = d.take("prefetch");
    if d.take("tensor") { tensor_copy(d, prefetch, reduces) } else { bulk_copy(d, prefetch, reduces) }
}

fn take_reduction(d: &mut Decoder<'_, '_, '_>) -> Option<Reduction> {
    d.take_of(&[
        ("add", Reduction::Add),
        ("min", Reduction::Min),
        ("max", Reduction::Max),
        ("inc", Reduction::Inc),
        ("dec", Reduction::Dec),
        ("and", Reduction::And),
        ("or", Reduction::Or),
        ("xor", Reduction::Xor),
    ])
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
        d.expect_count(1 + mode.operands(), 1 + mode.operands() + hint)?;
        return tensor(d, 0, 1, mode, TensorCodeAction::Prefetch);
    }
    if to_global {
        if !d.take("bulk_group") || reduces != with.is_some() {
            return Err(d.unsupported());
        }
        d.expect_count(2, 2 + hint)?;
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
    d.expect_count(operands, operands + usize::from(multicast) + hint)?;
    let multicast = if multicast { Some(d.source(operands, Type::Bits(16))?) } else { None };
    let action = TensorCodeAction::Load { space, tile: d.address(0)?, barrier: d.address(2)?, multicast };
    tensor(d, 1, 3, mode, action)
}

/// Rank and mode of a tensor copy.
#[derive(Clone, Copy)]
struct CopyMode {
    rank: usize,
    im2col: bool,
    /// Whether there is an operand with the offsets.
    offsets: bool,
}

impl CopyMode {
    /// Operands that the mode adds.
    fn operands(self) -> usize {
        usize::from(self.offsets)
    }
}

/// `.tile`, which may be left out, `.im2col` where the tile is loaded, `.im2col_no_offs` where it is stored.
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

/// The offsets of im2col mode, which follow the other operands.
fn take_offsets(d: &mut Decoder<'_, '_, '_>, index: usize, mode: CopyMode) -> Result<Vec<Row>, LoadError> {
    if !mode.offsets {
        return Ok(Vec::new());
    }
    match d.operand(index)? {
        Operand::Vector(offsets) if offsets.len() == mode.rank - 2 => {
            offsets.iter().map(|offset| d.inner(offset, Type::Bits(16))).collect()
        }
        _ => Err(d.error(format!("{} offsets in braces are wanted", mode.rank - 2))),
    }
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
        _ => return Err(d.error(format!("{rank} coordinates in braces are wanted"))),
    };
    let mut at = Vec::new();
    for coordinate in coordinates {
        at.push(d.inner(coordinate, WORD)?);
    }
    Ok(Op::Tensor(Box::new(TensorCode { map, at, im2col, offsets, action })))
}

fn bulk_copy(d: &mut Decoder<'_, '_, '_>, prefetch: bool, reduces: bool) -> Result<Op, LoadError> {
    if reduces {
        return Err(d.unsupported());
    }
    d.take("L2");
    let hint = usize::from(take_cache_hints(d));
    if prefetch {
        if !d.take("global") {
            return Err(d.unsupported());
        }
        d.expect_count(2, 2 + hint)?;
        let code = BulkCode::Prefetch { from: d.address(0)?, bytes: d.source(1, WORD)? };
        return Ok(Op::Bulk(Box::new(code)));
    }
    let to_cluster = d.take("shared::cluster");
    let in_block = d.take("shared::cta") || d.take("shared");
    let global = d.take("global");
    let global_first =
        d.instruction.modifiers.iter().find(|name| **name == "global" || name.starts_with("shared"))
            == Some(&"global");
    if global_first {
        if !in_block || !d.take("bulk_group") {
            return Err(d.unsupported());
        }
        d.expect_count(3, 3 + hint)?;
        let code = BulkCode::Store { to: d.address(0)?, from: d.address(1)?, bytes: d.source(2, WORD)? };
        return Ok(Op::Bulk(Box::new(code)));
    }
    if !d.take("mbarrier::complete_tx::bytes") {
        return Err(d.unsupported());
    }
    let multicast = d.take("multicast::cluster");
    d.expect_count(4, 4 + usize::from(multicast) + hint)?;
    let (to, from, bytes, barrier) = (d.address(0)?, d.address(1)?, d.source(2, WORD)?, d.address(3)?);
    let code = match (global, to_cluster, in_block) {
        (false, true, true) if !multicast => BulkCode::ToCluster { to, from, bytes, barrier },
        (true, _, _) => {
            let space = if to_cluster { Space::SharedCluster } else { Space::Shared };
            let multicast = if multicast { Some(d.source(4, Type::Bits(16))?) } else { None };
            BulkCode::Load { space, to, from, bytes, barrier, multicast }
        }
        _ => return Err(d.unsupported()),
    };
    Ok(Op::Bulk(Box::new(code)))
}
