//! `ldmatrix`, `stmatrix`, `movmatrix`.

use super::operands::Decoder;
use crate::isa::{Collective, MatrixCode, Op, Space, Type, WarpOp};
use crate::parse::LoadError;

const WORD: Type = Type::Bits(32);

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let together = d.take("sync") && d.take("aligned");
    if !together || !d.take("m8n8") {
        return Err(d.error("expected `.sync.aligned.m8n8`: sm_90 has no other form"));
    }
    let code = match d.instruction.opcode {
        "ldmatrix" => moved(d, true)?,
        "stmatrix" => moved(d, false)?,
        _ => {
            if !d.take("trans") {
                return Err(d.error("expected `.trans`"));
            }
            d.expect_count(2, 2)?;
            MatrixCode::Move { d: d.dest(0, WORD)?, a: d.source(1, WORD)? }
        }
    };
    if !d.take("b16") {
        return Err(d.error("expected `.b16`"));
    }
    let mask = d.builder.bits(u32::MAX.into());
    Ok(Op::Warp(WarpOp { mask, kind: Collective::Matrix(Box::new(code)) }))
}

fn moved(d: &mut Decoder<'_, '_, '_>, loads: bool) -> Result<MatrixCode, LoadError> {
    let count = d.take_of(&[("x1", 1), ("x2", 2), ("x4", 4)]).ok_or_else(|| d.unsupported())?;
    let transpose = d.take("trans");
    let shared = d.take("shared") || d.take("shared::cta");
    let space = if shared { Space::Shared } else { Space::Generic };
    d.expect_count(2, 2)?;
    let address = d.address(usize::from(loads))?;
    let parts = d.parts(d.operand(usize::from(!loads))?, count, "registers")?;
    let mut registers = Vec::new();
    for part in parts {
        registers.push(if loads { d.wide_dest(part, 32)?.0 } else { d.inner(part, WORD)? });
    }
    Ok(if loads {
        MatrixCode::Load { space, address, registers, transpose }
    } else {
        MatrixCode::Store { space, address, registers, transpose }
    })
}
