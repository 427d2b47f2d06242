//! The type generics of the function that is being parsed, and the types that stand for others.

use syn::GenericArgument;

use super::{MOST_ALIASES, type_path};
use crate::ir::{GenericValue, Type};
use crate::parse::cx::{Cx, Scoped};
use crate::parse::names;
use crate::words::TypeWord;

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

    /// Returns the shape or swizzle that a type names, through aliases and generics of the kernel.
    fn part_word(&self, argument: &GenericArgument) -> Option<TypeWord> {
        let mut path = type_path(argument)?;
        let generic = names::lone_name(path).and_then(|name| self.generic_type(&name));
        let generic = generic.map(GenericArgument::Type);
        if let Some(argument) = &generic {
            path = type_path(argument)?;
        }
        let mut within = self.module.scope();
        for _ in 0..MOST_ALIASES {
            let alias = names::own_name(path).and_then(|name| self.module.alias_in(within, &name));
            let Some(Scoped { item: alias, scope }) = alias else { break };
            let syn::Type::Path(aliased) = &*alias.ty else { return None };
            (path, within) = (&aliased.path, scope);
        }
        TypeWord::named(&names::last_name(path)?).filter(|word| word.is_part())
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
