//! Where kernels that may call nothing tell which of their assertions failed:
//! [`tma_model::assertion`].

use super::driver::{Driver, Module, PageLocked, Status};
use crate::backend::assertion::failed;
use crate::error::Error;
use crate::spec::KernelSpec;
use std::ffi::CString;
use std::ptr;
use tma_model::assertion::{Record, VARIABLE, WORDS};

/// Memory of the host that a kernel writes a record to before it traps. It is the host's, so it can
/// be read after the fault has taken the device's memory away.
#[derive(Debug)]
pub(super) struct Listener(PageLocked<WORDS>);

impl Listener {
    /// Listens to the kernel of a module that was just loaded; none if it tells nothing. The
    /// address of the record is on its way to the device when this returns, on the default stream.
    pub(super) fn attach(
        driver: &'static Driver,
        module: &Module,
        spec: &KernelSpec,
    ) -> Result<Option<Self>, Status> {
        if !tells(spec.ptx) {
            return Ok(None);
        }
        let name = CString::new(VARIABLE).unwrap_or_default();
        let (variable, bytes) = module.global(&name)?;
        if bytes != size_of::<u64>() {
            return Ok(None);
        }
        let record = PageLocked::zeroed(driver)?;
        let address: u64 = record.address();
        // SAFETY: the variable is as large as the address.
        unsafe { driver.copy_to_device(variable, ptr::from_ref(&address).cast(), bytes)? };
        Ok(Some(Self(record)))
    }

    /// What the kernel has told, if an assertion of it failed.
    pub(super) fn heard(&self, spec: &'static KernelSpec) -> Option<Error> {
        failed(spec, spec.ptx, Record::decode(self.0.read())?)
    }
}

/// Whether the PTX has the variable, as the compiler declares it.
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
