//! A GPU's context, which exists once per device and process.

use super::driver::{self, Driver, Status};
use super::kernel::Kernels;
use super::stream::Stream;
use crate::device::Properties;
use crate::error::{DriverStatus, Error};
use crate::tensor::layout::DeviceId;
use cust::context::CurrentContext;
use cust::device::DeviceAttribute;
use cust::error::{CudaError, CudaResult};
use cust::memory::{DevicePointer, cuda_free, cuda_malloc};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A GPU's primary context, with the kernels loaded into it.
///
/// It is opened once and kept until the process ends, as the CUDA runtime does: kernels stay
/// compiled, and tensors, streams and events never outlive it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) driver: &'static Driver,
    context: cust::context::Context,
    ordinal: u32,
    properties: Properties,
    kernels: Mutex<Kernels>,
}

/// All open contexts.
static OPENED: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

impl Context {
    /// The context of the GPU with this ordinal, opened at the first call.
    pub(crate) fn open(ordinal: u32) -> Result<&'static Self, Error> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = opened.iter().find(|context| context.ordinal == ordinal) {
            return Ok(context);
        }
        let context = Box::leak(Box::new(Self::new(ordinal)?));
        opened.push(context);
        Ok(context)
    }

    fn new(ordinal: u32) -> Result<Self, Error> {
        let driver = driver::driver()?;
        let asked = |operation: &'static str| {
            move |error: CudaError| Error::Driver { operation, status: driver.status(code(error)) }
        };
        let count = match cust::device::Device::num_devices() {
            Err(CudaError::NoDevice) => 0,
            count => count.map_err(asked("count the devices"))?,
        };
        if ordinal >= count {
            return Err(Error::NoDevice { ordinal, count });
        }
        let device = cust::device::Device::get_device(ordinal).map_err(asked("find the device"))?;
        let attribute = |attribute| {
            let value = device.get_attribute(attribute).map_err(asked("ask for the device's properties"))?;
            Ok::<_, Error>(u32::try_from(value).unwrap_or_default())
        };
        let properties = Properties {
            name: device.name().map_err(asked("ask for the device's name"))?,
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
        let context = cust::context::Context::new(device).map_err(asked("open the device's context"))?;
        Ok(Self { driver, context, ordinal, properties, kernels: Mutex::default() })
    }

    pub(crate) fn id(&self) -> DeviceId {
        DeviceId::Cuda(self.ordinal)
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Makes the context current on this thread, which every other call requires.
    ///
    /// It asks the driver, since other code in the process may have changed the current context.
    pub(super) fn make_current(&self) -> Result<(), Error> {
        let raw: *mut c_void = self.context.as_raw().cast();
        if self.driver.current_context() == raw {
            return Ok(());
        }
        self.asked("make the device's context current", CurrentContext::set_current(&self.context))
    }

    /// The kernels loaded so far. Nothing panics halfway through a change, so poisoning is ignored.
    pub(super) fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stream(&'static self) -> Result<Stream, Error> {
        Stream::new(self)
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.make_current()?;
        self.asked("synchronise the device", CurrentContext::synchronize())?;
        self.kernels().all_have_run();
        Ok(())
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.make_current()?;
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
        if self.make_current().is_ok() {
            // SAFETY: the address came from `allocate`, and its owner is being dropped.
            let _reported_elsewhere = unsafe { cuda_free(DevicePointer::<u8>::from_raw(address)) };
        }
    }

    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(crate) unsafe fn copy_to_device(&self, to: u64, from: *const u8, bytes: u64) -> Result<(), Error> {
        self.make_current()?;
        // SAFETY: as the caller promises.
        let copied = unsafe { self.driver.copy_to_device(to, from, bytes as usize) };
        copied.map_err(|code| self.failure("copy to the device", code))
    }

    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(crate) unsafe fn copy_to_host(&self, to: *mut u8, from: u64, bytes: u64) -> Result<(), Error> {
        self.make_current()?;
        // SAFETY: as the caller promises.
        let copied = unsafe { self.driver.copy_to_host(to, from, bytes as usize) };
        copied.map_err(|code| self.failure("copy to the host", code))?;
        // The default stream, on which the copy ran, waits for all others.
        self.kernels().all_have_run();
        Ok(())
    }

    /// # Safety
    ///
    /// The range of `bytes` bytes is valid until everything queued has run.
    pub(crate) unsafe fn fill(&self, to: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        self.make_current()?;
        // SAFETY: as the caller promises.
        let filled = unsafe { self.driver.fill(to, byte, bytes as usize) };
        filled.map_err(|code| self.failure("fill memory", code))
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
