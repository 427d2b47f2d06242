//! A GPU's context: the primary one, of which each device has one per process, or one made by
//! another library.

use super::driver::{self, Attribute, Driver, PrimaryContext, Residence, Status};
use super::kernel::Kernels;
use super::non_blocking::NonBlockingStreams;
use super::watch::Watch;
use crate::backend::properties::Properties;
use crate::error::{DriverStatus, Error, ForeignError, TeamError};
use crate::layout::DeviceId;
use crate::map::{Descriptor, MapParams};
use ptx_probe::print::Progress;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A context, with the kernels loaded into it.
///
/// A context is opened once and kept until the process ends, as the CUDA runtime does: kernels stay
/// compiled, and tensors, streams and events never outlive it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) driver: &'static Driver,
    raw: *mut c_void,
    /// The GPU's ordinal, in the driver's numbering.
    ordinal: u32,
    id: DeviceId,
    properties: Properties,
    kernels: Mutex<Kernels>,
    watches: Mutex<Vec<Watch>>,
    pub(super) non_blocking: NonBlockingStreams,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for Context {}

/// All open contexts.
static OPENED: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

/// Keeps a context current on this thread, and restores the previous one when dropped: other
/// libraries determine from the current context which device they use.
#[derive(Debug)]
#[must_use = "the context is current until this is dropped"]
pub(super) struct Current {
    driver: &'static Driver,
    /// Null if there is nothing to restore.
    before: *mut c_void,
}

impl Current {
    /// Records which context is current now.
    fn note(driver: &'static Driver) -> Self {
        Self { driver, before: driver.current_context() }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if !self.before.is_null() {
            // SAFETY: the context was current on this thread before, so its owner keeps it alive.
            // The driver refuses no context that is alive.
            let _never_fails = unsafe { self.driver.set_current(self.before) };
        }
    }
}

impl Context {
    /// Returns the primary context of the GPU with this ordinal, and opens it at the first call.
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
        let refused = refused(driver, "open the device's context");
        let device = driver.device(ordinal).map_err(&refused)?;
        let primary = PrimaryContext::retain(driver, device).map_err(&refused)?;
        // SAFETY: the reference keeps the context alive.
        unsafe { driver.set_current(primary.raw()) }.map_err(&refused)?;
        let context = Self::new(driver, primary.raw(), ordinal, DeviceId::Cuda(ordinal))?;
        // The context is released when the process ends.
        std::mem::forget(primary);
        Self::keep(&mut opened, context)
    }

    /// Wraps a context that another library made.
    ///
    /// # Safety
    ///
    /// The context stays alive until the process no longer uses the device.
    pub(crate) unsafe fn adopt(raw: *mut c_void) -> Result<&'static Self, Error> {
        let driver = driver::driver()?;
        let failed = refused(driver, "use the context");
        let current = Current::note(driver);
        // SAFETY: as the caller promises. The driver refuses null.
        unsafe { driver.set_current(raw).map_err(&failed)? };
        let device = driver.current_device().map_err(&failed)?;
        let ordinal = driver::from_int(device).map_err(&failed)?;
        if driver.primary_is_open(device).map_err(&failed)? {
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

    /// Lets kernels of this context access all memory of the other one.
    pub(crate) fn enable_peer(&self, peer: &Self) -> Result<(), Error> {
        let refused = |status| Error::from(TeamError::NoPeerAccess { from: self.id, to: peer.id, status });
        let failed = |code| refused(Some(self.driver.status(code)));
        let [from, to] = [self, peer].map(|context| self.driver.device(context.ordinal).map_err(failed));
        if !self.driver.can_access_peer(from?, to?).map_err(failed)? {
            return Err(refused(None));
        }
        let _current = self.make_current()?;
        // SAFETY: contexts are kept until the process ends.
        unsafe { self.driver.enable_peer_access(peer.raw) }.map_err(failed)
    }

    /// Returns the number of GPUs that the driver sees.
    pub(crate) fn count() -> Result<u32, Error> {
        let driver = driver::driver()?;
        driver.device_count().map_err(refused(driver, "count the devices"))
    }

    /// Calls `act` for each open context.
    pub(super) fn each_open(act: impl Fn(&'static Self)) {
        // At the end of the process another thread may still hold the lock.
        if let Ok(opened) = OPENED.try_lock() {
            opened.iter().copied().for_each(act);
        }
    }

    /// Prints what kernels have written by the end of the process, after the last of them.
    pub(super) fn print_last(&self) {
        let Ok(mut kernels) = self.kernels.try_lock() else { return };
        if kernels.may_print()
            && let Ok(_current) = self.make_current()
        {
            let _no_more_calls = self.driver.synchronize_context();
        }
        kernels.show_printed(Progress::Ended);
    }

    /// Prints what kernels have written so far, though others may be running.
    pub(super) fn print(&self) {
        self.kernels().show_printed(Progress::Running);
    }

    fn keep(opened: &mut Vec<&'static Self>, context: Self) -> Result<&'static Self, Error> {
        let context = Box::leak(Box::new(context));
        opened.push(context);
        Ok(context)
    }

    fn new(driver: &'static Driver, raw: *mut c_void, ordinal: u32, id: DeviceId) -> Result<Self, Error> {
        let device = driver.device(ordinal).map_err(refused(driver, "find the device"))?;
        let properties = |attribute| {
            let refusal = refused(driver, "query the device's properties");
            driver.attribute(device, attribute).map_err(refusal)
        };
        let shared_bytes = driver.attribute(device, Attribute::SharedBytes);
        let properties = Properties {
            name: driver.device_name(device).map_err(refused(driver, "query the device's name"))?,
            capability: (properties(Attribute::CapabilityMajor)?, properties(Attribute::CapabilityMinor)?),
            multiprocessors: properties(Attribute::Multiprocessors)?,
            shared_bytes: shared_bytes.map_err(refused(driver, "query the device's shared memory"))?,
        };
        let (kernels, watches) = (Mutex::default(), Mutex::default());
        let non_blocking = NonBlockingStreams::default();
        Ok(Self { driver, raw, ordinal, id, properties, kernels, watches, non_blocking })
    }

    fn is_adopted(&self) -> bool {
        matches!(self.id, DeviceId::Context(_))
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    /// Returns the context's handle.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Makes the context current on this thread, which every other call requires, for the lifetime
    /// of the result.
    ///
    /// This asks the driver each time, since other code in the process may have changed the current
    /// context.
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

    /// Locks the kernels loaded so far. Nothing panics in the middle of a change, so poisoning is
    /// ignored.
    pub(super) fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the kernels whose waits are limited.
    pub(super) fn watches(&self) -> MutexGuard<'_, Vec<Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.make_current()?;
        let waited = self.driver.synchronize_context();
        waited.map_err(|code| self.failure("synchronise the device", code))?;
        self.kernels().all_have_run();
        Ok(())
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        let _current = self.make_current()?;
        self.driver.allocate(bytes as usize).map_err(|code| match code {
            driver::OUT_OF_MEMORY => Error::OutOfMemory { bytes, device: self.id() },
            code => self.failure("allocate memory", code),
        })
    }

    /// Frees an allocation once everything queued has run. A failure comes from an earlier kernel,
    /// and is reported by other calls.
    pub(crate) fn free(&self, address: u64) {
        if let Ok(_current) = self.make_current() {
            let _reported_elsewhere = self.non_blocking.synchronize(self.driver);
            // SAFETY: the address came from `allocate`, and its owner is being dropped.
            let _reported_elsewhere = unsafe { self.driver.free(address) };
            self.print();
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
        // The copy ran on the default stream, which waits for all others.
        self.kernels().all_have_run();
        Ok(())
    }

    /// # Safety
    ///
    /// The range of `bytes` bytes is valid until everything queued has run.
    pub(crate) unsafe fn fill(&self, to: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        self.on_default("fill memory", || unsafe {
            self.driver.fill(to, byte, bytes as usize, ptr::null_mut())
        })
    }

    /// Queues an operation on the default stream, in order with all streams in use.
    pub(super) fn on_default(
        &self,
        operation: &'static str,
        queue: impl FnOnce() -> Result<(), Status>,
    ) -> Result<(), Error> {
        let _current = self.make_current()?;
        self.non_blocking.around(self.driver, queue).map_err(|code| self.failure(operation, code))
    }

    /// Returns how many of the `bytes` bytes that start at `address` are memory that this context
    /// can access. These are all of them if they are in one allocation, or in mapped memory without
    /// gaps.
    pub(crate) fn reachable(&self, address: u64, bytes: u64) -> Result<u64, Error> {
        let _current = self.make_current()?;
        let (mut at, end) = (address, address.saturating_add(bytes));
        while at < end {
            let Ok(range) = self.driver.range(at) else { break };
            match range.residence {
                Residence::Everywhere => {}
                Residence::Device { ordinal, .. } if ordinal != self.ordinal => {
                    let found = DeviceId::Cuda(ordinal);
                    return Err(Error::OtherDevice { what: "the memory", found, wanted: self.id });
                }
                Residence::Device { context, .. } if !context.is_null() && context != self.raw => {
                    return Err(ForeignError::Context { what: "the memory", device: self.id }.into());
                }
                Residence::Device { .. } => {}
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

    /// Returns the error of a failed call: its own, or that of a kernel that stopped earlier.
    #[cold]
    pub(super) fn failure(&self, operation: &'static str, code: Status) -> Error {
        self.fault_or(code, |status| Error::Driver { operation, status })
    }

    /// Returns `otherwise` for a status, unless the status means that a kernel stopped.
    #[cold]
    pub(super) fn fault_or(&self, code: Status, otherwise: impl FnOnce(DriverStatus) -> Error) -> Error {
        let status = self.driver.status(code);
        if !status.is_fault() {
            return otherwise(status);
        }
        self.kernels().show_printed(Progress::Ended);
        self.reported().unwrap_or_else(|| self.kernels().fault(status))
    }

    /// Returns the error of a kernel that has reported its waits.
    pub(super) fn reported(&self) -> Option<Error> {
        self.watches().iter().find_map(Watch::reported)
    }
}

/// Returns the error of a call made before there is a context.
fn refused(driver: &'static Driver, operation: &'static str) -> impl Fn(Status) -> Error {
    move |code| Error::Driver { operation, status: driver.status(code) }
}
