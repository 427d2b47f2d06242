//! Accumulators that are stored to rows of global memory.

use super::{columns_within, conversion, static_index};
use crate::check::operations::Rules;
use crate::diag::{Code, Sink};
use crate::ir::{MatrixStore, Span, Type};

/// `sum.store_to(matrix, at)`.
pub(in crate::check) fn store_matrix(rules: &Rules<'_>, store: &MatrixStore, span: Span, sink: &mut Sink) {
    let MatrixStore { accumulator, first, columns, matrix, at: _ } = store;
    let (Type::Accumulator(sum), Type::Global(to)) =
        (&rules.kernel.local(*accumulator).ty, &rules.kernel.param(matrix.global).ty)
    else {
        return;
    };
    static_index(&rules.statics, first, "the first of the columns", sink);
    conversion(sum.element, *to, "matrix", span, sink);
    if *columns == 0 || !columns.is_multiple_of(8) {
        let message = format!("{columns} columns of `{sum}` are not stored together");
        sink.error(Code::MmaShape, span, message).help("take a multiple of 8 columns");
    }
    columns_within(*sum, first, *columns, span, sink);
}
