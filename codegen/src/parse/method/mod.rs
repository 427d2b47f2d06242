//! Methods: which function a call goes to, by the type that it is called on.

mod array;
mod barrier;
mod bulk;
mod descriptor;
mod global;
mod hint;
mod map;
mod phase;
mod pipeline;
mod receiver;
mod remote;
mod tile;
mod tile_at;

use super::cx::Cx;
use super::rule::Rule;
use super::scalar::has_method;
use super::suggest::{Kind, did_you_mean, elsewhere};
use super::wording::{are, counted};
use crate::diag::Code;
use crate::ir::{Cluster, Const, Expr, ExprKind, Scalar, Span, Type};

/// The arguments of a call.
pub(in crate::parse) type Args = [Expr];

impl Cx<'_> {
    pub(in crate::parse) fn method_call(&mut self, call: &syn::ExprMethodCall, span: Span) -> Expr {
        let mut receiver = self.expr(&call.receiver);
        self.takes_method(&self.resolve(&receiver.ty), call);
        if call.method == "wait_next" && receiver.ty == Type::Barrier {
            return self.wait_next(receiver, call, span);
        }
        let (effects, args) = self.block(|cx| cx.in_order(&call.args));
        self.hold(std::slice::from_mut(&mut receiver), &effects);
        self.append(effects);
        let name = call.method.to_string();
        let at = call.method.span().into();
        let ty = self.resolve(&receiver.ty);
        let value = match &ty {
            Type::Tile(_) | Type::SharedArray(..) if name.starts_with("bulk_") => {
                self.bulk_remote(receiver, &name, &args, span)
            }
            Type::Tile(tile) => self.tile_method(receiver, tile, &name, &args, span),
            Type::Barrier => self.barrier_method(receiver, &name, &args, span),
            Type::SharedArray(element, len) => {
                self.array_method(receiver, *element, *len, &name, &args, span)
            }
            Type::Stages(_, len) => match name.as_str() {
                "len" => self.known_u32(&name, u64::from(*len), &args, span),
                _ => None,
            },
            Type::Remote(thing) => self.remote_method(receiver, thing, &name, &args, span),
            Type::TensorMap(tile) => self.map_method(receiver, (tile, tile.rank()), &name, &args, span),
            Type::Im2colMap(tile, rank) => {
                self.map_method(receiver, (tile, *rank as usize), &name, &args, span)
            }
            Type::Maps(tile) => self.maps_method(&receiver, tile, &name, &args, span),
            Type::SharedMap(tile) => self.edit_method(receiver, tile, call, &args, span),
            Type::Global(element) => self.global_method(receiver, *element, &name, &args, span),
            Type::Scalar(_) | Type::Infer(_) => self.scalar_method(receiver, &name, &args, span),
            Type::Compound(compound) => match receiver.kind {
                ExprKind::Compound(parts) => self.compound_method(compound, parts, &name, &args, span),
                _ => Some(Expr::error(span)),
            },
            Type::Error => Some(Expr::error(span)),
            Type::Unit
            | Type::Never
            | Type::Dim3
            | Type::CachePolicy
            | Type::ClusterAxis
            | Type::Token
            | Type::Array(..) => None,
        };
        value.unwrap_or_else(|| self.unknown_method(&ty, &name, at, span))
    }

    fn unknown_method(&mut self, ty: &Type, name: &str, at: Span, span: Span) -> Expr {
        let known = self.methods_here(ty);
        let message = format!("{} has no method `{name}`", self.infer.name(ty));
        let error = self.error(Code::UnknownMethod, at, message);
        let is_number = matches!(ty, Type::Scalar(_) | Type::Infer(_));
        let of_others = is_number.then(|| elsewhere(name, Kind::Function)).flatten();
        match did_you_mean(name, &known).or(of_others) {
            Some(help) => error.help(help),
            None if *ty == Type::Remote(Box::new(Type::Barrier)) => error.help(
                "a barrier is made and waited for by its own block; other blocks arrive at it: `arrive`, \
                 `arrive_expect_tx`",
            ),
            None if known.is_empty() => {}
            None => error.help(format!("its methods are {}", known.join(", "))),
        }
        Expr::error(span)
    }

    /// The methods that a value of this type has in this kernel.
    fn methods_here(&self, ty: &Type) -> Vec<&'static str> {
        let settled = self.infer.settle(ty);
        let has = |name: &str| match (name, ty) {
            ("load_sliced", Type::Im2colMap(..)) => false,
            ("load_sliced", _) => matches!(self.cluster, Cluster::Fixed(_)),
            (_, Type::Scalar(_) | Type::Infer(_)) => {
                settled.as_ref().and_then(Type::as_scalar).is_none_or(|scalar| has_method(scalar, name))
            }
            _ => true,
        };
        methods(ty).iter().copied().filter(|name| has(name)).collect()
    }

    fn known_u32(&mut self, name: &str, value: u64, args: &Args, span: Span) -> Option<Expr> {
        Some(match self.exactly::<0>(name, args, span) {
            Some([]) => self.written(Expr::constant(Const::Int(i128::from(value)), Scalar::U32, span)),
            None => Expr::error(span),
        })
    }

    /// Coordinates: an array of `rank` `u32` or `i32`, outermost first.
    fn coordinates(&mut self, at: Expr, rank: usize) -> Option<Vec<Expr>> {
        let help = ("write `[row, column]`", "give one for each dimension, outermost first");
        let element = self.numbers_of(&at, "coordinate", rank, help)?;
        if !self.require(&element, Rule::Coordinate, at.span) {
            return None;
        }
        Some(elements_of(at, &element, rank))
    }

    /// Offsets of im2col mode: an array of `u16`, one for each dimension of pixels, outermost first.
    fn offsets(&mut self, offsets: Expr, rank: usize) -> Option<Vec<Expr>> {
        let help =
            ("write `[y, x]`", "give one for each dimension of pixels, which images and channels are not");
        let element = self.numbers_of(&offsets, "offset", rank - 2, help)?;
        if !self.infer.unify(&element, &Scalar::U16.into(), offsets.span) {
            let message = format!("offsets are `u16`, not {}", self.infer.name(&element));
            self.error(Code::TypeMismatch, offsets.span, message).help("cast them: `x as u16`");
            return None;
        }
        Some(elements_of(offsets, &element, rank - 2))
    }

    /// The element type of an array that has as many elements as are wanted. `what` is one of them; `help` is for what is no array, and for what has
    /// another length.
    fn numbers_of(&mut self, array: &Expr, what: &str, wanted: usize, help: (&str, &str)) -> Option<Type> {
        let Type::Array(element, len) = self.resolve(&array.ty) else {
            if array.ty != Type::Error {
                let message = format!("{what}s are an array, not {}", self.infer.name(&array.ty));
                self.error(Code::TypeMismatch, array.span, message).help(help.0);
            }
            return None;
        };
        if len as usize != wanted {
            let found = len as usize;
            let message = format!(
                "{} {} given, but there {} {}",
                counted(found, what),
                are(found),
                are(wanted),
                counted(wanted, "dimension")
            );
            self.error(Code::CoordinateCount, array.span, message).help(help.1);
            return None;
        }
        Some(*element)
    }
}

/// Each element of an array of `count` of them.
fn elements_of(array: Expr, element: &Type, count: usize) -> Vec<Expr> {
    if let ExprKind::Array(elements) = array.kind {
        return elements;
    }
    let at = |i: usize| {
        let index = Expr::constant(Const::Int(i as i128), Scalar::Usize, array.span);
        let kind = ExprKind::Index(Box::new(array.clone()), Box::new(index));
        Expr { kind, ty: element.clone(), span: array.span }
    };
    (0..count).map(at).collect()
}

/// The methods of a type, for suggestions.
fn methods(ty: &Type) -> &'static [&'static str] {
    match ty {
        Type::Tile(_) => &["get", "set", "bytes", "rows", "cols", "tile_at"],
        Type::Barrier => &[
            "init",
            "arrive",
            "arrive_many",
            "arrive_token",
            "arrive_drop",
            "arrive_expect_tx",
            "expect_tx",
            "wait",
            "wait_token",
            "wait_next",
            "test_wait",
            "try_wait",
            "try_wait_for",
            "invalidate",
        ],
        Type::SharedArray(..) => &["get", "set", "len"],
        Type::Maps(_) => &["at", "acquire"],
        Type::SharedMap(_) => &["copy_from", "set_address", "set_extent", "set_stride", "publish"],
        Type::Stages(..) => &["len"],
        Type::Remote(thing) => match &**thing {
            Type::Barrier => remote::REMOTE_BARRIER,
            thing => methods(thing),
        },
        Type::TensorMap(_) | Type::Im2colMap(..) => &[
            "load",
            "load_multicast",
            "load_sliced",
            "tile_at",
            "block_tile",
            "store",
            "reduce_add",
            "reduce_min",
            "reduce_max",
            "reduce_inc",
            "reduce_dec",
            "reduce_and",
            "reduce_or",
            "reduce_xor",
            "prefetch",
            "prefetch_descriptor",
            "hint",
        ],
        Type::Global(_) => &[
            "get",
            "set",
            "len",
            "atomic_add",
            "atomic_min",
            "atomic_max",
            "atomic_and",
            "atomic_or",
            "atomic_xor",
            "atomic_exchange",
            "bulk_load",
            "bulk_load_multicast",
            "bulk_store",
            "bulk_reduce_add",
            "bulk_reduce_min",
            "bulk_reduce_max",
            "bulk_reduce_inc",
            "bulk_reduce_dec",
            "bulk_reduce_and",
            "bulk_reduce_or",
            "bulk_reduce_xor",
            "bulk_prefetch",
            "hint",
        ],
        Type::Scalar(_) | Type::Infer(_) => {
            &["min", "max", "abs", "mul_add", "sqrt", "recip", "div_ceil", "to_f32", "to_f64", "to_bits"]
        }
        Type::Compound(compound) => pipeline::methods(compound),
        Type::Unit
        | Type::Never
        | Type::Dim3
        | Type::CachePolicy
        | Type::ClusterAxis
        | Type::Token
        | Type::Array(..)
        | Type::Error => &[],
    }
}
