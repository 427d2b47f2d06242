//! The instance of a kernel: its generics and launch bounds.

use std::collections::HashMap;

use crate::ir::{Argument, Cluster, Type};

/// The generics and launch bounds of an instance.
pub(in crate::parse) struct Instance {
    /// Threads per block.
    pub(in crate::parse) threads: [u32; 3],
    /// The cluster shape.
    pub(in crate::parse) cluster: Cluster,
    /// The arguments of the type generics.
    type_arguments: HashMap<String, syn::Type>,
    /// The type generics that are used as types of values.
    used_types: Vec<UsedType>,
    /// The arguments of all generics, in order.
    arguments: Vec<Argument>,
}

/// A type generic that is used as the type of a value.
struct UsedType {
    generic: String,
    ty: Type,
}

impl Instance {
    pub(super) fn new() -> Self {
        Self {
            threads: [1; 3],
            cluster: Cluster::None,
            type_arguments: HashMap::new(),
            used_types: vec![],
            arguments: vec![],
        }
    }

    /// Records the argument of the next const generic.
    pub(in crate::parse) fn bind_const(&mut self, argument: Argument) {
        self.arguments.push(argument);
    }

    /// Records the argument of the next generic, the type generic `name`.
    pub(in crate::parse) fn bind_type(&mut self, name: String, ty: syn::Type, argument: Argument) {
        self.arguments.push(argument);
        self.type_arguments.insert(name, ty);
    }

    /// Returns the argument of the type generic `name`.
    pub(in crate::parse) fn type_argument(&self, name: &str) -> Option<&syn::Type> {
        self.type_arguments.get(name)
    }

    /// Records that the type generic is used as the type `ty` of a value.
    pub(in crate::parse) fn use_type(&mut self, generic: String, ty: Type) {
        if !self.used_types.iter().any(|used| used.generic == generic) {
            self.used_types.push(UsedType { generic, ty });
        }
    }

    /// Returns the type generics that are used as the type `ty` of a value.
    pub(in crate::parse) fn generics_with_type(&self, ty: &Type) -> impl Iterator<Item = &str> {
        self.used_types.iter().filter(move |used| used.ty == *ty).map(|used| used.generic.as_str())
    }

    /// Returns the arguments of all generics, in order.
    pub(in crate::parse) fn into_arguments(self) -> Vec<Argument> {
        self.arguments
    }
}
