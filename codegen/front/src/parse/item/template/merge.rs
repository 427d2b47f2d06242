//! Merges the items of a template with their replacements and with new items.

use proc_macro2::Span as TokenSpan;
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{FnArg, GenericParam, Ident, Item, ItemFn, Pat, ReturnType, Signature, Type};

use super::super::{imports, is_device, is_open};
use crate::diag::Sink;
use crate::diag::mistake::Template as Mistake;
use crate::ir::Span;

/// The items of the merged module.
pub(super) struct Merged {
    pub(super) items: Vec<Item>,
    /// The parameters that replacements add.
    pub(super) added_params: Vec<AddedParams>,
}

/// The parameters of a replacement beyond those of the function that it replaces.
pub(super) struct AddedParams {
    pub(super) function: Ident,
    pub(super) params: Vec<(Ident, Type)>,
}

/// Returns `base`, with functions replaced by those of `own` of the same name, followed by the rest
/// of `own`. If `lines_at` is set, the tokens of a replacement get the span of the function they
/// replace, and those of all other items get the span `lines_at`, that of the template's name.
pub(super) fn merged(
    base: Vec<Item>,
    own: Vec<Item>,
    lines_at: Option<TokenSpan>,
    sink: &mut Sink,
) -> Merged {
    let mut items = base;
    // The template's imports may be repeated by `own`, or may no longer be needed.
    for item in &mut items {
        if let Item::Use(item) = item {
            item.attrs.push(syn::parse_quote!(#[allow(unused_imports)]));
        }
    }
    let open = open_functions(&items);
    let mut added_params = vec![];
    let mut added = vec![];
    for item in own {
        let Item::Fn(function) = &item else {
            let known = items.iter().any(|old| is_same_import(old, &item));
            if !known {
                items.push(moved(item, lines_at));
            }
            continue;
        };
        let name = &function.sig.ident;
        let old = items.iter_mut().find_map(|old| match old {
            Item::Fn(old) if old.sig.ident == *name && is_device_function(old) => Some(old),
            _ => None,
        });
        match old {
            Some(old) if is_device(&item) => {
                if !is_open(old) {
                    let (function, open) = (name.to_string(), open.clone());
                    sink.error(Mistake::Closed { function, open }, Span::of(name));
                }
                added_params.extend(replaced(old, function, sink));
                let location = lines_at.map(|_| old.sig.ident.span());
                if let Item::Fn(new) = moved(item, location) {
                    *old = new;
                }
            }
            Some(_) | None => {
                if is_device(&item) {
                    added.push(name.clone());
                }
                items.push(moved(item, lines_at));
            }
        }
    }
    for name in added.iter().filter(|name| !is_called(name, &items)) {
        let (function, open) = (name.to_string(), open.clone());
        sink.error(Mistake::ReplacesNothing { function, open }, Span::of(name));
    }
    Merged { items, added_params }
}

fn is_device_function(function: &ItemFn) -> bool {
    function.attrs.iter().any(|attr| super::super::is_named(attr, "tma_device"))
}

/// Returns the names of the functions that may be replaced.
fn open_functions(items: &[Item]) -> Vec<String> {
    let open = items.iter().filter_map(|item| match item {
        Item::Fn(function) if is_device_function(function) && is_open(function) => {
            Some(function.sig.ident.to_string())
        }
        _ => None,
    });
    open.collect()
}

/// Whether two items are the same import. rustc reports the second one of two equal glob imports as
/// unused.
fn is_same_import(old: &Item, new: &Item) -> bool {
    match (old, new) {
        (Item::Use(old), Item::Use(new)) => old.tree == new.tree,
        _ => false,
    }
}

/// Returns the parameters that `new` has beyond those of `old`. Reports an error if the others
/// differ.
fn replaced(old: &ItemFn, new: &ItemFn, sink: &mut Sink) -> Option<AddedParams> {
    let mistake = || Mistake::Signature { function: new.sig.ident.to_string(), wanted: shown(&old.sig) };
    let common = old.sig.inputs.iter().zip(&new.sig.inputs);
    let is_alike = same_generics(&old.sig, &new.sig)
        && same_output(&old.sig.output, &new.sig.output)
        && old.sig.inputs.len() <= new.sig.inputs.len()
        && common.into_iter().all(|(old, new)| type_of(old).is_some() && type_of(old) == type_of(new));
    if !is_alike {
        sink.error(mistake(), Span::of(&new.sig));
        return None;
    }
    let mut params = vec![];
    for input in new.sig.inputs.iter().skip(old.sig.inputs.len()) {
        match (input, name_of(input)) {
            (FnArg::Typed(typed), Some(name)) => params.push((name.clone(), (*typed.ty).clone())),
            _ => sink.error(mistake(), Span::of(input)),
        }
    }
    Some(AddedParams { function: new.sig.ident.clone(), params })
}

fn type_of(input: &FnArg) -> Option<&Type> {
    match input {
        FnArg::Typed(typed) => Some(&typed.ty),
        FnArg::Receiver(_) => None,
    }
}

fn name_of(input: &FnArg) -> Option<&Ident> {
    match input {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => Some(&name.ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

fn same_output(old: &ReturnType, new: &ReturnType) -> bool {
    old == new
}

/// Whether the two functions can be called alike. The names of generics matter, as the types of
/// parameters refer to them.
fn same_generics(old: &Signature, new: &Signature) -> bool {
    let compiled = |signature: &Signature| {
        let params = signature.generics.params.iter();
        let compiled = params.filter(|param| !matches!(param, GenericParam::Lifetime(_))).cloned();
        compiled.collect::<Vec<_>>()
    };
    compiled(old) == compiled(new) && old.generics.where_clause == new.generics.where_clause
}

/// Formats a signature as it is usually written. Printed tokens may have a space between any two.
fn shown(signature: &Signature) -> String {
    let text = signature.to_token_stream().to_string();
    let tight = [
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" :", ":"),
        (" ,", ","),
        (" ;", ";"),
        ("& ", "&"),
        (" < ", "<"),
        (" >", ">"),
        ("[ ", "["),
        (" ]", "]"),
    ];
    // The `>` of an arrow is no bracket.
    let text = text.replace("->", "\u{2192}");
    tight.iter().fold(text, |text, (loose, tight)| text.replace(loose, tight)).replace('\u{2192}', "->")
}

/// Whether a function is called by any other.
fn is_called(name: &Ident, items: &[Item]) -> bool {
    struct Calls<'a>(&'a Ident, bool);
    impl Visit<'_> for Calls<'_> {
        fn visit_expr_call(&mut self, call: &syn::ExprCall) {
            self.1 |= called(call).is_some_and(|name| name == self.0);
            visit::visit_expr_call(self, call);
        }
    }
    let mut calls = Calls(name, false);
    for item in items {
        if !matches!(item, Item::Fn(function) if function.sig.ident == *name) {
            calls.visit_item(item);
        }
    }
    calls.1
}

/// Returns the name of the called function, if it is a path of one segment.
pub(super) fn called(call: &syn::ExprCall) -> Option<&Ident> {
    match &*call.func {
        syn::Expr::Path(path) if path.qself.is_none() && path.path.segments.len() == 1 => {
            path.path.segments.first().map(|segment| &segment.ident)
        }
        _ => None,
    }
}

/// Gives all tokens of an item the same span, if there is one.
fn moved(item: Item, location: Option<TokenSpan>) -> Item {
    let Some(location) = location else { return item };
    // syn parses the same tokens to the same item, whatever their spans.
    syn::parse2(imports::tokens_at(item.to_token_stream(), location)).unwrap_or(item)
}
