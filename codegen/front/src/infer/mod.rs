//! Type inference to the extent that kernels need it: literals take their types from their uses.
//!
//! rustc infers the types of the same body, and the results must agree: an unsuffixed integer that
//! nothing constrains is an `i32`, a float an `f64`.
//!
//! Two types are unified only if they are equal in every correct typing of the body. The order in
//! which uses are visited then does not matter, nor does it matter that rustc sometimes waits where
//! this inference does not: whatever is decided here before literals fall back to their defaults is
//! also decided in rustc, if it accepts the body at all, and the rest falls back in both. A rule
//! that admits several types is never used for inference. It becomes a [`Rule`](self::rule::Rule),
//! which is checked once the type is known.

pub(crate) mod fold;
pub(crate) mod rule;
pub(crate) mod run;
pub(crate) mod scalar;
pub(crate) mod settle;
mod typing;

pub(crate) use typing::Typing;

use rule::Obligation;

use crate::diag::{Decision, PartialType};
use crate::ir::{Compound, Expr, InferId, Scalar, Span, Type};
use crate::limits::count;

/// The inference variables of a kernel, and what has to be checked once their types are known.
#[derive(Debug, Default)]
pub(crate) struct Infer {
    /// The state of each inference variable.
    unknowns: Vec<Unknown>,
    /// Rules for types that are not yet inferred.
    obligations: Vec<Obligation>,
    /// Every number literal. Its type may not be able to represent it.
    numbers: Vec<Expr>,
    /// The types of accumulators that are created without generics, with the names of these types.
    accumulators: Vec<(Type, &'static str)>,
}

#[derive(Clone, Debug)]
enum Unknown {
    Open(Kind),
    /// The type, and the use that decided it, if one did.
    Known(Type, Option<Span>),
}

/// The types that an inference variable may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any type.
    Any,
    /// An integer type: that of an unsuffixed integer literal.
    Integer,
    /// A float type: that of an unsuffixed float literal.
    Float,
}

impl Kind {
    /// Whether the variable may become `scalar`.
    pub(crate) fn fits(self, scalar: Scalar) -> bool {
        match self {
            Self::Any => true,
            Self::Integer => scalar.is_integer(),
            // The 16- and 8-bit floats are library types on the host. No literal has one of them.
            Self::Float => matches!(scalar, Scalar::F32 | Scalar::F64),
        }
    }

    /// Returns the type of an unconstrained literal.
    fn default_type(self) -> Option<Scalar> {
        match self {
            Self::Any => None,
            Self::Integer => Some(Scalar::I32),
            Self::Float => Some(Scalar::F64),
        }
    }
}

impl Infer {
    /// Creates an inference variable.
    pub(crate) fn fresh(&mut self, kind: Kind) -> Type {
        self.unknowns.push(Unknown::Open(kind));
        Type::Infer(InferId(count(self.unknowns.len() - 1)))
    }

    /// Creates an inference variable for an accumulator type of this name.
    pub(crate) fn fresh_accumulator(&mut self, name: &'static str) -> Type {
        let ty = self.fresh(Kind::Any);
        self.accumulators.push((ty.clone(), name));
        ty
    }

    /// Returns the name of the accumulator type that a type without generics is.
    pub(crate) fn accumulator(&self, ty: &Type) -> Option<&'static str> {
        let ty = self.resolve(ty);
        let is_meant = |(open, _): &&(Type, &'static str)| self.resolve(open) == ty;
        self.kind(&ty)?;
        self.accumulators.iter().find(is_meant).map(|(_, name)| *name)
    }

    /// Registers a number, which is checked once its type is known.
    pub(crate) fn written(&mut self, number: Expr) -> Expr {
        self.numbers.push(number.clone());
        number
    }

    /// Substitutes the known inference variables in `ty`, at every level.
    pub(crate) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Infer(id) => match &self.unknowns[id.0 as usize] {
                Unknown::Open(_) => ty.clone(),
                Unknown::Known(ty, _) => self.resolve(ty),
            },
            Type::Array(element, len) => Type::Array(Box::new(self.resolve(element)), *len),
            Type::Compound(Compound::Flight(sum, keep)) => {
                Type::Compound(Compound::Flight(*sum, Box::new(self.resolve(keep))))
            }
            Type::Compound(Compound::Tuple(elements)) => {
                Type::Compound(Compound::Tuple(elements.iter().map(|ty| self.resolve(ty)).collect()))
            }
            Type::Compound(Compound::Array(element, len)) => {
                Type::Compound(Compound::Array(Box::new(self.resolve(element)), *len))
            }
            _ => ty.clone(),
        }
    }

    /// Like [`Infer::resolve`], but leaves the elements of an array as they are, to keep track of
    /// the use that decided them.
    pub(crate) fn outermost(&self, ty: &Type) -> Type {
        match ty {
            Type::Infer(id) => match &self.unknowns[id.0 as usize] {
                Unknown::Open(_) => ty.clone(),
                Unknown::Known(ty, _) => self.outermost(ty),
            },
            _ => ty.clone(),
        }
    }

    /// Returns the types that `ty` may stand for, if it is not known yet.
    pub(crate) fn kind(&self, ty: &Type) -> Option<Kind> {
        match self.resolve(ty) {
            Type::Infer(id) => match self.unknowns[id.0 as usize] {
                Unknown::Open(kind) => Some(kind),
                Unknown::Known(..) => None,
            },
            _ => None,
        }
    }

    /// Unifies `a` and `b` because of the use `at`. Returns false if they differ.
    pub(crate) fn unify(&mut self, a: &Type, b: &Type, at: Span) -> bool {
        match (self.resolve(a), self.resolve(b)) {
            (Type::Error | Type::Never, _) | (_, Type::Error | Type::Never) => true,
            (Type::Infer(a), Type::Infer(b)) if a == b => true,
            // A type cannot contain itself.
            (Type::Infer(id), ty) | (ty, Type::Infer(id)) if self.holds(&ty, id) => false,
            (Type::Infer(id), ty) | (ty, Type::Infer(id)) => self.bind(id, ty, at),
            (Type::Array(a, m), Type::Array(b, n)) => m == n && self.unify(&a, &b, at),
            (Type::Compound(Compound::Flight(a, mine)), Type::Compound(Compound::Flight(b, other))) => {
                a == b && self.unify(&mine, &other, at)
            }
            (Type::Compound(Compound::Array(a, m)), Type::Compound(Compound::Array(b, n))) => {
                m == n && self.unify(&a, &b, at)
            }
            (Type::Compound(Compound::Tuple(a)), Type::Compound(Compound::Tuple(b))) => {
                a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| self.unify(a, b, at))
            }
            (a, b) => a == b,
        }
    }

    /// Whether `id` is an element of the array or tuple `ty`, or the kept value of the flight `ty`.
    fn holds(&self, ty: &Type, id: InferId) -> bool {
        match ty {
            Type::Array(element, _)
            | Type::Compound(Compound::Flight(_, element) | Compound::Array(element, _)) => {
                let element = self.resolve(element);
                element == Type::Infer(id) || self.holds(&element, id)
            }
            Type::Compound(Compound::Tuple(elements)) => elements.iter().any(|element| {
                let element = self.resolve(element);
                element == Type::Infer(id) || self.holds(&element, id)
            }),
            _ => false,
        }
    }

    fn bind(&mut self, id: InferId, ty: Type, at: Span) -> bool {
        let Unknown::Open(mine) = self.unknowns[id.0 as usize] else { return false };
        let fits = match (mine, self.kind(&ty)) {
            (Kind::Any, _) | (_, Some(Kind::Any)) => true,
            (mine, Some(other)) => mine == other,
            (mine, None) => ty.as_scalar().is_some_and(|scalar| mine.fits(scalar)),
        };
        if !fits {
            return false;
        }
        // The more constrained one of two variables must stay open.
        match ty {
            Type::Infer(other) if mine != Kind::Any => {
                self.unknowns[other.0 as usize] = Unknown::Known(Type::Infer(id), Some(at));
            }
            ty => self.unknowns[id.0 as usize] = Unknown::Known(ty, Some(at)),
        }
        true
    }

    /// Gives unconstrained literals their default types.
    pub(crate) fn fall_back(&mut self) {
        for unknown in &mut self.unknowns {
            if let Unknown::Open(kind) = unknown
                && let Some(default) = kind.default_type()
            {
                *unknown = Unknown::Known(default.into(), None);
            }
        }
    }

    /// Marks `ty` as erroneous, to suppress further errors after one that it is unknown.
    pub(crate) fn give_up(&mut self, ty: &Type) {
        if let Type::Infer(id) = self.resolve(ty) {
            self.unknowns[id.0 as usize] = Unknown::Known(Type::Error, None);
        }
    }

    /// Returns the final type: the known one, else the literal's default, if any.
    pub(crate) fn settle(&self, ty: &Type) -> Option<Type> {
        match self.resolve(ty) {
            Type::Array(element, len) => Some(Type::Array(Box::new(self.settle(&element)?), len)),
            Type::Compound(Compound::Flight(sum, keep)) => {
                Some(Type::Compound(Compound::Flight(sum, Box::new(self.settle(&keep)?))))
            }
            Type::Compound(Compound::Array(element, len)) => {
                Some(Type::Compound(Compound::Array(Box::new(self.settle(&element)?), len)))
            }
            Type::Compound(Compound::Tuple(elements)) => {
                let elements: Option<_> = elements.iter().map(|element| self.settle(element)).collect();
                Some(Type::Compound(Compound::Tuple(elements?)))
            }
            Type::Infer(_) => self.kind(ty)?.default_type().map(Type::from),
            ty => Some(ty),
        }
    }

    /// Returns the use that decided `ty`, if it is on another line than `span`.
    pub(crate) fn since(&self, ty: &Type, span: Span) -> Option<Decision> {
        let line = self.decided_at(ty)?.start().line;
        // Spans without a position report line 0.
        let elsewhere = line > 0 && line != span.start().line;
        elsewhere.then(|| Decision { line, ty: self.partial(ty) })
    }

    /// Returns the use that decided `ty`, unless it was known from the beginning.
    fn decided_at(&self, ty: &Type) -> Option<Span> {
        match ty {
            Type::Infer(id) => match &self.unknowns[id.0 as usize] {
                Unknown::Open(_) => None,
                Unknown::Known(next @ Type::Infer(_), _) => self.decided_at(next),
                Unknown::Known(_, at) => *at,
            },
            Type::Array(element, _) | Type::Compound(Compound::Flight(_, element)) => {
                self.decided_at(element)
            }
            _ => None,
        }
    }

    fn is_known(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Infer(_) => false,
            Type::Array(element, _) | Type::Compound(Compound::Array(element, _)) => self.is_known(&element),
            Type::Compound(Compound::Tuple(elements)) => elements.iter().all(|ty| self.is_known(ty)),
            _ => true,
        }
    }

    /// Returns `ty` as far as it is known.
    pub(crate) fn partial(&self, ty: &Type) -> PartialType {
        match self.kind(ty) {
            Some(Kind::Integer) => PartialType::Integer,
            Some(Kind::Float) => PartialType::Float,
            Some(Kind::Any) => PartialType::Unknown,
            None => match self.resolve(ty) {
                Type::Compound(Compound::Array(element, len)) if !self.is_known(&element) => {
                    PartialType::Array(Box::new(self.partial(&element)), len)
                }
                Type::Array(element, len) => PartialType::Array(Box::new(self.partial(&element)), len),
                Type::Compound(Compound::Tuple(elements)) if !elements.iter().all(|ty| self.is_known(ty)) => {
                    PartialType::Tuple(elements.iter().map(|element| self.partial(element)).collect())
                }
                ty => PartialType::Known(ty),
            },
        }
    }
}
