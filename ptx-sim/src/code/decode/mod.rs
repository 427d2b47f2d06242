//! Decoding of instructions: from an opcode with its modifiers and operands to an operation.
//!
//! The decoder of an opcode must take every modifier. Any that remain are an error, so that nothing
//! that is not simulated can be skipped.

mod access;
mod arithmetic;
mod asynchronous;
mod bulk;
mod cache;
mod control;
mod convert;
mod copy_async;
mod logic;
mod matrix;
mod mbarrier;
mod mma;
mod operands;
mod remote;
mod tensor_map;
mod warp;
mod warpgroup;
mod wide;

use super::link::Body;
use super::names::Builder;
use crate::isa::{ControlOp, Guard, Inst, Op, Site};
use crate::parse::LoadError;
use crate::parse::syntax::Instruction;
use operands::Decoder;

/// Decodes one instruction, and appends it to the program. An instruction that a kernel wrote
/// itself, and that is not supported, is an error only for a launch that executes it.
pub(crate) fn instruction<'s>(
    builder: &mut Builder<'_, 's>,
    instruction: &Instruction<'s>,
    body: &Body<'_>,
) -> Result<(), LoadError> {
    builder.named.clear();
    let mut decoder = Decoder::new(builder, instruction);
    let guard = match instruction.guard {
        Some(guard) => Some(Guard { reg: decoder.predicate(guard.name)?, negated: guard.negated }),
        None => None,
    };
    let ops = decode(&mut decoder, body).and_then(|ops| decoder.finish().map(|()| ops));
    let ops = match ops {
        Err(error) if decoder.builder.source.own_lines.contains(&instruction.line) => {
            vec![Op::Control(ControlOp::Unsupported(error.message.into()))]
        }
        ops => ops?,
    };
    let site = Site { ptx_line: instruction.line, source: builder.source_line };
    let named = std::mem::take(&mut builder.named);
    let touches = |op| Inst { touches: Some(named.as_slice().into()), ..Inst::new(op, guard, site) };
    builder.code.extend(ops.into_iter().map(touches));
    Ok(())
}

fn decode(d: &mut Decoder<'_, '_, '_>, body: &Body<'_>) -> Result<Vec<Op>, LoadError> {
    let op = match d.instruction.opcode {
        "add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "mad" | "fma" | "mul24" | "mad24" | "sad"
        | "abs" | "neg" | "sqrt" | "rcp" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "addc"
        | "subc" | "madc" | "copysign" | "testp" | "dp2a" | "dp4a" | "vabsdiff4" => arithmetic::decode(d)?,
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "popc" | "clz" | "bfind" | "brev" | "bfe"
        | "bfi" | "prmt" | "shf" | "lop3" | "fns" | "bmsk" | "selp" | "slct" | "setp" | "set" => {
            logic::decode(d)?
        }
        "mov" if d.instruction.modifiers.as_slice() == ["b128"] => return wide::moved(d),
        "cvt" | "mov" | "cvta" | "isspacep" | "mapa" | "getctarank" => convert::decode(d)?,
        "ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" | "discard" | "applypriority"
        | "createpolicy" => access::decode(d)?,
        "ldmatrix" | "stmatrix" | "movmatrix" => matrix::decode(d)?,
        "cp" | "mbarrier" | "fence" | "membar" => asynchronous::decode(d)?,
        "tensormap" => tensor_map::decode(d)?,
        "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" | "bar" | "barrier" => warp::decode(d)?,
        "mma" => mma::decode(d)?,
        "wgmma" => warpgroup::decode(d)?,
        "setmaxnreg" => warpgroup::registers(d)?,
        "bra" | "brx" | "ret" | "exit" | "trap" | "brkpt" | "nanosleep" | "pmevent" | "griddepcontrol" => {
            control::decode(d, body)?
        }
        "call" => return control::call(d, body),
        _ => return Err(d.unsupported()),
    };
    Ok(vec![op])
}
