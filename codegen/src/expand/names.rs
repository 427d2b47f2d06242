//! Proofs that names mean what the front end took them for.
//!
//! The front end sees one item; imports, macros and what lies around it are known to rustc alone.
//! So for each word of the vocabulary that a kernel uses there is a line, never run, that rustc
//! accepts only if the name there is the vocabulary's: a function has a type of its own, and so
//! `function(lang::min::<u32>, min)` needs both to be one function. Types are compared as types,
//! constants by their values, and a macro is imported once more by a glob, which rustc refuses as
//! ambiguous (E0659) unless both are one macro. Methods have [proofs of their own](methods). All
//! tokens of a proof have the span of the name: rustc reports it there.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{Generics, Path};

use super::methods;
use crate::ir::Scalar;
use crate::parse::names::{Meaning, Word};

/// The words of the vocabulary, for the block in which the body stands: there they mean nothing
/// else.
pub(super) fn imports(words: &[Word]) -> TokenStream {
    let (mut lang, mut primitive, mut traits) = (vec![], vec![], vec![]);
    for word in words {
        match &word.meaning {
            Meaning::Function(_) | Meaning::Type(_) => lang.extend(word.path.get_ident()),
            Meaning::Scalar(scalar) if scalar.is_of_library() => lang.extend(word.path.get_ident()),
            Meaning::Scalar(_) => primitive.extend(word.path.get_ident()),
            // Beside a trait of the user that takes integers alike, rustc cannot choose.
            Meaning::OrdMethod => traits = vec![quote!(Ord as _)],
            Meaning::Constant(..)
            | Meaning::Conversion(..)
            | Meaning::Macro(_)
            | Meaning::Method(_)
            | Meaning::MethodOfGeneric(..) => {}
        }
    }
    quote! {
        #[allow(unused_imports)]
        use {
            ::tma_runtime::lang::{#(#lang),*},
            ::core::{primitive::{#(#primitive),*}, cmp::{#(#traits),*}},
        };
    }
}

/// What rustc accepts only if every word is the vocabulary's where the kernel stands.
pub(super) fn proofs(words: &[Word], generics: &Generics) -> Option<TokenStream> {
    if words.is_empty() {
        return None;
    }
    let (macros, others): (Vec<_>, Vec<_>) =
        words.iter().partition(|word| matches!(word.meaning, Meaning::Macro(_)));
    let lines = others.iter().map(|word| proof(word));
    let macros = macros.iter().map(|word| macro_proof(word));
    let of_generics = methods::of_generics(words, generics);
    Some(quote! {
        #[allow(dead_code, unreachable_code, deprecated, clippy::all)]
        const _: () = {
            fn names() {
                // What is never reached, rustc type-checks and then drops.
                return;
                #(#lines)*
                #(#macros)*
            }
            #of_generics
        };
    })
}

fn proof(word: &Word) -> TokenStream {
    let path = &word.path;
    let span = span_of(path);
    match &word.meaning {
        Meaning::Function(name) => {
            let same = format_ident!("{}", if name == "cast" { "conversion" } else { "function" });
            let word = vocabulary(name, span);
            let generics = function_generics(name, span);
            quote_spanned!(span=> ::tma_runtime::lang::names::#same(#word #generics, #path);)
        }
        Meaning::Type(name) => {
            let (word, generics) = (vocabulary(name, span), type_generics(name, span));
            quote_spanned!(span=> ::tma_runtime::lang::names::same_type::<#word #generics, #path #generics>();)
        }
        Meaning::Scalar(scalar) => {
            let word = scalar_type(*scalar, span);
            quote_spanned!(span=> ::tma_runtime::lang::names::same_type::<#word, #path>();)
        }
        Meaning::Conversion(scalar, name) => {
            let (word, name) = (scalar_type(*scalar, span), format_ident!("{name}"));
            quote_spanned!(span=> ::tma_runtime::lang::names::function(<#word>::#name, #path);)
        }
        Meaning::Constant(scalar, name) => constant_proof(*scalar, name, path, span),
        Meaning::Method(method) => {
            path.get_ident().map(|name| methods::proof(method, name)).unwrap_or_default()
        }
        Meaning::OrdMethod => path.get_ident().map(methods::ord_proof).unwrap_or_default(),
        // In functions of their own.
        Meaning::Macro(_) | Meaning::MethodOfGeneric(..) => TokenStream::new(),
    }
}

/// `u32::MAX` may be a constant of a module `u32`: it must have the type and the value, bit for
/// bit, of the vocabulary's.
fn constant_proof(scalar: Scalar, name: &str, path: &Path, span: Span) -> TokenStream {
    let bits = scalar.is_float().then(|| quote_spanned!(span=> .to_bits()));
    let message = format!(
        "TMA0120: `{}` means something else here",
        path.to_token_stream().to_string().replace(' ', "")
    );
    let name = format_ident!("{name}");
    // `BITS` is a `u32`, whatever it is of.
    let owner = scalar_type(scalar, span);
    let ty = if name == "BITS" { scalar_type(Scalar::U32, span) } else { owner.clone() };
    quote_spanned! {span=>
        const _: () = {
            const HERE: #ty = #path;
            ::core::assert!(HERE #bits == <#owner>::#name #bits, #message);
        };
    }
}

/// A block in which both the name as it stands and the vocabulary's are in scope.
fn macro_proof(word: &Word) -> TokenStream {
    let Some(last) = word.path.segments.last() else { return TokenStream::new() };
    let (span, name) = (last.ident.span(), &last.ident);
    let mut owner = Path { segments: Punctuated::new(), ..word.path.clone() };
    owner.segments.extend(word.path.segments.iter().take(word.path.segments.len() - 1).cloned());
    let by_path =
        (!owner.segments.is_empty()).then(|| quote_spanned!(span=> #[allow(unused_imports)] use #owner::*;));
    let arguments = match &word.meaning {
        Meaning::Macro(name) if name == "assert" => quote_spanned!(span=> (true)),
        _ => quote_spanned!(span=> ("")),
    };
    quote_spanned! {span=>
        {
            #[allow(unused_imports)]
            use ::tma_runtime::lang::names::macros::*;
            #by_path
            #name! #arguments;
        }
    }
}

fn span_of(path: &Path) -> Span {
    path.segments.last().map_or_else(Span::call_site, |last| last.ident.span())
}

/// The word itself.
pub(super) fn vocabulary(name: &str, span: Span) -> TokenStream {
    let name = format_ident!("{name}", span = span);
    quote_spanned!(span=> ::tma_runtime::lang::#name)
}

/// A scalar by a name that nothing hides.
pub(super) fn scalar_type(scalar: Scalar, span: Span) -> TokenStream {
    let name = format_ident!("{}", scalar.name(), span = span);
    match scalar.is_of_library() {
        true => quote_spanned!(span=> ::tma_runtime::lang::#name),
        false => quote_spanned!(span=> ::core::primitive::#name),
    }
}

/// Any generic arguments that the function takes: rustc gives the other side the same.
fn function_generics(name: &str, span: Span) -> TokenStream {
    match name {
        "min" | "max" | "abs" | "fma" | "sqrt" | "recip" | "cast" => {
            quote_spanned!(span=> ::<::core::primitive::f32>)
        }
        "shared" | "remote" => quote_spanned!(span=> ::<::tma_runtime::lang::Barrier>),
        "unroll" => quote_spanned!(span=> ::<::core::ops::Range<::core::primitive::u32>>),
        "bulk_wait_group" | "bulk_wait_group_read" => quote_spanned!(span=> ::<0>),
        _ => TokenStream::new(),
    }
}

/// Any generic arguments that the type takes.
pub(super) fn type_generics(name: &str, span: Span) -> TokenStream {
    match name {
        "Tile" => quote_spanned!(span=> <::core::primitive::f32, ::tma_runtime::lang::Shape2<8, 8>>),
        "TensorMap" | "Maps" | "SharedMap" => quote_spanned!(span=> <::tma_runtime::lang::names::AnyTile>),
        "Im2colMap" => quote_spanned!(span=> <::tma_runtime::lang::names::AnyTile, 4>),
        "Global" => quote_spanned!(span=> <::core::primitive::u32>),
        "SharedArray" => quote_spanned!(span=> <::core::primitive::u32, 1>),
        "Stages" => quote_spanned!(span=> <::tma_runtime::lang::Barrier, 1>),
        "Remote" => quote_spanned!(span=> <::tma_runtime::lang::Barrier>),
        "Pipeline" | "Producer" | "Consumer" => {
            quote_spanned!(span=> <(::tma_runtime::lang::names::AnyTile,), 1>)
        }
        "EmptySlot" | "LoadingSlot" | "FullSlot" => {
            quote_spanned!(span=> <(::tma_runtime::lang::names::AnyTile,)>)
        }
        "Shape1" => quote_spanned!(span=> <1>),
        "Shape2" => quote_spanned!(span=> <1, 1>),
        "Shape3" => quote_spanned!(span=> <1, 1, 1>),
        "Shape4" => quote_spanned!(span=> <1, 1, 1, 1>),
        "Shape5" => quote_spanned!(span=> <1, 1, 1, 1, 1>),
        _ => TokenStream::new(),
    }
}
