//! Finds the kernels of a source file, wherever in it they stand.

use std::rc::Rc;

use syn::visit::{self, Visit};
use syn::{File, Item, ItemFn, ItemMod};

use super::depth;
use super::item::{self, KernelItem, Shared};
use crate::diag::Sink;

/// The kernels of a file with this text; none where it is not Rust or nests too deeply, which rustc
/// and the macro report.
pub(crate) fn kernels_in(text: &str) -> Vec<(KernelItem, Rc<Shared>)> {
    // Most files hold no kernel, and parsing takes longer than this look.
    if !text.contains("tma_kernel") || text.parse().ok().as_ref().and_then(depth::too_deep).is_some() {
        return vec![];
    }
    syn::parse_file(text).map(|parsed| kernels(&parsed)).unwrap_or_default()
}

/// The kernels of `file`, each with what it shares with others.
pub(crate) fn kernels(file: &File) -> Vec<(KernelItem, Rc<Shared>)> {
    let mut finder = Finder::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct Finder {
    found: Vec<(KernelItem, Rc<Shared>)>,
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        match item::kernel(function) {
            Some(kernel) => self.found.push((kernel, Rc::default())),
            None => visit::visit_item_fn(self, function),
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !module.attrs.iter().any(|attr| item::is_named(attr, "tma_module")) {
            return visit::visit_item_mod(self, module);
        }
        // A module without a body is the macro's error to report, not that of whoever looks for kernels.
        let mut unread = Sink::default();
        let item::Module { kernels, shared } = item::module(module, &mut unread);
        let shared = Rc::new(shared);
        self.found.extend(kernels.into_iter().map(|kernel| (kernel, Rc::clone(&shared))));
        // What stands deeper, in modules and functions inside, shares nothing with these.
        for item in module.content.iter().flat_map(|(_, items)| items) {
            if !matches!(item, Item::Fn(function) if item::kernel(function).is_some()) {
                self.visit_item(item);
            }
        }
    }
}
