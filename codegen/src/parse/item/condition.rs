//! `#[cfg(..)]` inside what is compiled. Whether it holds cannot be asked here, where tokens are
//! seen before that is decided: what it stands on would be compiled anyway.

use syn::visit::Visit;
use syn::{Attribute, ItemConst, ItemFn, ItemType};

use crate::diag::{Code, Sink};
use crate::ir::Span;

/// Reports the conditions inside a kernel. One on the whole of it is rustc's to decide.
pub(in crate::parse) fn refuse_in_kernel(function: &ItemFn, sink: &mut Sink) {
    let inside = conditions(|found| {
        found.visit_signature(&function.sig);
        found.visit_block(&function.block);
    });
    for attr in inside {
        sink.error(Code::Attribute, Span::of(attr), "a kernel is not compiled in part").help(
            "choose with a const generic or a constant and `if`, or put the condition on the whole item",
        );
    }
}

/// Reports the conditions on, and inside, a constant that a kernel uses.
pub(in crate::parse) fn refuse_on_constant(constant: &ItemConst, sink: &mut Sink) {
    refuse_on_shared(conditions(|found| found.visit_item_const(constant)), sink);
}

/// Reports the conditions on an alias that a kernel uses.
pub(in crate::parse) fn refuse_on_alias(alias: &ItemType, sink: &mut Sink) {
    refuse_on_shared(conditions(|found| found.visit_item_type(alias)), sink);
}

/// Reports the conditions on, and inside, a device function that a kernel calls.
pub(in crate::parse) fn refuse_on_function(function: &ItemFn, sink: &mut Sink) {
    refuse_on_shared(conditions(|found| found.visit_item_fn(function)), sink);
}

fn refuse_on_shared(conditions: Vec<&Attribute>, sink: &mut Sink) {
    for attr in conditions {
        sink.error(Code::Attribute, Span::of(attr), "what a kernel uses is not compiled in part").help(
            "put the condition on the whole `#[tma_module]`, of which there may be two, or on what only the host uses",
        );
    }
}

fn conditions<'a>(look: impl FnOnce(&mut Found<'a>)) -> Vec<&'a Attribute> {
    let mut found = Found(vec![]);
    look(&mut found);
    found.0
}

struct Found<'a>(Vec<&'a Attribute>);

impl<'a> Visit<'a> for Found<'a> {
    fn visit_attribute(&mut self, attr: &'a Attribute) {
        if attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr") {
            self.0.push(attr);
        }
    }
}
