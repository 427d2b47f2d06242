//! Bulk copies without a tensor map: what starts or ends where the copy engine cannot, as far as
//! constants show.

use super::low_bits::LowBits;
use super::operations::Rules;
use crate::diag::{Code, Sink};
use crate::ir::{BulkCopy, Expr, RemoteCopy, Scalar, SharedRange, Type};
use crate::limits::BULK_BYTES;

pub(super) fn bulk_copy(rules: &Rules<'_>, copy: &BulkCopy, sink: &mut Sink) {
    let param = rules.kernel.param(copy.global);
    let Type::Global(element) = param.ty else { return };
    let mut whole = |number: &Expr, what: &str| {
        whole_units(number, element, rules.variables.of(number), what, sink);
    };
    whole(&copy.count, "the count");
    whole(&copy.index, &format!("the index into `{}`", param.name));
    if let Some(SharedRange { array, at }) = copy.kind.shared() {
        whole(at, "the element of shared memory to begin at");
        inside(array, at, &copy.count, sink);
    }
}

pub(super) fn remote_copy(rules: &Rules<'_>, copy: &RemoteCopy, sink: &mut Sink) {
    let RemoteCopy { from, to, at, count, .. } = copy;
    let Some((element, _)) = from.ty.sequence() else { return };
    let mut whole = |number: &Expr, what: &str| {
        whole_units(number, element, rules.variables.of(number), what, sink);
    };
    whole(count, "the count");
    whole(at, "the element of shared memory to begin at");
    for array in [from, to] {
        inside(array, at, count, sink);
    }
}

/// Source: PTX ISA, "cp.async.bulk": addresses and size are multiples of 16 bytes. What an element
/// is counted from is.
fn whole_units(number: &Expr, element: Scalar, low: LowBits, what: &str, sink: &mut Sink) {
    let unit = BULK_BYTES / element.bytes();
    let beside = low.bits % u64::from(unit);
    if beside == 0 {
        return;
    }
    let message = match number.as_int() {
        Some(value) => format!("{what} is {value}, which is not a multiple of {unit}"),
        None => {
            let multiple = unit.min(1 << low.known.min(u32::BITS - 1));
            format!("{what} is always {beside} more than a multiple of {multiple}")
        }
    };
    sink.error(Code::BulkUnit, number.span, message).help(format!(
        "bulk copies move whole units of {BULK_BYTES} bytes from and to multiples of {BULK_BYTES} bytes: {unit} \
         elements of `{element}`"
    ));
}

fn inside(array: &Expr, at: &Expr, count: &Expr, sink: &mut Sink) {
    let (Some((_, len)), Some(at), Some(copied)) =
        (array.ty.local().sequence(), at.as_int().or(Some(0)), count.as_int())
    else {
        return;
    };
    if at + copied > i128::from(len) {
        let message = format!("{copied} elements from element {at} on, but there are {len} in shared memory");
        sink.error(Code::IndexRange, count.span, message);
    }
}
