//! Where the modules are that others are made from: `#[tma_module(from = path)]`.
//!
//! The build script finds them in sources of packages: of its own, and of those that it depends on,
//! whose build scripts tell cargo where they are. Cargo passes that on if such a package has
//! `links` in its manifest. Source: The Cargo Book, "Build Scripts", "The `links` Manifest Key".
//!
//! A macro is not told where packages are. The build script leaves it the tokens of each template
//! that a kernel's file asks for, or the reason why there are none.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use quote::ToTokens;
use syn::{Item, ItemMod, Meta};

use crate::diag::mistake::Unfound;
use crate::parse::item::template::{Template, shown_path};
use crate::parse::item::{file, is_named};
use crate::{abi, note};

/// What a package's build script calls the place of its sources; in the environment of those that
/// depend on it this has the name of `links` before it.
const KEY: &str = "tma_package";

/// What a file begins with that has no template.
const REASON: char = '!';

/// The templates that the files of a package ask for, as its build script finds them.
#[derive(Debug)]
pub(crate) struct Packages {
    /// By the names that paths begin with, where packages are.
    folders: BTreeMap<String, PathBuf>,
    found: RefCell<BTreeMap<String, Result<Template, Unfound>>>,
    read: RefCell<BTreeSet<PathBuf>>,
}

impl Packages {
    /// The package in this folder, those that cargo tells of, and `named` ones.
    pub(crate) fn around(package: &Path, named: &BTreeMap<String, PathBuf>) -> Self {
        let mut folders = told();
        folders.extend(own_name().map(|name| (name, package.to_owned())));
        folders.insert("crate".to_owned(), package.to_owned());
        folders.extend(named.clone());
        Self { folders, found: RefCell::default(), read: RefCell::default() }
    }

    /// The template with this path.
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
            // Paths of the own package are relative to it, as in messages of other kernels.
            let is_own = self.folders.get("crate") == Some(folder);
            let source = if is_own { within.to_owned() } else { Path::new(package).join(within) };
            marked(module, Some(source))
        });
        self.found.borrow_mut().insert(shown, found.clone());
        found
    }

    /// The module of this path in a package, and its file.
    fn in_package(&self, package: &Path, names: &[String]) -> Result<(ItemMod, PathBuf), Unfound> {
        let mut folder = package.join("src");
        let roots = ["lib.rs", "main.rs"].map(|root| folder.join(root));
        let mut file = first_file(roots).ok_or(Unfound::Package)?;
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
        // The path leads to a whole file, or to the package itself.
        Err(Unfound::Unmarked)
    }

    /// The items of a file; none if it is no Rust.
    fn items(&self, path: &Path) -> Vec<Item> {
        self.read.borrow_mut().insert(path.to_owned());
        let text = fs::read_to_string(path).unwrap_or_default();
        file::parsed(&text).map(|file| file.items).unwrap_or_default()
    }

    /// The files that were read.
    pub(crate) fn files(&self) -> BTreeSet<PathBuf> {
        self.read.borrow().clone()
    }

    /// What the macro is left: files in `OUT_DIR`, with their texts.
    pub(crate) fn left(&self) -> Vec<(PathBuf, String)> {
        let found = self.found.borrow();
        let texts = found.iter().map(|(path, found)| {
            let text = match found {
                Ok(template) => template.module.to_token_stream().to_string(),
                Err(why) => reason(why),
            };
            (abi::template_file(path), text)
        });
        texts.collect()
    }
}

/// Tells cargo, for those that depend on this package, where its sources are.
pub(crate) fn tell(package: &Path) {
    if let (Some(_), Some(name), Some(folder)) =
        (env::var_os("CARGO_MANIFEST_LINKS"), own_name(), package.to_str())
        && !folder.contains('\n')
    {
        println!("cargo::metadata={KEY}={name}:{folder}");
    }
}

/// The packages that tell where they are.
fn told() -> BTreeMap<String, PathBuf> {
    let suffix = format!("_{}", KEY.to_uppercase());
    let variables = env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let value = value.into_string().ok()?;
        if !name.starts_with("DEP_") || !name.ends_with(&suffix) {
            return None;
        }
        let (package, folder) = value.split_once(':')?;
        Some((package.to_owned(), PathBuf::from(folder)))
    });
    variables.collect()
}

/// What code calls the package that is built.
fn own_name() -> Option<String> {
    Some(env::var("CARGO_PKG_NAME").ok()?.replace('-', "_"))
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

/// The template that a module is, if others can be made from it.
fn marked(module: ItemMod, source: Option<PathBuf>) -> Result<Template, Unfound> {
    let attr = module.attrs.iter().find(|attr| is_named(attr, "tma_module")).ok_or(Unfound::Unmarked)?;
    match attr.meta {
        Meta::Path(_) => Ok(Template { module, source }),
        Meta::List(_) | Meta::NameValue(_) => Err(Unfound::Made),
    }
}

/// The template of this path in a text, which is all of a package.
pub(crate) fn in_text(items: &[Item], path: &syn::Path) -> Result<Template, Unfound> {
    let mut names = path.segments.iter().map(|segment| segment.ident.to_string());
    if names.next().is_none_or(|root| root != "crate") {
        return Err(Unfound::Package);
    }
    let (mut items, mut found) = (items, Err(Unfound::Unmarked));
    for name in names {
        let module = module_named(items, &name).ok_or(Unfound::Module(name))?;
        items = module.content.as_ref().map(|(_, items)| &items[..]).unwrap_or_default();
        found = Ok(module);
    }
    marked(found?.clone(), None)
}

/// The template of this path as the build script has left it for the macro.
pub(crate) fn left(path: &syn::Path) -> Result<Template, Unfound> {
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

/// Why there is no template, as a file has it.
fn reason(why: &Unfound) -> String {
    let text = match why {
        Unfound::Package => "package",
        Unfound::Module(name) => return format!("{REASON}module {name}"),
        Unfound::Unmarked => "unmarked",
        Unfound::Made => "made",
        Unfound::Unseen => "unseen",
    };
    format!("{REASON}{text}")
}

fn of_reason(text: &str) -> Unfound {
    match text.split_once(' ') {
        Some(("module", name)) => Unfound::Module(name.to_owned()),
        Some(_) | None => match text {
            "package" => Unfound::Package,
            "unmarked" => Unfound::Unmarked,
            "made" => Unfound::Made,
            _ => Unfound::Unseen,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_as_it_was_written() {
        let module = Unfound::Module("gemm".to_owned());
        for why in [Unfound::Package, module, Unfound::Unmarked, Unfound::Made, Unfound::Unseen] {
            let text = reason(&why);
            assert_eq!(of_reason(text.strip_prefix(REASON).unwrap()), why);
        }
    }
}
