//! The items of the module that a kernel is in, and of those that it imports from.
//!
//! A name is looked up in the module that it is written in: its scope. It is that of the function,
//! constant or type being parsed, and not the kernel's if that is imported.

use std::collections::HashMap;

use crate::ir::{Expr, StructType, Type};
use crate::parse::item::host_items::HostItemDecl;
use crate::parse::item::imports::MissingImport;
use crate::parse::item::{DeviceMethod, ModuleItems};
use crate::parse::names::{self, Space};

/// A module: the kernel's, or one that it imports from, directly or indirectly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::parse) struct Scope(u32);

/// An item, with the module in which its names are looked up.
#[derive(Clone, Copy)]
pub(in crate::parse) struct Scoped<T> {
    pub(in crate::parse) item: T,
    pub(in crate::parse) scope: Scope,
}

/// The items of a `#[tma_module]`, and of those that it imports from, with the constants that are
/// evaluated so far.
pub(in crate::parse) struct Module<'a> {
    /// The modules, the kernel's first. [`Scope`]s are positions.
    all: Vec<&'a ModuleItems>,
    /// The module in which names are looked up.
    scope: Scope,
    /// The constants, by module and index.
    constants: HashMap<(Scope, usize), Evaluation>,
    /// The types of the structs, by module and name.
    struct_types: HashMap<(Scope, String), Type>,
}

/// The evaluation of a constant of the module.
#[derive(Clone)]
pub(in crate::parse) enum Evaluation {
    Begun,
    Finished(Expr),
}

/// A constant of the module.
#[derive(Clone, Copy)]
pub(in crate::parse) struct ConstantItem<'a> {
    index: usize,
    pub(in crate::parse) scope: Scope,
    pub(in crate::parse) item: &'a syn::ItemConst,
}

impl Scope {
    /// Returns the number by which types refer to the module.
    pub(in crate::parse) fn number(self) -> u32 {
        self.0
    }
}

impl<'a> Module<'a> {
    pub(super) fn new(items: &'a ModuleItems) -> Self {
        Self {
            all: items.with_imported(),
            scope: Scope::default(),
            constants: HashMap::new(),
            struct_types: HashMap::new(),
        }
    }

    /// Returns the module in which names are looked up.
    pub(in crate::parse) fn scope(&self) -> Scope {
        self.scope
    }

    /// Enters a module, and returns the one before.
    pub(super) fn enter(&mut self, scope: Scope) -> Scope {
        std::mem::replace(&mut self.scope, scope)
    }

    /// Whether names are looked up in the kernel's own module.
    pub(in crate::parse) fn is_own(&self) -> bool {
        self.scope == Scope::default()
    }

    fn items(&self, scope: Scope) -> &'a ModuleItems {
        self.all[scope.0 as usize]
    }

    /// Looks up a name in a module, and then in those that it is imported from.
    fn find<T>(
        &self,
        scope: Scope,
        name: &str,
        find: &impl Fn(&'a ModuleItems, &str) -> Option<T>,
    ) -> Option<Scoped<T>> {
        let items = self.items(scope);
        if let Some(item) = find(items, name) {
            return Some(Scoped { item, scope });
        }
        // One name may be imported as a function and as a type, from different modules.
        let imports = items.imports.found.iter().filter(|import| import.name == name);
        imports.into_iter().find_map(|import| {
            let scope = self.all.iter().position(|known| std::ptr::eq(*known, &raw const *import.from))?;
            self.find(Scope(u32::try_from(scope).ok()?), &import.item, find)
        })
    }

    /// Looks up a name where it is written.
    fn find_here<T>(
        &self,
        name: &str,
        find: &impl Fn(&'a ModuleItems, &str) -> Option<T>,
    ) -> Option<Scoped<T>> {
        self.find(self.scope, name, find)
    }

    /// Returns the names of the type aliases.
    pub(in crate::parse) fn alias_names(&self) -> impl Iterator<Item = String> {
        self.items(self.scope).aliases.iter().map(|alias| names::text(&alias.ident))
    }

    /// Returns the alias of a type with this name.
    pub(in crate::parse) fn alias(&self, name: &str) -> Option<Scoped<&'a syn::ItemType>> {
        self.alias_in(self.scope, name)
    }

    /// Returns the alias of a type with this name in a module.
    pub(in crate::parse) fn alias_in(&self, scope: Scope, name: &str) -> Option<Scoped<&'a syn::ItemType>> {
        self.find(scope, name, &|items, name| {
            items.aliases.iter().find(|alias| names::text(&alias.ident) == name)
        })
    }

    /// Returns the `#[tma_device]` function of this name.
    pub(in crate::parse) fn function(&self, name: &str) -> Option<Scoped<&'a syn::ItemFn>> {
        self.find_here(name, &|items, name| {
            items.functions.iter().find(|item| names::text(&item.sig.ident) == name)
        })
    }

    /// Returns the names of the `#[tma_device]` functions, and of the imported items.
    pub(in crate::parse) fn function_names(&self) -> impl Iterator<Item = String> {
        let items = self.items(self.scope);
        let imported = items.imports.found.iter().map(|import| import.name.clone());
        items.functions.iter().map(|item| names::text(&item.sig.ident)).chain(imported)
    }

    /// Returns the struct of this name, if kernels can have values of it.
    pub(in crate::parse) fn structure(&self, name: &str) -> Option<Scoped<&'a syn::ItemStruct>> {
        self.find_here(name, &|items, name| {
            items.structs.iter().find(|item| names::text(&item.ident) == name)
        })
    }

    /// Returns the declaration of a struct, in its own module.
    pub(in crate::parse) fn declaration(&self, of: &StructType) -> Option<&'a syn::ItemStruct> {
        let mut structs = self.items(Scope(of.module)).structs.iter();
        structs.find(|item| names::text(&item.ident) == of.name)
    }

    /// Returns the type of a struct, if it has been resolved.
    pub(in crate::parse) fn struct_type(&self, of: Scope, name: &str) -> Option<&Type> {
        self.struct_types.get(&(of, name.to_owned()))
    }

    pub(in crate::parse) fn set_struct_type(&mut self, of: Scope, name: String, ty: Type) {
        self.struct_types.insert((of, name), ty);
    }

    /// Returns the `#[tma_device]` function `name` of a struct.
    pub(in crate::parse) fn method(&self, of: &StructType, name: &str) -> Option<Scoped<&'a syn::ItemFn>> {
        let scope = Scope(of.module);
        let is_meant =
            |method: &&DeviceMethod| method.of == of.name && names::text(&method.function.sig.ident) == name;
        let method = self.items(scope).methods.iter().find(is_meant)?;
        Some(Scoped { item: &method.function, scope })
    }

    /// Returns the names of the `#[tma_device]` functions of a struct.
    pub(in crate::parse) fn method_names(&self, of: &StructType) -> Vec<String> {
        let methods = self.items(Scope(of.module)).methods.iter().filter(|method| method.of == of.name);
        methods.map(|method| names::text(&method.function.sig.ident)).collect()
    }

    /// Returns the item of the host that takes this name.
    pub(in crate::parse) fn host_item(&self, name: &str, space: Space) -> Option<&'a HostItemDecl> {
        let items = self.items(self.scope);
        items.host_items.iter().find(|item| item.name == name && item.spaces.contains(&space))
    }

    /// Returns the import of this name, if kernels cannot use it.
    pub(in crate::parse) fn missing_import(&self, name: &str) -> Option<&'a MissingImport> {
        self.items(self.scope).imports.missing.iter().find(|import| names::text(&import.name) == name)
    }

    /// Returns the constant of this name.
    pub(in crate::parse) fn constant(&self, name: &str) -> Option<ConstantItem<'a>> {
        let found = self.find_here(name, &|items, name| {
            let index = items.constants.iter().position(|item| names::text(&item.ident) == name)?;
            Some((index, &items.constants[index]))
        })?;
        let (index, item) = found.item;
        Some(ConstantItem { index, scope: found.scope, item })
    }

    /// Returns the names of the constants, and of the imported items.
    pub(in crate::parse) fn constant_names(&self) -> impl Iterator<Item = String> {
        let items = self.items(self.scope);
        let imported = items.imports.found.iter().map(|import| import.name.clone());
        items.constants.iter().map(|item| item.ident.to_string()).chain(imported)
    }

    /// Returns the evaluation of a constant, if it has begun.
    pub(in crate::parse) fn evaluation(&self, constant: ConstantItem<'_>) -> Option<&Evaluation> {
        self.constants.get(&(constant.scope, constant.index))
    }

    pub(in crate::parse) fn set_evaluation(&mut self, constant: ConstantItem<'_>, evaluation: Evaluation) {
        self.constants.insert((constant.scope, constant.index), evaluation);
    }
}
