//! Clock, power and temperature of a GPU, from NVIDIA's management library.
//!
//! Source of types and values: NVIDIA, "NVML API Reference Guide", and `nvml.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use anyhow::ensure;
use libloading::Library;
use serde::Serialize;

use super::open_first;

/// `NVML_CLOCK_SM`.
const CLOCK_OF_MULTIPROCESSORS: c_int = 1;
/// `NVML_TEMPERATURE_GPU`.
const TEMPERATURE_OF_CHIP: c_int = 0;
/// `NVML_FI_DEV_POWER_INSTANT`. `nvmlDeviceGetPowerUsage` would be the mean of a second.
const INSTANT_POWER: c_uint = 186;

type Handle = *mut c_void;
type Init = unsafe extern "C" fn() -> c_int;
type GetHandle = unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int;
type GetNumber = unsafe extern "C" fn(Handle, c_int, *mut c_uint) -> c_int;
type GetFields = unsafe extern "C" fn(Handle, c_int, *mut Field) -> c_int;

/// `nvmlFieldValue_t`. The first 4 bytes of its union are the milliwatts.
#[repr(C)]
#[derive(Default)]
struct Field {
    id: c_uint,
    scope: c_uint,
    timestamp: i64,
    latency: i64,
    value_type: c_int,
    status: c_int,
    value: [c_uint; 2],
}

/// The initialised library, and a GPU.
pub struct Nvml {
    gpu: Handle,
    clock: GetNumber,
    temperature: GetNumber,
    fields: GetFields,
    shutdown: Init,
    /// Unloaded last.
    _library: Library,
}

// SAFETY: several threads may call at the same time (NVIDIA, "NVML API Reference Guide", "NVML API
// Reference").
unsafe impl Sync for Nvml {}

/// The state of a GPU at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct State {
    /// Clock of the multiprocessors in MHz.
    pub mhz: f64,
    /// Power in W.
    pub watts: f64,
    /// Temperature of the chip in °C.
    pub celsius: f64,
}

impl Nvml {
    /// Loads the library for the GPU with this PCI address.
    ///
    /// # Errors
    ///
    /// A library that is not found, or a call that failed.
    pub fn load(bus_id: &CStr) -> anyhow::Result<Self> {
        let library = open_first("libnvidia-ml.so", &["libnvidia-ml.so.1".into()])?;
        // SAFETY: each symbol has its type in `nvml.h`.
        let (init, get_handle) = unsafe {
            let init = *library.get::<Init>(c"nvmlInit_v2")?;
            (init, *library.get::<GetHandle>(c"nvmlDeviceGetHandleByPciBusId_v2")?)
        };
        // SAFETY: as above.
        let (clock, temperature, fields, shutdown) = unsafe {
            (
                *library.get::<GetNumber>(c"nvmlDeviceGetClockInfo")?,
                *library.get::<GetNumber>(c"nvmlDeviceGetTemperature")?,
                *library.get::<GetFields>(c"nvmlDeviceGetFieldValues")?,
                *library.get::<Init>(c"nvmlShutdown")?,
            )
        };
        // SAFETY: the call is allowed at any time.
        succeeded("nvmlInit_v2", unsafe { init() })?;
        let null = ptr::null_mut();
        let mut nvml = Self { gpu: null, clock, temperature, fields, shutdown, _library: library };
        // SAFETY: the text ends with a zero, and the call writes a handle.
        let status = unsafe { get_handle(bus_id.as_ptr(), &mut nvml.gpu) };
        succeeded("nvmlDeviceGetHandleByPciBusId_v2", status)?;
        Ok(nvml)
    }

    /// Returns the present state of the GPU.
    ///
    /// # Errors
    ///
    /// The call that failed.
    pub fn state(&self) -> anyhow::Result<State> {
        let (mut mhz, mut celsius) = (0, 0);
        let mut power = Field { id: INSTANT_POWER, ..Field::default() };
        // SAFETY: the handle lives as long as the library is initialised; the call writes a number.
        let status = unsafe { (self.clock)(self.gpu, CLOCK_OF_MULTIPROCESSORS, &mut mhz) };
        succeeded("nvmlDeviceGetClockInfo", status)?;
        // SAFETY: as above.
        let status = unsafe { (self.temperature)(self.gpu, TEMPERATURE_OF_CHIP, &mut celsius) };
        succeeded("nvmlDeviceGetTemperature", status)?;
        // SAFETY: as above, and the call writes one field.
        let status = unsafe { (self.fields)(self.gpu, 1, &mut power) };
        succeeded("nvmlDeviceGetFieldValues", status)?;
        succeeded("the field of the power", power.status)?;
        let watts = f64::from(power.value[0]) / 1e3;
        Ok(State { mhz: f64::from(mhz), watts, celsius: f64::from(celsius) })
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: the library was initialised once, and is shut down once.
        unsafe { (self.shutdown)() };
    }
}

fn succeeded(call: &str, status: c_int) -> anyhow::Result<()> {
    ensure!(status == 0, "{call} failed with status {status}");
    Ok(())
}
