//! `mma.sync`.

use tma_model::mma::{
    Accumulator, DoubleForm, Operand as Element, WARP_COLUMNS, WARP_ROWS, WarpFault, WarpForm,
};

use super::operands::Decoder;
use crate::isa::{Collective, MmaCode, MmaDoubleCode, Op, Reg, Type, WarpOp};
use crate::parse::LoadError;

const WORD: Type = Type::Bits(32);
const WIDE: Type = Type::Bits(64);

/// Decodes `mma.sync` with 8 columns and a dense A. It has 16 rows, or also 8 for f64.
pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("sync") || !d.take("aligned") {
        return Err(d.error("expected `.sync.aligned`, and a dense A"));
    }
    let Some([rows, k]) = shape(d) else { return Err(d.unsupported()) };
    if (d.take_first(), d.take_first()) != (Some("row"), Some("col")) {
        return Err(d.error("expected `.row.col`"));
    }
    if d.instruction.modifiers.contains(&"f64") {
        return doubles(d, DoubleForm { rows, k });
    }
    if rows != WARP_ROWS {
        return Err(d.unsupported());
    }
    let saturates = d.take("satfinite");
    let form = form(d, k)?;
    if saturates && !form.a.is_saturable() {
        return Err(d.error("`.satfinite` is only supported for integers of 8 bits"));
    }
    let mut differs = false;
    if form.a == Element::B1 {
        let combined = d.take_of(&[("and", false), ("xor", true)]);
        let (Some(xor), true) = (combined, d.take("popc")) else {
            return Err(d.error("expected `.and.popc` or `.xor.popc`"));
        };
        differs = xor;
    }
    d.expect_count(4, 4)?;
    let [a, b, c] = form.registers();
    let code = MmaCode {
        form,
        saturates,
        differs,
        d: written(d, c, WORD)?,
        a: read(d, 1, a, WORD)?,
        b: read(d, 2, b, WORD)?,
        c: read(d, 3, c, WORD)?,
    };
    let mask = d.builder.bits(u32::MAX.into());
    Ok(Op::Warp(WarpOp { mask, kind: Collective::Mma(Box::new(code)) }))
}

/// Takes the shape, and returns its rows and K.
fn shape(d: &mut Decoder<'_, '_, '_>) -> Option<[u32; 2]> {
    let (rows, k) = d.take_first()?.strip_prefix('m')?.split_once(&format!("n{WARP_COLUMNS}k"))?;
    Some([rows.parse().ok()?, k.parse().ok()?])
}

/// Decodes `mma.sync` in f64.
fn doubles(d: &mut Decoder<'_, '_, '_>, form: DoubleForm) -> Result<Op, LoadError> {
    if !DoubleForm::ALL.contains(&form) {
        return Err(d.error("expected m8n8k4, m16n8k4, m16n8k8 or m16n8k16 for f64"));
    }
    // The only rounding mode is to nearest even.
    d.take("rn");
    if !(0..4).all(|_| d.take("f64")) {
        return Err(d.error("the types of D, A, B and C must all be f64"));
    }
    d.expect_count(4, 4)?;
    let [a, b, c] = form.registers();
    let code = MmaDoubleCode {
        form,
        d: written(d, c, WIDE)?,
        a: read(d, 1, a, WIDE)?,
        b: read(d, 2, b, WIDE)?,
        c: read(d, 3, c, WIDE)?,
    };
    let mask = d.builder.bits(u32::MAX.into());
    Ok(Op::Warp(WarpOp { mask, kind: Collective::MmaDouble(Box::new(code)) }))
}

/// Takes the types, such as `f32.f16.f16.f32`.
fn form(d: &mut Decoder<'_, '_, '_>, k: u32) -> Result<WarpForm, LoadError> {
    let sum = |name: &str| Accumulator::ALL.into_iter().find(|ty| ty.name() == name);
    let element = |name: &str| Element::ALL.into_iter().find(|ty| ty.name() == name);
    let to = d.take_first().and_then(sum);
    let (a, b) = (d.take_first().and_then(element), d.take_first().and_then(element));
    let from = d.take_first().and_then(sum);
    let (Some(to), Some(a), Some(b), Some(from)) = (to, a, b, from) else {
        return Err(d.error("expected supported types of D, A, B and C"));
    };
    if to != from {
        return Err(d.error("C and D must be of one type"));
    }
    let form = WarpForm { d: to, a, b, k };
    match form.faults().first() {
        None => Ok(form),
        Some(WarpFault::OperandTypes) => Err(d.error(format!("{a} cannot be multiplied by {b}"))),
        Some(WarpFault::AccumulatorType) => Err(d.error(format!("{a} cannot be accumulated in {to}"))),
        Some(WarpFault::Depth) => {
            let [half, whole] = WarpForm::depths(a);
            Err(d.error(format!("expected k{half} or k{whole}, found k{k}")))
        }
    }
}

fn written(d: &mut Decoder<'_, '_, '_>, count: u32, ty: Type) -> Result<Vec<Reg>, LoadError> {
    let parts = d.parts(d.operand(0)?, count as usize, "registers of D")?;
    parts.iter().map(|part| Ok(d.wide_dest(part, ty.bits())?.0)).collect()
}

fn read(d: &mut Decoder<'_, '_, '_>, index: usize, count: u32, ty: Type) -> Result<Vec<Reg>, LoadError> {
    let operand = d.operand(index)?;
    let parts = d.parts(operand, count as usize, "registers")?;
    parts.iter().map(|part| d.inner(part, ty)).collect()
}
