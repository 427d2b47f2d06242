//! GEMMs of `bf16` by the library and by cuBLAS, and the driver's copy of their weights.

use anyhow::{Context, ensure};
use tma_kernels::gemm::choose::{Problem, choose};
use tma_kernels::gemm::{Division, GemmOptions, Tile, gemm};
use tma_runtime::prelude::*;

use super::{COLD_BYTES, SAMPLES};
use crate::gpu::bench::libraries::cublas::Cublas;
use crate::gpu::bench::products::precision::{Bf16, Precision};
use crate::gpu::bench::products::problem::normal;
use crate::random::{hash, noise_of};

/// Weights repeat this many numbers, which are no multiple of a row.
const NUMBERS: usize = 1_000_003;
/// The rows of A, and N and K of the weights: those of the layers of Llama 3 8B.
pub(super) const ROWS: [usize; 5] = [1, 8, 16, 32, 64];
pub(super) const WEIGHTS: [[usize; 2]; 4] = [[6144, 4096], [4096, 4096], [28672, 4096], [4096, 14336]];
/// The shapes of a check.
pub(super) const SMALL: [[usize; 3]; 3] = [[1, 136, 576], [7, 136, 576], [12, 72, 1088]];

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `gemm`, with the kernel that it chooses.
    Chosen,
    /// The same, with a promise that B is constant.
    Constant,
    /// `gemm`, with the tile that it would choose without the kernel for few rows.
    Tiles,
    /// cuBLAS, by its own choice.
    Cublas,
    /// The driver's copy of the weights.
    Copy,
}

/// A contestant with its tensors.
pub struct Task {
    kind: Kind,
    shape: [usize; 3],
    host: [Vec<bf16>; 2],
    a: DeviceTensor<bf16, 2>,
    c: DeviceTensor<bf16, 2>,
    weights: Vec<DeviceTensor<bf16, 2>>,
    copied: DeviceTensor<bf16, 2>,
    next: usize,
    cublas: Option<Cublas>,
}

impl Task {
    /// Allocates and fills the tensors: weights of `COLD_BYTES` if they should be cold.
    ///
    /// # Errors
    ///
    /// Errors of the device, and cuBLAS that is not found.
    pub fn new(stream: &Stream, shape: [usize; 3], kind: Kind, is_cold: bool) -> anyhow::Result<Self> {
        let ([m, n, k], device) = (shape, stream.device());
        let numbers = |seed, len| noise_of(len, |i| bf16::from_f64(normal(seed, i)));
        let host = [numbers(102, m * k), numbers(103, NUMBERS)];
        let all: Vec<_> = host[1].iter().copied().cycle().take(n * k).collect();
        let count = if is_cold { COLD_BYTES.div_ceil(2 * all.len()) } else { 1 };
        let weights = (0..count).map(|_| device.tensor(&all, [n, k])).collect::<Result<_, _>>()?;
        let cublas = if kind == Kind::Cublas { Some(Cublas::load(None, stream)?) } else { None };
        Ok(Self {
            kind,
            shape,
            a: device.tensor(&host[0], [m, k])?,
            c: device.filled_bytes([m, n], 0xff)?,
            weights,
            copied: device.zeros(if kind == Kind::Copy { [n, k] } else { [0; 2] })?,
            host,
            next: 0,
            cublas,
        })
    }

    /// Queues the launch for the next weights.
    ///
    /// # Errors
    ///
    /// Errors of the launch.
    pub fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let b = &self.weights[self.next];
        self.next = (self.next + 1) % self.weights.len();
        let mut options = GemmOptions { transpose_b: true, ..GemmOptions::default() };
        match self.kind {
            Kind::Copy => return Ok(self.copied.copy_from_device(b, stream)?),
            Kind::Cublas => {
                let cublas = self.cublas.as_ref().context("cuBLAS is not loaded")?;
                return cublas.multiply(Bf16::TYPES, &self.a, b, &mut self.c);
            }
            Kind::Chosen => {}
            Kind::Constant => options.constant_b = true,
            Kind::Tiles => {
                let problem = Problem { extents: self.shape, batches: 1, bytes: [2, 2] };
                let is_plain = |tile| tile != Tile::T128x128Cluster1x2; // only with options
                options.choice = choose(&problem, stream.device().multiprocessors(), |choice| {
                    choice.division == Division::Whole && is_plain(choice.tile)
                });
            }
        }
        Ok(gemm(stream, &self.a, b, &mut self.c, options)?)
    }

    /// Runs a launch into poisoned memory, and compares some elements with what the host computes.
    ///
    /// # Errors
    ///
    /// Errors of the launch, and an element that is wrong.
    pub fn check(&mut self, stream: &Stream) -> anyhow::Result<()> {
        self.next = 0;
        self.c.fill_bytes(0xff)?;
        self.c.device().synchronize()?; // the copy is not ordered with the stream
        self.queue(stream)?;
        stream.synchronize()?;
        self.next = 0;
        if self.kind == Kind::Copy {
            return Ok(()); // by the driver
        }
        let ([_, n, k], found) = (self.shape, self.c.to_vec()?);
        let [a, numbers] = &self.host;
        for sample in 0..SAMPLES {
            let place = (hash(106, sample) % found.len() as u64) as usize;
            let (row, column, found) = (place / n, place % n, found[place].to_f64());
            let product = |x: usize| a[row * k + x].to_f64() * numbers[(column * k + x) % NUMBERS].to_f64();
            let wanted: f64 = (0..k).map(product).sum();
            // `bf16` rounds by 2^-9; the absolute part is the error of the sums, of deviation √K.
            let is_right = (found - wanted).abs() <= wanted.abs() / 256.0 + 1e-3 * (k as f64).sqrt();
            ensure!(is_right, "row {row} column {column} is {found}, not {wanted}");
        }
        Ok(())
    }

    /// Returns the bytes of weights that a launch reads; of a copy, also those that it writes.
    pub fn bytes(&self) -> f64 {
        let bytes = self.weights[0].bytes() as f64;
        if self.kind == Kind::Copy { 2.0 * bytes } else { bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let mut task = Task::new(&stream, [1, 72, 144], Kind::Chosen, false).unwrap();
        task.host[0].fill(bf16::ZERO);
        assert!(task.check(&stream).is_err());
    }
}
