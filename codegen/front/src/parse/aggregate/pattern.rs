//! Patterns of `let` that take values apart.

use syn::Pat;

use crate::diag::mistake::{Aggregate, Mismatch, Syntax};
use crate::ir::{Compound, Const, Expr, ExprKind, Scalar, Span, Type};
use crate::parse::cx::Cx;

/// The part of a value that is given to a pattern, or `None` after an error.
type Part = Option<Expr>;

impl Cx<'_> {
    /// Binds the names in `pat` to the parts of `value`. If an error was already reported for the
    /// value, binds them nevertheless, to avoid errors at their uses.
    pub(in crate::parse) fn bind_pattern(&mut self, pat: &Pat, value: Part) {
        match pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                let value = value.unwrap_or(Expr::error(Span::of(name)));
                self.bind_value(&name.ident, name.mutability.is_some(), value, None);
            }
            Pat::Wild(_) => {
                if let Some(value) = value.filter(|value| !is_element(value)) {
                    self.compute_leaves(&value);
                }
            }
            Pat::Paren(paren) => self.bind_pattern(&paren.pat, value),
            Pat::Tuple(tuple) => {
                let parts = value.and_then(|value| self.tuple_parts(value, tuple));
                self.bind_elements(&tuple.elems, parts, Span::of(pat));
            }
            Pat::TupleStruct(tuple) if tuple.qself.is_none() => {
                let parts = value.and_then(|value| self.struct_parts(value, &tuple.path, Span::of(pat)));
                self.bind_elements(&tuple.elems, parts, Span::of(pat));
            }
            Pat::Struct(pattern) if pattern.qself.is_none() => self.bind_fields(pattern, value),
            Pat::Slice(slice) => {
                let parts = value.and_then(|value| self.array_parts(value, Span::of(pat)));
                self.bind_elements(&slice.elems, parts, Span::of(pat));
            }
            // A unit struct.
            Pat::Path(path) if path.qself.is_none() => {
                if let Some(value) = value {
                    self.struct_parts(value, &path.path, Span::of(pat));
                }
            }
            other => self.error(Syntax::LetPattern, Span::of(other)),
        }
    }

    /// Binds patterns to parts, of which `..` skips some.
    fn bind_elements<'s>(
        &mut self,
        patterns: impl IntoIterator<Item = &'s Pat>,
        parts: Option<Vec<Expr>>,
        span: Span,
    ) {
        let patterns: Vec<_> = patterns.into_iter().collect();
        let rest = patterns.iter().position(|pat| matches!(pat, Pat::Rest(_)));
        let named = patterns.len() - usize::from(rest.is_some());
        let parts = parts.filter(|parts| {
            let fits = if rest.is_some() { parts.len() >= named } else { parts.len() == named };
            if !fits {
                self.error(Aggregate::PatternLength { wanted: parts.len(), found: named }, span);
            }
            fits
        });
        let skipped = parts.as_ref().map_or(0, |parts| parts.len() - named);
        for (i, pat) in patterns.into_iter().enumerate() {
            let at = match rest {
                Some(rest) if i == rest => {
                    let parts = parts.iter().flat_map(|parts| &parts[rest..rest + skipped]);
                    parts.filter(|part| !is_element(part)).for_each(|part| self.compute_leaves(part));
                    continue;
                }
                Some(rest) if i > rest => i - 1 + skipped,
                _ => i,
            };
            let part = parts.as_ref().and_then(|parts| parts.get(at)).cloned();
            self.bind_pattern(pat, part);
        }
    }

    fn bind_fields(&mut self, pattern: &syn::PatStruct, value: Part) {
        let span = Span::of(pattern);
        let before = self.sink.len();
        let parts = value.and_then(|value| self.struct_parts(value, &pattern.path, span));
        // The type is known from the pattern as well.
        let of = match &parts {
            Some(_) => self.struct_of(&pattern.path),
            None => None,
        };
        let mut bound = vec![];
        for field in &pattern.fields {
            let position = of.as_ref().and_then(|of| self.position(of, &field.member));
            let part = parts.as_ref().zip(position).and_then(|(parts, at)| parts.get(at)).cloned();
            bound.extend(position);
            self.bind_pattern(&field.pat, part);
        }
        let Some(of) = of else { return };
        let missing: Vec<_> = (0..of.fields.len()).filter(|at| !bound.contains(at)).collect();
        if pattern.rest.is_none() && !missing.is_empty() && self.sink.len() == before {
            let missing = missing.into_iter().map(|at| of.fields[at].name.clone()).collect();
            self.error(Aggregate::NotInPattern { name: of.name, missing }, span);
        }
    }

    /// Returns the parts of a tuple, for a pattern with these elements.
    fn tuple_parts(&mut self, value: Expr, pattern: &syn::PatTuple) -> Option<Vec<Expr>> {
        let ty = self.infer.resolve(&value.ty);
        match (value.kind, ty) {
            (_, Type::Error | Type::Never) => None,
            (ExprKind::Compound(parts), Type::Compound(Compound::Tuple(_))) => Some(parts),
            (ExprKind::Unit, Type::Unit) => Some(vec![]),
            (_, ty) => {
                let found = self.infer.partial(&ty);
                self.error(Mismatch::NoTuple { found }, Span::of(pattern));
                None
            }
        }
    }

    /// Returns the fields of a struct, which the pattern names.
    fn struct_parts(&mut self, value: Expr, path: &syn::Path, span: Span) -> Option<Vec<Expr>> {
        let of = self.struct_of(path)?;
        let ty = Type::Compound(Compound::Struct(of));
        if value.is_error() || !self.expect(&Expr { span, ..value.clone() }, &ty) {
            return None;
        }
        if let ExprKind::Compound(parts) = value.kind { Some(parts) } else { None }
    }

    /// Returns the elements of an array.
    pub(super) fn array_parts(&mut self, value: Expr, span: Span) -> Option<Vec<Expr>> {
        if let (Type::Compound(Compound::Array(..)), ExprKind::Compound(parts)) = (&value.ty, &value.kind) {
            return Some(parts.clone());
        }
        let (element, len) = match self.infer.outermost(&value.ty) {
            Type::Array(element, len) => (*element, len),
            Type::Error | Type::Never => return None,
            other => {
                let found = self.infer.partial(&other);
                self.error(Mismatch::NoArrayValue { found }, span);
                return None;
            }
        };
        if let ExprKind::Array(elements) = value.kind {
            return Some(elements);
        }
        let array = match value.kind {
            ExprKind::Local(_) | ExprKind::Const(_) => value,
            // An expression that would be evaluated once for each element.
            _ => {
                let (id, array) = self.builder.temporary("array", value.ty.clone(), span);
                self.builder.assign(id, value);
                array
            }
        };
        let element_at = |i| {
            let index = Expr::constant(Const::Int(i128::from(i)), Scalar::Usize, span);
            Expr {
                kind: ExprKind::Index(Box::new(array.clone()), Box::new(index)),
                ty: element.clone(),
                span,
            }
        };
        Some((0..len).map(element_at).collect())
    }
}

/// Whether it is an element of a variable at an index that certainly exists. Nothing has to be
/// computed if its value is not needed.
fn is_element(value: &Expr) -> bool {
    let ExprKind::Index(array, index) = &value.kind else { return false };
    let Type::Array(_, len) = array.ty else { return false };
    matches!(array.kind, ExprKind::Local(_)) && index.as_int().is_some_and(|index| index < i128::from(len))
}
