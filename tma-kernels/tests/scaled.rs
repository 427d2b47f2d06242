//! Scaled GEMMs of `e4m3`, compared with plain Rust, on the simulator or on the device that
//! `TMA_DEVICE` names.
#![cfg(feature = "llvm")]

use tma_kernels::gemm::{GemmError, Promoted, Scales, gemm_scaled};
use tma_runtime::prelude::*;

/// Returns reproducible pseudo-random numbers (xorshift).
fn numbers<T>(seed: u32, count: usize, of: impl Fn(u32) -> T) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        of(state >> 8)
    };
    (0..count).map(|_| next()).collect()
}

/// Returns integers. With scales that are powers of two, sums are exact in any order.
fn elements(seed: u32, count: usize) -> Vec<e4m3> {
    numbers(seed, count, |x| e4m3::from_f32((x % 5) as f32 - 2.0))
}

fn scales(seed: u32, count: usize) -> Vec<f32> {
    numbers(seed, count, |x| [0.25, 0.5, 1.0, 2.0, -4.0][x as usize % 5])
}

/// A GEMM: M, N and K, its matrices and their scales.
struct Case {
    mnk: [usize; 3],
    a: Vec<e4m3>,
    b: Vec<e4m3>,
    of_a: Vec<f32>,
    of_b: Vec<f32>,
}

impl Case {
    fn new(mnk: [usize; 3]) -> Self {
        let [m, n, k] = mnk;
        let (blocks, steps) = (n.div_ceil(128), k.div_ceil(128));
        let (a, b) = (elements(1, m * k), elements(2, n * k));
        Self { mnk, a, b, of_a: scales(3, m * steps), of_b: scales(4, blocks * steps) }
    }

    /// Computes the result in plain Rust.
    fn wanted(&self, is_scaled: bool) -> Vec<f32> {
        let [m, n, k] = self.mnk;
        let steps = k.div_ceil(128);
        let scale = |i: usize, j: usize, x: usize| match is_scaled {
            true => self.of_a[i * steps + x / 128] * self.of_b[j / 128 * steps + x / 128],
            false => 1.0,
        };
        let [a, b] = [&self.a, &self.b].map(|all| all.iter().map(e4m3::to_f32).collect::<Vec<_>>());
        let product = |i: usize, j: usize, x: usize| a[i * k + x] * b[j * k + x] * scale(i, j, x);
        (0..m * n).map(|place| (0..k).map(|x| product(place / n, place % n, x)).sum()).collect()
    }

    fn run<C: Promoted>(&self, device: &Device, is_scaled: bool) -> Result<Vec<C>, GemmError> {
        let [m, n, k] = self.mnk;
        let (blocks, steps) = (n.div_ceil(128), k.div_ceil(128));
        let (a, b) = (device.tensor(&self.a, [m, k])?, device.tensor(&self.b, [n, k])?);
        let of_a = device.tensor(&self.of_a, [m, steps])?;
        let of_b = device.tensor(&self.of_b, [blocks, steps])?;
        let mut c = device.filled_bytes::<C, 2>([m, n], 0xff)?;
        let scales = Scales { a: of_a.view(), b: of_b.view() };
        gemm_scaled(device, &a, &b, is_scaled.then_some(scales), &mut c)?;
        Ok(c.to_vec()?)
    }

    #[track_caller]
    fn check(&self, device: &Device, is_scaled: bool) -> Result<(), GemmError> {
        let wanted = self.wanted(is_scaled);
        assert!(self.run::<f32>(device, is_scaled)? == wanted, "{:?}, scaled: {is_scaled}, f32", self.mnk);
        let wanted: Vec<_> = wanted.into_iter().map(bf16::from_f32).collect();
        assert!(self.run::<bf16>(device, is_scaled)? == wanted, "{:?}, scaled: {is_scaled}, bf16", self.mnk);
        Ok(())
    }
}

/// Extents that are multiples of no tile, from one step to more than two batches of steps. With
/// fewer rows than a tile, the blocks of a cluster are side by side.
#[test]
fn ragged_matrices_are_multiplied() -> Result<(), GemmError> {
    let device = Device::open()?;
    for mnk in [[136, 200, 144], [8, 264, 1104], [264, 8, 528], [1, 8, 16], [72, 136, 384]] {
        Case::new(mnk).check(&device, true)?;
    }
    Ok(())
}

#[test]
fn without_scales_sums_are_promoted() -> Result<(), GemmError> {
    let device = Device::open()?;
    Case::new([136, 72, 272]).check(&device, false)
}

/// The tensor cores would lose the ones: they keep 13 bits after the point of the greatest product.
#[test]
fn promoted_sums_keep_low_bits() -> Result<(), GemmError> {
    let device = Device::open()?;
    let [m, n, k] = [64, 16, 256];
    let mut case = Case::new([m, n, k]);
    case.a = vec![e4m3::from_f32(1.0); m * k];
    let column = |x: usize| e4m3::from_f32(if x < 128 { 256.0 } else { 0.03125 });
    case.b = (0..n * k).map(|place| column(place % k)).collect();
    assert_eq!(case.run::<f32>(&device, false)?, vec![128.0 * 256.0 + 128.0 * 0.03125; m * n]);
    Ok(())
}

/// A cluster computes several tiles one after the other, since there are more tiles than
/// multiprocessors.
#[test]
fn persistent_blocks_process_several_tiles() -> Result<(), GemmError> {
    let device = Device::open()?;
    let tiles = device.multiprocessors() as usize / 2 + 3;
    Case::new([256 * 2, 128 * tiles.div_ceil(2), 160]).check(&device, true)
}

#[test]
fn scales_of_a_may_be_stored_by_columns() -> Result<(), GemmError> {
    let device = Device::open()?;
    let case = Case::new([72, 40, 272]);
    let [m, n, k] = case.mnk;
    let steps = k.div_ceil(128);
    let columns: Vec<f32> = (0..m * steps).map(|place| case.of_a[place % m * steps + place / m]).collect();
    let (a, b) = (device.tensor(&case.a, [m, k])?, device.tensor(&case.b, [n, k])?);
    let (of_a, of_b) = (device.tensor(&columns, [steps, m])?, device.tensor(&case.of_b, [1, steps])?);
    let mut c = device.zeros::<f32, 2>([m, n])?;
    let scales = Scales { a: of_a.view().with_strides([m, steps], [1, m])?, b: of_b.view() };
    gemm_scaled(&device, &a, &b, Some(scales), &mut c)?;
    assert!(c.to_vec()? == case.wanted(true));

    // In a part of a matrix of scales, neither the rows nor the columns are contiguous.
    let wide = device.zeros::<f32, 2>([m, steps + 1])?;
    let scales = Scales { a: wide.view().slice([0..m, 0..steps])?, b: of_b.view() };
    let error = gemm_scaled(&device, &a, &b, Some(scales), &mut c).expect_err("scales with gaps");
    assert_eq!(error.code(), "TMA0511");
    Ok(())
}

/// Neither the order of warps and blocks nor that in which copies arrive changes a bit.
#[test]
fn results_are_the_same_under_every_seed() {
    let check = |device: &Device| {
        Case::new([136, 264, 656]).check(device, true)?;
        Case::new([40, 264, 272]).check(device, true)
    };
    if let Err(failure) = tma_runtime::testing::under_seeds(5, check) {
        panic!("{failure}");
    }
}

#[test]
fn without_elements_there_is_nothing_to_do_and_without_k_there_are_zeros() -> Result<(), GemmError> {
    let device = Device::open()?;
    for mnk in [[0, 8, 16], [8, 0, 16], [0, 0, 0], [72, 24, 0]] {
        Case::new(mnk).check(&device, true)?;
    }
    Ok(())
}

#[test]
fn invalid_arguments_are_rejected() -> Result<(), GemmError> {
    let device = Device::open()?;
    let (a, b) = (device.zeros::<e4m3, 2>([64, 160])?, device.zeros::<e4m3, 2>([16, 160])?);
    let (of_a, of_b) = (device.zeros::<f32, 2>([64, 2])?, device.zeros::<f32, 2>([1, 2])?);
    let mut c = device.zeros::<bf16, 2>([64, 16])?;
    let mut refused = |a: &DeviceTensor<e4m3, 2>, of_a, of_b| {
        gemm_scaled(&device, a, &b, Some(Scales { a: of_a, b: of_b }), &mut c).map_err(|error| {
            let text = error.to_string();
            assert!(text.starts_with(error.code()), "{text}");
            (error.code(), text)
        })
    };
    assert!(refused(&a, of_a.view(), of_b.view()).is_ok());
    let (code, text) = refused(&a, of_b.view(), of_b.view()).expect_err("scales of one row");
    assert_eq!(code, "TMA0557");
    assert!(text.contains("`scales.a` is [1, 2], but must be [64, 2]"), "{text}");
    assert_eq!(refused(&a, of_a.view(), of_a.view()).expect_err("scales of 64 blocks").0, "TMA0557");
    let short = device.zeros::<e4m3, 2>([64, 128])?;
    let (code, text) = refused(&short, of_a.view(), of_b.view()).expect_err("another K");
    assert_eq!(code, "TMA0557");
    assert!(text.contains("B is [16, 160], but must be"), "{text}");
    let scales = Scales { a: of_a.view(), b: of_b.view() };
    let mut narrow = device.zeros::<bf16, 2>([64, 8])?;
    let text = gemm_scaled(&device, &a, &b, Some(scales), &mut narrow).expect_err("another N").to_string();
    assert!(text.contains("C is [64, 8], but must be [64, 16]"), "{text}");
    Ok(())
}
