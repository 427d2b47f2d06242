//! Integer and floating-point arithmetic.

use super::operands::Decoder;
use crate::isa::float::format::Round;
use crate::isa::float::{Approximate, Exact, FloatOp, FloatType, HighHalf, Mode, Test};
use crate::isa::{
    Alu, Binary, BinaryOp, Carry, CarryOp, FloatCode, Integer, Op, PackedOp, Reg, Ternary, TernaryOp, Type,
    Unary, UnaryOp,
};
use crate::parse::LoadError;

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let opcode = d.instruction.opcode;
    if matches!(opcode, "addc" | "subc" | "madc") || d.take("cc") {
        return carry(d);
    }
    if opcode == "testp" {
        return test(d);
    }
    if matches!(opcode, "dp2a" | "dp4a") {
        return dot(d);
    }
    if opcode == "vabsdiff4" {
        return differences(d);
    }
    let parts = MulPart::take(d);
    let ty = d.take_type()?;
    match ty {
        Type::Integer(_) | Type::Bits(_) => integral(d, ty, parts),
        Type::IntegerPair(signed) => integer_pair(d, ty, signed),
        Type::Float(float) => floating(d, ty, float, false),
        Type::FloatPair(float) => floating(d, ty, float, true),
        Type::Pred | Type::Tf32 | Type::Float8Pair(_) | Type::B128 => Err(d.unsupported()),
    }
}

/// `.lo`, `.hi`, `.wide`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MulPart {
    Low,
    High,
    Wide,
}

impl MulPart {
    fn take(d: &mut Decoder<'_, '_, '_>) -> Option<MulPart> {
        d.take_of(&[("lo", MulPart::Low), ("hi", MulPart::High), ("wide", MulPart::Wide)])
    }
}

fn integral(d: &mut Decoder<'_, '_, '_>, ty: Type, part: Option<MulPart>) -> Result<Op, LoadError> {
    let integer = ty.as_integer().ok_or_else(|| d.unsupported())?;
    let saturate = matches!(d.instruction.opcode, "add" | "sub" | "mad") && d.take("sat");
    let binary = |op| Binary::Integer(op, integer);
    let op = match (d.instruction.opcode, part) {
        ("add", None) if saturate => binary(BinaryOp::AddSaturated),
        ("add", None) => binary(BinaryOp::Add),
        ("sub", None) if saturate => binary(BinaryOp::SubSaturated),
        ("sub", None) => binary(BinaryOp::Sub),
        ("mul", Some(MulPart::Low)) => binary(BinaryOp::MulLow),
        ("mul", Some(MulPart::High)) => binary(BinaryOp::MulHigh),
        ("mul", Some(MulPart::Wide)) => binary(BinaryOp::MulWide),
        ("mul24", Some(MulPart::Low)) => binary(BinaryOp::Mul24Low),
        ("mul24", Some(MulPart::High)) => binary(BinaryOp::Mul24High),
        ("div", None) => binary(BinaryOp::Div),
        ("rem", None) => binary(BinaryOp::Rem),
        ("min", None) if take_relu(d, ty) => binary(BinaryOp::MinRelu),
        ("max", None) if take_relu(d, ty) => binary(BinaryOp::MaxRelu),
        ("min", None) => binary(BinaryOp::Min),
        ("max", None) => binary(BinaryOp::Max),
        ("abs", None) => return unary(d, UnaryOp::Abs, ty),
        ("neg", None) => return unary(d, UnaryOp::Neg, ty),
        ("mad" | "mad24" | "sad", _) => return ternary(d, ty, integer, part, saturate),
        _ => return Err(d.unsupported()),
    };
    d.expect_count(3, 3)?;
    let result = if part == Some(MulPart::Wide) { wide(d, integer)? } else { ty };
    let (d, sources) = (d.dest(0, result)?, [d.source(1, ty)?, d.source(2, ty)?]);
    Ok(Op::Alu(Alu::Binary { op, d, sources }))
}

/// Takes `.relu` of `min` and `max`, which exists for signed 32-bit integers and for pairs of
/// signed ones.
fn take_relu(d: &mut Decoder<'_, '_, '_>, ty: Type) -> bool {
    let has = matches!(ty, Type::Integer(Integer { bits: 32, signed: true }) | Type::IntegerPair(true));
    has && d.take("relu")
}

/// Returns the type of twice the width.
fn wide(d: &Decoder<'_, '_, '_>, ty: Integer) -> Result<Type, LoadError> {
    if ty.bits > 32 {
        return Err(d.unsupported());
    }
    Ok(Type::Integer(Integer { bits: ty.bits * 2, signed: ty.signed }))
}

fn unary(d: &mut Decoder<'_, '_, '_>, op: UnaryOp, ty: Type) -> Result<Op, LoadError> {
    d.expect_count(2, 2)?;
    let integer = ty.as_integer().ok_or_else(|| d.unsupported())?;
    let op = Unary::Integer(op, integer);
    Ok(Op::Alu(Alu::Unary { op, d: d.dest(0, ty)?, a: d.source(1, ty)? }))
}

fn ternary(
    d: &mut Decoder<'_, '_, '_>,
    ty: Type,
    integer: Integer,
    part: Option<MulPart>,
    saturate: bool,
) -> Result<Op, LoadError> {
    let op = match (d.instruction.opcode, part, saturate) {
        ("mad", Some(MulPart::Low), false) => TernaryOp::MadLow,
        ("mad", Some(MulPart::High), false) => TernaryOp::MadHigh,
        ("mad", Some(MulPart::High), true) => TernaryOp::MadHighSaturated,
        ("mad", Some(MulPart::Wide), false) => TernaryOp::MadWide,
        ("mad24", Some(MulPart::Low), false) => TernaryOp::Mad24Low,
        ("mad24", Some(MulPart::High), false) => TernaryOp::Mad24High,
        ("sad", None, false) => TernaryOp::Sad,
        _ => return Err(d.unsupported()),
    };
    d.expect_count(4, 4)?;
    let result = if op == TernaryOp::MadWide { wide(d, integer)? } else { ty };
    let sources = [d.source(1, ty)?, d.source(2, ty)?, d.source(3, result)?];
    Ok(Op::Alu(Alu::Ternary { op: Ternary::Integer(op, integer), d: d.dest(0, result)?, sources }))
}

fn integer_pair(d: &mut Decoder<'_, '_, '_>, ty: Type, signed: bool) -> Result<Op, LoadError> {
    let opcode = d.instruction.opcode;
    let op = match opcode {
        "add" => PackedOp::Add,
        "sub" => PackedOp::Sub,
        "min" if take_relu(d, ty) => PackedOp::MinRelu,
        "max" if take_relu(d, ty) => PackedOp::MaxRelu,
        "min" => PackedOp::Min { signed },
        "max" => PackedOp::Max { signed },
        _ => return Err(d.unsupported()),
    };
    d.expect_count(3, 3)?;
    let (d, sources) = (d.dest(0, ty)?, [d.source(1, ty)?, d.source(2, ty)?]);
    Ok(Op::Alu(Alu::Binary { op: Binary::Packed(op), d, sources }))
}

/// Decodes `add.cc`, `addc` and the like: arithmetic with the carry flag.
fn carry(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let opcode = d.instruction.opcode;
    let part = MulPart::take(d);
    let op = match (opcode, part) {
        ("add" | "addc", None) => CarryOp::Add,
        ("sub" | "subc", None) => CarryOp::Sub,
        ("mad" | "madc", Some(MulPart::Low)) => CarryOp::MadLow,
        ("mad" | "madc", Some(MulPart::High)) => CarryOp::MadHigh,
        _ => return Err(d.unsupported()),
    };
    let reads = opcode.ends_with('c');
    // For the plain forms `.cc` has already been taken; for the others it is optional.
    let writes = !reads || d.take("cc");
    let ty = d.take_type()?;
    let integer = ty.as_integer().filter(|ty| ty.bits >= 32).ok_or_else(|| d.unsupported())?;
    let sources = match op {
        CarryOp::Add | CarryOp::Sub => {
            d.expect_count(3, 3)?;
            [d.source(1, ty)?, d.source(2, ty)?, Reg::SINK]
        }
        CarryOp::MadLow | CarryOp::MadHigh => {
            d.expect_count(4, 4)?;
            [d.source(1, ty)?, d.source(2, ty)?, d.source(3, ty)?]
        }
    };
    let Integer { bits, signed } = integer;
    Ok(Op::Alu(Alu::Carry(Carry { op, bits, signed, reads, writes, d: d.dest(0, ty)?, sources })))
}

/// `dp2a` and `dp4a`.
fn dot(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    d.expect_count(4, 4)?;
    let part = d.take_of(&[("lo", false), ("hi", true)]);
    let (a, b) = (d.take_type()?, d.take_type()?);
    if a.bits() != 32 || b.bits() != 32 {
        return Err(d.unsupported());
    }
    let signed = [a.is_signed(), b.is_signed()];
    let op = match (d.instruction.opcode, part) {
        ("dp2a", Some(high)) => Ternary::Dot2 { high, signed },
        ("dp4a", None) => Ternary::Dot4 { signed },
        _ => return Err(d.unsupported()),
    };
    let sources = [d.source(1, a)?, d.source(2, b)?, d.source(3, a)?];
    Ok(Op::Alu(Alu::Ternary { op, d: d.dest(0, a)?, sources }))
}

/// Decodes `vabsdiff4`, the only video instruction that nvcc still emits for its intrinsics, with
/// all bytes selected.
fn differences(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let ty = d.take_type()?;
    if (d.take_type()?, d.take_type()?) != (ty, ty) || ty.bits() != 32 {
        return Err(d.unsupported());
    }
    let summed = d.take("add");
    d.expect_count(4, 4)?;
    let sources = [d.source(1, ty)?, d.source(2, ty)?, d.source(3, ty)?];
    let op = Ternary::Differences4 { signed: ty.is_signed(), summed };
    Ok(Op::Alu(Alu::Ternary { op, d: d.dest(0, ty)?, sources }))
}

fn test(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let test = d.take_of(&[
        ("finite", Test::Finite),
        ("infinite", Test::Infinite),
        ("number", Test::Number),
        ("notanumber", Test::NotANumber),
        ("normal", Test::Normal),
        ("subnormal", Test::Subnormal),
    ]);
    let (Some(test), Type::Float(ty)) = (test, d.take_type()?) else { return Err(d.unsupported()) };
    d.expect_count(2, 2)?;
    let sources = [d.source(1, Type::Float(ty))?, Reg::SINK, Reg::SINK];
    let d = d.dest(0, Type::Pred)?;
    let op = FloatOp::Test(test);
    Ok(Op::Alu(Alu::Float(FloatCode { op, ty, mode: Mode::default(), pair: false, d, sources })))
}

/// Takes `.rn`, `.rz`, `.rm` or `.rp`.
pub(super) fn take_round(d: &mut Decoder<'_, '_, '_>) -> Option<Round> {
    d.take_of(&[("rn", Round::Nearest), ("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)])
}

fn floating(d: &mut Decoder<'_, '_, '_>, ty: Type, float: FloatType, pair: bool) -> Result<Op, LoadError> {
    let half = matches!(float, FloatType::F16 | FloatType::Bf16);
    let opcode = d.instruction.opcode;
    let approximate = d.take("approx");
    let full = d.take("full");
    let round = take_round(d);
    let mut mode = Mode { round: round.unwrap_or_default(), flush: d.take("ftz"), ..Mode::default() };
    let (op, count) = match opcode {
        "add" => (FloatOp::Exact(Exact::Add), 2),
        "sub" => (FloatOp::Exact(Exact::Sub), 2),
        "mul" => (FloatOp::Exact(Exact::Mul), 2),
        "fma" | "mad" => (FloatOp::Exact(Exact::Fma), 3),
        "div" if approximate => (FloatOp::Approximate(Approximate::Div), 2),
        "div" => (FloatOp::Exact(Exact::Div), 2),
        "min" => (FloatOp::Min, 2),
        "max" => (FloatOp::Max, 2),
        "abs" => (FloatOp::Abs, 1),
        "neg" => (FloatOp::Neg, 1),
        "sqrt" => (FloatOp::Exact(Exact::Sqrt), 1),
        "rcp" if approximate && float == FloatType::F64 => (FloatOp::HighHalf(HighHalf::Rcp), 1),
        "rcp" => (FloatOp::Exact(Exact::Rcp), 1),
        "rsqrt" if float == FloatType::F64 => (FloatOp::HighHalf(HighHalf::Rsqrt), 1),
        "rsqrt" => (FloatOp::Approximate(Approximate::Rsqrt), 1),
        "ex2" => (FloatOp::Approximate(Approximate::Ex2), 1),
        "lg2" => (FloatOp::Approximate(Approximate::Lg2), 1),
        "sin" => (FloatOp::Approximate(Approximate::Sin), 1),
        "cos" => (FloatOp::Approximate(Approximate::Cos), 1),
        "tanh" => (FloatOp::Approximate(Approximate::Tanh), 1),
        "copysign" => (FloatOp::CopySign, 2),
        _ => return Err(d.unsupported()),
    };
    check_forms(d, op, float, approximate || full, round.is_some())?;
    match op {
        FloatOp::Exact(Exact::Add | Exact::Sub | Exact::Mul) => mode.saturate = d.take("sat"),
        FloatOp::Exact(Exact::Fma) => {
            mode.saturate = d.take("sat");
            mode.relu = half && d.take("relu");
        }
        FloatOp::Min | FloatOp::Max => {
            mode.nan = d.take("NaN");
            mode.xor_sign = d.take("xorsign");
            if mode.xor_sign && !d.take("abs") {
                return Err(d.error("`.xorsign` goes with `.abs`"));
            }
        }
        FloatOp::HighHalf(_) => mode.flush = false,
        FloatOp::Exact(Exact::Div | Exact::Sqrt | Exact::Rcp)
        | FloatOp::Approximate(_)
        | FloatOp::Abs
        | FloatOp::Neg
        | FloatOp::CopySign
        | FloatOp::Test(_) => {}
    }
    d.expect_count(count + 1, count + 1)?;
    let mut sources = [Reg::SINK; 3];
    for (index, row) in sources.iter_mut().enumerate().take(count) {
        *row = d.source(index + 1, ty)?;
    }
    Ok(Op::Alu(Alu::Float(FloatCode { op, ty: float, mode, pair, d: d.dest(0, ty)?, sources })))
}

/// Checks which functions exist only as approximations, and which require a rounding mode.
fn check_forms(
    d: &Decoder<'_, '_, '_>,
    op: FloatOp,
    float: FloatType,
    approximate: bool,
    rounded: bool,
) -> Result<(), LoadError> {
    let half = matches!(float, FloatType::F16 | FloatType::Bf16);
    let good = match op {
        FloatOp::Approximate(op) => match op {
            Approximate::Ex2 | Approximate::Tanh => approximate && float != FloatType::F64,
            Approximate::Rsqrt | Approximate::Lg2 | Approximate::Sin | Approximate::Cos => {
                approximate && float == FloatType::F32
            }
            Approximate::Div => float == FloatType::F32,
        },
        FloatOp::HighHalf(HighHalf::Rcp | HighHalf::Rsqrt) => approximate,
        FloatOp::Exact(op) => match op {
            Exact::Div | Exact::Sqrt | Exact::Rcp => {
                !half && (rounded || approximate && float == FloatType::F32)
            }
            Exact::Fma => rounded && !approximate,
            Exact::Add | Exact::Sub | Exact::Mul => !approximate,
        },
        FloatOp::CopySign => !half && !approximate && !rounded,
        FloatOp::Min | FloatOp::Max | FloatOp::Abs | FloatOp::Neg | FloatOp::Test(_) => !approximate,
    };
    if good { Ok(()) } else { Err(d.unsupported()) }
}
