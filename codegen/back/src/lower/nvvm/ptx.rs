//! Instructions that a kernel writes itself. Their text is the kernel's.

use std::fmt::Write as _;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};
use tma_front::ir::{Ptx, PtxPiece};
use tma_model::own_ptx::OWN_LINE;

use super::Operand;
use crate::lower::{Cx, Lower};

/// The outputs of a `ptx!`, and its inputs with their values.
pub(in crate::lower) struct PtxOperands<'c> {
    pub(in crate::lower) outputs: Vec<Operand>,
    pub(in crate::lower) inputs: Vec<(Operand, BasicValueEnum<'c>)>,
}

/// Emits the instructions of a `ptx!`. Returns the values of its outputs.
pub(in crate::lower) fn ptx<'c>(
    cx: &Cx<'c, '_>,
    ptx: &Ptx,
    operands: &PtxOperands<'c>,
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let PtxOperands { outputs, inputs } = operands;
    let types: Vec<BasicMetadataTypeEnum<'c>> = inputs.iter().map(|input| input.0.ty(cx).into()).collect();
    let results: Vec<BasicTypeEnum<'c>> = outputs.iter().map(|output| output.ty(cx)).collect();
    let ty = match results[..] {
        [] => cx.context.void_type().fn_type(&types, false),
        [one] => one.fn_type(&types, false),
        _ => cx.context.struct_type(&results, false).fn_type(&types, false),
    };
    let has_effects = ptx.has_effects();
    let (text, constraints) = (text(ptx), constraints(ptx, operands));
    let assembly = cx.context.create_inline_asm(ty, text, constraints, has_effects, false, None, false);
    let args: Vec<BasicMetadataValueEnum<'c>> = inputs.iter().map(|input| input.1.into()).collect();
    let call = cx.builder.build_indirect_call(ty, assembly, &args, "")?;
    // A template without effects is a function of its inputs. The value of the `memory` attribute
    // is a set of accesses, and 0 is the empty set. Any other may synchronise threads.
    let attributes: &[&str] =
        if has_effects { &["nounwind", "convergent"] } else { &["nounwind", "willreturn", "memory"] };
    for name in attributes {
        let attribute = cx.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        call.add_attribute(AttributeLoc::Function, attribute);
    }
    let Some(result) = call.try_as_basic_value().basic() else { return Ok(vec![]) };
    if outputs.len() == 1 {
        return Ok(vec![result]);
    }
    let all = result.into_struct_value();
    let parts = (0..).zip(outputs).map(|(at, _)| Ok(cx.builder.build_extract_value(all, at, "")?));
    parts.collect()
}

/// Returns the template for LLVM, where `${n}` is an operand, outputs first, and `$$` a dollar
/// sign. Its lines are marked.
fn text(ptx: &Ptx) -> String {
    let mut text = String::new();
    for piece in &ptx.pieces {
        match piece {
            PtxPiece::Text(piece) => text += &piece.replace('$', "$$"),
            PtxPiece::Output(at) => _ = write!(text, "${{{at}}}"),
            PtxPiece::Input(at) => {
                _ = write!(text, "${{{}}}", tied(ptx, *at).unwrap_or(ptx.outputs.len() + at));
            }
        }
    }
    let lines: Vec<_> = text.lines().map(|line| line.to_owned() + OWN_LINE).collect();
    lines.join("\n\t")
}

/// Returns the output that begins with input number `at`: both are in one register.
fn tied(ptx: &Ptx, at: usize) -> Option<usize> {
    ptx.outputs.iter().position(|output| output.initial == Some(at))
}

/// Returns the constraint string for LLVM. With `&` an output shares no register with an input: a
/// template may write it before it reads the inputs.
fn constraints(ptx: &Ptx, operands: &PtxOperands<'_>) -> String {
    let outputs = operands.outputs.iter().map(|output| format!("=&{}", output.constraint()));
    let inputs = operands.inputs.iter().enumerate().map(|(at, input)| {
        tied(ptx, at).map_or_else(|| input.0.constraint().to_owned(), |output| output.to_string())
    });
    let clobber = ptx.has_effects().then(|| "~{memory}".to_owned());
    outputs.chain(inputs).chain(clobber).collect::<Vec<_>>().join(",")
}
