//! `#[cfg(..)]` inside compiled code. A macro sees the tokens before rustc evaluates the condition,
//! and cannot evaluate it itself: the conditional code would always be compiled.

use syn::visit::Visit;
use syn::{Attribute, ItemConst, ItemFn, ItemStruct, ItemType};

use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::Span;

/// Reports conditions inside a kernel. One on the kernel itself is evaluated by rustc.
pub(in crate::parse) fn refuse_in_kernel(function: &ItemFn, sink: &mut Sink) {
    let inside = conditions(|found| {
        found.visit_signature(&function.sig);
        found.visit_block(&function.block);
    });
    for attr in inside {
        sink.error(mistake::Attribute::ConditionInKernel, Span::of(attr));
    }
}

/// Reports conditions on or inside a constant that a kernel uses.
pub(in crate::parse) fn refuse_on_constant(constant: &ItemConst, sink: &mut Sink) {
    refuse_on_shared(conditions(|found| found.visit_item_const(constant)), sink);
}

/// Reports conditions on an alias that a kernel uses.
pub(in crate::parse) fn refuse_on_alias(alias: &ItemType, sink: &mut Sink) {
    refuse_on_shared(conditions(|found| found.visit_item_type(alias)), sink);
}

/// Reports conditions on or inside a struct that a kernel uses.
pub(in crate::parse) fn refuse_on_struct(item: &ItemStruct, sink: &mut Sink) {
    refuse_on_shared(conditions(|found| found.visit_item_struct(item)), sink);
}

/// Reports conditions on or inside a device function that a kernel calls.
pub(in crate::parse) fn refuse_on_function(function: &ItemFn, sink: &mut Sink) {
    refuse_on_shared(conditions(|found| found.visit_item_fn(function)), sink);
}

fn refuse_on_shared(conditions: Vec<&Attribute>, sink: &mut Sink) {
    for attr in conditions {
        sink.error(mistake::Attribute::ConditionOnUsed, Span::of(attr));
    }
}

/// Whether it is an attribute by which rustc may leave out what it is on.
pub(super) fn is_condition(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr")
}

fn conditions<'a>(look: impl FnOnce(&mut Found<'a>)) -> Vec<&'a Attribute> {
    let mut found = Found(vec![]);
    look(&mut found);
    found.0
}

struct Found<'a>(Vec<&'a Attribute>);

impl<'a> Visit<'a> for Found<'a> {
    fn visit_attribute(&mut self, attr: &'a Attribute) {
        if is_condition(attr) {
            self.0.push(attr);
        }
    }
}
