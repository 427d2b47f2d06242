//! Resolves the imports of modules: `use path::item` in a `#[tma_module]`.
//!
//! The build script follows a path over the modules of its package and of dependencies, from the
//! crate that the file is in. It leaves the macro, which does not know where a module is, the
//! modules that the path leads to, in a file for each importing module. rustc follows the `use`
//! itself; the expansion proves that it finds the same module.

pub(crate) mod file;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use syn::{Item, ItemMod, Meta, Visibility};
use tma_front::diag::mistake::Unfound;
use tma_front::parse::item::imports::{Leaf, Link, Node, is_shareable, leaves, shareable_name, visibility};
use tma_front::parse::item::is_named;

use crate::templates::Packages;

/// A module of a crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The file of the crate's root.
    root: PathBuf,
    /// The names of the modules, from the root.
    names: Vec<String>,
}

/// A module with its imports.
#[derive(Debug)]
struct Resolved {
    module: ItemMod,
    found: Vec<Found>,
    missing: Vec<(String, String, Unfound)>,
    /// The modules around it that its imports lead back to.
    back_to: Vec<Place>,
}

/// An import that kernels can use.
#[derive(Clone, Debug)]
struct Found {
    name: String,
    item: String,
    path: String,
    vis: Visibility,
    from: Rc<Resolved>,
}

/// The modules that are resolved.
#[derive(Debug, Default)]
pub(crate) struct Known(RefCell<BTreeMap<Place, Rc<Resolved>>>);

/// Returns the modules that the imports of `module` lead to, which is in inline modules of the
/// names `around` in the file `source`. The list is empty if it has no imports.
pub(crate) fn nodes(packages: &Packages, source: &Path, module: &ItemMod, around: &[String]) -> Vec<Node> {
    let items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
    if leaves(items).is_empty() {
        return vec![];
    }
    let mut place = packages.place_of(source);
    place.names.extend(around.iter().cloned());
    place.names.push(name_of(module));
    let resolved = resolve(packages, &place, module, &mut vec![]);
    let (mut nodes, mut known) = (vec![], vec![]);
    add(&resolved, &mut nodes, &mut known);
    if let Some(last) = nodes.last_mut() {
        last.module.content = Some((syn::token::Brace::default(), vec![]));
    }
    nodes
}

/// Adds a module to a list, after those that it imports from. Returns its position.
fn add(resolved: &Rc<Resolved>, nodes: &mut Vec<Node>, known: &mut Vec<Rc<Resolved>>) -> usize {
    if let Some(position) = known.iter().position(|other| Rc::ptr_eq(other, resolved)) {
        return position;
    }
    let mut found = vec![];
    for import in &resolved.found {
        let node = add(&import.from, nodes, known);
        let (name, item, path) = (import.name.clone(), import.item.clone(), import.path.clone());
        found.push(Link { name, item, path, node });
    }
    nodes.push(Node { module: resolved.module.clone(), found, missing: resolved.missing.clone() });
    known.push(Rc::clone(resolved));
    nodes.len() - 1
}

/// Resolves the imports of a module. `around` are the modules whose imports lead to it.
fn resolve(packages: &Packages, place: &Place, module: &ItemMod, around: &mut Vec<Place>) -> Rc<Resolved> {
    let items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
    let (mut found, mut missing, mut globs, mut back_to) = (vec![], vec![], vec![], vec![]);
    around.push(place.clone());
    for leaf in leaves(items) {
        let path = leaf.shown();
        let Some(item) = &leaf.item else {
            globs.extend(all_of(packages, place, &leaf, around));
            continue;
        };
        let (name, item) = (text(&leaf.name), text(item));
        match item_of(packages, &leaf, &item, around, &mut back_to) {
            Ok(from) => found.push(Found { name, item, path, vis: leaf.vis, from }),
            Err(why) => missing.push((name, format!("{path}::{item}"), why)),
        }
    }
    around.pop();
    // Names of the module itself, and those that are imported one by one, hide those of a glob.
    globs.retain(|glob: &Found| {
        !found.iter().any(|import: &Found| import.name == glob.name)
            && !items.iter().any(|item| item_name(item).is_some_and(|name| name == glob.name))
    });
    found.extend(globs);
    back_to.extend(found.iter().flat_map(|import: &Found| import.from.back_to.clone()));
    Rc::new(Resolved { module: module.clone(), found, missing, back_to })
}

/// Returns the module from which a `use` imports an item, in the last module of `around`. If that
/// leads back to one of these, it is added to `back_to`.
fn item_of(
    packages: &Packages,
    leaf: &Leaf,
    item: &str,
    around: &mut Vec<Place>,
    back_to: &mut Vec<Place>,
) -> Result<Rc<Resolved>, Unfound> {
    let place = around.last().cloned().ok_or(Unfound::Unseen)?;
    let target = packages.target(&place, leaf)?;
    let module = packages.shared_module(&target)?;
    let items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
    let is_own = items.iter().any(|other| is_shareable(other, item));
    let may_import = || leaves(items).iter().any(|leaf| leaf.item.is_none() || text(&leaf.name) == item);
    if !is_own && !may_import() {
        return Err(Unfound::Item(item.to_owned()));
    }
    if around.contains(&target) {
        back_to.push(target);
        return Err(Unfound::Cycle);
    }
    let resolved = resolved(packages, &target, &module, around);
    // Each of these leads here, so the import is part of a cycle.
    let cycles: Vec<_> = resolved.back_to.iter().filter(|place| around.contains(place)).cloned().collect();
    if !cycles.is_empty() {
        back_to.extend(cycles.into_iter().filter(|other| *other != place));
        return Err(Unfound::Cycle);
    }
    match is_own || resolved.found.iter().any(|import| import.name == item) {
        true => Ok(resolved),
        false => Err(Unfound::Item(item.to_owned())),
    }
}

/// Returns the imports by `*` from another module.
fn all_of(packages: &Packages, place: &Place, leaf: &Leaf, around: &mut Vec<Place>) -> Vec<Found> {
    let find = || -> Result<_, Unfound> {
        let target = packages.target(place, leaf)?;
        let module = packages.shared_module(&target)?;
        if around.contains(&target) {
            return Err(Unfound::Cycle);
        }
        Ok((resolved(packages, &target, &module, around), target))
    };
    // Imports of other modules are none of kernels.
    let Ok((from, target)) = { find }() else { return vec![] };
    // rustc decides which items with a restricted visibility a glob imports. Those of the crate are
    // visible in it.
    let is_in_crate = target.root == place.root;
    let is_visible = |vis: &Visibility| match vis {
        Visibility::Public(_) => true,
        Visibility::Restricted(within) => is_in_crate && within.path.is_ident("crate"),
        Visibility::Inherited => false,
    };
    let items = from.module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
    let own = items.iter().filter(|item| visibility(item).is_some_and(is_visible));
    let own = own.filter_map(|item| shareable_name(item).map(text));
    let imported = from.found.iter().filter(|import| is_visible(&import.vis));
    let imported = imported.map(|import| import.name.clone());
    let found = own.chain(imported).map(|name| Found {
        item: name.clone(),
        name,
        path: leaf.shown(),
        vis: leaf.vis.clone(),
        from: Rc::clone(&from),
    });
    found.collect()
}

/// Resolves the imports of a module, unless they are known.
fn resolved(packages: &Packages, place: &Place, module: &ItemMod, around: &mut Vec<Place>) -> Rc<Resolved> {
    if let Some(known) = packages.known.0.borrow().get(place) {
        return Rc::clone(known);
    }
    let resolved = resolve(packages, place, module, around);
    packages.known.0.borrow_mut().insert(place.clone(), Rc::clone(&resolved));
    resolved
}

impl Packages {
    /// Returns the module that the path of a `use` leads to.
    fn target(&self, place: &Place, leaf: &Leaf) -> Result<Place, Unfound> {
        let names: Vec<_> = leaf.path.iter().map(text).collect();
        let (first, rest) = names.split_first().ok_or(Unfound::Package)?;
        let within = |names: &[String], rest: &[String]| Place {
            root: place.root.clone(),
            names: names.iter().chain(rest).cloned().collect(),
        };
        match first.as_str() {
            "crate" => Ok(within(&[], rest)),
            "self" => Ok(within(&place.names, rest)),
            "super" => {
                let parents = names.iter().take_while(|name| *name == "super").count();
                let depth = place.names.len().checked_sub(parents).ok_or(Unfound::Package)?;
                Ok(within(&place.names[..depth], &names[parents..]))
            }
            package => {
                // A module in the importing one.
                let inner = within(&place.names, &names[..1]);
                if !leaf.is_global && self.module_at(&inner).is_ok() {
                    return Ok(within(&place.names, &names));
                }
                Ok(Place { root: self.root_of_package(package)?, names: rest.to_vec() })
            }
        }
    }

    /// Returns the module at a place, if its items can be imported.
    fn shared_module(&self, place: &Place) -> Result<ItemMod, Unfound> {
        let module = self.module_at(place)?;
        let attr = module.attrs.iter().find(|attr| is_named(attr, "tma_module")).ok_or(Unfound::Unmarked)?;
        match attr.meta {
            Meta::Path(_) => Ok(module),
            Meta::List(_) | Meta::NameValue(_) => Err(Unfound::Made),
        }
    }

    fn module_at(&self, place: &Place) -> Result<ItemMod, Unfound> {
        Ok(self.in_crate(&place.root, &place.names)?.0)
    }

    /// Returns the module that a file is.
    fn place_of(&self, source: &Path) -> Place {
        let package = self.own_folder();
        let within = source.strip_prefix(&package).unwrap_or(source);
        let names: Vec<_> = within.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let names: Vec<_> = names.iter().map(|name| name.strip_suffix(".rs").unwrap_or(name)).collect();
        let itself = || Place { root: source.to_owned(), names: vec![] };
        // Source: The Cargo Book, "Package Layout".
        let (folder, rest) = match &names[..] {
            ["src", "lib" | "main"] => return itself(),
            ["src", "bin", target, rest @ ..] => (format!("src/bin/{target}"), rest),
            ["src", rest @ ..] => ("src".to_owned(), rest),
            [folder @ ("examples" | "tests" | "benches"), target, rest @ ..] => {
                (format!("{folder}/{target}"), rest)
            }
            _ => return itself(),
        };
        let mut roots = ["lib.rs", "main.rs"].map(|root| package.join(&folder).join(root)).into_iter();
        let names: Vec<_> = match rest {
            [modules @ .., "mod"] => modules.iter().map(ToString::to_string).collect(),
            modules => modules.iter().map(ToString::to_string).collect(),
        };
        if names.is_empty() {
            return itself();
        }
        let declares = |root: &PathBuf| {
            self.items(root).iter().any(|item| matches!(item, Item::Mod(module) if module.ident == names[0]))
        };
        match roots.find(|root| root.is_file() && declares(root)) {
            Some(root) => Place { root, names },
            None => itself(),
        }
    }
}

/// Returns the name of any item.
fn item_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Static(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Const(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Mod(item) => &item.ident,
        _ => return None,
    };
    Some(text(name))
}

fn name_of(module: &ItemMod) -> String {
    text(&module.ident)
}

/// Returns the name without `r#`.
pub(crate) fn text(name: &proc_macro2::Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}
