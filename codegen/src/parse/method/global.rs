//! Methods of slices of global memory.

use super::hint::Target;
use super::matrix::Rows;
use crate::diag::mistake;
use crate::ir::{
    AtomicOp, CopyKind, Expr, ExprKind, Multicast, ParamId, Scalar, SharedRange, Span, StmtKind, Type,
};
use crate::parse::cx::Cx;
use crate::parse::span;
use crate::parse::words::{GlobalCall, GlobalWord, Word};

/// A slice that a method is called on.
pub(super) struct Slice {
    pub(super) global: ParamId,
    /// The policy that its copies carry.
    pub(super) hint: Option<Expr>,
    pub(super) element: Scalar,
}

impl Cx<'_> {
    pub(super) fn global_method(
        &mut self,
        receiver: Expr,
        slice: Slice,
        call: GlobalCall,
        syntax: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = span::of_method_call(syntax);
        let (global, element) = (slice.global, slice.element);
        let (elements, kind) = match call {
            GlobalCall::Len => {
                return Some(Expr { kind: ExprKind::GlobalLen(global), ty: Scalar::U64.into(), span });
            }
            GlobalCall::Get { i: index } => {
                let (dest, value) = self.temporary("element", element, span);
                self.emit(StmtKind::GlobalGet { dest, global, index }, span);
                return Some(value);
            }
            GlobalCall::Set { i: index, value } => {
                self.params[global.0 as usize].written = true;
                return Some(self.effect(StmtKind::GlobalSet { global, index, value }, span));
            }
            GlobalCall::GetVec { i: index } => {
                let vector = self.read_vector(syntax, element)?;
                self.moves_vector(global, &vector);
                let (dest, value) = self.temporary("elements", vector, span);
                self.emit(StmtKind::GlobalGet { dest, global, index }, span);
                return Some(value);
            }
            GlobalCall::SetVec { i: index, value } => {
                let value = self.written_vector(value, element)?;
                self.moves_vector(global, &value.ty.clone());
                self.params[global.0 as usize].written = true;
                return Some(self.effect(StmtKind::GlobalSet { global, index, value }, span));
            }
            GlobalCall::Matrix { first, extents, stride } => {
                let rows = Rows { first, extents, stride };
                return Some(self.matrix_of(receiver, (global, element), rows, span));
            }
            GlobalCall::Atomic { op, i, value } => return self.global_atomic(&slice, op, [i, value], span),
            GlobalCall::Hint { policy } => return self.hinted(receiver, slice.hint.is_some(), policy, span),
            GlobalCall::BulkLoad { array, at, count, i, barrier } => {
                let to = SharedRange { array, at };
                ([i, count], CopyKind::Load { to, barrier, multicast: None })
            }
            GlobalCall::BulkLoadMulticast { array, at, count, i, barrier, mask } => {
                let to = SharedRange { array, at };
                ([i, count], CopyKind::Load { to, barrier, multicast: Some(Multicast::Mask(Box::new(mask))) })
            }
            GlobalCall::BulkStore { i, array, at, count } => {
                ([i, count], CopyKind::Store { from: SharedRange { array, at } })
            }
            GlobalCall::BulkReduce { op, i, array, at, count } => {
                ([i, count], CopyKind::Reduce { op, from: SharedRange { array, at } })
            }
            GlobalCall::BulkPrefetch { i, count } => ([i, count], CopyKind::Prefetch),
        };
        self.bulk_copy(slice, elements, kind, span)
    }

    /// Has the launcher ask for an address that vectors of this type may begin at.
    fn moves_vector(&mut self, global: ParamId, vector: &Type) {
        if let (Type::Array(_, len), Type::Global(element)) =
            (self.resolve(vector), &self.params[global.0 as usize].ty)
        {
            let bytes = len * element.bytes();
            let param = &mut self.params[global.0 as usize];
            param.unit = param.unit.max(bytes);
        }
    }

    fn global_atomic(
        &mut self,
        slice: &Slice,
        op: AtomicOp,
        [index, value]: [Expr; 2],
        span: Span,
    ) -> Option<Expr> {
        let (global, element) = (slice.global, slice.element);
        if !op.takes(element) {
            let word = GlobalWord::Atomic(op).name();
            self.error(mistake::Copy::Atomic { word, element }, span);
            return None;
        }
        self.params[global.0 as usize].written = true;
        let (dest, old) = self.temporary("old", element, span);
        self.emit(StmtKind::GlobalAtomic { dest, op, global, index, value }, span);
        Some(old)
    }

    /// The slice that `receiver` is, for this word; reports a hint that the word does not take.
    pub(super) fn slice(
        &mut self,
        receiver: &Expr,
        element: Scalar,
        word: GlobalWord,
        span: Span,
    ) -> Option<Slice> {
        let Target { map, hint } = Target::of(receiver)?;
        let takes_hint = match word {
            GlobalWord::Get
            | GlobalWord::Set
            | GlobalWord::GetVec
            | GlobalWord::SetVec
            | GlobalWord::Len
            | GlobalWord::Matrix
            | GlobalWord::Atomic(_) => false,
            GlobalWord::BulkLoad
            | GlobalWord::BulkLoadMulticast
            | GlobalWord::BulkStore
            | GlobalWord::BulkReduce(_)
            | GlobalWord::BulkPrefetch
            | GlobalWord::Hint => true,
        };
        if hint.is_some() && !takes_hint {
            self.error(mistake::Copy::Hint { word: word.name() }, span);
            return None;
        }
        Some(Slice { global: map.param, hint, element })
    }
}
