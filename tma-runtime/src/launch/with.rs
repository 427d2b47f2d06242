//! Options of a launch.

use crate::binding::shape::LaunchOptions;
use crate::device::Device;
use crate::device::stream::Stream;
use crate::error::Error;
use crate::launch::graph::Capture;
use crate::launch::occupancy::resident_blocks;
use crate::launch::on::{LaunchOn, sealed::Sealed};
use crate::spec::KernelSpec;
use std::time::Duration;

/// The target of a launch with options: made by [`Device::with`], [`Stream::with`] and
/// [`Capture::with`], and passed to a kernel's `launch` in their place.
#[derive(Clone, Copy, Debug)]
pub struct With<'a> {
    device: &'a Device,
    stream: Option<&'a Stream>,
    capture: Option<&'a Capture>,
    options: LaunchOptions,
}

impl<'a> With<'a> {
    /// Returns the target `on`, with its options, to which others can be added.
    pub fn of(on: &'a impl LaunchOn) -> Self {
        With { device: on.device(), stream: on.stream(), capture: on.capture(), options: on.options() }
    }
}

impl With<'_> {
    /// Sets the blocks per cluster along x, y and z, for kernels with `cluster = launch`. The grid
    /// must be a multiple of them.
    #[must_use]
    pub fn cluster(mut self, extents: [u32; 3]) -> Self {
        self.options.cluster = Some(extents);
        self
    }

    /// Lets the kernel start before the previous one in the stream has ended, namely once every
    /// block of the previous one has called `grid_dependency_launch()` or ended. The kernel must
    /// call `grid_dependency_wait()` before it accesses memory that the previous one writes. This
    /// has no effect on the simulator, where kernels run one after another.
    #[must_use]
    pub fn dependent(mut self) -> Self {
        self.options.dependent = true;
        self
    }

    /// Traces the launch. [`take_traces`](crate::trace::take_traces) returns what each warp waited
    /// for and how long, when copies were issued, and when tensor cores were busy. The launch waits
    /// for earlier work of the device, and returns when the kernel has run. Its block needs 16
    /// bytes more of shared memory for each warp.
    ///
    /// On the simulator the clock counts instructions of the warp, which says nothing about time.
    #[cfg(feature = "trace")]
    #[must_use]
    pub fn trace(mut self) -> Self {
        self.options.trace = true;
        self
    }

    /// Limits each wait of the kernel. If one takes longer, the kernel stops, and the next call
    /// that needs its result returns [`Error::Deadlock`] with all warps that waited, and for what.
    /// The kernel is slower: barriers of the block become counters in shared memory.
    ///
    /// It has no effect on the simulator, which finds deadlocks without a clock. The variable
    /// `TMA_WATCH`, a number of seconds, limits the waits of all launches. Without it, a build with
    /// debug assertions limits them to two seconds; `TMA_WATCH=0` removes that limit.
    #[must_use]
    pub fn watched(mut self, limit: Duration) -> Self {
        self.options.limit = Some(limit);
        self
    }

    /// Returns how many blocks of a kernel the device runs at the same time, in clusters of the
    /// size set here. A launch with a trace, or with limited waits, may run fewer than one without.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::resident_blocks`].
    pub fn resident_blocks(&self, spec: &'static KernelSpec) -> Result<u32, Error> {
        resident_blocks(self, spec)
    }
}

impl Device {
    /// Returns this device's default stream, with options for a launch.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # use tma_runtime::launch::LaunchOn;
    /// let device = Device::simulator();
    /// assert_eq!(device.with().cluster([2, 1, 1]).options().cluster, Some([2, 1, 1]));
    /// ```
    pub fn with(&self) -> With<'_> {
        With { device: self, stream: None, capture: None, options: LaunchOptions::default() }
    }

    /// Returns how many blocks of a kernel, named by its `SPEC`, this device runs at the same time
    /// if it runs nothing else. This is the limit for a kernel that calls `sync_grid`, and the
    /// right number of persistent blocks. A simulated device allows 2048 threads, 32 blocks and 228
    /// KiB of shared memory per multiprocessor.
    ///
    /// # Errors
    ///
    /// [`Error::Cluster`], and the errors of loading the kernel: [`Error::NoPtx`],
    /// [`Error::Architecture`], [`Error::Jit`], [`Error::NoEntry`], [`Error::OtherParameters`] and
    /// [`Error::SharedMemory`].
    pub fn resident_blocks(&self, spec: &'static KernelSpec) -> Result<u32, Error> {
        resident_blocks(self, spec)
    }
}

impl Stream {
    /// Returns this stream, with options for a launch.
    pub fn with(&self) -> With<'_> {
        With { device: self.device(), stream: Some(self), capture: None, options: LaunchOptions::default() }
    }
}

impl Capture {
    /// Returns this capture, with options for a launch.
    pub fn with(&self) -> With<'_> {
        With { device: self.device(), stream: None, capture: Some(self), options: LaunchOptions::default() }
    }
}

impl Sealed for With<'_> {}

impl LaunchOn for With<'_> {
    fn device(&self) -> &Device {
        self.device
    }

    fn stream(&self) -> Option<&Stream> {
        self.stream
    }

    fn capture(&self) -> Option<&Capture> {
        self.capture
    }

    fn options(&self) -> LaunchOptions {
        self.options
    }
}
