//! Literals.

use syn::Lit;

use super::cx::Cx;
use super::types::scalar_named;
use crate::diag::mistake::{Syntax, Types, Value};
use crate::infer::Kind;
use crate::ir::{Const, Expr, Scalar, Span};

impl Cx<'_> {
    /// Parses a literal; `negative` if it is preceded by a minus sign.
    pub(super) fn literal(&mut self, lit: &Lit, negative: bool, span: Span) -> Expr {
        match lit {
            Lit::Bool(lit) if !negative => Expr::constant(Const::Bool(lit.value), Scalar::Bool, span),
            Lit::Int(lit) if matches!(scalar_named(lit.suffix()), Some(Scalar::F32 | Scalar::F64)) => {
                self.float(lit.base10_digits(), lit.suffix(), negative, span)
            }
            Lit::Int(lit) => match lit.base10_digits().parse::<i128>() {
                Ok(value) => {
                    let value = if negative { -value } else { value };
                    self.number(Const::Int(value), lit.suffix(), Kind::Integer, span)
                }
                Err(_) => {
                    self.error(Value::TooLarge, span);
                    Expr::error(span)
                }
            },
            Lit::Float(lit) => self.float(lit.base10_digits(), lit.suffix(), negative, span),
            _ => {
                self.error(Syntax::Literal, span);
                Expr::error(span)
            }
        }
    }

    fn float(&mut self, digits: &str, suffix: &str, negative: bool, span: Span) -> Expr {
        match (digits.parse::<f32>(), digits.parse::<f64>()) {
            (Ok(single), Ok(double)) => {
                let value = if negative {
                    Const::Literal { single: -single, double: -double }
                } else {
                    Const::Literal { single, double }
                };
                self.number(value, suffix, Kind::Float, span)
            }
            _ => {
                self.error(Value::NoNumber, span);
                Expr::error(span)
            }
        }
    }

    fn number(&mut self, value: Const, suffix: &str, kind: Kind, span: Span) -> Expr {
        if suffix.is_empty() {
            let ty = self.infer.fresh(kind);
            return self.infer.written(Expr::constant(value, ty, span));
        }
        match scalar_named(suffix).filter(|&scalar| kind.fits(scalar)) {
            Some(scalar) => self.infer.written(Expr::constant(value, scalar, span)),
            None => {
                self.error(Types::Literal { suffix: suffix.to_owned() }, span);
                Expr::error(span)
            }
        }
    }
}
