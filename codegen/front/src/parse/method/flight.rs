//! Multiplications in flight: the operands that start them, and the values they return.
//!
//! A flight is split into parts, as the slots of a pipeline are: the accumulator, and the parts of
//! the value that is kept until the multiplication is complete. `check` determines the groups that
//! are open at each point.

use super::accumulator::accumulator_local;
use crate::diag::mistake::{Argument, Mismatch};
use crate::infer::{Infer, Typing};
use crate::ir::{
    AccumulatorType, Awaited, Compound, Expr, ExprKind, LeftOperand, LocalId, Mma, MmaOp, OperandType,
    SharedOperand, Span, StmtKind, TileType, Type,
};
use crate::parse::compound::compound;
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;
use crate::parse::types::turbofish_arguments;
use crate::words::FlightCall;

/// The arguments that start a multiplication.
pub(super) struct MmaArguments {
    pub(super) op: MmaOp,
    pub(super) a: Expr,
    pub(super) b: Expr,
    /// The value to return once the multiplication is complete.
    pub(super) keep: Expr,
}

impl Cx<'_> {
    /// Resolves `sum.mma(a, b, keep)`.
    pub(super) fn start_flight(
        &mut self,
        accumulator: Expr,
        ty: AccumulatorType,
        arguments: MmaArguments,
        span: Span,
    ) -> Option<Expr> {
        let local = accumulator_local(self.sink, &accumulator)?;
        let keep = self.multiply(local, arguments, span)?;
        let (keep_ty, kept) = (self.infer.resolve(&keep.ty), kept_parts(keep));
        let flight = Compound::Flight(ty, Box::new(keep_ty));
        Some(compound(flight, [accumulator].into_iter().chain(kept).collect(), span))
    }

    pub(super) fn flight_method(
        &mut self,
        parts: Vec<Expr>,
        keep_ty: &Type,
        call: FlightCall,
        span: Span,
    ) -> Option<Expr> {
        let (accumulator, kept) = parts.split_first()?;
        let accumulator = accumulator_local(self.sink, accumulator)?;
        let arguments = match call {
            FlightCall::Wait => {
                self.builder.emit(StmtKind::MmaWait { accumulator, awaited: Awaited::All }, span);
                return Some(kept_value(keep_ty, kept.to_vec(), span));
            }
            FlightCall::Mma { a, b, keep } => MmaArguments { op: MmaOp::Add, a, b, keep },
            FlightCall::MmaSaturating { a, b, keep } => MmaArguments { op: MmaOp::Saturating, a, b, keep },
            FlightCall::MmaAndPopc { a, b, keep } => MmaArguments { op: MmaOp::AndPopc, a, b, keep },
        };
        if !self.expect(&arguments.keep, keep_ty) {
            return None;
        }
        let keep = self.multiply(accumulator, arguments, span)?;
        self.builder.emit(StmtKind::MmaWait { accumulator, awaited: Awaited::Older }, span);
        let before = self.exchange(kept, kept_parts(keep), span)?;
        Some(kept_value(keep_ty, before, span))
    }

    /// Assigns the next multiplication's kept parts to the variables of the flight, and returns
    /// their previous values.
    fn exchange(&mut self, kept: &[Expr], next: Vec<Expr>, span: Span) -> Option<Vec<Expr>> {
        let mut before = vec![];
        for (old, new) in kept.iter().zip(next) {
            before.push(match (&old.kind, &new.kind) {
                (ExprKind::Local(local), _) => {
                    let (held, value) = self.builder.temporary("done", old.ty.clone(), span);
                    self.builder.assign(held, old.clone());
                    self.builder.assign(*local, new);
                    value
                }
                (ExprKind::Shared(old_id), ExprKind::Shared(new_id)) if old_id == new_id => old.clone(),
                (ExprKind::Const(old_value), ExprKind::Const(new_value)) if old_value == new_value => {
                    old.clone()
                }
                _ => {
                    self.error(Mismatch::OtherFlight, new.span);
                    return None;
                }
            });
        }
        Some(before)
    }

    /// Starts `accumulator += a · bᵀ` and returns the kept value.
    fn multiply(&mut self, accumulator: LocalId, arguments: MmaArguments, span: Span) -> Option<Expr> {
        let MmaArguments { op, a, b, keep } = arguments;
        let metadata = self.metadata(&a, span);
        let left = self.left_operand(a, span);
        let right = shared_operand(&mut self.typing(), b);
        let mma = Mma { op, accumulator, left: left?, metadata, right: right? };
        self.builder.emit(StmtKind::Mma(Box::new(mma)), span);
        Some(keep)
    }

    /// Returns a copy of the metadata, if the operand is sparse. It is copied for the same reason
    /// as a fragment in [`left_operand`](Self::left_operand).
    fn metadata(&mut self, value: &Expr, span: Span) -> Option<LocalId> {
        let ExprKind::Compound(parts) = &value.kind else { return None };
        let Type::Compound(Compound::Operand(OperandType { sparse: true, .. }) | Compound::SparseFragment(_)) =
            self.infer.resolve(&value.ty)
        else {
            return None;
        };
        let metadata = parts.get(1)?.clone();
        let (held, _) = self.builder.temporary("metadata", metadata.ty.clone(), span);
        self.builder.assign(held, metadata);
        Some(held)
    }

    fn left_operand(&mut self, value: Expr, span: Span) -> Option<LeftOperand> {
        let (ty, value) = match (self.infer.resolve(&value.ty), value) {
            (Type::Compound(Compound::SparseFragment(ty)), Expr { kind: ExprKind::Compound(parts), .. }) => {
                (Type::Fragment(ty), parts.into_iter().next()?)
            }
            (ty @ Type::Fragment(_), value) => (ty, value),
            (_, value) => return shared_operand(&mut self.typing(), value).map(LeftOperand::Shared),
        };
        // A copy that nothing else writes: the variable may be assigned while the multiplication
        // still reads the operand.
        let (held, _) = self.builder.temporary("left", ty, span);
        self.builder.assign(held, value);
        Some(LeftOperand::Registers(held))
    }

    /// Resolves `tile.t_if::<B>()`.
    pub(super) fn transposed_if(
        &mut self,
        tile: Expr,
        ty: &TileType,
        call: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = Span::of(call);
        let [flag] = turbofish_arguments(call)[..] else {
            self.error(Argument::NoCondition, span);
            return None;
        };
        let transposed = self.bool_argument(flag)?;
        Some(transposed_operand(tile, ty, transposed, span))
    }
}

fn shared_operand(typing: &mut Typing<'_>, value: Expr) -> Option<SharedOperand> {
    match (typing.infer.resolve(&value.ty), value) {
        (Type::Tile(tile), value) => Some(SharedOperand { tile: value, ty: tile.into() }),
        (Type::Compound(Compound::Operand(ty)), Expr { kind: ExprKind::Compound(parts), .. }) => {
            Some(SharedOperand { tile: parts.into_iter().next()?, ty })
        }
        (Type::Error, _) => None,
        (other, value) => {
            typing.error(Mismatch::NotAnOperand(typing.infer.partial(&other)), value.span);
            None
        }
    }
}

/// Resolves `tile.t()`: the transposed tile if `transposed` is set, else the tile itself.
pub(super) fn transposed_operand(tile: Expr, ty: &TileType, transposed: bool, span: Span) -> Expr {
    let operand = OperandType { transposed, ..OperandType::from(ty.clone()) };
    compound(Compound::Operand(operand), vec![tile], span)
}

/// Resolves `-tile`, `-tile.t()` and `-tile.sparse(..)`. Returns `None` for anything else.
pub(in crate::parse) fn negated(infer: &mut Infer, value: &Expr, span: Span) -> Option<Expr> {
    let (ty, parts) = match (infer.resolve(&value.ty), &value.kind) {
        (Type::Tile(tile), _) => (tile.into(), vec![value.clone()]),
        (Type::Compound(Compound::Operand(ty)), ExprKind::Compound(parts)) => (ty, parts.clone()),
        _ => return None,
    };
    let ty = OperandType { negated: !ty.negated, ..ty };
    Some(compound(Compound::Operand(ty), parts, span))
}

/// Returns the parts of a kept value.
fn kept_parts(keep: Expr) -> Vec<Expr> {
    if let ExprKind::Compound(parts) = keep.kind {
        parts
    } else if let ExprKind::Unit = keep.kind {
        vec![]
    } else {
        vec![keep]
    }
}

/// Returns the kept value that consists of these parts.
fn kept_value(ty: &Type, mut parts: Vec<Expr>, span: Span) -> Expr {
    if let Type::Compound(_) = ty {
        Expr { kind: ExprKind::Compound(parts), ty: ty.clone(), span }
    } else if *ty == Type::Unit {
        unit(span)
    } else {
        parts.pop().map_or(Expr::error(span), |kept| Expr { span, ..kept })
    }
}
