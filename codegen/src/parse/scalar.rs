//! Methods and constants of scalars: `x.max(y)`, `h.to_f32()`, `u32::MAX`.

use super::cx::Cx;
use super::infer::Kind;
use super::method::Args;
use super::rule::{Rule, bits, is_small_float};
use crate::diag::Code;
use crate::ir::{BinaryOp, Const, Expr, ExprKind, MathOp, Scalar, Span, Type};

impl Cx<'_> {
    pub(super) fn scalar_constant(&mut self, scalar: Scalar, name: &str, span: Span) -> Expr {
        let value = match (name, scalar.integer_range(), scalar) {
            ("MIN", Some((least, _)), _) => Const::Int(least),
            ("MAX", Some((_, greatest)), _) => Const::Int(greatest),
            ("BITS", Some(_), _) => {
                return Expr::constant(Const::Int(i128::from(scalar.bytes() * 8)), Scalar::U32, span);
            }
            ("MIN", None, Scalar::F32) => Const::Float(f64::from(f32::MIN)),
            ("MAX", None, Scalar::F32) => Const::Float(f64::from(f32::MAX)),
            ("EPSILON", None, Scalar::F32) => Const::Float(f64::from(f32::EPSILON)),
            ("MIN", None, Scalar::F64) => Const::Float(f64::MIN),
            ("MAX", None, Scalar::F64) => Const::Float(f64::MAX),
            ("EPSILON", None, Scalar::F64) => Const::Float(f64::EPSILON),
            ("INFINITY", None, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64) => {
                Const::Float(f64::INFINITY)
            }
            ("NEG_INFINITY", None, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64) => {
                Const::Float(f64::NEG_INFINITY)
            }
            ("NAN", None, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64) => Const::Float(f64::NAN),
            ("ZERO", None, Scalar::F16 | Scalar::Bf16) => Const::Float(0.0),
            ("ONE", None, Scalar::F16 | Scalar::Bf16) => Const::Float(1.0),
            _ => {
                self.error(
                    Code::UnknownName,
                    span,
                    format!("`{scalar}` has no constant `{name}` in kernels"),
                )
                .help("there are MIN, MAX, BITS; for floats EPSILON, INFINITY, NEG_INFINITY and NAN");
                return Expr::error(span);
            }
        };
        Expr::constant(value, scalar, span)
    }

    pub(super) fn scalar_method(&mut self, value: Expr, name: &str, args: &Args, span: Span) -> Option<Expr> {
        let op = match name {
            "min" => MathOp::Min,
            "max" => MathOp::Max,
            "abs" => MathOp::Abs,
            "mul_add" => MathOp::Fma,
            "sqrt" => MathOp::Sqrt,
            "recip" => MathOp::Recip,
            "div_ceil" => return Some(self.div_ceil(value, args, span)),
            _ => return self.scalar_conversion(value, name, args, span),
        };
        let operands = match op {
            MathOp::Min | MathOp::Max => self.exactly::<1>(name, args, span).map(Vec::from),
            MathOp::Fma => self.exactly::<2>(name, args, span).map(Vec::from),
            _ => self.exactly::<0>(name, args, span).map(Vec::from),
        };
        Some(match operands {
            Some(rest) => self.math_of(op, [value].into_iter().chain(rest).collect(), span),
            None => Expr::error(span),
        })
    }

    /// `a.div_ceil(b)`, of unsigned integers: `a / b`, and one more if something remains.
    fn div_ceil(&mut self, a: Expr, args: &Args, span: Span) -> Expr {
        let Some([b]) = self.exactly("div_ceil", args, span) else { return Expr::error(span) };
        if !self.require(&a.ty, Rule::DivCeil, span) {
            return Expr::error(span);
        }
        let quotient = self.apply(BinaryOp::Div, a.clone(), b.clone(), span);
        let remainder = self.apply(BinaryOp::Rem, a, b, span);
        let zero = Expr::constant(Const::Int(0), remainder.ty.clone(), span);
        let inexact = self.apply(BinaryOp::Ne, remainder, zero, span);
        let one_more = Expr { ty: quotient.ty.clone(), kind: ExprKind::Cast(Box::new(inexact)), span };
        self.apply(BinaryOp::Add, quotient, one_more, span)
    }

    /// `to_f32`, `to_f64`, `to_bits`.
    fn scalar_conversion(&mut self, value: Expr, name: &str, args: &Args, span: Span) -> Option<Expr> {
        let to = match (name, self.resolve(&value.ty).as_scalar()) {
            ("to_f32", Some(from)) if is_small_float(from) => Scalar::F32.into(),
            ("to_f64", Some(from)) if is_small_float(from) => Scalar::F64.into(),
            ("to_bits", Some(from)) => bits(from)?.into(),
            ("to_f32", None) if self.require(&value.ty, Rule::Small("to_f32"), span) => Scalar::F32.into(),
            ("to_f64", None) if self.require(&value.ty, Rule::Small("to_f64"), span) => Scalar::F64.into(),
            ("to_bits", None) => {
                let bits = self.infer.fresh(Kind::Integer);
                if self.require(&value.ty, Rule::Bits(bits.clone()), span) { bits } else { Type::Error }
            }
            ("to_f32" | "to_f64", None) => Type::Error,
            _ => return None,
        };
        if to == Type::Error {
            return Some(Expr::error(span));
        }
        if self.exactly::<0>(name, args, span).is_none() {
            return Some(Expr::error(span));
        }
        let value = Box::new(value);
        let kind = if name == "to_bits" { ExprKind::Bits(value) } else { ExprKind::Cast(value) };
        Some(Expr { kind, ty: to, span })
    }
}
