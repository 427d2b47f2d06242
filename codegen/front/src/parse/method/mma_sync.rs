//! Multiplications by a warp, with operands in registers.

use super::accumulator::{accumulator_local, reduce_rows, row_of, usize_number};
use super::matrix::Stored;
use crate::diag::mistake::Mismatch;
use crate::ir::{
    AccumulatorType, Expr, ExprKind, FragmentLoad, LocalId, MmaSync, RowOp, SharedOperand, Span, StmtKind,
    Type, WarpMmaOp, WarpSide, WarpStore,
};
use crate::parse::call::effect;
use crate::parse::cx::{Builder, Cx};
use crate::parse::shared::pipeline::number;
use crate::words::WarpAccumulatorCall;

impl Cx<'_> {
    pub(super) fn warp_accumulator_method(
        &mut self,
        receiver: &Expr,
        ty: AccumulatorType,
        call: WarpAccumulatorCall,
        written: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = Span::of(written);
        let accumulator = accumulator_local(self.sink, receiver)?;
        Some(match call {
            WarpAccumulatorCall::MmaSync { a, b } => {
                return self.multiply_sync(WarpMmaOp::Add, accumulator, a, b, span);
            }
            WarpAccumulatorCall::MmaSyncSaturating { a, b } => {
                return self.multiply_sync(WarpMmaOp::Saturating, accumulator, a, b, span);
            }
            WarpAccumulatorCall::MmaSyncAndPopc { a, b } => {
                return self.multiply_sync(WarpMmaOp::AndPopc, accumulator, a, b, span);
            }
            WarpAccumulatorCall::MmaSyncXorPopc { a, b } => {
                return self.multiply_sync(WarpMmaOp::XorPopc, accumulator, a, b, span);
            }
            WarpAccumulatorCall::Len => usize_number(ty.elements(), span),
            WarpAccumulatorCall::Row { i } => row_of(&mut self.typing(), ty, i, span),
            WarpAccumulatorCall::At { i } => self.element_at(ty, i, span),
            WarpAccumulatorCall::Store { tile, at } => effect(
                &mut self.builder,
                StmtKind::StoreWarp(Box::new(WarpStore { accumulator, tile, at })),
                span,
            ),
            WarpAccumulatorCall::StoreTo { matrix, at } => {
                let stored = Stored { accumulator, first: number(0, span), columns: ty.columns };
                return self.store_to(stored, matrix, at, span);
            }
            WarpAccumulatorCall::Pack => return self.pack(accumulator, ty, written),
            WarpAccumulatorCall::RowMax => reduce_rows(&mut self.builder, accumulator, ty, RowOp::Max, span),
            WarpAccumulatorCall::RowSum => reduce_rows(&mut self.builder, accumulator, ty, RowOp::Sum, span),
        })
    }

    /// Emits `accumulator += a · bᵀ`.
    fn multiply_sync(
        &mut self,
        op: WarpMmaOp,
        accumulator: LocalId,
        a: Expr,
        b: Expr,
        span: Span,
    ) -> Option<Expr> {
        let left = self.operand_in_registers(a, WarpSide::Left);
        let right = self.operand_in_registers(b, WarpSide::Right);
        let mma = MmaSync { op, accumulator, left: left?, right: right? };
        Some(effect(&mut self.builder, StmtKind::MmaSync(Box::new(mma)), span))
    }

    /// Returns the local that holds an operand.
    fn operand_in_registers(&mut self, value: Expr, side: WarpSide) -> Option<LocalId> {
        let ty = self.infer.resolve(&value.ty);
        if !matches!(ty, Type::WarpFragment(found) if found.side == side) {
            if ty != Type::Error {
                self.error(Mismatch::NotInRegisters { side, found: self.infer.partial(&ty) }, value.span);
            }
            return None;
        }
        if let ExprKind::Local(local) = value.kind {
            return Some(local);
        }
        let (held, _) = self.builder.temporary("operand", ty, value.span);
        self.builder.assign(held, value);
        Some(held)
    }
}

/// The part of a tile that an operand is loaded from.
pub(in crate::parse) struct OperandSource {
    pub(in crate::parse) tile: SharedOperand,
    pub(in crate::parse) at: [Expr; 2],
    pub(in crate::parse) widens: bool,
}

/// Resolves `WarpLeft::<f16, 16, 32>::load(tile, [row, k])` and `widen`, and the same for
/// `WarpRight` and `Fragment`.
pub(in crate::parse) fn load_operand(
    builder: &mut Builder,
    operand: Type,
    source: OperandSource,
    span: Span,
) -> Expr {
    let OperandSource { tile: from, at, widens } = source;
    let (dest, value) = builder.temporary("operand", operand, span);
    builder.emit(StmtKind::LoadFragment(Box::new(FragmentLoad { dest, from, at, widens })), span);
    value
}
