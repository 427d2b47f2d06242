//! What the attributes become.
//!
//! A kernel becomes a module of its name, with its launcher, and a function that nobody calls, with its body:
//! there rustc checks it against the vocabulary, and editors complete and explain what is written in it.

mod names;

use std::path::{Path, PathBuf};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Item, ItemFn, ItemMod};

use crate::abi;
use crate::diag::{Code, Diagnostic, Sink};
use crate::host::launcher::launcher;
use crate::ir::Kernel;
use crate::parse::depth;
use crate::parse::item::{self, KernelItem, Shared};
use crate::parse::names::Word;
use crate::pipeline::{Front, Instance, front};
use crate::place;

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
    let mut module: ItemMod = match syn::parse2(item) {
        Ok(module) => module,
        Err(error) => return error.into_compile_error(),
    };
    let mut sink = Sink::default();
    refuse_options("tma_module", attr, &mut sink);
    let parts = item::module(&module, &mut sink);
    let mut out: TokenStream = sink.into_errors().iter().map(compile_error).collect();
    if let Some((_, items)) = &mut module.content {
        let mut imports = Imports::Unjudged;
        *items = items.drain(..).flat_map(|item| module_item(item, &parts.shared, &mut imports)).collect();
        if imports == Imports::Missing {
            items.insert(
                0,
                syn::parse_quote!(
                    #[allow(unused_imports)]
                    use ::tma_runtime::prelude::*;
                ),
            );
        }
    }
    out.extend(quote!(#module));
    out
}

/// What was said of a module's imports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Imports {
    /// Nothing.
    Unjudged,
    /// That those of the vocabulary are missing. Once is enough: the expansion has them, so that
    /// rustc does not miss them again.
    Missing,
}

fn module_item(item: Item, shared: &Shared, imports: &mut Imports) -> Vec<Item> {
    let Item::Fn(mut function) = item else { return vec![item] };
    if let Some(kernel) = item::kernel(&function) {
        let mut front = front(&kernel, shared);
        if *imports == Imports::Missing {
            front.errors.retain(|error| error.code != Code::MissingPrelude);
        } else if front.errors.iter().any(|error| error.code == Code::MissingPrelude) {
            *imports = Imports::Missing;
        }
        return vec![Item::Verbatim(kernel_item(&kernel, front))];
    }
    if let Some(at) = function.attrs.iter().position(|attr| item::is_named(attr, "tma_device")) {
        function.attrs.remove(at);
        function.attrs.extend(allowed());
    }
    vec![Item::Fn(function)]
}

/// Expands `#[tma_device] item` where no `#[tma_module]` is around it, which alone would see it.
pub fn device(_attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut sink = Sink::default();
    sink.error(
        Code::Attribute,
        Span::call_site().into(),
        "a device function stands outside of a `#[tma_module]`",
    )
    .help("put it and the kernels that call it into `#[tma_module] mod name { .. }`");
    let mut out: TokenStream = sink.into_errors().iter().map(compile_error).collect();
    out.extend(quote!(#[allow(dead_code)] #item));
    out
}

fn refuse_options(name: &str, attr: TokenStream, sink: &mut Sink) {
    if !attr.is_empty() {
        sink.error(Code::Attribute, crate::ir::Span::of(&attr), format!("`{name}` has no options"))
            .help(format!("write `#[{name}]`"));
    }
}

/// A kernel outside of a `#[tma_module]`.
fn lone_kernel(item: &KernelItem) -> TokenStream {
    let mut front = front(item, &Shared::default());
    let has_ptx = |instance: &Instance| match instance {
        Instance::Refused(_) => false,
        Instance::Checked(checked) => ptx_of(checked.kernel(), front.hash).is_ok(),
    };
    let has_ptx = front.instances.iter().all(has_ptx);
    if let Some(error) = place::misplaced(item, Span::call_site(), has_ptx) {
        // Where a module cannot stand, one more error would be about that.
        if error.code == Code::KernelPlace {
            return compile_error(&error);
        }
        let refused = |instance: &Instance| Instance::Refused(Box::new(instance.kernel().clone()));
        front.instances = front.instances.iter().map(refused).collect();
        front.errors = vec![error];
    }
    kernel_item(item, front)
}

fn kernel_item(item: &KernelItem, front: Front) -> TokenStream {
    let Front { hash, instances, errors, words } = front;
    let mut missing = None;
    let launchers: Vec<_> = instances
        .iter()
        .map(|instance| match instance {
            Instance::Refused(kernel) => in_module(kernel, launcher(kernel, 0, &quote!(""))),
            Instance::Checked(checked) => {
                let kernel = checked.kernel();
                let ptx = ptx_of(kernel, hash).unwrap_or_else(|error| {
                    missing.get_or_insert(error);
                    quote!("")
                });
                in_module(kernel, launcher(kernel, checked.layout().bytes(), &ptx))
            }
        })
        .collect();
    let all = all_instances(&instances);
    let function = &item.function;
    let (name, vis) = (&function.sig.ident, &function.vis);
    let docs = function.attrs.iter().filter(|attr| attr.path().is_ident("doc"));
    // Those that rustc has not decided yet hold for all that the kernel becomes.
    let conditions: TokenStream = function
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .map(ToTokens::to_token_stream)
        .collect();
    // What was said of imports need not be said of each word.
    let imported = !errors.iter().any(|error| error.code == Code::MissingPrelude);
    let for_rustc = imported.then(|| [Some(never_called(function, &words)), names::proofs(&words)]);
    let for_rustc = for_rustc.into_iter().flatten().flatten();
    let errors = errors.iter().chain(&missing).map(compile_error);
    quote! {
        #(#conditions #errors)*
        #conditions
        #(#docs)*
        #vis mod #name {
            #(#launchers)*
            #all
        }
        #(#conditions #for_rustc)*
    }
}

/// What all named instances are, for programs that choose among them at run time.
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

/// A launcher stands in the kernel's module, that of an instance in a module of its own within.
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

/// The body as rustc sees it. The spans are the user's, so whatever rustc says of it stands in the
/// right place. Words of the vocabulary mean it, whatever lies around: where they do not,
/// [`names::proofs`] is the one to fail.
fn never_called(function: &ItemFn, words: &[Word]) -> TokenStream {
    let imports = names::imports(words);
    let attrs = function.attrs.iter().filter(|attr| !attr.path().is_ident("doc"));
    let (sig, block, allowed) = (&function.sig, &function.block, allowed());
    quote! {
        const _: () = {
            #(#attrs)*
            #(#allowed)*
            #sig #block
            #imports
        };
    }
}

/// What is no mistake in code for a device: kernels have many parameters, types that say all of a tile, and none of
/// the methods that these lints advise.
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

/// `include_str!` of the kernel's PTX, or what must be done for it to be there.
fn ptx_of(kernel: &Kernel, hash: u64) -> Result<TokenStream, Diagnostic> {
    let file = abi::ptx_file(&kernel.name, kernel.instance.as_deref(), hash);
    let path = find_ptx(std::env::var_os("OUT_DIR").map(PathBuf::from).as_deref(), &file);
    match path.map_err(|why| missing_ptx(kernel, why))? {
        Some(path) => Ok(quote!(::core::include_str!(#path))),
        None => Err(missing_ptx(
            kernel,
            "the build script did not see this kernel: it reads the files in `src`, `examples`, `tests` and \
             `benches`, and not what macros make",
        )),
    }
}

fn find_ptx(out_dir: Option<&Path>, file: &str) -> Result<Option<String>, &'static str> {
    let out_dir = out_dir.ok_or("this package has no build script")?;
    let path = out_dir.join(file);
    Ok(path.is_file().then(|| path.to_string_lossy().into_owned()))
}

fn missing_ptx(kernel: &Kernel, why: &str) -> Diagnostic {
    let message = format!("there is no PTX for `{}`: {why}", kernel.path());
    let help = "`build.rs` must hold `fn main() { tma_codegen::build() }`, and `Cargo.toml` must name \
                `tma-codegen` under `[build-dependencies]`";
    Diagnostic { code: Code::MissingPtx, span: kernel.span, message, help: Some(help.to_owned()) }
}

/// An error that rustc shows from the first to the last token it is about.
fn compile_error(error: &Diagnostic) -> TokenStream {
    let text = error.text();
    let (first, last) = (error.span.first(), error.span.last());
    let bang = quote_spanned!(last=> !);
    let arguments = quote_spanned!(last=> { #text });
    let path = Ident::new("compile_error", first);
    quote_spanned!(first=> ::core::#path #bang #arguments)
}
