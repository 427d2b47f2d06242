//! Copies of contiguous elements without a tensor map.

use super::global::Slice;
use crate::diag::{Sink, mistake};
use crate::ir::{BulkCopy, CopyKind, Expr, RemoteCopy, Scalar, SharedRange, Span, StmtKind};
use crate::limits::BULK_BYTES;
use crate::parse::call::effect;
use crate::parse::cx::Cx;
use crate::words::shape::expect_sequence;
use crate::words::{GlobalWord, TileWord, Word};

/// Elements of a slice.
pub(super) struct SliceRange {
    pub(super) index: Expr,
    pub(super) count: Expr,
}

impl Cx<'_> {
    /// Emits a copy between shared memory and `count` elements of a slice, starting at `index`.
    pub(super) fn bulk_copy(
        &mut self,
        slice: Slice,
        elements: SliceRange,
        kind: CopyKind<SharedRange>,
        span: Span,
    ) -> Option<Expr> {
        let Slice { global, hint, element } = slice;
        let SliceRange { index, count } = elements;
        if let CopyKind::Reduce { op, .. } = kind
            && !op.takes_bulk(element)
        {
            let name = GlobalWord::BulkReduce(op).name();
            no_reduction(self.sink, &name, element, |element| op.takes_bulk(element), span);
            return None;
        }
        let param = self.declared.param_mut(global.param);
        param.written |= kind.writes();
        // A prefetch is a hint, and rounds the address down itself.
        if kind.shared().is_some() {
            param.unit = param.unit.max(BULK_BYTES);
        }
        Some(effect(
            &mut self.builder,
            StmtKind::BulkCopy(Box::new(BulkCopy { global, index, count, hint, kind })),
            span,
        ))
    }

    /// Emits a copy of elements of this type from shared memory to that of another block.
    pub(super) fn remote_copy(&mut self, copy: RemoteCopy, element: Scalar, span: Span) -> Option<Expr> {
        if !expect_sequence(&mut self.typing(), &copy.from, element) {
            return None;
        }
        if let Some(op) = copy.op
            && !op.takes_remote(element)
        {
            let name = TileWord::ReduceTo(op).name();
            no_reduction(self.sink, &name, element, |element| op.takes_remote(element), span);
            return None;
        }
        Some(effect(&mut self.builder, StmtKind::RemoteCopy(Box::new(copy)), span))
    }
}

/// Reports a reduction of elements that the copy engine does not support.
pub(super) fn no_reduction(
    sink: &mut Sink,
    word: &str,
    element: Scalar,
    takes: impl Fn(Scalar) -> bool,
    span: Span,
) {
    let takes = Scalar::ALL.into_iter().filter(|&element| takes(element)).collect();
    sink.error(mistake::Copy::Reduction { word: word.to_owned().into(), element, takes }, span);
}
