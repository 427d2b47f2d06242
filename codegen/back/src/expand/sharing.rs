//! Proofs about items that modules share by `use`.
//!
//! A module whose items others may import has a hidden module in its expansion, with the hash of
//! these items and of those that they use from other modules. A module with imports requires that
//! the hash at each path is that of the module that the front end has found. Visibility and the
//! existence of each item are for rustc, since the `use` stays in the expansion.
//!
//! The names in shared functions are proved where these are written, because the imports and traits
//! of their module are in scope there alone. A name that is not in scope passes: it is then a local
//! variable, or rustc rejects the function.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Item;
use tma_front::diag::Diagnostic;
use tma_front::diag::mistake;
use tma_front::parse::item::ModuleItems;
use tma_front::parse::item::imports::{self, leaves};
use tma_front::parse::names::{Meaning, WordUse, in_module};

use super::{methods, names};
use crate::hash;

/// The hidden module.
const MARKER: &str = "__tma_module";

/// Returns what the expansion of a module with these items needs besides them.
pub(super) fn proofs(items: &[Item], shared: &ModuleItems) -> TokenStream {
    let mut all = required(shared);
    all.extend(explicit(items, shared));
    if imports::is_open(items) {
        all.extend(marker(shared));
        all.extend(of_words(&in_module(items, shared)));
    }
    all
}

/// Generates the hidden module.
fn marker(shared: &ModuleItems) -> TokenStream {
    let (marker, hash) = (format_ident!("{MARKER}"), hash::module(shared));
    quote! {
        #[doc(hidden)]
        #[allow(dead_code, unreachable_pub, clippy::all)]
        pub mod #marker {
            pub const HASH: ::core::primitive::u64 = #hash;
        }
    }
}

/// Returns code that rustc accepts only if each module that is imported from is the one that the
/// front end has found.
fn required(shared: &ModuleItems) -> TokenStream {
    let mut known = vec![];
    let mut all = TokenStream::new();
    for import in &shared.imports.found {
        let path = import.shown();
        if known.contains(&path) {
            continue;
        }
        let span = import.path.last().map_or_else(proc_macro2::Span::call_site, proc_macro2::Ident::span);
        let message =
            Diagnostic::new(mistake::Import::OtherModule { path: path.clone() }, span.into()).text();
        let (segments, hash) = (&import.path, hash::module(&import.from));
        let global = import.is_global.then(|| quote_spanned!(span=> ::));
        let marker = format_ident!("{MARKER}", span = span);
        all.extend(quote_spanned! {span=>
            const _: () = ::core::assert!(#global #(#segments::)*#marker::HASH == #hash, #message);
        });
        known.push(path);
    }
    all
}

/// Allows a `*` that imports items for kernels to be unused: they are imported one by one as well.
pub(super) fn allow_globs(items: &mut [Item], shared: &ModuleItems) {
    for item in items {
        let globs = leaves(std::slice::from_ref(item)).into_iter().filter(|leaf| leaf.item.is_none());
        let paths: Vec<_> = globs.map(|leaf| leaf.shown()).collect();
        let is_explicit = shared.imports.found.iter().any(|import| paths.contains(&import.shown()));
        if let Item::Use(item) = item
            && is_explicit
        {
            item.attrs.push(syn::parse_quote!(#[allow(unused_imports)]));
        }
    }
}

/// Imports one by one what a `*` imports, since another item of the same name would hide the
/// latter.
fn explicit(items: &[Item], shared: &ModuleItems) -> TokenStream {
    let globs = leaves(items).into_iter().filter(|leaf| leaf.item.is_none());
    let uses = globs.map(|leaf| {
        let path = leaf.shown();
        let named = leaves(items);
        let is_named = |name: &str| named.iter().any(|leaf| leaf.item.is_some() && leaf.name == name);
        let imports = shared.imports.found.iter();
        let imports = imports.filter(|import| import.shown() == path && !is_named(&import.name));
        let names = imports.map(|import| format_ident!("{}", import.name));
        let (vis, segments, global) = (&leaf.vis, &leaf.path, leaf.is_global.then(|| quote!(::)));
        quote!(#[allow(unused_imports)] #vis use #global #(#segments::)*{#(#names),*};)
    });
    uses.collect()
}

/// Returns code that rustc accepts only if no name in the shared items refers to anything else than
/// the built-in that it is taken for.
fn of_words(words: &[WordUse]) -> Option<TokenStream> {
    if words.is_empty() {
        return None;
    }
    let is_lone = |word: &&WordUse| word.path.get_ident().is_some();
    let is_macro = |word: &&WordUse| matches!(word.meaning, Meaning::Macro(_));
    let lone: TokenStream =
        words.iter().filter(|word| is_lone(word) && !is_macro(word)).map(names::proof).collect();
    let others: TokenStream =
        words.iter().filter(|word| !is_lone(word) || is_macro(word)).map(names::any_proof).collect();
    let of_generics = methods::of_generics(words);
    Some(quote! {
        #[allow(dead_code, unreachable_code, deprecated, clippy::all)]
        const _: () = {
            fn names() {
                // rustc type-checks unreachable code, and then removes it.
                return;
                {
                    // A name that both imports have is ambiguous, unless it is the same item.
                    #[allow(unused_imports)]
                    use {self::*, ::tma_runtime::lang::*, ::core::primitive::*};
                    #lone
                }
                #others
            }
            #of_generics
        };
    })
}
