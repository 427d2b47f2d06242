//! Bulk copies without a tensor map: addresses and sizes that the copy engine does not accept, as
//! far as constants show.

use super::low_bits::LowBits;
use super::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake::{self, BulkNumber};
use crate::ir::{BulkCopy, Expr, PeerMemory, RemoteCopy, Scalar, SharedRange, Type};
use crate::limits::BULK_BYTES;

pub(super) fn bulk_copy(rules: &Rules<'_>, copy: &BulkCopy, sink: &mut Sink) {
    let param = rules.kernel.param(copy.global.param);
    let (Type::Global(element) | Type::Peers(PeerMemory::Global(element))) = param.ty else { return };
    let mut whole = |at: &Expr, number: BulkNumber| {
        whole_units(at, element, rules.variables.of(at), number, sink);
    };
    whole(&copy.count, BulkNumber::Count);
    whole(&copy.index, BulkNumber::Index { slice: param.name.clone() });
    if let Some(SharedRange { array, at }) = copy.kind.shared() {
        whole(at, BulkNumber::Shared);
        inside(array, at, &copy.count, sink);
    }
}

pub(super) fn remote_copy(rules: &Rules<'_>, copy: &RemoteCopy, sink: &mut Sink) {
    let RemoteCopy { from, to, at, count, .. } = copy;
    let Some((element, _)) = from.ty.sequence() else { return };
    let mut whole = |at: &Expr, number: BulkNumber| {
        whole_units(at, element, rules.variables.of(at), number, sink);
    };
    whole(count, BulkNumber::Count);
    whole(at, BulkNumber::Shared);
    for array in [from, to] {
        inside(array, at, count, sink);
    }
}

/// Checks the alignment of an address or a size. Source: PTX ISA, "cp.async.bulk": addresses and
/// sizes are multiples of 16 bytes. Elements are counted from an address that is.
fn whole_units(at: &Expr, element: Scalar, low: LowBits, number: BulkNumber, sink: &mut Sink) {
    if let Some(misalignment) = low.misalignment(BULK_BYTES / element.bytes(), at.as_int()) {
        sink.error(mistake::Copy::BulkUnit { number, at: misalignment, element }, at.span);
    }
}

fn inside(array: &Expr, at: &Expr, count: &Expr, sink: &mut Sink) {
    let (Some((_, len)), Some(at), Some(copied)) =
        (array.ty.local().sequence(), at.as_int().or(Some(0)), count.as_int())
    else {
        return;
    };
    if at + copied > i128::from(len) {
        sink.error(mistake::Copy::BulkRange { copied, at, len }, count.span);
    }
}
