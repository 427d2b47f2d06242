//! The file in which the build script leaves the macro what a module imports.

use std::path::{Path, PathBuf};
use std::{env, fs};

use proc_macro2::Ident;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Item, ItemMod, LitStr, Token};
use tma_front::abi;
use tma_front::parse::item::imports::{Imports, Link, Node, leaves, of_nodes};
use tma_front::parse::item::is_named;

use super::text;
use crate::hash::Fnv;
use crate::note;
use crate::templates::{of_reason, reason};

/// Returns the name of the file for a module of this name in a source file of a package.
pub(crate) fn name(package: &Path, source: &Path, module: &Ident) -> PathBuf {
    // Both paths may contain links, and rustc's paths are relative to the workspace.
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (package, source) = (canonical(package), canonical(source));
    let source = source.strip_prefix(&package).unwrap_or(&source);
    let mut hash = Fnv::new();
    for name in source {
        hash.text(&name.to_string_lossy());
    }
    abi::imports_file(&text(module), hash.value())
}

/// Encodes a list of modules.
pub(crate) fn encoded(nodes: &[Node]) -> String {
    let nodes = nodes.iter().map(|Node { module, found, missing }| {
        let found = found.iter().map(|Link { name, item, path, node }| {
            let node = node.to_string();
            quote!(#[found(#name, #item, #path, #node)])
        });
        let missing = missing.iter().map(|(name, path, why)| {
            let why = reason(why);
            quote!(#[missing(#name, #path, #why)])
        });
        quote!(#(#found)* #(#missing)* mod node { #module })
    });
    quote!(#(#nodes)*).to_string()
}

/// Decodes a list of modules. Returns `None` if the text is none.
pub(crate) fn decoded(text: &str) -> Option<Vec<Node>> {
    let file = syn::parse_file(text).ok()?;
    file.items.into_iter().map(node).collect()
}

fn node(item: Item) -> Option<Node> {
    let Item::Mod(ItemMod { attrs, content, .. }) = item else { return None };
    let (mut found, mut missing) = (vec![], vec![]);
    for attr in attrs {
        let values = attr.parse_args_with(Punctuated::<LitStr, Token![,]>::parse_terminated).ok()?;
        let values: Vec<_> = values.iter().map(LitStr::value).collect();
        match &values[..] {
            [name, item, path, node] if is_named(&attr, "found") => {
                let (name, item, path) = (name.clone(), item.clone(), path.clone());
                found.push(Link { name, item, path, node: node.parse().ok()? });
            }
            [name, path, why] => missing.push((name.clone(), path.clone(), of_reason(why))),
            _ => return None,
        }
    }
    match content?.1.into_iter().next()? {
        Item::Mod(module) => Some(Node { module, found, missing }),
        _ => None,
    }
}

/// Returns the imports of a module that the build script has left for the macro.
pub(crate) fn from_build_script(module: &ItemMod, _around: &[String]) -> Imports {
    let items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
    if leaves(items).is_empty() {
        return Imports::default();
    }
    of_nodes(items, &left(module).unwrap_or_else(|| vec![unseen(module)]))
}

/// Returns a module none of whose imports is known.
fn unseen(module: &ItemMod) -> Node {
    Node { module: module.clone(), found: vec![], missing: vec![] }
}

/// Reads the file that the build script has left for a module.
fn left(module: &ItemMod) -> Option<Vec<Node>> {
    let out_dir = env::var_os("OUT_DIR").map(PathBuf::from).filter(|out_dir| note::is_read(out_dir))?;
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)?;
    let source = module.ident.span().local_file();
    let file = source.map(|source| out_dir.join(name(&package, &source, &module.ident)));
    let file = file.filter(|file| file.is_file()).or_else(|| only_one(&out_dir, &module.ident));
    let Some(file) = file else {
        note::leave(&out_dir, &text(&module.ident));
        return None;
    };
    decoded(&fs::read_to_string(file).ok()?)
}

/// Returns the file for the only module of this name. An editor does not tell the file of a token,
/// nor does rustc if a macro has made it.
fn only_one(out_dir: &Path, module: &Ident) -> Option<PathBuf> {
    let start = format!("{}-", text(module));
    let files = fs::read_dir(out_dir.join("tma")).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files = files.filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with(&start) && name.ends_with(abi::IMPORTS)
    });
    let file = files.next()?;
    files.next().is_none().then_some(file)
}
