//! Proofs that methods mean what the front end took them for.
//!
//! rustc looks for a method step by step: one that takes the receiver's type, then `&` of it, then
//! `&mut` of it, and so on with what it dereferences to. Within a step methods of the type itself
//! come first, but no step makes up for an earlier one: where `flip` of the vocabulary takes
//! `&mut self`, a `flip(self)` of any trait in scope is called in its place. (The Rust Reference,
//! "Method call expressions".)
//!
//! So for each step before the vocabulary's there is a call, never run, with a trait in scope that
//! has the method at this step. If a trait of the user has it there too, rustc cannot choose
//! (E0034), and says so at the name.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use super::names::{examples, scalar_type, tile, vocabulary};
use crate::parse::names::{By, Method};
use crate::parse::words::{Generic, TypeWord};

/// What rustc accepts only if nothing takes the place of the method, which is called by `name`.
pub(super) fn proof(method: &Method, name: &Ident) -> TokenStream {
    method.earlier_steps().into_iter().map(|(held, taken)| step(method, name, held, taken)).collect()
}

/// One step, of a value that is held in one way and taken in another.
fn step(method: &Method, name: &Ident, held: By, taken: By) -> TokenStream {
    let span = Span::call_site();
    let guard = format_ident!("{name}", span = span);
    let ty = match method.of {
        TypeWord::Scalar(scalar) => scalar_type(scalar, span),
        word => vocabulary(word.name(), span),
    };
    let (unknown, known) = (unknown_generics(method), known_generics(method));
    let (lifetime, name) = (held.lifetime(), quote_spanned!(name.span()=> #name));
    // A trait of the user may be implemented for some of the types only, so the generics are
    // unknown until the method is found.
    quote! {
        {
            trait TheKernelLanguage {
                fn #guard(#taken self);
            }
            impl<T> TheKernelLanguage for #held T {
                fn #guard(#taken self) {}
            }
            // With it here, no constant around is taken for the pattern.
            use ::tma_runtime::lang::names::any;
            let any: fn() -> #lifetime #ty #unknown = any;
            any().#name();
            let _: fn() -> #lifetime #ty #known = any;
        }
    }
}

impl By {
    /// The reference, as the type of a result is written.
    fn lifetime(self) -> TokenStream {
        match self {
            Self::Value => TokenStream::new(),
            Self::Reference => quote!(&'static),
            Self::MutReference => quote!(&'static mut),
        }
    }
}

impl ToTokens for By {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Self::Value => TokenStream::new(),
            Self::Reference => quote!(&),
            Self::MutReference => quote!(&mut),
        });
    }
}

/// As many `_` as the type has generics, those with a default too. rustc looks for methods of what
/// a slot dereferences to as well, and so has to know that it is a tuple.
fn unknown_generics(method: &Method) -> Option<TokenStream> {
    let unknown = method.of.generics().iter().map(|generic| match generic {
        Generic::Tiles if method.tiles > 0 => tuple(&quote!(_), method.tiles),
        _ => quote!(_),
    });
    let unknown: Vec<_> = unknown.collect();
    (!unknown.is_empty()).then(|| quote!(<#(#unknown),*>))
}

/// Any generics that fit these.
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
