//! Where kernels that may call nothing tell which of their assertions failed:
//! [`tma_model::assertion`].

use super::context::code;
use super::driver::Status;
use crate::backend::assertion::failed;
use crate::error::Error;
use crate::spec::KernelSpec;
use cust::error::CudaResult;
use cust::memory::{CopyDestination, LockedBox};
use cust::module::Module;
use std::ffi::CString;
use std::ptr;
use tma_model::assertion::{Record, VARIABLE, WORDS};

/// Memory of the host that a kernel writes a record to before it traps. It is the host's, so it can
/// be read after the fault has taken the device's memory away.
#[derive(Debug)]
pub(super) struct Listener(LockedBox<[u32; WORDS]>);

// SAFETY: the memory belongs to no thread; whoever holds the listener reads it as numbers.
unsafe impl Send for Listener {}

impl Listener {
    /// Listens to the kernel of a module that was just loaded; none if it tells nothing.
    pub(super) fn attach(module: &Module, spec: &KernelSpec) -> Result<Option<Self>, Status> {
        if !tells(spec.ptx) {
            return Ok(None);
        }
        Self::new(module).map(Some).map_err(code)
    }

    fn new(module: &Module) -> CudaResult<Self> {
        let record = LockedBox::new(&[0; WORDS])?;
        // Devices reach page-locked memory at its address on the host. Source: CUDA driver API,
        // "Unified Addressing", "Automatic Mapping of Host Allocated Host Memory".
        let address = ptr::from_ref(&*record).addr() as u64;
        let name = CString::new(VARIABLE).unwrap_or_default();
        module.get_global::<u64>(&name)?.copy_from(&address)?;
        Ok(Self(record))
    }

    /// What the kernel has told, if an assertion of it failed.
    pub(super) fn heard(&self, spec: &'static KernelSpec) -> Option<Error> {
        // SAFETY: the memory is the box's own; the device may have written to it.
        let words = unsafe { ptr::read_volatile(ptr::from_ref(&*self.0)) };
        failed(spec, spec.ptx, Record::decode(words)?)
    }
}

/// Whether the PTX has the variable, as the compiler declares it. `cust` panics at one of another
/// size.
fn tells(ptx: &str) -> bool {
    let declares = |line: &str| line.strip_suffix(';').is_some_and(|line| line.ends_with(VARIABLE));
    ptx.lines().any(|line| line.starts_with(".visible .global .align 8 .u64 ") && declares(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_that_of_the_compiler() {
        assert!(tells(".version 8.0\n.visible .global .align 8 .u64 tma_failure;\n"));
        for other in [
            ".visible .global .align 8 .u64 tma_failures;",
            ".visible .global .align 4 .u32 tma_failure;",
            "\tmov.b64 %rd1, tma_failure;",
        ] {
            assert!(!tells(other), "{other}");
        }
    }
}
