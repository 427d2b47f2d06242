//! Questions about contexts, streams and addresses that other libraries made.

use super::stream::NON_BLOCKING;
use super::{Driver, Status, checked};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// `CUpointer_attribute`: the context, the type of the memory, whether it is managed, the device's
/// ordinal, and the start and length of the allocation.
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;

/// `CU_MEMORYTYPE_DEVICE`.
const DEVICE_MEMORY: c_uint = 2;

/// The allocation, or the part of mapped memory, that an address lies in.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::cuda) struct Range {
    pub(in crate::backend::cuda) end: u64,
    pub(in crate::backend::cuda) held: Held,
}

/// Where an allocation is, as far as it matters who may use it.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::cuda) enum Held {
    /// In the memory of a GPU; the context is null for memory of pools and mapped memory.
    Device { ordinal: c_int, context: *mut c_void },
    /// Page-locked on the host, or managed: every context reaches it.
    Everywhere,
}

impl Driver {
    /// The context that is current on this thread; null if there is none.
    pub(in crate::backend::cuda) fn current_context(&self) -> *mut c_void {
        let mut context = ptr::null_mut();
        // SAFETY: the driver writes one pointer. If it fails there is no current context, and null
        // is correct.
        unsafe { (self.ctx_get_current)(&mut context) };
        context
    }

    /// Makes a context current on this thread; null for none.
    ///
    /// # Safety
    ///
    /// The context is alive.
    pub(in crate::backend::cuda) unsafe fn set_current(&self, context: *mut c_void) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.ctx_set_current)(context) })
    }

    /// The GPU of the current context.
    pub(in crate::backend::cuda) fn current_device(&self) -> Result<c_int, Status> {
        let mut device = 0;
        // SAFETY: the driver writes one number.
        checked(unsafe { (self.ctx_get_device)(&mut device) })?;
        Ok(device)
    }

    /// Whether somebody has opened the GPU's primary context.
    pub(in crate::backend::cuda) fn primary_is_open(&self, device: c_int) -> Result<bool, Status> {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: the driver writes two numbers.
        checked(unsafe { (self.primary_ctx_get_state)(device, &mut flags, &mut active) })?;
        Ok(active != 0)
    }

    /// The context of a stream; of the default stream, the current one.
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

    /// Whether a stream waits for the default stream, and the default stream for it.
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

    /// Whether what is queued on the stream is being recorded.
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

    /// The memory at an address; an error for addresses that the driver does not know.
    pub(in crate::backend::cuda) fn range(&self, address: u64) -> Result<Range, Status> {
        let start: u64 = self.pointer(RANGE_START, address)?;
        let bytes: usize = self.pointer(RANGE_SIZE, address)?;
        let kind: c_uint = self.pointer(MEMORY_TYPE, address)?;
        let managed: bool = self.pointer::<u32>(IS_MANAGED, address).unwrap_or_default() != 0;
        let held = if kind == DEVICE_MEMORY && !managed {
            let ordinal = self.pointer(DEVICE_ORDINAL, address)?;
            // Pools and mapped memory have no context.
            let context = self.pointer::<usize>(CONTEXT, address).unwrap_or_default();
            Held::Device { ordinal, context: ptr::without_provenance_mut(context) }
        } else {
            Held::Everywhere
        };
        Ok(Range { end: start.saturating_add(bytes as u64), held })
    }

    /// An attribute of an address, which the driver writes as a number of `T`'s size or less.
    fn pointer<T: Copy + Default>(&self, attribute: c_int, address: u64) -> Result<T, Status> {
        const { assert!(size_of::<T>() <= 8) };
        let mut value = MaybeUninit::new(T::default());
        // SAFETY: each attribute that is asked for is a number or pointer of the size of its type
        // above, which any bits are valid for.
        checked(unsafe { (self.pointer_get_attribute)(value.as_mut_ptr().cast(), attribute, address) })?;
        // SAFETY: initialised above.
        Ok(unsafe { value.assume_init() })
    }
}
