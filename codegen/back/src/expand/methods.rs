//! Proofs that methods resolve to the ones that the front end resolved them to.
//!
//! rustc looks up a method step by step: first a method that takes the receiver by value, then one
//! that takes `&` of it, then `&mut` of it, and so on for each type that it dereferences to. Within
//! a step, inherent methods take precedence, but an earlier step always wins. If the built-in
//! `flip` takes `&mut self`, a `flip(self)` of any trait in scope is called in its place. (The Rust
//! Reference, "Method call expressions".)
//!
//! For each step before that of the built-in, there is therefore a call, never run, with a trait in
//! scope that has the method at this step. If a trait of the user has it there too, rustc reports
//! an ambiguity (E0034) at the name.
//!
//! Two cases are different:
//!
//! * `min`, `max` and `clamp` of integers are methods of `Ord`, which is in scope unless a crate or
//!   module opts out of the prelude (`#![no_implicit_prelude]`).
//! * A value of a type generic has only the methods of its bounds and of blanket traits, while the
//!   front end sees the type argument. There must be no such method, other than that of `Ord`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Generics, ImplItem, ItemImpl, Path};
use tma_front::parse::names::{Meaning, Method, MethodOfGeneric, WordUse, earlier_steps};
use tma_front::words::{Generic, NumberWord, ReceiverKind, TypeWord, Word};

use super::names::{examples, scalar_type, tile, vocabulary};

/// Returns code that rustc accepts only if no other method takes precedence over the built-in,
/// which is called by `name`.
pub(super) fn proof(method: &Method, name: &Ident) -> TokenStream {
    method.earlier_steps().into_iter().map(|(held, taken)| step(method, name, held, taken)).collect()
}

/// Returns the proof for one step, with this receiver expression and receiver parameter.
fn step(method: &Method, name: &Ident, held: ReceiverKind, taken: ReceiverKind) -> TokenStream {
    let span = Span::call_site();
    let ty = if let TypeWord::Scalar(scalar) = method.of {
        scalar_type(scalar, span)
    } else {
        vocabulary(method.of.name(), span)
    };
    let (unknown, known) = (unknown_generics(method), known_generics(method));
    let reference = static_reference(held);
    let is_known = quote!(let _: fn() -> #reference #ty #known = any;);
    step_with(&quote!(#ty #unknown), &is_known, name, [held, taken])
}

/// Returns code that rustc accepts only if no other method takes precedence over those of a
/// `#[tma_device] impl`.
pub(super) fn of_impl(block: &ItemImpl) -> Option<TokenStream> {
    let of = &block.self_ty;
    let mut steps = vec![];
    for item in &block.items {
        let ImplItem::Fn(function) = item else { continue };
        let Some(receiver) = function.sig.receiver() else { continue };
        let taken = if let syn::ReceiverKind::Reference(_, _, mutability) = &receiver.kind {
            if mutability.is_some() { ReceiverKind::MutReference } else { ReceiverKind::Reference }
        } else if let syn::ReceiverKind::Value = &receiver.kind {
            ReceiverKind::Value
        } else {
            // `self: &Self` and the like.
            continue;
        };
        let name = &function.sig.ident;
        for held in [ReceiverKind::Value, ReceiverKind::Reference, ReceiverKind::MutReference] {
            let earlier = earlier_steps(held, taken).into_iter();
            let nothing_open = TokenStream::new();
            steps.extend(
                earlier.map(|(held, taken)| step_with(&quote!(#of), &nothing_open, name, [held, taken])),
            );
        }
    }
    let conditions = block.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    (!steps.is_empty()).then(|| {
        quote! {
            #(#conditions)*
            #[allow(dead_code, unreachable_code, deprecated, clippy::all)]
            const _: () = {
                fn methods() {
                    return;
                    #(#steps)*
                }
            };
        }
    })
}

/// Returns the proof for one step of the lookup of a method of the type `of`, with this receiver
/// expression and receiver parameter. `is_known` determines the generics that `of` leaves open.
fn step_with(
    of: &TokenStream,
    is_known: &TokenStream,
    name: &Ident,
    receivers: [ReceiverKind; 2],
) -> TokenStream {
    let guard = format_ident!("{name}", span = Span::call_site());
    let [held, taken] = receivers.map(reference);
    let static_held = static_reference(receivers[0]);
    // A trait of the user may be implemented for some of the types only. The generics are therefore
    // left open until the method is found.
    quote! {
        {
            trait TheKernelLanguage {
                fn #guard(#taken self);
            }
            impl<T> TheKernelLanguage for #held T {
                fn #guard(#taken self) {}
            }
            // With this import, no constant in scope is taken for the pattern.
            use ::tma_runtime::lang::names::any;
            let any: fn() -> #static_held #of = any;
            any().#name();
            #is_known
        }
    }
}

/// Returns code that rustc accepts only if `Ord` is in scope, for a method of it.
pub(super) fn ord_proof(name: &Ident) -> TokenStream {
    let guard = format_ident!("{name}", span = Span::call_site());
    let word = NumberWord::named(&name.to_string());
    let count = word.map_or(0, |word| word.signature().parameters.len());
    let (any, others) = (
        vec![quote!(::tma_runtime::lang::names::any()); count],
        vec![quote!(_: ::tma_runtime::lang::names::Integer); count],
    );
    let call = quote_spanned! {name.span()=>
        ::tma_runtime::lang::names::ord_method(
            ::tma_runtime::lang::names::any::<::tma_runtime::lang::names::Integer>().#name(#(#any),*)
        );
    };
    // `Ord` takes its receiver by value, at an earlier step.
    quote! {
        {
            trait TheKernelLanguage {
                fn #guard(&self, #(#others),*) -> ::tma_runtime::lang::names::NoMethod;
            }
            impl TheKernelLanguage for ::tma_runtime::lang::names::Integer {
                fn #guard(&self, #(#others),*) -> ::tma_runtime::lang::names::NoMethod {
                    ::tma_runtime::lang::names::any()
                }
            }
            #call
        }
    }
}

/// Returns code that rustc accepts only if no trait provides the methods that are called on values
/// of generic types.
pub(super) fn of_generics(words: &[WordUse]) -> TokenStream {
    let mut functions: Vec<(&Generics, Vec<TokenStream>)> = vec![];
    for word in words {
        let Meaning::MethodOfGeneric(method) = &word.meaning else { continue };
        let Some(proof) = of_generic(method, &word.path) else { continue };
        match functions.iter_mut().find(|(generics, _)| **generics == *method.generics) {
            Some((_, proofs)) => proofs.push(proof),
            None => functions.push((&method.generics, vec![proof])),
        }
    }
    let functions = functions.into_iter().map(|(generics, proofs)| {
        let (generics, _, bounds) = generics.split_for_impl();
        // Each function is in a block of its own, since all have the same name.
        quote! {
            const _: () = {
                fn methods_of_generics #generics () #bounds {
                    return;
                    #(#proofs)*
                }
            };
        }
    });
    functions.collect()
}

fn of_generic(method: &MethodOfGeneric, path: &Path) -> Option<TokenStream> {
    let MethodOfGeneric { generics, generic, arguments } = method;
    let (name, arguments) = (path.get_ident()?, *arguments);
    let param = generics.type_params().find(|param| param.ident.unraw() == generic.as_str())?;
    let generic = &param.ident;
    let guard = format_ident!("{name}", span = Span::call_site());
    let units = vec![quote!(_: ()); arguments];
    let any = vec![quote!(::tma_runtime::lang::names::any()); arguments];
    // With the bound `Ord`, rustc either selects its methods or reports an ambiguity.
    let call = match NumberWord::named(&name.to_string()).is_some_and(NumberWord::is_of_ord) {
        true => quote_spanned! {name.span()=>
            ::tma_runtime::lang::names::ord_or_no_method(any, &any().#name(#(#any),*));
        },
        false => quote_spanned! {name.span()=>
            ::tma_runtime::lang::names::no_method(&any().#name(#(#any),*));
        },
    };
    // A method with `&mut self` comes last: any other method of this name is found before it, or is
    // ambiguous with it.
    Some(quote! {
        {
            use ::tma_runtime::lang::names::any;
            let any: fn() -> #generic = any;
            {
                trait TheKernelLanguage {
                    fn #guard(&mut self, #(#units),*) -> ::tma_runtime::lang::names::NoMethod;
                }
                impl<T> TheKernelLanguage for T {
                    fn #guard(&mut self, #(#units),*) -> ::tma_runtime::lang::names::NoMethod {
                        ::tma_runtime::lang::names::any()
                    }
                }
                #call
            }
        }
    })
}

/// Returns the reference, as a parameter or an implementation names it.
fn reference(kind: ReceiverKind) -> TokenStream {
    match kind {
        ReceiverKind::Value => TokenStream::new(),
        ReceiverKind::Reference => quote!(&),
        ReceiverKind::MutReference => quote!(&mut),
    }
}

/// Returns the reference, as written in a result type.
fn static_reference(kind: ReceiverKind) -> TokenStream {
    match kind {
        ReceiverKind::Value => TokenStream::new(),
        ReceiverKind::Reference => quote!(&'static),
        ReceiverKind::MutReference => quote!(&'static mut),
    }
}

/// Returns one `_` for each generic of the type, including those with defaults. rustc also looks
/// for methods of the type that a slot dereferences to, so it must know that this is a tuple.
fn unknown_generics(method: &Method) -> Option<TokenStream> {
    let unknown = method.of.generics().iter().map(|generic| {
        if *generic == Generic::Lifetime {
            // The result of a function pointer needs a named lifetime.
            quote!('static)
        } else if *generic == Generic::Tiles && method.tiles > 0 {
            tuple(&quote!(_), method.tiles)
        } else {
            quote!(_)
        }
    });
    let unknown: Vec<_> = unknown.collect();
    (!unknown.is_empty()).then(|| quote!(<#(#unknown),*>))
}

/// Returns arbitrary generic arguments that fit.
fn known_generics(method: &Method) -> Option<TokenStream> {
    let span = Span::call_site();
    if method.tiles == 0 {
        return examples(method.of.generics(), span);
    }
    let tiles = tuple(&tile(span), method.tiles);
    Some(quote!(<#tiles>))
}

fn tuple(element: &TokenStream, len: usize) -> TokenStream {
    let elements = std::iter::repeat_n(element, len);
    quote!((#(#elements,)*))
}
