//! Type inference, as far as kernels need it: literals take their type from how they are used.
//!
//! rustc infers the types of the same body, so the answers must be its answers: an unsuffixed
//! integer that nothing decides is an `i32`, a float an `f64`.
//!
//! Two types are made one only where every right typing of the body has them so. Then it does not
//! matter in which order uses are seen, or that rustc waits where this does not: what is decided
//! before literals fall back to their defaults is decided so in rustc as well, if it takes the body
//! at all, and the rest falls back in both. A rule that leaves a choice is not drawn from here; it
//! is a [`Rule`](self::rule::Rule), judged when the type is known.

pub(in crate::parse) mod fold;
pub(in crate::parse) mod rule;
pub(in crate::parse) mod settle;

use crate::diag::{Decision, PartialType};
use crate::ir::{Compound, InferId, Scalar, Span, Type};

/// What is known about each unknown.
#[derive(Debug, Default)]
pub(in crate::parse) struct Infer {
    unknowns: Vec<Unknown>,
}

#[derive(Clone, Debug)]
enum Unknown {
    Open(Kind),
    /// What it is, and the use that decided it, if one did.
    Known(Type, Option<Span>),
}

/// What an unknown may turn out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::parse) enum Kind {
    /// Anything.
    Any,
    /// An integer: the type of an unsuffixed integer literal.
    Integer,
    /// A float: the type of an unsuffixed float literal.
    Float,
}

impl Kind {
    /// Whether a `scalar` can come of it.
    pub(in crate::parse) fn fits(self, scalar: Scalar) -> bool {
        match self {
            Self::Any => true,
            Self::Integer => scalar.is_integer(),
            // The 16- and 8-bit floats are library types on the host: no literal is one.
            Self::Float => matches!(scalar, Scalar::F32 | Scalar::F64),
        }
    }

    /// What a literal is that nothing decides.
    fn default_type(self) -> Option<Scalar> {
        match self {
            Self::Any => None,
            Self::Integer => Some(Scalar::I32),
            Self::Float => Some(Scalar::F64),
        }
    }
}

impl Infer {
    /// A new unknown.
    pub(in crate::parse) fn fresh(&mut self, kind: Kind) -> Type {
        self.unknowns.push(Unknown::Open(kind));
        Type::Infer(InferId(u32::try_from(self.unknowns.len() - 1).unwrap_or(u32::MAX)))
    }

    /// What is known of `ty` so far, inside as well.
    pub(in crate::parse) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Infer(id) => match &self.unknowns[id.0 as usize] {
                Unknown::Open(_) => ty.clone(),
                Unknown::Known(ty, _) => self.resolve(ty),
            },
            Type::Array(element, len) => Type::Array(Box::new(self.resolve(element)), *len),
            Type::Compound(Compound::Flight(sum, keep)) => {
                Type::Compound(Compound::Flight(*sum, Box::new(self.resolve(keep))))
            }
            _ => ty.clone(),
        }
    }

    /// As [`Infer::resolve`], but the elements of an array stay as they are, so that it can be told
    /// what decided them.
    pub(in crate::parse) fn outermost(&self, ty: &Type) -> Type {
        match ty {
            Type::Infer(id) => match &self.unknowns[id.0 as usize] {
                Unknown::Open(_) => ty.clone(),
                Unknown::Known(ty, _) => self.outermost(ty),
            },
            _ => ty.clone(),
        }
    }

    /// What `ty` may turn out to be, if it is unknown.
    pub(in crate::parse) fn kind(&self, ty: &Type) -> Option<Kind> {
        match self.resolve(ty) {
            Type::Infer(id) => match self.unknowns[id.0 as usize] {
                Unknown::Open(kind) => Some(kind),
                Unknown::Known(..) => None,
            },
            _ => None,
        }
    }

    /// Makes `a` and `b` one type, because of the use `at`; false if they cannot be.
    pub(in crate::parse) fn unify(&mut self, a: &Type, b: &Type, at: Span) -> bool {
        match (self.resolve(a), self.resolve(b)) {
            (Type::Error | Type::Never, _) | (_, Type::Error | Type::Never) => true,
            (Type::Infer(a), Type::Infer(b)) if a == b => true,
            // No type holds itself.
            (Type::Infer(id), ty) | (ty, Type::Infer(id)) if self.holds(&ty, id) => false,
            (Type::Infer(id), ty) | (ty, Type::Infer(id)) => self.bind(id, ty, at),
            (Type::Array(a, m), Type::Array(b, n)) => m == n && self.unify(&a, &b, at),
            (Type::Compound(Compound::Flight(a, mine)), Type::Compound(Compound::Flight(b, other))) => {
                a == b && self.unify(&mine, &other, at)
            }
            (a, b) => a == b,
        }
    }

    /// Whether `id` is an element of the array `ty`, or what the flight `ty` keeps.
    fn holds(&self, ty: &Type, id: InferId) -> bool {
        match ty {
            Type::Array(element, _) | Type::Compound(Compound::Flight(_, element)) => {
                let element = self.resolve(element);
                element == Type::Infer(id) || self.holds(&element, id)
            }
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
        // The more particular of two unknowns must stay open.
        match ty {
            Type::Infer(other) if mine != Kind::Any => {
                self.unknowns[other.0 as usize] = Unknown::Known(Type::Infer(id), Some(at));
            }
            ty => self.unknowns[id.0 as usize] = Unknown::Known(ty, Some(at)),
        }
        true
    }

    /// Gives literals that nothing has decided their default types.
    pub(in crate::parse) fn fall_back(&mut self) {
        for unknown in &mut self.unknowns {
            if let Unknown::Open(kind) = unknown
                && let Some(default) = kind.default_type()
            {
                *unknown = Unknown::Known(default.into(), None);
            }
        }
    }

    /// Has nothing more said of `ty`, whose lack was reported.
    pub(in crate::parse) fn give_up(&mut self, ty: &Type) {
        if let Type::Infer(id) = self.resolve(ty) {
            self.unknowns[id.0 as usize] = Unknown::Known(Type::Error, None);
        }
    }

    /// The final type: what is known, else the literal's default, else none.
    pub(in crate::parse) fn settle(&self, ty: &Type) -> Option<Type> {
        match self.resolve(ty) {
            Type::Array(element, len) => Some(Type::Array(Box::new(self.settle(&element)?), len)),
            Type::Compound(Compound::Flight(sum, keep)) => {
                Some(Type::Compound(Compound::Flight(sum, Box::new(self.settle(&keep)?))))
            }
            Type::Infer(_) => self.kind(ty)?.default_type().map(Type::from),
            ty => Some(ty),
        }
    }

    /// Which line made `ty` what it is, where that is another than that of `span`.
    pub(in crate::parse) fn since(&self, ty: &Type, span: Span) -> Option<Decision> {
        let line = self.decided_at(ty)?.start().line;
        // What has no place is on line 0.
        let elsewhere = line > 0 && line != span.start().line;
        elsewhere.then(|| Decision { line, ty: self.partial(ty) })
    }

    /// The use that decided `ty`, if it was not known from the beginning.
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

    /// `ty`, as far as it is known.
    pub(in crate::parse) fn partial(&self, ty: &Type) -> PartialType {
        match self.kind(ty) {
            Some(Kind::Integer) => PartialType::Integer,
            Some(Kind::Float) => PartialType::Float,
            Some(Kind::Any) => PartialType::Unknown,
            None => match self.resolve(ty) {
                Type::Array(element, len) => PartialType::Array(Box::new(self.partial(&element)), len),
                ty => PartialType::Known(ty),
            },
        }
    }
}
