//! Products of lists: their validation, and their expansion into instances.

use std::collections::HashSet;

use syn::{GenericArgument, GenericParam, Ident, ItemFn};

use super::computed::{self, Bound, Computed};
use super::{Factor, InstanceAttr, Value, name};
use crate::diag::Sink;
use crate::diag::mistake::Instances;
use crate::ir::Span;
use crate::limits::PRODUCT_INSTANCES;

/// Checks a kernel's products: each binds every generic exactly once that is not computed, to
/// values with names, and the total number of instances is within the limit.
pub(super) fn judge(function: &ItemFn, products: &[&[Factor]], computed: &[&Computed], sink: &mut Sink) {
    let mut made = 0;
    for factors in products {
        judge_generics(function, factors, computed, sink);
        for factor in *factors {
            judge_values(factor, sink);
        }
        let sizes = factors.iter().map(|factor| factor.values.len());
        let size = sizes.fold(1, usize::saturating_mul);
        let before = made;
        made = size.saturating_add(before);
        if made > PRODUCT_INSTANCES && before <= PRODUCT_INSTANCES {
            sink.error(Instances::TooMany { made }, span(factors));
        }
    }
}

fn judge_generics(function: &ItemFn, factors: &[Factor], computed: &[&Computed], sink: &mut Sink) {
    let generics = generics(function);
    let mut bound = HashSet::new();
    for generic in factors.iter().flat_map(|factor| &factor.generics) {
        if !generics.contains(&generic) {
            sink.error(unknown(function, generic), Span::of(generic));
        } else if !bound.insert(generic) {
            sink.error(Instances::TwoLists { generic: generic.to_string() }, Span::of(generic));
        }
    }
    bound.extend(computed.iter().map(|computed| &computed.generic));
    for generic in generics.iter().filter(|generic| !bound.contains(*generic)) {
        sink.error(Instances::NoList { generic: generic.to_string() }, span(factors));
    }
}

/// Returns the mistake of a name that is no generic of the kernel.
pub(super) fn unknown(function: &ItemFn, generic: &Ident) -> Instances {
    let known = generics(function).iter().map(ToString::to_string).collect();
    Instances::UnknownGeneric { kernel: function.sig.ident.to_string(), generic: generic.to_string(), known }
}

fn judge_values(factor: &Factor, sink: &mut Sink) {
    let generics = || factor.generics.iter().map(ToString::to_string).collect();
    if factor.values.is_empty() {
        sink.error(Instances::EmptyList { generics: generics() }, factor.span());
    }
    let mut known = HashSet::new();
    for value in &factor.values {
        let found = value.arguments.len();
        if found != factor.generics.len() {
            sink.error(Instances::ValueCount { generics: generics(), found }, value.span.into());
        }
        match name::of_value(value) {
            None => sink.error(Instances::NamelessValue, value.span.into()),
            Some(name) => {
                if !known.insert(name.clone()) {
                    sink.error(Instances::SameValue { generics: generics(), name }, value.span.into());
                }
            }
        }
    }
}

/// Returns the instances of a valid product, with the last list varying fastest.
pub(super) fn instances(function: &ItemFn, factors: &[Factor], computed: &[&Computed]) -> Vec<InstanceAttr> {
    let generics = generics(function);
    let mut rows: Vec<Vec<&Value>> = vec![vec![]];
    for factor in factors {
        let longer = |row: &Vec<_>, value| row.iter().copied().chain([value]).collect();
        rows =
            rows.iter().flat_map(|row| factor.values.iter().map(move |value| longer(row, value))).collect();
    }
    let instance = |row: &Vec<&Value>| {
        // Each value has a name, otherwise the product would have been rejected.
        let name = name::of_instance(factors, row)?;
        let mut bound = bound(factors, row);
        computed::extend(&mut bound, computed);
        Some(InstanceAttr { name, arguments: arguments(&generics, &bound) })
    };
    rows.iter().filter_map(instance).collect()
}

/// Returns the arguments that one combination of values gives to generics.
fn bound(factors: &[Factor], row: &[&Value]) -> Vec<Bound> {
    let of_factor = |(factor, value): (&Factor, &&Value)| {
        let arguments = value.arguments.iter().cloned();
        factor.generics.iter().cloned().zip(arguments).collect::<Vec<_>>()
    };
    factors.iter().zip(row).flat_map(of_factor).collect()
}

/// Returns the arguments in the order of the kernel's generics.
fn arguments(generics: &[&Ident], bound: &[Bound]) -> Vec<GenericArgument> {
    let argument =
        |generic: &&Ident| bound.iter().find(|(name, _)| name == *generic).map(|(_, argument)| argument);
    generics.iter().filter_map(argument).cloned().collect()
}

/// Returns the generics that an instance has arguments for.
pub(super) fn generics(function: &ItemFn) -> Vec<&Ident> {
    function
        .sig
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect()
}

/// Whether the generic stands for types.
pub(super) fn is_type(function: &ItemFn, generic: &Ident) -> bool {
    function.sig.generics.type_params().any(|param| param.ident == *generic)
}

/// Returns the span of the first token of a product.
fn span(factors: &[Factor]) -> Span {
    factors.first().map_or_else(Span::call_site, Factor::span)
}

impl Factor {
    fn span(&self) -> Span {
        self.generics.first().map_or_else(Span::call_site, Span::of)
    }
}
