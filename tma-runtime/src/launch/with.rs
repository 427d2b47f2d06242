//! Options of a launch.

use crate::device::Device;
use crate::device::stream::Stream;
use crate::error::Error;
use crate::launch::LaunchOn;
use crate::launch::graph::Capture;
use crate::launch::occupancy::resident_blocks;
use crate::spec::KernelSpec;

/// What a launch asks for beyond grid and arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// Blocks of a cluster along x, y and z.
    pub cluster: Option<[u32; 3]>,
    /// Whether the kernel may start before the one before it has ended.
    pub dependent: bool,
}

/// Where to launch, and how: made by [`Device::with`], [`Stream::with`] and [`Capture::with`], and passed to a kernel's `launch` in their
/// place.
#[derive(Clone, Copy, Debug)]
pub struct With<'a> {
    device: &'a Device,
    stream: Option<&'a Stream>,
    capture: Option<&'a Capture>,
    options: LaunchOptions,
}

impl With<'_> {
    /// The blocks of a cluster along x, y and z, for kernels with `cluster = launch`. The grid must be a multiple of
    /// them.
    #[must_use]
    pub fn cluster(mut self, extents: [u32; 3]) -> Self {
        self.options.cluster = Some(extents);
        self
    }

    /// Lets the kernel start before the one before it in the stream has ended: when all blocks of that have said
    /// `grid_dependency_launch()` or ended. For kernels that say `grid_dependency_wait()` before they touch what that one
    /// writes. On the simulator it changes nothing: kernels run one after the other there.
    #[must_use]
    pub fn dependent(mut self) -> Self {
        self.options.dependent = true;
        self
    }

    /// How many blocks of a kernel the device runs at the same time, in clusters of the size given here.
    ///
    /// # Errors
    ///
    /// As [`Device::resident_blocks`].
    pub fn resident_blocks(&self, spec: &'static KernelSpec) -> Result<u32, Error> {
        resident_blocks(self, spec)
    }
}

impl Device {
    /// This device's default stream, with options for a launch.
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

    /// How many blocks of a kernel, given by its `SPEC`, this device runs at the same time if it runs nothing else: the most
    /// for a kernel that says `sync_grid`, and as many as persistent blocks want to be. A simulated device counts what 2048
    /// threads, 32 blocks and 228 KiB of shared memory a multiprocessor allow.
    ///
    /// # Errors
    ///
    /// [`Error::Cluster`], and what loading the kernel may give: [`Error::NoPtx`], [`Error::Architecture`],
    /// [`Error::Jit`], [`Error::NoEntry`], [`Error::OtherParameters`] and [`Error::SharedMemory`].
    pub fn resident_blocks(&self, spec: &'static KernelSpec) -> Result<u32, Error> {
        resident_blocks(self, spec)
    }
}

impl Stream {
    /// This stream, with options for a launch.
    pub fn with(&self) -> With<'_> {
        With { device: self.device(), stream: Some(self), capture: None, options: LaunchOptions::default() }
    }
}

impl Capture {
    /// This capture, with options for a launch.
    pub fn with(&self) -> With<'_> {
        With { device: self.device(), stream: None, capture: Some(self), options: LaunchOptions::default() }
    }
}

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
