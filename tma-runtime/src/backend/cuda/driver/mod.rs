//! The driver's entry points. All FFI is in this folder.
//!
//! The entry points are looked up once, by name, in the driver's library. A program therefore
//! builds without CUDA installed, and starts without a driver and can report that there is none.
//! Statuses are plain numbers, because a newer driver may return statuses that no enum of today
//! has.
//!
//! Resources of the driver that must be released have owners: [`PrimaryContext`], [`Module`],
//! [`OwnedStream`](stream::OwnedStream), [`Event`], [`Recording`], [`ExecutableGraph`] and
//! [`PageLocked`].

mod device;
mod event;
mod graph;
mod launch;
mod lookup;
mod memory;
mod module;
pub(super) mod stream;

pub(super) use device::{Attribute, PrimaryContext};
pub(super) use event::Event;
pub(super) use graph::{ExecutableGraph, Recording, RelaxedCaptures};
pub(super) use launch::{LaunchAttribute, LaunchConfig};
pub(super) use lookup::Residence;
pub(super) use memory::PageLocked;
pub(super) use module::{Function, Module};

use crate::error::{DriverStatus, Error};
use crate::map::options::L2Promotion;
use crate::map::{Descriptor, MapParams};
use libloading::Library;
use once_cell::sync::OnceCell;
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use tma_model::tensor_map::Mode;

/// `CUresult`.
pub(super) type Status = c_int;
/// `CUDA_SUCCESS`.
pub(super) const SUCCESS: Status = 0;
/// `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: Status = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) const OUT_OF_MEMORY: Status = 2;
/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: Status = 100;
/// `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`.
const SHARED_OBJECT_INIT_FAILED: Status = 303;
/// `CUDA_ERROR_NOT_FOUND`.
pub(super) const NOT_FOUND: Status = 500;
/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const PEER_ACCESS_ALREADY_ENABLED: Status = 704;
/// `CUDA_ERROR_UNKNOWN`.
const UNKNOWN: Status = 999;

/// The driver's library, whose name has not changed since CUDA 1.
const LIBRARY: &str = "libcuda.so.1";

macro_rules! entry_points {
    ($($field:ident = $symbol:literal ($($arg:ty),*);)+) => {
        /// The driver's entry points.
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
    module_get_function = c"cuModuleGetFunction" (*mut *mut c_void, *mut c_void, *const c_char);
    module_get_global = c"cuModuleGetGlobal_v2" (*mut u64, *mut usize, *mut c_void, *const c_char);
    module_unload = c"cuModuleUnload" (*mut c_void);
    ctx_get_current = c"cuCtxGetCurrent" (*mut *mut c_void);
    ctx_set_current = c"cuCtxSetCurrent" (*mut c_void);
    ctx_get_device = c"cuCtxGetDevice" (*mut c_int);
    ctx_synchronize = c"cuCtxSynchronize" ();
    ctx_enable_peer_access = c"cuCtxEnablePeerAccess" (*mut c_void, c_uint);
    primary_ctx_retain = c"cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
    primary_ctx_release = c"cuDevicePrimaryCtxRelease_v2" (c_int);
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
    thread_exchange_capture_mode = c"cuThreadExchangeStreamCaptureMode" (*mut c_uint);
    stream_end_capture = c"cuStreamEndCapture" (*mut c_void, *mut *mut c_void);
    graph_instantiate = c"cuGraphInstantiateWithFlags" (*mut *mut c_void, *mut c_void, u64);
    graph_launch = c"cuGraphLaunch" (*mut c_void, *mut c_void);
    graph_destroy = c"cuGraphDestroy" (*mut c_void);
    graph_exec_destroy = c"cuGraphExecDestroy" (*mut c_void);
    most_blocks = c"cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, *mut c_void, c_int, usize);
    most_clusters = c"cuOccupancyMaxActiveClusters" (*mut c_int, *mut c_void, *const LaunchConfig<'_>);
    device_get = c"cuDeviceGet" (*mut c_int, c_int);
    device_can_access_peer = c"cuDeviceCanAccessPeer" (*mut c_int, c_int, c_int);
    device_get_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    device_get_count = c"cuDeviceGetCount" (*mut c_int);
    device_get_name = c"cuDeviceGetName" (*mut c_char, c_int, c_int);
    mem_alloc = c"cuMemAlloc_v2" (*mut u64, usize);
    mem_alloc_host = c"cuMemAllocHost_v2" (*mut *mut c_void, usize);
    mem_free = c"cuMemFree_v2" (u64);
    mem_free_host = c"cuMemFreeHost" (*mut c_void);
    memcpy_htod = c"cuMemcpyHtoD_v2" (u64, *const c_void, usize);
    memcpy_dtoh = c"cuMemcpyDtoH_v2" (*mut c_void, u64, usize);
    memcpy_dtod_async = c"cuMemcpyDtoDAsync_v2" (u64, u64, usize, *mut c_void);
    memset_d8_async = c"cuMemsetD8Async" (u64, u8, usize, *mut c_void);
    get_error_name = c"cuGetErrorName" (Status, *mut *const c_char);
    get_error_string = c"cuGetErrorString" (Status, *mut *const c_char);
}

static DRIVER: OnceCell<Driver> = OnceCell::new();

/// Opens the driver's library, initialises the driver and looks up its entry points.
///
/// # Errors
///
/// [`Error::NoDriver`], or [`Error::MissingEntryPoint`] if the driver is too old. A driver without
/// a device counts as initialised: devices are counted later.
pub(super) fn driver() -> Result<&'static Driver, Error> {
    DRIVER.get_or_try_init(|| {
        // SAFETY: the driver may be loaded at any time, from any thread.
        let library = unsafe { Library::new(LIBRARY) }.map_err(|error| {
            // The loader's message names the library.
            let description = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Error::NoDriver { status: DriverStatus { description, ..unnamed(SHARED_OBJECT_INIT_FAILED) } }
        })?;
        // SAFETY: `cuInit` takes flags, which must be 0, and may be called more than once.
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

/// Converts a status to a result.
fn checked(code: Status) -> Result<(), Status> {
    if code == SUCCESS { Ok(()) } else { Err(code) }
}

/// Converts a number for the driver. One that it cannot represent is an invalid argument.
fn to_int(number: u32) -> Result<c_int, Status> {
    c_int::try_from(number).map_err(|_| INVALID_VALUE)
}

/// Converts a number of the driver. None of those that are asked for is negative.
pub(super) fn from_int(number: c_int) -> Result<u32, Status> {
    u32::try_from(number).map_err(|_| UNKNOWN)
}

impl Driver {
    /// Returns the name and the description of a status.
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
            // SAFETY: the arrays have as many elements as the rank says (the strides have one
            // fewer), and the descriptor is aligned.
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
            // SAFETY: as above, and the corners have two elements fewer than the rank.
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
        // SAFETY: on success the driver has written the whole descriptor.
        Ok(unsafe { descriptor.assume_init() })
    }
}

/// Returns the `CUtensorMapL2promotion` of an L2 promotion.
fn l2_promotion(promotion: L2Promotion) -> c_uint {
    match promotion {
        L2Promotion::None => 0,
        L2Promotion::B64 => 1,
        L2Promotion::B128 => 2,
        L2Promotion::B256 => 3,
    }
}

/// Has `callback` called when the process ends normally. The driver's own callback, which is
/// registered when the driver is initialised, is called later. Only the first call has an effect,
/// and none if the C library cannot keep one more callback.
pub(super) fn at_exit(callback: fn()) {
    static CALLBACK: OnceLock<fn()> = OnceLock::new();
    unsafe extern "C" {
        safe fn atexit(callback: extern "C" fn()) -> i32;
    }
    extern "C" fn call() {
        if let Some(callback) = CALLBACK.get() {
            callback();
        }
    }
    if CALLBACK.set(callback).is_ok() {
        let _kept_or_not = atexit(call);
    }
}
