//! A GEMM with an epilogue of this program's own: C = cap · tanh(A · Bᵀ / cap), which limits scores
//! to the range from -cap to cap.

use tma_kernels::gemm::{Epilogue, GemmOptions, gemm};
use tma_runtime::prelude::*;
use tma_runtime::tma_module;

/// The kernels of `gemm` for a C of `f32`, compiled with another function before the store.
#[tma_module(from = tma_kernels::gemm::full::with_options, only = ["bf16_f32_t128x256_cluster2x1_nt", "bf16_f32_t64x64_nt"])]
mod softcap {
    #[tma_device]
    fn finish(x: f32, _at: [u32; 3], cap: f32) -> f32 {
        cap * tanh(x / cap)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const CAP: f32 = 30.0;
    let (m, n, k) = (100, 72, 64);
    let device = Device::open()?;
    let numbers = |count: usize, step: usize| -> Vec<bf16> {
        (0..count).map(|i| bf16::from_f32((i * step % 17) as f32 / 4.0 - 2.0)).collect()
    };
    let (a, b) = (numbers(m * k, 5), numbers(n * k, 7));
    let (of_a, of_b) = (device.tensor(&a, [m, k])?, device.tensor(&b, [n, k])?);
    let mut c = device.zeros::<f32, 2>([m, n])?;
    let epilogue = Epilogue::of(&softcap::full::INSTANCES).with(softcap::full::further(CAP));
    let options = GemmOptions { transpose_b: true, epilogue: Some(epilogue), ..GemmOptions::default() };
    gemm(&device, &of_a, &of_b, &mut c, options)?;

    for (place, found) in c.to_vec()?.into_iter().enumerate() {
        let (row, column) = (place / n, place % n);
        let sum: f32 = (0..k).map(|x| a[row * k + x].to_f32() * b[column * k + x].to_f32()).sum();
        let wanted = CAP * (sum / CAP).tanh();
        // `tanh` has a relative error of up to 2^-11.
        if (found - wanted).abs() > CAP / 1024.0 {
            return Err(format!("row {row} column {column} is {found}, not {wanted}").into());
        }
    }
    println!("{}: {m} × {n} products of {k}, kept between -{CAP} and {CAP}", device.name());
    Ok(())
}
