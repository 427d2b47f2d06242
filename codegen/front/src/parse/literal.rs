//! Literals.

use syn::Lit;

use super::types::scalar_named;
use crate::diag::mistake::{Syntax, Types, Value};
use crate::infer::{Kind, Typing};
use crate::ir::{Const, Expr, Scalar, Span};

/// Parses a literal; `negative` if it is preceded by a minus sign.
pub(super) fn literal(typing: &mut Typing<'_>, lit: &Lit, negative: bool, span: Span) -> Expr {
    match lit {
        Lit::Bool(lit) if !negative => Expr::constant(Const::Bool(lit.value), Scalar::Bool, span),
        Lit::Int(lit) if matches!(scalar_named(lit.suffix()), Some(Scalar::F32 | Scalar::F64)) => {
            float(typing, lit.base10_digits(), lit.suffix(), negative, span)
        }
        Lit::Int(lit) => match lit.base10_digits().parse::<i128>() {
            Ok(value) => {
                let value = if negative { -value } else { value };
                number(typing, Const::Int(value), lit.suffix(), Kind::Integer, span)
            }
            Err(_) => {
                typing.error(Value::TooLarge, span);
                Expr::error(span)
            }
        },
        Lit::Float(lit) => float(typing, lit.base10_digits(), lit.suffix(), negative, span),
        _ => {
            typing.error(Syntax::Literal, span);
            Expr::error(span)
        }
    }
}

fn float(typing: &mut Typing<'_>, digits: &str, suffix: &str, negative: bool, span: Span) -> Expr {
    match (digits.parse::<f32>(), digits.parse::<f64>()) {
        (Ok(single), Ok(double)) => {
            let value = if negative {
                Const::Literal { single: -single, double: -double }
            } else {
                Const::Literal { single, double }
            };
            number(typing, value, suffix, Kind::Float, span)
        }
        _ => {
            typing.error(Value::NoNumber, span);
            Expr::error(span)
        }
    }
}

fn number(typing: &mut Typing<'_>, value: Const, suffix: &str, kind: Kind, span: Span) -> Expr {
    if suffix.is_empty() {
        let ty = typing.infer.fresh(kind);
        return typing.infer.written(Expr::constant(value, ty, span));
    }
    match scalar_named(suffix).filter(|&scalar| kind.fits(scalar)) {
        Some(scalar) => typing.infer.written(Expr::constant(value, scalar, span)),
        None => {
            typing.error(Types::Literal { suffix: suffix.to_owned() }, span);
            Expr::error(span)
        }
    }
}
