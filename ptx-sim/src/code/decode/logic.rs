//! Bit operations, comparisons and selections.

use super::operands::Decoder;
use crate::isa::float::FloatType;
use crate::isa::{
    Alu, Binary, Combine, Combined, Compare, ComparePair, Compared, Comparison, Integer, Op, Permutation,
    Reg, Ternary, Truth, Type, Unary, UnaryOp,
};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

const WORD: Type = Type::Bits(32);

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    match d.instruction.opcode {
        "and" => bitwise(d, Binary::And),
        "or" => bitwise(d, Binary::Or),
        "xor" => bitwise(d, Binary::Xor),
        "not" => unary(d, UnaryOp::Not),
        "cnot" => unary(d, UnaryOp::LogicalNot),
        "brev" => unary(d, UnaryOp::ReverseBits),
        "popc" => counted(d, UnaryOp::CountOnes),
        "clz" => counted(d, UnaryOp::LeadingZeros),
        "bfind" => {
            let op = if d.take("shiftamt") { UnaryOp::HighestBitShift } else { UnaryOp::HighestBit };
            counted(d, op)
        }
        "shl" => shift(d, true),
        "shr" => shift(d, false),
        "bfe" => field(d),
        "bfi" => insert(d),
        "prmt" => permute(d),
        "shf" => funnel(d),
        "lop3" => lop3(d),
        "fns" => {
            d.take("b32");
            ternary(d, Ternary::FindNth, WORD)
        }
        "bmsk" => {
            let wrap = d.take("wrap");
            if !wrap && !d.take("clamp") {
                return Err(d.unsupported());
            }
            let ty = d.take_type()?;
            d.expect_count(3, 3)?;
            let sources = [d.source(1, WORD)?, d.source(2, WORD)?];
            Ok(Op::Alu(Alu::Binary { op: Binary::Mask { wrap }, d: d.dest(0, ty)?, sources }))
        }
        "selp" => {
            let ty = plain_type(d)?;
            d.expect_count(4, 4)?;
            let sources = [d.source(1, ty)?, d.source(2, ty)?, d.source(3, Type::Pred)?];
            Ok(Op::Alu(Alu::Ternary { op: Ternary::Select, d: d.dest(0, ty)?, sources }))
        }
        "slct" => select_by_sign(d),
        "setp" => compare(d, true),
        "set" => compare(d, false),
        _ => Err(d.unsupported()),
    }
}

/// Takes the type of an operation on bits only.
fn plain_type(d: &mut Decoder<'_, '_, '_>) -> Result<Type, LoadError> {
    let ty = d.take_type()?;
    if ty == Type::B128 { Err(d.unsupported()) } else { Ok(ty) }
}

fn bitwise(d: &mut Decoder<'_, '_, '_>, op: Binary) -> Result<Op, LoadError> {
    let ty = plain_type(d)?;
    d.expect_count(3, 3)?;
    let (d, sources) = (d.dest(0, ty)?, [d.source(1, ty)?, d.source(2, ty)?]);
    Ok(Op::Alu(Alu::Binary { op, d, sources }))
}

fn integer_of(d: &Decoder<'_, '_, '_>, ty: Type) -> Result<Integer, LoadError> {
    ty.as_integer().ok_or_else(|| d.unsupported())
}

fn unary(d: &mut Decoder<'_, '_, '_>, op: UnaryOp) -> Result<Op, LoadError> {
    let ty = d.take_type()?;
    d.expect_count(2, 2)?;
    if ty == Type::Pred && op == UnaryOp::Not {
        let op = Unary::Integer(UnaryOp::LogicalNot, Integer { bits: 8, signed: false });
        return Ok(Op::Alu(Alu::Unary { op, d: d.dest(0, ty)?, a: d.source(1, ty)? }));
    }
    let op = Unary::Integer(op, integer_of(d, ty)?);
    Ok(Op::Alu(Alu::Unary { op, d: d.dest(0, ty)?, a: d.source(1, ty)? }))
}

/// Decodes an operation with a 32-bit result, whatever its operand's type.
fn counted(d: &mut Decoder<'_, '_, '_>, op: UnaryOp) -> Result<Op, LoadError> {
    let ty = d.take_type()?;
    d.expect_count(2, 2)?;
    let op = Unary::Integer(op, integer_of(d, ty)?);
    Ok(Op::Alu(Alu::Unary { op, d: d.dest(0, WORD)?, a: d.source(1, ty)? }))
}

fn shift(d: &mut Decoder<'_, '_, '_>, left: bool) -> Result<Op, LoadError> {
    let ty = d.take_type()?;
    d.expect_count(3, 3)?;
    let op = Binary::Shift { left, ty: integer_of(d, ty)? };
    let (d, sources) = (d.dest(0, ty)?, [d.source(1, ty)?, d.source(2, WORD)?]);
    Ok(Op::Alu(Alu::Binary { op, d, sources }))
}

fn ternary(d: &mut Decoder<'_, '_, '_>, op: Ternary, ty: Type) -> Result<Op, LoadError> {
    d.expect_count(4, 4)?;
    let sources = [d.source(1, ty)?, d.source(2, ty)?, d.source(3, ty)?];
    Ok(Op::Alu(Alu::Ternary { op, d: d.dest(0, ty)?, sources }))
}

fn field(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let ty = d.take_type()?;
    let integer = integer_of(d, ty)?;
    if integer.bits < 32 {
        return Err(d.unsupported());
    }
    d.expect_count(4, 4)?;
    let sources = [d.source(1, ty)?, d.source(2, WORD)?, d.source(3, WORD)?];
    Ok(Op::Alu(Alu::Ternary { op: Ternary::Extract(integer), d: d.dest(0, ty)?, sources }))
}

fn insert(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let ty = d.take_type()?;
    d.expect_count(5, 5)?;
    let sources = [d.source(1, ty)?, d.source(2, ty)?, d.source(3, WORD)?, d.source(4, WORD)?];
    let Type::Bits(bits @ (32 | 64)) = ty else { return Err(d.unsupported()) };
    Ok(Op::Alu(Alu::Insert { bits, d: d.dest(0, ty)?, sources }))
}

fn permute(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    d.take("b32");
    let mode = d.take_of(&[
        ("f4e", Permutation::Forward4),
        ("b4e", Permutation::Backward4),
        ("rc8", Permutation::Replicate8),
        ("ecl", Permutation::EdgeLeft),
        ("ecr", Permutation::EdgeRight),
        ("rc16", Permutation::Replicate16),
    ]);
    ternary(d, Ternary::Permute(mode.unwrap_or(Permutation::Generic)), WORD)
}

fn funnel(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let left = d.take_of(&[("l", true), ("r", false)]);
    let wrap = d.take_of(&[("wrap", true), ("clamp", false)]);
    let (Some(left), Some(wrap), true) = (left, wrap, d.take("b32")) else { return Err(d.unsupported()) };
    ternary(d, Ternary::Funnel { left, wrap }, WORD)
}

fn lop3(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("b32") {
        return Err(d.unsupported());
    }
    d.expect_count(5, 5)?;
    let table = d.immediate(4)? as u8;
    let sources = [d.source(1, WORD)?, d.source(2, WORD)?, d.source(3, WORD)?];
    Ok(Op::Alu(Alu::Lop3 { table, d: d.dest(0, WORD)?, sources }))
}

fn select_by_sign(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    d.take("ftz");
    let ty = plain_type(d)?;
    let by = d.take_type()?;
    d.expect_count(4, 4)?;
    let op = match by {
        Type::Float(FloatType::F32) => Ternary::SelectBySingle,
        Type::Integer(Integer { bits: 32, signed: true }) => Ternary::SelectBySign,
        Type::Pred
        | Type::Bits(_)
        | Type::Integer(_)
        | Type::Float(_)
        | Type::FloatPair(_)
        | Type::IntegerPair(_)
        | Type::Tf32
        | Type::Float8Pair(_)
        | Type::B128 => return Err(d.unsupported()),
    };
    let sources = [d.source(1, ty)?, d.source(2, ty)?, d.source(3, by)?];
    Ok(Op::Alu(Alu::Ternary { op, d: d.dest(0, ty)?, sources }))
}

const COMPARISONS: [(&str, Comparison); 18] = [
    ("eq", Comparison::Eq),
    ("ne", Comparison::Ne),
    ("lt", Comparison::Lt),
    ("le", Comparison::Le),
    ("gt", Comparison::Gt),
    ("ge", Comparison::Ge),
    ("lo", Comparison::Lt),
    ("ls", Comparison::Le),
    ("hi", Comparison::Gt),
    ("hs", Comparison::Ge),
    ("equ", Comparison::Equ),
    ("neu", Comparison::Neu),
    ("ltu", Comparison::Ltu),
    ("leu", Comparison::Leu),
    ("gtu", Comparison::Gtu),
    ("geu", Comparison::Geu),
    ("num", Comparison::Num),
    ("nan", Comparison::Nan),
];

/// Decodes `setp` and `set`.
fn compare(d: &mut Decoder<'_, '_, '_>, predicate: bool) -> Result<Op, LoadError> {
    let comparison = d.take_of(&COMPARISONS).ok_or_else(|| d.unsupported())?;
    let combine = d.take_of(&[("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)]);
    let flush = d.take("ftz");
    let result = if predicate { Type::Pred } else { d.take_type()? };
    let ty = d.take_type()?;
    d.expect_count(3, 4)?;
    if combine.is_some() != (d.count() == 4) {
        return Err(
            d.error("a fourth operand is required with `.and`, `.or` and `.xor`, and not allowed without")
        );
    }
    let combined = match combine {
        Some(by) => Some(Combined { by, with: d.guard(3)? }),
        None => None,
    };
    let sources = [d.source(1, ty)?, d.source(2, ty)?];
    let truth = truth(d, result)?;
    if let Type::FloatPair(float) = ty {
        let rows = if predicate {
            let Operand::Pair(p, q) = d.operand(0)? else { return Err(d.unsupported()) };
            [d.predicate(p)?, d.predicate(q)?]
        } else {
            [d.dest(0, result)?, Reg::SINK]
        };
        let pair = ComparePair { ty: float, flush, comparison, sources, combined, truth, d: rows };
        return Ok(Op::Alu(Alu::ComparePair(pair)));
    }
    let compared = if let Type::Float(float) = ty {
        Compared::Float(float, flush)
    } else {
        Compared::Integer(integer_of(d, ty)?)
    };
    let (row, opposite) = if predicate && let Operand::Pair(p, q) = d.operand(0)? {
        (optional(d, p)?, optional(d, q)?)
    } else {
        (d.dest(0, result)?, Reg::SINK)
    };
    Ok(Op::Alu(Alu::Compare(Compare { compared, comparison, sources, combined, truth, d: row, opposite })))
}

fn optional(d: &mut Decoder<'_, '_, '_>, name: &str) -> Result<Reg, LoadError> {
    if name == "_" { Ok(Reg::SINK) } else { d.predicate(name) }
}

/// Returns the representation of a true result of `set`: 1.0, or all ones.
fn truth(d: &Decoder<'_, '_, '_>, result: Type) -> Result<Truth, LoadError> {
    Ok(match result {
        Type::Pred => Truth::Predicate,
        Type::Float(FloatType::F32) => Truth::Bits(u64::from(1_f32.to_bits())),
        Type::Float(FloatType::F16) => Truth::Bits(0x3c00),
        Type::Float(FloatType::Bf16) => Truth::Bits(0x3f80),
        Type::FloatPair(FloatType::F16) => Truth::Bits(0x3c00),
        Type::FloatPair(FloatType::Bf16) => Truth::Bits(0x3f80),
        Type::Integer(Integer { bits: 16, .. }) => Truth::Bits(0xffff),
        Type::Integer(Integer { bits: 32, .. }) => Truth::Bits(0xffff_ffff),
        Type::Bits(_)
        | Type::Integer(_)
        | Type::Float(_)
        | Type::FloatPair(_)
        | Type::IntegerPair(_)
        | Type::Tf32
        | Type::Float8Pair(_)
        | Type::B128 => return Err(d.unsupported()),
    })
}
