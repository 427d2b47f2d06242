//! Type inference, as far as kernels need it: literals take their type from how they are used.
//!
//! rustc infers the types of the same body, so the answers must be its answers: an unsuffixed integer that
//! nothing decides is an `i32`, a float an `f64`.

use crate::ir::{InferId, Scalar, Type};

/// What is known about each unknown.
#[derive(Debug, Default)]
pub(super) struct Infer {
    unknowns: Vec<Unknown>,
}

#[derive(Clone, Debug)]
enum Unknown {
    Open(Kind),
    Known(Type),
}

/// What an unknown may turn out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything.
    Any,
    /// An integer: the type of an unsuffixed integer literal.
    Integer,
    /// A float: the type of an unsuffixed float literal.
    Float,
}

impl Infer {
    /// A new unknown.
    pub(super) fn fresh(&mut self, kind: Kind) -> Type {
        self.unknowns.push(Unknown::Open(kind));
        Type::Infer(InferId(u32::try_from(self.unknowns.len() - 1).unwrap_or(u32::MAX)))
    }

    /// What is known of `ty` so far, inside as well.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Infer(id) => match &self.unknowns[id.0 as usize] {
                Unknown::Open(_) => ty.clone(),
                Unknown::Known(ty) => self.resolve(ty),
            },
            Type::Array(element, len) => Type::Array(Box::new(self.resolve(element)), *len),
            _ => ty.clone(),
        }
    }

    /// What `ty` may turn out to be, if it is unknown.
    pub(super) fn kind(&self, ty: &Type) -> Option<Kind> {
        match self.resolve(ty) {
            Type::Infer(id) => match self.unknowns[id.0 as usize] {
                Unknown::Open(kind) => Some(kind),
                Unknown::Known(_) => None,
            },
            _ => None,
        }
    }

    /// Whether it is, or will be, an integer.
    pub(super) fn is_integer(&self, ty: &Type) -> bool {
        self.kind(ty) == Some(Kind::Integer) || self.resolve(ty).as_scalar().is_some_and(Scalar::is_integer)
    }

    /// Makes `a` and `b` one type; false if they cannot be.
    pub(super) fn unify(&mut self, a: &Type, b: &Type) -> bool {
        match (self.resolve(a), self.resolve(b)) {
            (Type::Error | Type::Never, _) | (_, Type::Error | Type::Never) => true,
            (Type::Infer(a), Type::Infer(b)) if a == b => true,
            // No type holds itself.
            (Type::Infer(id), ty) | (ty, Type::Infer(id)) if self.holds(&ty, id) => false,
            (Type::Infer(id), ty) | (ty, Type::Infer(id)) => self.bind(id, ty),
            (Type::Array(a, m), Type::Array(b, n)) => m == n && self.unify(&a, &b),
            (a, b) => a == b,
        }
    }

    /// Whether `id` is an element of the array `ty`.
    fn holds(&self, ty: &Type, id: InferId) -> bool {
        match ty {
            Type::Array(element, _) => {
                let element = self.resolve(element);
                element == Type::Infer(id) || self.holds(&element, id)
            }
            _ => false,
        }
    }

    fn bind(&mut self, id: InferId, ty: Type) -> bool {
        let Unknown::Open(mine) = self.unknowns[id.0 as usize] else { return false };
        let fits = match (mine, self.kind(&ty)) {
            (Kind::Any, _) | (_, Some(Kind::Any)) => true,
            (mine, Some(other)) => mine == other,
            (Kind::Integer, None) => ty.as_scalar().is_some_and(Scalar::is_integer),
            // The 16- and 8-bit floats are library types on the host: no literal is one.
            (Kind::Float, None) => matches!(ty.as_scalar(), Some(Scalar::F32 | Scalar::F64)),
        };
        if !fits {
            return false;
        }
        // The more particular of two unknowns must stay open.
        match ty {
            Type::Infer(other) if mine != Kind::Any => {
                self.unknowns[other.0 as usize] = Unknown::Known(Type::Infer(id));
            }
            ty => self.unknowns[id.0 as usize] = Unknown::Known(ty),
        }
        true
    }

    /// The final type: what is known, else the literal's default, else none.
    pub(super) fn settle(&self, ty: &Type) -> Option<Type> {
        match self.resolve(ty) {
            Type::Array(element, len) => Some(Type::Array(Box::new(self.settle(&element)?), len)),
            Type::Infer(_) => match self.kind(ty)? {
                Kind::Any => None,
                Kind::Integer => Some(Scalar::I32.into()),
                Kind::Float => Some(Scalar::F64.into()),
            },
            ty => Some(ty),
        }
    }

    /// `ty` for a message.
    pub(super) fn name(&self, ty: &Type) -> String {
        match self.kind(ty) {
            Some(Kind::Integer) => "an integer".to_owned(),
            Some(Kind::Float) => "a float".to_owned(),
            Some(Kind::Any) => "an unknown type".to_owned(),
            None => match self.resolve(ty) {
                Type::Array(element, len) => format!("`[{}; {len}]`", self.name(&element).replace('`', "")),
                ty => format!("`{ty}`"),
            },
        }
    }
}
