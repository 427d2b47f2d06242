//! A kernel's generics, launch bounds and parameters.

use std::collections::HashSet;

use syn::{GenericArgument, GenericParam, ItemFn, ReturnType};

use super::compound::compound;
use super::cx::{Binding, Cx, Module};
use super::instances::InstanceAttr;
use super::item::attr::KernelAttr;
use super::item::condition;
use super::names;
use super::stmt::unit;
use super::types::{MOST_ALIASES, scalar_named, swizzle_named};
use crate::abi;
use crate::diag::Sink;
use crate::diag::mistake::{Attribute, Instances, Qualifier, Signature, Syntax};
use crate::ir::{
    Argument, Cluster, Compound, Const, Expr, ExprKind, LaunchBounds, LaunchSpans, Param, PeerMemory,
    Presence, Scalar, Span, TeamNumber, Type,
};

/// Checks the part of the signature that does not depend on the instance.
pub(super) fn judge(function: &ItemFn, sink: &mut Sink) {
    let sig = &function.sig;
    let mut refuse = |span: Option<Span>, qualifier| {
        if let Some(span) = span {
            sink.error(Signature::Qualified(qualifier), span);
        }
    };
    let is_unsafe = !matches!(sig.safety, syn::Safety::Default);
    refuse(sig.asyncness.as_ref().map(Span::of), Qualifier::Async);
    refuse(sig.constness.as_ref().map(Span::of), Qualifier::Const);
    refuse(sig.abi.as_ref().map(Span::of), Qualifier::Extern);
    refuse(is_unsafe.then(|| Span::of(&sig.safety)), Qualifier::Unsafe);
    refuse(sig.variadic.as_ref().map(Span::of), Qualifier::Variadic);
    if let ReturnType::Type(_, ty) = &sig.output
        && !matches!(&**ty, syn::Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        sink.error(Signature::Result, Span::of(ty));
    }
    for param in &sig.generics.params {
        if let GenericParam::Lifetime(_) = param {
            sink.error(Signature::Lifetime, Span::of(param));
        }
    }
    condition::refuse_in_kernel(function, sink);
}

/// Checks the instances: their names, and the number of arguments of each.
pub(super) fn judge_instances(function: &ItemFn, instances: &[InstanceAttr], sink: &mut Sink) {
    let is_compiled = |param: &&GenericParam| !matches!(param, GenericParam::Lifetime(_));
    let wanted = function.sig.generics.params.iter().filter(is_compiled).count();
    if wanted > 0 && instances.is_empty() {
        let name = &function.sig.ident;
        let example = function.sig.generics.params.iter().filter_map(example).collect();
        sink.error(Instances::None { kernel: name.to_string(), example }, Span::of(name));
    }
    let mut names = HashSet::new();
    for instance in instances {
        let (name, span) = (instance.name.to_string(), Span::of(&instance.name));
        if !names.insert(name.clone()) {
            sink.error(Instances::SameName(name.clone()), span);
        }
        if abi::MODULE_TYPES.iter().any(|reserved| name == *reserved) {
            sink.error(Instances::ReservedName(name.clone()), span);
        }
        let found = instance.arguments.len();
        if found != wanted {
            sink.error(Instances::ArgumentCount { instance: name, found, wanted }, span);
        }
    }
}

impl Cx<'_> {
    /// Binds the generics to the constants and types of the instance. Returns false if these do not
    /// fit.
    pub(super) fn bind_instance(&mut self, function: &ItemFn, instance: Option<&InstanceAttr>) -> bool {
        let generics = &function.sig.generics.params;
        let arguments = instance.map(|instance| &instance.arguments[..]).unwrap_or_default();
        if generics.len() != arguments.len() {
            return false;
        }
        let mut fits = true;
        for (param, argument) in generics.iter().zip(arguments) {
            match param {
                GenericParam::Const(param) => {
                    let ty = self.ty(&param.ty);
                    match self.constant_of_instance(argument, &ty) {
                        Some(value) => {
                            self.instance.bind_const(match (&value.kind, ty.as_scalar()) {
                                (ExprKind::Const(value), Some(scalar)) => Argument::Const(*value, scalar),
                                _ => Argument::Other,
                            });
                            self.bind(&param.ident, Binding::Value(value));
                        }
                        None => fits = false,
                    }
                }
                GenericParam::Type(param) => match argument {
                    GenericArgument::Type(ty) => {
                        let argument = type_argument_is(&self.module, ty);
                        self.instance.bind_type(names::text(&param.ident), ty.clone(), argument);
                    }
                    other => {
                        let generic = param.ident.to_string();
                        self.error(Instances::NoType { generic }, Span::of(other));
                        fits = false;
                    }
                },
                GenericParam::Lifetime(_) => return false,
            }
        }
        fits
    }

    /// Evaluates the launch bounds of the attribute.
    pub(super) fn launch_bounds(&mut self, function: &ItemFn, attr: &KernelAttr) -> LaunchBounds {
        let name = Span::of(&function.sig.ident);
        let span_or_name = |value: &Option<syn::Expr>| value.as_ref().map_or(name, Span::of);
        let spans = LaunchSpans {
            threads: span_or_name(&attr.threads),
            min_blocks: span_or_name(&attr.min_blocks),
            max_registers: span_or_name(&attr.max_registers),
            cluster: span_or_name(&attr.cluster),
        };
        let threads = match &attr.threads {
            Some(syn::Expr::Array(array)) => self.extents("threads", array),
            Some(threads) => self.bound(threads).map_or([1; 3], |threads| [threads, 1, 1]),
            None if attr.is_malformed => [1; 3],
            None => {
                self.error(Attribute::NoThreads, name);
                [1; 3]
            }
        };
        LaunchBounds {
            threads,
            min_blocks: attr.min_blocks.as_ref().and_then(|value| self.bound(value)),
            max_registers: attr.max_registers.as_ref().and_then(|value| self.bound(value)),
            cluster: self.cluster(attr),
            nonportable_cluster: attr.nonportable_cluster.is_some(),
            spans,
        }
    }

    fn cluster(&mut self, attr: &KernelAttr) -> Cluster {
        match (&attr.cluster, &attr.nonportable_cluster) {
            (None, None) => Cluster::None,
            (None, Some(option)) => {
                self.error(Attribute::NonportableAlone, Span::of(option));
                Cluster::None
            }
            (Some(syn::Expr::Path(path)), _) if path.path.is_ident("launch") => Cluster::AtLaunch,
            (Some(syn::Expr::Array(array)), _) => Cluster::Fixed(self.extents("cluster", array)),
            (Some(blocks), _) => self.bound(blocks).map_or(Cluster::None, |x| Cluster::Fixed([x, 1, 1])),
        }
    }

    /// Evaluates `option = [x, y, z]`, whose trailing extents may be omitted.
    fn extents(&mut self, option: &'static str, array: &syn::ExprArray) -> [u32; 3] {
        let mut extents = [1; 3];
        if array.elems.is_empty() || array.elems.len() > 3 {
            let found = array.elems.len();
            self.error(Attribute::Dimensions { option, found }, Span::of(array));
            return extents;
        }
        for (extent, value) in extents.iter_mut().zip(&array.elems) {
            *extent = self.bound(value).unwrap_or(1);
        }
        extents
    }

    fn bound(&mut self, value: &syn::Expr) -> Option<u32> {
        self.constant(value, &Scalar::U32.into()).and_then(|value| u32::try_from(value.as_int()?).ok())
    }

    /// Declares the parameters.
    pub(super) fn bind_params(&mut self, function: &ItemFn) {
        let (mut options, mut peers) = (vec![], vec![]);
        for input in &function.sig.inputs {
            let Some((name, mutable, ty_syntax)) = parameter(self.sink, input) else { continue };
            let ty = self.ty(ty_syntax);
            let (span, ty_span) = (Span::of(&name), Span::of(ty_syntax));
            match ty {
                Type::TensorMap(_)
                | Type::Im2colMap(..)
                | Type::Maps(_)
                | Type::Global(_)
                | Type::Peers(_)
                | Type::Scalar(_)
                | Type::Compound(Compound::Option(_)) => {}
                Type::Error => {
                    self.bind(&name, Binding::Value(Expr::error(span)));
                    continue;
                }
                other => {
                    self.error(Signature::Parameter(self.infer.partial(&other)), ty_span);
                    self.bind(&name, Binding::Value(Expr::error(span)));
                    continue;
                }
            }
            let of = match ty {
                Type::Compound(Compound::Option(element)) => Type::Global(element),
                _ => ty.clone(),
            };
            let id = self.declared.param(Param {
                name: name.to_string(),
                ty: of.clone(),
                written: false,
                unit: 1,
                presence: Presence::Required,
                span,
                ty_span,
            });
            if let Type::Peers(memory) = &of {
                peers.push((id, memory.clone(), span));
            }
            let value = Expr { kind: ExprKind::Param(id), ty: of, span };
            match ty {
                Type::Compound(option) => options.push((name, mutable, option, value, id)),
                _ => self.bind_value(&name, mutable, value, None),
            }
        }
        // Flags follow the parameters of the signature, whose positions the launcher knows.
        for (name, mutable, option, slice, id) in options {
            let span = slice.span;
            let (name_of_flag, ty) = (format!("{name}.is_some()"), Scalar::Bool.into());
            let flag = self.declared.hidden(name_of_flag, ty, Presence::FlagOf(id), span);
            self.declared.param_mut(id).presence = Presence::Optional(flag);
            let flag = Expr { kind: ExprKind::Param(flag), ty: Scalar::Bool.into(), span };
            self.bind_value(&name, mutable, compound(option, vec![slice, flag], span), None);
        }
        for (id, memory, span) in peers {
            if let PeerMemory::Global(element) = memory {
                let name = format!("{}.own()", self.declared.param_of(id).name);
                self.declared.hidden(name, Type::Global(element), Presence::OwnOf(id), span);
            }
            self.declared.team_number(TeamNumber::Rank, span);
        }
    }
}

/// Returns an argument that fits a generic.
fn example(param: &GenericParam) -> Option<&'static str> {
    match param {
        GenericParam::Type(_) => Some("f32"),
        GenericParam::Const(param) => match &param.ty {
            syn::Type::Path(path) if path.path.is_ident("bool") => Some("true"),
            _ => Some("64"),
        },
        GenericParam::Lifetime(_) => None,
    }
}

/// Returns a parameter's name, whether it is `mut`, and its type.
pub(super) fn parameter<'s>(
    sink: &mut Sink,
    input: &'s syn::FnArg,
) -> Option<(syn::Ident, bool, &'s syn::Type)> {
    let syn::FnArg::Typed(typed) = input else {
        sink.error(Signature::SelfParameter, Span::of(input));
        return None;
    };
    match &*typed.pat {
        syn::Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
            Some((name.ident.clone(), name.mutability.is_some(), &typed.ty))
        }
        other => {
            sink.error(Syntax::ParameterPattern, Span::of(other));
            None
        }
    }
}

/// Classifies the type argument of a generic. Whether it is allowed there is checked where the
/// generic is used.
fn type_argument_is(module: &Module<'_>, ty: &syn::Type) -> Argument {
    let mut scope = module.scope();
    let mut named = last_name(ty);
    // The limit bounds the search: an alias may be defined by itself.
    for _ in 0..MOST_ALIASES {
        let alias = named.as_ref().and_then(|name| module.alias_in(scope, &names::text(name)));
        let Some(alias) = alias else { break };
        (named, scope) = (last_name(&alias.item.ty), alias.scope);
    }
    let Some(name) = named.map(|name| name.to_string()) else { return Argument::Other };
    match (scalar_named(&name), swizzle_named(&name)) {
        (Some(scalar), _) => Argument::Element(scalar),
        (None, Some(swizzle)) => Argument::Swizzle(swizzle),
        (None, None) => Argument::Other,
    }
}

/// Creates a constant `Dim3`.
pub(super) fn known_dim3(extents: [u32; 3], span: Span) -> Expr {
    let extent = |n| Expr::constant(Const::Int(i128::from(n)), Scalar::U32, span);
    Expr { kind: ExprKind::Array(extents.map(extent).into()), ty: Type::Dim3, ..unit(span) }
}

/// Returns the last name of a type's path.
fn last_name(ty: &syn::Type) -> Option<syn::Ident> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.clone()),
        _ => None,
    }
}
