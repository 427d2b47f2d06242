//! How methods take what they are called on.

use crate::ir::{Scalar, Type};
use crate::parse::cx::{Binding, Cx};
use crate::parse::names::{By, Meaning, Method, WordUse, note};
use crate::parse::words::{Entry, Mark, NumberWord, Signature, TypeWord, Word};

impl Cx<'_> {
    /// Notes a method that a trait of the user could take the place of.
    pub(super) fn takes_method(&mut self, ty: &Type, word: &Entry, name: &syn::Ident) {
        let Some(of) = TypeWord::of(ty) else { return };
        let tiles = if let Type::Compound(compound) = ty { compound.fields().len() } else { 0 };
        let taken = word.signature.taken();
        for held in [By::Value, By::Reference, By::MutReference] {
            if held != By::Value && (is_of_ord(ty, &word.name) || !self.has_reference(ty, held)) {
                continue;
            }
            let method = Method { of, tiles, held, taken };
            if !method.earlier_steps().is_empty() {
                note(
                    &mut self.words,
                    WordUse { path: name.clone().into(), meaning: Meaning::Method(method) },
                );
            }
        }
    }

    /// Whether the function has a parameter that is such a reference to a value of the type. What
    /// is called on a value of it may be called on the reference: variables hold either.
    fn has_reference(&self, ty: &Type, held: By) -> bool {
        let scopes = self.frames.last().into_iter().flat_map(|frame| &frame.scopes);
        scopes.flat_map(|scope| scope.values()).any(|binding| {
            let (of, is_mut) = match binding {
                Binding::Reference { id, mutable } => (&self.locals[id.0 as usize].ty, *mutable),
                Binding::Compound { value, mutable, is_reference: true } => (&value.ty, *mutable),
                Binding::Value(_) | Binding::Local { .. } | Binding::Compound { .. } => return false,
            };
            is_mut == (held == By::MutReference) && self.resolve(of) == *ty
        })
    }
}

/// Whether it is a method of [`Ord`], which references have as well: at each step where a trait of
/// the user could have it there is `Ord` too, and rustc cannot choose.
fn is_of_ord(ty: &Type, name: &str) -> bool {
    ty.as_scalar().is_some_and(Scalar::is_integer)
        && matches!(NumberWord::named(name), Some(NumberWord::Min | NumberWord::Max))
}

impl Signature {
    /// How the method takes its receiver.
    pub(in crate::parse) fn taken(&self) -> By {
        match (self.has(Mark::ByRef), self.has(Mark::ByMut)) {
            (_, true) => By::MutReference,
            (true, false) => By::Reference,
            (false, false) => By::Value,
        }
    }
}
