//! Scaled GEMMs of `e4m3`, compared with plain Rust, on the simulator or on the device that
//! `TMA_DEVICE` names.
#![cfg(feature = "llvm")]

use tma_kernels::gemm::{
    GemmError, MaskedOptions, Promoted, QuantizedOptions, Scales, gemm_quantized, gemm_scaled,
    gemm_scaled_masked,
};
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
    for mnk in [[136, 200, 144], [264, 8, 528], [136, 136, 1104], [380, 256, 144]] {
        Case::new(mnk).check(&device, true)?;
    }
    Ok(())
}

/// Few rows, in each of the tiles, with columns of C that are multiples of nothing. K is one block,
/// a part of one, and as many as several blocks divide.
#[test]
fn few_rows_are_multiplied() -> Result<(), GemmError> {
    let device = Device::open()?;
    for (m, n, k) in [
        (1, 67, 128),
        (3, 8, 16),
        (8, 264, 1104),
        (11, 65, 2064),
        (16, 1, 640),
        (32, 129, 528),
        (64, 131, 400),
        (65, 131, 656),
        (128, 65, 144),
    ] {
        Case::new([m, n, k]).check(&device, true)?;
    }
    Case::new([5, 77, 272]).check(&device, false)
}

/// The copy engine cannot store these rows, which are more than a tile of few rows has.
#[test]
fn threads_store_rows_of_any_length() -> Result<(), GemmError> {
    let device = Device::open()?;
    Case::new([200, 37, 272]).check(&device, true)?;
    // In wider rows, and beginning anywhere; what is around them is not written.
    let case = Case::new([9, 37, 272]);
    let [m, n, k] = case.mnk;
    let (a, b) = (device.tensor(&case.a, [m, k])?, device.tensor(&case.b, [n, k])?);
    let mut c = device.filled_bytes::<f32, 2>([m + 2, 41], 0xff)?;
    gemm_scaled(&device, &a, &b, None, c.view_mut().slice([1..m + 1, 3..3 + n])?)?;
    let wanted = case.wanted(false);
    for (place, found) in c.to_vec()?.into_iter().enumerate() {
        let (row, column) = (place / 41, place % 41);
        match (1..=m).contains(&row) && (3..3 + n).contains(&column) {
            true => assert_eq!(found, wanted[(row - 1) * n + column - 3], "{row}, {column}"),
            false => assert!(found.is_nan(), "{row}, {column} is written"),
        }
    }
    Ok(())
}

/// Scales that are no powers of two: each sum of 128 products is exact, and each step of adding
/// them rounds once or twice.
#[test]
fn sums_of_few_rows_are_as_exact_as_f32() -> Result<(), GemmError> {
    let device = Device::open()?;
    for mnk in [[1, 72, 1936], [20, 24, 1936], [70, 24, 1936]] {
        let mut case = Case::new(mnk);
        let any = |seed, count| numbers(seed, count, |x| 0.01 + (x % 1000) as f32 / 700.0);
        (case.of_a, case.of_b) = (any(5, case.of_a.len()), any(6, case.of_b.len()));
        let [_, n, k] = mnk;
        let steps = k.div_ceil(128);
        for (place, found) in case.run::<f32>(&device, true)?.into_iter().enumerate() {
            let (i, j) = (place / n, place % n);
            let (mut wanted, mut size) = (0.0, 0.0);
            for x in 0..k {
                let of_a = f64::from(case.of_a[i * steps + x / 128]);
                let of_b = f64::from(case.of_b[j / 128 * steps + x / 128]);
                let product = case.a[i * k + x].to_f64() * case.b[j * k + x].to_f64() * of_a * of_b;
                wanted += product;
                size += product.abs();
            }
            let error = (f64::from(found) - wanted).abs();
            assert!(error <= size * 2f64.powi(-22), "{mnk:?}, element {place}: {found}, not {wanted}");
        }
    }
    Ok(())
}

/// NaN and infinity in a row of A, in its scales, or in a row of B stay where they belong.
#[test]
fn special_values_stay_in_their_rows_and_columns() -> Result<(), GemmError> {
    let device = Device::open()?;
    let mut case = Case::new([6, 70, 400]);
    let ([m, n, k], steps) = (case.mnk, 4);
    let wanted = case.wanted(true);
    case.a[k + 399] = e4m3::NAN;
    case.of_a[3 * steps] = f32::NAN;
    case.of_a[4 * steps + 3] = f32::INFINITY;
    case.b[69 * k + 5] = e4m3::NAN;
    for (place, found) in case.run::<f32>(&device, true)?.into_iter().enumerate() {
        match (place / n, place % n) {
            (1 | 3, _) | (_, 69) => assert!(found.is_nan(), "element {place} is {found}"),
            (4, _) => assert!(!found.is_finite(), "element {place} is {found}"),
            _ => assert_eq!(found, wanted[place], "element {place}"),
        }
    }
    assert_eq!(wanted.len(), m * n);
    Ok(())
}

/// Weights of `e4m3` by rows of `bf16`: numbers that no `e4m3` holds, whose sums are exact.
#[test]
fn quantized_weights_are_multiplied_by_bf16() -> Result<(), GemmError> {
    let device = Device::open()?;
    let all: [[usize; 3]; 10] = [
        [1, 2200, 1152],
        [1, 67, 4224],
        [1, 24, 16384],
        [5, 2120, 128],
        [1, 67, 128],
        [8, 136, 1104],
        [13, 40, 2064],
        [30, 9, 400],
        [64, 131, 144],
        [70, 24, 272],
    ];
    for [m, n, k] in all {
        let steps = k.div_ceil(128);
        let host_a = numbers(7, m * k, |x| bf16::from_f32((x % 201) as f32 - 100.0));
        let host_b = numbers(8, n * k, |x| e4m3::from_f32([0.25, -0.5, 3.0, 0.0][x as usize % 4]));
        let of_b = scales(9, n.div_ceil(128) * steps);
        let (a, b) = (device.tensor(&host_a, [m, k])?, device.tensor(&host_b, [n, k])?);
        let scales = device.tensor(&of_b, [n.div_ceil(128), steps])?;
        let mut c = device.filled_bytes::<f32, 2>([m, n], 0xff)?;
        let options = QuantizedOptions { scales: Some(scales.view()), constant_b: m % 2 == 0 };
        gemm_quantized(&device, &a, &b, &mut c, options)?;
        let [a, b] = [
            host_a.iter().map(|x| x.to_f32()).collect::<Vec<_>>(),
            host_b.iter().map(e4m3::to_f32).collect(),
        ];
        for (place, found) in c.to_vec()?.into_iter().enumerate() {
            let (i, j) = (place / n, place % n);
            let scale = |x: usize| of_b[j / 128 * steps + x / 128];
            let wanted: f32 = (0..k).map(|x| a[i * k + x] * b[j * k + x] * scale(x)).sum();
            assert!(found == wanted, "{m} × {n} × {k}: element {place} is {found}, not {wanted}");
        }
    }
    Ok(())
}

#[test]
fn quantized_weights_without_scales_or_columns() -> Result<(), GemmError> {
    let device = Device::open()?;
    let a = device.tensor(&[bf16::from_f32(-1.5); 2 * 16], [2, 16])?;
    let b = device.tensor(&[e4m3::from_f32(448.0); 3 * 16], [3, 16])?;
    let mut c = device.filled_bytes::<bf16, 2>([2, 3], 0xff)?;
    gemm_quantized(&device, &a, &b, &mut c, QuantizedOptions::default())?;
    assert_eq!(c.to_vec()?, [bf16::from_f32(-1.5 * 448.0 * 16.0); 6]);
    let (none, nothing) = (device.zeros::<bf16, 2>([2, 0])?, device.zeros::<e4m3, 2>([3, 0])?);
    gemm_quantized(&device, &none, &nothing, &mut c, QuantizedOptions::default())?;
    assert_eq!(c.to_vec()?, [bf16::ZERO; 6]);
    let error =
        gemm_quantized(&device, &a, &nothing, &mut c, QuantizedOptions::default()).expect_err("another K");
    assert_eq!(error.code(), "TMA0557");
    Ok(())
}

/// Another kernel multiplies rows of foreign memory with gaps.
#[test]
fn quantized_weights_of_foreign_memory_with_gaps() -> Result<(), GemmError> {
    let device = Device::open()?;
    let a = device.tensor(&[bf16::ONE; 128], [1, 128])?;
    let b = device.tensor(&[e4m3::from_f32(0.5); 2200 * 144], [2200, 144])?;
    // SAFETY: the tensor is larger, and outlives the launch, which only reads it.
    let gaps = unsafe { TensorView::from_raw(&device, b.as_ptr(), [2200, 128], [144, 1]) };
    let mut c = device.filled_bytes::<bf16, 2>([1, 2200], 0xff)?;
    gemm_quantized(&device, &a, gaps, &mut c, QuantizedOptions::default())?;
    assert!(c.to_vec()?.iter().all(|x| x.to_f32() == 64.0));
    Ok(())
}

/// Groups of matrices, of which some rows are valid.
struct Masked {
    /// Groups, rows of A, N and K.
    extents: [usize; 4],
    counts: Vec<u32>,
    groups: Vec<Case>,
}

impl Masked {
    fn new(mnk: [usize; 3], counts: &[u32]) -> Self {
        let [m, n, k] = mnk;
        let groups = (0..counts.len())
            .map(|group| {
                let mut case = Case::new(mnk);
                let seed = 10 + 2 * group as u32;
                case.b = elements(seed, case.b.len());
                case.of_b = scales(seed + 1, case.of_b.len());
                // Other rows hold NaN.
                let valid = (counts[group] as usize).min(m);
                case.a[valid * k..].fill(e4m3::NAN);
                let steps = k.div_ceil(128);
                case.of_a[valid * steps..].fill(f32::NAN);
                case
            })
            .collect();
        Self { extents: [counts.len(), m, n, k], counts: counts.to_vec(), groups }
    }

    /// Compares the valid rows with those of each group alone. All others keep their bytes.
    #[track_caller]
    fn check(&self, device: &Device, expected_rows: Option<usize>) -> Result<(), GemmError> {
        let [groups, m, n, k] = self.extents;
        let (blocks, steps) = (n.div_ceil(128), k.div_ceil(128));
        fn all<T: Copy>(groups: &[Case], of: impl Fn(&Case) -> &Vec<T>) -> Vec<T> {
            groups.iter().flat_map(|case| of(case).iter().copied()).collect()
        }
        let a = device.tensor(&all(&self.groups, |case| &case.a), [groups, m, k])?;
        let b = device.tensor(&all(&self.groups, |case| &case.b), [groups, n, k])?;
        let of_a = device.tensor(&all(&self.groups, |case| &case.of_a), [groups, m, steps])?;
        let of_b = device.tensor(&all(&self.groups, |case| &case.of_b), [groups, blocks, steps])?;
        let counts = device.tensor(&self.counts, [groups])?;
        let mut c = device.filled_bytes::<f32, 3>([groups, m, n], 0xff)?;
        let scales = (k > 0).then_some([of_a.view(), of_b.view()]);
        let options = MaskedOptions { scales, expected_rows };
        gemm_scaled_masked(device, &a, &b, &counts, &mut c, options)?;
        let found = c.to_vec()?;
        for (group, case) in self.groups.iter().enumerate() {
            let valid = (self.counts[group] as usize).min(m) * n;
            let found = &found[group * m * n..][..m * n];
            assert!(found[..valid] == case.wanted(true)[..valid], "group {group} of {:?}", self.extents);
            assert!(found[valid..].iter().all(|x| x.is_nan()), "group {group} of {:?}", self.extents);
        }
        Ok(())
    }
}

#[test]
fn only_valid_rows_of_groups_are_written() -> Result<(), GemmError> {
    let device = Device::open()?;
    Masked::new([24, 136, 400], &[0, 3, 24, 1000]).check(&device, None)?;
    Masked::new([24, 72, 272], &[9, 0, 24]).check(&device, Some(4))?;
    Masked::new([72, 67, 144], &[1, 72]).check(&device, None)?;
    Masked::new([4, 24, 128], &[0, 0]).check(&device, None)?;
    Masked::new([4, 24, 0], &[2, 4]).check(&device, None)?;
    Masked::new([4, 24, 128], &[]).check(&device, None)
}

#[test]
fn groups_that_do_not_match_are_rejected() -> Result<(), GemmError> {
    let device = Device::open()?;
    let (a, b) = (device.zeros::<e4m3, 3>([2, 8, 160])?, device.zeros::<e4m3, 3>([2, 16, 160])?);
    let (two, three) = (device.zeros::<u32, 1>([2])?, device.zeros::<u32, 1>([3])?);
    let (of_a, of_b) = (device.zeros::<f32, 3>([2, 8, 2])?, device.zeros::<f32, 3>([2, 1, 2])?);
    let mut c = device.zeros::<bf16, 3>([2, 8, 16])?;
    let mut refused = |counts: &DeviceTensor<u32, 1>, scales| {
        let options = MaskedOptions { scales: Some(scales), expected_rows: None };
        let refused = gemm_scaled_masked(&device, &a, &b, counts, &mut c, options);
        refused.map_err(|error| (error.code(), error.to_string()))
    };
    assert!(refused(&two, [of_a.view(), of_b.view()]).is_ok());
    let (code, text) = refused(&three, [of_a.view(), of_b.view()]).expect_err("three counts");
    assert_eq!(code, "TMA0557");
    assert!(text.contains("`counts` is [3], but must be [2]"), "{text}");
    assert_eq!(refused(&two, [of_b.view(), of_b.view()]).expect_err("scales of one row").0, "TMA0557");
    assert_eq!(refused(&two, [of_a.view(), of_a.view()]).expect_err("scales of 1024 rows").0, "TMA0557");
    let mut wide = device.zeros::<bf16, 3>([2, 8, 32])?;
    let every_second = wide.view_mut().with_strides([2, 8, 16], [256, 32, 2])?;
    let refused = gemm_scaled_masked(&device, &a, &b, &two, every_second, MaskedOptions::default());
    let text = refused.expect_err("columns apart").to_string();
    assert!(text.contains("the stride of C's columns is [2], but must be [1]"), "{text}");
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
        Case::new([40, 264, 272]).check(device, true)?;
        Case::new([3, 69, 656]).check(device, true)?;
        Masked::new([9, 40, 272], &[5, 0, 9]).check(device, None)
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
