//! Type aliases of a module, which may have parameters: `type Stage<T, const N: u32> = Tile<T,
//! Shape2<N, 64>, Swizzle128>`.
//!
//! Arguments are read in the function that names the alias, and its type in the alias's own module.

use std::collections::HashMap;

use syn::visit_mut::{self, VisitMut};
use syn::{Expr, GenericArgument, GenericParam, ItemType, PathSegment};

use super::{MOST_ALIASES, generic_arguments, type_path};
use crate::diag::mistake::Argument;
use crate::infer::Kind;
use crate::ir::{GenericValue, Span, Type};
use crate::parse::cx::{Cx, Frame, Scoped};
use crate::parse::device::generics::Generics;
use crate::parse::item::condition;
use crate::parse::names;
use crate::words::TypeWord;

/// An alias with its arguments.
pub(super) struct Alias<'a> {
    pub(super) declared: Scoped<&'a ItemType>,
    generics: Generics<'a>,
}

impl<'a> Cx<'a> {
    /// Resolves the type that `segment` names by an alias.
    pub(super) fn aliased(&mut self, declared: Scoped<&'a ItemType>, segment: &PathSegment) -> Type {
        let Some(alias) = self.alias_with(declared, segment) else { return Type::Error };
        // rustc reports an alias of itself. The limit only prevents infinite recursion.
        if !self.may_enter(Span::of(&segment.ident)) {
            return Type::Error;
        }
        self.in_alias(Some(&alias), |cx| cx.ty(&declared.item.ty)).unwrap_or(Type::Error)
    }

    /// Reads the arguments of an alias. Reports those that do not fit.
    pub(super) fn alias_with(
        &mut self,
        declared: Scoped<&'a ItemType>,
        segment: &PathSegment,
    ) -> Option<Alias<'a>> {
        let Scoped { item, scope } = declared;
        condition::refuse_on_alias(item, self.sink);
        let mut generics = Generics::of(scope, &item.generics.params);
        let (params, given) = (params(item), arguments(segment));
        // rustc reports arguments of an alias without parameters.
        if params.is_empty() {
            return Some(Alias { declared, generics });
        }
        if params.len() != given.len() {
            let word = names::text(&item.ident);
            let usage = format!("{word}<{}>", params.join(", "));
            let (wanted, found) = (params.len()..=params.len(), given.len());
            let mistake = Argument::TypeGenerics { word: word.into(), wanted, found, usage };
            self.error(mistake, Span::of(segment));
            return None;
        }
        let span = Span::of(segment);
        if !self.read_generics(&mut generics, &given, &names::text(&item.ident), span) {
            return None;
        }
        for param in &params {
            // An argument `_`.
            if generics.has_type(param) && generics.argument(param).is_none() {
                generics.set(param, GenericValue::Type(self.infer.fresh(Kind::Any)));
            }
        }
        Some(Alias { declared, generics })
    }

    /// Runs `f` where the parameters of an alias are known, in the alias's module. Without an
    /// alias, runs `f` as it is. Returns `None` if an argument is unknown, which is reported.
    pub(super) fn in_alias<T>(
        &mut self,
        alias: Option<&Alias<'_>>,
        f: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let Some(Alias { declared, generics }) = alias else { return Some(f(self)) };
        let name = names::text(&declared.item.ident);
        let mut frame = Frame::new(name.clone(), declared.scope);
        frame.set_generics(declared.item.generics.clone());
        if !self.bind_generics(generics, &mut frame, &name, Span::of(&declared.item.ident)) {
            return None;
        }
        Some(self.in_frame(frame, None, f))
    }

    /// Returns the shape or swizzle that a type names, through aliases and generics of the kernel.
    pub(super) fn part_word(&self, argument: &GenericArgument) -> Option<TypeWord> {
        let mut path = type_path(argument)?;
        let generic = names::lone_name(path).and_then(|name| self.generic_type(&name));
        let generic = generic.map(GenericArgument::Type);
        if let Some(argument) = &generic {
            path = type_path(argument)?;
        }
        let mut within = self.module.scope();
        for _ in 0..MOST_ALIASES {
            let alias = names::own_name(path).and_then(|name| self.module.alias_in(within, &name));
            let Some(Scoped { item: alias, scope }) = alias else { break };
            let syn::Type::Path(aliased) = &*alias.ty else { return None };
            (path, within) = (&aliased.path, scope);
        }
        TypeWord::named(&names::last_name(path)?).filter(|word| word.is_part())
    }
}

/// Returns the type of an alias in terms of the arguments of `segment`, to infer generics that
/// these name. Other names that are those of generics, by `is_generic`, mean something else in the
/// alias's module, and become `_`.
pub(in crate::parse) fn substituted(
    alias: &ItemType,
    segment: &PathSegment,
    is_generic: impl Fn(&str) -> bool,
) -> syn::Type {
    let mut ty = (*alias.ty).clone();
    let given = arguments(segment).into_iter().cloned();
    let arguments: HashMap<_, _> = params(alias).into_iter().zip(given).collect();
    Substitution { arguments, is_generic }.visit_type_mut(&mut ty);
    ty
}

/// Returns the names of an alias's parameters. Lifetimes are left to rustc.
fn params(alias: &ItemType) -> Vec<String> {
    let params = alias.generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => Some(names::text(&param.ident)),
        GenericParam::Const(param) => Some(names::text(&param.ident)),
        GenericParam::Lifetime(_) => None,
    });
    params.collect()
}

fn arguments(segment: &PathSegment) -> Vec<&GenericArgument> {
    let is_lifetime = |argument: &&GenericArgument| matches!(argument, GenericArgument::Lifetime(_));
    generic_arguments(segment).into_iter().filter(|argument| !is_lifetime(argument)).collect()
}

/// Replaces parameters by arguments.
struct Substitution<F> {
    arguments: HashMap<String, GenericArgument>,
    is_generic: F,
}

impl<F: Fn(&str) -> bool> Substitution<F> {
    fn argument(&self, path: &syn::Path) -> Option<GenericArgument> {
        let name = names::lone_name(path)?;
        let hidden = || (self.is_generic)(&name).then(|| syn::parse_quote!(_));
        self.arguments.get(&name).cloned().or_else(hidden)
    }
}

impl<F: Fn(&str) -> bool> VisitMut for Substitution<F> {
    fn visit_generic_argument_mut(&mut self, argument: &mut GenericArgument) {
        let path = match argument {
            // syn takes the lone name of a constant for a type.
            GenericArgument::Type(syn::Type::Path(path)) => Some(&path.path),
            GenericArgument::Const(Expr::Path(path)) => Some(&path.path),
            _ => None,
        };
        match path.and_then(|path| self.argument(path)) {
            Some(found) => *argument = found,
            None => visit_mut::visit_generic_argument_mut(self, argument),
        }
    }

    fn visit_type_mut(&mut self, ty: &mut syn::Type) {
        let found = match ty {
            syn::Type::Path(path) => self.argument(&path.path),
            _ => None,
        };
        match found {
            Some(GenericArgument::Type(found)) => *ty = found,
            _ => visit_mut::visit_type_mut(self, ty),
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let found = match expr {
            Expr::Path(path) => self.argument(&path.path),
            _ => None,
        };
        match found {
            Some(GenericArgument::Const(found)) => *expr = found,
            Some(GenericArgument::Type(syn::Type::Path(path))) => *expr = super::name_expr(path.path),
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}
