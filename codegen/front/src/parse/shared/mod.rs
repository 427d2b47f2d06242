//! Declarations of shared objects: `shared()` and `reuse(..)`.

pub(super) mod pipeline;

use self::pipeline::{shared_pipeline, split_parts};
use super::cx::Cx;
use super::span;
use super::types::generic_arguments;
use crate::diag::mistake::Shared;
use crate::ir::{Compound, Expr, ExprKind, SharedId, Span, Type};
use crate::words::{FunctionWord, Word};

/// A call that declares a shared object.
struct Declaration<'s> {
    /// The type argument of `shared::<Barrier>()`.
    ty: Option<&'s syn::Type>,
    /// The object whose memory is reused.
    reused: Option<&'s syn::Expr>,
}

impl Cx<'_> {
    /// Resolves the value of `let name: annotation = value;` if it declares a shared object with a
    /// known type.
    pub(in crate::parse) fn declared_shared(
        &mut self,
        name: &str,
        annotation: Option<&Type>,
        value: &syn::Expr,
    ) -> Option<Expr> {
        let declaration = self.declaration(value)?;
        let ty = match declaration.ty {
            Some(ty) => self.ty(ty),
            None => annotation?.clone(),
        };
        let span = span::of_expr(value);
        Some(match declaration.reused {
            None => self.make_shared(name, ty, span),
            Some(object) => {
                let object = self.expr(object);
                self.make_reused(name, ty, &object, span)
            }
        })
    }

    fn declaration<'s>(&mut self, value: &'s syn::Expr) -> Option<Declaration<'s>> {
        let syn::Expr::Call(call) = value else { return None };
        let syn::Expr::Path(path) = &*call.func else { return None };
        let ty = match generic_arguments(path.path.segments.last()?)[..] {
            [] => None,
            [syn::GenericArgument::Type(ty)] => Some(ty),
            _ => return None,
        };
        let reused = call.args.first();
        let word = match call.args.len() {
            0 => FunctionWord::Shared,
            1 => FunctionWord::Reuse,
            _ => return None,
        };
        self.is_word(&call.func, word).then_some(Declaration { ty, reused })
    }

    /// Resolves `shared::<Barrier>()`.
    pub(in crate::parse) fn shared_by_turbofish(
        &mut self,
        path: &syn::PathSegment,
        span: Span,
    ) -> Option<Expr> {
        let ty = self.type_of_declaration(FunctionWord::Shared, path, span)?;
        Some(self.make_shared(&FunctionWord::Shared.name(), ty, span))
    }

    /// Resolves `reuse::<SharedArray<f32, 64>>(ring)`.
    pub(in crate::parse) fn reuse_by_turbofish(
        &mut self,
        object: Expr,
        path: &syn::PathSegment,
        span: Span,
    ) -> Option<Expr> {
        let ty = self.type_of_declaration(FunctionWord::Reuse, path, span)?;
        Some(self.make_reused(&FunctionWord::Reuse.name(), ty, &object, span))
    }

    fn type_of_declaration(
        &mut self,
        word: FunctionWord,
        path: &syn::PathSegment,
        span: Span,
    ) -> Option<Type> {
        let [syn::GenericArgument::Type(ty)] = generic_arguments(path)[..] else {
            self.error(Shared::Untyped(word.name()), span);
            return None;
        };
        Some(self.ty(ty))
    }

    /// Declares an object of type `ty` in memory of its own.
    fn make_shared(&mut self, name: &str, ty: Type, span: Span) -> Expr {
        if !self.is_declared_once(FunctionWord::Shared, span) {
            return Expr { ty, ..Expr::error(span) };
        }
        match ty {
            ty if ty.is_shared_handle() => self.declared.shared_var(name.to_owned(), ty, span),
            Type::Compound(Compound::Pipeline(ring)) => shared_pipeline(&mut self.declared, name, ring, span),
            Type::Error => Expr::error(span),
            other => {
                self.error(Shared::NotSharable(self.infer.partial(&other)), span);
                Expr::error(span)
            }
        }
    }

    /// Declares an object of type `ty` in the memory of another one.
    fn make_reused(&mut self, name: &str, ty: Type, object: &Expr, span: Span) -> Expr {
        if !self.is_declared_once(FunctionWord::Reuse, span) || object.is_error() || ty == Type::Error {
            return Expr { ty, ..Expr::error(span) };
        }
        if !holds_data(&ty) {
            self.error(Shared::Reusing(self.infer.partial(&ty)), span);
            return Expr::error(span);
        }
        let Some(memory) = self.memory(object) else {
            return Expr { ty, ..Expr::error(span) };
        };
        self.declared.reusing_var(name.to_owned(), ty, memory, span)
    }

    /// Returns the variables in whose memory an object lies, or `None` after an error if it does
    /// not hold data or is not a whole variable.
    fn memory(&mut self, object: &Expr) -> Option<Vec<SharedId>> {
        let whole = |part: &Expr| if let ExprKind::Shared(id) = part.kind { Some(id) } else { None };
        let ty = self.infer.resolve(&object.ty);
        if let (Type::Compound(Compound::Pipeline(ring)), ExprKind::Compound(parts)) = (&ty, &object.kind) {
            let parts = split_parts(parts.clone(), ring.tiles.len())?;
            return parts.tiles.iter().map(whole).collect();
        }
        if !holds_data(&ty) {
            self.error(Shared::Reused(self.infer.partial(&ty)), object.span);
            return None;
        }
        let Some(id) = whole(object) else {
            self.error(Shared::ReusedPart, object.span);
            return None;
        };
        Some(self.declared.memory_of(id))
    }

    /// Whether every thread reaches the declaration exactly once. Otherwise this reports an error.
    fn is_declared_once(&mut self, word: FunctionWord, span: Span) -> bool {
        let is_once = !self.nesting.in_branch();
        if !is_once {
            let call = self.nesting.call_in_branch();
            self.error(Shared::InBranch { word: word.name(), call }, span);
        }
        is_once
    }
}

/// Whether the content of a shared object is nothing but data.
fn holds_data(ty: &Type) -> bool {
    match ty {
        Type::Tile(_) | Type::SharedArray(..) => true,
        Type::Stages(object, _) => holds_data(object),
        _ => false,
    }
}
