//! Items that a `#[tma_module]` imports from others by `use`.
//!
//! An import refers to the items of the other module, in which its functions and types are
//! resolved: names mean what they mean where they are written. All tokens of another module have
//! the span of the name in the `use`, since lines and errors refer to the file of the kernel.

use std::rc::Rc;

use proc_macro2::{Group, Span as TokenSpan, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Ident, Item, ItemMod, ItemUse, UseTree, Visibility};

use super::condition::is_condition;
use super::{ModuleItems, is_callable, structs};
use crate::diag::Sink;
use crate::diag::mistake::Unfound;
use crate::parse::names;

/// The imports of a module.
#[derive(Clone, Debug, Default)]
pub struct Imports {
    /// Those that kernels can use.
    pub found: Vec<Import>,
    /// Those that kernels cannot use.
    pub missing: Vec<MissingImport>,
}

/// An import of an item that kernels can use.
#[derive(Clone, Debug)]
pub struct Import {
    /// The name in the importing module, without `r#`.
    pub name: String,
    /// The name in the module that it is imported from, which may import it as well.
    pub item: String,
    /// The path of that module, as the `use` has it.
    pub path: Vec<Ident>,
    /// Whether the path begins with `::`.
    pub is_global: bool,
    /// The items of that module.
    pub from: Rc<ModuleItems>,
}

/// An import of anything else.
#[derive(Clone, Debug)]
pub struct MissingImport {
    /// The name in the importing module.
    pub name: Ident,
    /// The path of the item.
    pub path: String,
    /// The reason why kernels cannot use it.
    pub why: Unfound,
}

/// A single import of a `use`.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The path of the module.
    pub path: Vec<Ident>,
    /// The name there, or `None` for `*`.
    pub item: Option<Ident>,
    /// The name in the importing module, or that of the module for `*`.
    pub name: Ident,
    /// Whether the path begins with `::`, and so with the name of a package.
    pub is_global: bool,
    /// The visibility of the import.
    pub vis: Visibility,
}

impl Leaf {
    /// Formats the path of the module the way users write it.
    pub fn shown(&self) -> String {
        shown(&self.path, self.is_global)
    }
}

/// Returns the imports among the items of a module that may be from another `#[tma_module]`.
/// An import under a condition is none: rustc has not evaluated it yet.
pub fn leaves(items: &[Item]) -> Vec<Leaf> {
    let mut found = vec![];
    for item in items {
        if let Item::Use(item) = item
            && !item.attrs.iter().any(is_condition)
        {
            let from = found.len();
            add_leaves(&item.tree, &mut vec![], &mut found);
            for leaf in &mut found[from..] {
                leaf.vis = item.vis.clone();
                leaf.is_global = item.leading_colon.is_some();
            }
        }
    }
    let is_foreign = |leaf: &Leaf| {
        let root = leaf.path.first().map(names::text).unwrap_or_default();
        !root.is_empty() && !matches!(root.as_str(), "std" | "core" | "alloc" | "tma_runtime")
    };
    found.retain(is_foreign);
    found
}

fn add_leaves(tree: &UseTree, path: &mut Vec<Ident>, found: &mut Vec<Leaf>) {
    match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.clone());
            add_leaves(&tree.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| add_leaves(tree, path, found)),
        UseTree::Name(name) if name.ident != "self" => {
            let (item, name) = (Some(name.ident.clone()), name.ident.clone());
            found.push(Leaf { path: path.clone(), item, name, is_global: false, vis: Visibility::Inherited });
        }
        UseTree::Rename(rename) if rename.ident != "self" && rename.rename != "_" => {
            let (item, name) = (Some(rename.ident.clone()), rename.rename.clone());
            found.push(Leaf { path: path.clone(), item, name, is_global: false, vis: Visibility::Inherited });
        }
        // `self` imports the module, whose name is none of an item.
        UseTree::Name(_) | UseTree::Rename(_) => {}
        UseTree::Glob(_) => {
            if let Some(name) = path.last().cloned() {
                found.push(Leaf {
                    path: path.clone(),
                    item: None,
                    name,
                    is_global: false,
                    vis: Visibility::Inherited,
                });
            }
        }
    }
}

/// Whether kernels can use the item, or it imports other items.
pub fn is_shareable(item: &Item, name: &str) -> bool {
    shareable_name(item).is_some_and(|found| names::text(found) == name)
}

/// Returns the name of an item that kernels can use.
pub fn shareable_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Struct(of) if structs::is_value(of) => Some(&of.ident),
        Item::Fn(function) if is_callable(function) => Some(&function.sig.ident),
        _ => None,
    }
}

/// Returns the visibility of an item that kernels can use.
pub fn visibility(item: &Item) -> Option<&Visibility> {
    match item {
        Item::Const(item) => Some(&item.vis),
        Item::Type(item) => Some(&item.vis),
        Item::Struct(item) => Some(&item.vis),
        Item::Fn(item) => Some(&item.vis),
        _ => None,
    }
}

/// Whether other modules may import items that kernels can use from a module with these items.
pub fn is_open(items: &[Item]) -> bool {
    let is_visible = |item: &Item| visibility(item).is_some_and(|vis| !matches!(vis, Visibility::Inherited));
    let is_exported = |leaf: &Leaf| !matches!(leaf.vis, Visibility::Inherited);
    items.iter().any(|item| shareable_name(item).is_some() && is_visible(item))
        || leaves(items).iter().any(is_exported)
}

/// Makes the imports of a template those of a module that is made from it: paths that begin with
/// `crate` or `super` are relative to the template, whose path is `template`.
pub(super) fn rebase(item: &mut ItemUse, template: &syn::Path) {
    let names: Vec<_> = template.segments.iter().map(|segment| segment.ident.clone()).collect();
    let Some((package, within)) = names.split_first() else { return };
    item.tree = rebased(&item.tree, package, within);
}

fn rebased(tree: &UseTree, package: &Ident, within: &[Ident]) -> UseTree {
    match tree {
        UseTree::Path(path) if path.ident == "crate" => {
            let (ident, tree) = (package, &path.tree);
            syn::parse_quote!(#ident::#tree)
        }
        UseTree::Path(path) if path.ident == "super" => {
            let parents = &within[..within.len().saturating_sub(1)];
            let tree = match &*path.tree {
                UseTree::Path(next) if next.ident == "super" => {
                    return rebased(&path.tree, package, parents);
                }
                tree => tree,
            };
            syn::parse_quote!(#package::#(#parents::)*#tree)
        }
        UseTree::Group(group) => {
            let trees = group.items.iter().map(|tree| rebased(tree, package, within));
            syn::parse_quote!({ #(#trees),* })
        }
        UseTree::Path(_) | UseTree::Name(_) | UseTree::Rename(_) | UseTree::Glob(_) => tree.clone(),
    }
}

/// Returns the module with all tokens at the same position.
pub fn at(module: &ItemMod, span: TokenSpan) -> ItemMod {
    // syn parses the same tokens to the same item, whatever their spans.
    syn::parse2(tokens_at(module.to_token_stream(), span)).unwrap_or_else(|_| module.clone())
}

/// Gives all tokens the same span.
pub(super) fn tokens_at(tokens: TokenStream, span: TokenSpan) -> TokenStream {
    let token = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), tokens_at(group.stream(), span)).into();
        }
        token.set_span(span);
        token
    };
    tokens.into_iter().map(token).collect()
}

/// A module among those that a module's imports lead to. The modules form a list, in which each
/// comes after those that it imports from, and the importing module is the last.
#[derive(Clone, Debug)]
pub struct Node {
    /// The module as it is written. Without items for the last.
    pub module: ItemMod,
    /// Its imports of items that kernels can use.
    pub found: Vec<Link>,
    /// Its other imports: the name, the path and the reason.
    pub missing: Vec<(String, String, Unfound)>,
}

/// An import in a [`Node`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The name in the importing module.
    pub name: String,
    /// The name in the other module.
    pub item: String,
    /// The path of the other module.
    pub path: String,
    /// The position of the other module in the list.
    pub node: usize,
}

impl Import {
    /// Formats the path of the module the way users write it.
    pub fn shown(&self) -> String {
        shown(&self.path, self.is_global)
    }
}

fn shown(path: &[Ident], is_global: bool) -> String {
    let names = path.iter().map(ToString::to_string).collect::<Vec<_>>().join("::");
    if is_global { format!("::{names}") } else { names }
}

/// Returns the imports of a module with these items, as listed in `nodes`.
pub fn of_nodes(items: &[Item], nodes: &[Node]) -> Imports {
    let leaves = leaves(items);
    let Some((last, others)) = nodes.split_last() else { return Imports::default() };
    // The `use` in this module through which each other module is reached first.
    let leaf_of = |link: &Link| {
        leaves.iter().find(|leaf| {
            let is_named = leaf.item.is_none() || names::text(&leaf.name) == link.name;
            is_named && leaf.shown() == link.path
        })
    };
    let direct: Vec<_> =
        last.found.iter().filter_map(|link| Some((link, leaf_of(link)?.name.span()))).collect();
    let mut spans = vec![None; others.len()];
    for (link, span) in &direct {
        if let Some(known) = spans.get_mut(link.node).filter(|known| known.is_none()) {
            *known = Some(*span);
        }
    }
    for (link, span) in &direct {
        mark(others, link.node, *span, &mut spans);
    }
    let mut built: Vec<Rc<ModuleItems>> = vec![];
    for (position, (node, span)) in others.iter().zip(spans).enumerate() {
        let mut module = at(&node.module, span.unwrap_or_else(TokenSpan::call_site));
        let items = module.content.as_mut().map(|(_, items)| &mut items[..]).unwrap_or_default();
        for item in items {
            let is_imported = |link: &Link| link.node == position && is_shareable(item, &link.item);
            if let Some((_, span)) = direct.iter().find(|(link, _)| is_imported(link))
                && let Ok(moved) = syn::parse2(tokens_at(item.to_token_stream(), *span))
            {
                *item = moved;
            }
        }
        // The module's own macro reports its mistakes.
        let shared = super::module(&module, &mut Sink::default()).shared;
        let named = |link: &Link| Some(import(link, None, built.get(link.node)?));
        let found = node.found.iter().filter_map(named).collect();
        let absent = |(name, path, why): &(String, String, Unfound)| MissingImport {
            name: Ident::new(name, TokenSpan::call_site()),
            path: path.clone(),
            why: why.clone(),
        };
        let missing = node.missing.iter().map(absent).collect();
        built.push(Rc::new(ModuleItems { imports: Imports { found, missing }, ..shared }));
    }
    let named = |link: &Link| Some(import(link, Some(leaf_of(link)?), built.get(link.node)?));
    let found: Vec<_> = last.found.iter().filter_map(named).collect();
    let absent = |leaf: &Leaf| {
        let item = leaf.item.as_ref()?;
        let path = format!("{}::{item}", leaf.shown());
        if found.iter().any(|import| import.name == names::text(&leaf.name)) {
            return None;
        }
        let known = last.missing.iter().find(|(_, missing, _)| *missing == path);
        let why = known.map_or(Unfound::Unseen, |(_, _, why)| why.clone());
        Some(MissingImport { name: leaf.name.clone(), path, why })
    };
    let missing = leaves.iter().filter_map(absent).collect();
    Imports { found, missing }
}

fn import(link: &Link, leaf: Option<&Leaf>, from: &Rc<ModuleItems>) -> Import {
    Import {
        name: link.name.clone(),
        item: link.item.clone(),
        path: leaf.map(|leaf| leaf.path.clone()).unwrap_or_default(),
        is_global: leaf.is_some_and(|leaf| leaf.is_global),
        from: Rc::clone(from),
    }
}

/// Gives the modules that a module imports from, directly or indirectly, a span.
fn mark(nodes: &[Node], node: usize, span: TokenSpan, spans: &mut [Option<TokenSpan>]) {
    for link in nodes.get(node).map(|node| &node.found[..]).unwrap_or_default() {
        if let Some(known) = spans.get_mut(link.node).filter(|known| known.is_none()) {
            *known = Some(span);
            mark(nodes, link.node, span, spans);
        }
    }
}

impl ModuleItems {
    /// Returns these items, followed by those of every module that they are imported from.
    pub fn with_imported(&self) -> Vec<&ModuleItems> {
        fn add<'m>(items: &'m ModuleItems, all: &mut Vec<&'m ModuleItems>) {
            if all.iter().any(|known| std::ptr::eq(*known, items)) {
                return;
            }
            all.push(items);
            items.imports.found.iter().for_each(|import| add(&import.from, all));
        }
        let mut all = vec![];
        add(self, &mut all);
        all
    }
}
