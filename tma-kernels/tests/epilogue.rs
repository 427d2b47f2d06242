//! GEMMs with epilogues of this test, compared with plain Rust, on the simulator or on the device
//! that `TMA_DEVICE` names. This file is not in the library: it derives its kernels like any
//! package that depends on it.
#![cfg(feature = "llvm")]
#![forbid(unsafe_code)]

use tma_kernels::gemm::{Activation, Choice, Division, Epilogue, GemmError, GemmOptions, Tile, gemm};
use tma_runtime::prelude::*;
use tma_runtime::tma_module;

/// C = leak(alpha · A · B) · residual · bias: both are factors instead of terms.
#[tma_module(
    from = tma_kernels::gemm::full::with_options,
    only = ["bf16_t64x64_nt", "bf16_t128x256_cluster2x1_n*", "bf16_t128x128_cluster2x1_nt"],
)]
mod gated {
    const SLOPE: f32 = 0.25;

    #[tma_device]
    fn leak(x: f32) -> f32 {
        if x < 0.0 { SLOPE * x } else { x }
    }

    #[tma_device]
    fn with_residual(x: f32, residual: f32) -> f32 {
        leak(x) * residual
    }

    #[tma_device]
    fn with_bias(x: f32, bias: f32) -> f32 {
        x * bias
    }
}

/// Each row has a scale, and elements have limits, which the template does not know.
#[tma_module(from = tma_kernels::gemm::full::with_options, only = ["f16_f32_t64x64_nn", "f16_f32_t128x256_cluster2x1_nn"])]
mod scaled {
    #[tma_device]
    fn finish(x: f32, at: [u32; 3], of_rows: Global<f32>, rows: u32, limits: Global<f32>) -> f32 {
        let scale = of_rows.get(at[0] * rows + at[1]);
        min(max(x * scale, limits.get(0)), limits.get(1))
    }
}

/// Records the position of each element.
#[tma_module(from = tma_kernels::gemm::full::with_options, only = ["bf16_f32_t64x64_nt"])]
mod placed {
    #[tma_device]
    fn finish(x: f32, at: [u32; 3]) -> f32 {
        x + cast::<f32>(at[0] * 10_000 + at[1] * 100 + at[2])
    }
}

/// Returns reproducible pseudo-random integers from -2 to 2.
fn integers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 5) as f32 - 2.0
    };
    (0..count).map(|_| next()).collect()
}

/// Returns A · B, for L matrices of M × K and as many of K × N, or N × K.
fn sums([m, n, k, l]: [usize; 4], a: &[f32], b: &[f32], transpose_b: bool) -> Vec<f32> {
    let element = |place: usize| {
        let (z, i, j) = (place / (m * n), place / n % m, place % n);
        let at = |x: usize| if transpose_b { j * k + x } else { x * n + j };
        (0..k).map(|x| a[z * m * k + i * k + x] * b[z * n * k + at(x)]).sum()
    };
    (0..l * m * n).map(element).collect()
}

fn bf16s(numbers: &[f32]) -> Vec<bf16> {
    numbers.iter().map(|&x| bf16::from_f32(x)).collect()
}

fn f16s(numbers: &[f32]) -> Vec<f16> {
    numbers.iter().map(|&x| f16::from_f32(x)).collect()
}

#[track_caller]
fn assert_same<T: PartialEq + std::fmt::Debug>(found: &[T], wanted: &[T], about: &str) {
    let wrong = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    assert_eq!(found.len(), wanted.len(), "{about}");
    if let Some(i) = wrong {
        panic!("{about}: element {i} is {:?}, not {:?}", found[i], wanted[i]);
    }
}

fn gate(options: GemmOptions<'_, bf16, 3>, about: &str) -> Result<(), GemmError> {
    let device = Device::open()?;
    let mnkl @ [m, n, k, l] = [150, 136, 72, 2];
    let (a, b, residual, bias) =
        (integers(1, l * m * k), integers(2, l * n * k), integers(3, l * m * n), integers(4, n));
    let sums = sums(mnkl, &a, &b, options.transpose_b);
    let wanted: Vec<bf16> = (0..l * m * n)
        .map(|i| {
            let leaked = if sums[i] < 0.0 { 0.25 * sums[i] } else { sums[i] };
            bf16::from_f32(leaked * residual[i] * bias[i % n])
        })
        .collect();
    let a = device.tensor(&bf16s(&a), [l, m, k])?;
    let b = device.tensor(&bf16s(&b), if options.transpose_b { [l, n, k] } else { [l, k, n] })?;
    let (residual, bias) = (device.tensor(&bf16s(&residual), [l, m, n])?, device.tensor(&bf16s(&bias), [n])?);
    let mut c = device.zeros::<bf16, 3>([l, m, n])?;
    let epilogue = Some(Epilogue::of(&gated::full::INSTANCES));
    let options =
        GemmOptions { residual: Some(residual.view()), bias: Some(bias.view()), epilogue, ..options };
    gemm(&device, &a, &b, &mut c, options)?;
    assert_same(&c.to_vec()?, &wanted, about);
    Ok(())
}

#[test]
fn functions_of_a_caller_replace_those_of_the_template() -> Result<(), GemmError> {
    for tile in [Tile::T64x64, Tile::T128x256Cluster2x1, Tile::T128x128Cluster2x1] {
        for division in [Division::Whole, Division::Parts(2), Division::Even] {
            let choice = Some(Choice { tile, division });
            let options = GemmOptions { transpose_b: true, choice, ..GemmOptions::default() };
            gate(options, &format!("{tile:?}, {division:?}"))?;
        }
    }
    let choice = Some(Choice { tile: Tile::T128x256Cluster2x1, division: Division::Whole });
    gate(GemmOptions { choice, ..GemmOptions::default() }, "B as K × N")?;
    // Any of the three may be chosen.
    gate(GemmOptions { transpose_b: true, ..GemmOptions::default() }, "chosen")
}

#[test]
fn extra_parameters_are_passed_to_the_function() -> Result<(), GemmError> {
    let device = Device::open()?;
    let mnkl @ [m, n, k, l] = [70, 72, 40, 3];
    let (a, b) = (integers(5, l * m * k), integers(6, l * n * k));
    let scales: Vec<f32> = integers(7, l * m).iter().map(|x| x / 2.0).collect();
    let wanted: Vec<f32> = sums(mnkl, &a, &b, false)
        .iter()
        .enumerate()
        .map(|(i, sum)| (2.0 * sum * scales[i / n]).clamp(-6.0, 9.0))
        .collect();
    let (a, b) = (device.tensor(&f16s(&a), [l, m, k])?, device.tensor(&f16s(&b), [l, k, n])?);
    let scales = device.tensor(&scales, [l, m])?;
    let limits = device.tensor(&[-6.0, 9.0], [2])?;
    for tile in [Tile::T64x64, Tile::T128x256Cluster2x1] {
        let mut c = device.zeros::<f32, 3>([l, m, n])?;
        let further = scaled::full::further(scales.slice(), m as u32, limits.slice());
        let epilogue = Some(Epilogue::of(&scaled::full::INSTANCES).with(further));
        let choice = Some(Choice { tile, division: Division::Whole });
        gemm(
            &device,
            &a,
            &b,
            &mut c,
            GemmOptions { alpha: 2.0, epilogue, choice, ..GemmOptions::default() },
        )?;
        assert_same(&c.to_vec()?, &wanted, &format!("{tile:?}"));
    }
    Ok(())
}

/// The position is that of the element in C. Other options of the template still apply.
#[test]
fn the_epilogue_gets_the_element_index() -> Result<(), GemmError> {
    let device = Device::open()?;
    let mnkl @ [m, n, k, l] = [67, 68, 24, 2];
    let (a, b) = (integers(8, l * m * k), integers(9, l * n * k));
    let wanted: Vec<f32> = sums(mnkl, &a, &b, true)
        .iter()
        .enumerate()
        .map(|(i, sum)| sum.max(0.0) + (i / (m * n) * 10_000 + i / n % m * 100 + i % n) as f32)
        .collect();
    let (a, b) = (device.tensor(&bf16s(&a), [l, m, k])?, device.tensor(&bf16s(&b), [l, n, k])?);
    let mut c = device.zeros::<f32, 3>([l, m, n])?;
    let options = GemmOptions {
        transpose_b: true,
        activation: Activation::Relu,
        epilogue: Some(Epilogue::of(&placed::full::INSTANCES)),
        ..GemmOptions::default()
    };
    gemm(&device, &a, &b, &mut c, options)?;
    assert_same(&c.to_vec()?, &wanted, "placed");
    Ok(())
}

#[test]
fn the_instances_are_those_that_fit_a_pattern() {
    let names: Vec<_> = gated::full::INSTANCES.iter().map(|kernel| kernel.name).collect();
    let wanted = ["pair_nt", "square_nt", "low64_nt", "pair_nn"].map(|name| format!("full::bf16_{name}"));
    assert_eq!(names, wanted);
}

#[test]
fn an_instance_or_an_argument_that_is_missing_is_an_error() -> Result<(), GemmError> {
    let device = Device::open()?;
    let (a, b) = (device.zeros::<f16, 2>([64, 64])?, device.zeros::<f16, 2>([64, 64])?);
    let mut c = device.zeros::<f16, 2>([64, 64])?;
    let epilogue = || Some(Epilogue::of(&scaled::full::INSTANCES));
    let error = gemm(&device, &a, &b, &mut c, GemmOptions { epilogue: epilogue(), ..GemmOptions::default() });
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("TMA0547: no kernel multiplies `f16` with this epilogue"), "{text}");

    let mut c = device.zeros::<f32, 2>([64, 64])?;
    let error = gemm(&device, &a, &b, &mut c, GemmOptions { epilogue: epilogue(), ..GemmOptions::default() });
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("TMA05") && text.contains("argument"), "{text}");
    Ok(())
}
