//! Two matrices to multiply, and checks of their GEMM.

use std::thread;

use anyhow::ensure;
use tma_runtime::prelude::*;

use super::contestants::Contestant;
use super::precision::{Number, Precision};
use crate::random::{hash, noise_of, threads};

/// The number of elements of C that the host computes, if the shape is large.
const SAMPLES: usize = 4096;

/// C = A · Bᵀ on the device: A is M × K, B is N × K and C is M × N, all row-major.
pub struct Matrices<P: Precision> {
    /// A.
    pub a: DeviceTensor<P::Operand, 2>,
    /// B.
    pub b: DeviceTensor<P::Operand, 2>,
    /// C.
    pub c: DeviceTensor<P::Result, 2>,
}

impl<P: Precision> Matrices<P> {
    /// Returns M, N and K.
    pub fn shape(&self) -> [usize; 3] {
        let ([m, k], [n, _]) = (self.a.shape(), self.b.shape());
        [m, n, k]
    }
}

/// Matrices of normally distributed numbers, on the device and on the host.
pub struct Problem<P: Precision> {
    /// M, N and K.
    pub shape: [usize; 3],
    /// The matrices.
    pub matrices: Matrices<P>,
    host: [Vec<P::Operand>; 2],
    /// C, as read back from the device.
    found: Vec<P::Result>,
}

impl<P: Precision> Problem<P> {
    /// Allocates and fills the matrices.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(device: &Device, shape: [usize; 3]) -> Result<Self, Error> {
        let [m, n, k] = shape;
        let host = [(91, m * k), (92, n * k)]
            .map(|(seed, len)| noise_of(len, |i| P::Operand::of(P::DEVIATION * normal(seed, i))));
        let (a, b) = (device.tensor(&host[0], [m, k])?, device.tensor(&host[1], [n, k])?);
        let c = device.filled_bytes([m, n], 0xff)?;
        Ok(Self { shape, matrices: Matrices { a, b, c }, host, found: vec![P::Result::default(); m * n] })
    }

    /// Returns the number of operations: a multiplication and an addition for each of M · N · K.
    pub fn operations(&self) -> f64 {
        2.0 * self.shape.iter().map(|&extent| extent as f64).product::<f64>()
    }

    /// Runs the contestant once, into poisoned memory, and compares C with what the host computes:
    /// all elements, or a sample. Then compares all of it with `wanted`, the result of another
    /// contestant.
    ///
    /// # Errors
    ///
    /// Errors of the contestant; the number of wrong elements, and the first of them.
    pub fn check(
        &mut self,
        contestant: &Contestant<'_, P>,
        stream: &Stream,
        wanted: Option<&[P::Result]>,
    ) -> anyhow::Result<()> {
        let c = &mut self.matrices.c;
        c.fill_bytes(0xff)?;
        c.device().synchronize()?; // the copy is not ordered with the stream
        contestant.multiply(stream, &mut self.matrices)?;
        stream.synchronize()?;
        self.matrices.c.copy_to(&mut self.found)?;
        self.check_against_host()?;
        wanted.map_or(Ok(()), |wanted| self.check_against(wanted))
    }

    /// Returns the result that was checked last.
    pub fn found(&self) -> Vec<P::Result> {
        self.found.clone()
    }

    fn check_against_host(&self) -> anyhow::Result<()> {
        let [m, n, k] = self.shape;
        let all = m * n * k <= 1 << 30;
        let places = if all { m * n } else { SAMPLES };
        let place = |i: u64| if all { i as usize } else { (hash(93, i) % (m * n) as u64) as usize };
        let wanted = noise_of(places, |i| {
            let (row, column) = (place(i) / n, place(i) % n);
            let (a, b) = (&self.host[0][row * k..][..k], &self.host[1][column * k..][..k]);
            a.iter().zip(b).map(|(a, b)| a.value() * b.value()).sum::<f64>()
        });
        let wrong = (0..places as u64).filter(|&i| {
            let found = self.found[place(i)].value();
            !self.agree(found, wanted[i as usize])
        });
        let wrong: Vec<_> = wrong.collect();
        ensure!(
            wrong.is_empty(),
            "{} of {places} elements are not what the host computes; [{}, {}] is {}, wanted {}",
            wrong.len(),
            place(wrong[0]) / n,
            place(wrong[0]) % n,
            self.found[place(wrong[0])].value(),
            wanted[wrong[0] as usize]
        );
        Ok(())
    }

    fn check_against(&self, wanted: &[P::Result]) -> anyhow::Result<()> {
        let n = self.shape[1];
        let share = wanted.len().div_ceil(threads()).max(1);
        let wrong: Vec<usize> = thread::scope(|scope| {
            let parts = wanted.chunks(share).zip(self.found.chunks(share)).enumerate();
            let searches: Vec<_> = parts
                .map(|(part, (wanted, found))| {
                    scope.spawn(move || {
                        let pairs = wanted.iter().zip(found).enumerate();
                        pairs
                            .filter(|(_, (wanted, found))| !self.agree(found.value(), wanted.value()))
                            .map(|(i, _)| part * share + i)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            searches.into_iter().filter_map(|search| search.join().ok()).flatten().collect()
        });
        ensure!(
            wrong.is_empty(),
            "{} of {} elements differ from the first contestant's; [{}, {}] is {}, wanted {}",
            wrong.len(),
            wanted.len(),
            wrong[0] / n,
            wrong[0] % n,
            self.found[wrong[0]].value(),
            wanted[wrong[0]].value()
        );
        Ok(())
    }

    /// Returns whether two results agree within the rounding of each and the error of sums of K
    /// products in an unknown order, which an H200 truncates. NaN agrees with nothing.
    fn agree(&self, found: f64, wanted: f64) -> bool {
        let sums = P::SUM_ERROR * P::DEVIATION.powi(2) * (self.shape[2] as f64).sqrt();
        (found - wanted).abs() <= 2.0 * P::Result::ROUNDING * wanted.abs() + sums
    }
}

/// Returns a normally distributed number, of mean 0 and deviation 1 (Box and Muller, "A Note on the
/// Generation of Random Normal Deviates").
pub fn normal(seed: u64, index: u64) -> f64 {
    let bits = hash(seed, index);
    let uniform = |bits: u64| ((bits & 0xffff_ffff) as f64 + 0.5) / 2f64.powi(32);
    let (radius, turn) = (uniform(bits), uniform(bits >> 32));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}
