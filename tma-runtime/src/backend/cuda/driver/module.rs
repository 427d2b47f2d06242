//! Modules: PTX compiled by the driver, and the functions in it.

use super::{Driver, SUCCESS, Status, checked, to_int};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: c_int = 14;
/// `CU_JIT_GENERATE_LINE_INFO`.
const LINE_INFO: c_int = 13;
/// `CU_JIT_INFO_LOG_BUFFER`, `CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES`, `CU_JIT_ERROR_LOG_BUFFER`,
/// `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`, `CU_JIT_LOG_VERBOSE` and [`LINE_INFO`].
const LOG_OPTIONS: [c_int; 6] = [3, 4, 5, 6, 12, LINE_INFO];
/// Size of each log of the driver's compiler, in bytes.
const LOG_BYTES: usize = 16 * 1024;

/// `CUfunction`, which is valid as long as its module.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::cuda) struct Function(pub(in crate::backend::cuda) *mut c_void);

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Function {}

/// A module in a context.
#[derive(Debug)]
pub(in crate::backend::cuda) struct Module {
    driver: &'static Driver,
    raw: *mut c_void,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Module {}

impl Module {
    /// Has the driver compile PTX for the current context, with line information for profilers and
    /// debuggers.
    pub(in crate::backend::cuda) fn load(driver: &'static Driver, ptx: &CStr) -> Result<Self, Status> {
        // SAFETY: the value is a number, as the option requires.
        let raw = unsafe { driver.load(ptx, &mut [LINE_INFO], &mut [number(1)])? };
        Ok(Self { driver, raw })
    }

    /// Returns the function with this name.
    ///
    /// # Errors
    ///
    /// [`NOT_FOUND`](super::NOT_FOUND) if there is none.
    pub(in crate::backend::cuda) fn function(&self, name: &CStr) -> Result<Function, Status> {
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, and the driver writes the function's handle.
        checked(unsafe { (self.driver.module_get_function)(&mut function, self.raw, name.as_ptr()) })?;
        Ok(Function(function))
    }

    /// Returns the device address and the size in bytes of the global variable with this name.
    pub(in crate::backend::cuda) fn global(&self, name: &CStr) -> Result<(u64, usize), Status> {
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, and the driver writes an address and a number.
        checked(unsafe {
            (self.driver.module_get_global)(&mut address, &mut bytes, self.raw, name.as_ptr())
        })?;
        Ok((address, bytes))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the handle is not shared, and functions are not used after their module is
        // dropped.
        unsafe { (self.driver.module_unload)(self.raw) };
    }
}

impl Driver {
    /// Loads PTX with options of the driver's compiler.
    ///
    /// # Safety
    ///
    /// There are as many values as options, each of the kind that its option requires.
    unsafe fn load(
        &self,
        ptx: &CStr,
        options: &mut [c_int],
        values: &mut [*mut c_void],
    ) -> Result<*mut c_void, Status> {
        let mut module = ptr::null_mut();
        let count = options.len().min(values.len()) as c_uint;
        // SAFETY: the text is terminated, and the rest as the caller promises.
        checked(unsafe {
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            (self.module_load_data_ex)(&mut module, ptx.as_ptr().cast(), count, options, values)
        })?;
        Ok(module)
    }

    /// Compiles PTX again, to get the compiler's status and logs.
    pub(in crate::backend::cuda) fn jit_log(&self, ptx: &CStr) -> (Status, String) {
        let mut info = vec![0u8; LOG_BYTES];
        let mut error = vec![0u8; LOG_BYTES];
        let mut values = [
            info.as_mut_ptr().cast(),
            number(info.len()),
            error.as_mut_ptr().cast(),
            number(error.len()),
            number(1),
            number(1),
        ];
        // SAFETY: the buffers have the lengths given by the options.
        let code = unsafe {
            match self.load(ptx, &mut LOG_OPTIONS.clone(), &mut values) {
                Ok(module) => {
                    (self.module_unload)(module);
                    SUCCESS
                }
                Err(code) => code,
            }
        };
        let log = [error, info].map(|bytes| {
            let text = CStr::from_bytes_until_nul(&bytes).map(CStr::to_string_lossy).unwrap_or_default();
            text.trim().to_owned()
        });
        (code, log.join("\n").trim().to_owned())
    }

    /// Opts a function in to this many bytes of dynamic shared memory.
    pub(in crate::backend::cuda) fn allow_shared_bytes(
        &self,
        function: Function,
        bytes: u32,
    ) -> Result<(), Status> {
        let bytes = to_int(bytes)?;
        // SAFETY: the function's module is loaded.
        checked(unsafe { (self.func_set_attribute)(function.0, MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes) })
    }

    /// Opts a function in to cluster sizes that not every device supports.
    pub(in crate::backend::cuda) fn allow_nonportable_clusters(
        &self,
        function: Function,
    ) -> Result<(), Status> {
        // SAFETY: the function's module is loaded.
        checked(unsafe { (self.func_set_attribute)(function.0, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) })
    }
}

/// Converts a number to the value of an option, which is passed as a pointer.
fn number(value: usize) -> *mut c_void {
    ptr::without_provenance_mut(value)
}
