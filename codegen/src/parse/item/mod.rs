//! Finds kernels, and what they share, in an item.

pub(crate) mod attr;
pub(in crate::parse) mod condition;
pub(crate) mod depth;
pub(crate) mod file;
pub(in crate::parse) mod outside;
pub(crate) mod template;
pub(crate) mod trusted;

use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item, ItemConst, ItemFn, ItemMod, ItemType, Meta};

use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::Span;
use outside::Outsider;

/// A function with `#[tma_kernel(..)]`.
#[derive(Clone, Debug)]
pub(crate) struct KernelItem {
    /// The attribute's arguments.
    pub(crate) attr: TokenStream,
    /// The function, without the attribute.
    pub(crate) function: ItemFn,
}

/// What the kernels of one `#[tma_module]` share; empty for a kernel that stands alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModuleItems {
    pub(crate) constants: Vec<ItemConst>,
    pub(crate) aliases: Vec<ItemType>,
    pub(crate) functions: Vec<ItemFn>,
    /// What else takes names there.
    pub(crate) outsiders: Vec<Outsider>,
    /// Whether it is certain that no word of the vocabulary has been imported where the kernels
    /// stand.
    pub(crate) lacks_words: bool,
    /// The file that the kernels' tokens are of, if that is a template's.
    pub(crate) template: Option<PathBuf>,
    /// The names of the parameters that kernels have for the sake of what replaces something.
    pub(crate) further: Vec<String>,
}

/// A `#[tma_module]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    pub(crate) kernels: Vec<KernelItem>,
    pub(crate) shared: ModuleItems,
}

/// Whether `attr` is `#[name]`, by whatever path.
pub(crate) fn is_named(attr: &Attribute, name: &str) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == name)
}

/// The kernel of `function`, if it has the attribute.
pub(crate) fn kernel(function: &ItemFn) -> Option<KernelItem> {
    let at = function.attrs.iter().position(|attr| is_named(attr, "tma_kernel"))?;
    let mut function = function.clone();
    let attr = match function.attrs.remove(at).meta {
        Meta::List(list) => list.tokens,
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    Some(KernelItem { attr, function })
}

/// Whether kernels can call `item`.
fn is_device(item: &Item) -> bool {
    matches!(item, Item::Fn(function) if function.attrs.iter().any(|attr| is_named(attr, "tma_device")))
}

/// Whether modules that are made from that of `function` may replace it.
fn is_open(function: &ItemFn) -> bool {
    let attr = function.attrs.iter().find(|attr| is_named(attr, "tma_device"));
    attr.and_then(option_of_device).is_some_and(|option| option.to_string() == "open")
}

/// What `#[tma_device(..)]` has between its brackets.
fn option_of_device(attr: &Attribute) -> Option<&TokenStream> {
    match &attr.meta {
        Meta::List(list) => Some(&list.tokens),
        Meta::Path(_) | Meta::NameValue(_) => None,
    }
}

/// Reports options that device functions do not have.
fn judge_device(function: &ItemFn, sink: &mut Sink) {
    let attr = function.attrs.iter().find(|attr| is_named(attr, "tma_device"));
    if let Some(option) = attr.and_then(option_of_device)
        && option.to_string() != "open"
    {
        sink.error(mistake::Template::DeviceOption(option.to_string()), Span::of(option));
    }
}

/// Sorts the items of a module.
pub(crate) fn module(item: &ItemMod, sink: &mut Sink) -> Module {
    let mut module = Module::default();
    let Some((_, items)) = &item.content else {
        sink.error(mistake::Attribute::ModuleWithoutBody, Span::of(item));
        return module;
    };
    module.shared.lacks_words = !items.iter().any(outside::may_bring_words);
    for item in items {
        match item {
            Item::Fn(function) if is_device(item) => {
                judge_device(function, sink);
                module.shared.functions.push(function.clone());
            }
            Item::Fn(function) => module.kernels.extend(kernel(function)),
            Item::Const(constant) => module.shared.constants.push(constant.clone()),
            Item::Type(alias) => module.shared.aliases.push(alias.clone()),
            // Whatever else is there belongs to the host.
            _ => {}
        }
        if !is_device(item) {
            module.shared.outsiders.extend(outside::outsider(item));
        }
    }
    module
}

impl ModuleItems {
    /// Everything that is shared, as tokens.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TokenStream> {
        let constants = self.constants.iter().map(ToTokens::to_token_stream);
        let aliases = self.aliases.iter().map(ToTokens::to_token_stream);
        let functions = self.functions.iter().map(ToTokens::to_token_stream);
        constants.chain(aliases).chain(functions)
    }
}
