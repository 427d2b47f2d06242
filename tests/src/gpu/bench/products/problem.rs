//! Two matrices to multiply, and whether a product of them is right.

use std::ffi::c_int;
use std::thread;

use anyhow::ensure;
use tma_runtime::launch::{Arg, launch};
use tma_runtime::prelude::*;

use super::contestants::{self, Contestant};
use super::cublas::{CUDA_R_16BF, CUDA_R_16F, Cublas};
use crate::random::{Sample, hash, noise_of, threads};

/// Elements of the product that the host computes, if the shape is large.
const SAMPLES: usize = 4096;

/// The element of the matrices.
pub trait Element: Sample + Send + Sync {
    /// As in the contestants' names.
    const NAME: &'static str;
    /// cuBLAS's number for it.
    const CUDA_TYPE: c_int;
    /// The greatest relative error of rounding.
    const ROUNDING: f64;

    /// The kernels that multiply it.
    fn contestants() -> &'static [Contestant];
    /// The nearest.
    fn of(value: f64) -> Self;
    /// Its value.
    fn value(self) -> f64;
}

macro_rules! elements {
    ($($ty:ident, $cuda_type:ident, $rounding:expr, $contestants:ident;)+) => { $(
        impl Element for $ty {
            const NAME: &'static str = stringify!($ty);
            const CUDA_TYPE: c_int = $cuda_type;
            const ROUNDING: f64 = $rounding;

            fn contestants() -> &'static [Contestant] {
                &contestants::$contestants
            }

            fn of(value: f64) -> Self {
                Self::from_f64(value)
            }

            fn value(self) -> f64 {
                self.to_f64()
            }
        }
    )+ };
}

elements! {
    f16, CUDA_R_16F, 1.0 / 2048.0, OF_F16;
    bf16, CUDA_R_16BF, 1.0 / 256.0, OF_BF16;
}

/// What multiplies.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    /// cuBLAS.
    Library(&'a Cublas),
    /// One of the kernels.
    Kernel(&'static Contestant),
}

impl Way<'_> {
    /// The name in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Library(_) => "cublas",
            Self::Kernel(contestant) => contestant.kernel.name,
        }
    }
}

/// C = A · Bᵀ: A is M × K and B is N × K, of normally distributed numbers.
pub struct Problem<T: Element> {
    /// M, N and K.
    pub shape: [usize; 3],
    a: DeviceTensor<T, 2>,
    b: DeviceTensor<T, 2>,
    c: DeviceTensor<T, 2>,
    host: [Vec<T>; 2],
    /// C, as it is read back.
    found: Vec<T>,
}

impl<T: Element> Problem<T> {
    /// Makes the matrices.
    ///
    /// # Errors
    ///
    /// Those of the device.
    pub fn new(device: &Device, shape: [usize; 3]) -> Result<Self, Error> {
        let [m, n, k] = shape;
        let host = [(91, m * k), (92, n * k)].map(|(seed, len)| noise_of(len, |i| normal::<T>(seed, i)));
        let (a, b) = (device.tensor(&host[0], [m, k])?, device.tensor(&host[1], [n, k])?);
        let c = device.filled_bytes([m, n], 0xff)?;
        Ok(Self { shape, a, b, c, host, found: vec![T::default(); m * n] })
    }

    /// Floating-point operations of the product.
    pub fn operations(&self) -> f64 {
        2.0 * self.shape.iter().map(|&extent| extent as f64).product::<f64>()
    }

    /// Queues the product.
    ///
    /// # Errors
    ///
    /// Those of the launch, and the library's.
    pub fn multiply(&mut self, way: Way<'_>, stream: &Stream) -> anyhow::Result<()> {
        let contestant = match way {
            Way::Library(cublas) => return cublas.multiply(&self.a, &self.b, &mut self.c, T::CUDA_TYPE),
            Way::Kernel(contestant) => contestant,
        };
        let [m, n, k] = self.shape;
        let [down, across] = contestant.tiles([m, n]);
        let grid = contestant.grid(stream, [down, across])?;
        let (a, b, c) = (self.a.view(), self.b.view(), self.c.view_mut());
        let [a, b, c] = if contestant.has_batches() {
            let ([m, k], [n, _]) = (a.shape(), b.shape());
            [
                Arg::map(a.with_strides([1, m, k], [m * k, k, 1])?),
                Arg::map(b.with_strides([1, n, k], [n * k, k, 1])?),
                Arg::map_mut(c.with_strides([1, m, n], [m * n, n, 1])?),
            ]
        } else {
            [Arg::map(a), Arg::map(b), Arg::map_mut(c)]
        };
        let steps = k.div_ceil(contestant.step()) as u32;
        let args = [a, b, c, Arg::scalar(down), Arg::scalar(across), Arg::scalar(steps)];
        Ok(launch(stream, &contestant.kernel, grid, &args)?)
    }

    /// Multiplies once, into poisoned memory, and compares with what the host computes, element by
    /// element or a sample of them; then all with `wanted`, the product by another way.
    ///
    /// # Errors
    ///
    /// Those of [`multiply`](Self::multiply); how many elements are wrong, and the worst.
    pub fn check(&mut self, way: Way<'_>, stream: &Stream, wanted: Option<&[T]>) -> anyhow::Result<()> {
        self.c.fill_bytes(0xff)?;
        self.c.device().synchronize()?; // a stream does not wait for it
        self.multiply(way, stream)?;
        stream.synchronize()?;
        self.c.copy_to(&mut self.found)?;
        self.check_against_host()?;
        wanted.map_or(Ok(()), |wanted| self.check_against(wanted))
    }

    /// The product that was checked last.
    pub fn found(&self) -> Vec<T> {
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

    fn check_against(&self, wanted: &[T]) -> anyhow::Result<()> {
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

    /// Whether two results are one within the rounding of each, and of sums of K products in an
    /// unknown order, which an H200 truncates. No NaN agrees with anything.
    fn agree(&self, found: f64, wanted: f64) -> bool {
        let sums = (self.shape[2] as f64).sqrt() / 1000.0;
        (found - wanted).abs() <= 2.0 * T::ROUNDING * wanted.abs() + sums
    }
}

/// A normally distributed number, of mean 0 and deviation 1 (Box and Muller, "A Note on the
/// Generation of Random Normal Deviates").
fn normal<T: Element>(seed: u64, index: u64) -> T {
    let bits = hash(seed, index);
    let uniform = |bits: u64| ((bits & 0xffff_ffff) as f64 + 0.5) / 2f64.powi(32);
    let (radius, turn) = (uniform(bits), uniform(bits >> 32));
    T::of((-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos())
}
