//! Infers the generics of a device function from the types of its arguments.
//!
//! A generic that a parameter's type names is what the argument's type has at the same position.
//! rustc finds the same: to it, the two types must be equal.

use syn::GenericArgument;

use super::generics::Generics;
use crate::ir::{Compound, GenericValue, OperandType, PeerMemory, Ring, Scalar, Span, TileType, Type};
use crate::parse::cx::Cx;
use crate::parse::names;
use crate::parse::types::alias::substituted;
use crate::parse::types::generic_arguments;
use crate::words::TypeWord;

impl Cx<'_> {
    /// Compares the type of a parameter with that of its argument, and sets the generics that the
    /// former names. A type that does not fit is reported where the parameter is bound.
    pub(in crate::parse) fn infer_generics(
        &mut self,
        generics: &mut Generics<'_>,
        declared: &syn::Type,
        found: &Type,
        span: Span,
    ) {
        let found = self.infer.resolve(found);
        match declared {
            syn::Type::Paren(paren) => self.infer_generics(generics, &paren.elem, &found, span),
            syn::Type::Group(group) => self.infer_generics(generics, &group.elem, &found, span),
            syn::Type::Reference(reference) => self.infer_generics(generics, &reference.elem, &found, span),
            syn::Type::Array(array) => {
                if let Type::Array(element, len) | Type::Compound(Compound::Array(element, len)) = found {
                    self.infer_generics(generics, &array.elem, &element, span);
                    if let Some(name) = named(&array.len) {
                        generics.set(&name, GenericValue::Integer(len.into()));
                    }
                }
            }
            syn::Type::Tuple(tuple) => {
                if let Type::Compound(Compound::Tuple(elements)) = found {
                    for (declared, found) in tuple.elems.iter().zip(&elements) {
                        self.infer_generics(generics, declared, found, span);
                    }
                }
            }
            syn::Type::Path(path) if path.qself.is_none() => {
                self.infer_from_path(generics, &path.path, &found, span);
            }
            _ => {}
        }
    }

    fn infer_from_path(&mut self, generics: &mut Generics<'_>, path: &syn::Path, found: &Type, span: Span) {
        if let Some(name) = names::lone_name(path).filter(|name| generics.has_type(name)) {
            return self.infer_type(generics, &name, found, span);
        }
        let Some(last) = path.segments.last() else { return };
        let name = names::text(&last.ident);
        let alias = names::own_name(path).and_then(|name| {
            let declared = self.module.alias_in(generics.scope(), &name);
            declared.or_else(|| self.module.alias(&name))
        });
        if let Some(alias) = alias {
            let ty = substituted(alias.item, last, |name| generics.has(name));
            // rustc reports an alias of itself. The limit only prevents infinite recursion.
            if self.may_enter(span) {
                self.at_module_level(alias.scope, &name, |cx| cx.infer_generics(generics, &ty, found, span));
            }
            return;
        }
        let parts = match found {
            Type::Compound(Compound::Option(element)) if name == "Option" => {
                vec![GenericValue::Type(Type::Global(*element))]
            }
            _ if TypeWord::of(found).is_some_and(|word| TypeWord::named(&name) == Some(word)) => parts(found),
            _ => return,
        };
        let is_lifetime = |argument: &&GenericArgument| matches!(argument, GenericArgument::Lifetime(_));
        let declared = generic_arguments(last).into_iter().filter(|argument| !is_lifetime(argument));
        for (declared, part) in declared.zip(parts) {
            self.infer_from_argument(generics, declared, part, span);
        }
    }

    /// Compares an argument of a type with what the type that was found has in its place.
    fn infer_from_argument(
        &mut self,
        generics: &mut Generics<'_>,
        declared: &GenericArgument,
        found: GenericValue,
        span: Span,
    ) {
        match (declared, found) {
            (GenericArgument::Type(declared), GenericValue::Type(found)) => {
                self.infer_generics(generics, declared, &found, span);
            }
            (GenericArgument::Type(syn::Type::Path(path)), found) if path.qself.is_none() => {
                if let Some(name) = names::lone_name(&path.path).filter(|_| !has_arguments(&path.path)) {
                    generics.set(&name, found);
                } else if let GenericValue::Shape(extents) = found
                    && let Some(last) = path.path.segments.last()
                {
                    for (declared, extent) in generic_arguments(last).into_iter().zip(extents) {
                        let extent = GenericValue::Integer(extent.into());
                        self.infer_from_argument(generics, declared, extent, span);
                    }
                }
            }
            (GenericArgument::Const(value), found) => {
                if let Some(name) = named(value) {
                    generics.set(&name, found);
                }
            }
            _ => {}
        }
    }

    /// Sets a type generic, or unifies the type that it has already. Of a literal and another type,
    /// the latter decides.
    fn infer_type(&mut self, generics: &mut Generics<'_>, name: &str, found: &Type, span: Span) {
        if matches!(found, Type::Error | Type::Never) {
            return;
        }
        if let Some(GenericValue::Type(known)) = generics.argument(name) {
            let known = known.clone();
            let fits = self.infer.unify(&known, found, span);
            if fits || self.infer.kind(&known).is_none() {
                return;
            }
        }
        generics.set(name, GenericValue::Type(found.clone()));
    }
}

fn has_arguments(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(crate::parse::types::has_arguments)
}

/// Returns the name, if a constant expression is one.
fn named(value: &syn::Expr) -> Option<String> {
    match value {
        syn::Expr::Path(path) if path.qself.is_none() => names::lone_name(&path.path),
        syn::Expr::Block(block) => match &block.block.stmts[..] {
            [syn::Stmt::Expr(value, None)] => named(value),
            _ => None,
        },
        syn::Expr::Paren(paren) => named(&paren.expr),
        syn::Expr::Group(group) => named(&group.expr),
        _ => None,
    }
}

/// Returns the generic arguments of a type, in the order of its declaration.
fn parts(ty: &Type) -> Vec<GenericValue> {
    match ty {
        Type::Tile(tile) => vec![
            of_scalar(tile.element),
            GenericValue::Shape(tile.extents.clone()),
            GenericValue::Swizzle(tile.swizzle),
        ],
        Type::SharedArray(element, len) => vec![of_scalar(*element), number(*len)],
        Type::Stages(thing, len) => vec![GenericValue::Type((**thing).clone()), number(*len)],
        Type::Remote(thing) => vec![GenericValue::Type((**thing).clone())],
        Type::TensorMap(tile) | Type::Maps(tile) | Type::SharedMap(tile) => vec![of_tile(tile)],
        Type::Im2colMap(tile, rank) => vec![of_tile(tile), number(*rank)],
        Type::Global(element) => vec![of_scalar(*element)],
        Type::Peer(element) | Type::Peers(PeerMemory::Global(element)) => {
            vec![GenericValue::Type(Type::Global(*element))]
        }
        Type::Peers(PeerMemory::TensorMap(tile)) => vec![GenericValue::Type(Type::TensorMap(tile.clone()))],
        Type::Accumulator(of) => matrix(of.element, of.rows, of.columns),
        Type::Rows(of) => vec![of_scalar(of.element), number(of.rows)],
        Type::Fragment(of) => matrix(of.element, of.rows, of.columns),
        Type::WarpFragment(of) => matrix(of.element, of.rows, of.columns),
        Type::Compound(compound) => parts_of_compound(compound),
        Type::Unit
        | Type::Never
        | Type::Scalar(_)
        | Type::Dim3
        | Type::CachePolicy
        | Type::Array(..)
        | Type::Barrier
        | Type::Token
        | Type::Choice(_)
        | Type::Infer(_)
        | Type::Error => vec![],
    }
}

fn parts_of_compound(compound: &Compound) -> Vec<GenericValue> {
    match compound {
        Compound::Pipeline(Ring { tiles, stages })
        | Compound::Producer(Ring { tiles, stages })
        | Compound::Consumer(Ring { tiles, stages }) => vec![tuple(tiles), number(*stages)],
        Compound::EmptySlot(tiles) | Compound::LoadingSlot(tiles) | Compound::FullSlot(tiles) => {
            vec![tuple(tiles)]
        }
        Compound::Operand(operand) => parts_of_operand(operand),
        Compound::SparseFragment(of) => {
            vec![GenericValue::Type(Type::Fragment(*of)), number(of.columns.saturating_mul(2))]
        }
        Compound::Columns(of) => matrix(of.element, of.rows, of.columns),
        Compound::Matrix(element) => vec![of_scalar(*element)],
        Compound::Flight(of, keep) => {
            let mut parts = matrix(of.element, of.rows, of.columns);
            parts.push(GenericValue::Type((**keep).clone()));
            parts
        }
        Compound::Phase | Compound::Option(_) => vec![],
        Compound::Struct(_) | Compound::Tuple(_) | Compound::Array(..) => vec![],
    }
}

/// Returns the arguments of the outermost of `Negated`, `Sparse` and `Transposed`.
fn parts_of_operand(operand: &OperandType) -> Vec<GenericValue> {
    if operand.negated {
        let inner = OperandType { negated: false, ..operand.clone() };
        let is_tile = !inner.transposed && !inner.sparse && inner.band.is_none();
        let inner = if is_tile { Type::Tile(inner.tile) } else { Type::Compound(Compound::Operand(inner)) };
        return vec![GenericValue::Type(inner)];
    }
    let tile = of_tile(&operand.tile);
    if operand.sparse {
        return vec![tile, number(operand.tile.inner_extent().saturating_mul(2))];
    }
    vec![tile, GenericValue::Bool(operand.transposed)]
}

fn of_scalar(scalar: Scalar) -> GenericValue {
    GenericValue::Type(scalar.into())
}

fn of_tile(tile: &TileType) -> GenericValue {
    GenericValue::Type(Type::Tile(tile.clone()))
}

fn tuple(tiles: &[TileType]) -> GenericValue {
    let tiles = tiles.iter().cloned().map(Type::Tile).collect();
    GenericValue::Type(Type::Compound(Compound::Tuple(tiles)))
}

fn number(value: u32) -> GenericValue {
    GenericValue::Integer(value.into())
}

fn matrix(element: Scalar, rows: u32, columns: u32) -> Vec<GenericValue> {
    vec![of_scalar(element), number(rows), number(columns)]
}
