//! Finds the kernels of a source file, in any scope.

use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, File, ImplItemFn, Item, ItemFn, ItemMod, Meta, Stmt, TraitItemFn};

use super::template::{Elsewhere, made};
use super::{KernelItem, ModuleItems, depth, host_items};
use crate::diag::{Diagnostic, Sink};
use crate::parse::names;

/// The kernels of a file, each with the items it shares with others.
#[derive(Default)]
pub struct Found {
    /// Each kernel, and the items that it shares.
    pub kernels: Vec<(KernelItem, Rc<ModuleItems>)>,
    /// The errors in modules that are made from templates.
    pub mistakes: Vec<Diagnostic>,
}

/// Returns the kernels in `text`, or none if it is not Rust or nests too deeply; rustc and the
/// macro report these.
pub fn kernels_in(text: &str, elsewhere: &Elsewhere<'_>) -> Vec<(KernelItem, Rc<ModuleItems>)> {
    // A cheap test: most files have no kernel, and parsing takes longer. A module made from a
    // template need not mention a kernel itself.
    if !text.contains("tma_kernel") && !text.contains("tma_module") {
        return vec![];
    }
    parsed(text).map(|file| kernels(&file, elsewhere).kernels).unwrap_or_default()
}

/// Parses a file. Returns `None` if it is not Rust or nests too deeply.
pub fn parsed(text: &str) -> Option<File> {
    let tokens: Option<TokenStream> = text.parse().ok();
    if tokens.as_ref().and_then(depth::too_deep).is_some() {
        return None;
    }
    // A leading `#!` line is not Rust. syn skips it only when it parses text.
    tokens.and_then(|tokens| syn::parse2(tokens).ok()).or_else(|| syn::parse_file(text).ok())
}

/// Returns the kernels of `file`. Imports are not checked: a plain text needs none.
pub fn kernels(file: &File, elsewhere: &Elsewhere<'_>) -> Found {
    let finder = found(file, elsewhere);
    let mut all = finder.found;
    for (_, shared) in &mut all {
        Rc::make_mut(shared).lacks_words = false;
    }
    Found { kernels: all, mistakes: finder.mistakes.into_errors() }
}

/// Returns the kernels of `file`, except those of templates, with `lacks_words` as it is for the
/// position of each.
pub fn placed_kernels(file: &File) -> Vec<(KernelItem, Rc<ModuleItems>)> {
    found(file, &Elsewhere::UNKNOWN).found
}

/// Returns the kernels that are methods of an `impl` or a trait.
pub fn methods(file: &File) -> Vec<KernelItem> {
    found(file, &Elsewhere::UNKNOWN).methods
}

fn found<'a>(file: &File, elsewhere: &'a Elsewhere<'a>) -> Finder<'a> {
    let mut finder = Finder {
        found: vec![],
        methods: vec![],
        mistakes: Sink::default(),
        elsewhere,
        around: vec![],
        lacks_words: lack_words(&file.items),
    };
    finder.visit_file(file);
    finder
}

struct Finder<'a> {
    found: Vec<(KernelItem, Rc<ModuleItems>)>,
    methods: Vec<KernelItem>,
    /// The errors in modules that are made from templates.
    mistakes: Sink,
    elsewhere: &'a Elsewhere<'a>,
    /// The names of the inline modules around this point.
    around: Vec<String>,
    /// Whether nothing from this point up to its module can import a built-in.
    lacks_words: bool,
}

impl Finder<'_> {
    /// Runs `f` with this value of `lacks_words`.
    fn within(&mut self, lacks_words: bool, f: impl FnOnce(&mut Self)) {
        let around = std::mem::replace(&mut self.lacks_words, lacks_words);
        f(self);
        self.lacks_words = around;
    }

    /// Runs `f` in a module.
    fn within_module(&mut self, module: &ItemMod, f: impl FnOnce(&mut Self)) {
        let items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
        self.around.push(names::text(&module.ident));
        self.within(lack_words(items), f);
        self.around.pop();
    }

    /// Records a method with these attributes, parsed as the kernel's own attribute sees it.
    fn method(&mut self, attrs: &[Attribute], method: &impl ToTokens) {
        if attrs.iter().any(|attr| super::is_named(attr, "tma_kernel")) {
            let function = syn::parse2::<ItemFn>(method.to_token_stream()).ok();
            self.methods.extend(function.as_ref().and_then(super::kernel));
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        match super::kernel(function) {
            Some(kernel) => {
                let shared = ModuleItems { lacks_words: self.lacks_words, ..ModuleItems::default() };
                self.found.push((kernel, Rc::new(shared)));
            }
            None => visit::visit_item_fn(self, function),
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.method(&function.attrs, function);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.method(&function.attrs, function);
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let brings = |stmt: &Stmt| matches!(stmt, Stmt::Item(item) if host_items::may_bring_words(item));
        let lacks_words = self.lacks_words && !block.stmts.iter().any(brings);
        self.within(lacks_words, |finder| visit::visit_block(finder, block));
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
        let Some(attr) = module.attrs.iter().find(|attr| super::is_named(attr, "tma_module")) else {
            return self.within_module(module, |finder| visit::visit_item_mod(finder, module));
        };
        let options = match &attr.meta {
            Meta::List(list) => list.tokens.clone(),
            Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
        };
        let Some(made) = made(module, options, self.elsewhere.template, &mut self.mistakes) else { return };
        // A module without a body is an error that the macro reports, not the search for
        // kernels.
        let mut unread = Sink::default();
        let super::Module { kernels, shared } = super::module(&made.module, &mut unread);
        let template = made.from.and_then(|(_, file)| file);
        let imports = (self.elsewhere.imports)(&made.module, &self.around);
        let shared = Rc::new(ModuleItems { template, added_params: made.added_params, imports, ..shared });
        self.found.extend(kernels.into_iter().map(|kernel| (kernel, Rc::clone(&shared))));
        // Items nested deeper, in inner modules and functions, share nothing with these kernels.
        self.within_module(module, |finder| {
            for item in items {
                if !matches!(item, Item::Fn(function) if super::kernel(function).is_some()) {
                    finder.visit_item(item);
                }
            }
        });
    }
}

/// Whether no item of a module can import a built-in.
fn lack_words(items: &[Item]) -> bool {
    !items.iter().any(host_items::may_bring_words)
}
