//! The kernels of `tma-kernels`, an instance of each, on shapes in which every buffer is used again.
//! That their results are right is tested there; here they are compared with what the kernel as it
//! is gives, bit for bit.

use std::sync::OnceLock;

use tma_kernels::attention::kernel::forward;
use tma_kernels::gemm::full::with_options;
use tma_kernels::gemm::kernel::product;
use tma_kernels::gemm::{Activation, Choice, GemmError, GemmOptions, Tile, gemm};
use tma_kernels::{AttentionError, AttentionOptions, Lengths, attention};
use tma_runtime::launch::KernelSpec;
use tma_runtime::prelude::*;

use crate::gpu::runner::Test;
use crate::random::hash;

/// Whether a kernel is one of `tma-kernels`.
pub fn has(kernel: &KernelSpec) -> bool {
    let instances =
        [&product::plain::INSTANCES[..], &with_options::full::INSTANCES, &forward::attention::INSTANCES];
    instances.into_iter().flatten().any(|own| std::ptr::eq(own, kernel))
}

/// A check for each kernel.
pub fn tests() -> Vec<Test> {
    vec![
        as_ever("tma_kernels::gemm", |device| multiplied(device).map_err(of_product)),
        as_ever("tma_kernels::gemm with options", |device| {
            multiplied_with_options(device).map_err(of_product)
        }),
        as_ever("tma_kernels::attention", |device| {
            let attended = attended(device);
            attended.map_err(|error| match error {
                AttentionError::Runtime(error) => error.into(),
                other => other.into(),
            })
        }),
    ]
}

fn of_product(error: GemmError) -> anyhow::Error {
    match error {
        GemmError::Runtime(error) => error.into(),
        other => other.into(),
    }
}

/// A check that the bits are those that a simulator gives which runs the kernel as it is.
fn as_ever(name: &str, bits: fn(&Device) -> anyhow::Result<Vec<u16>>) -> Test {
    let usual = OnceLock::new();
    let run = move |device: &Device| {
        let usual = match usual.get() {
            Some(usual) => usual,
            None => {
                let found = bits(&Device::simulator())?;
                usual.get_or_init(|| found)
            }
        };
        anyhow::ensure!(bits(device)? == *usual, "other bits than ever");
        Ok(())
    };
    Test { name: name.to_owned(), run: Box::new(run) }
}

/// Numbers between -1 and 1.
fn numbers(seed: u64, len: usize) -> Vec<bf16> {
    let number = |i: usize| (hash(seed, i as u64) >> 40) as f32 / (1_u32 << 23) as f32 - 1.0;
    (0..len).map(|i| bf16::from_f32(number(i))).collect()
}

/// By two blocks that share what they load of B, over more steps than there are stages.
fn multiplied(device: &Device) -> Result<Vec<u16>, GemmError> {
    let [m, n, k] = [136, 72, 328];
    let a = device.tensor(&numbers(1, m * k), [m, k])?;
    let b = device.tensor(&numbers(2, n * k), [n, k])?;
    let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
    let choice = Some(Choice { tile: Tile::Pair, splits: 1 });
    gemm(device, &a, &b, &mut c, GemmOptions { transpose_b: true, choice, ..Default::default() })?;
    Ok(c.to_vec()?.into_iter().map(bf16::to_bits).collect())
}

/// By two clusters, which add up what each has summed of both tiles, with all that may be added and
/// applied.
fn multiplied_with_options(device: &Device) -> Result<Vec<u16>, GemmError> {
    let [m, n, k] = [72, 136, 64 * 10];
    let a = device.tensor(&numbers(1, m * k), [m, k])?;
    let b = device.tensor(&numbers(2, n * k), [n, k])?;
    let mut c = device.tensor(&numbers(3, m * n), [m, n])?;
    let residual = device.tensor(&numbers(4, m * n), [m, n])?;
    let bias = device.tensor(&numbers(5, n), [n])?;
    let options = GemmOptions {
        transpose_b: true,
        alpha: 0.75,
        beta: -0.5,
        residual: Some(residual.view()),
        bias: Some(bias.view()),
        activation: Activation::Relu,
        choice: Some(Choice { tile: Tile::Narrow, splits: 2 }),
        ..Default::default()
    };
    gemm(device, &a, &b, &mut c, options)?;
    Ok(c.to_vec()?.into_iter().map(bf16::to_bits).collect())
}

/// Sequences of several lengths under a mask, by a block that goes over three tiles.
fn attended(device: &Device) -> Result<Vec<u16>, AttentionError> {
    let [heads, depth] = [1, 64];
    let starts: [[u32; 3]; 2] = [[0, 130, 135], [0, 200, 230]];
    let [queries, keys] = starts.map(|starts| starts[2] as usize);
    let q = device.tensor(&numbers(1, heads * queries * depth), [1, heads, queries, depth])?;
    let k = device.tensor(&numbers(2, keys * depth), [1, 1, keys, depth])?;
    let v = device.tensor(&numbers(3, keys * depth), [1, 1, keys, depth])?;
    let mut o = device.filled_bytes::<bf16, 4>(q.shape(), 0xff)?;
    let mut lse = device.filled_bytes([1, heads, queries], 0xff)?;
    let [of_queries, of_keys] = starts.map(|starts| device.tensor(&starts, [starts.len()]));
    let (of_queries, of_keys) = (of_queries?, of_keys?);
    let options = AttentionOptions {
        causal: true,
        lengths: Some(Lengths { queries: &of_queries, keys: &of_keys, longest: 130 }),
        blocks: Some(1),
        lse: Some(&mut lse),
        ..Default::default()
    };
    attention(device, &q, &k, &v, &mut o, options)?;
    let sums =
        lse.to_vec()?.into_iter().map(f32::to_bits).flat_map(|bits| [bits as u16, (bits >> 16) as u16]);
    Ok(o.to_vec()?.into_iter().map(bf16::to_bits).chain(sums).collect())
}
