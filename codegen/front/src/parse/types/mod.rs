//! Resolution of types, and of the constants in them.

pub(in crate::parse) mod alias;
mod generics;
mod maps;
mod mma;
mod peers;
mod tile;

use std::borrow::Cow;

use quote::ToTokens;
use syn::{GenericArgument, PathArguments};

use super::aggregate::is_aggregate;
use super::cx::{Cx, Scope};
use super::names::{self, Meaning, Space};
use super::span;
use crate::diag::Sink;
use crate::diag::mistake::{Argument, Types};
use crate::diag::suggest::{Kind, did_you_mean, elsewhere};
use crate::ir::{
    ChoiceType, Compound, Const, Expr, ExprKind, GenericValue, Scalar, Span, Team, TileSwizzle, Type,
    WarpSide,
};
use crate::words::TypeWord;
use alias::Alias;

/// The maximum length of a chain of aliases of shapes and swizzles.
pub(super) const MOST_ALIASES: usize = 32;

impl<'a> Cx<'a> {
    /// Resolves `ty`. Reports a type that kernels do not have, and returns [`Type::Error`] for it.
    pub(super) fn ty(&mut self, ty: &syn::Type) -> Type {
        let found = self.ty_at(ty);
        // A type must not be rejected without an error.
        if found == Type::Error && self.sink.is_empty() {
            self.error(Types::Unknown, Span::of(ty));
        }
        found
    }

    fn ty_at(&mut self, ty: &syn::Type) -> Type {
        match ty {
            syn::Type::Path(path) if path.qself.is_none() => self.path_type(&path.path),
            syn::Type::Array(array) => {
                let element = self.ty(&array.elem);
                self.array_type(element, &array.elem, &array.len)
            }
            syn::Type::Paren(paren) => self.ty(&paren.elem),
            syn::Type::Group(group) => self.ty(&group.elem),
            syn::Type::Tuple(tuple) if tuple.elems.is_empty() => Type::Unit,
            syn::Type::Tuple(tuple) => self.tuple_type(tuple),
            syn::Type::Never(_) => Type::Never,
            syn::Type::Infer(_) => self.infer.fresh(crate::infer::Kind::Any),
            other => {
                self.error(Types::Form, Span::of(other));
                Type::Error
            }
        }
    }

    /// Evaluates the length of a register array.
    pub(super) fn array_len(&mut self, len: &syn::Expr) -> Option<u32> {
        let value = self.constant_in_type(len, &Scalar::Usize.into())?.as_int()?;
        let fits = u32::try_from(value).ok();
        if fits.is_none() {
            self.error(Types::ArrayLength(value), Span::of(len));
        }
        fits
    }

    fn array_type(&mut self, element: Type, element_syntax: &syn::Type, len: &syn::Expr) -> Type {
        let len = self.array_len(len);
        let inner = match &element {
            Type::Array(inner, _) => inner,
            _ => &element,
        };
        match (inner, len) {
            (Type::Error, _) | (_, None) => Type::Error,
            (Type::Scalar(_) | Type::Infer(_), Some(len)) => Type::Array(Box::new(element), len),
            _ if is_aggregate(&element) => {
                len.map_or(Type::Error, |len| self.array_of(element, len, Span::of(element_syntax)))
            }
            (..) => {
                self.error(Types::ArrayElement(self.infer.partial(&element)), Span::of(element_syntax));
                Type::Error
            }
        }
    }

    pub(super) fn path_type(&mut self, path: &syn::Path) -> Type {
        let Some(segment) = path.segments.last() else { return Type::Error };
        let name = names::text(&segment.ident);
        let span = span::of_path(path);
        if let Some(ty) = names::lone_name(path).and_then(|name| self.generic_type(&name)) {
            if is_foreign(&ty) {
                self.error(Types::Listed(shown(&ty)), Span::of(&ty));
                return Type::Error;
            }
            let ty = self.at_module_level(Scope::default(), &name, |cx| cx.ty(&ty));
            self.instance.use_type(name, ty.clone());
            return ty;
        }
        if let Some(argument) = self.bound_generic(path) {
            return match argument {
                GenericValue::Type(ty) => self.infer.resolve(&ty),
                GenericValue::Shape(_)
                | GenericValue::Swizzle(_)
                | GenericValue::Integer(_)
                | GenericValue::Bool(_) => self.unknown_type(&name, span),
            };
        }
        if names::lone_name(path).is_some_and(|name| name == "Self")
            && let Some(ty) = self.frames.self_type()
        {
            return ty.clone();
        }
        if names::own_name(path).is_some() {
            if let Some(alias) = self.module.alias(&name) {
                return self.aliased(alias, segment);
            }
            if let Some(item) = self.module.structure(&name) {
                return self.struct_type(item, path);
            }
            if self.refuse_host_item(&name, Space::Type, span) {
                return Type::Error;
            }
        }
        if name == "Option" {
            return self.option_type(path, segment);
        }
        let Some(word) = TypeWord::named(&name).filter(|word| !word.is_part()) else {
            return self.unknown_type(&name, span);
        };
        if !self.takes_word(path, Meaning::of_type(word)) {
            return Type::Error;
        }
        if word == TypeWord::Tile && self.refuse_tile_without_shape(segment) {
            return Type::Error;
        }
        match generics_of(self.sink, word, segment, Span::of(segment)) {
            Some(generics) => self.type_of(word, &generics, segment),
            // A type without generics is unambiguous despite the error.
            None if word.generics().is_empty() => self.type_of(word, &[], segment),
            None => Type::Error,
        }
    }

    /// Resolves the type with these generic arguments, whose number has been checked.
    fn type_of(&mut self, word: TypeWord, generics: &[&GenericArgument], segment: &syn::PathSegment) -> Type {
        match word {
            TypeWord::Scalar(scalar) => scalar.into(),
            TypeWord::Barrier => Type::Barrier,
            TypeWord::CachePolicy => Type::CachePolicy,
            TypeWord::Token => Type::Token,
            TypeWord::Phase => Type::Compound(Compound::Phase),
            TypeWord::Pipeline => self.ring_type(generics, Compound::Pipeline),
            TypeWord::Producer => self.ring_type(generics, Compound::Producer),
            TypeWord::Consumer => self.ring_type(generics, Compound::Consumer),
            TypeWord::EmptySlot => self.slot_type(generics, Compound::EmptySlot),
            TypeWord::LoadingSlot => self.slot_type(generics, Compound::LoadingSlot),
            TypeWord::FullSlot => self.slot_type(generics, Compound::FullSlot),
            TypeWord::Dim3 => Type::Dim3,
            TypeWord::ClusterAxis => Type::Choice(ChoiceType::ClusterAxis),
            TypeWord::Order => Type::Choice(ChoiceType::Order),
            TypeWord::Scope => Type::Choice(ChoiceType::Scope),
            TypeWord::Remote => self.remote_type(generics, segment),
            TypeWord::Tile => self.tile_type(generics).map_or(Type::Error, Type::Tile),
            TypeWord::TensorMap => self.map_type(generics, segment, Type::TensorMap),
            TypeWord::Maps => self.map_type(generics, segment, Type::Maps),
            TypeWord::SharedMap => self.map_type(generics, segment, Type::SharedMap),
            TypeWord::Im2colMap => self.im2col_type(generics, segment),
            TypeWord::Global => self.global_type(generics).map_or(Type::Error, Type::Global),
            TypeWord::Peers => self.peers_type(generics, segment),
            TypeWord::Peer => self.peer_type(generics, segment),
            TypeWord::SharedArray => self.shared_array_type(generics).unwrap_or(Type::Error),
            TypeWord::Stages => self.stages_type(generics, segment),
            TypeWord::Accumulator => self.accumulator_type(Team::Warpgroup, generics).unwrap_or(Type::Error),
            TypeWord::WarpAccumulator => self.accumulator_type(Team::Warp, generics).unwrap_or(Type::Error),
            TypeWord::Rows => self.rows_type(Team::Warpgroup, generics).unwrap_or(Type::Error),
            TypeWord::WarpRows => self.rows_type(Team::Warp, generics).unwrap_or(Type::Error),
            TypeWord::WarpLeft => self.warp_fragment_type(WarpSide::Left, generics).unwrap_or(Type::Error),
            TypeWord::WarpRight => self.warp_fragment_type(WarpSide::Right, generics).unwrap_or(Type::Error),
            TypeWord::Fragment => self.fragment_type(generics).unwrap_or(Type::Error),
            TypeWord::Columns => self.columns_type(generics).unwrap_or(Type::Error),
            TypeWord::GlobalMatrix => {
                let element = self.global_type(generics);
                element.map_or(Type::Error, |element| Type::Compound(Compound::Matrix(element)))
            }
            TypeWord::Flight => self.flight_type(generics).unwrap_or(Type::Error),
            TypeWord::Transposed => self.transposed_type(generics, segment).unwrap_or(Type::Error),
            TypeWord::Sparse => self.sparse_type(generics, segment).unwrap_or(Type::Error),
            TypeWord::Negated => self.negated_type(generics, segment).unwrap_or(Type::Error),
            // Parts of a tile's type. No value has one of these types.
            TypeWord::Shape1
            | TypeWord::Shape2
            | TypeWord::Shape3
            | TypeWord::Shape4
            | TypeWord::Shape5
            | TypeWord::TileSwizzle(_) => Type::Error,
        }
    }

    /// Resolves `Option<Global<T>>`, the only option that kernels have.
    fn option_type(&mut self, path: &syn::Path, segment: &syn::PathSegment) -> Type {
        if !self.takes_word(path, Meaning::Option) {
            return Type::Error;
        }
        let inner = match generic_arguments(segment)[..] {
            [argument] => self.type_argument(argument),
            _ => None,
        };
        match inner {
            Some(Type::Global(element)) => Type::Compound(Compound::Option(element)),
            Some(Type::Error) => Type::Error,
            Some(_) | None => {
                self.error(Types::Option, span::of_path(path));
                Type::Error
            }
        }
    }

    fn global_type(&mut self, generics: &[&GenericArgument]) -> Option<Scalar> {
        let [element] = *generics else { return None };
        self.scalar_argument(element)
    }

    fn shared_array_type(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let [element, len] = *generics else { return None };
        let len = self.u32_argument(len);
        let element = self.scalar_of_each(element, len);
        Some(Type::SharedArray(element?, len?))
    }

    /// Returns the last segment of the path of a shape or a swizzle, after resolving a type generic
    /// and aliases, and the last alias. Returns `None` also if the name belongs to
    /// the host, which is reported.
    fn named_segment(&mut self, argument: &GenericArgument) -> Option<(syn::PathSegment, Option<Alias<'a>>)> {
        let mut path = type_path(argument)?.clone();
        if self.bound_generic(&path).is_some() {
            return None;
        }
        if let Some(ty) = names::lone_name(&path).and_then(|name| self.generic_type(&name)) {
            path = type_path(&GenericArgument::Type(ty))?.clone();
        }
        let mut alias: Option<Alias<'a>> = None;
        // rustc reports an alias of itself.
        for _ in 0..MOST_ALIASES {
            let within = alias.as_ref().map_or(self.module.scope(), |alias| alias.declared.scope);
            let declared = names::own_name(&path).and_then(|name| self.module.alias_in(within, &name));
            let Some(declared) = declared else { break };
            let segment = path.segments.last()?.clone();
            let next = self.in_alias(alias.as_ref(), |cx| cx.alias_with(declared, &segment))??;
            path = type_path(&GenericArgument::Type((*declared.item.ty).clone()))?.clone();
            alias = Some(next);
        }
        let last = path.segments.last()?.clone();
        if let Some(word) = TypeWord::named(&names::text(&last.ident)).filter(|word| word.is_part()) {
            let is_taken =
                self.in_alias(alias.as_ref(), |cx| cx.takes_word(&path, Meaning::of_type(word)))?;
            return is_taken.then_some((last, alias));
        }
        Some((last, alias))
    }

    /// Whether `path` names a type that may have associated constants or functions.
    pub(super) fn names_type(&self, path: &syn::Path) -> bool {
        let Some(name) = path.segments.last().map(|last| names::text(&last.ident)) else { return false };
        if names::lone_name(path).is_some_and(|name| self.is_type_generic(&name)) {
            return false;
        }
        let is_alias = names::own_name(path).is_some_and(|name| self.module.alias(&name).is_some());
        is_alias || self.names_struct(path) || TypeWord::named(&name).is_some()
    }

    /// Whether `path` is the name of a struct of the module, or `Self` in a function of one.
    pub(super) fn names_struct(&self, path: &syn::Path) -> bool {
        let Some(name) = names::own_name(path) else { return false };
        if names::lone_name(path).is_some_and(|name| self.is_type_generic(&name)) {
            return false;
        }
        self.module.structure(&name).is_some() || (name == "Self" && self.frames.self_type().is_some())
    }

    fn stages_type(&mut self, generics: &[&GenericArgument], segment: &syn::PathSegment) -> Type {
        let [thing, len] = *generics else { return Type::Error };
        match (self.type_argument(thing), self.u32_argument(len)) {
            (Some(Type::Error) | None, _) | (_, None) => Type::Error,
            (Some(thing), Some(len)) if thing.is_shared_handle() => Type::Stages(Box::new(thing), len),
            (Some(other), _) => {
                self.error(Types::Stages(self.infer.partial(&other)), Span::of(segment));
                Type::Error
            }
        }
    }

    fn remote_type(&mut self, generics: &[&GenericArgument], segment: &syn::PathSegment) -> Type {
        let [thing] = *generics else { return Type::Error };
        match self.type_argument(thing) {
            Some(thing) if thing.is_shared_handle() => Type::Remote(Box::new(thing)),
            Some(Type::Error) | None => Type::Error,
            Some(other) => {
                self.error(Types::Remote(self.infer.partial(&other)), Span::of(segment));
                Type::Error
            }
        }
    }

    fn unknown_type(&mut self, name: &str, span: Span) -> Type {
        if self.refuse_import(name, span) {
            return Type::Error;
        }
        let aliases = self.module.alias_names();
        let words = TypeWord::all().into_iter().map(|word| word.name().to_owned());
        let known: Vec<_> = words.chain(aliases).collect();
        let suggestion = elsewhere(name, Kind::Type).or_else(|| did_you_mean(name, known));
        self.error(Types::Name { name: name.to_owned(), suggestion }, span);
        Type::Error
    }

    pub(super) fn type_argument(&mut self, argument: &GenericArgument) -> Option<Type> {
        match argument {
            GenericArgument::Type(ty) => Some(self.ty(ty)),
            other => {
                self.error(Types::NoType, Span::of(other));
                None
            }
        }
    }

    fn scalar_argument(&mut self, argument: &GenericArgument) -> Option<Scalar> {
        self.scalar_of_each(argument, None)
    }

    /// Resolves the scalar of elements, of which there are `count`, if this is known.
    fn scalar_of_each(&mut self, argument: &GenericArgument, count: Option<u32>) -> Option<Scalar> {
        match self.type_argument(argument)? {
            Type::Scalar(scalar) => Some(scalar),
            Type::Error => None,
            other => {
                let found = self.infer.partial(&other);
                let listed = type_path(argument).and_then(names::lone_name);
                match listed.and_then(|name| self.generic_type(&name)) {
                    Some(listed) => self.error(Types::Listed(shown(&listed)), Span::of(&listed)),
                    None => self.error(Types::NoScalar { found, count }, Span::of(argument)),
                }
                None
            }
        }
    }

    /// Evaluates a constant `u32` among generic arguments.
    pub(super) fn u32_argument(&mut self, argument: &GenericArgument) -> Option<u32> {
        u32::try_from(self.constant_argument(argument, &Scalar::U32.into())?.as_int()?).ok()
    }

    /// Evaluates a constant `bool` among generic arguments.
    pub(super) fn bool_argument(&mut self, argument: &GenericArgument) -> Option<bool> {
        let value = self.constant_argument(argument, &Scalar::Bool.into())?;
        if let ExprKind::Const(Const::Bool(value)) = value.kind { Some(value) } else { None }
    }

    /// Evaluates a constant among generic arguments.
    pub(super) fn constant_argument(&mut self, argument: &GenericArgument, want: &Type) -> Option<Expr> {
        let expr = self.argument_expr(argument)?;
        self.constant_in_type(&expr, want)
    }

    /// Evaluates a constant among the arguments of an instance.
    pub(super) fn constant_of_instance(&mut self, argument: &GenericArgument, want: &Type) -> Option<Expr> {
        let expr = self.argument_expr(argument)?;
        self.constant(&expr, want)
    }

    /// Returns the expression among generic arguments. syn parses a lone name as a type.
    fn argument_expr<'s>(&mut self, argument: &'s GenericArgument) -> Option<Cow<'s, syn::Expr>> {
        match argument {
            GenericArgument::Const(expr) => Some(Cow::Borrowed(expr)),
            GenericArgument::Type(syn::Type::Path(path)) if path.qself.is_none() => {
                Some(Cow::Owned(name_expr(path.path.clone())))
            }
            other => {
                self.error(Types::NoConstant, Span::of(other));
                None
            }
        }
    }
}

/// Returns the generic arguments of a type, without lifetimes, which are left to rustc. Reports
/// a wrong number of arguments.
fn generics_of<'s>(
    sink: &mut Sink,
    word: TypeWord,
    segment: &'s syn::PathSegment,
    span: Span,
) -> Option<Vec<&'s GenericArgument>> {
    let mut given = generic_arguments(segment);
    if word.has_lifetime() {
        given.retain(|argument| !matches!(argument, GenericArgument::Lifetime(_)));
    }
    if !word.takes(given.len()) {
        let (wanted, usage) = (word.wanted(), word.usage());
        let (word, found) = (word.name().to_owned().into(), given.len());
        sink.error(Argument::TypeGenerics { word, wanted, found, usage }, span);
        return None;
    }
    Some(given)
}

/// Returns the scalar of this name.
pub(super) fn scalar_named(name: &str) -> Option<Scalar> {
    if let TypeWord::Scalar(scalar) = TypeWord::named(name)? { Some(scalar) } else { None }
}

/// Returns the swizzle of this name.
pub(super) fn swizzle_named(name: &str) -> Option<TileSwizzle> {
    if let TypeWord::TileSwizzle(swizzle) = TypeWord::named(name)? { Some(swizzle) } else { None }
}

/// Returns the generic arguments of a method call.
pub(super) fn turbofish_arguments(call: &syn::ExprMethodCall) -> Vec<&GenericArgument> {
    call.turbofish.iter().flat_map(|list| &list.args).collect()
}

/// Returns the generic arguments of a path segment.
pub(super) fn generic_arguments(segment: &syn::PathSegment) -> Vec<&GenericArgument> {
    match &segment.arguments {
        PathArguments::AngleBracketed(list) => list.args.iter().collect(),
        PathArguments::None | PathArguments::Parenthesized(_) => vec![],
    }
}

/// Whether a path segment has generic arguments.
pub(super) fn has_arguments(segment: &syn::PathSegment) -> bool {
    !generic_arguments(segment).is_empty()
}

fn type_path(argument: &GenericArgument) -> Option<&syn::Path> {
    match argument {
        GenericArgument::Type(syn::Type::Path(path)) if path.qself.is_none() => Some(&path.path),
        _ => None,
    }
}

/// Whether a type is outside of the module and of the language.
fn is_foreign(ty: &syn::Type) -> bool {
    let syn::Type::Path(ty) = ty else { return false };
    let is_word = names::last_name(&ty.path).is_some_and(|name| TypeWord::named(&name).is_some());
    ty.path.segments.len() > 1 && names::own_name(&ty.path).is_none() && !is_word
}

/// Formats a type as the source has it.
fn shown(ty: &syn::Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}

/// Wraps a name in an expression.
pub(super) fn name_expr(path: impl Into<syn::Path>) -> syn::Expr {
    syn::Expr::Path(syn::ExprPath { attrs: vec![], qself: None, path: path.into() })
}
