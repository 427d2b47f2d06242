//! Finds the templates of modules: `#[tma_module(from = path)]`.
//!
//! The build script finds them in the sources of its own package and of dependencies, whose build
//! scripts tell cargo their location. Cargo passes that on if such a package has `links` in its
//! manifest. Source: The Cargo Book, "Build Scripts", "The `links` Manifest Key".
//!
//! A macro does not know the locations of packages. The build script leaves it the tokens of each
//! template that a kernel's file requests, or the reason why there are none.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use quote::ToTokens;
use syn::{Item, ItemMod, Meta};
use tma_front::diag::mistake::Unfound;
use tma_front::parse::item::imports::{Imports, of_nodes};
use tma_front::parse::item::template::{Elsewhere, Template, shown_path};
use tma_front::parse::item::{file, is_named};

use crate::{abi, imports, note};

/// The key under which a package's build script publishes the location of its sources. In the
/// environment of dependents it is prefixed with the name of `links`.
const KEY: &str = "tma_package";

/// The key under which it publishes the locations of the packages that it depends on, one after
/// the other. An imported function may use items of them.
const KEY_OF_DEPENDENCIES: &str = "tma_dependencies";

/// The character between two packages.
const SEPARATOR: char = '\u{1f}';

/// The first character of a file with the reason why there is no template.
const REASON: char = '!';

/// The templates requested by the files of a package, as its build script finds them.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    /// The folders of packages, by the names that paths begin with.
    folders: BTreeMap<String, PathBuf>,
    found: RefCell<BTreeMap<String, Result<Template, Unfound>>>,
    read: RefCell<BTreeSet<PathBuf>>,
    /// The modules that are resolved.
    pub(crate) known: imports::Known,
    /// The files about imports for the macro, with their contents.
    left: RefCell<BTreeMap<PathBuf, String>>,
    /// Whether a kernel needs a package whose location is unknown.
    lacks_package: Cell<bool>,
    /// The items of files that are known otherwise.
    texts: BTreeMap<PathBuf, Vec<Item>>,
}

impl Packages {
    /// Collects the package in this folder, those published through cargo, and `named` ones.
    pub(crate) fn around(package: &Path, named: &BTreeMap<String, PathBuf>) -> Self {
        let mut folders = published_packages();
        folders.extend(own_name().map(|name| (name, package.to_owned())));
        folders.insert("crate".to_owned(), package.to_owned());
        folders.extend(named.clone());
        Self { folders, ..Self::default() }
    }

    /// Returns the template with this path.
    pub(crate) fn find(&self, path: &syn::Path) -> Result<Template, Unfound> {
        let shown = shown_path(path);
        if let Some(known) = self.found.borrow().get(&shown) {
            return known.clone();
        }
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let found = names.split_first().ok_or(Unfound::Package).and_then(|(package, names)| {
            let folder = self.folders.get(package).ok_or(Unfound::Package)?;
            let (module, file) = self.in_package(folder, names)?;
            let within = file.strip_prefix(folder).unwrap_or(&file);
            // Paths in the own package are relative to it, as in messages about other kernels.
            let is_own = self.folders.get("crate") == Some(folder);
            let source = if is_own { within.to_owned() } else { Path::new(package).join(within) };
            marked(module, Some(source))
        });
        self.found.borrow_mut().insert(shown, found.clone());
        found
    }

    /// Returns the module with this path in a package, and its file.
    fn in_package(&self, package: &Path, names: &[String]) -> Result<(ItemMod, PathBuf), Unfound> {
        self.in_crate(&root_of(package)?, names)
    }

    /// Returns the module with this path in the crate of a root file, and its file.
    pub(crate) fn in_crate(&self, root: &Path, names: &[String]) -> Result<(ItemMod, PathBuf), Unfound> {
        let mut folder = root.parent().unwrap_or(Path::new("")).to_owned();
        let mut file = root.to_owned();
        let mut items = self.items(&file);
        for (at, name) in names.iter().enumerate() {
            let module = module_named(&items, name).ok_or_else(|| Unfound::Module(name.clone()))?.clone();
            if at + 1 == names.len() && module.content.is_some() {
                return Ok((module, file));
            }
            folder.push(name);
            items = match module.content {
                Some((_, items)) => items,
                None => {
                    let files = [folder.with_extension("rs"), folder.join("mod.rs")];
                    file = first_file(files).ok_or_else(|| Unfound::Module(name.clone()))?;
                    self.items(&file)
                }
            };
        }
        // The path refers to a whole file, or to the package itself.
        Err(Unfound::Unmarked)
    }

    /// Returns the root file of a package's library.
    pub(crate) fn root_of_package(&self, name: &str) -> Result<PathBuf, Unfound> {
        root_of(self.folders.get(name).ok_or(Unfound::Package)?)
    }

    /// Returns the folder of the package itself.
    pub(crate) fn own_folder(&self) -> PathBuf {
        self.folders.get("crate").cloned().unwrap_or_default()
    }

    /// Returns what a module of the file `source`, in inline modules of the names `around`,
    /// imports, and leaves it for the macro.
    pub(crate) fn imports(&self, source: &Path, module: &ItemMod, around: &[String]) -> Imports {
        let nodes = imports::nodes(self, source, module, around);
        let items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
        let imports = of_nodes(items, &nodes);
        if !nodes.is_empty() {
            let file = imports::file::name(&self.own_folder(), source, &module.ident);
            self.left.borrow_mut().insert(file, imports::file::encoded(&nodes));
        }
        imports
    }

    /// Returns these packages, or none, with `items` as the contents of the file `path`, whatever
    /// that contains.
    pub(crate) fn with_file(packages: Option<&Self>, path: &str, items: &[Item]) -> Self {
        let folders = packages.map(|packages| packages.folders.clone()).unwrap_or_default();
        let mut packages = Self { folders, ..Self::default() };
        packages.texts.insert(packages.source(path), items.to_vec());
        packages
    }

    /// Returns the whole path of a file of the package.
    pub(crate) fn source(&self, path: &str) -> PathBuf {
        self.own_folder().join(path)
    }

    /// Returns the items of a file, or none if it is not Rust.
    pub(crate) fn items(&self, path: &Path) -> Vec<Item> {
        if let Some(items) = self.texts.get(path) {
            return items.clone();
        }
        self.read.borrow_mut().insert(path.to_owned());
        let text = fs::read_to_string(path).unwrap_or_default();
        file::parsed(&text).map(|file| file.items).unwrap_or_default()
    }

    /// Records that a kernel needs a package whose location is unknown.
    pub(crate) fn note_lack(&self) {
        self.lacks_package.set(true);
    }

    /// Whether a kernel needs a package whose location is unknown.
    pub(crate) fn lacks_package(&self) -> bool {
        self.lacks_package.get()
            || self.found.borrow().values().any(|found| matches!(found, Err(Unfound::Package)))
    }

    /// Returns the files that were read.
    pub(crate) fn files(&self) -> BTreeSet<PathBuf> {
        self.read.borrow().clone()
    }

    /// Returns the files in `OUT_DIR` for the macro, with their contents.
    pub(crate) fn requested(&self) -> Vec<(PathBuf, String)> {
        let found = self.found.borrow();
        let texts = found.iter().map(|(path, found)| {
            let text = match found {
                Ok(template) => template.module.to_token_stream().to_string(),
                Err(why) => reason(why),
            };
            (abi::template_file(path), text)
        });
        let imports = self.left.borrow();
        texts.chain(imports.iter().map(|(file, text)| (file.clone(), text.clone()))).collect()
    }
}

/// Publishes the location of this package's sources to dependents, through cargo.
pub(crate) fn publish(package: &Path) {
    if let (Some(_), Some(name), Some(folder)) =
        (env::var_os("CARGO_MANIFEST_LINKS"), own_name(), package.to_str())
        && !folder.contains('\n')
    {
        println!("cargo::metadata={KEY}={name}:{folder}");
        let dependencies = published_packages().into_iter();
        let dependencies = dependencies.filter_map(|(name, folder)| {
            Some(format!("{name}:{}", folder.to_str().filter(|folder| !folder.contains('\n'))?))
        });
        let dependencies: Vec<_> = dependencies.collect();
        if !dependencies.is_empty() {
            let dependencies = dependencies.join(&SEPARATOR.to_string());
            println!("cargo::metadata={KEY_OF_DEPENDENCIES}={dependencies}");
        }
    }
}

/// Returns the packages that publish their location, and those that these depend on.
fn published_packages() -> BTreeMap<String, PathBuf> {
    let published = |key: &str| {
        let suffix = format!("_{}", key.to_uppercase());
        let values = env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            (name.starts_with("DEP_") && name.ends_with(&suffix)).then(|| value.into_string().ok())?
        });
        values.collect::<Vec<_>>()
    };
    let location = |text: &str| {
        let (package, folder) = text.split_once(':')?;
        Some((package.to_owned(), PathBuf::from(folder)))
    };
    // A direct dependency is the one that the package's own paths mean.
    let indirect = published(KEY_OF_DEPENDENCIES);
    let mut all: BTreeMap<_, _> =
        indirect.iter().flat_map(|list| list.split(SEPARATOR)).filter_map(location).collect();
    all.extend(published(KEY).iter().filter_map(|text| location(text)));
    all
}

/// Returns the name of the package being built, as code refers to it.
fn own_name() -> Option<String> {
    Some(env::var("CARGO_PKG_NAME").ok()?.replace('-', "_"))
}

/// Returns the root file of the library of the package in a folder, or else that of its program.
fn root_of(package: &Path) -> Result<PathBuf, Unfound> {
    first_file(["lib.rs", "main.rs"].map(|root| package.join("src").join(root))).ok_or(Unfound::Package)
}

fn first_file(paths: [PathBuf; 2]) -> Option<PathBuf> {
    paths.into_iter().find(|path| path.is_file())
}

fn module_named<'a>(items: &'a [Item], name: &str) -> Option<&'a ItemMod> {
    items.iter().find_map(|item| match item {
        Item::Mod(module) if module.ident == name => Some(module),
        _ => None,
    })
}

/// Returns the module as a template, if other modules can be made from it.
fn marked(module: ItemMod, source: Option<PathBuf>) -> Result<Template, Unfound> {
    let attr = module.attrs.iter().find(|attr| is_named(attr, "tma_module")).ok_or(Unfound::Unmarked)?;
    match attr.meta {
        Meta::Path(_) => Ok(Template { module, source }),
        Meta::List(_) | Meta::NameValue(_) => Err(Unfound::Made),
    }
}

/// Returns the template with this path in a text that is the whole package.
pub(crate) fn in_text(items: &[Item], path: &syn::Path) -> Result<Template, Unfound> {
    let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let Some((root, names)) = names.split_first() else { return Err(Unfound::Package) };
    if root != "crate" {
        return Err(Unfound::Package);
    }
    // The text may be any file of the crate, so that the path leads to it first.
    let own = names.iter().position(|name| module_named(items, name).is_some()).unwrap_or_default();
    let (mut items, mut found) = (items, Err(Unfound::Unmarked));
    for name in names.iter().skip(own).cloned() {
        let module = module_named(items, &name).ok_or(Unfound::Module(name))?;
        items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
        found = Ok(module);
    }
    marked(found?.clone(), None)
}

/// Finds templates and imports in the files that the build script has left for the macro.
pub(crate) const LEFT: Elsewhere<'static> =
    Elsewhere { template: &from_build_script, imports: &imports::file::from_build_script };

/// Returns the template with this path that the build script has left for the macro.
fn from_build_script(path: &syn::Path) -> Result<Template, Unfound> {
    let out_dir = env::var_os("OUT_DIR").map(PathBuf::from).filter(|out_dir| note::is_read(out_dir));
    let out_dir = out_dir.ok_or(Unfound::Unseen)?;
    let shown = shown_path(path);
    let text = fs::read_to_string(out_dir.join(abi::template_file(&shown)));
    let text = text.map_err(|_: io::Error| {
        note::leave(&out_dir, &shown);
        Unfound::Unseen
    })?;
    if let Some(why) = text.strip_prefix(REASON) {
        return Err(of_reason(why));
    }
    let module = syn::parse_str(&text).map_err(|_: syn::Error| Unfound::Unseen)?;
    Ok(Template { module, source: None })
}

/// Encodes the reason why there is no template, for a file.
pub(crate) fn reason(why: &Unfound) -> String {
    let text = match why {
        Unfound::Package => "package",
        Unfound::Module(name) => return format!("{REASON}module {name}"),
        Unfound::Unmarked => "unmarked",
        Unfound::Made => "made",
        Unfound::Unseen => "unseen",
        Unfound::Item(name) => return format!("{REASON}item {name}"),
        Unfound::Cycle => "cycle",
    };
    format!("{REASON}{text}")
}

/// Decodes a reason.
pub(crate) fn of_reason(text: &str) -> Unfound {
    let text = text.strip_prefix(REASON).unwrap_or(text);
    match text.split_once(' ') {
        Some(("module", name)) => Unfound::Module(name.to_owned()),
        Some(("item", name)) => Unfound::Item(name.to_owned()),
        Some(_) | None => match text {
            "package" => Unfound::Package,
            "unmarked" => Unfound::Unmarked,
            "made" => Unfound::Made,
            "cycle" => Unfound::Cycle,
            _ => Unfound::Unseen,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_as_it_was_written() {
        let (module, item) = (Unfound::Module("gemm".to_owned()), Unfound::Item("store".to_owned()));
        let plain = [Unfound::Package, Unfound::Unmarked, Unfound::Made, Unfound::Unseen, Unfound::Cycle];
        for why in plain.into_iter().chain([module, item]) {
            let text = reason(&why);
            assert_eq!(of_reason(text.strip_prefix(REASON).unwrap()), why);
        }
    }
}
