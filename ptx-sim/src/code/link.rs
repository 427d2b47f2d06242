//! Links each kernel of a module with the functions that it calls.

use crate::isa::{
    ControlOp, Inst, MemoryOp, Op, Pc, Program, Reg, Site, Slot, SpanCode, Special, WarpgroupOp,
};
use std::collections::{HashMap, HashSet};
use tma_model::span::SpanMark;

use super::decode;
use super::names::{Binding, Builder};
use super::uses::mark_uses;
use crate::parse::LoadError;
use crate::parse::syntax::{Function, Operand, Source, Statement, VariableSpace};

/// A function that is already part of the program.
#[derive(Clone, Debug)]
pub(crate) struct Linked {
    pub(crate) start: Pc,
    pub(crate) link: Reg,
    pub(crate) params: Vec<Formal>,
    pub(crate) returns: Vec<Formal>,
}

/// The location of a function's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Formal {
    Local(Slot),
    Register(Reg, u32),
}

/// The context of a body: its return, and the functions that it may call.
pub(crate) struct Body<'l> {
    /// The register of the return address; `None` for a kernel.
    pub(crate) link: Option<Reg>,
    pub(crate) linked: &'l HashMap<String, Linked>,
}

/// The most instructions of all kernels together, which take half a gigabyte. Each kernel has its
/// own copy of the functions that it calls, so a short text with many kernels could otherwise
/// exhaust memory.
const MOST_INSTRUCTIONS: usize = 1 << 22;

/// Links all kernels of a module.
pub(crate) fn link(source: &Source<'_>) -> Result<Vec<Program>, LoadError> {
    let mut left = MOST_INSTRUCTIONS;
    let entries = source.functions.iter().filter(|function| function.entry && function.body.is_some());
    let programs = entries.map(|entry| {
        let program = kernel(source, entry)?;
        left = left.checked_sub(program.code.len()).ok_or_else(|| {
            let message = format!(
                "the kernels up to `{}`, with the functions that they call, have more than {MOST_INSTRUCTIONS} instructions",
                program.name
            );
            LoadError::new(entry.line, message)
        })?;
        Ok(program)
    });
    programs.collect()
}

fn kernel(source: &Source<'_>, entry: &Function<'_>) -> Result<Program, LoadError> {
    let mut builder = Builder::new(source);
    let mut linked = HashMap::new();
    let mut reached = Reached::default();
    callees_first(source, entry, &mut reached)?;
    for function in reached.order {
        let done = device_function(&mut builder, function, &linked)?;
        linked.insert(function.name.to_owned(), done);
    }
    let start = builder.here();
    let params = kernel_params(entry)?;
    let statements = entry.body.as_deref().unwrap_or_default();
    builder.open(&[])?;
    for (variable, slot) in entry.params.iter().zip(&params) {
        builder.name(variable.name, Binding::Param(*slot));
    }
    block(&mut builder, statements, &Body { link: None, linked: &linked })?;
    builder.close();
    push_end(&mut builder, ControlOp::Exit, entry.line);
    builder.resolve_labels(entry.line)?;
    drop_unread(&mut builder);
    let loads = mark_uses(&mut builder.code);
    let multiplies = keep_tensor_registers(&mut builder.code);
    let dynamic = builder.shared_end.next_multiple_of(builder.dynamic_align.max(1));
    for (_, special) in &mut builder.specials {
        if let Special::DynamicShared(offset) = *special {
            *special = Special::Shared((i64::from(dynamic) + offset) as u32);
        }
    }
    let program = Program {
        name: entry.name.to_owned(),
        code: builder.code,
        entry: start,
        registers: builder.registers,
        constants: builder.constants,
        specials: builder.specials,
        param_bytes: params.last().map_or(0, |last| last.offset + last.bytes),
        params,
        local_bytes: builder.local_bytes,
        dynamic_shared: dynamic,
        required_threads: entry.required_threads,
        most_threads: entry.most_threads,
        required_cluster: entry.required_cluster,
        thread_registers: entry.thread_registers(),
        multiplies,
        loads,
    };
    debug_assert!(program.is_consistent(), "`{}` names what it does not have", program.name);
    Ok(program)
}

/// The greatest depth of nested calls.
const DEEPEST: usize = 200;

/// The functions that a kernel calls.
#[derive(Default)]
struct Reached<'a, 's> {
    /// The functions on the current path, each called by the one before it.
    path: Vec<&'a str>,
    /// The functions that are finished, each after those that it calls, and their names.
    order: Vec<&'a Function<'s>>,
    names: HashSet<&'a str>,
}

/// Adds the functions that `function` calls, and then `function` itself.
fn callees_first<'a, 's>(
    source: &'a Source<'s>,
    function: &'a Function<'s>,
    reached: &mut Reached<'a, 's>,
) -> Result<(), LoadError> {
    let mut calls = Vec::new();
    collect_calls(function.body.as_deref().unwrap_or_default(), &mut calls);
    reached.path.push(function.name);
    for (name, line) in calls {
        let Some(callee) = source.function(name).filter(|callee| !callee.entry) else { continue };
        if reached.path.contains(&name) {
            return Err(LoadError::new(line, format!("`{name}` calls itself: recursion is not supported")));
        }
        if reached.path.len() > DEEPEST {
            return Err(LoadError::new(line, "calls nest too deeply"));
        }
        if !reached.names.contains(name) {
            callees_first(source, callee, reached)?;
        }
    }
    reached.path.pop();
    if !function.entry && reached.names.insert(function.name) {
        reached.order.push(function);
    }
    Ok(())
}

fn collect_calls<'s>(statements: &[Statement<'s>], out: &mut Vec<(&'s str, u32)>) {
    for statement in statements {
        match statement {
            Statement::Block(inner) => collect_calls(inner, out),
            Statement::Instruction(instruction) if instruction.opcode == "call" => {
                for operand in &instruction.operands {
                    if let Operand::Name(name) = operand {
                        out.push((name, instruction.line));
                        break;
                    }
                }
            }
            Statement::Instruction(_)
            | Statement::Label(..)
            | Statement::Registers { .. }
            | Statement::Variable(_)
            | Statement::SourceLine { .. }
            | Statement::SpanMark(..)
            | Statement::Targets(_) => {}
        }
    }
}

fn device_function<'s>(
    builder: &mut Builder<'_, 's>,
    function: &Function<'s>,
    linked: &HashMap<String, Linked>,
) -> Result<Linked, LoadError> {
    let start = builder.here();
    builder.open(&[])?;
    let link = builder.fresh_register();
    let mut formals = |variables: &[crate::parse::syntax::Variable<'s>]| -> Result<Vec<Formal>, LoadError> {
        let mut slots = Vec::new();
        for variable in variables {
            let (formal, named) = if variable.space == VariableSpace::Reg {
                let (reg, bits) = (builder.fresh_register(), variable.scalar_bytes * 8);
                if bits > 64 {
                    let message = "parameters in registers of 128 bits are not supported";
                    return Err(LoadError::new(variable.line, message));
                }
                (Formal::Register(reg, bits), Binding::Register { reg, bits })
            } else {
                let slot = builder.local(variable)?;
                (Formal::Local(slot), Binding::Local(slot))
            };
            builder.name(variable.name, named);
            slots.push(formal);
        }
        Ok(slots)
    };
    let returns = formals(&function.returns)?;
    let params = formals(&function.params)?;
    let statements = function.body.as_deref().unwrap_or_default();
    block(builder, statements, &Body { link: Some(link), linked })?;
    builder.close();
    push_end(builder, ControlOp::Return(link), function.line);
    Ok(Linked { start, link, params, returns })
}

fn kernel_params(entry: &Function<'_>) -> Result<Vec<Slot>, LoadError> {
    let mut end = 0;
    let mut slots = Vec::new();
    for variable in &entry.params {
        let bytes = variable.bytes.filter(|&bytes| bytes <= 32764);
        let bytes = bytes.ok_or_else(|| {
            LoadError::new(variable.line, format!("`{}` is not a kernel parameter", variable.name))
        })?;
        let offset = u64::from(end).next_multiple_of(u64::from(variable.align.max(1)));
        if offset + bytes > 1 << 20 {
            return Err(LoadError::new(variable.line, "too many parameters for a kernel"));
        }
        slots.push(Slot { offset: offset as u32, bytes: bytes as u32 });
        end = (offset + bytes) as u32;
    }
    Ok(slots)
}

fn block<'s>(
    builder: &mut Builder<'_, 's>,
    statements: &[Statement<'s>],
    body: &Body<'_>,
) -> Result<(), LoadError> {
    builder.open(statements)?;
    let mut labelled = None;
    for statement in statements {
        match statement {
            Statement::Label(name, line) => {
                if let Some(Binding::Label(label)) = builder.find(name, *line)? {
                    builder.pass(label);
                }
                labelled = Some(*name);
                continue;
            }
            Statement::Registers { name, count, bits, line } => {
                builder.declare_registers(name, *count, *bits, *line)?;
            }
            Statement::Variable(variable) => builder.variable(variable)?,
            Statement::Block(inner) => block(builder, inner, body)?,
            Statement::SourceLine { file, line } => {
                builder.source_line = Some((*file, *line)).filter(|(_, line)| *line != 0);
            }
            Statement::Targets(names) => {
                let mut targets = Vec::new();
                for name in names {
                    match builder.find(name, 0)? {
                        Some(Binding::Label(label)) => targets.push(label),
                        _ => {
                            return Err(LoadError::new(
                                0,
                                format!("`{name}` of `.branchtargets` is not a label"),
                            ));
                        }
                    }
                }
                if let Some(name) = labelled {
                    builder.name(name, Binding::Targets(targets));
                }
            }
            Statement::Instruction(instruction) => decode::instruction(builder, instruction, body)?,
            Statement::SpanMark(SpanMark { edge, name }, line) => {
                let mark = SpanCode { edge: *edge, name: (*name).into() };
                let site = Site { ptx_line: *line, source: builder.source_line };
                builder.code.push(Inst::new(Op::Control(ControlOp::Mark(Box::new(mark))), None, site));
            }
        }
        labelled = None;
    }
    builder.close();
    Ok(())
}

fn push_end(builder: &mut Builder<'_, '_>, end: ControlOp, line: u32) {
    let site = builder.code.last().map_or(Site { ptx_line: line, source: None }, |last| last.site);
    builder.code.push(Inst::new(Op::Control(end), None, site));
}

/// Restricts vector loads to the elements that are used. Compilers widen a load to a power of two
/// and ignore the rest, which may never have been written.
fn drop_unread(builder: &mut Builder<'_, '_>) {
    let mut code = std::mem::take(&mut builder.code);
    for inst in &mut code {
        if let Op::Memory(MemoryOp::Load(access)) = &mut inst.op
            && access.count > 1
        {
            for reg in &mut access.registers[..access.count as usize] {
                if builder.is_unread(*reg) {
                    *reg = Reg::SINK;
                }
            }
        }
    }
    builder.code = code;
}

/// Restricts the registers that instructions name to those that tensor cores access asynchronously.
/// Returns whether there are any.
fn keep_tensor_registers(code: &mut [Inst]) -> bool {
    let mut tensor = HashSet::new();
    for inst in code.iter() {
        if let Op::Warpgroup(op) = &inst.op {
            tensor.extend(op.tensor_registers());
        }
    }
    for inst in code {
        let named = inst.touches.take().unwrap_or_default();
        // A multiplication tracks the registers that it names itself.
        if let Op::Warpgroup(WarpgroupOp::Multiply(_)) = &inst.op {
            continue;
        }
        let kept: Vec<Reg> = named.iter().copied().filter(|reg| tensor.contains(reg)).collect();
        inst.touches = (!kept.is_empty()).then(|| kept.into());
    }
    !tensor.is_empty()
}
