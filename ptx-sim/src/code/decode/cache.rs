//! Cache instructions: prefetches, policies, priorities, `discard`.

use super::operands::Decoder;
use crate::isa::{Alu, ControlOp, MemoryOp, Op, Reg, Type};
use crate::parse::LoadError;

/// The only size that `discard` and `applypriority` accept. Source: PTX ISA, both.
const LINE: u64 = 128;

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    match d.instruction.opcode {
        "prefetch" => prefetch(d),
        "prefetchu" => {
            let level = d.take("L1");
            d.expect_count(1, 1)?;
            d.address(0)?;
            if level { Ok(Op::Control(ControlOp::Nothing)) } else { Err(d.unsupported()) }
        }
        "discard" => {
            d.take("global");
            if !d.take("L2") {
                return Err(d.unsupported());
            }
            line(d, true)
        }
        "applypriority" => {
            d.take("global");
            if !d.take("L2::evict_normal") {
                return Err(d.unsupported());
            }
            line(d, false)
        }
        _ => policy(d),
    }
}

/// Decodes prefetches, which have no observable effect.
fn prefetch(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let space = d.take_of(&[
        ("global", "data"),
        ("local", "data"),
        ("const", "map"),
        ("param", "map"),
        ("param::entry", "map"),
    ]);
    let target = d.take_of(&[
        ("L1", "data"),
        ("L2", "data"),
        ("L2::evict_last", "data"),
        ("L2::evict_normal", "data"),
        ("tensormap", "map"),
    ]);
    d.expect_count(1, 1)?;
    d.address(0)?;
    if target.is_none() || space.is_some_and(|space| Some(space) != target) {
        return Err(d.unsupported());
    }
    Ok(Op::Control(ControlOp::Nothing))
}

fn line(d: &mut Decoder<'_, '_, '_>, discards: bool) -> Result<Op, LoadError> {
    d.expect_count(2, 2)?;
    if d.immediate(1)? != LINE {
        return Err(d.error("expected 128 bytes"));
    }
    Ok(Op::Memory(MemoryOp::CacheLine { address: d.address(0)?, discards }))
}

/// Decodes `createpolicy`, whose result has no effect in the simulator.
fn policy(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let fraction = d.take_of(&[("fractional", true), ("range", false)]);
    let ty = Type::Bits(64);
    match fraction {
        None => {
            if !d.take("cvt") || !d.take("L2") {
                return Err(d.unsupported());
            }
            d.expect_count(2, 2)?;
            d.source(1, ty)?;
        }
        Some(fractional) => {
            take_priorities(d)?;
            if fractional {
                d.expect_count(1, 2)?;
                if d.count() == 2 {
                    d.source(1, Type::Float(crate::isa::float::FloatType::F32))?;
                }
            } else {
                d.take("global");
                d.expect_count(4, 4)?;
                d.address(1)?;
                d.source(2, Type::Bits(32))?;
                d.source(3, Type::Bits(32))?;
            }
        }
    }
    if !d.take("b64") {
        return Err(d.unsupported());
    }
    let zero: Reg = d.builder.bits(0);
    Ok(Op::Alu(Alu::copy(d.dest(0, ty)?, zero)))
}

/// Takes the primary priority and, optionally, one of two secondary ones.
fn take_priorities(d: &mut Decoder<'_, '_, '_>) -> Result<(), LoadError> {
    const ALL: [&str; 4] = ["L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"];
    let named: Vec<&str> =
        d.instruction.modifiers.iter().copied().filter(|name| ALL.contains(name)).collect();
    for name in &named {
        d.take(name);
    }
    match named.as_slice() {
        [_] | [_, "L2::evict_first" | "L2::evict_unchanged"] => Ok(()),
        _ => Err(d.error(
            "expected a primary priority, and a secondary one that is `evict_first` or `evict_unchanged`",
        )),
    }
}
