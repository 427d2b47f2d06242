//! Queries about contexts, streams and addresses that other libraries made.

use super::stream::NON_BLOCKING;
use super::{Driver, Status, checked, from_int};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// Values of `CUpointer_attribute`: the context, the memory type, whether the memory is managed,
/// the device's ordinal, and the start and length of the allocation.
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;

/// `CU_MEMORYTYPE_DEVICE`.
const DEVICE_MEMORY: c_uint = 2;

/// The allocation, or the part of mapped memory, that contains an address.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::cuda) struct Range {
    pub(in crate::backend::cuda) end: u64,
    pub(in crate::backend::cuda) residence: Residence,
}

/// The location of an allocation, as far as it decides who may use it.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::cuda) enum Residence {
    /// Memory of a GPU. The context is null for memory of pools and for mapped memory.
    Device { ordinal: u32, context: *mut c_void },
    /// Page-locked memory of the host or managed memory, which every context can access.
    Everywhere,
}

impl Driver {
    /// Returns the context that is current on this thread, or null if there is none.
    pub(in crate::backend::cuda) fn current_context(&self) -> *mut c_void {
        let mut context = ptr::null_mut();
        // SAFETY: the driver writes one pointer. If the call fails, no context is current, and null
        // is correct.
        unsafe { (self.ctx_get_current)(&mut context) };
        context
    }

    /// Makes a context current on this thread. Null means none.
    ///
    /// # Safety
    ///
    /// The context is alive.
    pub(in crate::backend::cuda) unsafe fn set_current(&self, context: *mut c_void) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.ctx_set_current)(context) })
    }

    /// Returns the GPU of the current context.
    pub(in crate::backend::cuda) fn current_device(&self) -> Result<c_int, Status> {
        let mut device = 0;
        // SAFETY: the driver writes one number.
        checked(unsafe { (self.ctx_get_device)(&mut device) })?;
        Ok(device)
    }

    /// Returns whether the GPU's primary context is open in this process.
    pub(in crate::backend::cuda) fn primary_is_open(&self, device: c_int) -> Result<bool, Status> {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: the driver writes two numbers.
        checked(unsafe { (self.primary_ctx_get_state)(device, &mut flags, &mut active) })?;
        Ok(active != 0)
    }

    /// Returns the context of a stream. For the default stream this is the current context.
    ///
    /// # Safety
    ///
    /// The stream is alive.
    pub(in crate::backend::cuda) unsafe fn context_of(
        &self,
        stream: *mut c_void,
    ) -> Result<*mut c_void, Status> {
        let mut context = ptr::null_mut();
        // SAFETY: as the caller promises; the driver writes one pointer.
        checked(unsafe { (self.stream_get_ctx)(stream, &mut context) })?;
        Ok(context)
    }

    /// Returns whether a stream and the default stream wait for each other.
    ///
    /// # Safety
    ///
    /// The stream is alive.
    pub(in crate::backend::cuda) unsafe fn waits_for_default(
        &self,
        stream: *mut c_void,
    ) -> Result<bool, Status> {
        let mut flags = 0;
        // SAFETY: as the caller promises; the driver writes one number.
        checked(unsafe { (self.stream_get_flags)(stream, &mut flags) })?;
        Ok(flags & NON_BLOCKING == 0)
    }

    /// Returns whether work queued on the stream is being captured.
    ///
    /// # Safety
    ///
    /// The stream is alive.
    pub(in crate::backend::cuda) unsafe fn is_capturing(&self, stream: *mut c_void) -> Result<bool, Status> {
        let mut status = 0;
        // SAFETY: as the caller promises; the driver writes one number, 0 for no capture.
        checked(unsafe { (self.stream_is_capturing)(stream, &mut status) })?;
        Ok(status != 0)
    }

    /// Returns the memory at an address, or an error for addresses unknown to the driver.
    pub(in crate::backend::cuda) fn range(&self, address: u64) -> Result<Range, Status> {
        let start: u64 = self.pointer(RANGE_START, address)?;
        let bytes: usize = self.pointer(RANGE_SIZE, address)?;
        let kind: c_uint = self.pointer(MEMORY_TYPE, address)?;
        let managed: bool = self.pointer::<u32>(IS_MANAGED, address).unwrap_or_default() != 0;
        let residence = if kind == DEVICE_MEMORY && !managed {
            let ordinal = from_int(self.pointer(DEVICE_ORDINAL, address)?)?;
            // Memory of pools and mapped memory have no context.
            let context = self.pointer::<usize>(CONTEXT, address).unwrap_or_default();
            Residence::Device { ordinal, context: ptr::without_provenance_mut(context) }
        } else {
            Residence::Everywhere
        };
        Ok(Range { end: start.saturating_add(bytes as u64), residence })
    }

    /// Returns an attribute of an address. The driver writes it as a number no larger than `T`.
    fn pointer<T: Copy + Default>(&self, attribute: c_int, address: u64) -> Result<T, Status> {
        const { assert!(size_of::<T>() <= 8) };
        let mut value = MaybeUninit::new(T::default());
        // SAFETY: each attribute queried above is a number or pointer of the size of its type, for
        // which any bits are valid.
        checked(unsafe { (self.pointer_get_attribute)(value.as_mut_ptr().cast(), attribute, address) })?;
        // SAFETY: initialised above.
        Ok(unsafe { value.assume_init() })
    }
}
