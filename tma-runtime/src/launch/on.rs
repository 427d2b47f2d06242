//! The targets of launches.

use crate::binding::shape::LaunchOptions;
use crate::device::Device;
use crate::device::stream::Stream;
use crate::launch::graph::Capture;

/// The target of a launch: `&Device` (its default stream), `&Stream`, or `&Capture` (recorded, to
/// run later); each optionally [`With`](super::With) options.
pub trait LaunchOn: sealed::Sealed {
    /// Returns the device that runs the kernel.
    fn device(&self) -> &Device;

    /// Returns the stream that the kernel is queued on; `None` is the device's default stream.
    fn stream(&self) -> Option<&Stream> {
        None
    }

    /// Returns the capture that records the launch instead of running it.
    fn capture(&self) -> Option<&Capture> {
        None
    }

    /// Returns the options of the launch.
    fn options(&self) -> LaunchOptions {
        LaunchOptions::default()
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Device {}
    impl Sealed for crate::Stream {}
    impl Sealed for crate::Capture {}
    impl<L: Sealed> Sealed for &L {}
}

impl LaunchOn for Device {
    fn device(&self) -> &Device {
        self
    }
}

impl LaunchOn for Stream {
    fn device(&self) -> &Device {
        self.device()
    }

    fn stream(&self) -> Option<&Stream> {
        Some(self)
    }
}

impl LaunchOn for Capture {
    fn device(&self) -> &Device {
        self.device()
    }

    fn capture(&self) -> Option<&Capture> {
        Some(self)
    }
}

impl<L: LaunchOn> LaunchOn for &L {
    fn device(&self) -> &Device {
        (**self).device()
    }

    fn stream(&self) -> Option<&Stream> {
        (**self).stream()
    }

    fn capture(&self) -> Option<&Capture> {
        (**self).capture()
    }

    fn options(&self) -> LaunchOptions {
        (**self).options()
    }
}
