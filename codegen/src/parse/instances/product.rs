//! Products of lists: whether they fit the kernel, and the instances that they make.

use std::collections::HashSet;

use syn::{GenericArgument, GenericParam, Ident, ItemFn};

use super::{Factor, InstanceAttr, Value, name};
use crate::diag::{Code, Sink};
use crate::ir::Span;
use crate::limits::PRODUCT_INSTANCES;
use crate::parse::wording::{counted, given};

/// Judges a kernel's products: each binds every generic once, to values with names, and together
/// they are not too many.
pub(super) fn judge(function: &ItemFn, products: &[&[Factor]], sink: &mut Sink) {
    let mut made = 0;
    for factors in products {
        judge_generics(function, factors, sink);
        for factor in *factors {
            judge_values(factor, sink);
        }
        let sizes = factors.iter().map(|factor| factor.values.len());
        let size = sizes.fold(1, usize::saturating_mul);
        let before = made;
        made = size.saturating_add(before);
        if made > PRODUCT_INSTANCES && before <= PRODUCT_INSTANCES {
            let message =
                format!("the products make {made} instances up to here; they may make {PRODUCT_INSTANCES}");
            sink.error(Code::Instances, span(factors), message).help(
                "each is compiled on its own: list what is launched, in shorter products separated by `;`",
            );
        }
    }
}

fn judge_generics(function: &ItemFn, factors: &[Factor], sink: &mut Sink) {
    let generics = generics(function);
    let mut bound = HashSet::new();
    for generic in factors.iter().flat_map(|factor| &factor.generics) {
        if !generics.contains(&generic) {
            let message = format!("`{}` has no generic `{generic}`", function.sig.ident);
            let known: Vec<_> = generics.iter().map(|generic| format!("`{generic}`")).collect();
            sink.error(Code::Instances, Span::of(generic), message).help(match known.is_empty() {
                true => "remove `instances(..)`: the kernel has no generics".to_owned(),
                false => format!("its generics are {}", known.join(", ")),
            });
        } else if !bound.insert(generic) {
            let message = format!("`{generic}` has two lists in one product");
            sink.error(Code::Instances, Span::of(generic), message)
                .help("join them, or write `;` between two products");
        }
    }
    for generic in generics.iter().filter(|generic| !bound.contains(*generic)) {
        let message = format!("the product has no list for `{generic}`");
        sink.error(Code::Instances, span(factors), message).help(format!("add `{generic} in [..]`"));
    }
}

fn judge_values(factor: &Factor, sink: &mut Sink) {
    let names: Vec<_> = factor.generics.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    if factor.values.is_empty() {
        let message = format!("the list of `{names}` is empty");
        sink.error(Code::Instances, factor.span(), message)
            .help("list at least one value, or remove the product");
    }
    let mut known = HashSet::new();
    for value in &factor.values {
        let (wanted, found) = (factor.generics.len(), value.arguments.len());
        if found != wanted {
            let message = format!("the list is for `{names}`, but {}", given(found));
            sink.error(Code::Instances, value.span.into(), message).help(format!(
                "give {} for each instance, in parentheses if there are several",
                counted(wanted, "argument")
            ));
        }
        match name::of_value(value) {
            None => {
                sink.error(
                    Code::Instances,
                    value.span.into(),
                    "this value has nothing to name an instance by",
                )
                .help("write a name before it: `name = ..`");
            }
            Some(name) => {
                if !known.insert(name.clone()) {
                    let message = format!("two values of `{names}` are called `{name}`");
                    sink.error(Code::Instances, value.span.into(), message)
                        .help("remove one, or write another name before it: `name = ..`");
                }
            }
        }
    }
}

/// The instances of a product that was judged, the last list varying fastest.
pub(super) fn instances(function: &ItemFn, factors: &[Factor]) -> Vec<InstanceAttr> {
    let generics = generics(function);
    let mut rows: Vec<Vec<&Value>> = vec![vec![]];
    for factor in factors {
        let longer = |row: &Vec<_>, value| row.iter().copied().chain([value]).collect();
        rows =
            rows.iter().flat_map(|row| factor.values.iter().map(move |value| longer(row, value))).collect();
    }
    let instance = |row: &Vec<&Value>| {
        // Each value has a name, or the product would have been refused.
        let name = name::of_instance(factors, row)?;
        Some(InstanceAttr { name, arguments: arguments(&generics, factors, row) })
    };
    rows.iter().filter_map(instance).collect()
}

/// The arguments of one combination, in the order of the kernel's generics.
fn arguments(generics: &[&Ident], factors: &[Factor], row: &[&Value]) -> Vec<GenericArgument> {
    let bound: Vec<_> = factors
        .iter()
        .zip(row)
        .flat_map(|(factor, value)| factor.generics.iter().zip(&value.arguments))
        .collect();
    let argument = |generic| bound.iter().find(|(name, _)| *name == generic).map(|(_, argument)| *argument);
    generics.iter().filter_map(|generic| argument(*generic)).cloned().collect()
}

/// The generics that an instance has arguments for.
fn generics(function: &ItemFn) -> Vec<&Ident> {
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

/// Where a product begins.
fn span(factors: &[Factor]) -> Span {
    factors.first().map_or_else(Span::call_site, Factor::span)
}

impl Factor {
    fn span(&self) -> Span {
        self.generics.first().map_or_else(Span::call_site, Span::of)
    }
}
