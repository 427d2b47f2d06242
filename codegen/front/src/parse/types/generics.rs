//! The type generics of the function that is being parsed.

use syn::GenericArgument;

use super::type_path;
use crate::ir::{GenericValue, Type};
use crate::parse::cx::Cx;
use crate::parse::names;

impl Cx<'_> {
    /// Resolves the argument of a type generic in a call of a device function.
    pub(in crate::parse) fn type_generic(&mut self, argument: &GenericArgument) -> Option<GenericValue> {
        let part = type_path(argument).and_then(|path| self.bound_generic(path));
        if let Some(part @ (GenericValue::Shape(_) | GenericValue::Swizzle(_))) = part {
            return Some(part);
        }
        match self.part_word(argument) {
            Some(word) if word.is_shape() => self.shape(argument).map(GenericValue::Shape),
            Some(_) => self.swizzle(argument).map(GenericValue::Swizzle),
            None => match self.type_argument(argument)? {
                Type::Error => None,
                ty => Some(GenericValue::Type(ty)),
            },
        }
    }

    /// Returns the argument of a type generic of the device function that is being parsed.
    pub(super) fn bound_generic(&self, path: &syn::Path) -> Option<GenericValue> {
        let name = names::lone_name(path)?;
        self.frames.type_argument(&name).cloned()
    }

    /// Whether a type generic of the function that is being parsed has this name.
    pub(in crate::parse) fn is_type_generic(&self, name: &str) -> bool {
        self.generic_type(name).is_some() || self.frames.type_argument(name).is_some()
    }

    /// Returns the argument of the type generic `name` of the kernel itself.
    pub(super) fn generic_type(&self, name: &str) -> Option<syn::Type> {
        self.instance.type_argument(name).filter(|_| self.frames.in_kernel()).cloned()
    }
}
