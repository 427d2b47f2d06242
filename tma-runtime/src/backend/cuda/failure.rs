//! Reports of failed assertions from kernels that may not make calls: see [`tma_model::assertion`].

use super::driver::{Driver, Module, PageLocked, Status};
use crate::backend::assertion::failed;
use crate::error::Error;
use crate::spec::KernelSpec;
use std::ffi::CString;
use std::ptr;
use tma_model::assertion::{Record, VARIABLE, WORDS};

/// Host memory to which a kernel writes a record before it traps. Being host memory, it can still
/// be read after the fault has made the device's memory inaccessible.
#[derive(Debug)]
pub(super) struct Listener(PageLocked<WORDS>);

impl Listener {
    /// Attaches to the kernel of a module that was just loaded, or returns `None` if the kernel
    /// writes no records. When this returns, the record's address is still being copied to the
    /// device, on the default stream.
    pub(super) fn attach(
        driver: &'static Driver,
        module: &Module,
        spec: &KernelSpec,
    ) -> Result<Option<Self>, Status> {
        if !has_record_variable(spec.ptx) {
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

    /// Returns the error that the kernel has recorded, if one of its assertions failed.
    pub(super) fn recorded_failure(&self, spec: &'static KernelSpec) -> Option<Error> {
        failed(spec, spec.ptx, Record::decode(self.0.read())?)
    }
}

/// Returns whether the PTX has the variable, as the compiler declares it.
fn has_record_variable(ptx: &str) -> bool {
    let declares = |line: &str| line.strip_suffix(';').is_some_and(|line| line.ends_with(VARIABLE));
    ptx.lines().any(|line| line.starts_with(".visible .global .align 8 .u64 ") && declares(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_that_of_the_compiler() {
        assert!(has_record_variable(".version 8.0\n.visible .global .align 8 .u64 tma_failure;\n"));
        for other in [
            ".visible .global .align 8 .u64 tma_failures;",
            ".visible .global .align 4 .u32 tma_failure;",
            "\tmov.b64 %rd1, tma_failure;",
        ] {
            assert!(!has_record_variable(other), "{other}");
        }
    }
}
