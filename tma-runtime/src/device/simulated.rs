//! What a simulated device has beyond other devices. Without the feature `ptx-sim` none of this
//! exists.

use std::sync::Arc;

use super::Device;
use crate::backend::{Backend, sim};
use crate::spec::KernelSpec;

impl Device {
    /// Makes a simulated device with its own memory. It runs the same PTX on the CPU, lets copies
    /// land late and in pieces, and fails a launch with an error that lists everything wrong with
    /// the kernel.
    ///
    /// Launches run to completion before they return. Pointers from elsewhere are not valid
    /// addresses on it.
    pub fn simulator() -> Self {
        Self { backend: Backend::Sim(Arc::new(sim::Context::new())) }
    }

    /// Sets the seed by which a simulated device makes the choices that hardware is free to make:
    /// the order of warps, and when copies land. No effect on a GPU.
    pub fn seed(self, seed: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_seed(seed);
        }
        self
    }

    /// Limits the instructions of a cluster on a simulated device; a launch that exceeds the limit
    /// ends with a finding. A warp's instruction counts once for each of its threads, active or
    /// not. Use it to test kernels that might not terminate. No effect on a GPU.
    pub fn instruction_limit(self, instructions: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_instruction_limit(instructions);
        }
        self
    }

    /// Sets the maximum number of blocks in a grid on a simulated device; the default is 2^22. Each
    /// block takes some microseconds even if it does nothing, so a GPU's largest grids would run
    /// for hours. No effect on a GPU, whose limit is [`MAX_GRID`](crate::launch::MAX_GRID).
    pub fn block_limit(self, blocks: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_block_limit(blocks);
        }
        self
    }

    /// Sets how many clusters a simulated device runs at a time, each on a host thread. The
    /// default, 0, is one per core, but one at a time, or several in turns under odd seeds, for
    /// kernels whose result could depend on it: those that share global memory between blocks, as
    /// by atomic operations. With any other number, the result of such a kernel may differ from run
    /// to run for the same seed. No effect on a GPU.
    pub fn host_threads(self, threads: usize) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_host_threads(threads);
        }
        self
    }

    /// Sets whether a simulated device looks for races in global memory in all kernels, and not only
    /// in those whose blocks communicate by accesses with an order and a scope. It then also finds
    /// blocks that write the same elements, or read what others write. Kernels take 1.5 to 1.8
    /// times as long. No effect on a GPU.
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// let device = Device::simulator().seed(3).all_global_races(true);
    /// # assert_eq!(device.name(), "ptx-sim");
    /// ```
    pub fn all_global_races(self, all: bool) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_all_global_races(all);
        }
        self
    }

    /// Calls `watch` with a report of each launch on a simulated device from now on: findings,
    /// counts of instructions, copies and bank conflicts, and the first `trace_events` events of
    /// the timeline ([`ptx_sim::Report`]). No effect on a GPU. `watch` may use the device; its own
    /// launches are not reported.
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// let device = Device::simulator().reporting(0, |kernel, report| {
    ///     println!("{}: {} instructions", kernel.name, report.warp_instructions);
    /// });
    /// # assert_eq!(device.name(), "ptx-sim");
    /// ```
    pub fn reporting(
        self,
        trace_events: usize,
        watch: impl Fn(&'static KernelSpec, &ptx_sim::Report) + Send + Sync + 'static,
    ) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_watch(trace_events, Arc::new(watch));
        }
        self
    }

    /// Replaces the PTX that a simulated device runs: `rewrite` is called at the first launch of
    /// each kernel, and returns the text to run instead, or `None`. Use it to try code that was
    /// changed by hand; this project uses it to remove a kernel's synchronisation step by step and
    /// check that each removal is found. No effect on a GPU.
    ///
    /// `rewrite` may use the device; its own launches run the kernels' own PTX. Whatever the text
    /// does, it can only access the device's simulated memory: any other access is a finding.
    pub fn rewriting(
        self,
        rewrite: impl Fn(&'static KernelSpec) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_rewrite(Arc::new(rewrite));
        }
        self
    }
}
