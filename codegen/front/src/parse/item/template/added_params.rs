//! Parameters that replacements add to those of the functions they replace. The template does not
//! know them: every caller of such a function takes the parameters itself, named
//! `function_parameter`, and passes them on. Kernels take them last.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{ExprCall, Ident, Item, ItemFn, Type};

use super::merge::{AddedParams, called};

/// The name and the type of an added parameter.
type Param = (Ident, Type);

/// Adds the parameters of replacements to their callers. Returns the names of all added parameters.
pub(super) fn pass_on(items: &mut [Item], added_params: &[AddedParams]) -> Vec<String> {
    if added_params.iter().all(|added_params| added_params.params.is_empty()) {
        return vec![];
    }
    let taken = names(items);
    let own: BTreeMap<String, Vec<Param>> = added_params
        .iter()
        .map(|AddedParams { function, params }| {
            let params = params.iter().map(|(name, ty)| (passed(function, name, &taken), ty.clone()));
            (function.to_string(), params.collect())
        })
        .collect();
    let needs = needs(items, &own);
    let mut pass = PassOn { own: &own, needs: &needs };
    for item in items.iter_mut() {
        let Item::Fn(function) = item else { continue };
        pass.visit_block_mut(&mut function.block);
        for (name, ty) in needs.get(&function.sig.ident.to_string()).into_iter().flatten() {
            function.sig.inputs.push(syn::parse_quote!(#name: #ty));
        }
    }
    own.into_values().flatten().map(|(name, _)| name.to_string()).collect()
}

/// Returns a caller's name for the parameter, distinct from every other name in the module.
fn passed(function: &Ident, name: &Ident, taken: &BTreeSet<String>) -> Ident {
    let mut passed = format_ident!("{function}_{name}", span = name.span());
    while taken.contains(&passed.to_string()) {
        passed = format_ident!("{passed}_", span = name.span());
    }
    passed
}

/// Returns the parameters that each function needs for its callees, in the order of the callees.
fn needs(items: &[Item], own: &BTreeMap<String, Vec<Param>>) -> BTreeMap<String, Vec<Param>> {
    let functions = items.iter().filter_map(|item| match item {
        Item::Fn(function) => Some((function.sig.ident.to_string(), callees(function))),
        _ => None,
    });
    let functions: Vec<_> = functions.collect();
    let mut needs: BTreeMap<String, Vec<Param>> = BTreeMap::new();
    loop {
        let before: usize = needs.values().map(Vec::len).sum();
        for (function, callees) in &functions {
            let of_callees: Vec<Param> = callees
                .iter()
                .flat_map(|callee| [own.get(callee), needs.get(callee)])
                .flatten()
                .flatten()
                .cloned()
                .collect();
            let mine = needs.entry(function.clone()).or_default();
            for (name, ty) in of_callees {
                if !mine.iter().any(|(known, _)| *known == name) {
                    mine.push((name, ty));
                }
            }
        }
        if needs.values().map(Vec::len).sum::<usize>() == before {
            return needs;
        }
    }
}

/// Returns the functions that are called in one, each once, sorted by name.
fn callees(function: &ItemFn) -> BTreeSet<String> {
    struct Callees(BTreeSet<String>);
    impl Visit<'_> for Callees {
        fn visit_expr_call(&mut self, call: &ExprCall) {
            self.0.extend(called(call).map(ToString::to_string));
            visit::visit_expr_call(self, call);
        }
    }
    let mut callees = Callees(BTreeSet::new());
    callees.visit_block(&function.block);
    callees.0
}

/// Appends arguments to calls.
struct PassOn<'a> {
    own: &'a BTreeMap<String, Vec<Param>>,
    needs: &'a BTreeMap<String, Vec<Param>>,
}

impl VisitMut for PassOn<'_> {
    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        visit_mut::visit_expr_call_mut(self, call);
        let Some(function) = called(call).map(ToString::to_string) else { return };
        for of in [self.own, self.needs] {
            for (name, _) in of.get(&function).into_iter().flatten() {
                call.args.push(syn::parse_quote!(#name));
            }
        }
    }
}

/// Returns every name in the module.
fn names(items: &[Item]) -> BTreeSet<String> {
    fn note(tokens: TokenStream, names: &mut BTreeSet<String>) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    names.insert(name.to_string());
                }
                TokenTree::Group(group) => note(group.stream(), names),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    let mut all = BTreeSet::new();
    items.iter().for_each(|item| note(item.to_token_stream(), &mut all));
    all
}
