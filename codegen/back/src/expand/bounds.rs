//! Checks that instances satisfy the bounds of their kernel.
//!
//! The front end compiles instances and ignores bounds. rustc checks the body for all arguments
//! that satisfy the bounds, both those of the generics and those of the `where` clause. It remains
//! to check that each instance satisfies them. Each instance is therefore named once as a function
//! that is never called. Its tokens have the spans of the attribute, where rustc then reports the
//! argument that does not fit.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{GenericParam, ItemFn};
use tma_front::parse::InstanceAttr;

/// Returns statements that rustc accepts only if every instance satisfies the bounds of `function`,
/// whose name must be in scope.
pub(super) fn fulfilled(function: &ItemFn, instances: &[InstanceAttr]) -> TokenStream {
    let params = &function.sig.generics.params;
    // A wrong number of arguments has been reported already.
    let is_whole = |instance: &&InstanceAttr| instance.arguments.len() == params.len();
    let is_compiled = !params.iter().any(|param| matches!(param, GenericParam::Lifetime(_)));
    let named = instances.iter().filter(|_| is_compiled).filter(is_whole).map(|instance| {
        let (span, arguments) = (instance.name.span(), &instance.arguments);
        let mut name = function.sig.ident.clone();
        name.set_span(name.span().located_at(span));
        let generics = quote!(<#(#arguments),*>);
        // In computed constants, numbers stand for generics: `2 * 1`, `64 == 64`.
        quote_spanned!(span=> #[allow(clippy::all)] let _ = #name::#generics;)
    });
    named.collect()
}
