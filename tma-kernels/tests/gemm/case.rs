//! A GEMM of small integers, which is exact, compared with plain Rust.

use tma_kernels::gemm::{Choice, Division, GemmError, GemmOptions, Product, Tile, gemm};
use tma_runtime::prelude::*;

use super::exact::{Element, integers};

/// A GEMM: M, N, K and the size of the batch, and the layout of A and B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) mnkl: [usize; 4],
    pub(crate) transposed: [bool; 2],
}

pub(crate) struct Matrices<AB, C> {
    pub(crate) a: Vec<AB>,
    pub(crate) b: Vec<AB>,
    pub(crate) c: Vec<C>,
}

impl Case {
    pub(crate) fn nt(mnkl: [usize; 4]) -> Self {
        Self { mnkl, transposed: [false, true] }
    }

    pub(crate) fn matrices<AB: Element, C: Element>(&self) -> Matrices<AB, C> {
        let [m, n, k, l] = self.mnkl;
        Matrices { a: integers(1, l * m * k), b: integers(2, l * n * k), c: integers(3, l * m * n) }
    }

    /// Returns the shapes of A, B and C.
    pub(crate) fn shapes(&self) -> [[usize; 3]; 3] {
        let [m, n, k, l] = self.mnkl;
        let [of_a, of_b] = self.transposed;
        [if of_a { [l, k, m] } else { [l, m, k] }, if of_b { [l, n, k] } else { [l, k, n] }, [l, m, n]]
    }

    /// Returns the exact sums.
    pub(crate) fn sums<AB: Element, C>(&self, matrices: &Matrices<AB, C>) -> Vec<f32> {
        let [m, n, k, l] = self.mnkl;
        let [of_a, of_b] = self.transposed;
        let [all_a, all_b] =
            [&matrices.a, &matrices.b].map(|all| all.iter().map(|x| x.value()).collect::<Vec<_>>());
        let a = |z: usize, i: usize, x: usize| all_a[z * m * k + if of_a { x * m + i } else { i * k + x }];
        let b = |z: usize, j: usize, x: usize| all_b[z * n * k + if of_b { j * k + x } else { x * n + j }];
        let element = |place: usize| {
            let (z, i, j) = (place / (m * n), place / n % m, place % n);
            (0..k).map(|x| a(z, i, x) * b(z, j, x)).sum()
        };
        (0..l * m * n).map(element).collect()
    }

    /// Multiplies, and compares with `wanted(sum, previous C)`, rounded once.
    pub(crate) fn run<AB: Element + Product<C>, C: Element>(
        &self,
        device: &Device,
        options: GemmOptions<'_, C, 3>,
        wanted: impl Fn(f32, f32) -> f32,
    ) -> Result<(), GemmError> {
        let matrices = self.matrices::<AB, C>();
        let [of_a, of_b, of_c] = self.shapes();
        let a = device.tensor(&matrices.a, of_a)?;
        let b = device.tensor(&matrices.b, of_b)?;
        let mut c = device.tensor(&matrices.c, of_c)?;
        let [transpose_a, transpose_b] = self.transposed;
        let about = format!("{self:?}, {:?}", options.choice);
        gemm(device, &a, &b, &mut c, GemmOptions { transpose_a, transpose_b, ..options })?;
        let wanted: Vec<C> = self
            .sums(&matrices)
            .iter()
            .zip(&matrices.c)
            .map(|(&sum, c)| C::of(wanted(sum, c.value())))
            .collect();
        let found = c.to_vec()?;
        let wrong = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
        if let Some(i) = wrong {
            let n = self.mnkl[1];
            panic!("{about}: row {} column {}: {:?} instead of {:?}", i / n, i % n, found[i], wanted[i]);
        }
        Ok(())
    }

    #[track_caller]
    pub(crate) fn product<AB: Element + Product<C>, C: Element>(&self, choice: Choice) {
        let options = GemmOptions { choice: Some(choice), ..GemmOptions::default() };
        if let Err(error) = self.run::<AB, C>(&device(), options, |sum, _| sum) {
            panic!("{self:?} by {choice:?}: {error}");
        }
    }
}

pub(crate) fn device() -> Device {
    Device::open().expect("a device")
}

pub(crate) const fn by(tile: Tile, division: Division) -> Choice {
    Choice { tile, division }
}
