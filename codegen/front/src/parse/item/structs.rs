//! Structs of a `#[tma_module]`, and the functions in their `#[tma_device] impl` blocks.

use quote::ToTokens;
use syn::{
    Attribute, FnArg, ImplItem, Item, ItemFn, ItemImpl, ItemStruct, Meta, Pat, PatIdent, PatType, Receiver,
    ReceiverKind, Token, Type, parse_quote_spanned,
};

use super::condition::is_condition;
use super::is_named;
use crate::diag::Sink;
use crate::diag::mistake::Aggregate;
use crate::ir::Span;
use crate::parse::names;

/// A function in a `#[tma_device] impl` block.
#[derive(Clone, Debug)]
pub struct DeviceMethod {
    /// The name of the struct.
    pub of: String,
    /// The function. A receiver is a parameter `self` with a type.
    pub function: ItemFn,
}

/// Whether kernels can have values of the struct: it is `Copy`. Dropping one does nothing then, and
/// neither does moving it.
pub(super) fn is_value(item: &ItemStruct) -> bool {
    derives(item, "Copy")
}

/// Whether `==` compares the fields of the struct.
pub(in crate::parse) fn is_compared(item: &ItemStruct) -> bool {
    derives(item, "PartialEq")
}

fn derives(item: &ItemStruct, name: &str) -> bool {
    item.attrs.iter().any(|attr| is_derive_of(attr, name))
}

fn is_derive_of(attr: &Attribute, name: &str) -> bool {
    let Meta::List(list) = &attr.meta else { return false };
    if !attr.path().is_ident("derive") {
        return false;
    }
    let paths = syn::punctuated::Punctuated::<syn::Path, syn::Token![,]>::parse_terminated;
    let derived = list.parse_args_with(paths).unwrap_or_default();
    derived.iter().any(|path| path.segments.last().is_some_and(|last| last.ident == name))
}

/// Whether it is a `#[tma_device] impl` block.
pub(crate) fn is_device(block: &ItemImpl) -> bool {
    block.attrs.iter().any(|attr| is_named(attr, "tma_device"))
}

/// Returns the functions of a `#[tma_device] impl` block, which is one of `items`. Reports a block
/// that is no device code.
pub(super) fn methods(block: &ItemImpl, items: &[Item], sink: &mut Sink) -> Vec<DeviceMethod> {
    if !is_device(block) {
        return vec![];
    }
    let owner = match &*block.self_ty {
        Type::Path(path) if path.qself.is_none() => names::own_name(&path.path),
        _ => None,
    };
    let is_of_struct = |name: &String| {
        items.iter().any(|item| matches!(item, Item::Struct(item) if names::text(&item.ident) == *name))
    };
    let Some(of) = owner.filter(is_of_struct) else {
        sink.error(Aggregate::ImplOfOther, Span::of(&block.self_ty));
        return vec![];
    };
    if let Some((of_trait, _)) = &block.trait_ {
        sink.error(Aggregate::ImplOfTrait, Span::of(of_trait));
        return vec![];
    }
    if !block.generics.params.is_empty() {
        sink.error(Aggregate::Generic { name: of }, Span::of(&block.generics));
        return vec![];
    }
    let mut found = vec![];
    for item in &block.items {
        let ImplItem::Fn(function) = item else {
            sink.error(Aggregate::ImplItem, Span::of(item));
            continue;
        };
        if let Ok(mut function) = syn::parse2::<ItemFn>(function.to_token_stream()) {
            if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first() {
                let parameter = parameter(receiver);
                function.sig.inputs[0] = parameter;
            }
            function.attrs.extend(block.attrs.iter().filter(|attr| is_condition(attr)).cloned());
            found.push(DeviceMethod { of: of.clone(), function });
        }
    }
    found
}

/// Returns `self`, `&self` or `&mut self` as a parameter with a type.
fn parameter(receiver: &Receiver) -> FnArg {
    let span = receiver.self_token.span;
    let ty: Type = if let ReceiverKind::Reference(_, lifetime, mutability) = &receiver.kind {
        parse_quote_spanned!(span=> &#lifetime #mutability Self)
    } else if let ReceiverKind::Typed(_, ty) = &receiver.kind {
        (**ty).clone()
    } else {
        parse_quote_spanned!(span=> Self)
    };
    let name = PatIdent {
        attrs: vec![],
        by_ref: None,
        mutability: receiver.mutability,
        ident: receiver.self_token.into(),
        subpat: None,
    };
    let colon_token = Token![:](span);
    FnArg::Typed(PatType { attrs: vec![], pat: Box::new(Pat::Ident(name)), colon_token, ty: Box::new(ty) })
}

/// Returns the type of the receiver, if the function is a method.
pub(in crate::parse) fn receiver_type(function: &ItemFn) -> Option<&Type> {
    let Some(FnArg::Typed(first)) = function.sig.inputs.first() else { return None };
    matches!(&*first.pat, Pat::Ident(name) if name.ident == "self").then_some(&*first.ty)
}
