//! Host items in a `#[tma_module]`. A built-in with the same name as one of them is hidden by
//! it.

use syn::ext::IdentExt;
use syn::{Attribute, Fields, Ident, Item, UseTree};

use super::condition::is_condition;
use crate::diag::mistake::HostItem;
use crate::parse::names::{self, Space};

/// An item that exists on the host but not in kernels.
#[derive(Clone, Debug)]
pub struct HostItemDecl {
    /// The name, without `r#`.
    pub(crate) name: String,
    /// The kind of item.
    pub(crate) item: HostItem,
    /// The namespaces in which it takes the name.
    pub(crate) spaces: &'static [Space],
}

/// Returns the host item, if `item` takes a name. Imports are left to rustc, which knows what they
/// bring into scope. So are items under `#[cfg]`, whose condition rustc has not evaluated yet.
pub(in crate::parse) fn host_item_decl(item: &Item) -> Option<HostItemDecl> {
    let (name, attrs, kind, spaces): (&Ident, &[Attribute], _, &'static [Space]) = match item {
        Item::Fn(item) => {
            let kind = match super::kernel(item) {
                Some(_) => HostItem::Kernel,
                None => HostItem::Function,
            };
            (&item.sig.ident, &item.attrs, kind, &[Space::Value])
        }
        Item::Static(item) => (&item.ident, &item.attrs, HostItem::Static, &[Space::Value]),
        Item::Struct(item) => {
            let spaces: &[Space] = match item.fields {
                Fields::Named(_) => &[Space::Type],
                Fields::Unnamed(_) | Fields::Unit => &[Space::Type, Space::Value],
            };
            (&item.ident, &item.attrs, HostItem::Struct, spaces)
        }
        Item::Enum(item) => (&item.ident, &item.attrs, HostItem::Enum, &[Space::Type]),
        Item::Union(item) => (&item.ident, &item.attrs, HostItem::Union, &[Space::Type]),
        Item::Trait(item) => (&item.ident, &item.attrs, HostItem::Trait, &[Space::Type]),
        Item::Macro(item) => (item.ident.as_ref()?, &item.attrs, HostItem::Macro, &[Space::Macro]),
        // A module does not hide a scalar, as `mod u8` and the type `u8` can coexist. rustc
        // decides.
        Item::Mod(_) | Item::Use(_) | Item::ExternCrate(_) => return None,
        // Items that kernels share, and items without a name.
        Item::Const(_)
        | Item::Type(_)
        | Item::ForeignMod(_)
        | Item::Impl(_)
        | Item::TraitAlias(_)
        | Item::Verbatim(_) => return None,
        // syn's enum of items is non-exhaustive.
        _ => return None,
    };
    (!attrs.iter().any(is_condition)).then(|| HostItemDecl {
        name: name.unraw().to_string(),
        item: kind,
        spaces,
    })
}

/// Whether `item` could bring built-ins into scope: a glob import, an import of a built-in's name,
/// or a macro invocation that may expand to one.
pub(in crate::parse) fn may_bring_words(item: &Item) -> bool {
    match item {
        Item::Use(item) => brings_words(&item.tree),
        Item::Macro(item) => item.ident.is_none(),
        _ => false,
    }
}

fn brings_words(tree: &UseTree) -> bool {
    match tree {
        UseTree::Glob(_) => true,
        UseTree::Name(name) => names::is_word(&name.ident),
        UseTree::Rename(rename) => names::is_word(&rename.rename),
        UseTree::Path(path) => brings_words(&path.tree),
        UseTree::Group(group) => group.items.iter().any(brings_words),
    }
}
