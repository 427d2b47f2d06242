//! GEMMs, whose bits are kept in `products.txt`. `BLESS=1` writes the file from the
//! simulator's results.

use std::env;
use std::fmt::Write as _;
use std::path::Path;

use tma_kernels::gemm::dense::kernels as dense;
use tma_kernels::gemm::full::with_options;
use tma_kernels::gemm::ping_pong::kernels as ping_pong;
use tma_kernels::gemm::split_k::kernels as split_k;
use tma_kernels::gemm::{Activation, Choice, Division, GemmError, GemmOptions, Product, Sums, Tile, gemm};
use tma_runtime::launch::KernelSpec;
use tma_runtime::prelude::*;

use super::{Element, expect_all, hash, numbers, recording};

/// The hashes of each instance's results.
const KEPT: &str = include_str!("products.txt");

/// M, N and the number of GEMMs in a batch: multiples of no tile.
const EXTENTS: [usize; 3] = [136, 72, 2];

/// An instance, by the parts of its name, such as `plain::bf16_f32_t128x256_cluster2x1_nt`.
#[derive(Clone, Copy, Debug)]
struct Instance {
    /// Whether it has the options: an instance of `full`, not of `plain`.
    is_full: bool,
    types: &'static str,
    tile: Tile,
    /// Whether A and B are stored the other way round.
    transposed: [bool; 2],
}

/// Returns a tile's name within those of instances: `split_k64x128` for `SplitK64x128`.
fn snake(tile: Tile) -> String {
    let mut name = String::new();
    for c in format!("{tile:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

impl Instance {
    fn of(name: &'static str) -> Option<Self> {
        let (kernel, instance) = name.split_once("::")?;
        let is_full = kernel == "full";
        Tile::ALL.into_iter().find_map(|tile| {
            let (types, layout) = instance.split_once(&format!("_{}_", snake(tile)))?;
            let transposed = [layout.starts_with('t'), layout.ends_with('t')];
            Some(Self { is_full, types, tile, transposed })
        })
    }

    /// Returns the hash of the result on a device.
    fn run(self, device: &Device) -> Result<u64, GemmError> {
        match self.types {
            "bf16" => self.product::<bf16, bf16>(device),
            "bf16_f32" => self.product::<bf16, f32>(device),
            "f16" | "f16_half" => self.product::<f16, f16>(device),
            "f16_f32" => self.product::<f16, f32>(device),
            "e4m3" => self.product::<e4m3, bf16>(device),
            "e4m3_f32" => self.product::<e4m3, f32>(device),
            "e5m2" => self.product::<e5m2, bf16>(device),
            "e5m2_f32" => self.product::<e5m2, f32>(device),
            "tf32" => self.product::<tf32, f32>(device),
            "i8" => self.product::<i8, i32>(device),
            types => panic!("no elements are known by `{types}`"),
        }
    }

    fn product<AB: Element + Product<C>, C: Element>(self, device: &Device) -> Result<u64, GemmError> {
        let [m, n, l] = EXTENTS;
        let k = 272 / size_of::<AB>(); // two steps of 128 bytes, and a remainder
        let [of_a, of_b] = self.transposed;
        let a = device.tensor(&numbers::<AB>(1, l * m * k), if of_a { [l, k, m] } else { [l, m, k] })?;
        let b = device.tensor(&numbers::<AB>(2, l * n * k), if of_b { [l, n, k] } else { [l, k, n] })?;
        let mut c = device.tensor(&numbers::<C>(3, l * m * n), [l, m, n])?;
        let residual = device.tensor(&numbers::<C>(4, l * m * n), [l, m, n])?;
        let bias = device.tensor(&numbers::<C>(5, n), [n])?;
        let division = if self.is_full { Division::Parts(2) } else { Division::Whole };
        let choice = Some(Choice { tile: self.tile, division });
        let sums = if self.types.ends_with("_half") { Sums::Half } else { Sums::Exact };
        let options =
            GemmOptions { transpose_a: of_a, transpose_b: of_b, choice, sums, ..Default::default() };
        let options = match self.is_full {
            false => options,
            true => GemmOptions {
                alpha: 0.75,
                beta: -0.5,
                residual: Some(residual.view()),
                bias: Some(bias.view()),
                activation: Activation::Relu,
                ..options
            },
        };
        gemm(device, &a, &b, &mut c, options)?;
        Ok(hash(&c.to_vec()?))
    }
}

/// Returns the instances in the order of the file.
fn instances() -> impl Iterator<Item = &'static KernelSpec> {
    let plain = dense::plain::INSTANCES.iter().chain(&split_k::split_k::INSTANCES);
    plain.chain(&ping_pong::ping_pong::INSTANCES).chain(&with_options::full::INSTANCES)
}

/// Returns the lines of some instances, for the results of a device.
fn lines(device: &Device, instances: impl Iterator<Item = &'static KernelSpec>) -> String {
    let mut text = String::new();
    for kernel in instances {
        let instance = Instance::of(kernel.name);
        let instance = instance.unwrap_or_else(|| panic!("`{}` is no name of an instance", kernel.name));
        let found = instance.run(device).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        let _ = writeln!(text, "{} {found:016x}", kernel.name);
    }
    text
}

#[test]
fn every_gemm_instance_matches_the_recorded_bits() {
    let device = Device::open().expect("a device");
    let found = lines(&device, instances());
    if device.name() == Device::simulator().name() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bits/products.txt");
        tma_golden::assert_all([(file, found)]);
    } else {
        // A program in a bundle has no checkout to read.
        assert_eq!(found, KEPT);
    }
}

/// Every third instance, or all of them with `TMA_TESTS=all`.
#[test]
fn instances_give_the_same_bits_under_another_seed() {
    let (device, launched) = recording(7);
    let every = env::var_os("TMA_TESTS").is_some_and(|which| which == "all");
    let some: Vec<_> = instances().step_by(if every { 1 } else { 3 }).collect();
    let found = lines(&device, some.iter().copied());
    assert!(found.lines().all(|line| KEPT.lines().any(|kept| kept == line)), "{found}");
    expect_all(&launched, some);
}
