//! The generics of a device function, with their arguments in one call.

use syn::{GenericArgument, GenericParam};

use crate::diag::mistake;
use crate::ir::{Const, Expr, ExprKind, GenericValue, Scalar, Span, Type};
use crate::parse::cx::{Binding, Cx, Frame, Scope};
use crate::parse::names;

/// The generics of a function, with the arguments that are known so far.
pub(in crate::parse) struct Generics<'s> {
    /// The module in which they are declared.
    scope: Scope,
    params: Vec<Param<'s>>,
}

struct Param<'s> {
    name: String,
    kind: ParamKind<'s>,
    argument: Option<GenericValue>,
}

#[derive(Clone, Copy)]
enum ParamKind<'s> {
    Type,
    /// A constant of this type.
    Const(&'s syn::Type),
}

impl<'s> Generics<'s> {
    /// Returns generics of which no argument is known. Lifetimes are left to rustc.
    pub(in crate::parse) fn of(scope: Scope, declared: impl IntoIterator<Item = &'s GenericParam>) -> Self {
        let params = declared.into_iter().filter_map(|param| {
            let (name, kind) = match param {
                GenericParam::Type(param) => (&param.ident, ParamKind::Type),
                GenericParam::Const(param) => (&param.ident, ParamKind::Const(&param.ty)),
                GenericParam::Lifetime(_) => return None,
            };
            Some(Param { name: names::text(name), kind, argument: None })
        });
        Self { scope, params: params.collect() }
    }

    /// Returns the module in which they are declared.
    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether all arguments are known.
    pub(in crate::parse) fn is_complete(&self) -> bool {
        self.params.iter().all(|param| param.argument.is_some())
    }

    /// Whether there is a type generic of this name.
    pub(in crate::parse) fn has_type(&self, name: &str) -> bool {
        self.params.iter().any(|param| param.name == name && matches!(param.kind, ParamKind::Type))
    }

    /// Whether there is a generic of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.params.iter().any(|param| param.name == name)
    }

    /// Returns the argument of a generic, if it is known.
    pub(in crate::parse) fn argument(&self, name: &str) -> Option<&GenericValue> {
        self.params.iter().find(|param| param.name == name)?.argument.as_ref()
    }

    /// Sets the argument of the generic `name`, if there is one of this kind.
    pub(in crate::parse) fn set(&mut self, name: &str, argument: GenericValue) {
        let is_const = matches!(argument, GenericValue::Integer(_) | GenericValue::Bool(_));
        let is_meant = |param: &&mut Param<'_>| {
            param.name == name && matches!(param.kind, ParamKind::Const(_)) == is_const
        };
        if let Some(param) = self.params.iter_mut().find(is_meant) {
            param.argument = Some(argument);
        }
    }
}

impl Cx<'_> {
    /// Reads the arguments in a call of `function`, of which `_` leaves one to inference, as a
    /// missing list leaves all. Returns false after an error.
    pub(in crate::parse) fn read_generics(
        &mut self,
        generics: &mut Generics<'_>,
        found: &[&GenericArgument],
        function: &str,
        span: Span,
    ) -> bool {
        let is_lifetime = |argument: &&&GenericArgument| matches!(argument, GenericArgument::Lifetime(_));
        let found: Vec<_> = found.iter().filter(|argument| !is_lifetime(argument)).collect();
        if found.is_empty() {
            return true;
        }
        if found.len() != generics.params.len() {
            let (wanted, found) = (generics.params.len(), found.len());
            let function = function.to_owned();
            self.error(mistake::Argument::DeviceGenerics { function, wanted, found }, span);
            return false;
        }
        let mut fits = true;
        let scope = generics.scope;
        for (param, argument) in generics.params.iter_mut().zip(found) {
            if let GenericArgument::Type(syn::Type::Infer(_)) = argument {
                continue;
            }
            param.argument = match param.kind {
                ParamKind::Type => self.type_generic(argument),
                ParamKind::Const(ty) => {
                    let ty = self.at_module_level(scope, function, |cx| cx.ty(ty));
                    self.const_generic(argument, &ty)
                }
            };
            fits &= param.argument.is_some();
        }
        fits
    }

    fn const_generic(&mut self, argument: &GenericArgument, ty: &Type) -> Option<GenericValue> {
        match self.constant_argument(argument, ty)?.kind {
            ExprKind::Const(Const::Int(value)) => Some(GenericValue::Integer(value)),
            ExprKind::Const(Const::Bool(value)) => Some(GenericValue::Bool(value)),
            // rustc reports a const generic of another type.
            _ => None,
        }
    }

    /// Binds all generics in `frame`. Reports those whose arguments are unknown, and returns false.
    pub(in crate::parse) fn bind_generics(
        &mut self,
        generics: &Generics<'_>,
        frame: &mut Frame,
        function: &str,
        span: Span,
    ) -> bool {
        for param in &generics.params {
            let name = param.name.clone();
            let Some(argument) = &param.argument else {
                let function = function.to_owned();
                self.error(mistake::Argument::UnknownGeneric { function, generic: name }, span);
                return false;
            };
            match param.kind {
                ParamKind::Type => frame.bind_type(name, argument.clone()),
                ParamKind::Const(ty) => {
                    let ty = self.at_module_level(generics.scope, function, |cx| cx.ty(ty));
                    frame.bind(name, Binding::Value(constant(argument, ty, span)));
                }
            }
        }
        true
    }
}

/// Returns the value of a const generic of type `ty`.
fn constant(argument: &GenericValue, ty: Type, span: Span) -> Expr {
    match argument {
        GenericValue::Integer(value) => Expr::constant(Const::Int(*value), ty, span),
        GenericValue::Bool(value) => Expr::constant(Const::Bool(*value), Scalar::Bool, span),
        GenericValue::Type(_) | GenericValue::Shape(_) | GenericValue::Swizzle(_) => Expr::error(span),
    }
}
