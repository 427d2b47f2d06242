//! `#[tma_kernel(threads = 128, min_blocks = 2, max_registers = 168, cluster = 2, checked,
//! instances(small = <64>, ..))]`.

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, LitStr, Token};

use crate::diag::Sink;
use crate::diag::mistake::{Attribute, Trusted};
use crate::ir::Span;
use crate::parse::instances;

/// The options of a kernel's attribute, with values that are not yet evaluated.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelAttr {
    /// `threads = n` or `threads = [x, y, z]`.
    pub(crate) threads: Option<Expr>,
    /// `min_blocks = n`.
    pub(crate) min_blocks: Option<Expr>,
    /// `max_registers = n`.
    pub(crate) max_registers: Option<Expr>,
    /// `checked` or `unchecked`.
    pub(crate) checked: Option<bool>,
    /// The reason in `protocol = trusted("reason")`.
    pub(crate) trusted: Option<String>,
    /// `local_arrays`.
    pub(crate) local_arrays: bool,
    /// `cluster = n`, `cluster = [x, y, z]` or `cluster = launch`.
    pub(crate) cluster: Option<Expr>,
    /// `nonportable_cluster`.
    pub(crate) nonportable_cluster: Option<Ident>,
    /// The names of all options present.
    given: Vec<Ident>,
    /// Whether parsing stopped at an error.
    pub(crate) is_malformed: bool,
    /// `instances(name = <..>, T in [..], ..)`.
    pub(crate) instances: Vec<instances::Entry>,
}

impl KernelAttr {
    /// Whether there is an `instances(..)` that lists none: at most constants that are computed.
    pub(crate) fn leaves_instances_open(&self) -> bool {
        let is_computed = |entry: &instances::Entry| matches!(entry, instances::Entry::Computed(_));
        self.given.iter().any(|name| name == "instances") && self.instances.iter().all(is_computed)
    }
}

/// Parses the attribute's arguments, and reports errors to the sink.
pub(crate) fn parse(tokens: TokenStream, sink: &mut Sink) -> KernelAttr {
    let mut attr = KernelAttr::default();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            option(input, &mut attr, sink)?;
            if input.is_empty() {
                break;
            }
            input.parse::<Token![,]>()?;
        }
        Ok(())
    };
    let parsed = parser.parse2(tokens);
    if let Err(error) = parsed {
        attr.is_malformed = true;
        sink.error(Attribute::Malformed(error.to_string()), error.span().into());
    }
    attr
}

fn option(input: ParseStream<'_>, attr: &mut KernelAttr, sink: &mut Sink) -> syn::Result<()> {
    let name: Ident = input.parse()?;
    if let Some(first) = attr.given.iter().find(|given| **given == name) {
        let first = Span::of(first);
        sink.error(Attribute::Twice { option: name.to_string(), first }, Span::of(&name));
    }
    let slot = match name.to_string().as_str() {
        "threads" => &mut attr.threads,
        "min_blocks" => &mut attr.min_blocks,
        "max_registers" => &mut attr.max_registers,
        word @ ("checked" | "unchecked") => {
            let opposite = if word == "checked" { "unchecked" } else { "checked" };
            if let Some(other) = attr.given.iter().find(|given| **given == opposite) {
                sink.error(Attribute::BothChecks { other: Span::of(other) }, Span::of(&name));
            }
            attr.checked = Some(word == "checked");
            attr.given.push(name);
            return Ok(());
        }
        "cluster" => &mut attr.cluster,
        "local_arrays" => {
            attr.given.push(name);
            attr.local_arrays = true;
            return Ok(());
        }
        "nonportable_cluster" => {
            attr.given.push(name.clone());
            attr.nonportable_cluster = Some(name);
            return Ok(());
        }
        "protocol" => {
            input.parse::<Token![=]>()?;
            let value: Ident = input.parse()?;
            if value != "trusted" {
                sink.error(Attribute::Protocol(value.to_string()), Span::of(&value));
            }
            attr.trusted = reason(input)?;
            if attr.trusted.is_none() && value == "trusted" {
                sink.error(Attribute::TrustedWithoutReason(Trusted::Kernel), Span::of(&value));
            }
            attr.given.push(name);
            return Ok(());
        }
        "instances" => {
            let content;
            syn::parenthesized!(content in input);
            let list = instances::entries(&content).unwrap_or_else(|error| {
                sink.error(Attribute::MalformedInstances(error.to_string()), error.span().into());
                attr.is_malformed = true;
                vec![]
            });
            // Skips the rest of a list that could not be parsed.
            content.parse::<TokenStream>()?;
            attr.given.push(name);
            attr.instances.extend(list);
            return Ok(());
        }
        other => {
            sink.error(Attribute::UnknownOption(other.to_owned()), Span::of(&name));
            skip_value(input);
            return Ok(());
        }
    };
    input.parse::<Token![=]>()?;
    *slot = Some(input.parse()?);
    attr.given.push(name);
    Ok(())
}

/// Parses the reason in parentheses, if there is one.
fn reason(input: ParseStream<'_>) -> syn::Result<Option<String>> {
    if !input.peek(syn::token::Paren) {
        return Ok(None);
    }
    let content;
    syn::parenthesized!(content in input);
    let reason: LitStr = content.parse()?;
    Ok(Some(reason.value()).filter(|reason| !reason.trim().is_empty()))
}

/// Skips the value of an unknown option, so that the options after it are still parsed.
fn skip_value(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<proc_macro2::TokenTree>().is_err() {
            return;
        }
    }
}
