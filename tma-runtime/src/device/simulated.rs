//! Methods that only affect simulated devices. They do not exist without the feature `ptx-sim`.

use std::sync::Arc;

use super::Device;
use super::team::Team;
use crate::backend::{Backend, sim};
use crate::error::Error;
use crate::spec::KernelSpec;

impl Device {
    /// Makes a simulated device with its own memory. It runs the same PTX on the CPU, delivers
    /// asynchronous copies late and in pieces, and fails a launch with an error that lists
    /// everything that is wrong with the kernel.
    ///
    /// Launches run to completion before they return. Pointers from elsewhere are not valid
    /// addresses on the device.
    pub fn simulator() -> Self {
        Self { backend: Backend::Sim(Arc::new(sim::Context::new())) }
    }

    /// Sets the seed of the choices that hardware is free to make: the order of warps, and when
    /// copies arrive. It has no effect on a GPU.
    pub fn seed(self, seed: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_seed(seed);
        }
        self
    }

    /// Limits the instructions of a cluster on a simulated device. A launch that exceeds the limit
    /// ends with a finding. An instruction of a warp counts once for each thread of the warp,
    /// active or not. The limit is useful for tests of kernels that might not terminate. It has no
    /// effect on a GPU.
    pub fn instruction_limit(self, instructions: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_instruction_limit(instructions);
        }
        self
    }

    /// Sets the maximum number of blocks in a grid on a simulated device. The default is 2^22: each
    /// block takes some microseconds even if it does nothing, so the largest grids of a GPU would
    /// run for hours. It has no effect on a GPU, whose limit is
    /// [`MAX_GRID`](crate::launch::MAX_GRID).
    pub fn block_limit(self, blocks: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_block_limit(blocks);
        }
        self
    }

    /// Sets how many clusters a simulated device runs at a time, each on a host thread. The
    /// default, 0, means one per core. Kernels whose result could depend on the order of blocks are
    /// an exception: those that share global memory between blocks, for example through atomic
    /// operations. For them 0 means one cluster at a time, or several interleaved ones under odd
    /// seeds. With any other number, the result of such a kernel may differ between runs with the
    /// same seed. It has no effect on a GPU.
    pub fn host_threads(self, threads: usize) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_host_threads(threads);
        }
        self
    }

    /// Sets whether a simulated device checks all kernels for races in global memory. By default it
    /// checks only those whose blocks communicate by accesses with an order and a scope. With `all`
    /// it also finds blocks that write the same elements, or that read elements written by others.
    /// Kernels take 1.5 to 1.8 times as long. It has no effect on a GPU.
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

    /// Returns how many times memory has been allocated on a simulated device, for tests that a
    /// call allocates none. `None` stands for a GPU.
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let device = Device::simulator();
    /// let tensor = device.zeros::<f32, 1>([4])?;
    /// let empty = device.zeros::<f32, 1>([0])?; // needs no memory
    /// assert_eq!(device.allocations(), Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn allocations(&self) -> Option<u64> {
        match &self.backend {
            Backend::Sim(context) => Some(context.allocations()),
            Backend::Cuda(_) => None,
        }
    }

    /// Calls `watch` with a report of each later launch on a simulated device: findings, counts of
    /// instructions, copies and bank conflicts, and the first `trace_events` events of the timeline
    /// ([`ptx_sim::Report`]). `watch` may use the device; its own launches are not reported. It has
    /// no effect on a GPU.
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

    /// Replaces the PTX that a simulated device runs. `rewrite` is called at the first launch of
    /// each kernel, and returns the text to run instead, or `None`. It is meant for trying code
    /// that was changed by hand. This project uses it to remove the synchronisation of a kernel
    /// step by step, and to check that each removal is found. It has no effect on a GPU.
    ///
    /// `rewrite` may use the device; its own launches run the original PTX. Whatever the text does,
    /// it can only access the device's simulated memory: any other access is a finding.
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

impl Team {
    /// Makes a team of 1 to 8 simulated devices with one address space, each of which accesses the
    /// memory of the others. A launch runs on all ranks at the same time, in an order that the seed
    /// picks.
    ///
    /// # Errors
    ///
    /// [`TeamError::Size`](crate::TeamError::Size).
    pub fn simulator(ranks: usize) -> Result<Self, Error> {
        Self::simulated(ranks)
    }

    /// Sets the seed of launches on the team, like [`Device::seed`].
    pub fn seed(self, seed: u64) -> Self {
        self.each(|device| device.seed(seed))
    }

    /// Limits the instructions of a cluster, like [`Device::instruction_limit`].
    pub fn instruction_limit(self, instructions: u64) -> Self {
        self.each(|device| device.instruction_limit(instructions))
    }

    /// Sets whether all kernels are checked for races in global memory, like
    /// [`Device::all_global_races`].
    pub fn all_global_races(self, all: bool) -> Self {
        self.each(|device| device.all_global_races(all))
    }

    /// Replaces the PTX that the ranks run, like [`Device::rewriting`]. All of them must run the
    /// same text.
    pub fn rewriting(
        self,
        rewrite: impl Fn(&'static KernelSpec) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let rewrite = Arc::new(rewrite);
        self.each(|device| {
            let rewrite = Arc::clone(&rewrite);
            device.rewriting(move |spec| rewrite(spec))
        })
    }

    /// Applies a setting, which all clones of a device share, to each device.
    fn each(self, set: impl Fn(Device) -> Device) -> Self {
        self.devices().cloned().map(set).for_each(drop);
        self
    }
}
