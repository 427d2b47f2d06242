//! The cost of the proxy fence of a release: threads read the tiles of a ring, with the fence and
//! without.
//!
//! The contestants without it are the same PTX with its fences removed. According to the PTX ISA
//! such a kernel may read the data of the next load. The simulator rejects it, so it runs only on a
//! GPU.

use std::sync::LazyLock;

use anyhow::Context;
use tma_runtime::launch::{Arg, KernelParts, KernelSpec, launch};
use tma_runtime::prelude::*;

use super::kernels::scales::scale::{self, scale_from_ring};
use super::measure::{Plan, compare, interleaved, print_speeds};
use crate::compare::same_bits;
use crate::random::{hash, noise_of};

/// 256 MiB of `f32`.
const SHAPE: [usize; 2] = [8192, 8192];

/// The least ratio of the speed with the fence to that without.
const TARGET: f64 = 0.99;

/// The names of the contestants: with the fence, and without.
pub const CONTESTANTS: &[&str] = &[
    "scale_from_ring::by_threads",
    "scale_from_ring::by_warps",
    "scale_unfenced::by_threads",
    "scale_unfenced::by_warps",
];
const FENCED: usize = 2;

const FENCE: &str = "fence.proxy.async.shared::cta;";

/// The kernels, in the order of the contestants.
static KERNELS: LazyLock<Vec<KernelSpec>> = LazyLock::new(|| {
    let fenced = scale_from_ring::INSTANCES;
    fenced.into_iter().chain(fenced.iter().map(unfenced)).collect()
});

/// Returns the kernel without its proxy fences. Its text is made once and leaked.
fn unfenced(kernel: &KernelSpec) -> KernelSpec {
    let parts = KernelParts { ptx: kernel.ptx.replace(FENCE, "").leak(), ..*kernel.parts() };
    // SAFETY: the kernel makes the same accesses, only without an order that the copy engine needs:
    // the values that it loads may be wrong, but not its addresses.
    unsafe { KernelSpec::from_parts(parts) }
}

/// A matrix, and the destination of the scaled one.
struct Problem {
    host: Vec<f32>,
    src: DeviceTensor<f32, 2>,
    dst: DeviceTensor<f32, 2>,
}

impl Problem {
    fn new(device: &Device, shape: [usize; 2]) -> Result<Self, Error> {
        let host = noise_of(shape[0] * shape[1], |i| (hash(87, i) % 1024) as f32);
        let (src, dst) = (device.tensor(&host, shape)?, device.zeros(shape)?);
        Ok(Self { host, src, dst })
    }

    fn launch(&mut self, kernel: &'static KernelSpec, blocks: u32, stream: &Stream) -> Result<(), Error> {
        let [rows, cols] = self.src.shape().map(|extent| extent as u32);
        let across = cols / scale::COLS;
        let args = [
            Arg::map(self.src.view()),
            Arg::global_mut(self.dst.slice_mut()),
            Arg::scalar(2.0f32),
            Arg::scalar(across),
            Arg::scalar(rows / scale::ROWS * across),
        ];
        launch(stream, kernel, Grid::x(blocks), &args)
    }

    /// Checks that the first `contestants` of them scale each element.
    fn check(&mut self, contestants: usize, blocks: u32, stream: &Stream) -> anyhow::Result<()> {
        let wanted: Vec<_> = self.host.iter().map(|value| value * 2.0).collect();
        for (name, kernel) in CONTESTANTS.iter().zip(KERNELS.iter()).take(contestants) {
            self.dst.copy_from(&vec![0.0; wanted.len()])?;
            self.dst.device().synchronize()?; // the copy is not ordered with the stream
            self.launch(kernel, blocks, stream)?;
            stream.synchronize()?;
            same_bits(&self.dst.to_vec()?, &wanted).context(*name)?;
        }
        Ok(())
    }
}

/// Checks the contestants with the fence, on a small matrix.
///
/// # Errors
///
/// Errors of the device, and a contestant with a wrong result.
pub fn check(device: &Device) -> anyhow::Result<()> {
    Problem::new(device, [320, 256])?.check(FENCED, 3, &device.stream()?)
}

/// Checks all contestants and measures them. Returns whether the fastest with the fence reaches the
/// target relative to the fastest without.
///
/// # Errors
///
/// Errors of the device, and a wrong result.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let (stream, blocks) = (device.stream()?, device.multiprocessors() * 2);
    let mut problem = Problem::new(device, SHAPE)?;
    if plan.launches.is_none() {
        problem.check(CONTESTANTS.len(), blocks, &stream)?;
    }
    // The matrix is read and written.
    let contestants: Vec<_> = CONTESTANTS.iter().map(|&name| (name, 2 * problem.src.bytes())).collect();
    let launch = |index: usize, stream: &Stream| problem.launch(&KERNELS[index], blocks, stream);
    let Some(speeds) = interleaved(plan, "release_fence", &contestants, &stream, launch)? else {
        return Ok(vec![]);
    };
    print_speeds("release_fence", &contestants, &speeds);
    let all = contestants.len();
    Ok(vec![compare("release_fence", &contestants, &speeds, 0..FENCED, FENCED..all, TARGET)])
}

#[cfg(all(test, feature = "llvm"))]
mod tests {
    use super::*;

    #[test]
    fn the_fence_is_all_that_is_left_out() {
        for (fenced, unfenced) in KERNELS.iter().zip(&KERNELS[FENCED..]) {
            assert_eq!(fenced.ptx.matches(FENCE).count(), 1, "{}", fenced.name);
            assert_eq!(fenced.ptx.replace(FENCE, ""), unfenced.ptx);
        }
    }

    #[test]
    fn the_simulator_refuses_what_is_left() -> anyhow::Result<()> {
        let device = Device::simulator();
        let mut problem = Problem::new(&device, [320, 256])?;
        let stream = device.stream()?;
        for kernel in &KERNELS[FENCED..] {
            let launched = problem.launch(kernel, 1, &stream).and_then(|()| stream.synchronize());
            let error = launched.map_err(|error| error.to_string()).unwrap_err();
            assert!(error.contains("refill without a proxy fence"), "{error}");
        }
        Ok(())
    }
}
