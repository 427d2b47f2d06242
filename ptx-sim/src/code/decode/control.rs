//! Branches, calls, and instructions that end a thread.

use super::operands::Decoder;
use crate::code::link::{Body, Formal};
use crate::code::names::Binding;
use crate::isa::{
    Access, AccessOrder, Address, Alu, Assertion, ControlOp, Memory, MemoryOp, Op, Pc, Reg, Slot, Type,
};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>, body: &Body<'_>) -> Result<Op, LoadError> {
    match d.instruction.opcode {
        "bra" => {
            d.take("uni");
            d.expect_count(1, 1)?;
            let label = d.label(0)?;
            d.builder.branches_to(vec![label]);
            Ok(Op::Control(ControlOp::Branch(Pc(0))))
        }
        "brx" => branch_indexed(d),
        "ret" => {
            d.take("uni");
            Ok(Op::Control(body.link.map_or(ControlOp::Exit, ControlOp::Return)))
        }
        "exit" => Ok(Op::Control(ControlOp::Exit)),
        "trap" => {
            let remark = d.builder.source.remarks.get(&d.instruction.line);
            let assertion = remark
                .map(|remark| Assertion { location: remark.location.into(), message: remark.message.into() });
            Ok(Op::Control(ControlOp::Trap(assertion.map(Box::new))))
        }
        "nanosleep" => {
            d.expect_count(1, 1)?;
            d.source(0, Type::Bits(32))?;
            if d.take("u32") { Ok(Op::Control(ControlOp::Yield)) } else { Err(d.unsupported()) }
        }
        "griddepcontrol" => {
            d.expect_count(0, 0)?;
            // A grid starts here only after those before it have ended, so there is nothing to wait
            // for and nothing to release.
            match d.take_of(&[("wait", ()), ("launch_dependents", ())]) {
                Some(()) => Ok(Op::Control(ControlOp::Nothing)),
                None => Err(d.unsupported()),
            }
        }
        // A breakpoint or a performance counter event does not affect results.
        "brkpt" | "pmevent" => {
            d.take("mask");
            Ok(Op::Control(ControlOp::Nothing))
        }
        _ => Err(d.unsupported()),
    }
}

fn branch_indexed(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    d.take("idx");
    d.take("uni");
    d.expect_count(2, 2)?;
    let index = d.source(0, Type::Bits(32))?;
    let Operand::Name(name) = d.operand(1)? else { return Err(d.error("expected a list of targets")) };
    match d.builder.find(name, d.instruction.line)? {
        Some(Binding::Targets(labels)) => {
            let targets = vec![Pc(0); labels.len()];
            d.builder.branches_to(labels);
            Ok(Op::Control(ControlOp::BranchIndexed { index, targets }))
        }
        _ => Err(d.error(format!("`{name}` is not a list of targets"))),
    }
}

/// The operands of a call: results, name, arguments.
type Call<'a, 's> = (&'a [Operand<'s>], &'s str, &'a [Operand<'s>]);

fn parts<'a, 's>(d: &Decoder<'a, '_, 's>) -> Result<Call<'a, 's>, LoadError> {
    match d.instruction.operands.as_slice() {
        [Operand::List(results), Operand::Name(name), Operand::List(args)] => Ok((results, name, args)),
        [Operand::List(results), Operand::Name(name)] => Ok((results, name, &[])),
        [Operand::Name(name), Operand::List(args)] => Ok((&[], name, args)),
        [Operand::Name(name)] => Ok((&[], name, &[])),
        _ => Err(d.error("calls through a register are not supported")),
    }
}

/// Decodes a call: the arguments are copied into the function's parameters, and the results back.
pub(super) fn call(d: &mut Decoder<'_, '_, '_>, body: &Body<'_>) -> Result<Vec<Op>, LoadError> {
    d.take("uni");
    let (results, name, args) = parts(d)?;
    if let Some(op) = provided(d, results, name, args)? {
        return Ok(vec![op]);
    }
    let Some(callee) = body.linked.get(name) else {
        return Err(d.error(format!("`{name}` is called but not defined")));
    };
    if callee.params.len() != args.len() || callee.returns.len() < results.len() {
        return Err(d.error(format!("`{name}` has other parameters")));
    }
    let mut ops = Vec::new();
    for (formal, actual) in callee.params.iter().zip(args) {
        ops.push(pass(d, *formal, actual)?);
    }
    ops.push(Op::Control(ControlOp::Call { start: callee.start, link: callee.link }));
    for (formal, actual) in callee.returns.iter().zip(results) {
        ops.push(take_back(d, *formal, actual)?);
    }
    Ok(ops)
}

fn local(d: &mut Decoder<'_, '_, '_>, operand: &Operand<'_>) -> Result<Option<Slot>, LoadError> {
    let Operand::Name(name) = operand else { return Ok(None) };
    match d.builder.find(name, d.instruction.line)? {
        Some(Binding::Local(place)) => Ok(Some(place)),
        _ => Ok(None),
    }
}

fn pass<'s>(d: &mut Decoder<'_, '_, 's>, formal: Formal, actual: &Operand<'s>) -> Result<Op, LoadError> {
    match (formal, local(d, actual)?) {
        (Formal::Local(to), Some(from)) => Ok(Op::Memory(MemoryOp::CopyLocal {
            from: from.offset,
            to: to.offset,
            bytes: to.bytes.min(from.bytes),
        })),
        (Formal::Local(to), None) if matches!(to.bytes, 1 | 2 | 4 | 8) => {
            let value = d.wide_source(actual, Type::Bits(to.bytes * 8))?;
            Ok(Op::Memory(MemoryOp::Store(in_local(d, to, value))))
        }
        (Formal::Register(to, bits), None) => {
            let ty = if bits == 1 { Type::Pred } else { Type::Bits(bits) };
            Ok(Op::Alu(Alu::copy(to, d.inner(actual, ty)?)))
        }
        _ => Err(d.error("this argument is of another kind than the parameter")),
    }
}

fn take_back<'s>(d: &mut Decoder<'_, '_, 's>, formal: Formal, actual: &Operand<'s>) -> Result<Op, LoadError> {
    match (formal, local(d, actual)?) {
        (Formal::Local(from), Some(to)) => Ok(Op::Memory(MemoryOp::CopyLocal {
            from: from.offset,
            to: to.offset,
            bytes: to.bytes.min(from.bytes),
        })),
        (Formal::Local(from), None) if matches!(from.bytes, 1 | 2 | 4 | 8) => {
            let (row, _) = d.wide_dest(actual, from.bytes * 8)?;
            Ok(Op::Memory(MemoryOp::Load(in_local(d, from, row))))
        }
        (Formal::Register(from, bits), None) => {
            let (row, _) = d.wide_dest(actual, bits)?;
            Ok(Op::Alu(Alu::copy(row, from)))
        }
        _ => Err(d.error("this result is of another kind than the function's")),
    }
}

fn in_local(d: &mut Decoder<'_, '_, '_>, Slot { offset, bytes }: Slot, reg: Reg) -> Access {
    let mut registers = [Reg::SINK; 8];
    registers[0] = reg;
    let address = Address { base: d.builder.bits(u64::from(offset)), offset: 0 };
    Access {
        memory: Memory::Local,
        order: AccessOrder::WEAK,
        bytes,
        count: 1,
        address,
        registers,
        extend: None,
        is_scalar: true,
        is_non_coherent: false,
    }
}

/// Decodes calls of the functions that CUDA's device runtime provides.
fn provided(
    d: &mut Decoder<'_, '_, '_>,
    results: &[Operand<'_>],
    name: &str,
    args: &[Operand<'_>],
) -> Result<Option<Op>, LoadError> {
    if d.builder.source.function(name).is_some() || !matches!(name, "vprintf" | "__assertfail") {
        return Ok(None);
    }
    let mut slots = Vec::new();
    for arg in args {
        slots.push(local(d, arg)?.ok_or_else(|| d.error("the arguments must be `.param` variables"))?.offset);
    }
    let result = match results.first() {
        Some(operand) => local(d, operand)?.map(|slot| slot.offset),
        None => None,
    };
    match (name, slots.as_slice()) {
        ("vprintf", &[format, args]) => Ok(Some(Op::Control(ControlOp::Printf { format, args, result }))),
        ("__assertfail", &[message, file, line, function, _]) => {
            Ok(Some(Op::Control(ControlOp::AssertFail { message, file, line, function })))
        }
        _ => Err(d.error(format!("`{name}` has other parameters"))),
    }
}
