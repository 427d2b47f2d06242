//! How methods take what they are called on.

use super::methods;
use crate::ir::{Compound, Type};
use crate::parse::cx::{Binding, Cx};
use crate::parse::names::{By, Meaning, Method, Word, note};

impl Cx<'_> {
    /// Notes a method that a trait of the user could take the place of.
    pub(super) fn takes_method(&mut self, ty: &Type, call: &syn::ExprMethodCall) {
        let name = &call.method;
        let word = |meaning| Word { path: name.clone().into(), meaning };
        if is_of_ord(ty, name) {
            note(&mut self.words, word(Meaning::OrdMethod));
        }
        // Device functions have no type generics.
        if self.frames.len() == 1 {
            for (generic, _) in self.generic_types.iter().filter(|(_, argument)| argument == ty) {
                let meaning = Meaning::MethodOfGeneric(generic.clone(), call.args.len());
                note(&mut self.words, word(meaning));
            }
        }
        if methods(ty).is_empty() || matches!(ty, Type::Infer(_)) {
            return;
        }
        let taken = taken(ty, &name.to_string());
        let tiles = match ty {
            Type::Compound(Compound::LoadingSlot(tiles) | Compound::FullSlot(tiles)) => tiles.len(),
            _ => 0,
        };
        for held in [By::Value, By::Reference, By::MutReference] {
            if held != By::Value && (is_of_ord(ty, name) || !self.has_reference(ty, held)) {
                continue;
            }
            let shown = ty.to_string();
            let of = shown.split('<').next().unwrap_or_default().to_owned();
            let method = Method { of, tiles, held, taken };
            if !method.earlier_steps().is_empty() {
                note(&mut self.words, word(Meaning::Method(method)));
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
fn is_of_ord(ty: &Type, name: &syn::Ident) -> bool {
    let may_be_integer = match ty {
        Type::Scalar(scalar) => scalar.is_integer(),
        other => matches!(other, Type::Infer(_)),
    };
    may_be_integer && (name == "min" || name == "max")
}

/// How the vocabulary's method takes its receiver.
fn taken(ty: &Type, name: &str) -> By {
    let Type::Compound(compound) = ty else { return By::Value };
    match (compound, name) {
        (Compound::Phase, "flip")
        | (Compound::Producer(_), "acquire" | "wait")
        | (Compound::Consumer(_), "wait") => By::MutReference,
        (Compound::Phase, "parity")
        | (Compound::Producer(_), "ready" | "drain")
        | (Compound::Consumer(_), "ready")
        | (Compound::EmptySlot(_) | Compound::FullSlot(_), "stage")
        | (Compound::LoadingSlot(_), "barrier" | "stage") => By::Reference,
        (
            Compound::Phase
            | Compound::Pipeline(_)
            | Compound::Producer(_)
            | Compound::Consumer(_)
            | Compound::EmptySlot(_)
            | Compound::LoadingSlot(_)
            | Compound::FullSlot(_),
            _,
        ) => By::Value,
    }
}
