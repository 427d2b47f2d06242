//! Launches: turns arguments into pointers and passes them to the driver.

use super::context::Context;
use super::descriptor;
use super::driver::{Driver, Function, LaunchAttribute, LaunchConfig, Status};
use super::kernel::Launches;
use super::stream::Stream;
use crate::binding::shape::{Shape, volume};
use crate::binding::{Argument, Bound, bind};
use crate::error::Error;
use crate::map::Descriptor;
use crate::spec::{Cluster, KernelSpec};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use tma_model::limits::TEAM_RANKS;

/// The descriptors of all ranks.
type RankDescriptors = [Descriptor; TEAM_RANKS as usize];

/// The maximum number of PTX parameters of a launch that does not allocate.
const INLINE: usize = 64;

/// One pointer per PTX parameter, to the parameter's value.
#[derive(Debug)]
struct Pointers {
    inline: [*mut c_void; INLINE],
    len: usize,
    /// All pointers, once `inline` is full.
    spilled: Vec<*mut c_void>,
}

impl Pointers {
    fn new() -> Self {
        Self { inline: [ptr::null_mut(); INLINE], len: 0, spilled: Vec::new() }
    }

    fn push<T>(&mut self, value: *const T) {
        let pointer = value.cast_mut().cast();
        match self.inline.get_mut(self.len) {
            Some(slot) => *slot = pointer,
            None => {
                if self.spilled.is_empty() {
                    self.spilled.extend(self.inline);
                }
                self.spilled.push(pointer);
            }
        }
        self.len += 1;
    }

    fn as_ptr(&self) -> *const *mut c_void {
        if self.spilled.is_empty() { self.inline.as_ptr() } else { self.spilled.as_ptr() }
    }
}

impl Context {
    pub(crate) fn launch(
        &self,
        stream: Option<&Stream>,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[impl AsRef<Argument>],
    ) -> Result<(), Error> {
        // SAFETY: the stream is borrowed.
        unsafe { self.queue(raw(stream), spec, shape, args, Launches::note) }
    }

    /// Queues a launch, and calls `launched` if the driver accepted it.
    ///
    /// # Safety
    ///
    /// The stream is alive; null is the default stream.
    pub(super) unsafe fn queue(
        &self,
        stream: *mut c_void,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[impl AsRef<Argument>],
        launched: impl FnOnce(&Launches),
    ) -> Result<(), Error> {
        let _current = self.make_current()?;
        // Descriptors must stay in the cache while the driver copies them, so the lock is held
        // across the launch.
        let mut kernels = self.kernels();
        let kernel = kernels.get(self.driver, self.properties(), spec, || self.reported())?;
        let (mut pointers, mut index) = (Pointers::new(), 0);
        // The driver copies them in the launch.
        let mut maps_of_ranks: Vec<Box<RankDescriptors>> = vec![];
        bind(self.id(), spec, args, |bound| {
            match bound {
                Bound::Map { tensor, spec, source } => {
                    pointers.push(kernel.descriptor(self.driver, index, tensor, spec, source)?);
                }
                Bound::Global { address, len } => {
                    pointers.push(address);
                    pointers.push(len);
                }
                Bound::PeerMaps { tensor, spec, sources } => {
                    let mut maps = Box::new(RankDescriptors::default());
                    for (map, source) in maps.iter_mut().zip(sources.each()) {
                        *map = *kernel.descriptor(self.driver, index, tensor, spec, &source)?;
                    }
                    pointers.push(&raw const *maps);
                    maps_of_ranks.push(maps);
                }
                Bound::PeerGlobals { addresses, len } => {
                    pointers.push(addresses);
                    pointers.push(len);
                }
                Bound::Scalar { bits } => pointers.push(bits),
            }
            index += 1;
            Ok(())
        })?;
        // SAFETY: `bind` passed a pointer for each parameter, into `args` and the locked cache, and
        // `Properties::accept` checked that the PTX reads no further. The caller keeps `stream`
        // alive.
        let launch = || unsafe { call(self.driver, spec, shape, stream, kernel.function, pointers.as_ptr()) };
        let queued = self.in_order(stream, launch);
        if queued.is_ok() {
            launched(&kernel.launches);
        }
        drop(kernels);
        queued.map_err(|code| self.refusal(spec.name, code))
    }

    /// Queues an operation on a stream. On the default stream it is ordered with the streams of
    /// other libraries.
    pub(super) fn in_order(
        &self,
        stream: *mut c_void,
        queue: impl FnOnce() -> Result<(), Status>,
    ) -> Result<(), Status> {
        if stream.is_null() { self.non_blocking.around(self.driver, queue) } else { queue() }
    }

    /// Returns how many blocks of a kernel run at the same time, in clusters of this size. The driver
    /// counts them once: the number follows from the kernel's code and the GPU.
    pub(crate) fn resident_blocks(&self, spec: &'static KernelSpec, cluster: [u32; 3]) -> Result<u32, Error> {
        let _current = self.make_current()?;
        let mut kernels = self.kernels();
        let kernel = kernels.get(self.driver, self.properties(), spec, || self.reported())?;
        if let Some((_, counted)) = kernel.resident.iter().find(|(of, _)| *of == cluster) {
            return Ok(*counted);
        }
        let counted = self.count_blocks(kernel.function, spec, cluster);
        if let Ok(counted) = counted {
            kernel.resident.push((cluster, counted));
        }
        // An error locks the kernels again.
        drop(kernels);
        counted.map_err(|code| self.failure("count the blocks that run at the same time", code))
    }

    fn count_blocks(
        &self,
        function: Function,
        spec: &'static KernelSpec,
        cluster: [u32; 3],
    ) -> Result<u32, Status> {
        let of_cluster = volume(cluster);
        if of_cluster == 1 {
            let threads = volume(spec.threads);
            let blocks = self.driver.blocks_per_multiprocessor(function, threads, spec.shared_bytes);
            return blocks.map(|blocks| blocks.saturating_mul(self.properties().multiprocessors));
        }
        let attributes = [LaunchAttribute::cluster(cluster)];
        let (threads, bytes) = (spec.threads, spec.shared_bytes);
        let config = LaunchConfig::new(cluster, threads, bytes, ptr::null_mut(), &attributes);
        self.driver.clusters(function, &config).map(|clusters| clusters.saturating_mul(of_cluster))
    }

    /// Loads the kernel, and encodes the arguments of a launch.
    pub(crate) fn prepare(
        &'static self,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[impl AsRef<Argument>],
    ) -> Result<Prepared, Error> {
        let _current = self.make_current()?;
        let mut kernels = self.kernels();
        let kernel = kernels.get(self.driver, self.properties(), spec, || self.reported())?;
        let (function, launches) = (kernel.function, kernel.launches.clone());
        drop(kernels);

        let mut values = Values::default();
        bind(self.id(), spec, args, |bound| {
            match bound {
                Bound::Map { tensor, spec, source } => {
                    values.push_map(descriptor::encode(self.driver, tensor, spec, source)?);
                }
                Bound::Global { address, len } => {
                    values.push(*address);
                    values.push(*len);
                }
                Bound::PeerMaps { tensor, spec, sources } => {
                    let mut maps = RankDescriptors::default();
                    for (map, source) in maps.iter_mut().zip(sources.each()) {
                        *map = descriptor::encode(self.driver, tensor, spec, &source)?;
                    }
                    values.push_maps(&maps);
                }
                Bound::PeerGlobals { addresses, len } => {
                    values.push_numbers(addresses);
                    values.push(*len);
                }
                Bound::Scalar { bits } => values.push(*bits),
            }
            Ok(())
        })?;
        let pointers = values.pointers();
        Ok(Prepared { context: self, spec, shape, function, launches, pointers, _values: values })
    }

    /// Queues launches in order.
    pub(crate) fn launch_prepared(
        &self,
        stream: Option<&Stream>,
        launches: &[Arc<Prepared>],
    ) -> Result<(), Error> {
        let (_current, stream) = (self.make_current()?, raw(stream));
        launches.iter().try_for_each(|launch| {
            // SAFETY: the stream is borrowed.
            unsafe { launch.queue(stream)? };
            launch.launches().note();
            Ok(())
        })
    }

    /// Returns the error of a launch that the driver rejected.
    #[cold]
    fn refusal(&self, kernel: &'static str, code: Status) -> Error {
        self.fault_or(code, |status| Error::Launch { kernel, status })
    }
}

/// The values of parameters, apart by size, so that numbers share cache lines.
#[derive(Debug, Default)]
struct Values {
    numbers: Vec<u64>,
    descriptors: Vec<Descriptor>,
    /// The parameters, in order.
    params: Vec<ValueOf>,
}

/// The memory of a parameter's value, by the index of its first part.
#[derive(Clone, Copy, Debug)]
enum ValueOf {
    Numbers(usize),
    Descriptors(usize),
}

impl Values {
    /// Appends an address, a length or a scalar.
    fn push(&mut self, number: u64) {
        self.push_numbers(&[number]);
    }

    /// Appends a parameter of several numbers.
    fn push_numbers(&mut self, numbers: &[u64]) {
        self.params.push(ValueOf::Numbers(self.numbers.len()));
        self.numbers.extend(numbers);
    }

    /// Appends a tensor map.
    fn push_map(&mut self, descriptor: Descriptor) {
        self.push_maps(&[descriptor]);
    }

    /// Appends a parameter of several tensor maps.
    fn push_maps(&mut self, descriptors: &[Descriptor]) {
        self.params.push(ValueOf::Descriptors(self.descriptors.len()));
        self.descriptors.extend(descriptors);
    }

    /// Returns a pointer to each value, in the order in which they were appended. They are valid
    /// until a value is appended, or all are dropped.
    fn pointers(&self) -> Box<[*mut c_void]> {
        let of = |param: &ValueOf| match *param {
            ValueOf::Numbers(first) => self.numbers[first..].as_ptr().cast_mut().cast(),
            ValueOf::Descriptors(first) => self.descriptors[first..].as_ptr().cast_mut().cast(),
        };
        self.params.iter().map(of).collect()
    }
}

/// A launch with encoded arguments. It holds addresses, but does not keep their memory alive.
#[derive(Debug)]
pub(crate) struct Prepared {
    context: &'static Context,
    spec: &'static KernelSpec,
    shape: Shape,
    function: Function,
    launches: Launches,
    /// Points into `_values`, which never change.
    pointers: Box<[*mut c_void]>,
    _values: Values,
}

// SAFETY: the pointers lead to memory that moves with the value, and which nobody writes. The
// driver's handles may be used from any thread.
unsafe impl Send for Prepared {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for Prepared {}

impl Prepared {
    /// Returns the mark that the kernel was launched.
    pub(super) fn launches(&self) -> &Launches {
        &self.launches
    }

    /// Queues the launch. The context is current.
    ///
    /// # Safety
    ///
    /// The stream is alive; null is the default stream.
    pub(super) unsafe fn queue(&self, stream: *mut c_void) -> Result<(), Error> {
        let Self { context, spec, shape, function, .. } = self;
        let pointers = self.pointers.as_ptr();
        // SAFETY: `bind` made a value for each parameter, and `Properties::accept` checked that the
        // PTX reads no further. The caller keeps the stream alive.
        let launch = || unsafe { call(context.driver, spec, *shape, stream, *function, pointers) };
        context.in_order(stream, launch).map_err(|code| context.refusal(spec.name, code))
    }
}

/// Returns the driver's handle. Null is the default stream.
fn raw(stream: Option<&Stream>) -> *mut c_void {
    stream.map_or(ptr::null_mut(), Stream::raw)
}

/// # Safety
///
/// The same as for [`Driver::launch`], with one pointer per parameter.
unsafe fn call(
    driver: &Driver,
    spec: &KernelSpec,
    shape: Shape,
    stream: *mut c_void,
    function: Function,
    pointers: *const *mut c_void,
) -> Result<(), Status> {
    let (attributes, count) = attributes(spec, shape);
    let attributes = &attributes[..count];
    let config = LaunchConfig::new(shape.grid, spec.threads, spec.shared_bytes, stream, attributes);
    // SAFETY: as the caller promises; the driver does not write to the pointers.
    unsafe { driver.launch(&config, function, pointers.cast_mut()) }
}

/// Returns the attributes of a launch, and how many of them are used.
fn attributes(spec: &KernelSpec, shape: Shape) -> ([LaunchAttribute; 3], usize) {
    // A fixed cluster size is part of the kernel's code.
    let at_launch = matches!(spec.cluster, Cluster::AtLaunch { .. });
    let mut all = [
        (at_launch, LaunchAttribute::cluster(shape.cluster)),
        (shape.cooperative, LaunchAttribute::cooperative()),
        (shape.dependent, LaunchAttribute::programmatic_stream_serialization()),
    ];
    all.sort_by_key(|(wanted, _)| !wanted);
    (all.map(|(_, attribute)| attribute), all.iter().filter(|(wanted, _)| *wanted).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::KernelParts;

    #[test]
    fn launches_have_the_attributes_that_they_ask_for() {
        let attributes = |cluster, cooperative, dependent| {
            let parts = KernelParts { cluster, cooperative, ..KernelParts::NOTHING };
            // SAFETY: never launched.
            let spec = unsafe { KernelSpec::from_parts(parts) };
            let shape = Shape { grid: [4, 1, 1], cluster: [2, 1, 1], cooperative, dependent };
            let (attributes, count) = attributes(&spec, shape);
            attributes[..count].to_vec()
        };
        let cluster = LaunchAttribute::cluster([2, 1, 1]);
        let cooperative = LaunchAttribute::cooperative();
        let dependent = LaunchAttribute::programmatic_stream_serialization();
        assert_eq!(attributes(Cluster::None, false, false), []);
        assert_eq!(attributes(Cluster::Fixed([2, 1, 1]), false, true), [dependent]);
        assert_eq!(attributes(Cluster::None, true, false), [cooperative]);
        assert_eq!(attributes(Cluster::AtLaunch { most: 8 }, false, true), [cluster, dependent]);
        assert_eq!(attributes(Cluster::AtLaunch { most: 8 }, true, true), [cluster, cooperative, dependent]);
    }

    #[test]
    fn prepared_values_have_a_pointer_each_in_order() {
        let (mut values, map) = (Values::default(), Descriptor::new([7; 128]));
        values.push(1);
        values.push_map(map);
        values.push(2);
        let moved = Box::new(values);
        let pointers = moved.pointers();
        assert!(pointers.len() == 3 && pointers[1].addr().is_multiple_of(64));
        // SAFETY: the values are alive, and of these types.
        unsafe {
            assert_eq!([*pointers[0].cast::<u64>(), *pointers[2].cast::<u64>()], [1, 2]);
            assert_eq!(*pointers[1].cast::<Descriptor>(), map);
        }
    }

    #[test]
    fn pointers_beyond_the_inline_ones_follow_in_order() {
        for count in [0, 1, INLINE - 1, INLINE, INLINE + 1, 3 * INLINE] {
            let values: Vec<u64> = (0..count as u64).collect();
            let mut pointers = Pointers::new();
            for value in &values {
                pointers.push(value);
            }
            for (i, value) in values.iter().enumerate() {
                // SAFETY: `count` pointers were pushed.
                let pointer = unsafe { *pointers.as_ptr().add(i) };
                assert!(ptr::addr_eq(pointer, value), "pointer {i} of {count}");
            }
        }
    }
}
