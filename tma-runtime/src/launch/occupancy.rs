//! The number of blocks of a kernel that run at the same time, as reported by the driver or
//! computed for simulated devices.

use tma_model::limits;

use crate::backend::Backend;
use crate::binding::shape::{Shape, cluster, volume};
use crate::device::Device;
use crate::error::Error;
use crate::launch::on::LaunchOn;
use crate::launch::to_run;
use crate::spec::{KernelParts, KernelSpec};
#[cfg(feature = "trace")]
use crate::trace;

/// Returns how many blocks of a kernel the device runs at the same time if it runs nothing else.
/// This is the limit for a kernel that calls `sync_grid`, and the right number of persistent
/// blocks. Of a kernel that is traced, or whose waits are limited, by the options of `on`, by the
/// environment or in a build with debug assertions, it counts the blocks with what is added to them.
///
/// # Errors
///
/// [`Error::Cluster`], [`Error::Trace`], [`Error::Unwatched`], and the errors of loading the kernel: [`Error::NoPtx`],
/// [`Error::Architecture`], [`Error::Jit`], [`Error::NoEntry`], [`Error::OtherParameters`] and
/// [`Error::SharedMemory`].
pub fn resident_blocks(on: &impl LaunchOn, spec: &'static KernelSpec) -> Result<u32, Error> {
    let cluster = cluster(spec, on.options())?;
    #[cfg(feature = "trace")]
    if let Some(with_probes) = trace::counted(on.device(), spec, on.options())? {
        return resident(on.device(), with_probes, cluster);
    }
    resident(on.device(), to_run(on.device(), on.options().limit, spec)?, cluster)
}

/// Checks that all blocks of a cooperative launch can run at the same time.
///
/// # Errors
///
/// [`Error::GridNotResident`], and the errors of [`resident_blocks`].
pub(crate) fn fits(device: &Device, spec: &'static KernelSpec, shape: Shape) -> Result<(), Error> {
    if !shape.cooperative {
        return Ok(());
    }
    let found = shape.grid.iter().map(|&extent| u64::from(extent)).product();
    let limit = resident(device, spec, shape.cluster)?;
    if found > u64::from(limit) {
        return Err(Error::GridNotResident { kernel: spec.name, found, limit });
    }
    Ok(())
}

fn resident(device: &Device, spec: &'static KernelSpec, cluster: [u32; 3]) -> Result<u32, Error> {
    match device.backend() {
        Backend::Cuda(context) => context.resident_blocks(spec, cluster),
        Backend::Sim(context) => {
            context.properties().accept(spec)?;
            Ok(simulated(context.properties().multiprocessors, spec, cluster))
        }
    }
}

/// Returns how many blocks fit on this many Hopper multiprocessors, in whole clusters. Registers
/// are not considered.
fn simulated(multiprocessors: u32, spec: &KernelParts, cluster: [u32; 3]) -> u32 {
    // At most 32.
    let each = limits::resident_blocks(volume(spec.threads).into(), spec.shared_bytes.into()) as u32;
    let blocks = multiprocessors * each;
    blocks - blocks % volume(cluster).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Cluster;

    fn blocks(threads: [u32; 3], shared_bytes: u32, cluster: [u32; 3]) -> u32 {
        let taken = Cluster::Fixed(cluster);
        let parts = KernelParts { threads, cluster: taken, shared_bytes, ..KernelParts::NOTHING };
        simulated(4, &parts, cluster)
    }

    #[test]
    fn threads_blocks_and_shared_memory_each_limit_them() {
        assert_eq!(blocks([1024, 1, 1], 0, [1; 3]), 4 * 2);
        assert_eq!(blocks([32, 8, 1], 0, [1; 3]), 4 * 8);
        assert_eq!(blocks([33, 1, 1], 0, [1; 3]), 4 * 32, "64 threads are 32 blocks");
        assert_eq!(blocks([96, 1, 1], 0, [1; 3]), 4 * 21);
        assert_eq!(blocks([1, 1, 1], 0, [1; 3]), 4 * 32);
        assert_eq!(blocks([128, 1, 1], 227 * 1024, [1; 3]), 4);
        assert_eq!(blocks([128, 1, 1], 113 * 1024, [1; 3]), 4 * 2);
        assert_eq!(blocks([128, 1, 1], 113 * 1024 + 1, [1; 3]), 4);
    }

    #[test]
    fn excessive_resources_fit_no_device() {
        assert_eq!(blocks([u32::MAX; 3], 0, [1; 3]), 0);
        assert_eq!(blocks([1 << 16, 1 << 16, 1], u32::MAX, [1; 3]), 0);
        assert_eq!(blocks([32, 1, 1], 0, [u32::MAX; 3]), 0);
    }

    #[test]
    fn clusters_fit_as_wholes() {
        assert_eq!(blocks([96, 1, 1], 0, [2, 4, 1]), 80);
        assert_eq!(blocks([128, 1, 1], 227 * 1024, [2, 2, 2]), 0);
    }
}
