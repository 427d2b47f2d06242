//! A GPU's context: the primary one, which exists once per device and process, or one of another
//! library.

use super::beside::Beside;
use super::driver::{self, Driver, Held, Status};
use super::kernel::Kernels;
use super::stream::Stream;
use crate::device::Properties;
use crate::error::{DriverStatus, Error, ForeignError};
use crate::map::{Descriptor, MapParams};
use crate::tensor::layout::DeviceId;
use cust::context::CurrentContext;
use cust::device::DeviceAttribute;
use cust::error::{CudaError, CudaResult};
use cust::memory::{DevicePointer, cuda_free, cuda_malloc};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A context, with the kernels loaded into it.
///
/// It is opened once and kept until the process ends, as the CUDA runtime does: kernels stay
/// compiled, and tensors, streams and events never outlive it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) driver: &'static Driver,
    raw: *mut c_void,
    /// The GPU, as the driver counts them.
    ordinal: u32,
    id: DeviceId,
    properties: Properties,
    kernels: Mutex<Kernels>,
    pub(super) beside: Beside,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above, also at the same time.
unsafe impl Sync for Context {}

/// All open contexts.
static OPENED: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

/// Keeps a context current on this thread. Another one that was current before is current again
/// afterwards: other libraries tell by it which device they use.
#[derive(Debug)]
#[must_use = "the context is current until this is dropped"]
pub(super) struct Current {
    driver: &'static Driver,
    /// Null if there is nothing to restore.
    before: *mut c_void,
}

impl Current {
    /// Notes which context is current now.
    fn note(driver: &'static Driver) -> Self {
        Self { driver, before: driver.current_context() }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if !self.before.is_null() {
            // SAFETY: it was current on this thread before, so its owner keeps it alive. The driver
            // refuses no context that is alive.
            let _never_fails = unsafe { self.driver.set_current(self.before) };
        }
    }
}

impl Context {
    /// The primary context of the GPU with this ordinal, opened at the first call.
    pub(crate) fn open(ordinal: u32) -> Result<&'static Self, Error> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = opened.iter().find(|context| context.id == DeviceId::Cuda(ordinal)) {
            return Ok(context);
        }
        let count = Self::count()?;
        if ordinal >= count {
            return Err(Error::NoDevice { ordinal, count });
        }
        let driver = driver::driver()?;
        let _current = Current::note(driver);
        let context = cust::device::Device::get_device(ordinal).and_then(cust::context::Context::new);
        let context = context.map_err(refused(driver, "open the device's context"))?;
        let raw = context.as_raw().cast();
        // Released when the process ends.
        std::mem::forget(context);
        Self::keep(&mut opened, Self::new(driver, raw, ordinal, DeviceId::Cuda(ordinal))?)
    }

    /// A context that another library made.
    ///
    /// # Safety
    ///
    /// The context is alive until the process no longer uses the device.
    pub(crate) unsafe fn adopt(raw: *mut c_void) -> Result<&'static Self, Error> {
        let driver = driver::driver()?;
        let failed = |code| Error::Driver { operation: "use the context", status: driver.status(code) };
        let current = Current::note(driver);
        // SAFETY: as the caller promises. The driver refuses null.
        unsafe { driver.set_current(raw).map_err(failed)? };
        let device = driver.current_device().map_err(failed)?;
        let ordinal = u32::try_from(device).unwrap_or_default();
        if driver.primary_is_open(device).map_err(failed)? {
            let primary = Self::open(ordinal)?;
            if primary.raw == raw {
                return Ok(primary);
            }
        }
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = opened.iter().find(|context| context.raw == raw) {
            return Ok(context);
        }
        let id = DeviceId::Context(opened.iter().filter(|context| context.is_adopted()).count() as u32);
        let context = Self::new(driver, raw, ordinal, id)?;
        drop(current);
        Self::keep(&mut opened, context)
    }

    /// How many GPUs the driver sees.
    pub(crate) fn count() -> Result<u32, Error> {
        let driver = driver::driver()?;
        match cust::device::Device::num_devices() {
            Err(CudaError::NoDevice) => Ok(0),
            count => count.map_err(refused(driver, "count the devices")),
        }
    }

    fn keep(opened: &mut Vec<&'static Self>, context: Self) -> Result<&'static Self, Error> {
        let context = Box::leak(Box::new(context));
        opened.push(context);
        Ok(context)
    }

    fn new(driver: &'static Driver, raw: *mut c_void, ordinal: u32, id: DeviceId) -> Result<Self, Error> {
        let device = cust::device::Device::get_device(ordinal).map_err(refused(driver, "find the device"))?;
        let attribute = |attribute| {
            let asked = refused(driver, "ask for the device's properties");
            Ok::<_, Error>(u32::try_from(device.get_attribute(attribute).map_err(asked)?).unwrap_or_default())
        };
        let properties = Properties {
            name: device.name().map_err(refused(driver, "ask for the device's name"))?,
            capability: (
                attribute(DeviceAttribute::ComputeCapabilityMajor)?,
                attribute(DeviceAttribute::ComputeCapabilityMinor)?,
            ),
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
            shared_bytes: driver.shared_bytes(device.as_raw()).map_err(|code| Error::Driver {
                operation: "ask for the device's shared memory",
                status: driver.status(code),
            })?,
        };
        let (kernels, beside) = (Mutex::default(), Beside::default());
        Ok(Self { driver, raw, ordinal, id, properties, kernels, beside })
    }

    fn is_adopted(&self) -> bool {
        matches!(self.id, DeviceId::Context(_))
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    /// The context's handle.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Makes the context current on this thread, which every other call requires, for as long as
    /// the result lives.
    ///
    /// It asks the driver, since other code in the process may have changed the current context.
    pub(super) fn make_current(&self) -> Result<Current, Error> {
        let (driver, before) = (self.driver, self.driver.current_context());
        if before == self.raw {
            return Ok(Current { driver, before: ptr::null_mut() });
        }
        // SAFETY: contexts are kept until the process ends.
        let changed = unsafe { driver.set_current(self.raw) };
        changed.map_err(|code| self.failure("make the device's context current", code))?;
        Ok(Current { driver, before })
    }

    /// The kernels loaded so far. Nothing panics halfway through a change, so poisoning is ignored.
    pub(super) fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stream(&'static self) -> Result<Stream, Error> {
        Stream::new(self)
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.make_current()?;
        self.asked("synchronise the device", CurrentContext::synchronize())?;
        self.kernels().all_have_run();
        Ok(())
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        let _current = self.make_current()?;
        // SAFETY: an allocation of bytes, which are not read as anything else before they are
        // written.
        match unsafe { cuda_malloc::<u8>(bytes as usize) } {
            Err(CudaError::OutOfMemory) => Err(Error::OutOfMemory { bytes, device: self.id() }),
            pointer => Ok(self.asked("allocate memory", pointer)?.as_raw()),
        }
    }

    /// Frees an allocation, once everything queued has run. A failure belongs to an earlier kernel,
    /// and other calls report it.
    pub(crate) fn free(&self, address: u64) {
        if let Ok(_current) = self.make_current() {
            let _reported_elsewhere = self.beside.synchronize(self.driver);
            // SAFETY: the address came from `allocate`, and its owner is being dropped.
            let _reported_elsewhere = unsafe { cuda_free(DevicePointer::<u8>::from_raw(address)) };
        }
    }

    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(crate) unsafe fn copy_to_device(&self, to: u64, from: *const u8, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let copy = || unsafe { self.driver.copy_to_device(to, from, bytes as usize) };
        self.on_default("copy to the device", copy)
    }

    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(crate) unsafe fn copy_to_host(&self, to: *mut u8, from: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let copy = || unsafe { self.driver.copy_to_host(to, from, bytes as usize) };
        self.on_default("copy to the host", copy)?;
        // The default stream, on which the copy ran, waits for all others.
        self.kernels().all_have_run();
        Ok(())
    }

    /// # Safety
    ///
    /// The range of `bytes` bytes is valid until everything queued has run.
    pub(crate) unsafe fn fill(&self, to: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        self.on_default("fill memory", || unsafe { self.driver.fill(to, byte, bytes as usize) })
    }

    /// Queues something on the default stream, in order with all streams in use.
    pub(super) fn on_default(
        &self,
        operation: &'static str,
        queue: impl FnOnce() -> Result<(), Status>,
    ) -> Result<(), Error> {
        let _current = self.make_current()?;
        self.beside.around(self.driver, queue).map_err(|code| self.failure(operation, code))
    }

    /// How many of `bytes` bytes from `address` on are memory that this context reaches: all, if
    /// they are in one allocation or in mapped memory without gaps.
    pub(crate) fn reachable(&self, address: u64, bytes: u64) -> Result<u64, Error> {
        let _current = self.make_current()?;
        let (mut at, end) = (address, address.saturating_add(bytes));
        while at < end {
            let Ok(range) = self.driver.range(at) else { break };
            match range.held {
                Held::Everywhere => {}
                Held::Device { ordinal, .. } if u32::try_from(ordinal) != Ok(self.ordinal) => {
                    let found = DeviceId::Cuda(u32::try_from(ordinal).unwrap_or_default());
                    return Err(Error::OtherDevice { what: "the memory", found, wanted: self.id });
                }
                Held::Device { context, .. } if !context.is_null() && context != self.raw => {
                    return Err(ForeignError::Context { what: "the memory", device: self.id }.into());
                }
                Held::Device { .. } => {}
            }
            if range.end <= at {
                break;
            }
            at = range.end;
        }
        if at == address && bytes > 0 {
            return Err(ForeignError::Memory { address, device: self.id }.into());
        }
        Ok(at.min(end) - address)
    }

    /// Encodes a tensor map.
    pub(crate) fn encode(&self, tensor: &'static str, params: &MapParams) -> Result<Descriptor, Error> {
        super::descriptor::encode_params(self.driver, tensor, params)
    }

    /// The result of one of `cust`'s calls.
    pub(super) fn asked<T>(&self, operation: &'static str, result: CudaResult<T>) -> Result<T, Error> {
        result.map_err(|error| self.failure(operation, code(error)))
    }

    /// The error of a failed call: the call's own, or that of a kernel that stopped earlier.
    #[cold]
    pub(super) fn failure(&self, operation: &'static str, code: Status) -> Error {
        self.fault_or(code, |status| Error::Driver { operation, status })
    }

    /// The error of a status: `otherwise`, unless the status means that a kernel stopped.
    #[cold]
    pub(super) fn fault_or(&self, code: Status, otherwise: impl FnOnce(DriverStatus) -> Error) -> Error {
        let status = self.driver.status(code);
        if status.is_fault() { self.kernels().fault(status) } else { otherwise(status) }
    }
}

/// The driver status of a `cust` error.
pub(super) fn code(error: CudaError) -> Status {
    error as Status
}

/// The error of one of `cust`'s calls before there is a context.
fn refused(driver: &'static Driver, operation: &'static str) -> impl Fn(CudaError) -> Error {
    move |error| Error::Driver { operation, status: driver.status(code(error)) }
}
