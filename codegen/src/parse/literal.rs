//! Literals.

use syn::Lit;

use super::cx::Cx;
use super::infer::Kind;
use super::types::scalar_named;
use crate::diag::Code;
use crate::ir::{Const, Expr, Scalar, Span};

impl Cx<'_> {
    /// A literal's value; `negative` if a minus sign stands before it.
    pub(super) fn literal(&mut self, lit: &Lit, negative: bool, span: Span) -> Expr {
        match lit {
            Lit::Bool(lit) if !negative => Expr::constant(Const::Bool(lit.value), Scalar::Bool, span),
            Lit::Int(lit) if lit.suffix() == "f32" => self.single(lit.base10_digits(), negative, span),
            Lit::Int(lit) => match lit.base10_digits().parse::<i128>() {
                Ok(value) => {
                    let value = if negative { -value } else { value };
                    self.number(Const::Int(value), lit.suffix(), Kind::Integer, span)
                }
                Err(_) => {
                    self.error(Code::LiteralRange, span, "no integer type holds this");
                    Expr::error(span)
                }
            },
            Lit::Float(lit) if lit.suffix() == "f32" => self.single(lit.base10_digits(), negative, span),
            Lit::Float(lit) => match lit.base10_digits().parse::<f64>() {
                Ok(value) => {
                    let value = if negative { -value } else { value };
                    self.number(Const::Float(value), lit.suffix(), Kind::Float, span)
                }
                Err(_) => {
                    self.error(Code::LiteralRange, span, "this is not a number");
                    Expr::error(span)
                }
            },
            _ => {
                self.error(Code::UnsupportedExpression, span, "kernels have no such literal")
                    .help("a kernel's literals are integers, floats, `true` and `false`");
                Expr::error(span)
            }
        }
    }

    /// An `f32` is rounded once, from its digits: an `f64` between the two could be a tie that they
    /// are not.
    fn single(&mut self, digits: &str, negative: bool, span: Span) -> Expr {
        match digits.parse::<f32>() {
            Ok(value) => {
                let value = f64::from(if negative { -value } else { value });
                self.number(Const::Float(value), "f32", Kind::Float, span)
            }
            Err(_) => {
                self.error(Code::LiteralRange, span, "this is not a number");
                Expr::error(span)
            }
        }
    }

    fn number(&mut self, value: Const, suffix: &str, kind: Kind, span: Span) -> Expr {
        if suffix.is_empty() {
            let ty = self.infer.fresh(kind);
            return self.written(Expr::constant(value, ty, span));
        }
        let scalar = scalar_named(suffix).filter(|scalar| match value {
            Const::Int(_) => scalar.is_integer() || matches!(scalar, Scalar::F32 | Scalar::F64),
            Const::Float(_) => matches!(scalar, Scalar::F32 | Scalar::F64),
            Const::Bool(_) => false,
        });
        match (scalar, value) {
            (Some(scalar), Const::Int(value)) if scalar.is_float() => {
                Expr::constant(Const::Float(value as f64), scalar, span)
            }
            (Some(scalar), value) => self.written(Expr::constant(value, scalar, span)),
            (None, _) => {
                self.error(Code::UnsupportedType, span, format!("no literal is of the type `{suffix}`"))
                    .help("for 16- and 8-bit floats write `f16::from_f32(1.5)`");
                Expr::error(span)
            }
        }
    }

    /// Has a number judged when its type is known: it may not be where it is used, or be used at all.
    pub(super) fn written(&mut self, number: Expr) -> Expr {
        self.numbers.push(number.clone());
        number
    }
}
