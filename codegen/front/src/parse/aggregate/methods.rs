//! Functions of structs: methods, and associated functions.

use super::place::Place;
use crate::diag::mistake::Name;
use crate::ir::{Compound, Expr, ExprKind, Span, StructType, Type};
use crate::parse::cx::{Cx, Scoped};
use crate::parse::device::{Argument, DeviceFn};
use crate::parse::item::structs::receiver_type;
use crate::parse::names;
use crate::parse::types::{generic_arguments, turbofish_arguments};

impl Cx<'_> {
    /// Resolves `Point::new(..)`.
    pub(in crate::parse) fn struct_function(
        &mut self,
        function: Scoped<&syn::ItemFn>,
        of: StructType,
        path: &syn::PathSegment,
        args: &[&syn::Expr],
        span: Span,
    ) -> Expr {
        let device = DeviceFn { item: function, of: Some(of), generics: generic_arguments(path) };
        self.inlined_call(&device, None, args, span)
    }

    /// Resolves `point.area()`.
    pub(in crate::parse) fn struct_method(
        &mut self,
        of: &StructType,
        receiver: Expr,
        call: &syn::ExprMethodCall,
        span: Span,
    ) -> Expr {
        let name = names::text(&call.method);
        let method = self.module.method(of, &name);
        let taken = method.and_then(|method| Some((method, receiver_type(method.item)?)));
        let Some((function, taken)) = taken else {
            let mut known = self.module.method_names(of);
            known.retain(|name| self.module.method(of, name).is_some_and(|method| has_receiver(method.item)));
            let is_function = method.is_some();
            let of = of.name.clone();
            self.error(Name::StructMethod { of, name, known, is_function }, call.method.span().into());
            for arg in &call.args {
                self.argument(arg);
            }
            return Expr::error(span);
        };
        let receiver = match taken {
            syn::Type::Reference(reference) => {
                self.receiver(receiver, &call.receiver, reference.mutability.is_some())
            }
            _ => Argument::Value(receiver),
        };
        let generics = turbofish_arguments(call);
        let device = DeviceFn { item: function, of: Some(of.clone()), generics };
        let args: Vec<_> = call.args.iter().collect();
        self.inlined_call(&device, Some(receiver), &args, span)
    }

    /// Takes a receiver by reference, as rustc does on its own.
    fn receiver(&mut self, value: Expr, syntax: &syn::Expr, by_mut: bool) -> Argument {
        let span = value.span;
        match self.place(syntax) {
            Some(Place { name, mutable: false, .. }) if by_mut => {
                self.not_assignable(&name, span);
                Argument::Value(Expr::error(span))
            }
            Some(place) => Argument::Reference { value: place.value, mutable: by_mut },
            None => {
                let value = self.stored("temporary", true, value, span);
                Argument::Reference { value, mutable: by_mut }
            }
        }
    }

    /// Resolves the name of a unit struct.
    pub(in crate::parse) fn unit_struct(&mut self, path: &syn::Path, span: Span) -> Expr {
        match self.path_type(path) {
            Type::Compound(Compound::Struct(of)) if of.fields.is_empty() => {
                let ty = Type::Compound(Compound::Struct(of));
                Expr { kind: ExprKind::Compound(vec![]), ty, span }
            }
            Type::Error => Expr::error(span),
            other => {
                let found = self.infer.partial(&other);
                self.error(Name::TypeAsValue(found), span);
                Expr::error(span)
            }
        }
    }
}

fn has_receiver(function: &syn::ItemFn) -> bool {
    receiver_type(function).is_some()
}
