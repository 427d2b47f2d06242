//! GEMMs, compared with plain Rust, on the simulator or on the device that `TMA_DEVICE` names.
#![cfg(feature = "llvm")]

mod case;
mod divided;
mod edge;
#[path = "../exact/mod.rs"]
mod exact;
mod few_rows;

use tma_kernels::gemm::Division::{Halved, Parts, Whole};
use tma_kernels::gemm::dense::kernels as dense;
use tma_kernels::gemm::split_k::kernels as split_k;
use tma_kernels::gemm::{Activation, Division, GemmError, GemmOptions, Product, Sums, Tile, gemm};
use tma_runtime::launch::{Arg, launch};
use tma_runtime::prelude::*;

use case::{Case, by, device};
use exact::{Element, integers};

/// Extents that are multiples of no tile, with a partial step of K.
const RAGGED: [usize; 4] = [136, 264, 72, 1];

#[test]
fn every_tile_multiplies_ragged_matrices() {
    for tile in Tile::ALL {
        Case::nt(RAGGED).product::<bf16, bf16>(by(tile, Whole));
        let by_columns = matches!(tile, Tile::PingPong128x128 | Tile::PingPong128x176); // they have no other layout
        Case { mnkl: [8, 16, 200, 2], transposed: [false, by_columns] }
            .product::<bf16, bf16>(by(tile, Whole));
    }
}

#[test]
fn every_layout_of_16_bits_is_multiplied() {
    for transposed in [[false, false], [false, true], [true, false], [true, true]] {
        Case { mnkl: [264, 272, 136, 1], transposed }
            .product::<f16, f16>(by(Tile::T128x256Cluster2x1, Whole));
        Case { mnkl: [72, 136, 136, 2], transposed }
            .product::<bf16, bf16>(by(Tile::T128x256Cluster2x1, Parts(2)));
    }
}

/// Gradients of weights are Aᵀ · B for the rows of all micro-batches, and are summed in `f32`.
#[test]
fn products_of_a_transposed_a_are_added_to_f32() -> Result<(), GemmError> {
    fn of<AB: Element + Product<f32>>(division: Division) -> Result<(), GemmError> {
        let choice = Some(by(Tile::T128x256Cluster2x1, division));
        let options = GemmOptions { beta: 1.0, choice, ..GemmOptions::default() };
        let case = Case { mnkl: [136, 264, 136, 2], transposed: [true, false] };
        case.run::<AB, f32>(&device(), options, |sum, c| sum + c)
    }
    of::<bf16>(Whole)?;
    of::<bf16>(Parts(2))?;
    of::<f16>(Whole)?;
    of::<f16>(Parts(2))
}

#[test]
fn every_element_is_multiplied() {
    let case = Case::nt([80, 48, 144, 1]);
    let (pair, low) = (by(Tile::T128x256Cluster2x1, Whole), by(Tile::T64x64, Parts(2)));
    case.product::<bf16, f32>(pair);
    case.product::<f16, f32>(pair);
    case.product::<tf32, f32>(pair);
    case.product::<e4m3, bf16>(pair);
    case.product::<e4m3, f32>(pair);
    case.product::<e5m2, bf16>(pair);
    case.product::<e5m2, f32>(pair);
    case.product::<i8, i32>(pair);
    case.product::<bf16, f32>(low);
    case.product::<f16, f32>(low);
    case.product::<tf32, f32>(low);
    case.product::<e4m3, bf16>(low);
    case.product::<e5m2, f32>(low);
}

#[test]
fn sums_may_be_in_f16() -> Result<(), GemmError> {
    let device = device();
    for (tile, transpose_b) in [
        (Tile::T128x256Cluster2x1, true),
        (Tile::T128x128Cluster2x1, false),
        (Tile::T64x64, true),
        (Tile::T64x64, false),
    ] {
        let case = Case { mnkl: [136, 264, 72, 2], transposed: [false, transpose_b] };
        let options =
            GemmOptions { sums: Sums::Half, choice: Some(by(tile, Whole)), ..GemmOptions::default() };
        case.run::<f16, f16>(&device, options, |sum, _| sum)?;
    }
    // 2048 + 1 + .. + 1 stays 2048 in f16, where adjacent numbers are 2 apart, once an instruction
    // has summed the first 16 products.
    let mut a = [f16::from_f32(1.0); 8 * 64];
    for row in a.chunks_mut(64) {
        row[..16].fill(f16::from_f32(128.0));
        row[17..32].fill(f16::ZERO);
        row[33..48].fill(f16::ZERO);
        row[49..].fill(f16::ZERO);
    }
    let ones = [f16::from_f32(1.0); 8 * 64];
    let (a, b) = (device.tensor(&a, [8, 64])?, device.tensor(&ones, [8, 64])?);
    for (sums, wanted) in [(Sums::Half, 2048.0), (Sums::Exact, 2052.0)] {
        let mut c = device.zeros::<f16, 2>([8, 8])?;
        gemm(&device, &a, &b, &mut c, GemmOptions { transpose_b: true, sums, ..GemmOptions::default() })?;
        assert_eq!(c.to_vec()?, [f16::from_f32(wanted); 64], "{sums:?}");
    }
    let refused = Case::nt([8, 8, 8, 1]).run::<bf16, bf16>(
        &device,
        GemmOptions { sums: Sums::Half, ..GemmOptions::default() },
        |sum, _| sum,
    );
    assert!(
        refused.is_err_and(|error| error.code() == "TMA0547" && error.to_string().contains("sums in `f16`"))
    );
    Ok(())
}

/// One warpgroup stores while the other multiplies. Clusters have one tile, two, or three.
#[test]
fn warpgroups_alternate() {
    for tile in [Tile::PingPong128x128, Tile::PingPong128x176] {
        Case::nt([264, 360, 200, 2]).product::<bf16, bf16>(by(tile, Whole));
        Case::nt([2600, 360, 72, 1]).product::<f16, f16>(by(tile, Whole));
        Case::nt([2600, 360, 64, 4]).product::<bf16, bf16>(by(tile, Whole));
        Case::nt([264, 360, 272, 1]).product::<e4m3, bf16>(by(tile, Whole));
    }
}

/// The blocks of a cluster sum half of K each, which may be one step, or an odd number of steps.
#[test]
fn sums_are_folded() {
    for transposed in [[false, true], [false, false]] {
        for k in [8, 72, 328] {
            Case { mnkl: [136, 200, k, 2], transposed }.product::<bf16, bf16>(by(Tile::SplitK128x128, Whole));
            Case { mnkl: [72, 136, k, 1], transposed }.product::<f16, f16>(by(Tile::SplitK64x128, Whole));
        }
    }
    for tile in [Tile::SplitK128x128, Tile::SplitK64x128] {
        Case::nt([72, 264, 400, 1]).product::<e4m3, bf16>(by(tile, Whole));
        Case::nt([8, 136, 144, 1]).product::<e5m2, bf16>(by(tile, Whole));
    }
}

/// Launches an instance directly, for `tiles` tiles, and compares its result.
fn launched(case: &Case, name: &str, grid: [u32; 2], [k_shift, band, tiles]: [u32; 3]) -> Result<(), Error> {
    let device = device();
    let matrices = case.matrices::<bf16, bf16>();
    let wanted: Vec<_> = case.sums(&matrices).into_iter().map(bf16::from_f32).collect();
    let [of_a, of_b, of_c] = case.shapes();
    let (a, b) = (device.tensor(&matrices.a, of_a)?, device.tensor(&matrices.b, of_b)?);
    let mut c = device.filled_bytes::<bf16, 3>(of_c, 0xff)?;
    let mut all = dense::plain::INSTANCES.iter().chain(&split_k::split_k::INSTANCES);
    let kernel = all.find(|kernel| kernel.name == name).expect("an instance");
    let [m, n, k, _] = case.mnkl.map(|extent| extent as u32);
    let mut args = vec![Arg::map(a.view()), Arg::map(b.view()), Arg::map_mut(c.view_mut())];
    args.extend([m, n, k, k_shift, band, tiles, tiles].map(Arg::scalar));
    args.truncate(kernel.params.len());
    launch(&device, kernel, Grid::new(grid[0], grid[1], 1), &args)?;
    assert_eq!(c.to_vec()?, wanted, "{name}, {grid:?}");
    Ok(())
}

/// Clusters begin at different steps along K if the L2 cache does not hold B. Such a B is too large
/// for a test.
#[test]
fn clusters_start_staggered() -> Result<(), Error> {
    let case = Case::nt([64, 64 * 9, 64 * 5, 1]);
    for (name, grid) in [
        ("split_k::bf16_split_k128x128_nt", [5, 2]),
        ("split_k::bf16_split_k64x128_nt", [5, 2]),
        ("plain::bf16_t128x64_cluster1x2_nt", [10, 1]),
        ("plain::bf16_t64x128_cluster1x4_nt", [8, 1]),
        ("plain::bf16_t64x128_cluster2x1_nt", [5, 2]),
        ("plain::bf16_t64x64_nt", [9, 1]),
    ] {
        launched(&case, name, grid, [37, 1, grid[0] * grid[1]])?;
    }
    Ok(())
}

/// If 64 or more clusters run, they begin with tiles in a special order. The simulated device runs
/// fewer.
#[test]
fn clusters_begin_with_tiles_in_another_order() -> Result<(), Error> {
    for (name, wide, [rows, columns]) in
        [("plain::bf16_t64x64_nt", 1, [64, 64]), ("plain::bf16_t128x64_cluster1x2_nt", 2, [128, 128])]
    {
        let case = Case::nt([rows * 8 - 8, columns * 9 - 8, 16, 1]);
        for clusters in [63, 64, 66] {
            launched(&case, name, [clusters * wide, 1], [0, 8, 72])?;
        }
    }
    Ok(())
}

#[test]
fn the_result_is_scaled_and_added_to() -> Result<(), GemmError> {
    let device = device();
    for (choice, mnkl) in
        [(by(Tile::T128x256Cluster2x1, Whole), RAGGED), (by(Tile::T64x64, Parts(2)), [72, 72, 136, 2])]
    {
        let [m, n, _, l] = mnkl;
        let (residual, bias) = (integers::<bf16>(4, l * m * n), integers::<bf16>(5, n));
        let residual_tensor = device.tensor(&residual, [l, m, n])?;
        let bias_tensor = device.tensor(&bias, [n])?;
        let options = GemmOptions { alpha: 0.5, beta: -2.0, choice: Some(choice), ..GemmOptions::default() };
        Case::nt(mnkl).run::<bf16, bf16>(&device, options, |sum, c| 0.5 * sum - 2.0 * c)?;

        // Added elements depend on their position, which `run` does not know.
        let case = Case::nt(mnkl);
        let matrices = case.matrices::<bf16, bf16>();
        let [of_a, of_b, of_c] = case.shapes();
        let (a, b) = (device.tensor(&matrices.a, of_a)?, device.tensor(&matrices.b, of_b)?);
        let mut c = device.filled_bytes::<bf16, 3>(of_c, 0xff)?;
        let options = GemmOptions {
            transpose_b: true,
            residual: Some(residual_tensor.view()),
            bias: Some(bias_tensor.view()),
            activation: Activation::Relu,
            choice: Some(choice),
            ..GemmOptions::default()
        };
        gemm(&device, &a, &b, &mut c, options)?;
        let sums = case.sums(&matrices);
        let wanted = |i: usize| sums[i] + residual[i].to_f32() + bias[i % n].to_f32();
        let wanted: Vec<_> = (0..l * m * n).map(|i| bf16::from_f32(wanted(i).max(0.0))).collect();
        assert!(c.to_vec()? == wanted, "{choice:?}");
    }
    Ok(())
}

#[test]
fn activations_are_those_of_their_formulas() -> Result<(), GemmError> {
    let device = device();
    let gelu =
        |x: f32| x / 2.0 * (1.0 + ((2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh());
    let silu = |x: f32| x / (1.0 + (-x).exp());
    for (activation, formula) in [(Activation::Gelu, &gelu as &dyn Fn(f32) -> f32), (Activation::Silu, &silu)]
    {
        let case = Case::nt([72, 40, 24, 1]);
        let matrices = case.matrices::<f16, f32>();
        let [of_a, of_b, of_c] = case.shapes();
        let (a, b) = (device.tensor(&matrices.a, of_a)?, device.tensor(&matrices.b, of_b)?);
        let mut c = device.zeros::<f32, 3>(of_c)?;
        let options = GemmOptions { transpose_b: true, alpha: 0.25, activation, ..GemmOptions::default() };
        gemm(&device, &a, &b, &mut c, options)?;
        for (found, sum) in c.to_vec()?.into_iter().zip(case.sums(&matrices)) {
            let wanted = formula(0.25 * sum);
            assert!(
                (found - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()),
                "{activation:?}: {found}, not {wanted}"
            );
        }
    }
    Ok(())
}

/// Neither the order of warps and blocks nor that in which copies arrive changes a bit.
#[test]
fn results_are_the_same_under_every_seed() {
    let check = |device: &Device| {
        for (choice, mnkl) in [
            (by(Tile::T128x256Cluster2x1, Whole), [136, 264, 136, 1]),
            (by(Tile::T64x64, Parts(3)), [72, 72, 200, 2]),
        ] {
            let options = GemmOptions { choice: Some(choice), beta: 2.0, ..GemmOptions::default() };
            Case::nt(mnkl).run::<bf16, bf16>(device, options, |sum, c| sum + 2.0 * c)?;
        }
        for (choice, n) in
            [(by(Tile::SplitK128x128, Whole), 136), (by(Tile::T128x128Cluster2x1, Halved), 264)]
        {
            let options = GemmOptions { choice: Some(choice), ..GemmOptions::default() };
            Case::nt([136, n, 200, 1]).run::<bf16, bf16>(device, options, |sum, _| sum)?;
        }
        Ok::<_, GemmError>(())
    };
    if let Err(failure) = tma_runtime::testing::under_seeds(5, check) {
        panic!("{failure}");
    }
}

#[test]
fn products_are_captured() -> Result<(), GemmError> {
    let device = device();
    let a = device.tensor(&integers::<bf16>(1, 72 * 40), [72, 40])?;
    let b = device.tensor(&integers::<bf16>(2, 40 * 24), [40, 24])?;
    let mut c = device.zeros::<f32, 2>([72, 24])?;
    let stream = device.stream()?;
    let mut refused = None;
    let graph = stream.capture(|capture| {
        match gemm(capture, &a, &b, &mut c, GemmOptions { alpha: 2.0, beta: 1.0, ..GemmOptions::default() }) {
            Err(GemmError::Runtime(error)) => return Err(error),
            Err(error) => refused = Some(error),
            Ok(()) => {}
        }
        Ok(())
    })?;
    assert!(refused.is_none(), "{refused:?}");
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    let (a, b) = (a.to_vec()?, b.to_vec()?);
    let sum =
        |i: usize, j: usize| (0..40).map(|x| a[i * 40 + x].to_f32() * b[x * 24 + j].to_f32()).sum::<f32>();
    let wanted: Vec<f32> = (0..72 * 24).map(|place| 4.0 * sum(place / 24, place % 24)).collect();
    assert_eq!(c.to_vec()?, wanted);
    Ok(())
}

#[test]
fn views_and_batches_are_multiplied() -> Result<(), GemmError> {
    let device = device();
    // The right half of the rows of A, which are 64 elements apart.
    let a = device.tensor(&integers::<bf16>(1, 40 * 64), [40, 64])?;
    let b = device.tensor(&integers::<bf16>(2, 24 * 32), [24, 32])?;
    let mut c = device.zeros::<f32, 2>([40, 24])?;
    let half = a.view().slice([0..40, 32..64])?;
    gemm(&device, half, &b, &mut c, GemmOptions { transpose_b: true, ..GemmOptions::default() })?;
    let (a, b) = (a.to_vec()?, b.to_vec()?);
    let sum =
        |i: usize, j: usize| (0..32).map(|x| a[i * 64 + 32 + x].to_f32() * b[j * 32 + x].to_f32()).sum();
    let wanted: Vec<f32> = (0..40 * 24).map(|place| sum(place / 24, place % 24)).collect();
    assert_eq!(c.to_vec()?, wanted);
    Ok(())
}

#[test]
fn without_elements_there_is_nothing_to_do_and_without_k_there_are_zeros() -> Result<(), GemmError> {
    let device = device();
    for mnkl in [[0, 8, 8, 1], [8, 0, 8, 1], [8, 8, 8, 0], [0, 0, 0, 0]] {
        Case::nt(mnkl).run::<bf16, bf16>(&device, GemmOptions::default(), |sum, _| sum)?;
    }
    for transposed in [[false, true], [true, false]] {
        let case = Case { mnkl: [72, 24, 0, 2], transposed };
        case.run::<bf16, bf16>(&device, GemmOptions::default(), |_, _| 0.0)?;
        let options = GemmOptions { beta: 3.0, ..GemmOptions::default() };
        case.run::<bf16, bf16>(&device, options, |_, c| 3.0 * c)?;
    }
    Ok(())
}

#[test]
fn invalid_arguments_are_rejected() -> Result<(), GemmError> {
    let device = device();
    let a = device.zeros::<bf16, 2>([64, 32])?;
    let b = device.zeros::<bf16, 2>([40, 16])?;
    let mut c = device.zeros::<bf16, 2>([64, 16])?;
    let refused = |result: Result<(), GemmError>| match result {
        Ok(()) => panic!("multiplied"),
        Err(error) => (error.code(), error.to_string()),
    };
    let (code, text) = refused(gemm(&device, &a, &b, &mut c, GemmOptions::default()));
    assert_eq!(code, "TMA0546");
    assert!(text.contains("B is [40, 16], but must be [32, 16]"), "{text}");

    let b = device.zeros::<bf16, 2>([32, 16])?;
    gemm(&device, &a, &b, &mut c, GemmOptions::default())?;
    // A and B match each other, so C is wrong.
    let mut narrow = device.zeros::<bf16, 2>([64, 8])?;
    let (code, text) = refused(gemm(&device, &a, &b, &mut narrow, GemmOptions::default()));
    assert_eq!(code, "TMA0546");
    assert!(text.contains("C is [64, 8], but must be [64, 16]"), "{text}");
    let transposed = device.zeros::<bf16, 2>([32, 64])?;
    let view = transposed.view().permute([1, 0])?;
    let (code, text) = refused(gemm(&device, view, &b, &mut c, GemmOptions::default()));
    assert_eq!(code, "TMA0505");
    assert!(text.contains("`transpose_a`"), "{text}");

    let bias = device.zeros::<bf16, 1>([15])?;
    let options = GemmOptions { bias: Some(bias.view()), ..GemmOptions::default() };
    assert_eq!(refused(gemm(&device, &a, &b, &mut c, options)).0, "TMA0546");

    // Tiles are only halved without options.
    let choice = Some(by(Tile::T128x256Cluster2x1, Halved));
    gemm(&device, &a, &b, &mut c, GemmOptions { choice, ..GemmOptions::default() })?;
    let options = GemmOptions { choice, alpha: 2.0, ..GemmOptions::default() };
    let (code, text) = refused(gemm(&device, &a, &b, &mut c, options));
    assert_eq!(code, "TMA0547");
    assert!(
        text.contains("halve `T128x256Cluster2x1`, `T128x192Cluster2x1` or `T128x128Cluster2x1`"),
        "{text}"
    );

    // Elements of 8 bits are only multiplied along their rows.
    let (x, y) = (device.zeros::<e4m3, 2>([64, 32])?, device.zeros::<e4m3, 2>([32, 16])?);
    let (code, text) = refused(gemm(&device, &x, &y, &mut c, GemmOptions::default()));
    assert_eq!(code, "TMA0547");
    assert!(text.contains("`transpose_b: true`"), "{text}");
    let y = device.zeros::<e4m3, 2>([16, 32])?;
    gemm(&device, &x, &y, &mut c, GemmOptions { transpose_b: true, ..GemmOptions::default() })?;

    // Rows that do not begin at multiples of 16 bytes violate a rule of tensor maps.
    let odd = device.zeros::<bf16, 2>([64, 31])?;
    let z = device.zeros::<bf16, 2>([31, 16])?;
    assert_eq!(refused(gemm(&device, &odd, &z, &mut c, GemmOptions::default())).0, "TMA0503");
    Ok(())
}

/// GEMMs of integers support no options.
#[test]
fn integers_are_not_scaled() -> Result<(), GemmError> {
    let device = device();
    let (a, b) = (device.zeros::<i8, 2>([64, 32])?, device.zeros::<i8, 2>([16, 32])?);
    let mut c = device.zeros::<i32, 2>([64, 16])?;
    let options = GemmOptions { transpose_b: true, alpha: 2.0, ..GemmOptions::default() };
    let error = gemm(&device, &a, &b, &mut c, options).expect_err("no instance");
    assert_eq!(error.code(), "TMA0547");
    gemm(&device, &a, &b, &mut c, GemmOptions { transpose_b: true, ..GemmOptions::default() })
}
