//! The instances to compile: those of the template that `only = ["bf16_*", "*_nn"]` names, and
//! those that `instances = [kernel(..)]` adds.

use proc_macro2::{Delimiter, Group, Span as TokenSpan, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Ident, Item, ItemFn, LitStr};

use super::super::{attr, imports, is_named, kernel};
use super::attr::Added;
use crate::diag::Sink;
use crate::diag::mistake::Template as Mistake;
use crate::ir::Span;
use crate::parse::instances::{self, computed::Computed};

/// The choice of a module that is made from a template.
#[derive(Clone, Copy)]
pub(super) struct Selection<'a> {
    /// The patterns of the names of the template's instances. Without them, all are chosen.
    pub(super) only: Option<&'a [LitStr]>,
    /// The instances that the module adds.
    pub(super) added: &'a [Added],
    /// The span of all tokens in messages, if it is not their own.
    pub(super) lines_at: Option<TokenSpan>,
}

/// Lists the chosen instances in the kernels' attributes, and removes kernels of which no instance
/// is left. A kernel without any `instances(..)` is kept, and so are the new module's `own` ones.
pub(super) fn choose(items: &mut Vec<Item>, selection: Selection<'_>, own: &[Ident], sink: &mut Sink) {
    let Selection { only, added, lines_at } = selection;
    if only.is_none() && added.is_empty() {
        return;
    }
    let (mut names, mut kernels) = (vec![], vec![]);
    items.retain_mut(|item| {
        let Item::Fn(function) = item else { return true };
        let Some(of_kernel) = kernel(function) else { return true };
        let name = &of_kernel.function.sig.ident;
        if own.contains(name) {
            return true;
        }
        // Errors in the attribute are reported where the kernel is parsed.
        let mut unread = Sink::default();
        let attr = attr::parse(of_kernel.attr, &mut unread);
        let Some(all) = instances::expand(&of_kernel.function, &attr.instances, &mut unread) else {
            return true;
        };
        if all.is_empty() && !attr.leaves_instances_open() {
            return true;
        }
        kernels.push(name.to_string());
        let added = added.iter().filter(|added| added.kernel == *name);
        let added: Vec<_> = added.map(|added| at(added.entries.clone(), lines_at)).collect();
        names.extend(all.iter().map(|instance| instance.name.to_string()));
        let is_chosen = |instance: &instances::InstanceAttr| {
            let name = instance.name.to_string();
            only.is_none_or(|patterns| patterns.iter().any(|pattern| fits(&name, &pattern.value())))
        };
        let chosen: Vec<_> = all.into_iter().filter(is_chosen).collect();
        if only.is_some() || !added.is_empty() {
            let computed: Vec<_> = instances::computed(&attr.instances).collect();
            rewrite(function, &list(&chosen, &computed, &added));
        }
        !chosen.is_empty() || !added.is_empty()
    });
    for pattern in only.unwrap_or_default() {
        if !names.iter().any(|name| fits(name, &pattern.value())) {
            let names = names.clone();
            sink.error(Mistake::NoInstance { pattern: pattern.value(), names }, Span::of(pattern));
        }
    }
    for Added { kernel, .. } in added {
        if !kernels.iter().any(|name| kernel == name) {
            let mistake = Mistake::NoGenericKernel { kernel: kernel.to_string(), kernels: kernels.clone() };
            sink.error(mistake, Span::of(kernel));
        }
    }
}

/// Whether a name matches a pattern, in which `*` stands for any text.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| fits(&name[at..], rest))
        }),
    }
}

/// Returns the contents of `instances(..)` with these instances one by one, and `added` ones. The
/// computed constants stay computed: they are no part of a key.
fn list(chosen: &[instances::InstanceAttr], computed: &[&Computed], added: &[TokenStream]) -> TokenStream {
    let chosen = chosen.iter().map(|instance| {
        let (name, arguments) = (&instance.name, &instance.arguments);
        quote!(#name = <#(#arguments),*>)
    });
    let entries: Vec<_> = chosen.chain(computed.iter().map(ToTokens::to_token_stream)).collect();
    let first = (!entries.is_empty()).then(|| quote!(#(#entries),*));
    let sections = first.iter().chain(added);
    quote!(#(#sections);*)
}

/// Gives all tokens the same span, if there is one.
fn at(tokens: TokenStream, location: Option<TokenSpan>) -> TokenStream {
    match location {
        Some(location) => imports::tokens_at(tokens, location),
        None => tokens,
    }
}

/// Replaces the contents of `instances(..)` in a kernel's attribute.
fn rewrite(function: &mut ItemFn, list: &TokenStream) {
    let attr = function.attrs.iter_mut().find(|attr| is_named(attr, "tma_kernel"));
    if let Some(syn::Meta::List(meta)) = attr.map(|attr| &mut attr.meta) {
        let mut is_list = false;
        let tokens = std::mem::take(&mut meta.tokens).into_iter().map(|token| {
            let token = match token {
                TokenTree::Group(group) if is_list && group.delimiter() == Delimiter::Parenthesis => {
                    let mut new = Group::new(Delimiter::Parenthesis, list.clone());
                    new.set_span(group.span());
                    new.into()
                }
                token => token,
            };
            is_list = matches!(&token, TokenTree::Ident(name) if name == "instances");
            token
        });
        meta.tokens = tokens.collect::<TokenStream>().to_token_stream();
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_is_any_text() {
        for pattern in ["bf16_pair_nt", "*", "bf16_*", "*_nt", "bf16_*_nt", "*pair*", "**"] {
            assert!(fits("bf16_pair_nt", pattern), "{pattern}");
        }
        for pattern in ["", "bf16", "bf16_*_nn", "*_n", "pair*", "bf16_pair_nt_*"] {
            assert!(!fits("bf16_pair_nt", pattern), "{pattern}");
        }
    }
}
