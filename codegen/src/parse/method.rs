//! Methods of tiles, barriers, maps, slices and scalars.

use super::cx::Cx;
use super::stmt::unit;
use super::suggest::did_you_mean;
use crate::diag::Code;
use crate::ir::{
    AtomicOp, BarrierOp, Const, Expr, ExprKind, ParamId, Scalar, Span, StmtKind, TileType, TmaOp, Type,
};

/// The arguments of a call.
pub(super) type Args = [Expr];

impl Cx<'_> {
    pub(super) fn method_call(&mut self, call: &syn::ExprMethodCall, span: Span) -> Expr {
        let mut receiver = self.expr(&call.receiver);
        let (effects, args) = self.block(|cx| cx.in_order(&call.args));
        self.hold(std::slice::from_mut(&mut receiver), &effects);
        self.append(effects);
        let name = call.method.to_string();
        let at = Span::of(&call.method);
        let ty = self.resolve(&receiver.ty);
        let value = match &ty {
            Type::Tile(tile) => self.tile_method(receiver, tile, &name, &args, span),
            Type::Barrier => self.barrier_method(receiver, &name, &args, span),
            Type::SharedArray(element, len) => {
                self.array_method(receiver, *element, *len, &name, &args, span)
            }
            Type::Stages(_, len) => match name.as_str() {
                "len" => self.known_u32(&name, u64::from(*len), &args, span),
                _ => None,
            },
            Type::TensorMap(tile) => match receiver.kind {
                ExprKind::Param(map) => self.map_method(map, tile, &name, &args, span),
                _ => Some(Expr::error(span)),
            },
            Type::Global(element) => match receiver.kind {
                ExprKind::Param(global) => self.global_method(global, *element, &name, &args, span),
                _ => Some(Expr::error(span)),
            },
            Type::Scalar(_) | Type::Infer(_) => self.scalar_method(receiver, &name, &args, span),
            Type::Error => Some(Expr::error(span)),
            Type::Unit | Type::Never | Type::Dim3 | Type::Array(..) => None,
        };
        value.unwrap_or_else(|| self.unknown_method(&ty, &name, at, span))
    }

    fn unknown_method(&mut self, ty: &Type, name: &str, at: Span, span: Span) -> Expr {
        let known = methods(ty);
        let message = format!("{} has no method `{name}`", self.infer.name(ty));
        let error = self.error(Code::UnknownMethod, at, message);
        match did_you_mean(name, known) {
            Some(help) => error.help(help),
            None if known.is_empty() => {}
            None => error.help(format!("its methods are {}", known.join(", "))),
        }
        Expr::error(span)
    }

    fn known_u32(&mut self, name: &str, value: u64, args: &Args, span: Span) -> Option<Expr> {
        Some(match self.exactly::<0>(name, args, span) {
            Some([]) => self.written(Expr::constant(Const::Int(i128::from(value)), Scalar::U32, span)),
            None => Expr::error(span),
        })
    }

    fn tile_method(
        &mut self,
        tile: Expr,
        ty: &TileType,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        match name {
            "bytes" => self.known_u32(name, ty.bytes(), args, span),
            "rows" => {
                let rows = ty.extents.first().copied().unwrap_or(1);
                self.known_u32(name, u64::from(rows), args, span)
            }
            "cols" => self.known_u32(name, u64::from(ty.inner_extent()), args, span),
            "get" => {
                let Some([at]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                let Some(at) = self.coordinates(at, ty.rank()) else { return Some(Expr::error(span)) };
                let (dest, value) = self.temporary("element", ty.element, span);
                self.emit(StmtKind::TileGet { dest, tile, at }, span);
                Some(value)
            }
            "set" => {
                let Some([at, value]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                let at = self.coordinates(at, ty.rank());
                if self.expect(&value, &ty.element.into())
                    && let Some(at) = at
                {
                    self.emit(StmtKind::TileSet { tile, at, value }, span);
                }
                Some(unit(span))
            }
            _ => None,
        }
    }

    /// Coordinates: an array of `rank` `u32` or `i32`, outermost first.
    fn coordinates(&mut self, at: Expr, rank: usize) -> Option<Vec<Expr>> {
        let Type::Array(element, len) = self.resolve(&at.ty) else {
            if at.ty != Type::Error {
                let message = format!("coordinates are an array, not {}", self.infer.name(&at.ty));
                self.error(Code::TypeMismatch, at.span, message).help("write `[row, column]`");
            }
            return None;
        };
        if len as usize != rank {
            let message = format!("{len} coordinates are given, but the tile has {rank} dimensions");
            self.error(Code::CoordinateCount, at.span, message)
                .help("give one for each dimension, outermost first");
            return None;
        }
        let integer = match self.resolve(&element) {
            Type::Scalar(scalar) => matches!(scalar, Scalar::U32 | Scalar::I32),
            // A literal: rustc falls back to `i32`.
            unknown => self.infer.unify(&unknown, &Scalar::I32.into()),
        };
        if !integer {
            let message = format!("coordinates are `u32` or `i32`, not {}", self.infer.name(&element));
            self.error(Code::TypeMismatch, at.span, message).help("cast them: `x as u32`");
            return None;
        }
        Some(match at.kind {
            ExprKind::Array(elements) => elements,
            _ => (0..len)
                .map(|i| {
                    let index = Expr::constant(Const::Int(i128::from(i)), Scalar::Usize, at.span);
                    let kind = ExprKind::Index(Box::new(at.clone()), Box::new(index));
                    Expr { kind, ty: (*element).clone(), span: at.span }
                })
                .collect(),
        })
    }

    fn barrier_method(&mut self, barrier: Expr, name: &str, args: &Args, span: Span) -> Option<Expr> {
        type Make = fn(Expr) -> BarrierOp;
        let with_operand: Make = match name {
            "arrive" | "invalidate" => {
                if self.exactly::<0>(name, args, span).is_some() {
                    let op = if name == "arrive" { BarrierOp::Arrive } else { BarrierOp::Invalidate };
                    self.emit(StmtKind::Barrier { barrier, op }, span);
                }
                return Some(unit(span));
            }
            "init" => |count| BarrierOp::Init { count },
            "arrive_expect_tx" => |bytes| BarrierOp::ArriveExpectTx { bytes },
            "expect_tx" => |bytes| BarrierOp::ExpectTx { bytes },
            "wait" => |parity| BarrierOp::Wait { parity },
            "try_wait" => {
                let Some([parity]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                self.expect(&parity, &Scalar::U32.into());
                let (dest, value) = self.temporary("completed", Scalar::Bool, span);
                self.emit(StmtKind::Barrier { barrier, op: BarrierOp::TryWait { dest, parity } }, span);
                return Some(value);
            }
            _ => return None,
        };
        if let Some([operand]) = self.exactly(name, args, span)
            && self.expect(&operand, &Scalar::U32.into())
        {
            self.emit(StmtKind::Barrier { barrier, op: with_operand(operand) }, span);
        }
        Some(unit(span))
    }

    fn array_method(
        &mut self,
        array: Expr,
        element: Scalar,
        len: u32,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let u32_ty = Type::from(Scalar::U32);
        match name {
            "len" => self.known_u32(name, u64::from(len), args, span),
            "get" => {
                let Some([index]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                if !self.expect(&index, &u32_ty) {
                    return Some(Expr::error(span));
                }
                let (dest, value) = self.temporary("element", element, span);
                self.emit(StmtKind::SharedGet { dest, array, index }, span);
                Some(value)
            }
            "set" => {
                let Some([index, value]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                if self.expect(&index, &u32_ty) && self.expect(&value, &element.into()) {
                    self.emit(StmtKind::SharedSet { array, index, value }, span);
                }
                Some(unit(span))
            }
            _ => None,
        }
    }

    fn map_method(
        &mut self,
        map: ParamId,
        tile_ty: &TileType,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        match name {
            "load" => {
                let Some([tile, at, barrier]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                let at = self.coordinates(at, tile_ty.rank());
                let fits = self.expect_tile(&tile, tile_ty, map) & self.expect(&barrier, &Type::Barrier);
                if let (Some(at), true) = (at, fits) {
                    self.emit(StmtKind::Tma { map, op: TmaOp::Load { tile, at, barrier } }, span);
                }
                Some(unit(span))
            }
            "store" => {
                let Some([at, tile]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                let at = self.coordinates(at, tile_ty.rank());
                if let (Some(at), true) = (at, self.expect_tile(&tile, tile_ty, map)) {
                    self.params[map.0 as usize].written = true;
                    self.emit(StmtKind::Tma { map, op: TmaOp::Store { at, tile } }, span);
                }
                Some(unit(span))
            }
            "prefetch_descriptor" => {
                if self.exactly::<0>(name, args, span).is_some() {
                    self.emit(StmtKind::Tma { map, op: TmaOp::PrefetchDescriptor }, span);
                }
                Some(unit(span))
            }
            _ => None,
        }
    }

    /// A tile of exactly the map's type: box, element and swizzle are one and the same.
    fn expect_tile(&mut self, tile: &Expr, want: &TileType, map: ParamId) -> bool {
        match self.resolve(&tile.ty) {
            Type::Tile(found) if found == *want => true,
            Type::Error => true,
            Type::Tile(found) => {
                let name = self.params[map.0 as usize].name.clone();
                let message = format!("`{name}` moves a `{want}`, but this is a `{found}`");
                self.error(Code::TileMismatch, tile.span, message).help(format!(
                    "make both one type: a `type` alias in a `#[tma_module]` keeps `{name}` and the tile alike"
                ));
                false
            }
            _ => self.expect(tile, &Type::Tile(want.clone())),
        }
    }

    fn global_method(
        &mut self,
        global: ParamId,
        element: Scalar,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        match name {
            "len" => {
                let given = self.exactly::<0>(name, args, span);
                let len = Expr { kind: ExprKind::GlobalLen(global), ty: Scalar::U64.into(), span };
                Some(if given.is_some() { len } else { Expr::error(span) })
            }
            "get" => {
                let Some([index]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                if !self.expect_global_index(&index) {
                    return Some(Expr::error(span));
                }
                let (dest, value) = self.temporary("element", element, span);
                self.emit(StmtKind::GlobalGet { dest, global, index }, span);
                Some(value)
            }
            "set" => {
                let Some([index, value]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                if self.expect_global_index(&index) & self.expect(&value, &element.into()) {
                    self.params[global.0 as usize].written = true;
                    self.emit(StmtKind::GlobalSet { global, index, value }, span);
                }
                Some(unit(span))
            }
            _ => {
                let op = AtomicOp::ALL.into_iter().find(|op| op.name() == name)?;
                Some(self.global_atomic(global, element, op, args, span))
            }
        }
    }

    fn global_atomic(
        &mut self,
        global: ParamId,
        element: Scalar,
        op: AtomicOp,
        args: &Args,
        span: Span,
    ) -> Expr {
        let Some([index, value]) = self.exactly(op.name(), args, span) else { return Expr::error(span) };
        if !op.fits(element) {
            self.error(Code::ElementType, span, format!("there is no `{}` on `{element}`", op.name()))
                .help("atomics are on i32, u32, i64 and u64; `atomic_add` also on f32 and f64");
            return Expr::error(span);
        }
        if !(self.expect_global_index(&index) & self.expect(&value, &element.into())) {
            return Expr::error(span);
        }
        self.params[global.0 as usize].written = true;
        let (dest, old) = self.temporary("old", element, span);
        self.emit(StmtKind::GlobalAtomic { dest, op, global, index, value }, span);
        old
    }

    fn expect_global_index(&mut self, index: &Expr) -> bool {
        match self.resolve(&index.ty) {
            Type::Scalar(Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::Usize)
            | Type::Error => true,
            // A literal: rustc falls back to `i32`.
            unknown @ Type::Infer(_) => self.infer.unify(&unknown, &Scalar::I32.into()),
            other => {
                let message =
                    format!("an index is an integer of 32 or 64 bits, not {}", self.infer.name(&other));
                self.error(Code::TypeMismatch, index.span, message).help("cast it: `i as u64`");
                false
            }
        }
    }
}

/// The methods of a type, for suggestions.
fn methods(ty: &Type) -> &'static [&'static str] {
    match ty {
        Type::Tile(_) => &["get", "set", "bytes", "rows", "cols"],
        Type::Barrier => {
            &["init", "arrive", "arrive_expect_tx", "expect_tx", "wait", "try_wait", "invalidate"]
        }
        Type::SharedArray(..) => &["get", "set", "len"],
        Type::Stages(..) => &["len"],
        Type::TensorMap(_) => &["load", "store", "prefetch_descriptor"],
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
        ],
        Type::Scalar(_) | Type::Infer(_) => {
            &["min", "max", "abs", "mul_add", "sqrt", "recip", "div_ceil", "to_f32", "to_f64", "to_bits"]
        }
        Type::Unit | Type::Never | Type::Dim3 | Type::Array(..) | Type::Error => &[],
    }
}
