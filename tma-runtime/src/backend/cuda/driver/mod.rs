//! The driver's entry points that `cust` lacks, or wraps without what is needed here. Only this
//! folder has FFI.
//!
//! They are looked up once by name in the driver's library, so that a program starts without a
//! driver and can report it. Statuses are plain numbers, because a newer driver returns some that
//! `cust`'s enumeration lacks.

mod event;
mod graph;
mod launch;
mod lookup;

pub(super) use event::Event;
pub(super) use graph::{ExecutableGraph, Recording};
pub(super) use launch::{LaunchAttribute, LaunchConfig};
pub(super) use lookup::Held;

use crate::error::{DriverStatus, Error};
use crate::map::options::L2Promotion;
use crate::map::{Descriptor, MapParams};
use libloading::Library;
use once_cell::sync::OnceCell;
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use tma_model::tensor_map::Mode;

/// `CUresult`.
pub(super) type Status = c_int;
/// `CUDA_SUCCESS`.
pub(super) const SUCCESS: Status = 0;
/// `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`.
const SHARED_OBJECT_INIT_FAILED: Status = 303;
/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: Status = 100;

/// The driver's library, whose name has not changed since CUDA 1.
const LIBRARY: &str = "libcuda.so.1";

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: c_int = 14;
/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
/// `CU_JIT_INFO_LOG_BUFFER`, `CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES`, `CU_JIT_ERROR_LOG_BUFFER`,
/// `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`, `CU_JIT_LOG_VERBOSE` and `CU_JIT_GENERATE_LINE_INFO`.
const JIT_LOG_OPTIONS: [c_int; 6] = [3, 4, 5, 6, 12, 13];
/// Bytes of each log of the driver's compiler.
const JIT_LOG_BYTES: usize = 16 * 1024;

/// `CUfunction`, valid for as long as its module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function(pub(super) *mut c_void);

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Function {}

macro_rules! entry_points {
    ($($field:ident = $symbol:literal ($($arg:ty),*);)+) => {
        /// The entry points, looked up.
        #[derive(Debug)]
        pub(super) struct Driver {
            $($field: unsafe extern "C" fn($($arg),*) -> Status,)+
        }

        impl Driver {
            fn look_up(library: &Library) -> Result<Self, Error> {
                Ok(Self {
                    // SAFETY: the types below are those of the CUDA driver API.
                    $($field: unsafe {
                        *library
                            .get::<unsafe extern "C" fn($($arg),*) -> Status>($symbol)
                            .map_err(|_| Error::MissingEntryPoint { name: $symbol.to_str().unwrap_or_default() })?
                    },)+
                })
            }
        }
    };
}

entry_points! {
    tensor_map_encode_tiled = c"cuTensorMapEncodeTiled" (
        *mut Descriptor, c_uint, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32, c_uint, c_uint,
        c_uint, c_uint
    );
    tensor_map_encode_im2col = c"cuTensorMapEncodeIm2col" (
        *mut Descriptor, c_uint, u32, *mut c_void, *const u64, *const u64, *const i32, *const i32, u32, u32, *const u32,
        c_uint, c_uint, c_uint, c_uint
    );
    launch_kernel_ex = c"cuLaunchKernelEx" (*const LaunchConfig<'_>, *mut c_void, *mut *mut c_void, *mut *mut c_void);
    func_set_attribute = c"cuFuncSetAttribute" (*mut c_void, c_int, c_int);
    module_load_data_ex = c"cuModuleLoadDataEx" (
        *mut *mut c_void, *const c_void, c_uint, *mut c_int, *mut *mut c_void
    );
    module_unload = c"cuModuleUnload" (*mut c_void);
    ctx_get_current = c"cuCtxGetCurrent" (*mut *mut c_void);
    ctx_set_current = c"cuCtxSetCurrent" (*mut c_void);
    ctx_get_device = c"cuCtxGetDevice" (*mut c_int);
    primary_ctx_get_state = c"cuDevicePrimaryCtxGetState" (c_int, *mut c_uint, *mut c_int);
    pointer_get_attribute = c"cuPointerGetAttribute" (*mut c_void, c_int, u64);
    event_create = c"cuEventCreate" (*mut *mut c_void, c_uint);
    event_record = c"cuEventRecord" (*mut c_void, *mut c_void);
    event_synchronize = c"cuEventSynchronize" (*mut c_void);
    event_elapsed = c"cuEventElapsedTime" (*mut f32, *mut c_void, *mut c_void);
    event_destroy = c"cuEventDestroy_v2" (*mut c_void);
    stream_create = c"cuStreamCreate" (*mut *mut c_void, c_uint);
    stream_destroy = c"cuStreamDestroy_v2" (*mut c_void);
    stream_get_ctx = c"cuStreamGetCtx" (*mut c_void, *mut *mut c_void);
    stream_get_flags = c"cuStreamGetFlags" (*mut c_void, *mut c_uint);
    stream_is_capturing = c"cuStreamIsCapturing" (*mut c_void, *mut c_int);
    stream_synchronize = c"cuStreamSynchronize" (*mut c_void);
    stream_wait_event = c"cuStreamWaitEvent" (*mut c_void, *mut c_void, c_uint);
    stream_begin_capture = c"cuStreamBeginCapture_v2" (*mut c_void, c_uint);
    stream_end_capture = c"cuStreamEndCapture" (*mut c_void, *mut *mut c_void);
    graph_instantiate = c"cuGraphInstantiateWithFlags" (*mut *mut c_void, *mut c_void, u64);
    graph_launch = c"cuGraphLaunch" (*mut c_void, *mut c_void);
    graph_destroy = c"cuGraphDestroy" (*mut c_void);
    graph_exec_destroy = c"cuGraphExecDestroy" (*mut c_void);
    most_blocks = c"cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, *mut c_void, c_int, usize);
    most_clusters = c"cuOccupancyMaxActiveClusters" (*mut c_int, *mut c_void, *const LaunchConfig<'_>);
    device_get_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    memcpy_htod = c"cuMemcpyHtoD_v2" (u64, *const c_void, usize);
    memcpy_dtoh = c"cuMemcpyDtoH_v2" (*mut c_void, u64, usize);
    memcpy_dtod_async = c"cuMemcpyDtoDAsync_v2" (u64, u64, usize, *mut c_void);
    memset_d8_async = c"cuMemsetD8Async" (u64, u8, usize, *mut c_void);
    get_error_name = c"cuGetErrorName" (Status, *mut *const c_char);
    get_error_string = c"cuGetErrorString" (Status, *mut *const c_char);
}

static DRIVER: OnceCell<Driver> = OnceCell::new();

/// Opens the driver's library, starts the driver and looks up its entry points.
///
/// # Errors
///
/// [`Error::NoDriver`], or [`Error::MissingEntryPoint`] if it is too old. A driver without a device
/// counts as started: devices are counted later.
pub(super) fn driver() -> Result<&'static Driver, Error> {
    DRIVER.get_or_try_init(|| {
        // SAFETY: the driver may be loaded at any time, from any thread.
        let library = unsafe { Library::new(LIBRARY) }.map_err(|error| {
            // The loader's message, which names the library.
            let description = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Error::NoDriver { status: DriverStatus { description, ..unnamed(SHARED_OBJECT_INIT_FAILED) } }
        })?;
        // SAFETY: `cuInit` takes flags, which must be 0, and may be called again.
        let code = unsafe {
            let init = library.get::<unsafe extern "C" fn(c_uint) -> Status>(c"cuInit");
            init.map_err(|_| Error::MissingEntryPoint { name: "cuInit" })?(0)
        };
        let driver = Driver::look_up(&library);
        // The entry points are used until the process ends.
        std::mem::forget(library);
        match code {
            SUCCESS | NO_DEVICE => driver,
            code => {
                Err(Error::NoDriver { status: driver.map_or_else(|_| unnamed(code), |d| d.status(code)) })
            }
        }
    })
}

fn unnamed(code: Status) -> DriverStatus {
    DriverStatus { code, name: String::new(), description: String::new() }
}

/// A status as a result.
fn checked(code: Status) -> Result<(), Status> {
    if code == SUCCESS { Ok(()) } else { Err(code) }
}

impl Driver {
    /// The name and description of a status.
    pub(super) fn status(&self, code: Status) -> DriverStatus {
        let text = |ask: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = ptr::null();
            // SAFETY: the driver writes the address of a constant string, or null for a status that
            // it does not know.
            unsafe {
                match ask(code, &mut text) {
                    SUCCESS if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
                    _ => String::new(),
                }
            }
        };
        DriverStatus { code, name: text(self.get_error_name), description: text(self.get_error_string) }
    }

    /// The bytes of shared memory that a block on the device can opt in to.
    pub(super) fn shared_bytes(&self, device: c_int) -> Result<u32, Status> {
        let mut bytes = 0;
        // SAFETY: the driver writes one number.
        checked(unsafe {
            (self.device_get_attribute)(&mut bytes, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device)
        })?;
        Ok(u32::try_from(bytes).unwrap_or_default())
    }

    /// Encodes a tensor map.
    pub(super) fn encode(&self, params: &MapParams) -> Result<Descriptor, Status> {
        let mut descriptor = MaybeUninit::<Descriptor>::uninit();
        let MapParams { map, l2_promotion: promotion } = params;
        let (to, rank) = (descriptor.as_mut_ptr(), map.rank() as u32);
        let (element, address) = (map.element.driver_number(), map.address as *mut c_void);
        let (extents, byte_strides) = (map.extents.as_ptr(), map.byte_strides.as_ptr());
        let element_strides = map.element_strides.as_ptr();
        let (interleave, swizzle) = (map.interleave as c_uint, map.swizzle as c_uint);
        let (promotion, fill) = (l2_promotion(*promotion), map.fill as c_uint);
        checked(match &map.mode {
            // SAFETY: the arrays have as many elements as the rank says (strides one fewer), and
            // the descriptor is aligned.
            Mode::Tiled { box_extents } => unsafe {
                (self.tensor_map_encode_tiled)(
                    to,
                    element,
                    rank,
                    address,
                    extents,
                    byte_strides,
                    box_extents.as_ptr(),
                    element_strides,
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                )
            },
            // SAFETY: as above, and the corners have two elements fewer than the rank says.
            Mode::Im2col { lower, upper, channels, pixels } => unsafe {
                (self.tensor_map_encode_im2col)(
                    to,
                    element,
                    rank,
                    address,
                    extents,
                    byte_strides,
                    lower.as_ptr(),
                    upper.as_ptr(),
                    *channels,
                    *pixels,
                    element_strides,
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                )
            },
        })?;
        // SAFETY: on success the driver has written all of it.
        Ok(unsafe { descriptor.assume_init() })
    }

    /// Opts a function in to this many bytes of dynamic shared memory.
    pub(super) fn allow_shared_bytes(&self, function: Function, bytes: u32) -> Result<(), Status> {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the function's module is loaded.
        checked(unsafe { (self.func_set_attribute)(function.0, MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes) })
    }

    /// Opts a function in to clusters that not every device supports.
    pub(super) fn allow_nonportable_clusters(&self, function: Function) -> Result<(), Status> {
        // SAFETY: the function's module is loaded.
        checked(unsafe { (self.func_set_attribute)(function.0, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) })
    }

    /// Compiles PTX again for the compiler's status and logs.
    pub(super) fn jit_log(&self, ptx: &CStr) -> (Status, String) {
        let mut info = vec![0u8; JIT_LOG_BYTES];
        let mut error = vec![0u8; JIT_LOG_BYTES];
        let mut options = JIT_LOG_OPTIONS;
        // Numbers are passed as pointers.
        let number = |value: usize| ptr::without_provenance_mut::<c_void>(value);
        let mut values = [
            info.as_mut_ptr().cast(),
            number(info.len()),
            error.as_mut_ptr().cast(),
            number(error.len()),
            number(1),
            number(1),
        ];
        let mut module = ptr::null_mut();
        // SAFETY: the text is terminated, options and values are equally many, and the buffers have
        // the lengths that the options give.
        let code = unsafe {
            let code = (self.module_load_data_ex)(
                &mut module,
                ptx.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            );
            if code == SUCCESS {
                (self.module_unload)(module);
            }
            code
        };
        let log = [error, info].map(|bytes| {
            let text = CStr::from_bytes_until_nul(&bytes).map(CStr::to_string_lossy).unwrap_or_default();
            text.trim().to_owned()
        });
        (code, log.join("\n").trim().to_owned())
    }

    /// Copies from the host, on the default stream.
    ///
    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(super) unsafe fn copy_to_device(&self, to: u64, from: *const u8, bytes: usize) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memcpy_htod)(to, from.cast(), bytes) })
    }

    /// Copies to the host, on the default stream, and waits.
    ///
    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(super) unsafe fn copy_to_host(&self, to: *mut u8, from: u64, bytes: usize) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memcpy_dtoh)(to.cast(), from, bytes) })
    }

    /// Queues a copy within the device.
    ///
    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid until the copy has run; the stream is alive.
    pub(super) unsafe fn copy_on_device(
        &self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: *mut c_void,
    ) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memcpy_dtod_async)(to, from, bytes, stream) })
    }

    /// Queues setting bytes, on the default stream.
    ///
    /// # Safety
    ///
    /// The range of `bytes` bytes is valid until it is done.
    pub(super) unsafe fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memset_d8_async)(to, byte, bytes, ptr::null_mut()) })
    }
}

/// `CUtensorMapL2promotion`.
fn l2_promotion(promotion: L2Promotion) -> c_uint {
    match promotion {
        L2Promotion::None => 0,
        L2Promotion::B64 => 1,
        L2Promotion::B128 => 2,
        L2Promotion::B256 => 3,
    }
}
