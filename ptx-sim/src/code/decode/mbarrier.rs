//! Instructions on mbarriers.

use super::access::{take_order, take_scope};
use super::asynchronous::take_shared;
use super::operands::Decoder;
use crate::isa::{MbarrierAction, MbarrierOp, Op, Order, Reg, Scope, Semantics, Space, Type};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

const WORD: Type = Type::Bits(32);
const LONG: Type = Type::Bits(64);

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let name = d.take_first().ok_or_else(|| d.unsupported())?;
    if name == "pending_count" {
        if !d.take("b64") {
            return Err(d.unsupported());
        }
        d.expect_count(2, 2)?;
        return Ok(Op::Mbarrier(MbarrierOp::PendingCount { d: d.dest(0, WORD)?, state: d.source(1, LONG)? }));
    }
    let (place, space, action) = match name {
        "init" | "inval" => place(d, name)?,
        "expect_tx" | "complete_tx" => bytes(d, name)?,
        "arrive" | "arrive_drop" => arrive(d, name)?,
        "test_wait" | "try_wait" => wait(d, name)?,
        _ => return Err(d.unsupported()),
    };
    if !d.take("b64") {
        return Err(d.unsupported());
    }
    Ok(Op::Mbarrier(MbarrierOp::At { space, address: d.address(place)?, action }))
}

/// The index of the address operand, its state space, and the operation.
type Parts = (usize, Space, MbarrierAction);

/// Takes the state space of an operation that only threads of the mbarrier's own block may execute.
fn take_own(d: &mut Decoder<'_, '_, '_>) -> Result<Space, LoadError> {
    match take_shared(d) {
        Space::SharedCluster => {
            Err(d.error("expected `.shared::cta`: this is for mbarriers of the thread's own block"))
        }
        space @ (Space::Global | Space::Shared | Space::Generic) => Ok(space),
    }
}

/// Takes `.sem` and `.scope`. Either both or none are present, and `.sem` is one of two. The
/// default scope is `.cta`.
fn take_semantics(d: &mut Decoder<'_, '_, '_>, default: Order) -> Result<Semantics, LoadError> {
    let named = |d: &Decoder<'_, '_, '_>, names: &[&str]| {
        d.instruction.modifiers.iter().any(|modifier| names.contains(modifier))
    };
    let (sem, scoped) = (named(d, &["relaxed", "acquire", "release"]), named(d, &["cta", "cluster"]));
    let scope = if named(d, &["cluster"]) { Scope::Cluster } else { Scope::Block };
    let order = take_order(d).unwrap_or(default);
    take_scope(d);
    if sem != scoped {
        return Err(
            d.error("`.sem` and `.scope` must be used together, and the scope must be `.cta` or `.cluster`")
        );
    }
    if order != default && order != Order::Relaxed {
        return Err(d.error(
            "expected `.release` or `.relaxed` for an arrival, and `.acquire` or `.relaxed` for a wait",
        ));
    }
    Ok(Semantics { order, scope })
}

fn place(d: &mut Decoder<'_, '_, '_>, name: &str) -> Result<Parts, LoadError> {
    let space = take_own(d)?;
    if name == "inval" {
        d.expect_count(1, 1)?;
        return Ok((0, space, MbarrierAction::Invalidate));
    }
    d.expect_count(2, 2)?;
    Ok((0, space, MbarrierAction::Init { count: d.source(1, WORD)? }))
}

fn bytes(d: &mut Decoder<'_, '_, '_>, name: &str) -> Result<Parts, LoadError> {
    if take_semantics(d, Order::Relaxed)?.order != Order::Relaxed {
        return Err(d.unsupported());
    }
    let space = take_shared(d);
    d.expect_count(2, 2)?;
    let bytes = d.source(1, WORD)?;
    let op = if name == "expect_tx" {
        MbarrierAction::ExpectTx { bytes }
    } else {
        MbarrierAction::CompleteTx { bytes }
    };
    Ok((0, space, op))
}

fn arrive(d: &mut Decoder<'_, '_, '_>, name: &str) -> Result<Parts, LoadError> {
    let (expects, no_complete) = (d.take("expect_tx"), d.take("noComplete"));
    let semantics = take_semantics(d, Order::Release)?;
    let space = take_shared(d);
    let last = match (expects, no_complete) {
        (true, true) => return Err(d.error("`.expect_tx` and `.noComplete` cannot be combined")),
        (false, false) => {
            d.expect_count(2, 3)?;
            if d.count() == 3 { Some(d.source(2, WORD)?) } else { None }
        }
        _ => {
            d.expect_count(3, 3)?;
            Some(d.source(2, WORD)?)
        }
    };
    let sink = matches!(d.operand(0)?, Operand::Nothing);
    if space == Space::SharedCluster && (!sink || no_complete) {
        return Err(d.error("expected the sink `_`: an arrival at another block's mbarrier returns no state"));
    }
    let state = if sink { Reg::SINK } else { d.dest(0, LONG)? };
    let one = d.builder.bits(1);
    let (count, expect_tx) = if expects { (one, last) } else { (last.unwrap_or(one), None) };
    let drop = name == "arrive_drop";
    Ok((1, space, MbarrierAction::Arrive { count, expect_tx, drop, no_complete, semantics, state }))
}

fn wait(d: &mut Decoder<'_, '_, '_>, name: &str) -> Result<Parts, LoadError> {
    let (parity, may_block) = (d.take("parity"), name == "try_wait");
    let semantics = take_semantics(d, Order::Acquire)?;
    let space = take_own(d)?;
    // The hardware decides how long this may wait. Here it waits until nothing else can make
    // progress.
    d.expect_count(3, 3 + usize::from(may_block))?;
    if d.count() == 4 {
        d.source(3, WORD)?;
    }
    let phase = d.source(2, if parity { WORD } else { LONG })?;
    Ok((
        1,
        space,
        MbarrierAction::TestWait { phase, parity, semantics, done: d.dest(0, Type::Pred)?, may_block },
    ))
}
