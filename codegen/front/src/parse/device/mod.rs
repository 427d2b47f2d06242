//! Calls of device functions, which are inlined.

pub(in crate::parse) mod generics;
mod infer;

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::Expr as Syntax;
use syn::ext::IdentExt;

use super::aggregate::is_aggregate;
use super::aggregate::place::Place;
use super::cx::{Binding, Cx, Exit, Frame, Scoped};
use super::item::condition;
use super::names;
use super::order::spill_if_changed;
use super::signature::parameter;
use super::stmt::unit;
use super::types::generic_arguments;
use crate::diag::mistake::{self, Mismatch, Signature, Value};
use crate::infer::Kind;
use crate::ir::{Block, Callee, Compound, Expr, ExprKind, Span, StmtKind, StructType, Type};
use generics::Generics;

impl Cx<'_> {
    /// Inlines a call of a device function.
    pub(super) fn device_call(
        &mut self,
        item: Scoped<&syn::ItemFn>,
        path: &syn::PathSegment,
        args: &[&Syntax],
        span: Span,
    ) -> Expr {
        let device = DeviceFn { item, of: None, generics: generic_arguments(path) };
        self.inlined_call(&device, None, args, span)
    }

    /// Inlines a call of a function with these arguments, of which the receiver of a method has
    /// been evaluated.
    pub(super) fn inlined_call(
        &mut self,
        device: &DeviceFn<'_>,
        receiver: Option<Argument>,
        args: &[&Syntax],
        span: Span,
    ) -> Expr {
        let Scoped { item, scope } = device.item;
        let name = match &device.of {
            Some(of) => format!("{}::{}", of.name, names::text(&item.sig.ident)),
            None => names::text(&item.sig.ident),
        };
        if self.frames.contains(&name, scope) {
            self.error(Signature::Recursion { function: name }, span);
            return Expr::error(span);
        }
        if self.nesting.in_constant() && item.sig.constness.is_none() {
            self.error(Value::NotConstFn { function: name }, span);
            return Expr::error(span);
        }
        if !self.may_enter(span) {
            return Expr::error(span);
        }
        condition::refuse_on_function(item, self.sink);
        let wanted = item.sig.inputs.len() - usize::from(receiver.is_some());
        if wanted != args.len() {
            let found = args.len();
            self.error(mistake::Argument::Device { function: name, wanted, found }, span);
            return Expr::error(span);
        }
        let mut generics = Generics::of(scope, &item.sig.generics.params);
        if !self.read_generics(&mut generics, &device.generics, &name, span) {
            return Expr::error(span);
        }
        let call = self.builder.record_call(Callee::Device(name.clone()), span);
        let mut frame = Frame::new(name.clone(), scope);
        frame.set_self_type(device.of.clone().map(|of| Type::Compound(Compound::Struct(of))));
        // Arguments are evaluated in the caller's scope, and bound in the function's.
        let arguments = self.arguments_in_order(receiver, args);
        if !generics.is_complete() {
            self.infer_from_arguments(&mut generics, item, &arguments);
            if !generics.is_complete() && arguments.iter().any(|argument| argument.value().is_error()) {
                return Expr::error(span);
            }
        }
        if !self.bind_generics(&generics, &mut frame, &name, span) {
            return Expr::error(span);
        }
        frame.set_generics(item.sig.generics.clone());
        let inlined =
            self.in_call(span, |cx| cx.in_frame(frame, Some(call), |cx| cx.inline(item, arguments, span)));
        let Some(Inlined { exit, body }) = inlined else { return Expr::error(span) };
        self.builder.emit(StmtKind::Labelled { label: exit.label, body }, span);
        match (exit.result, exit.parts) {
            (Some(result), _) => self.builder.read(result, span),
            (None, Some(parts)) => Expr { span, ..parts },
            // The function never returns.
            (None, None) if is_aggregate(&exit.ty) => Expr { ty: Type::Never, ..unit(span) },
            (None, None) => Expr { ty: exit.ty, ..unit(span) },
        }
    }

    /// Parses a function's body for these arguments. Returns `None` if the function's result is
    /// rejected.
    fn inline(&mut self, item: &syn::ItemFn, arguments: Vec<Argument>, span: Span) -> Option<Inlined> {
        let ty = match &item.sig.output {
            syn::ReturnType::Default => Type::Unit,
            syn::ReturnType::Type(_, ty) => self.ty(ty),
        };
        let used = names_in(item.block.to_token_stream());
        for (input, argument) in item.sig.inputs.iter().zip(arguments) {
            self.bind_argument(input, argument, &used);
        }
        // The type of a literal may be the argument of a type generic.
        let returnable = ty.is_storable() && self.infer.kind(&ty) != Some(Kind::Any);
        if !returnable && !is_aggregate(&ty) && !matches!(ty, Type::Unit | Type::Never | Type::Error) {
            self.error(Signature::DeviceResult(self.infer.partial(&ty)), Span::of(&item.sig.output));
            return None;
        }
        let result_name = || format!("{} result", item.sig.ident);
        let result = returnable.then(|| self.builder.local(result_name(), ty.clone(), span));
        let is_only = !used.contains("return");
        let exit = Exit { label: self.builder.label(), result, parts: None, is_only, ty };
        self.frames.set_exit(exit.clone());
        let (body, ()) = self.block(|cx| {
            let value = cx.block_value(&item.block);
            if value.ty != Type::Never {
                let span = value.span;
                cx.leave(&exit, value, span);
            }
        });
        let exit = self.frames.exit().cloned().unwrap_or(exit);
        Some(Inlined { exit, body })
    }

    fn infer_from_arguments(
        &mut self,
        generics: &mut Generics<'_>,
        item: &syn::ItemFn,
        arguments: &[Argument],
    ) {
        for (input, argument) in item.sig.inputs.iter().zip(arguments) {
            if let syn::FnArg::Typed(typed) = input {
                let value = argument.value();
                self.infer_generics(generics, &typed.ty, &value.ty, value.span);
            }
        }
    }

    fn arguments_in_order(&mut self, receiver: Option<Argument>, args: &[&Syntax]) -> Vec<Argument> {
        let mut all: Vec<Argument> = receiver.into_iter().collect();
        for arg in args {
            let (effects, argument) = self.block(|cx| cx.argument(arg));
            for earlier in &mut all {
                if let Argument::Value(value) = earlier {
                    spill_if_changed(&mut self.builder, std::slice::from_mut(value), &effects);
                }
            }
            self.builder.append(effects);
            all.push(argument);
        }
        all
    }

    pub(super) fn argument(&mut self, arg: &Syntax) -> Argument {
        let span = Span::of(arg);
        match arg {
            Syntax::Paren(paren) => self.argument(&paren.expr),
            Syntax::Reference(reference) => {
                self.reference(&reference.expr, reference.mutability.is_some(), span)
            }
            // A reference passed on to another function.
            Syntax::Path(path) => match own_variable(path).and_then(|name| self.frames.lookup(&name)) {
                Some(&Binding::Reference { id, mutable }) => {
                    Argument::Reference { value: self.builder.read(id, span), mutable }
                }
                Some(Binding::Compound { value, mutable, is_reference: true }) => {
                    Argument::Reference { value: value.clone(), mutable: *mutable }
                }
                _ => Argument::Value(self.expr(arg)),
            },
            _ => Argument::Value(self.expr(arg)),
        }
    }

    /// Resolves `&x`, `&mut x`, and `&mut *x` of a reference, where `x` may be a field.
    pub(super) fn reference(&mut self, expr: &Syntax, mutable: bool, span: Span) -> Argument {
        let target = match expr {
            Syntax::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => &*unary.expr,
            other => other,
        };
        if let Syntax::Path(path) = target
            && let Some(name) = own_variable(path)
        {
            match self.frames.lookup(&name).cloned() {
                Some(Binding::Local { id, mutable: can } | Binding::Reference { id, mutable: can }) => {
                    if mutable && !can {
                        self.not_assignable(&name, span);
                    }
                    return Argument::Reference { value: self.builder.read(id, span), mutable };
                }
                Some(Binding::Compound { value, mutable: can, .. }) => {
                    if mutable && !can {
                        self.not_assignable(&name, span);
                        if is_aggregate(&value.ty) {
                            return Argument::Value(Expr::error(span));
                        }
                    }
                    return Argument::Reference { value: Expr { span, ..value }, mutable };
                }
                // A variable with a known value, which has no storage yet.
                Some(Binding::Value(value))
                    if matches!(value.ty, Type::Scalar(_) | Type::Array(..) | Type::Infer(_)) =>
                {
                    if mutable {
                        self.not_assignable(&name, span);
                    }
                    let (id, read) = self.builder.temporary(&name, value.ty.clone(), span);
                    self.builder.assign(id, value);
                    return Argument::Reference { value: read, mutable };
                }
                _ => {}
            }
        }
        match self.place(expr) {
            Some(place) if matches!(target, Syntax::Field(_)) => self.reference_to(place, mutable, span),
            _ => self.reference_to_temporary(expr, mutable, span),
        }
    }

    /// Refers to a field.
    fn reference_to(&mut self, place: Place, mutable: bool, span: Span) -> Argument {
        if mutable && !place.mutable {
            self.not_assignable(&place.name, span);
            return Argument::Value(Expr::error(span));
        }
        let value = match place.value.kind {
            ExprKind::Local(_) | ExprKind::Compound(_) => place.value,
            _ if self.infer.resolve(&place.value.ty).is_storable() && !mutable => {
                let (id, read) = self.builder.temporary(&place.name, place.value.ty.clone(), span);
                self.builder.assign(id, place.value);
                read
            }
            _ => {
                self.error(mistake::Syntax::Reference, span);
                return Argument::Value(Expr::error(span));
            }
        };
        Argument::Reference { value: Expr { span, ..value }, mutable }
    }

    /// Refers to a struct or tuple that no variable holds.
    fn reference_to_temporary(&mut self, expr: &Syntax, mutable: bool, span: Span) -> Argument {
        if let Syntax::Call(_) | Syntax::MethodCall(_) | Syntax::Struct(_) | Syntax::Tuple(_) = expr {
            let value = self.expr(expr);
            if value.is_error() {
                return Argument::Value(value);
            }
            if is_aggregate(&self.infer.resolve(&value.ty)) {
                let value = self.stored("temporary", true, value, span);
                return Argument::Reference { value, mutable };
            }
        }
        let is_element = matches!(expr, Syntax::Index(_));
        let mistake = match is_element {
            true => mistake::Syntax::ReferenceToElement { mutable },
            false => mistake::Syntax::Reference,
        };
        self.error(mistake, span);
        Argument::Value(Expr::error(span))
    }

    /// Binds a parameter. `used` holds the names in the function's body.
    fn bind_argument(&mut self, input: &syn::FnArg, argument: Argument, used: &HashSet<String>) {
        let Some((name, mutable, ty)) = parameter(self.sink, input) else { return };
        match (ty, argument) {
            (syn::Type::Reference(reference), Argument::Reference { value, mutable: given }) => {
                let want = self.ty(&reference.elem);
                let mutable = reference.mutability.is_some();
                if mutable && !given {
                    self.error(Mismatch::Shared, value.span);
                }
                let fits = self.expect(&value, &want);
                let binding = match value.kind {
                    ExprKind::Local(id) if fits => Binding::Reference { id, mutable },
                    ExprKind::Compound(_) if fits => Binding::Compound { value, mutable, is_reference: true },
                    _ => Binding::Value(Expr::error(value.span)),
                };
                self.bind(&name, binding);
            }
            (syn::Type::Reference(_), Argument::Value(value)) => {
                if !value.is_error() {
                    self.error(Mismatch::Value, value.span);
                }
                self.bind(&name, Binding::Value(Expr::error(value.span)));
            }
            (_, Argument::Reference { value, .. }) => {
                self.error(Mismatch::Reference, value.span);
                self.bind(&name, Binding::Value(Expr::error(value.span)));
            }
            (ty, Argument::Value(value)) => {
                let want = self.ty(ty);
                let fits = value.is_error() || self.expect(&value, &want);
                let value = if fits { value } else { Expr::error(value.span) };
                if !used.contains(&names::text(&name)) {
                    // An unused argument needs no variable. LLVM would remove its code, but only
                    // after that code had affected how nearby addresses are formed.
                    return self.bind(&name, Binding::Value(value));
                }
                self.bind_value(&name, mutable, value, Some(want));
            }
        }
    }
}

/// Collects every name in a function's body, including names in format strings.
fn names_in(tokens: TokenStream) -> HashSet<String> {
    fn note(tokens: TokenStream, names: &mut HashSet<String>) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    names.insert(name.unraw().to_string());
                }
                TokenTree::Group(group) => note(group.stream(), names),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                    names.extend(words.map(str::to_owned));
                }
                TokenTree::Punct(_) => {}
            }
        }
    }
    let mut names = HashSet::new();
    note(tokens, &mut names);
    names
}

/// A function that is inlined.
pub(super) struct DeviceFn<'a> {
    pub(super) item: Scoped<&'a syn::ItemFn>,
    /// The struct that has the function.
    pub(super) of: Option<StructType>,
    /// The generic arguments.
    pub(super) generics: Vec<&'a syn::GenericArgument>,
}

/// An inlined function.
struct Inlined {
    exit: Exit,
    body: Block,
}

/// An argument of a device function, or of a method that takes a reference.
pub(super) enum Argument {
    Value(Expr),
    Reference { value: Expr, mutable: bool },
}

impl Argument {
    fn value(&self) -> &Expr {
        match self {
            Self::Value(value) | Self::Reference { value, .. } => value,
        }
    }
}

/// Returns the name, if `path` may refer to a variable.
pub(super) fn own_variable(path: &syn::ExprPath) -> Option<String> {
    names::lone_name(&path.path).filter(|_| path.qself.is_none())
}
