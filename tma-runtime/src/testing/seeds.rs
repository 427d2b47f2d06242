//! Checks that run under many seeds of the simulator.

use std::error::Error;
use std::fmt;
use std::io::{self, Write as _};
use std::thread;

use crate::device::Device;
use crate::progress::Progress;

/// The number of seeds from which on a bar shows progress, on a terminal and after a second.
const MANY: u64 = 32;

/// A failed check, and the first seed under which it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedFailure<E> {
    /// The [`Device::seed`] of the simulated device on which the check failed.
    pub seed: u64,
    /// The check's error.
    pub error: E,
}

impl<E: fmt::Display> fmt::Display for SeedFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, error } = self;
        // anyhow's errors show their sources in the alternate format.
        write!(f, "{} failed: {error:#}", Repeat(*seed))
    }
}

impl<E: fmt::Debug + fmt::Display> Error for SeedFailure<E> {}

/// A seed, displayed with instructions to reproduce the failure.
struct Repeat(u64);

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the check with seed {0} (reproduce it with `Device::simulator().seed({0})`)", self.0)
    }
}

/// Prints the seed if the check panics, as it does in `assert_eq!`.
impl Drop for Repeat {
    fn drop(&mut self) {
        if thread::panicking() {
            // `eprintln!` would panic again if standard error is closed, which aborts the process.
            let _nobody_reads = writeln!(io::stderr(), "{self} panicked");
        }
    }
}

/// Runs `check` on a new simulated device under each of the seeds 0 to `seeds - 1`, until it fails.
///
/// `check` allocates what it needs on its device, launches, and compares. It may return an error of
/// any type or panic; either way the seed is reported.
///
/// ```
/// # mod double {
/// #     // What `#[tma_kernel(threads = 64)] fn double(data: Global<u32>) { .. }` gives, in short.
/// #     use tma_runtime::launch::{Arg, GlobalArgMut, Grid, KernelParts, KernelSpec, ParamKind, ParamSpec};
/// #     use tma_runtime::spec::{Cluster, Scalar};
/// #     const PARTS: KernelParts = KernelParts {
/// #         name: "double",
/// #         entry: "double",
/// #         ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n
/// #             .visible .entry double(.param .u64 data, .param .u64 len) .reqntid 64, 1, 1 {
/// #                 .reg .b32 %r<3>; .reg .b64 %d<3>;
/// #                 ld.param.b64 %d1, [data]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;
/// #                 ld.global.b32 %r2, [%d1]; add.u32 %r2, %r2, %r2; st.global.b32 [%d1], %r2; ret; }",
/// #         threads: [64, 1, 1],
/// #         cluster: Cluster::None,
/// #         cooperative: false,
/// #         dependency_wait: false,
/// #         team: false,
/// #         shared_bytes: 0,
/// #         params: &[ParamSpec { name: "data", kind: ParamKind::Global { element: Scalar::U32, written: true, alignment: 4 } }],
/// #     };
/// #     // SAFETY: it is launched with as many numbers as it has threads.
/// #     static SPEC: KernelSpec = unsafe { KernelSpec::from_parts(PARTS) };
/// #     pub fn launch(on: &tma_runtime::Device, blocks: u32, mut data: impl GlobalArgMut<u32>)
/// #     -> Result<(), tma_runtime::Error> {
/// #         tma_runtime::launch::launch(on, &SPEC, Grid::x(blocks), &[Arg::global_mut(data.slice_mut())])
/// #     }
/// # }
/// use tma_runtime::prelude::*;
/// use tma_runtime::testing::under_seeds;
///
/// // `double` is a kernel of 64 threads: `#[tma_kernel(threads = 64)] fn double(data: Global<u32>)`.
/// under_seeds(8, |device| {
///     let host: Vec<u32> = (0..64).collect();
///     let mut data = device.tensor(&host, [64])?;
///     double::launch(device, 1, &mut data)?;
///     let wanted: Vec<u32> = host.iter().map(|x| x * 2).collect();
///     assert_eq!(data.to_vec()?, wanted);
///     Ok::<_, Error>(())
/// })?;
///
/// // What fails is told with its seed.
/// let failure = under_seeds(8, |device| device.tensor(&[1.5f32], [2]).map(drop)).unwrap_err();
/// assert_eq!(failure.seed, 0);
/// assert!(failure.to_string().contains("Device::simulator().seed(0)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The first error of `check`, with its seed.
pub fn under_seeds<E>(
    seeds: u64,
    mut check: impl FnMut(&Device) -> Result<(), E>,
) -> Result<(), SeedFailure<E>> {
    // Quiet for few seeds: they are the rule in tests, which share one terminal.
    let mut progress = Progress::new("seeds", seeds, seeds < MANY);
    for seed in 0..seeds {
        let named = Repeat(seed);
        check(&Device::simulator().seed(seed)).map_err(|error| SeedFailure { seed: named.0, error })?;
        progress.step();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seed_gets_a_device_of_its_own() {
        let mut devices = vec![];
        let result = under_seeds(5, |device| {
            devices.push(device.clone());
            Ok::<(), String>(())
        });
        assert_eq!(result, Ok(()));
        assert_eq!(devices.len(), 5);
        for (index, device) in devices.iter().enumerate() {
            assert!(devices[..index].iter().all(|other| other.id() != device.id()));
        }
    }

    #[test]
    fn the_first_failure_ends_it_and_names_its_seed() {
        let mut calls = 0;
        let result = under_seeds(8, |_| {
            calls += 1;
            if calls == 3 { Err("differs") } else { Ok(()) }
        });
        assert_eq!((calls, result), (3, Err(SeedFailure { seed: 2, error: "differs" })));
        let text = SeedFailure { seed: 2, error: "differs" }.to_string();
        let wanted =
            "the check with seed 2 (reproduce it with `Device::simulator().seed(2)`) failed: differs";
        assert_eq!(text, wanted);
    }

    #[test]
    #[should_panic(expected = "an assertion")]
    fn panics_are_propagated() {
        let _ = under_seeds(2, |_| -> Result<(), String> { panic!("an assertion") });
    }
}
