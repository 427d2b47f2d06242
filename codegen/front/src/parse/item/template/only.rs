//! `only = ["bf16_*", "*_nn"]`: selects the instances to compile.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Ident, Item, ItemFn, LitStr};

use super::super::{attr, is_named, kernel};
use crate::diag::Sink;
use crate::diag::mistake::Template as Mistake;
use crate::ir::Span;
use crate::parse::instances::{self, computed::Computed};

/// Keeps the instances whose names match a pattern, and removes kernels of which no instance is
/// left. A kernel without any `instances` is kept, and so are the new module's `own` ones.
pub(super) fn choose(items: &mut Vec<Item>, patterns: &[LitStr], own: &[Ident], sink: &mut Sink) {
    let mut names = vec![];
    items.retain_mut(|item| {
        let Item::Fn(function) = item else { return true };
        let Some(of_kernel) = kernel(function) else { return true };
        if own.contains(&of_kernel.function.sig.ident) {
            return true;
        }
        // Errors in the attribute are reported where the kernel is parsed.
        let mut unread = Sink::default();
        let attr = attr::parse(of_kernel.attr, &mut unread);
        let Some(all) = instances::expand(&of_kernel.function, &attr.instances, &mut unread) else {
            return true;
        };
        if all.is_empty() {
            return true;
        }
        names.extend(all.iter().map(|instance| instance.name.to_string()));
        let chosen = all.into_iter().filter(|instance| {
            patterns.iter().any(|pattern| fits(&instance.name.to_string(), &pattern.value()))
        });
        let chosen: Vec<_> = chosen.collect();
        let computed: Vec<_> = instances::computed(&attr.instances).collect();
        rewrite(function, &chosen, &computed);
        !chosen.is_empty()
    });
    for pattern in patterns {
        if !names.iter().any(|name| fits(name, &pattern.value())) {
            let names = names.clone();
            sink.error(Mistake::NoInstance { pattern: pattern.value(), names }, Span::of(pattern));
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

/// Rewrites a kernel's attribute to list these instances one by one. The computed constants stay
/// computed: they are no part of a key.
fn rewrite(function: &mut ItemFn, instances: &[instances::InstanceAttr], computed: &[&Computed]) {
    let list = instances.iter().map(|instance| {
        let (name, arguments) = (&instance.name, &instance.arguments);
        quote!(#name = <#(#arguments),*>)
    });
    let entries = list.chain(computed.iter().map(ToTokens::to_token_stream));
    let list = quote!(#(#entries),*);
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
