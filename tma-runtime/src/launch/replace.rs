//! Replacement of kernels at their launches, for tests of changed PTX on a GPU.

use crate::device::Device;
use crate::spec::KernelSpec;
use std::sync::OnceLock;

/// Returns the kernel to launch in place of another one, if any.
type Replace = Box<dyn Fn(&Device, &'static KernelSpec) -> Option<&'static KernelSpec> + Send + Sync>;

/// The callback of this process. On a GPU, contexts and kernels belong to the process as well.
static REPLACE: OnceLock<Replace> = OnceLock::new();

/// Replaces kernels at all later launches of this process, on every device.
///
/// `replace` gets the device and the kernel of each launch, and returns the one to launch instead, or
/// `None`. It is called at every launch, so it keeps what it makes. Limits of waits
/// ([`With::watched`](super::With::watched)) apply to the replacement; traces and the
/// instances of a table do not see it. This project uses it to run kernels on GPUs from which a step
/// of synchronisation is missing. For the simulator there is also
/// [`Device::rewriting`](crate::Device::rewriting), which is safe.
///
/// Returns whether the callback is in place: only the first one of a process is.
///
/// # Safety
///
/// Each kernel that `replace` returns has the parameters of the original, and a launch of it with
/// arguments for the original does what [`KernelSpec::from_parts`] promises.
pub unsafe fn replace_kernels(
    replace: impl Fn(&Device, &'static KernelSpec) -> Option<&'static KernelSpec> + Send + Sync + 'static,
) -> bool {
    REPLACE.set(Box::new(replace)).is_ok()
}

/// Returns the kernel to launch for `spec`.
pub(crate) fn replaced(device: &Device, spec: &'static KernelSpec) -> &'static KernelSpec {
    REPLACE.get().and_then(|replace| replace(device, spec)).unwrap_or(spec)
}
