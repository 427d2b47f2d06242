//! Failed assertions of kernels that may call nothing.

use tma_model::assertion::{Record, Remark};

use crate::error::Error;
use crate::spec::KernelSpec;

/// The error of an assertion of which a thread has told; none if the kernel's `ptx` has none of
/// this number.
pub(super) fn failed(spec: &'static KernelSpec, ptx: &str, record: Record) -> Option<Error> {
    let Record { number, thread, block } = record;
    let mut remarks = ptx.lines().filter_map(Remark::find);
    let Remark { place, message, .. } = remarks.find(|remark| remark.number == number)?;
    let (place, message) = (place.to_owned(), message.to_owned());
    Some(Error::Assertion { kernel: spec.name, place, message, block, thread })
}
