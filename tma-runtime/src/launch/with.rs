//! Options of a launch.

use crate::binding::shape::LaunchOptions;
use crate::device::Device;
use crate::device::stream::Stream;
use crate::error::Error;
use crate::launch::graph::Capture;
use crate::launch::occupancy::resident_blocks;
use crate::launch::on::{LaunchOn, sealed::Sealed};
use crate::spec::KernelSpec;

/// The target of a launch with options: made by [`Device::with`], [`Stream::with`] and
/// [`Capture::with`], and passed to a kernel's `launch` in their place.
#[derive(Clone, Copy, Debug)]
pub struct With<'a> {
    device: &'a Device,
    stream: Option<&'a Stream>,
    capture: Option<&'a Capture>,
    options: LaunchOptions,
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

    /// Returns how many blocks of a kernel the device runs at the same time, in clusters of the
    /// size set here.
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
