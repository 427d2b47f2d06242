//! The expansion of the attributes.
//!
//! A kernel expands to a module of its name, which contains its launcher, and to a function with
//! its body, which is never called: rustc checks the body against the built-ins, and editors
//! provide completion and documentation in it.
//!
//! # Order
//!
//! The function comes first and everything else after it. For a `#[tma_module]`, all items come
//! first. To complete a name, rust-analyzer expands the item twice, unchanged and with a marker at
//! the cursor, and expects the cursor at the same offset in both. Whatever depends on the tokens of
//! a body, such as an error, a hash or a number of bytes, must therefore come after every body.
#![warn(clippy::wildcard_enum_match_arm)]

mod bounds;
mod methods;
mod names;
mod ptx;
mod replace;
mod sharing;

use std::mem;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{ImplItem, Item, ItemFn, ItemImpl, ItemMod};
use tma_front::diag::mistake::{Attribute, Mistake};
use tma_front::diag::{Diagnostic, Sink};
use tma_front::ir::Kernel;
use tma_front::parse::item::template::{Made, made};
use tma_front::parse::item::{self, KernelItem, ModuleItems};
use tma_front::parse::item::{depth, trusted};
use tma_front::parse::names::WordUse;

use crate::host::launcher::launcher;
use crate::host::{added_params, generic, table};
use crate::pipeline::{Front, Instance, Rules, front};
use crate::{position, templates};
use ptx::Ptx;

/// Expands `#[tma_kernel(attr)] item`.
pub fn kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(error) = depth::too_deep(&attr).or_else(|| depth::too_deep(&item)) {
        return compile_error(&error);
    }
    match syn::parse2::<ItemFn>(item) {
        Ok(function) => lone_kernel(&KernelItem { attr, function }),
        Err(error) => error.into_compile_error(),
    }
}

/// Expands `#[tma_module] item`.
pub fn module(attr: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(error) = depth::too_deep(&item) {
        return compile_error(&error);
    }
    let module: ItemMod = match syn::parse2(item) {
        Ok(module) => module,
        Err(error) => return error.into_compile_error(),
    };
    let mut sink = Sink::default();
    let Some(Made { mut module, from, added_params, kernels }) =
        made(&module, attr, templates::LEFT.template, &mut sink)
    else {
        return sink.into_errors().iter().map(compile_error).collect();
    };
    let mut parts = item::module(&module, &mut sink);
    parts.shared.added_params = added_params;
    parts.shared.imports = (templates::LEFT.imports)(&module, &[]);
    if from.is_some() {
        // The template's tokens all have the same span, so no line ends after an operator.
        module.attrs.push(syn::parse_quote!(#[allow(clippy::possible_missing_comma)]));
    }
    if let Some((_, items)) = &mut module.content {
        let sharing = sharing::proofs(items, &parts.shared);
        sharing::allow_globs(items, &parts.shared);
        let mut behind = TokenStream::new();
        let mut judged = judge(mem::take(items), &parts.shared);
        if judged.imports == Imports::Judged && !ptx::is_editor() {
            replace_in_module(&mut judged.items);
        }
        let template = from.as_ref().map(|(path, _)| table::Template { path, kernels: &kernels });
        let origin = table::Origin { added_params: &parts.shared.added_params, template };
        *items = judged.items.into_iter().map(|item| module_item(item, &origin, &mut behind)).collect();
        if judged.imports == Imports::Missing {
            behind.extend(quote!(
                #[allow(unused_imports)]
                use ::tma_runtime::prelude::*;
            ));
        }
        // Has rustc check that the template exists at this path and is accessible.
        behind.extend(from.map(|(path, _)| quote!(#[allow(unused_imports)] use #path as _;)));
        behind.extend(sharing);
        items.push(Item::Verbatim(behind));
    }
    let errors = sink.into_errors();
    let errors = errors.iter().map(compile_error);
    quote!(#module #(#errors)*)
}

/// The errors reported for a module's imports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Imports {
    /// None.
    Judged,
    /// Missing imports of built-ins. One error is enough: the expansion adds the imports, so that
    /// rustc does not report them again.
    Missing,
}

/// The items of a module.
struct JudgedItems {
    items: Vec<JudgedItem>,
    imports: Imports,
}

/// An item of a module.
enum JudgedItem {
    Kernel(Box<JudgedKernel>),
    Other(Box<Item>),
}

/// A kernel with its results.
struct JudgedKernel {
    kernel: KernelItem,
    front: Front,
}

impl JudgedKernel {
    /// Whether the kernel has conditions that rustc has not yet evaluated.
    fn has_conditions(&self) -> bool {
        self.kernel.function.attrs.iter().any(|attr| attr.path().is_ident("cfg"))
    }
}

/// Parses and checks the kernels among a module's items.
fn judge(items: Vec<Item>, shared: &ModuleItems) -> JudgedItems {
    let mut judged = JudgedItems { items: vec![], imports: Imports::Judged };
    for item in items {
        let kernel = if let Item::Fn(function) = &item { item::compiled_kernel(function) } else { None };
        let Some(kernel) = kernel else {
            judged.items.push(JudgedItem::Other(Box::new(item)));
            continue;
        };
        let mut front = front(&kernel, shared, Rules::Unless(&ptx::is_there));
        if judged.imports == Imports::Missing {
            front.diagnostics.errors.retain(|error| !error.mistake.is_of_imports());
        } else if front.diagnostics.errors.iter().any(|error| error.mistake.is_of_imports()) {
            judged.imports = Imports::Missing;
        }
        judged.items.push(JudgedItem::Kernel(Box::new(JudgedKernel { kernel, front })));
    }
    judged
}

/// Replaces what the errors of kernels reject in the module's other items, and removes these errors
/// from the kernels.
fn replace_in_module(items: &mut [JudgedItem]) {
    // rustc does not expect the errors of a kernel that it does not compile.
    let fronts = items.iter().filter_map(|item| match item {
        JudgedItem::Kernel(judged) if !judged.has_conditions() => Some(&judged.front),
        JudgedItem::Kernel(_) | JudgedItem::Other(_) => None,
    });
    // Kernels that call the same function report the same errors.
    let is_same = |error: &Diagnostic, other: &Diagnostic| {
        error.span.start() == other.span.start() && error.text() == other.text()
    };
    let mut errors: Vec<Diagnostic> = vec![];
    for error in fronts.flat_map(|front| &front.diagnostics.errors) {
        if !errors.iter().any(|other| is_same(error, other)) {
            errors.push(error.clone());
        }
    }
    for item in &mut *items {
        if let JudgedItem::Other(item) = item {
            errors = replace::in_item(item, errors);
        }
    }
    for item in items {
        if let JudgedItem::Kernel(judged) = item
            && !judged.has_conditions()
        {
            let errors_of_kernel = &mut judged.front.diagnostics.errors;
            errors_of_kernel.retain(|error| errors.iter().any(|other| is_same(error, other)));
        }
    }
}

/// Expands an item in place. The other items that a kernel expands to are appended to `behind`.
fn module_item(item: JudgedItem, origin: &table::Origin<'_>, behind: &mut TokenStream) -> Item {
    let item = match item {
        JudgedItem::Kernel(judged) => {
            let JudgedKernel { kernel, front } = *judged;
            let ptx = Ptx::of(&front);
            let Parts { body, rest } = kernel_item(&kernel, front, ptx, origin);
            behind.extend(rest);
            return Item::Verbatim(body);
        }
        JudgedItem::Other(item) => *item,
    };
    if let Item::Impl(mut block) = item {
        behind.extend(device_impl(&mut block));
        return Item::Impl(block);
    }
    let Item::Fn(mut function) = item else { return item };
    // rustc checks a kernel without instances as it checks a device function.
    let name = if item::is_for_made_modules(&function) { "tma_kernel" } else { "tma_device" };
    if let Some(at) = function.attrs.iter().position(|attr| item::is_named(attr, name)) {
        function.attrs.remove(at);
        function.attrs.extend(allowed());
        trusted::strip(&mut function);
    }
    Item::Fn(function)
}

/// Prepares a `#[tma_device] impl` for rustc, as device functions are. Returns the proofs about its
/// methods.
fn device_impl(block: &mut ItemImpl) -> Option<TokenStream> {
    let at = block.attrs.iter().position(|attr| item::is_named(attr, "tma_device"))?;
    block.attrs.remove(at);
    block.attrs.extend(allowed());
    for item in &mut block.items {
        if let ImplItem::Fn(function) = item {
            trusted::strip_block(&mut function.block);
        }
    }
    methods::of_impl(block)
}

/// Expands `#[tma_device] item` outside of a `#[tma_module]`, which would have processed it.
pub fn device(_attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut sink = Sink::default();
    sink.error(Attribute::LoneDevice, Span::call_site().into());
    let mut out: TokenStream = sink.into_errors().iter().map(compile_error).collect();
    out.extend(quote!(#[allow(dead_code)] #item));
    out
}

/// Expands a kernel outside of a `#[tma_module]`.
fn lone_kernel(item: &KernelItem) -> TokenStream {
    let mut front = front(item, &ModuleItems::default(), Rules::Unless(&ptx::is_there));
    let mut ptx = Ptx::of(&front);
    if let Some(error) = position::misplaced(item, Span::call_site(), ptx.is_whole) {
        // A module is not allowed here. Generating one would add another error.
        if let Mistake::Attribute(Attribute::Method { .. }) = error.mistake {
            return compile_error(&error);
        }
        let refused = |instance: &Instance| Instance::Refused(Box::new(instance.kernel().clone()));
        front.instances = front.instances.iter().map(refused).collect();
        front.diagnostics.errors = vec![error];
        ptx = Ptx::of(&front);
    }
    let Parts { body, rest } =
        kernel_item(item, front, ptx, &table::Origin { added_params: &[], template: None });
    quote!(#body #rest)
}

/// The expansion of a kernel. See [the order](self#order).
struct Parts {
    /// The function that is never called.
    body: TokenStream,
    /// Everything else.
    rest: TokenStream,
}

fn kernel_item(item: &KernelItem, front: Front, ptx: Ptx, origin: &table::Origin<'_>) -> Parts {
    let Front { hash: _, instances, named, computed, diagnostics, words } = front;
    // Warnings are reported by the build script, as a macro on stable Rust cannot.
    let mut errors = diagnostics.errors;
    let launchers = instances.iter().zip(&ptx.texts).map(|(instance, ptx)| {
        let shared_bytes = match instance {
            Instance::Refused(_) => 0,
            Instance::Checked(checked) => checked.layout().bytes(),
            Instance::Known(_, bytes) => *bytes,
        };
        in_module(instance.kernel(), launcher(instance.kernel(), shared_bytes, ptx))
    });
    let all = all_instances(&instances);
    let function = &item.function;
    let kernels: Vec<_> = instances.iter().map(Instance::kernel).collect();
    let generic = generic::launcher(function, &kernels);
    let table = table::table(function, &kernels, &computed, origin);
    let added_params =
        kernels.first().and_then(|kernel| added_params::arguments(kernel, origin.added_params));
    let (name, vis) = (&function.sig.ident, &function.vis);
    let docs = function.attrs.iter().filter(|attr| attr.path().is_ident("doc"));
    // Conditions not yet evaluated by rustc apply to the whole expansion of the kernel.
    let conditions: TokenStream = function
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .map(ToTokens::to_token_stream)
        .collect();
    // After an error about imports, errors about single names are suppressed.
    let imported = !errors.iter().any(|error| error.mistake.is_of_imports());
    let mut for_rustc = function.clone();
    if imported && !ptx::is_editor() {
        errors = replace::in_function(&mut for_rustc, errors);
    }
    let body = imported.then(|| never_called(for_rustc, &words, &bounds::fulfilled(function, &named)));
    let body = body.map_or_else(TokenStream::new, |body| quote!(#conditions #body));
    let proofs = imported.then(|| names::proofs(&words)).flatten();
    let proofs = proofs.map(|proofs| quote!(#conditions #proofs));
    let errors = errors.iter().chain(&ptx.missing).map(compile_error);
    let rest = quote! {
        #(#conditions #errors)*
        #conditions
        #(#docs)*
        #vis mod #name {
            #(#launchers)*
            #all
            #generic
            #table
            #added_params
        }
        #proofs
    };
    Parts { body, rest }
}

/// Generates the list of all named instances, for programs that select one at run time.
fn all_instances(instances: &[Instance]) -> TokenStream {
    let names = instances.iter().filter_map(|instance| instance.kernel().instance.as_ref());
    let specs: Vec<_> = names.map(|name| format_ident!("{name}")).map(|name| quote!(#name::SPEC)).collect();
    if specs.is_empty() {
        return TokenStream::new();
    }
    let count = specs.len();
    quote! {
        /// Every instance, in the order of the attribute.
        pub static INSTANCES: [::tma_runtime::launch::KernelSpec; #count] = [#(#specs),*];
    }
}

/// Places a launcher in the kernel's module, or for an instance in a module of its own within.
fn in_module(kernel: &Kernel, launcher: TokenStream) -> TokenStream {
    match &kernel.instance {
        None => launcher,
        Some(instance) => {
            let doc = format!("The instance `{instance}` of `{}`.", kernel.name);
            let name = format_ident!("{instance}");
            quote!(#[doc = #doc] pub mod #name { #launcher })
        }
    }
}

/// Generates the body for rustc, followed by `behind`. The spans are the user's, so rustc's errors
/// appear at the right position. Names of built-ins always resolve to them here. Where they would
/// not, [`names::proofs`] is the code that fails.
fn never_called(mut function: ItemFn, words: &[WordUse], behind: &TokenStream) -> TokenStream {
    let imports = names::imports(words);
    trusted::strip(&mut function);
    let attrs = function.attrs.iter().filter(|attr| !attr.path().is_ident("doc"));
    let (sig, block, allowed) = (&function.sig, &function.block, allowed());
    quote! {
        const _: () = {
            #(#attrs)*
            #(#allowed)*
            #sig #block
            #imports
            #behind
        };
    }
}

/// Returns the lints to allow in code for a device: kernels have many parameters and long tile
/// types, and lack the methods that these lints suggest.
fn allowed() -> Vec<syn::Attribute> {
    syn::parse_quote! {
        #[allow(dead_code)]
        #[allow(
            clippy::too_many_arguments,
            clippy::manual_div_ceil,
            clippy::manual_is_multiple_of,
            clippy::manual_range_contains,
            clippy::manual_swap,
            clippy::type_complexity
        )]
    }
}

/// Generates an error as an item.
fn compile_error(error: &Diagnostic) -> TokenStream {
    compile_error_in(Delimiter::Brace, error)
}

/// Generates an error that rustc shows at the whole range of tokens it concerns.
fn compile_error_in(delimiter: Delimiter, error: &Diagnostic) -> TokenStream {
    let text = error.text();
    let (first, last) = (error.span.first(), error.span.last());
    let bang = quote_spanned!(last=> !);
    let mut arguments = Group::new(delimiter, quote!(#text));
    arguments.set_span(last);
    let path = Ident::new("compile_error", first);
    quote_spanned!(first=> ::core::#path #bang #arguments)
}
