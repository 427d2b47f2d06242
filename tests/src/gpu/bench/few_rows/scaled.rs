//! Scaled GEMMs of `e4m3`, and the driver's copy of their weights.

use anyhow::ensure;
use tma_kernels::gemm::{
    MaskedOptions, QuantizedOptions, Scales, gemm_quantized, gemm_scaled, gemm_scaled_masked,
};
use tma_runtime::prelude::*;

use super::{COLD_BYTES, SAMPLES};
use crate::gpu::bench::products::problem::normal;
use crate::random::{hash, noise_of};

/// The number of columns of K, and of rows of B, that share a scale.
const BLOCK: usize = 128;
/// Weights repeat this many numbers, which are no multiple of a row.
const NUMBERS: usize = 1_000_003;
/// Groups of rows of the contestant with groups.
const GROUPS: usize = 4;
/// The rows of A, and N and K of the weights, the same as in `tests/rivals/torch_rivals.py`.
pub(super) const ROWS: [usize; 5] = [1, 8, 16, 64, 128];
pub(super) const WEIGHTS: [[usize; 2]; 4] = [[7168, 2048], [4096, 7168], [7168, 16384], [24576, 1536]];
/// The shapes of a check: one for each tile.
pub(super) const SMALL: [[usize; 3]; 5] =
    [[1, 136, 400], [12, 72, 272], [30, 72, 272], [40, 136, 144], [100, 136, 144]];

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `gemm_scaled`.
    Scaled,
    /// `gemm_scaled_masked` of groups, each with its own weights, all of whose rows but one are
    /// valid, or the only one.
    Masked,
    /// `gemm_quantized`, with an A of `bf16`, which has no scales.
    Quantized,
    /// The driver's copy of the weights.
    Copy,
}

/// A contestant with its tensors.
pub struct Task {
    kind: Kind,
    shape: [usize; 3],
    host: Host,
    a: DeviceTensor<e4m3, 3>,
    /// The same numbers.
    wide_a: DeviceTensor<bf16, 2>,
    of_a: DeviceTensor<f32, 3>,
    of_b: DeviceTensor<f32, 3>,
    counts: DeviceTensor<u32, 1>,
    c: DeviceTensor<bf16, 3>,
    weights: Vec<DeviceTensor<e4m3, 3>>,
    copied: DeviceTensor<e4m3, 3>,
    next: usize,
}

/// The operands on the host.
struct Host {
    a: Vec<e4m3>,
    numbers: Vec<e4m3>,
    of_a: Vec<f32>,
    of_b: Vec<f32>,
}

impl Task {
    /// Allocates and fills the tensors: weights of `COLD_BYTES` if they should be cold.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(device: &Device, shape: [usize; 3], kind: Kind, is_cold: bool) -> anyhow::Result<Self> {
        let [m, n, k] = shape;
        let groups = if kind == Kind::Masked { GROUPS } else { 1 };
        let (blocks, steps) = (n.div_ceil(BLOCK), k.div_ceil(BLOCK));
        // Operands of at most about 448, and scales of 1, 2 and 3 in 20,000.
        let numbers = |seed, len| noise_of(len, |i| e4m3::from_f64(normal(seed, i) * 100.0));
        let scales = |seed, len| noise_of(len, |i| (hash(seed, i) % 3 + 1) as f32 / 20_000.0);
        let is_scaled = kind != Kind::Quantized;
        let host = Host {
            a: numbers(102, groups * m * k),
            numbers: numbers(103, NUMBERS),
            of_a: if is_scaled { scales(104, groups * m * steps) } else { vec![1.0; groups * m * steps] },
            of_b: scales(105, groups * blocks * steps),
        };
        let all: Vec<_> = host.numbers.iter().copied().cycle().take(groups * n * k).collect();
        let count = if is_cold { COLD_BYTES.div_ceil(all.len()) } else { 1 };
        let weights = (0..count).map(|_| device.tensor(&all, [groups, n, k])).collect::<Result<_, _>>()?;
        let wide_a: Vec<_> = host.a[..m * k].iter().map(|x| bf16::from_f32(x.to_f32())).collect();
        let valid = vec![u32::try_from(valid(m))?; groups];
        let copied = if kind == Kind::Copy { [groups, n, k] } else { [0; 3] };
        Ok(Self {
            kind,
            shape,
            a: device.tensor(&host.a, [groups, m, k])?,
            wide_a: device.tensor(&wide_a, [m, k])?,
            of_a: device.tensor(&host.of_a, [groups, m, steps])?,
            of_b: device.tensor(&host.of_b, [groups, blocks, steps])?,
            counts: device.tensor(&valid, [groups])?,
            c: device.filled_bytes([groups, m, n], 0xff)?,
            weights,
            copied: device.zeros(copied)?,
            host,
            next: 0,
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
        let ([m, n, k], steps) = (self.shape, self.shape[2].div_ceil(BLOCK));
        match self.kind {
            Kind::Copy => Ok(self.copied.copy_from_device(b, stream)?),
            Kind::Masked => {
                let scales = Some([self.of_a.view(), self.of_b.view()]);
                let options = MaskedOptions { scales, expected_rows: None };
                Ok(gemm_scaled_masked(stream, &self.a, b, &self.counts, &mut self.c, options)?)
            }
            Kind::Quantized => {
                let scales = self.of_b.view().with_strides([n.div_ceil(BLOCK), steps], [steps, 1])?;
                let options = QuantizedOptions { scales: Some(scales), constant_b: true };
                let b = b.view().with_strides([n, k], [k, 1])?;
                let c = self.c.view_mut().with_strides([m, n], [n, 1])?;
                Ok(gemm_quantized(stream, &self.wide_a, b, c, options)?)
            }
            Kind::Scaled => {
                let scales = Scales {
                    a: self.of_a.view().with_strides([m, steps], [steps, 1])?,
                    b: self.of_b.view().with_strides([n.div_ceil(BLOCK), steps], [steps, 1])?,
                };
                let (a, b) =
                    (self.a.view().with_strides([m, k], [k, 1])?, b.view().with_strides([n, k], [k, 1])?);
                Ok(gemm_scaled(stream, a, b, Some(scales), self.c.view_mut().with_strides([m, n], [n, 1])?)?)
            }
        }
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
        let ([m, n, k], found) = (self.shape, self.c.to_vec()?);
        let (blocks, steps) = (n.div_ceil(BLOCK), k.div_ceil(BLOCK));
        let Host { a, numbers, of_a, of_b } = &self.host;
        for sample in 0..SAMPLES {
            let place = (hash(106, sample) % found.len() as u64) as usize;
            let (row, column) = (place / n, place % n);
            let (group, found) = (row / m, found[place].to_f64());
            if self.kind == Kind::Masked && row % m >= valid(m) {
                ensure!(found.is_nan(), "row {row} column {column} is written");
                continue;
            }
            let product = |x: usize| {
                let scale = f64::from(of_a[row * steps + x / BLOCK])
                    * f64::from(of_b[(group * blocks + column / BLOCK) * steps + x / BLOCK]);
                let b = numbers[((group * n + column) * k + x) % NUMBERS];
                a[row * k + x].to_f64() * b.to_f64() * scale
            };
            let wanted: f64 = (0..k).map(product).sum();
            // `bf16` rounds by 2^-9; the absolute part covers cancellation in the sums.
            let is_right = (found - wanted).abs() <= wanted.abs() / 128.0 + self.cancelled();
            ensure!(is_right, "row {row} column {column} is {found}, not {wanted}");
        }
        Ok(())
    }

    /// Returns the greatest error of a sum whose products cancel each other. Those that are not
    /// multiplied by a scale of A are some 10,000 times as large.
    fn cancelled(&self) -> f64 {
        if self.kind == Kind::Quantized { 500.0 } else { 0.05 }
    }

    /// Returns the bytes of weights that a launch reads; of a copy, also those that it writes.
    pub fn bytes(&self) -> f64 {
        let bytes = self.weights[0].bytes() as f64;
        if self.kind == Kind::Copy { 2.0 * bytes } else { bytes }
    }
}

/// Returns the valid rows of a group of `m`.
fn valid(m: usize) -> usize {
    (m - 1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let device = Device::simulator();
        let mut task = Task::new(&device, [1, 72, 144], Kind::Scaled, false).unwrap();
        task.host.of_b.fill(-1.0);
        assert!(task.check(&device.stream().unwrap()).is_err());
    }
}
