//! GEMMs of few rows.

use tma_kernels::gemm::few_rows::kernel::streamed::{PANEL, multiply};
use tma_kernels::gemm::few_rows::row_by_e4m3::split;
use tma_kernels::gemm::{Activation, GemmError, GemmOptions, Product, gemm};
use tma_runtime::Error;
use tma_runtime::prelude::*;

use super::case::device;
use super::exact::{Element, integers};

/// The elements of C before the launch, and those after its rows afterwards.
const BEFORE: f32 = 3.0;

/// A GEMM of M × N × K, into a C whose rows have `more` elements that do not belong to it.
struct Case<AB, C> {
    mnk: [usize; 3],
    more: usize,
    a: Vec<AB>,
    b: Vec<AB>,
    residual: Vec<C>,
    bias: Vec<C>,
}

impl<AB: Element + Product<C>, C: Element> Case<AB, C> {
    fn new(mnk: [usize; 3], more: usize) -> Self {
        let [m, n, k] = mnk;
        let (a, b) = (integers(1, m * k), integers(2, n * k));
        Self { mnk, more, a, b, residual: integers(3, m * n), bias: integers(4, n) }
    }

    /// Compares all of C's memory, to which the kernel wrote with all options or none.
    #[track_caller]
    fn compare(&self, found: &[C], is_more: bool) {
        let [_, n, k] = self.mnk;
        for (i, found) in found.iter().enumerate() {
            let (row, column) = (i / (n + self.more), i % (n + self.more));
            let wanted = if column < n {
                let (a, b) = (&self.a[row * k..][..k], &self.b[column * k..][..k]);
                let sum: f32 = a.iter().zip(b).map(|(a, b)| a.value() * b.value()).sum();
                let added = self.residual[row * n + column].value() + self.bias[column].value();
                if is_more { (2.0 * sum - BEFORE + added).max(0.0) } else { sum }
            } else {
                BEFORE
            };
            assert!(*found == C::of(wanted), "{:?}: row {row}, {column}: {found:?}, not {wanted}", self.mnk);
        }
    }

    /// Launches the instance of `bm` rows of A, on so many `blocks`.
    fn launch(&self, device: &Device, bm: u32, blocks: u32, is_more: bool) -> Result<(), Error> {
        let [m, n, k] = self.mnk;
        let (line, panel) = (n + self.more, PANEL as usize);
        let (a, b) = (device.tensor(&self.a, [m, k])?, device.tensor(&self.b, [n, k])?);
        let (residual, bias) = (device.tensor(&self.residual, [m, n])?, device.tensor(&self.bias, [n])?);
        let mut c = device.tensor(&vec![C::of(BEFORE); m * line], [m * line])?;
        let kernel = multiply::find::<AB, C>(multiply::Key { bm, matrices: 1 }).expect("an instance");
        kernel.launch(
            device,
            Grid::x(blocks),
            match bm {
                1 => a.view().with_strides([1, k / panel, panel], [k, panel, 1])?,
                _ => a.view().with_strides([k / panel, m, panel], [panel, k, 1])?,
            },
            b.view().with_strides([k / panel, 1, n, panel], [panel, n * k, k, 1])?,
            &mut c,
            m as u32,
            n as u32,
            (k / panel) as u32,
            if is_more { 37 } else { 0 },
            is_more,
            if is_more { 0 } else { 100 },
            line as u64,
            if is_more { 2.0 } else { 1.0 },
            if is_more { -1.0 } else { 0.0 },
            is_more.then_some(&residual),
            is_more.then_some(&bias),
            if is_more { Activation::Relu as u32 } else { 0 },
        )?;
        self.compare(&c.to_vec()?, is_more);
        Ok(())
    }
}

/// Each tile with one unit a block and with several, of one step, of several, and of part of one.
#[test]
fn every_tile_is_computed() -> Result<(), Error> {
    let device = device();
    for (bm, m) in [(1, 1), (8, 3), (8, 8), (16, 13)] {
        Case::<bf16, bf16>::new([m, 136, 1088], 0).launch(&device, bm, 2, m == 8)?;
        Case::<f16, f16>::new([m, 129, 1024], 3).launch(&device, bm, 3, true)?;
        Case::<bf16, f32>::new([m, 77, 128], 1).launch(&device, bm, 5, true)?;
        Case::<f16, f32>::new([m, 1, 64], 0).launch(&device, bm, 1, false)?;
    }
    Ok(())
}

/// Otherwise blocks that start early would pile up (docs/gemm-tiles.md, "Up to 16 rows").
#[test]
fn a_multiprocessor_has_room_for_one_block() {
    for kernel in multiply::INSTANCES {
        let bytes = kernel.shared_bytes;
        assert!((114 * 1024..=160 * 1024).contains(&bytes), "{} has {bytes} bytes", kernel.name);
    }
}

#[test]
fn gemm_chooses_the_kernel_for_few_rows() -> Result<(), GemmError> {
    let device = device();
    for mnk in [[1, 264, 1024], [5, 47, 1088], [16, 130, 576], [17, 130, 576], [3, 64, 72]] {
        for (more, is_more) in [(0, false), (3, true)] {
            let case = Case::<bf16, bf16>::new(mnk, more);
            let [m, n, k] = mnk;
            let (a, b) = (device.tensor(&case.a, [m, k])?, device.tensor(&case.b, [n, k])?);
            let (residual, bias) = (device.tensor(&case.residual, [m, n])?, device.tensor(&case.bias, [n])?);
            let mut all = device.tensor(&vec![bf16::from_f32(BEFORE); m * (n + more)], [m, n + more])?;
            let mut options = GemmOptions { transpose_b: true, ..GemmOptions::default() };
            if is_more {
                options.constant_b = true;
                options.alpha = 2.0;
                options.beta = -1.0;
                options.residual = Some(residual.view());
                options.bias = Some(bias.view());
                options.activation = Activation::Relu;
            }
            gemm(&device, &a, &b, all.view_mut().slice([0..m, 0..n])?, options)?;
            case.compare(&all.to_vec()?, is_more);
        }
    }
    Ok(())
}

/// Neither the order of warps and blocks nor that in which copies arrive changes a bit.
#[test]
fn sums_of_few_rows_are_the_same_under_every_seed() {
    let check = |device: &Device| {
        for (tile, mnk) in [(1, [1, 136, 1088]), (8, [3, 136, 1088]), (16, [16, 128, 320])] {
            Case::<bf16, f32>::new(mnk, 0).launch(device, tile, 2, true)?;
        }
        Ok::<_, Error>(())
    };
    if let Err(failure) = tma_runtime::testing::under_seeds(5, check) {
        panic!("{failure}");
    }
}

/// Launches the kernel for a row by `n` rows of `e4m3`, with scales of each 128 columns.
fn launch_row(
    device: &Device,
    a: &[bf16],
    b: &[e4m3],
    scales: &[f32],
    blocks: u32,
) -> Result<Vec<f32>, Error> {
    let key = match blocks {
        1 => split::multiply::Key { panels_a: 128, stages: 5 },
        _ => split::multiply::Key { panels_a: 32, stages: 7 },
    };
    let (k, n) = (a.len(), b.len() / a.len());
    let (a, b) = (device.tensor(a, [k])?, device.tensor(b, [n, k])?);
    let scales = device.tensor(scales, [k / 128])?;
    let mut c = device.filled_bytes::<f32, 1>([n], 0xff)?;
    let kernel = split::multiply::find::<f32>(key).expect("an instance");
    kernel.launch(
        device,
        Grid::x(blocks),
        &a,
        b.view().with_strides([k / 128, n, 128], [128, k, 1])?,
        b.view().with_strides([n * k], [1])?,
        k as u64,
        &mut c,
        Some(&scales),
        n as u32,
        k as u32,
        37,
        blocks == 2,
    )?;
    c.to_vec()
}

/// A row with elements from 2^-20 to 2^7, all of whose bits count: each row of weights of `e4m3`
/// has one element, so all results are exact.
#[test]
fn rows_by_e4m3_keep_small_elements() -> Result<(), Error> {
    let (device, n, k) = (device(), 40, 1152);
    let element = |i: usize| (1.0 + (i % 128) as f32 / 128.0) * 2f32.powi((i % 28) as i32 - 20);
    let row: Vec<bf16> = (0..k).map(|i| bf16::from_f32(element(i))).collect();
    let scales: Vec<f32> = (0..k / 128).map(|i| 2f32.powi(i as i32 - 4)).collect();
    for (first, blocks) in [(0, 1), (600, 2), (k - n, 3)] {
        let mut b = vec![e4m3::from_f32(0.0); n * k];
        (0..n).for_each(|i| b[i * k + first + i] = e4m3::from_f32(-1.5));
        for (i, found) in launch_row(&device, &row, &b, &scales, blocks)?.into_iter().enumerate() {
            let wanted = row[first + i].to_f32() * -1.5 * scales[(first + i) / 128];
            assert_eq!(found, wanted, "element {}", first + i);
        }
    }
    Ok(())
}

/// Infinity and NaN in the row, which `e4m3` cannot represent beside other numbers, and the
/// greatest and least numbers of `bf16`.
#[test]
fn rows_by_e4m3_may_have_special_elements() -> Result<(), Error> {
    let (device, n, k) = (device(), 24, 1280);
    let b: Vec<e4m3> = (0..n * k).map(|i| e4m3::from_f32([0.0, 1.0, -2.0][i % 3])).collect();
    let scales = vec![0.5f32; k / 128];
    let greatest = bf16::from_f32(1.5 * 2f32.powi(127));
    let with: [&[(usize, bf16)]; 6] = [
        &[(700, bf16::INFINITY)],
        &[(0, bf16::INFINITY), (1279, bf16::NEG_INFINITY)],
        &[(130, bf16::INFINITY), (131, bf16::INFINITY)],
        &[(5, bf16::NAN)],
        &[(1151, greatest)],
        &[(3, bf16::from_bits(1))],
    ];
    for special in with {
        let mut row: Vec<bf16> = (0..k).map(|i| bf16::from_f32((i % 9) as f32)).collect();
        if special[0].1.to_f32().is_finite() {
            row.fill(bf16::ZERO);
        }
        special.iter().for_each(|&(place, x)| row[place] = x);
        for (i, found) in launch_row(&device, &row, &b, &scales, 2)?.into_iter().enumerate() {
            let products = row.iter().zip(&b[i * k..]).map(|(a, b)| a.to_f64() * b.to_f64() * 0.5);
            let size: f64 = products.clone().map(f64::abs).sum();
            let wanted: f64 = products.sum();
            let found = f64::from(found);
            let is_right = match wanted.is_finite() {
                true => (found - wanted).abs() <= size * 2f64.powi(-20),
                false => found == wanted || found.is_nan() && wanted.is_nan(),
            };
            assert!(is_right, "{special:?}, row {i}: {found}, not {wanted}");
        }
    }
    Ok(())
}
