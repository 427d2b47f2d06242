//! The options of `#[tma_module(..)]`: `from = path`, optionally with `only = ["pattern", ..]` and
//! `instances = [kernel(..), ..]`.

use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream, Parser};
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
    /// The instances that the module adds.
    pub(super) instances: Vec<Added>,
}

/// Instances that a module adds to those of a kernel of its template: `fill(N in [4, 8])`.
#[derive(Clone, Debug)]
pub(super) struct Added {
    /// The name of the kernel.
    pub(super) kernel: Ident,
    /// The instances, as in `instances(..)`.
    pub(super) entries: TokenStream,
}

impl Parse for Added {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let kernel = input.parse()?;
        let list;
        syn::parenthesized!(list in input);
        Ok(Self { kernel, entries: list.parse()? })
    }
}

/// Parses the attribute's arguments, or returns `None` if they contain errors.
pub(super) fn parse(tokens: TokenStream, sink: &mut Sink) -> Option<ModuleAttr> {
    let before = sink.len();
    let mut attr = ModuleAttr::default();
    // The options that need a template.
    let mut of_template = vec![];
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            option(input, &mut attr, &mut of_template, sink)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        sink.error(Attribute::MalformedModule(error.to_string()), error.span().into());
    }
    if let (None, Some(option)) = (&attr.from, of_template.first()) {
        sink.error(Attribute::WithoutFrom { option: option.to_string() }, Span::of(option));
    }
    (sink.len() == before).then_some(attr)
}

fn option(
    input: ParseStream<'_>,
    attr: &mut ModuleAttr,
    of_template: &mut Vec<Ident>,
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
    } else if name == "only" || name == "instances" {
        input.parse::<Token![=]>()?;
        let list;
        syn::bracketed!(list in input);
        if let Some(first) = of_template.iter().find(|first| **first == name) {
            twice(sink, Span::of(first));
        }
        if name == "only" {
            let patterns = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
            attr.only = Some(patterns.into_iter().collect());
        } else {
            let added = Punctuated::<Added, Token![,]>::parse_terminated(&list)?;
            attr.instances = added.into_iter().collect();
        }
        of_template.push(name);
    } else {
        sink.error(Attribute::UnknownModuleOption(name.to_string()), Span::of(&name));
        // The extent of the unknown option's value is unknown, so the rest is skipped.
        input.parse::<TokenStream>()?;
    }
    Ok(())
}
