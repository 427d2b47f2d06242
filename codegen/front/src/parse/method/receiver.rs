//! How methods take their receivers.

use crate::ir::{GenericValue, Scalar, Type};
use crate::parse::cx::{Binding, Cx};
use crate::parse::names::{Meaning, Method, MethodOfGeneric, WordUse};
use crate::words::{Entry, NumberWord, ReceiverKind, TypeWord, Word};

impl Cx<'_> {
    /// Records a method call that a trait of the user could intercept.
    pub(super) fn takes_method(&mut self, ty: &Type, entry: &Entry, call: &syn::ExprMethodCall) {
        let name = &call.method;
        let word = |meaning| WordUse { path: name.clone().into(), meaning };
        if is_of_ord(ty, &entry.name) {
            self.note_word(word(Meaning::OrdMethod));
        }
        for generic in self.generics_with_type(ty) {
            let (generics, arguments) = (self.frames.generics().clone(), call.args.len());
            let method = MethodOfGeneric { generics, generic, arguments };
            self.note_word(word(Meaning::MethodOfGeneric(method)));
        }
        let Some(of) = TypeWord::of(ty) else { return };
        let tiles = if let Type::Compound(compound) = ty { compound.fields().len() } else { 0 };
        let taken = entry.signature.taken();
        for held in [ReceiverKind::Value, ReceiverKind::Reference, ReceiverKind::MutReference] {
            if held != ReceiverKind::Value && (is_of_ord(ty, &entry.name) || !self.has_reference(ty, held)) {
                continue;
            }
            let method = Method { of, tiles, held, taken };
            if !method.earlier_steps().is_empty() {
                self.note_word(word(Meaning::Method(method)));
            }
        }
    }

    /// Returns the type generics of the innermost function that may be the type `ty` of a value.
    fn generics_with_type(&self, ty: &Type) -> Vec<String> {
        if self.frames.in_kernel() {
            return self.instance.generics_with_type(ty).map(str::to_owned).collect();
        }
        let is_meant = |argument: &GenericValue| match argument {
            GenericValue::Type(of) => self.infer.resolve(of) == *ty,
            GenericValue::Shape(_)
            | GenericValue::Swizzle(_)
            | GenericValue::Integer(_)
            | GenericValue::Bool(_) => false,
        };
        let all = self.frames.type_arguments().iter();
        all.filter(|(_, argument)| is_meant(argument)).map(|(name, _)| name.clone()).collect()
    }

    /// Whether the function has a parameter that is a reference of this kind to a value of the
    /// type. A method called on a value may then be called on the reference, as variables hold
    /// either.
    fn has_reference(&self, ty: &Type, held: ReceiverKind) -> bool {
        self.frames.bindings().any(|binding| {
            let (of, is_mut) = match binding {
                Binding::Reference { id, mutable } => (self.builder.type_of(*id), *mutable),
                Binding::Compound { value, mutable, is_reference: true } => (&value.ty, *mutable),
                Binding::Value(_) | Binding::Local { .. } | Binding::Compound { .. } => return false,
            };
            is_mut == (held == ReceiverKind::MutReference) && self.infer.resolve(of) == *ty
        })
    }
}

/// Whether it is a method of [`Ord`], which references have as well. At each lookup step at which a
/// trait of the user could provide the method, `Ord` provides it too, and rustc reports an
/// ambiguity.
fn is_of_ord(ty: &Type, name: &str) -> bool {
    let may_be_integer = matches!(ty, Type::Infer(_)) || ty.as_scalar().is_some_and(Scalar::is_integer);
    may_be_integer && NumberWord::named(name).is_some_and(NumberWord::is_of_ord)
}
