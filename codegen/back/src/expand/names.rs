//! Proofs that names resolve to the built-ins that the front end resolved them to.
//!
//! The front end sees one item. Only rustc knows the imports, macros and items around it. For each
//! built-in that a kernel uses, there is therefore a line, never run, that rustc accepts only if
//! the name there refers to the built-in. Each function has a unique type, so
//! `function(lang::min::<u32>, min)` requires that both are the same function. Types are compared
//! as types, and constants by their values. A macro is imported again by a glob, which rustc
//! rejects as ambiguous (E0659) unless both are the same macro. Methods have [proofs of their
//! own](methods). All tokens of a proof have the span of the name, so rustc reports the error
//! there.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Path;
use syn::punctuated::Punctuated;
use tma_front::diag::Diagnostic;
use tma_front::diag::mistake::Name;
use tma_front::ir::Scalar;
use tma_front::parse::names::{Meaning, WordUse};
use tma_front::words::{ConstantWord, FunctionWord, Generic, MacroWord, Word};

use super::methods;

/// Imports the built-ins in the block that contains the body, where their names then have no other
/// meaning.
pub(super) fn imports(words: &[WordUse]) -> TokenStream {
    let (mut lang, mut primitive, mut traits) = (vec![], vec![], vec![]);
    for word in words {
        match &word.meaning {
            Meaning::Function(_) | Meaning::Type(_) => lang.extend(word.path.get_ident()),
            Meaning::Scalar(scalar) if scalar.is_of_library() => lang.extend(word.path.get_ident()),
            Meaning::Scalar(_) => primitive.extend(word.path.get_ident()),
            // If a trait of the user also takes integers by value, rustc reports an ambiguity.
            Meaning::OrdMethod => traits = vec![quote!(Ord as _)],
            Meaning::Option
            | Meaning::Constant(..)
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

/// Returns code that rustc accepts only if every name refers to the built-in at the position of the
/// kernel.
pub(super) fn proofs(words: &[WordUse]) -> Option<TokenStream> {
    if words.is_empty() {
        return None;
    }
    let (mut lines, mut macros) = (Vec::new(), Vec::new());
    for word in words {
        if let Meaning::Macro(_) = word.meaning {
            macros.push(any_proof(word));
        } else {
            lines.push(proof(word));
        }
    }
    let of_generics = methods::of_generics(words);
    Some(quote! {
        #[allow(dead_code, unreachable_code, deprecated, clippy::all)]
        const _: () = {
            fn names() {
                // rustc type-checks unreachable code, and then removes it.
                return;
                #(#lines)*
                #(#macros)*
            }
            #of_generics
        };
    })
}

/// Returns the proof of a word, which may be a macro.
pub(super) fn any_proof(word: &WordUse) -> TokenStream {
    match word.meaning {
        Meaning::Macro(called) => macro_proof(word, called),
        Meaning::Function(_)
        | Meaning::Type(_)
        | Meaning::Scalar(_)
        | Meaning::Option
        | Meaning::Constant(..)
        | Meaning::Conversion(..)
        | Meaning::Method(_)
        | Meaning::OrdMethod
        | Meaning::MethodOfGeneric(..) => proof(word),
    }
}

/// Returns the proof of a word other than a macro.
pub(super) fn proof(word: &WordUse) -> TokenStream {
    let path = &word.path;
    let span = span_of(path);
    match &word.meaning {
        Meaning::Function(word) => {
            let same = if *word == FunctionWord::Cast {
                "conversion"
            } else if *word == FunctionWord::Reuse {
                "reuse"
            } else {
                "function"
            };
            let same = format_ident!("{same}");
            let generics = examples(word.signature().generics, span);
            let generics = generics.map(|generics| quote_spanned!(span=> ::#generics));
            let word = vocabulary(&word.name(), span);
            quote_spanned!(span=> ::tma_runtime::lang::names::#same(#word #generics, #path);)
        }
        Meaning::Type(word) => {
            let (word, generics) = (vocabulary(word.name(), span), examples(word.generics(), span));
            quote_spanned!(span=> ::tma_runtime::lang::names::same_type::<#word #generics, #path #generics>();)
        }
        Meaning::Scalar(scalar) => {
            let word = scalar_type(*scalar, span);
            quote_spanned!(span=> ::tma_runtime::lang::names::same_type::<#word, #path>();)
        }
        Meaning::Option => quote_spanned! {span=>
            ::tma_runtime::lang::names::same_type::<::core::option::Option<()>, #path<()>>();
        },
        Meaning::Conversion(scalar, word) => {
            let (word, name) = (scalar_type(*scalar, span), format_ident!("{}", word.name()));
            quote_spanned!(span=> ::tma_runtime::lang::names::function(<#word>::#name, #path);)
        }
        Meaning::Constant(scalar, word) => constant_proof(*scalar, *word, path, span),
        Meaning::Method(method) => {
            path.get_ident().map(|name| methods::proof(method, name)).unwrap_or_default()
        }
        Meaning::OrdMethod => path.get_ident().map(methods::ord_proof).unwrap_or_default(),
        // These have functions of their own.
        Meaning::Macro(_) | Meaning::MethodOfGeneric(..) => TokenStream::new(),
    }
}

/// Proves that `u32::MAX` is not, for example, a constant of a module `u32`: it must have the type
/// and, bit for bit, the value of the built-in.
fn constant_proof(scalar: Scalar, word: ConstantWord, path: &Path, span: Span) -> TokenStream {
    let bits = scalar.is_float().then(|| quote_spanned!(span=> .to_bits()));
    let shown = path.to_token_stream().to_string().replace(' ', "");
    let message = Diagnostic::new(Name::OtherConstant { path: shown }, span.into()).text();
    let name = format_ident!("{}", word.name());
    // `BITS` is a `u32` for all types.
    let owner = scalar_type(scalar, span);
    let ty = if word == ConstantWord::Bits { scalar_type(Scalar::U32, span) } else { owner.clone() };
    quote_spanned! {span=>
        const _: () = {
            const HERE: #ty = #path;
            ::core::assert!(HERE #bits == <#owner>::#name #bits, #message);
        };
    }
}

/// Generates a block in which both the name in the kernel's scope and the built-in are in scope.
fn macro_proof(word: &WordUse, called: MacroWord) -> TokenStream {
    let Some(last) = word.path.segments.last() else { return TokenStream::new() };
    let (span, name) = (last.ident.span(), &last.ident);
    let mut owner = Path { segments: Punctuated::new(), ..word.path.clone() };
    owner.segments.extend(word.path.segments.iter().take(word.path.segments.len() - 1).cloned());
    let by_path =
        (!owner.segments.is_empty()).then(|| quote_spanned!(span=> #[allow(unused_imports)] use #owner::*;));
    let arguments = match called {
        MacroWord::Assert => quote_spanned!(span=> (true)),
        MacroWord::Printf | MacroWord::TraceSpan => quote_spanned!(span=> ("")),
        // Expands to nothing, and needs no `unsafe`.
        MacroWord::Ptx => quote_spanned!(span=> (@)),
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

/// Returns the path of the built-in itself.
pub(super) fn vocabulary(name: &str, span: Span) -> TokenStream {
    let name = format_ident!("{name}", span = span);
    quote_spanned!(span=> ::tma_runtime::lang::#name)
}

/// Returns a scalar by a name that cannot be hidden.
pub(super) fn scalar_type(scalar: Scalar, span: Span) -> TokenStream {
    let name = format_ident!("{}", scalar.name(), span = span);
    match scalar.is_of_library() {
        true => quote_spanned!(span=> ::tma_runtime::lang::#name),
        false => quote_spanned!(span=> ::core::primitive::#name),
    }
}

/// Returns arbitrary generic arguments that fit, in angle brackets. rustc infers the same for the
/// other side. Arguments with defaults are omitted.
pub(super) fn examples(generics: &[Generic], span: Span) -> Option<TokenStream> {
    let examples = generics.iter().filter(|generic| !generic.has_default());
    let examples: Vec<_> = examples.map(|&generic| example(generic, span)).collect();
    (!examples.is_empty()).then(|| quote_spanned!(span=> <#(#examples),*>))
}

fn example(generic: Generic, span: Span) -> TokenStream {
    let lang = quote_spanned!(span=> ::tma_runtime::lang);
    match generic {
        Generic::Number | Generic::Sized => quote_spanned!(span=> ::core::primitive::f32),
        Generic::AccumulatorElement | Generic::WarpAccumulatorElement => {
            quote_spanned!(span=> ::core::primitive::f32)
        }
        Generic::OperandElement | Generic::WarpOperandElement | Generic::Half => {
            quote_spanned!(span=> #lang::f16)
        }
        Generic::Registers => quote_spanned!(span=> 24),
        Generic::Element | Generic::WordInteger => quote_spanned!(span=> ::core::primitive::u32),
        Generic::Shared => quote_spanned!(span=> #lang::Barrier),
        Generic::Range => quote_spanned!(span=> ::core::ops::Range<::core::primitive::u32>),
        Generic::Groups | Generic::Dimension => quote_spanned!(span=> 0),
        Generic::Lanes => quote_spanned!(span=> 2),
        Generic::Flag => quote_spanned!(span=> true),
        Generic::Shape => quote_spanned!(span=> #lang::Shape2<8, 8>),
        Generic::Swizzle => quote_spanned!(span=> #lang::NoSwizzle),
        Generic::Count | Generic::MatrixRows | Generic::K => quote_spanned!(span=> 1),
        Generic::Lifetime => quote_spanned!(span=> 'static),
        Generic::KeptValue => quote_spanned!(span=> ()),
        Generic::Rank => quote_spanned!(span=> 4),
        Generic::Tile | Generic::Operand | Generic::SharedData => tile(span),
        Generic::PeerMemory => quote_spanned!(span=> #lang::Global<::core::primitive::u32>),
        Generic::Tiles => {
            let tile = tile(span);
            quote_spanned!(span=> (#tile,))
        }
    }
}

/// Returns the type of an arbitrary tile.
pub(super) fn tile(span: Span) -> TokenStream {
    quote_spanned!(span=> ::tma_runtime::lang::names::AnyTile)
}
