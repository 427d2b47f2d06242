//! Failed assertions of kernels that may not make calls.

use tma_model::assertion::{Record, Remark};

use crate::error::Error;
use crate::spec::KernelSpec;

/// Returns the error of an assertion that a thread has recorded, or `None` if the kernel's `ptx`
/// has no assertion of that number.
pub(super) fn failed(spec: &'static KernelSpec, ptx: &str, record: Record) -> Option<Error> {
    let Record { number, thread, block } = record;
    let mut remarks = ptx.lines().filter_map(Remark::find);
    let Remark { location, message, .. } = remarks.find(|remark| remark.number == number)?;
    let (place, message) = (location.to_owned(), message.to_owned());
    Some(Error::Assertion { kernel: spec.name, place, message, block, thread })
}
