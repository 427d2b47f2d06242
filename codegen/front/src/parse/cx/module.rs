//! The items of the module that a kernel is in.

use std::collections::HashMap;

use crate::ir::{Expr, Type};
use crate::parse::item::host_items::HostItemDecl;
use crate::parse::item::{DeviceMethod, ModuleItems};
use crate::parse::names::{self, Space};

/// The items of a `#[tma_module]`, with the constants that are evaluated so far.
pub(in crate::parse) struct Module<'a> {
    items: &'a ModuleItems,
    /// The constants, by index.
    constants: HashMap<usize, Evaluation>,
    /// The types of the structs, by name.
    struct_types: HashMap<String, Type>,
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
    pub(in crate::parse) item: &'a syn::ItemConst,
}

impl<'a> Module<'a> {
    pub(super) fn new(items: &'a ModuleItems) -> Self {
        Self { items, constants: HashMap::new(), struct_types: HashMap::new() }
    }

    pub(in crate::parse) fn aliases(&self) -> &'a [syn::ItemType] {
        &self.items.aliases
    }

    /// Returns the alias of a type with this name.
    pub(in crate::parse) fn alias(&self, name: &str) -> Option<&'a syn::ItemType> {
        self.items.aliases.iter().find(|alias| names::text(&alias.ident) == name)
    }

    /// Returns the `#[tma_device]` function of this name.
    pub(in crate::parse) fn function(&self, name: &str) -> Option<&'a syn::ItemFn> {
        self.items.functions.iter().find(|item| names::text(&item.sig.ident) == name)
    }

    /// Returns the names of the `#[tma_device]` functions.
    pub(in crate::parse) fn function_names(&self) -> impl Iterator<Item = String> {
        self.items.functions.iter().map(|item| names::text(&item.sig.ident))
    }

    /// Returns the struct of this name, if kernels can have values of it.
    pub(in crate::parse) fn structure(&self, name: &str) -> Option<&'a syn::ItemStruct> {
        self.items.structs.iter().find(|item| names::text(&item.ident) == name)
    }

    /// Returns the type of a struct, if it has been resolved.
    pub(in crate::parse) fn struct_type(&self, name: &str) -> Option<&Type> {
        self.struct_types.get(name)
    }

    pub(in crate::parse) fn set_struct_type(&mut self, name: String, ty: Type) {
        self.struct_types.insert(name, ty);
    }

    /// Returns the `#[tma_device]` function `name` of a struct.
    pub(in crate::parse) fn method(&self, of: &str, name: &str) -> Option<&'a syn::ItemFn> {
        let is_meant =
            |method: &&DeviceMethod| method.of == of && names::text(&method.function.sig.ident) == name;
        self.items.methods.iter().find(is_meant).map(|method| &method.function)
    }

    /// Returns the names of the `#[tma_device]` functions of a struct.
    pub(in crate::parse) fn method_names(&self, of: &str) -> Vec<String> {
        let methods = self.items.methods.iter().filter(|method| method.of == of);
        methods.map(|method| names::text(&method.function.sig.ident)).collect()
    }

    /// Returns the item of the host that takes this name.
    pub(in crate::parse) fn host_item(&self, name: &str, space: Space) -> Option<&'a HostItemDecl> {
        self.items.host_items.iter().find(|item| item.name == name && item.spaces.contains(&space))
    }

    /// Returns the constant of this name.
    pub(in crate::parse) fn constant(&self, name: &str) -> Option<ConstantItem<'a>> {
        let index = self.items.constants.iter().position(|item| names::text(&item.ident) == name)?;
        Some(ConstantItem { index, item: &self.items.constants[index] })
    }

    /// Returns the names of the constants.
    pub(in crate::parse) fn constant_names(&self) -> impl Iterator<Item = String> {
        self.items.constants.iter().map(|item| item.ident.to_string())
    }

    /// Returns the evaluation of a constant, if it has begun.
    pub(in crate::parse) fn evaluation(&self, constant: ConstantItem<'_>) -> Option<&Evaluation> {
        self.constants.get(&constant.index)
    }

    pub(in crate::parse) fn set_evaluation(&mut self, constant: ConstantItem<'_>, evaluation: Evaluation) {
        self.constants.insert(constant.index, evaluation);
    }
}
