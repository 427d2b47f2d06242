//! Registers of 128 bits, each of which takes two consecutive registers, the lower half first.

use super::operands::Decoder;
use crate::isa::{Access, AccessOrder, Address, Alu, Memory, MemoryOp, Op, Reg, Type, WideAtomic};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

/// Decodes `mov.b128`: between registers, or to and from two or four parts.
pub(super) fn moved(d: &mut Decoder<'_, '_, '_>) -> Result<Vec<Op>, LoadError> {
    d.take("b128");
    d.expect_count(2, 2)?;
    let (to, from) = (d.operand(0)?, d.operand(1)?);
    let ty = Type::B128;
    match (to, from) {
        (Operand::Vector(parts), _) => {
            let rows = parts_of(d, parts, true)?;
            let from = source(d, 1)?;
            Ok(halves(&rows, from)
                .map(|(parts, half)| match parts[..] {
                    [part] => Op::Alu(Alu::copy(part, half)),
                    _ => Op::Alu(Alu::Unpack { bits: 32, parts, a: half }),
                })
                .into())
        }
        (_, Operand::Vector(parts)) => {
            let rows = parts_of(d, parts, false)?;
            let to = d.dest(0, ty)?;
            Ok(halves(&rows, to)
                .map(|(parts, half)| match parts[..] {
                    [part] => Op::Alu(Alu::copy(half, part)),
                    _ => Op::Alu(Alu::Pack { bits: 32, d: half, parts }),
                })
                .into())
        }
        (_, Operand::Integer(value)) => {
            let to = d.dest(0, ty)?;
            let (lower, upper) = (d.builder.bits(*value), d.builder.bits(0));
            Ok(vec![Op::Alu(Alu::copy(to, lower)), Op::Alu(Alu::copy(to.upper(), upper))])
        }
        _ => {
            let (to, from) = (d.dest(0, ty)?, source(d, 1)?);
            Ok(vec![Op::Alu(Alu::copy(to, from)), Op::Alu(Alu::copy(to.upper(), from.upper()))])
        }
    }
}

/// Returns a 128-bit register to read. There are no 128-bit constants.
pub(super) fn source(d: &mut Decoder<'_, '_, '_>, index: usize) -> Result<Reg, LoadError> {
    let row = d.source(index, Type::B128)?;
    if row.as_constant().is_none() { Ok(row) } else { Err(d.error("expected a register of 128 bits")) }
}

/// Returns two 64-bit registers or four 32-bit ones.
fn parts_of<'s>(
    d: &mut Decoder<'_, '_, 's>,
    parts: &[Operand<'s>],
    written: bool,
) -> Result<Vec<Reg>, LoadError> {
    if !matches!(parts.len(), 2 | 4) {
        return Err(d.error("expected two parts of 64 bits or four of 32"));
    }
    let bits = 128 / parts.len() as u32;
    let part = |operand| {
        if written { Ok(d.wide_dest(operand, bits)?.0) } else { d.inner(operand, Type::Bits(bits)) }
    };
    parts.iter().map(part).collect()
}

/// Pairs the parts of each half of a register with that half.
fn halves(rows: &[Reg], register: Reg) -> [(Vec<Reg>, Reg); 2] {
    let (lower, upper) = rows.split_at(rows.len() / 2);
    [(lower.to_vec(), register), (upper.to_vec(), register.upper())]
}

/// Returns a 128-bit load or store, as an access to two 64-bit elements.
pub(super) fn access(memory: Memory, order: AccessOrder, address: Address, row: Reg) -> Access {
    let mut registers = [Reg::SINK; 8];
    (registers[0], registers[1]) = (row, row.upper());
    Access {
        memory,
        order,
        bytes: 8,
        count: 2,
        address,
        registers,
        extend: None,
        is_scalar: true,
        is_non_coherent: false,
    }
}

/// Decodes `atom.exch.b128` and `atom.cas.b128`.
pub(super) fn atomic(
    d: &mut Decoder<'_, '_, '_>,
    name: &str,
    order: AccessOrder,
    memory: Memory,
    hint: bool,
) -> Result<Op, LoadError> {
    let (ty, compares) = (Type::B128, name == "cas");
    let Memory::Machine(space) = memory else { return Err(d.unsupported()) };
    if !compares && name != "exch" {
        return Err(d.error("only `exch` and `cas` support 128 bits"));
    }
    let count = 3 + usize::from(compares) + usize::from(hint);
    d.expect_count(count, count)?;
    super::access::check_policy(d, hint)?;
    let (row, address) = (d.dest(0, ty)?, d.address(1)?);
    let compare = if compares { Some(source(d, 2)?) } else { None };
    let new = source(d, 2 + usize::from(compares))?;
    let wide = WideAtomic { space, order, address, d: row, compare, new };
    Ok(Op::Memory(MemoryOp::WideAtomic(Box::new(wide))))
}
