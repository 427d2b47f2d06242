//! Launches with attributes, and occupancy.

use super::{Driver, Function, Status, checked, from_int, to_int};
use std::ffi::{c_uint, c_void};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr;

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: c_uint = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER_DIMENSION: c_uint = 4;
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC_STREAM_SERIALIZATION: c_uint = 6;

/// `CUlaunchAttribute`: an identifier and a union of 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub(in crate::backend::cuda) struct LaunchAttribute {
    id: c_uint,
    padding: u32,
    value: [u32; 16],
}

impl LaunchAttribute {
    /// The extents of a cluster, in blocks.
    pub(in crate::backend::cuda) fn cluster(extents: [u32; 3]) -> Self {
        let mut value = [0; 16];
        value[..3].copy_from_slice(&extents);
        Self { id: CLUSTER_DIMENSION, padding: 0, value }
    }

    /// Requires that all blocks run at the same time.
    pub(in crate::backend::cuda) fn cooperative() -> Self {
        Self::switched_on(COOPERATIVE)
    }

    /// Lets the kernel start once the previous one allows it or has ended.
    pub(in crate::backend::cuda) fn programmatic_stream_serialization() -> Self {
        Self::switched_on(PROGRAMMATIC_STREAM_SERIALIZATION)
    }

    /// Returns an `int` attribute with the value 1.
    fn switched_on(id: c_uint) -> Self {
        let mut value = [0; 16];
        value[0] = 1;
        Self { id, padding: 0, value }
    }
}

/// `CUlaunchConfig`, with a pointer to its attributes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::backend::cuda) struct LaunchConfig<'a> {
    pub(in crate::backend::cuda) grid: [c_uint; 3],
    pub(in crate::backend::cuda) block: [c_uint; 3],
    pub(in crate::backend::cuda) shared_bytes: c_uint,
    pub(in crate::backend::cuda) stream: *mut c_void,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
    pointed_to: PhantomData<&'a [LaunchAttribute]>,
}

const _: () = assert!(
    size_of::<LaunchAttribute>() == 72
        && offset_of!(LaunchAttribute, value) == 8
        && size_of::<LaunchConfig<'_>>() == 56
        && offset_of!(LaunchConfig<'_>, block) == 12
        && offset_of!(LaunchConfig<'_>, shared_bytes) == 24
        && offset_of!(LaunchConfig<'_>, stream) == 32
        && offset_of!(LaunchConfig<'_>, attributes) == 40
        && offset_of!(LaunchConfig<'_>, attribute_count) == 48
);

impl<'a> LaunchConfig<'a> {
    /// Describes a launch. A null `stream` is the default stream.
    pub(in crate::backend::cuda) fn new(
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        stream: *mut c_void,
        attributes: &'a [LaunchAttribute],
    ) -> Self {
        let (attributes, attribute_count) = (attributes.as_ptr(), attributes.len() as c_uint);
        Self { grid, block, shared_bytes, stream, attributes, attribute_count, pointed_to: PhantomData }
    }
}

impl Driver {
    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// `params` points to one pointer per parameter of the function. Each of these points to a
    /// value of the parameter's size, and all are valid for the duration of the call. The stream of
    /// `config` is alive.
    pub(in crate::backend::cuda) unsafe fn launch(
        &self,
        config: &LaunchConfig<'_>,
        function: Function,
        params: *mut *mut c_void,
    ) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.launch_kernel_ex)(config, function.0, params, ptr::null_mut()) })
    }

    /// Returns how many blocks with this many threads and bytes of dynamic shared memory a
    /// multiprocessor runs at the same time.
    pub(in crate::backend::cuda) fn blocks_per_multiprocessor(
        &self,
        function: Function,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, Status> {
        let (mut blocks, threads) = (0, to_int(threads)?);
        // SAFETY: the function's module is loaded.
        checked(unsafe { (self.most_blocks)(&mut blocks, function.0, threads, shared_bytes as usize) })?;
        from_int(blocks)
    }

    /// Returns how many clusters of a launch the device runs at the same time.
    pub(in crate::backend::cuda) fn clusters(
        &self,
        function: Function,
        config: &LaunchConfig<'_>,
    ) -> Result<u32, Status> {
        let mut clusters = 0;
        // SAFETY: the function's module is loaded, and the attributes are borrowed by `config`.
        checked(unsafe { (self.most_clusters)(&mut clusters, function.0, config) })?;
        from_int(clusters)
    }
}
