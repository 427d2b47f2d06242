//! The types of structs and tuples.

use crate::diag::mistake::{Aggregate, Name};
use crate::ir::{Compound, Field, Span, StructType, Type};
use crate::parse::cx::{Cx, Scoped};
use crate::parse::item::condition;
use crate::parse::names;
use crate::parse::types::has_arguments;

/// The maximum number of values in a struct or tuple, with those of its parts. Types of types could
/// otherwise double in size with each declaration.
const MEMBERS: usize = 256;

impl Cx<'_> {
    /// Resolves the type of a tuple.
    pub(in crate::parse) fn tuple_type(&mut self, tuple: &syn::TypeTuple) -> Type {
        let elements: Vec<_> = tuple.elems.iter().map(|element| self.ty(element)).collect();
        self.tuple_of(elements, Span::of(tuple))
    }

    /// Returns the type of a tuple of these elements.
    pub(super) fn tuple_of(&mut self, elements: Vec<Type>, span: Span) -> Type {
        if elements.contains(&Type::Error) {
            return Type::Error;
        }
        self.limited(Compound::Tuple(elements), span)
    }

    /// Returns the type of an array of structs or tuples.
    pub(in crate::parse) fn array_of(&mut self, element: Type, len: u32, span: Span) -> Type {
        let found = values_in(&element).saturating_mul(len as usize);
        if found > MEMBERS {
            self.error(Aggregate::Size { found, most: MEMBERS }, span);
            return Type::Error;
        }
        Type::Compound(Compound::Array(Box::new(element), len))
    }

    /// Resolves the type of a struct of the module.
    pub(in crate::parse) fn struct_type(&mut self, item: Scoped<&syn::ItemStruct>, path: &syn::Path) -> Type {
        let Scoped { item, scope } = item;
        let (name, span) = (names::text(&item.ident), Span::of(path));
        let is_generic = !item.generics.params.is_empty();
        if is_generic || path.segments.last().is_some_and(has_arguments) {
            self.error(Aggregate::Generic { name }, if is_generic { Span::of(&item.ident) } else { span });
            return Type::Error;
        }
        if let Some(known) = self.module.struct_type(scope, &name) {
            return known.clone();
        }
        condition::refuse_on_struct(item, self.sink);
        // rustc reports a struct that contains itself. The limit only prevents infinite recursion.
        if !self.may_enter(span) {
            return Type::Error;
        }
        let fields: Vec<_> = self.at_module_level(scope, &name, |cx| {
            let field = |(i, field): (usize, &syn::Field)| {
                let name = field.ident.as_ref().map_or_else(|| i.to_string(), names::text);
                Field { name, ty: cx.ty(&field.ty) }
            };
            item.fields.iter().enumerate().map(field).collect()
        });
        let ty = if fields.iter().any(|field| field.ty == Type::Error) {
            Type::Error
        } else {
            let ty = StructType { module: scope.number(), name: name.clone(), arguments: vec![], fields };
            self.limited(Compound::Struct(ty), span)
        };
        self.module.set_struct_type(scope, name, ty.clone());
        ty
    }

    fn limited(&mut self, compound: Compound, span: Span) -> Type {
        let ty = Type::Compound(compound);
        let found = values_in(&ty);
        if found > MEMBERS {
            self.error(Aggregate::Size { found, most: MEMBERS }, span);
            return Type::Error;
        }
        ty
    }

    /// Resolves the path of a struct in a literal, a pattern or a call.
    pub(super) fn struct_of(&mut self, path: &syn::Path) -> Option<StructType> {
        match self.path_type(path) {
            Type::Compound(Compound::Struct(of)) => Some(of),
            Type::Error => None,
            other => {
                let found = self.infer.partial(&other);
                self.error(Name::NoStruct(found), Span::of(path));
                None
            }
        }
    }
}

/// Returns the number of values in a type without parts, or in its parts.
fn values_in(ty: &Type) -> usize {
    match ty {
        Type::Compound(compound) => match compound.members() {
            Some(members) => members.into_iter().map(values_in).sum(),
            None => 1,
        },
        _ => 1,
    }
}
