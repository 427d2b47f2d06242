//! The options of `#[tma_module(..)]`: `from = path`, optionally with `only = ["pattern", ..]`.

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Path, Token};

use crate::diag::Sink;
use crate::diag::mistake::Attribute;
use crate::ir::Span;

/// The options, not yet resolved.
#[derive(Clone, Debug, Default)]
pub(super) struct ModuleAttr {
    /// The path of the template.
    pub(super) from: Option<Path>,
    /// The patterns of the names of instances that are compiled.
    pub(super) only: Option<Vec<LitStr>>,
}

/// Parses the attribute's arguments, or returns `None` if they contain errors.
pub(super) fn parse(tokens: TokenStream, sink: &mut Sink) -> Option<ModuleAttr> {
    let before = sink.len();
    let mut attr = ModuleAttr::default();
    let mut alone = None;
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            option(input, &mut attr, &mut alone, sink)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        sink.error(Attribute::MalformedModule(error.to_string()), error.span().into());
    }
    if let (None, Some(only)) = (&attr.from, alone) {
        sink.error(Attribute::OnlyWithoutFrom, Span::of(&only));
    }
    (sink.len() == before).then_some(attr)
}

fn option(
    input: ParseStream<'_>,
    attr: &mut ModuleAttr,
    only: &mut Option<Ident>,
    sink: &mut Sink,
) -> syn::Result<()> {
    let name: Ident = input.parse()?;
    let twice = |sink: &mut Sink, first: Span| {
        sink.error(Attribute::Twice { option: name.to_string(), first }, Span::of(&name));
    };
    if name == "from" {
        input.parse::<Token![=]>()?;
        let path = Path::parse_mod_style(input)?;
        match &attr.from {
            Some(first) => twice(sink, Span::of(first)),
            None => attr.from = Some(path),
        }
    } else if name == "only" {
        input.parse::<Token![=]>()?;
        let list;
        syn::bracketed!(list in input);
        let patterns = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
        match &only {
            Some(first) => twice(sink, Span::of(first)),
            None => attr.only = Some(patterns.into_iter().collect()),
        }
        *only = Some(name);
    } else {
        sink.error(Attribute::UnknownModuleOption(name.to_string()), Span::of(&name));
        // The extent of the unknown option's value is unknown, so the rest is skipped.
        input.parse::<TokenStream>()?;
    }
    Ok(())
}
