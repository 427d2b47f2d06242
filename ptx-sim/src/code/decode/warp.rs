//! Operations across the lanes of a warp and the threads of a block.

use super::access::take_order;
use super::operands::Decoder;
use crate::isa::{
    Alu, BarrierOp, BarrierReduction, BlockBarrier, BlockVote, Collective, Op, Order, Redux, Reg, Shuffle,
    Type, Vote, WarpOp,
};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

const WORD: Type = Type::Bits(32);

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let opcode = d.instruction.opcode;
    match opcode {
        "shfl" => shuffle(d),
        "vote" => vote(d),
        "match" => matching(d),
        "redux" => redux(d),
        "activemask" => {
            d.take("b32");
            Ok(Op::Alu(Alu::ActiveMask { d: d.dest(0, WORD)? }))
        }
        "elect" => elect(d),
        "bar" if d.take("warp") => warp_barrier(d),
        "barrier" if d.take("cluster") => cluster_barrier(d),
        "bar" => block_barrier(d, true),
        "barrier" => block_barrier(d, false),
        _ => Err(d.unsupported()),
    }
}

/// Returns a register, and the predicate after `|` if there is one.
fn with_predicate(d: &mut Decoder<'_, '_, '_>, ty: Type) -> Result<(Reg, Reg), LoadError> {
    let Operand::Pair(value, valid) = d.operand(0)? else { return Ok((d.dest(0, ty)?, Reg::SINK)) };
    let row = if *value == "_" { Reg::SINK } else { d.register(value)?.0 };
    Ok((row, d.predicate(valid)?))
}

fn shuffle(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let sync = d.take("sync");
    let mode = d.take_of(&[
        ("up", Shuffle::Up),
        ("down", Shuffle::Down),
        ("bfly", Shuffle::Butterfly),
        ("idx", Shuffle::Index),
    ]);
    let (Some(mode), true, true) = (mode, sync, d.take("b32")) else { return Err(d.unsupported()) };
    d.expect_count(5, 5)?;
    let (row, valid) = with_predicate(d, WORD)?;
    let (a, b, clamp, mask) =
        (d.source(1, WORD)?, d.source(2, WORD)?, d.source(3, WORD)?, d.source(4, WORD)?);
    Ok(Op::Warp(WarpOp { mask, kind: Collective::Shuffle { mode, d: row, valid, a, b, clamp } }))
}

fn vote(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let sync = d.take("sync");
    let mode = d.take_of(&[
        ("all", Vote::All),
        ("any", Vote::Any),
        ("uni", Vote::Uniform),
        ("ballot", Vote::Ballot),
    ]);
    let (Some(mode), true) = (mode, sync) else { return Err(d.unsupported()) };
    let ty = d.take_type()?;
    d.expect_count(3, 3)?;
    let a = d.guard(1)?;
    let kind = Collective::Vote { mode, d: d.dest(0, ty)?, a };
    Ok(Op::Warp(WarpOp { mask: d.source(2, WORD)?, kind }))
}

fn matching(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let all = d.take_of(&[("all", true), ("any", false)]);
    let (Some(all), true) = (all, d.take("sync")) else { return Err(d.unsupported()) };
    let ty = d.take_type()?;
    d.expect_count(3, 3)?;
    let (row, valid) = with_predicate(d, WORD)?;
    let (a, mask) = (d.source(1, ty)?, d.source(2, WORD)?);
    Ok(Op::Warp(WarpOp { mask, kind: Collective::Match { all, d: row, valid, a } }))
}

fn redux(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("sync") {
        return Err(d.unsupported());
    }
    let ty = d.take_type()?;
    if ty.bits() != 32 || ty.as_integer().is_none() {
        return Err(d.unsupported());
    }
    let signed = ty.is_signed();
    let mode = d.take_of(&[
        ("add", Redux::Add),
        ("min", Redux::Min(signed)),
        ("max", Redux::Max(signed)),
        ("and", Redux::And),
        ("or", Redux::Or),
        ("xor", Redux::Xor),
    ]);
    let mode = mode.ok_or_else(|| d.unsupported())?;
    d.expect_count(3, 3)?;
    let kind = Collective::Redux { mode, d: d.dest(0, ty)?, a: d.source(1, ty)? };
    Ok(Op::Warp(WarpOp { mask: d.source(2, WORD)?, kind }))
}

fn elect(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("sync") {
        return Err(d.unsupported());
    }
    d.expect_count(2, 2)?;
    let Operand::Pair(leader, chosen) = d.operand(0)? else {
        return Err(d.error("expected a register and a predicate"));
    };
    let leader = if *leader == "_" { Reg::SINK } else { d.register(leader)?.0 };
    let kind = Collective::Elect { leader, d: d.predicate(chosen)? };
    Ok(Op::Warp(WarpOp { mask: d.source(1, WORD)?, kind }))
}

fn warp_barrier(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("sync") {
        return Err(d.unsupported());
    }
    d.expect_count(1, 1)?;
    Ok(Op::Warp(WarpOp { mask: d.source(0, WORD)?, kind: Collective::Barrier }))
}

fn cluster_barrier(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let arrive = d.take_of(&[("arrive", true), ("wait", false)]).ok_or_else(|| d.unsupported())?;
    let aligned = d.take("aligned");
    d.expect_count(0, 0)?;
    let default = if arrive { Order::Release } else { Order::Acquire };
    let order = take_order(d).unwrap_or(default);
    match (arrive, order) {
        (true, Order::Release | Order::Relaxed) => {
            Ok(Op::Barrier(BarrierOp::ClusterArrive { order, aligned }))
        }
        (false, Order::Acquire) => Ok(Op::Barrier(BarrierOp::ClusterWait(order))),
        (true, Order::Weak | Order::Acquire | Order::AcqRel) => {
            Err(d.error("expected `.release` or `.relaxed` for an arrival"))
        }
        (false, Order::Weak | Order::Relaxed | Order::Release | Order::AcqRel) => {
            Err(d.error("a wait is `.acquire`"))
        }
    }
}

/// Decodes `bar{.cta}` and `barrier{.cta}`.
fn block_barrier(d: &mut Decoder<'_, '_, '_>, bar: bool) -> Result<Op, LoadError> {
    d.take("cta");
    let aligned = d.take("aligned") || bar;
    let arrive_only = d.take("arrive");
    let reduces = d.take("red");
    if !arrive_only && !reduces && !d.take("sync") {
        return Err(d.unsupported());
    }
    if reduces {
        return reduction(d, aligned);
    }
    d.expect_count(1, 2)?;
    let threads = if d.count() == 2 { Some(d.source(1, WORD)?) } else { None };
    let id = d.source(0, WORD)?;
    let barrier = BlockBarrier { id, threads, arrive_only, aligned, reduction: None };
    Ok(Op::Barrier(BarrierOp::Block(barrier)))
}

fn reduction(d: &mut Decoder<'_, '_, '_>, aligned: bool) -> Result<Op, LoadError> {
    let vote = d.take_of(&[("popc", BlockVote::Count), ("and", BlockVote::All), ("or", BlockVote::Any)]);
    let vote = vote.ok_or_else(|| d.unsupported())?;
    let ty = d.take_type()?;
    d.expect_count(3, 4)?;
    let threads = if d.count() == 4 { Some(d.source(2, WORD)?) } else { None };
    let predicate = d.guard(d.count() - 1)?;
    let id = d.source(1, WORD)?;
    let reduction = Some(BarrierReduction { vote, predicate, d: d.dest(0, ty)? });
    Ok(Op::Barrier(BarrierOp::Block(BlockBarrier { id, threads, arrive_only: false, aligned, reduction })))
}
