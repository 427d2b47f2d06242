//! Members of type generics, and traits that bound them, which kernels do not follow.

use syn::{GenericParam, Path, TypeParamBound, WherePredicate};

use super::{Space, last_name, lone_name, owner, shown, text};
use crate::diag::mistake::{HostItem, Name};
use crate::ir::Span;
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// Returns whether a path names a member of a type generic, `T::ZERO`, and reports it.
    pub(in crate::parse) fn refuse_member_of_generic(
        &mut self,
        path: &Path,
        is_call: bool,
        span: Span,
    ) -> bool {
        let generic = owner(path).and_then(|owner| lone_name(&owner));
        let Some(generic) = generic.filter(|generic| self.is_type_generic(generic)) else { return false };
        let name = last_name(path).unwrap_or_default();
        self.error(Name::OfGeneric { path: shown(path), generic, name, is_call }, span);
        true
    }

    /// Returns the name of a trait that bounds a generic of the function that is being parsed, and
    /// that is not one of the language.
    pub(in crate::parse) fn foreign_bound(&self) -> Option<String> {
        let generics = self.frames.generics();
        let of_params = generics.params.iter().filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.bounds),
            GenericParam::Lifetime(_) | GenericParam::Const(_) => None,
        });
        let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        let of_clause = predicates.filter_map(|predicate| {
            if let WherePredicate::Type(predicate) = predicate { Some(&predicate.bounds) } else { None }
        });
        let is_foreign = |name: &String| {
            let item = self.module.host_item(name, Space::Type).map(|found| found.item);
            item == Some(HostItem::Trait) || self.module.missing_import(name).is_some()
        };
        of_params.chain(of_clause).flatten().filter_map(trait_name).find(is_foreign)
    }
}

fn trait_name(bound: &TypeParamBound) -> Option<String> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    bound.path.segments.last().map(|last| text(&last.ident))
}
