//! Stores of accumulators to rows of global memory.

use super::{ColumnRange, columns_within, converts};
use crate::check::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::{MatrixStore, Span, Type};

/// Checks `sum.store_to(matrix, at)`.
pub(in crate::check) fn store_matrix(rules: &Rules<'_>, store: &MatrixStore, span: Span, sink: &mut Sink) {
    let MatrixStore { accumulator, first, columns, matrix, at: _ } = store;
    let (Type::Accumulator(sum), Type::Global(to)) =
        (&rules.kernel.local(*accumulator).ty, &rules.kernel.param(matrix.global).ty)
    else {
        return;
    };
    if !converts(sum.element, *to) {
        sink.error(mistake::Mma::StoredMatrix { sum: sum.element, matrix: *to }, span);
    }
    if *columns == 0 || !columns.is_multiple_of(8) {
        sink.error(mistake::Mma::StoredColumns { sum: *sum, columns: *columns }, span);
    }
    if let Some(first) = first.as_int() {
        columns_within(*sum, ColumnRange { first, count: *columns }, &[], span, sink);
    }
}
