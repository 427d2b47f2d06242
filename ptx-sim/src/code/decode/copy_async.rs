//! `cp.async` without `.bulk`, and the instructions that track its completion.

use super::access::{check_policy, take_cache_hints};
use super::asynchronous::take_shared;
use super::operands::Decoder;
use crate::code::names::Binding;
use crate::isa::{CopyAsyncOp, CopyCode, Op, Space, Type};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if d.take("commit_group") {
        d.expect_count(0, 0)?;
        return Ok(Op::CopyAsync(CopyAsyncOp::Commit));
    }
    if d.take("wait_all") {
        d.expect_count(0, 0)?;
        return Ok(Op::CopyAsync(CopyAsyncOp::Wait(None)));
    }
    if d.take("wait_group") {
        d.expect_count(1, 1)?;
        let pending = d.immediate(0)?.min(u64::from(u32::MAX)) as u32;
        return Ok(Op::CopyAsync(CopyAsyncOp::Wait(Some(pending))));
    }
    if d.take("mbarrier") { arrive(d) } else { copy(d) }
}

fn arrive(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let (arrives, no_increment) = (d.take("arrive"), d.take("noinc"));
    let space = take_shared(d);
    if !arrives || space == Space::SharedCluster || !d.take("b64") {
        return Err(d.unsupported());
    }
    d.expect_count(1, 1)?;
    Ok(Op::CopyAsync(CopyAsyncOp::Arrive { space, address: d.address(0)?, no_increment }))
}

fn copy(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let all_levels = d.take_of(&[("ca", true), ("cg", false)]);
    let shared = d.take("shared") || d.take("shared::cta");
    let (Some(all_levels), true, true) = (all_levels, shared, d.take("global")) else {
        return Err(d.unsupported());
    };
    let hint = usize::from(take_cache_hints(d));
    d.expect_count(3 + hint, 4 + hint)?;
    let bytes = match (d.immediate(2)?, all_levels) {
        (bytes @ (4 | 8), true) => bytes as u32,
        (16, _) => 16,
        (_, true) => return Err(d.error("expected 4, 8 or 16 bytes")),
        (_, false) => return Err(d.error("expected 16 bytes; only `.ca` supports 4 or 8")),
    };
    let (mut read, mut ignore) = (None, None);
    if d.count() > 3 + hint {
        if is_predicate(d)? {
            ignore = Some(d.guard(3)?);
        } else {
            read = Some(d.source(3, Type::Bits(32))?);
        }
    }
    check_policy(d, hint == 1)?;
    let code = CopyCode { to: d.address(0)?, from: d.address(1)?, bytes, read, ignore };
    Ok(Op::CopyAsync(CopyAsyncOp::Copy(code)))
}

/// Returns whether the operand after the size is `ignore-src`, a predicate, rather than `src-size`.
fn is_predicate(d: &mut Decoder<'_, '_, '_>) -> Result<bool, LoadError> {
    let operand = d.operand(3)?;
    let Operand::Name(name) = operand else { return Ok(matches!(operand, Operand::Not(_))) };
    let found = d.builder.find(name, d.instruction.line)?;
    Ok(matches!(found, Some(Binding::Register { bits: 1, .. })))
}
