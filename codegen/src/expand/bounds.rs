//! That instances fulfil the bounds of their kernel.
//!
//! The front end compiles instances, and looks at no bound. rustc does: the body is checked for
//! whatever fulfils the bounds, those behind a generic and those of the `where` clause alike. What
//! is left is that each instance does, so each is named once more, as a function that nobody calls.
//! Its tokens are those of the attribute, where rustc then reports the argument that does not fit.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{GenericParam, ItemFn};

use crate::parse::InstanceAttr;

/// Statements that rustc accepts only if every instance fulfils the bounds of `function`, whose
/// name they stand in the scope of.
pub(super) fn fulfilled(function: &ItemFn, instances: &[InstanceAttr]) -> TokenStream {
    let params = &function.sig.generics.params;
    // Arguments that are too many, or too few, have been reported.
    let is_whole = |instance: &&InstanceAttr| instance.arguments.len() == params.len();
    let is_compiled = !params.iter().any(|param| matches!(param, GenericParam::Lifetime(_)));
    let named = instances.iter().filter(|_| is_compiled).filter(is_whole).map(|instance| {
        let (span, arguments) = (instance.name.span(), &instance.arguments);
        let mut name = function.sig.ident.clone();
        name.set_span(name.span().located_at(span));
        let generics = quote!(<#(#arguments),*>);
        quote_spanned!(span=> let _ = #name::#generics;)
    });
    named.collect()
}
