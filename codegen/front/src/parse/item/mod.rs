//! Finds kernels, and the items that they share, in an item.

pub(crate) mod attr;
pub(in crate::parse) mod condition;
pub mod depth;
pub mod file;
pub(in crate::parse) mod host_items;
pub mod imports;
pub(in crate::parse) mod structs;
pub mod template;
pub mod trusted;

use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, GenericParam, Item, ItemConst, ItemFn, ItemMod, ItemStruct, ItemType, Meta};

use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::Span;
use host_items::HostItemDecl;
use imports::Imports;
pub use structs::DeviceMethod;

/// A function with `#[tma_kernel(..)]`.
#[derive(Clone, Debug)]
pub struct KernelItem {
    /// The attribute's arguments.
    pub attr: TokenStream,
    /// The function, without the attribute.
    pub function: ItemFn,
}

/// The items shared by the kernels of one `#[tma_module]`; empty for a kernel outside of one.
#[derive(Clone, Debug, Default)]
pub struct ModuleItems {
    /// Its constants.
    pub constants: Vec<ItemConst>,
    /// Its type aliases.
    pub aliases: Vec<ItemType>,
    /// Its `#[tma_device]` functions, and each `const fn`.
    pub functions: Vec<ItemFn>,
    /// The structs that kernels can have values of.
    pub structs: Vec<ItemStruct>,
    /// The functions in `#[tma_device] impl` blocks.
    pub methods: Vec<DeviceMethod>,
    /// The items of the host, which also take names.
    pub host_items: Vec<HostItemDecl>,
    /// Whether it is certain that no built-in name has been imported into the scope of these
    /// kernels.
    pub lacks_words: bool,
    /// The file that the kernels' tokens come from, if it is that of a template.
    pub template: Option<PathBuf>,
    /// The names of the parameters that replacements add to kernels.
    pub added_params: Vec<String>,
    /// The items imported from other modules.
    pub imports: Imports,
}

/// A `#[tma_module]`.
#[derive(Clone, Debug, Default)]
pub struct Module {
    pub(crate) kernels: Vec<KernelItem>,
    /// The items that its kernels share.
    pub shared: ModuleItems,
}

/// Whether `attr` is `#[name]`, with any path before the name.
pub fn is_named(attr: &Attribute, name: &str) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == name)
}

/// Returns the kernel of `function`, if it has the attribute.
pub fn kernel(function: &ItemFn) -> Option<KernelItem> {
    let at = function.attrs.iter().position(|attr| is_named(attr, "tma_kernel"))?;
    let mut function = function.clone();
    let attr = match function.attrs.remove(at).meta {
        Meta::List(list) => list.tokens,
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    Some(KernelItem { attr, function })
}

/// Whether `function` is a kernel that only modules made from its module compile: it is generic,
/// and its `instances(..)` lists none.
pub fn is_for_made_modules(function: &ItemFn) -> bool {
    let is_generic =
        function.sig.generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_)));
    is_generic
        && kernel(function).is_some_and(|kernel| {
            // Errors in the attribute are reported where the kernel is parsed.
            let attr = attr::parse(kernel.attr, &mut Sink::default());
            !attr.is_malformed && attr.leaves_instances_open()
        })
}

/// Returns the kernel of `function`, unless only modules made from its module compile it.
pub fn compiled_kernel(function: &ItemFn) -> Option<KernelItem> {
    if is_for_made_modules(function) { None } else { kernel(function) }
}

/// Whether `item` is a `#[tma_device]` function.
fn is_device(item: &Item) -> bool {
    matches!(item, Item::Fn(function) if function.attrs.iter().any(|attr| is_named(attr, "tma_device")))
}

/// Whether kernels can call the function: constants can call a `const fn`, and so can kernels.
fn is_callable(function: &ItemFn) -> bool {
    let is_device = function.attrs.iter().any(|attr| is_named(attr, "tma_device"));
    is_device || function.sig.constness.is_some() && kernel(function).is_none()
}

/// Whether a module made from this function's module may replace it.
fn is_open(function: &ItemFn) -> bool {
    let attr = function.attrs.iter().find(|attr| is_named(attr, "tma_device"));
    attr.and_then(option_of_device).is_some_and(|option| option.to_string() == "open")
}

/// Returns the tokens between the parentheses of `#[tma_device(..)]`.
fn option_of_device(attr: &Attribute) -> Option<&TokenStream> {
    match &attr.meta {
        Meta::List(list) => Some(&list.tokens),
        Meta::Path(_) | Meta::NameValue(_) => None,
    }
}

/// Reports options that a device function does not have.
fn judge_device(function: &ItemFn, sink: &mut Sink) {
    let attr = function.attrs.iter().find(|attr| is_named(attr, "tma_device"));
    if let Some(option) = attr.and_then(option_of_device)
        && option.to_string() != "open"
    {
        sink.error(mistake::Template::DeviceOption(option.to_string()), Span::of(option));
    }
}

/// Sorts the items of a module into kernels and shared items.
pub fn module(item: &ItemMod, sink: &mut Sink) -> Module {
    let mut module = Module::default();
    let Some((_, items)) = &item.content else {
        sink.error(mistake::Attribute::ModuleWithoutBody, Span::of(item));
        return module;
    };
    module.shared.lacks_words = !items.iter().any(host_items::may_bring_words);
    for item in items {
        match item {
            Item::Fn(function) if is_callable(function) => {
                judge_device(function, sink);
                module.shared.functions.push(function.clone());
            }
            Item::Fn(function) => module.kernels.extend(compiled_kernel(function)),
            Item::Const(constant) => module.shared.constants.push(constant.clone()),
            Item::Type(alias) => module.shared.aliases.push(alias.clone()),
            Item::Struct(item) if structs::is_value(item) => module.shared.structs.push(item.clone()),
            Item::Impl(block) => module.shared.methods.extend(structs::methods(block, items, sink)),
            // All other items belong to the host.
            _ => {}
        }
        if !matches!(item, Item::Fn(function) if is_callable(function)) {
            module.shared.host_items.extend(host_items::host_item_decl(item));
        }
    }
    module
}

impl ModuleItems {
    /// Returns all shared items, as tokens.
    pub fn iter(&self) -> impl Iterator<Item = TokenStream> {
        let constants = self.constants.iter().map(ToTokens::to_token_stream);
        let aliases = self.aliases.iter().map(ToTokens::to_token_stream);
        let functions = self.functions.iter().map(ToTokens::to_token_stream);
        let structs = self.structs.iter().map(ToTokens::to_token_stream);
        let methods = self.methods.iter().map(|method| {
            let (of, function) = (format_ident!("{}", method.of), &method.function);
            quote!(#of #function)
        });
        constants.chain(aliases).chain(functions).chain(structs).chain(methods)
    }
}
