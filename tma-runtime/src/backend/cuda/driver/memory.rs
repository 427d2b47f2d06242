//! Device memory, page-locked host memory, and copies.

use super::{Driver, Status, checked};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// Page-locked memory of the host: `N` words of 32 bits.
///
/// Devices access it at its host address. Source: CUDA driver API, "Unified Addressing", "Automatic
/// Mapping of Host Allocated Host Memory".
#[derive(Debug)]
pub(in crate::backend::cuda) struct PageLocked<const N: usize> {
    driver: &'static Driver,
    words: NonNull<[u32; N]>,
}

// SAFETY: the memory belongs to no thread, and is read as numbers.
unsafe impl<const N: usize> Send for PageLocked<N> {}

impl<const N: usize> PageLocked<N> {
    /// Allocates words that are 0, in the current context.
    pub(in crate::backend::cuda) fn zeroed(driver: &'static Driver) -> Result<Self, Status> {
        let mut address = ptr::null_mut();
        // SAFETY: the driver writes the address of the allocation.
        checked(unsafe { (driver.mem_alloc_host)(&mut address, size_of::<[u32; N]>()) })?;
        let words = NonNull::new(address.cast::<[u32; N]>()).ok_or(super::OUT_OF_MEMORY)?;
        // SAFETY: the allocation is as large as the array, begins at a page, and nothing else uses
        // it.
        unsafe { words.cast::<u8>().write_bytes(0, size_of::<[u32; N]>()) };
        Ok(Self { driver, words })
    }

    /// Returns the address, which is the same on the host and on all devices.
    pub(in crate::backend::cuda) fn address(&self) -> u64 {
        self.words.addr().get() as u64
    }

    /// Returns the current value of a word, or 0 behind the last one. A kernel may be writing it at
    /// the same time.
    pub(in crate::backend::cuda) fn word(&self, index: usize) -> u32 {
        let first: *const u32 = self.words.as_ptr().cast();
        // SAFETY: as in `read`; the word is within the allocation.
        if index < N { unsafe { first.add(index).read_volatile() } } else { 0 }
    }

    /// Returns the current words, where they are too many for the stack.
    pub(in crate::backend::cuda) fn read_all(&self) -> Vec<u32> {
        let first: *const u32 = self.words.as_ptr().cast();
        // SAFETY: as in `read`; each word is within the allocation.
        (0..N).map(|index| unsafe { first.add(index).read_volatile() }).collect()
    }

    /// Returns the current words. A kernel may be writing them at the same time.
    pub(in crate::backend::cuda) fn read(&self) -> [u32; N] {
        // SAFETY: the allocation is alive and initialised, and any bits are valid numbers.
        unsafe { self.words.read_volatile() }
    }
}

impl<const N: usize> Drop for PageLocked<N> {
    fn drop(&mut self) {
        // SAFETY: the allocation is not shared, and no kernel that knows its address is still
        // running.
        unsafe { (self.driver.mem_free_host)(self.words.as_ptr().cast()) };
    }
}

impl Driver {
    /// Allocates device memory in the current context, and returns its address.
    pub(in crate::backend::cuda) fn allocate(&self, bytes: usize) -> Result<u64, Status> {
        let mut address = 0;
        // SAFETY: the driver writes one address.
        checked(unsafe { (self.mem_alloc)(&mut address, bytes) })?;
        Ok(address)
    }

    /// Frees device memory.
    ///
    /// # Safety
    ///
    /// [`allocate`](Self::allocate) returned the address, in the current context, and nothing uses
    /// the memory any more.
    pub(in crate::backend::cuda) unsafe fn free(&self, address: u64) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.mem_free)(address) })
    }

    /// Copies from the host, on the default stream.
    ///
    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(in crate::backend::cuda) unsafe fn copy_to_device(
        &self,
        to: u64,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memcpy_htod)(to, from.cast(), bytes) })
    }

    /// Copies to the host, on the default stream, and waits.
    ///
    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid.
    pub(in crate::backend::cuda) unsafe fn copy_to_host(
        &self,
        to: *mut u8,
        from: u64,
        bytes: usize,
    ) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memcpy_dtoh)(to.cast(), from, bytes) })
    }

    /// Queues a copy within the device.
    ///
    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid until the copy has run; the stream is alive.
    pub(in crate::backend::cuda) unsafe fn copy_on_device(
        &self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: *mut c_void,
    ) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memcpy_dtod_async)(to, from, bytes, stream) })
    }

    /// Sets bytes asynchronously. Null is the default stream.
    ///
    /// # Safety
    ///
    /// The range of `bytes` bytes is valid until the operation is done, and the stream is alive.
    pub(in crate::backend::cuda) unsafe fn fill(
        &self,
        to: u64,
        byte: u8,
        bytes: usize,
        stream: *mut c_void,
    ) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.memset_d8_async)(to, byte, bytes, stream) })
    }
}
