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
use std::marker::PhantomData;
use std::ptr;

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
        bind(self.id(), spec, args, |bound| {
            match bound {
                Bound::Map { tensor, spec, source } => {
                    pointers.push(kernel.descriptor(self.driver, index, tensor, spec, source)?);
                }
                Bound::Global { address, len } => {
                    pointers.push(address);
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
        let launch = || unsafe { call(self.driver, spec, shape, stream, kernel.function, &pointers) };
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

    /// Returns how many blocks of a kernel run at the same time, in clusters of this size.
    pub(crate) fn resident_blocks(&self, spec: &'static KernelSpec, cluster: [u32; 3]) -> Result<u32, Error> {
        let _current = self.make_current()?;
        let function = self.kernels().get(self.driver, self.properties(), spec, || self.reported())?.function;
        let of_cluster = volume(cluster);
        let counted = if of_cluster == 1 {
            let threads = volume(spec.threads);
            let blocks = self.driver.blocks_per_multiprocessor(function, threads, spec.shared_bytes);
            blocks.map(|blocks| blocks.saturating_mul(self.properties().multiprocessors))
        } else {
            let attributes = [LaunchAttribute::cluster(cluster)];
            let (threads, bytes) = (spec.threads, spec.shared_bytes);
            let config = LaunchConfig::new(cluster, threads, bytes, ptr::null_mut(), &attributes);
            self.driver.clusters(function, &config).map(|clusters| clusters.saturating_mul(of_cluster))
        };
        counted.map_err(|code| self.failure("count the blocks that run at the same time", code))
    }

    pub(crate) fn prepare<'a>(
        &'static self,
        stream: Option<&'a Stream>,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[impl AsRef<Argument>],
    ) -> Result<Prepared<'a>, Error> {
        let _current = self.make_current()?;
        let mut kernels = self.kernels();
        let kernel = kernels.get(self.driver, self.properties(), spec, || self.reported())?;
        let (function, launches) = (kernel.function, kernel.launches.clone());
        drop(kernels);

        // The capacity suffices for all values, so none of them moves.
        let mut descriptors = Vec::with_capacity(spec.params.len());
        let mut numbers: Vec<u64> = Vec::with_capacity(2 * spec.params.len());
        let mut pointers = Pointers::new();
        bind(self.id(), spec, args, |bound| {
            let mut number = |value: u64| {
                numbers.push(value);
                numbers.last().into_iter().for_each(|number| pointers.push(number));
            };
            match bound {
                Bound::Map { tensor, spec, source } => {
                    descriptors.push(descriptor::encode(self.driver, tensor, spec, source)?);
                    descriptors.last().into_iter().for_each(|descriptor| pointers.push(descriptor));
                }
                Bound::Global { address, len } => {
                    number(*address);
                    number(*len);
                }
                Bound::Scalar { bits } => number(*bits),
            }
            Ok(())
        })?;
        Ok(Prepared {
            context: self,
            spec,
            shape,
            stream: raw(stream),
            function,
            launches,
            pointers,
            _values: (numbers, descriptors),
            _stream: PhantomData,
        })
    }

    /// Returns the error of a launch that the driver rejected.
    #[cold]
    fn refusal(&self, kernel: &'static str, code: Status) -> Error {
        self.fault_or(code, |status| Error::Launch { kernel, status })
    }
}

/// A prepared launch. It holds addresses, but does not keep their memory alive. The pointers make
/// it `!Send`.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    context: &'static Context,
    spec: &'static KernelSpec,
    shape: Shape,
    stream: *mut c_void,
    function: Function,
    launches: Launches,
    pointers: Pointers,
    /// The targets of the pointers: addresses, lengths, scalars and descriptors.
    _values: (Vec<u64>, Vec<Descriptor>),
    _stream: PhantomData<&'a Stream>,
}

impl Prepared<'_> {
    pub(crate) fn run(&self) -> Result<(), Error> {
        let _current = self.context.make_current()?;
        self.launches.note();
        // SAFETY: as in `Context::queue`, but with pointers to values that `self` owns. The stream
        // is borrowed for `'a`.
        let launch = || unsafe {
            call(self.context.driver, self.spec, self.shape, self.stream, self.function, &self.pointers)
        };
        self.context.in_order(self.stream, launch).map_err(|code| self.context.refusal(self.spec.name, code))
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
    pointers: &Pointers,
) -> Result<(), Status> {
    let (attributes, count) = attributes(spec, shape);
    let attributes = &attributes[..count];
    let config = LaunchConfig::new(shape.grid, spec.threads, spec.shared_bytes, stream, attributes);
    // SAFETY: as the caller promises; the driver does not write to the pointers.
    unsafe { driver.launch(&config, function, pointers.as_ptr().cast_mut()) }
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
