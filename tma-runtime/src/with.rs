//! Options of a launch.

use crate::device::Device;
use crate::launch::LaunchOn;
use crate::stream::Stream;

/// What a launch asks for beyond grid and arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// Blocks of a cluster along x, y and z.
    pub cluster: Option<[u32; 3]>,
}

/// Where to launch, and how: made by [`Device::with`] and [`Stream::with`], and passed to a kernel's `launch` in their
/// place.
#[derive(Clone, Copy, Debug)]
pub struct With<'a> {
    device: &'a Device,
    stream: Option<&'a Stream>,
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
        With { device: self, stream: None, options: LaunchOptions::default() }
    }
}

impl Stream {
    /// This stream, with options for a launch.
    pub fn with(&self) -> With<'_> {
        With { device: self.device(), stream: Some(self), options: LaunchOptions::default() }
    }
}

impl LaunchOn for With<'_> {
    fn device(&self) -> &Device {
        self.device
    }

    fn stream(&self) -> Option<&Stream> {
        self.stream
    }

    fn options(&self) -> LaunchOptions {
        self.options
    }
}
