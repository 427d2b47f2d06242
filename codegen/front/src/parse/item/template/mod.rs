//! `#[tma_module(from = tma_kernels::gemm::full::with_options, only = ["bf16_*"])]`: a module made
//! from another one, its template, which may belong to another package.
//!
//! The module has all items of the template, except those it replaces: device functions that the
//! template marks `#[tma_device(open)]`. A replacement begins with the parameters of the function
//! it replaces. Any further ones become parameters of the kernels that call it. The
//! module's other items, such as functions that the replacements call, are added. So are instances
//! of the template's kernels, by `instances = [kernel(..)]`.
//!
//! The build script and the macro make the same module, each from the tokens that it sees. All
//! later stages see the module as if it had been written out.

mod added_params;
mod attr;
mod merge;
mod selection;

use std::path::PathBuf;

use proc_macro2::TokenStream;
use syn::{Item, ItemMod, Path, Visibility};

use crate::diag::Sink;
use crate::diag::mistake::{Template as Mistake, Unfound};
use crate::ir::Span;
use crate::parse::item::imports::{self, Imports};
use selection::Selection;

/// A module that other modules are made from.
#[derive(Clone, Debug)]
pub struct Template {
    /// The module as it is written.
    pub module: ItemMod,
    /// The template's file, as messages and line numbers in PTX name it. If set, lines refer to
    /// this file: a token of the new module takes the line of the token that it replaces.
    pub source: Option<PathBuf>,
}

/// Looks up the module with a path.
pub(crate) type Find<'a> = dyn Fn(&Path) -> Result<Template, Unfound> + 'a;

/// Looks up the imports of a module, which is in inline modules of these names.
pub(crate) type FindImports<'a> = dyn Fn(&ItemMod, &[String]) -> Imports + 'a;

/// The parts of kernels that are outside of their modules.
#[derive(Clone, Copy)]
pub struct Elsewhere<'a> {
    /// Looks up the template with a path.
    pub template: &'a Find<'a>,
    /// Looks up the imports of a module, which is in inline modules of these names.
    pub imports: &'a FindImports<'a>,
}

impl Elsewhere<'static> {
    /// Finds nothing.
    pub const UNKNOWN: Self = Self {
        template: &|_| Err(Unfound::Unseen),
        imports: &|_, _| Imports { found: vec![], missing: vec![] },
    };
}

/// A module, expanded as if it had been written out.
#[derive(Clone, Debug)]
pub struct Made {
    /// The module with its replacements.
    pub module: ItemMod,
    /// The path and the file of the template, if there is one.
    pub from: Option<(Path, Option<PathBuf>)>,
    /// The names of the parameters that replacements add to kernels.
    pub added_params: Vec<String>,
    /// The kernels of the template that the module can name.
    pub kernels: Vec<String>,
}

/// Expands `#[tma_module(attr)] module`. Reports errors to the sink, and then returns `None`.
pub fn made(module: &ItemMod, attr: TokenStream, find: &Find<'_>, sink: &mut Sink) -> Option<Made> {
    let attr = attr::parse(attr, sink)?;
    let Some(path) = attr.from else {
        return Some(Made { module: module.clone(), from: None, added_params: vec![], kernels: vec![] });
    };
    let template = match find(&path) {
        Ok(template) => template,
        Err(why) => {
            let shown = shown_path(&path);
            sink.error(Mistake::Unfound { path: shown, why }, Span::of(&path));
            return None;
        }
    };
    let mut module = module.clone();
    // A module without a body is reported when its items are sorted.
    let Some((_, own)) = module.content.as_mut() else {
        return Some(Made { module, from: None, added_params: vec![], kernels: vec![] });
    };
    let before = sink.len();
    let lines_at = template.source.is_some().then(|| template.module.ident.span());
    let mut base = template.module.content.map(|(_, items)| items).unwrap_or_default();
    for item in &mut base {
        if let Item::Use(item) = item {
            imports::rebase(item, &path);
        }
    }
    let kernels = named_kernels(&base, &path);
    let own_kernels = own.iter().filter_map(|item| match item {
        Item::Fn(function) => super::kernel(function).map(|kernel| kernel.function.sig.ident),
        _ => None,
    });
    let own_kernels: Vec<_> = own_kernels.collect();
    let merged = merge::merged(base, std::mem::take(own), lines_at, sink);
    let mut items = merged.items;
    let selection = Selection { only: attr.only.as_deref(), added: &attr.instances, lines_at };
    selection::choose(&mut items, selection, &own_kernels, sink);
    let added_params = added_params::pass_on(&mut items, &merged.added_params);
    *own = items;
    let from = Some((path, template.source));
    (sink.len() == before).then_some(Made { module, from, added_params, kernels })
}

/// Returns the kernels among a template's items that exist in the template at `path` itself, and
/// that a module made from it can name.
fn named_kernels(items: &[Item], path: &Path) -> Vec<String> {
    let is_same_crate = path.segments.first().is_some_and(|first| first.ident == "crate");
    let is_named = |vis: &Visibility| match vis {
        Visibility::Public(_) => true,
        Visibility::Restricted(within) => is_same_crate && within.path.is_ident("crate"),
        Visibility::Inherited => false,
    };
    let kernels = items.iter().filter_map(|item| match item {
        Item::Fn(function) => super::compiled_kernel(function),
        _ => None,
    });
    let named = kernels.map(|kernel| kernel.function).filter(|function| is_named(&function.vis));
    named.map(|function| function.sig.ident.to_string()).collect()
}

/// Formats a path the way users write it.
pub fn shown_path(path: &Path) -> String {
    let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    names.join("::")
}
