//! `cvt`, `mov`, and conversions of addresses.

use super::arithmetic::take_round;
use super::operands::Decoder;
use crate::isa::float::format::Round;
use crate::isa::float::{FloatType, Mode};
use crate::isa::{AddressOp, Alu, Conversion, Memory, Numeric, Op, PairConversion, Space, Type, Window};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let opcode = d.instruction.opcode;
    match opcode {
        "cvt" if d.take("pack") => Err(d.unsupported()),
        "cvt" => cvt(d),
        "mov" => mov(d),
        "cvta" => cvta(d),
        "isspacep" => is_space(d),
        "mapa" => {
            let generic = !d.take("shared::cluster");
            let ty = d.take_type()?;
            d.expect_count(3, 3)?;
            let (row, rank) = (d.dest(0, ty)?, d.source(2, Type::Bits(32))?);
            Ok(Op::Address(AddressOp::MapToRank { d: row, address: d.source(1, ty)?, rank, generic }))
        }
        "getctarank" => {
            let generic = !d.take("shared::cluster");
            let ty = d.take_type()?;
            d.expect_count(2, 2)?;
            let (d, address) = (d.dest(0, Type::Bits(32))?, d.source(1, ty)?);
            Ok(Op::Address(AddressOp::RankOf { d, address, generic }))
        }
        _ => Err(d.unsupported()),
    }
}

fn mov(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let ty = d.take_type()?;
    d.expect_count(2, 2)?;
    let (to, from) = (d.operand(0)?, d.operand(1)?);
    match (to, from) {
        (_, Operand::Vector(parts)) => {
            let part = part_type(d, ty, parts.len())?;
            let mut rows = Vec::new();
            for operand in parts {
                rows.push(d.inner(operand, part)?);
            }
            Ok(Op::Alu(Alu::Pack { bits: part.bits(), d: d.dest(0, ty)?, parts: rows }))
        }
        (Operand::Vector(parts), _) => {
            let part = part_type(d, ty, parts.len())?;
            let mut rows = Vec::new();
            for operand in parts {
                rows.push(d.wide_dest(operand, part.bits())?.0);
            }
            Ok(Op::Alu(Alu::Unpack { bits: part.bits(), parts: rows, a: d.source(1, ty)? }))
        }
        (_, Operand::Name("%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi")) => {
            Ok(Op::Alu(Alu::Clock { d: d.dest(0, Type::Bits(32))?, wide: false }))
        }
        (_, Operand::Name("%clock64" | "%globaltimer")) => {
            Ok(Op::Alu(Alu::Clock { d: d.dest(0, Type::Bits(64))?, wide: true }))
        }
        _ => Ok(Op::Alu(Alu::copy(d.dest(0, ty)?, d.source(1, ty)?))),
    }
}

fn part_type(d: &Decoder<'_, '_, '_>, ty: Type, parts: usize) -> Result<Type, LoadError> {
    match (ty.bits(), parts) {
        (bits @ (16 | 32 | 64), 2 | 4) if bits / parts as u32 >= 8 => Ok(Type::Bits(bits / parts as u32)),
        _ => Err(d.unsupported()),
    }
}

fn cvta(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let to_generic = !d.take("to");
    let window = d.take_of(&[
        ("global", Window::Global),
        ("const", Window::Global),
        ("local", Window::Local),
        ("param", Window::Param),
        ("shared", Window::Shared),
        ("shared::cta", Window::Shared),
        ("shared::cluster", Window::Shared),
    ]);
    let window = window.ok_or_else(|| d.unsupported())?;
    let ty = d.take_type()?;
    d.expect_count(2, 2)?;
    if ty.bits() != 64 {
        return Err(d.error("addresses of 32 bits are not supported"));
    }
    Ok(Op::Address(AddressOp::Convert { window, to_generic, d: d.dest(0, ty)?, a: d.source(1, ty)? }))
}

fn is_space(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let constant = d.take("const");
    let space = d.take_of(&[
        ("global", Memory::Machine(Space::Global)),
        ("shared", Memory::Machine(Space::Shared)),
        ("shared::cta", Memory::Machine(Space::Shared)),
        ("shared::cluster", Memory::Machine(Space::SharedCluster)),
        ("local", Memory::Local),
        ("param", Memory::Param),
    ]);
    let space =
        if constant { Memory::Machine(Space::Generic) } else { space.ok_or_else(|| d.unsupported())? };
    d.expect_count(2, 2)?;
    let (d, a) = (d.dest(0, Type::Pred)?, d.source(1, Type::Bits(64))?);
    Ok(Op::Address(AddressOp::IsSpace { space, constant, d, a }))
}

fn cvt(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let to_integral =
        d.take_of(&[("rni", Round::Nearest), ("rzi", Round::Zero), ("rmi", Round::Down), ("rpi", Round::Up)]);
    let away = d.take("rna");
    let round = if away { Some(Round::NearestAway) } else { take_round(d) };
    let finite = d.take("satfinite");
    let relu = d.take("relu");
    let mode = Mode { flush: d.take("ftz"), saturate: d.take("sat"), relu, ..Mode::default() };
    let (to, from) = (d.take_type()?, d.take_type()?);
    let chosen = round.unwrap_or_default();
    if let Some(pair) = pair(to, from, chosen, relu, finite) {
        return convert_pair(d, pair, to, from);
    }
    let (Some(to_numeric), Some(from_numeric)) = (numeric(to), numeric(from)) else {
        return Err(d.unsupported());
    };
    // Source: PTX ISA, "cvt".
    let of_tf32 = from_numeric == Numeric::Tf32;
    if of_tf32 || to_numeric == Numeric::Tf32 && from_numeric != Numeric::Float(FloatType::F32) {
        return Err(d.error("`.tf32` is only supported in a conversion from `.f32`"));
    }
    let integral = to_integral.is_some();
    let crosses = matches!(to_numeric, Numeric::Integer(_)) != matches!(from_numeric, Numeric::Integer(_));
    if crosses && !integral && round.is_none() {
        return Err(d.error("expected a rounding modifier"));
    }
    d.expect_count(2, 2)?;
    let (to_operand, from_operand) = (d.operand(0)?, d.operand(1)?);
    let (row, width) = d.wide_dest(to_operand, to.bits())?;
    let source = d.wide_source(from_operand, from)?;
    let round = to_integral.unwrap_or(chosen);
    let conversion = Conversion { from: from_numeric, to: to_numeric, round, integral, mode, finite, width };
    Ok(Op::Alu(Alu::Convert { conversion, d: row, a: source }))
}

fn numeric(ty: Type) -> Option<Numeric> {
    match ty {
        Type::Integer(integer) => Some(Numeric::Integer(integer)),
        Type::Float(float) => Some(Numeric::Float(float)),
        Type::Tf32 => Some(Numeric::Tf32),
        Type::Pred
        | Type::Bits(_)
        | Type::FloatPair(_)
        | Type::IntegerPair(_)
        | Type::Float8Pair(_)
        | Type::B128 => None,
    }
}

fn pair(to: Type, from: Type, round: Round, relu: bool, finite: bool) -> Option<PairConversion> {
    Some(match (to, from) {
        (Type::FloatPair(to), Type::Float(FloatType::F32)) => {
            PairConversion::ToHalves { to, round, relu, finite }
        }
        (Type::Float8Pair(e4m3), Type::Float(FloatType::F32)) => PairConversion::ToEights { e4m3, relu },
        (Type::Float8Pair(e4m3), Type::FloatPair(FloatType::F16)) => {
            PairConversion::HalvesToEights { e4m3, relu }
        }
        (Type::FloatPair(FloatType::F16), Type::Float8Pair(e4m3)) => {
            PairConversion::EightsToHalves { e4m3, relu }
        }
        _ => return None,
    })
}

fn convert_pair(
    d: &mut Decoder<'_, '_, '_>,
    pair: PairConversion,
    to: Type,
    from: Type,
) -> Result<Op, LoadError> {
    let row = d.dest(0, to)?;
    let sources = match pair {
        PairConversion::ToHalves { .. } | PairConversion::ToEights { .. } => {
            d.expect_count(3, 3)?;
            [d.source(1, from)?, d.source(2, from)?]
        }
        PairConversion::HalvesToEights { .. } | PairConversion::EightsToHalves { .. } => {
            d.expect_count(2, 2)?;
            let source = d.source(1, from)?;
            [source, source]
        }
    };
    Ok(Op::Alu(Alu::ConvertPair { conversion: pair, d: row, sources }))
}
