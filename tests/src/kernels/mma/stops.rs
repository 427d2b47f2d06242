//! Accumulator elements that are used one by one, two of which share a register; and kernels that
//! stop while they multiply, and report the line without a call.

use tma_runtime::prelude::*;

use super::{inputs, product, scalars, transposed};
use crate::case::Case;
use crate::compare::same;
use crate::kernels::faults::Fault;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::halves", run: |device, _| check_halves(device) },
    Case { name: "mma::marked", run: |device, _| check_marked(device) },
    Case { name: "mma::marked_in_turns", run: |device, _| check_marked_in_turns(device) },
];

/// The faults of this module.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "mma::index_while_multiplying",
        run: |device| marked(device, 64 * 64, 64, 1e6).map(drop),
        code: Some("TMA0545"),
        printed: &[
            "`mma_marked` failed at ",
            "stops.rs:",
            "in thread [13, 1, 0] of block [0, 2, 0]: index out of bounds of `marks`, 64 rows",
        ],
    },
    Fault {
        name: "mma::index_of_some_lanes_in_a_loop",
        run: |device| marked_in_turns(device, 62).map(drop),
        code: Some("TMA0545"),
        printed: &["`mma_marked_in_turns` failed at ", "index out of bounds of `marks`, 64 rows"],
    },
    Fault {
        name: "mma::assertion",
        run: |device| marked(device, 64 * 64, 3, -1e6).map(drop),
        code: Some("TMA0545"),
        printed: &["stops.rs:", "an element is \"above\" the limit: $1, 100 %"],
    },
    Fault {
        name: "mma::past_the_end",
        run: |device| marked(device, 64 * 64 - 1, 3, 1e6).map(drop),
        code: Some("TMA0545"),
        printed: &["stops.rs:", "in thread [63, 1, 0] of block [0, 0, 0]: index out of bounds of `c`"],
    },
];

/// `c = max(2 · steps · a · bᵀ, 0) · b`, of matrices of 64 × 64; the first matmul is summed in
/// f16.
#[tma_kernel(threads = 128)]
pub fn mma_halves(a: Global<f16>, b: Global<f16>, c: Global<f32>, steps: u32) {
    let left: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let right: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    for i in (thread_idx().x..64 * 64).step_by(128) {
        left.set([i / 64, i % 64], a.get(i));
        right.set([i / 64, i % 64], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<f16, 64, 64>::zero();
    let mut flight = sum.mma(left, right, ());
    for _ in 1..steps {
        flight.mma(left, right, ());
    }
    flight.wait();
    for i in unroll(0..sum.len()) {
        sum[i] = max(sum[i] + sum[i], f16::from_f32(0.0));
    }
    let mut result = Accumulator::<f32, 64, 64>::zero();
    result.mma(sum.pack::<f16>(), right.t(), ()).wait();
    for i in unroll(0..result.len()) {
        c.set(result.at(i)[0] * 64 + result.at(i)[1], result[i]);
    }
}

fn check_halves(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<f16>(11, 64 * 64), inputs::<f16>(12, 64 * 64));
    let left = device.tensor(&scalars::<f16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<f16>(&b), [b.len()])?;
    let mut c = device.filled_bytes([64 * 64], 0xab)?;
    let steps = 3;
    mma_halves::launch(device, 1, &left, &right, &mut c, steps)?;
    let positive = |sum: i32| (2 * steps as i32 * sum).max(0);
    let scores: Vec<_> = product(&a, &b, 64).into_iter().map(positive).collect();
    same("the product", &c.to_vec()?, &scalars::<f32>(&product(&scores, &transposed(&b, 64), 64)))
}

/// `c = a · aᵀ`, of 64 × 64, by the first of three blocks. While a matmul is in flight, one thread
/// of the last block writes a mark to `row`, which has to be less than 64.
#[tma_kernel(threads = [64, 2], checked)]
pub fn mma_marked(a: Global<f16>, c: Global<f32>, row: u32, limit: f32) {
    let tile: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let result: Tile<f32, Shape2<64, 64>> = shared();
    let marks: Tile<u32, Shape2<64, 4>> = shared();
    let thread = thread_idx().y * 64 + thread_idx().x;
    for i in (thread..64 * 64).step_by(128) {
        tile.set([i / 64, i % 64], a.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let flight = sum.mma(tile, tile, ());
    if block_idx().y == 2 && thread == 77 {
        marks.set([row, 1], 7);
    }
    flight.wait();
    assert!(sum[0] < limit, "an element is \"above\" the limit: $1, 100 %");
    sum.store(result);
    sync_warpgroup();
    if block_idx().y == 0 {
        for i in (thread..64 * 64).step_by(128) {
            c.set(i, result.get([i / 64, i % 64]));
        }
    }
}

/// Returns the result of [`mma_marked`] for fixed inputs, with a `c` of `elements` elements.
///
/// # Errors
///
/// Errors of the launch, and the error that the kernel stops with.
pub fn marked(device: &Device, elements: usize, row: u32, limit: f32) -> Result<Vec<f32>, Error> {
    let a = device.tensor(&scalars::<f16>(&inputs::<f16>(13, 64 * 64)), [64 * 64])?;
    let mut c = device.filled_bytes([elements], 0xab)?;
    mma_marked::launch(device, Grid::new(1, 3, 1), &a, &mut c, row, limit)?;
    device.synchronize()?;
    c.to_vec()
}

fn check_marked(device: &Device) -> anyhow::Result<()> {
    let a = inputs::<f16>(13, 64 * 64);
    same("the product", &marked(device, 64 * 64, 63, 1e6)?, &scalars::<f32>(&product(&a, &a, 64)))
}

/// `c = (1 + turns) · a · aᵀ`, of 64 × 64. In each iteration, while matmuls are in flight, some
/// lanes of each warp write marks to row `row + turn`, which has to be less than 64.
#[tma_kernel(threads = 128, checked)]
pub fn mma_marked_in_turns(a: Global<f16>, c: Global<f32>, row: u32, turns: u32) {
    let tile: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let marks: Tile<u32, Shape2<64, 128>> = shared();
    for i in (thread_idx().x..64 * 64).step_by(128) {
        tile.set([i / 64, i % 64], a.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let mut flight = sum.mma(tile, tile, ());
    for turn in 0..turns {
        if thread_idx().x % 3 == 1 {
            marks.set([row + turn, thread_idx().x], turn);
        }
        flight.mma(tile, tile, ());
    }
    flight.wait();
    sum.store_to(c.matrix(0, [64, 64], 64), [0, 0]);
}

/// Returns the result of [`mma_marked_in_turns`] for fixed inputs.
///
/// # Errors
///
/// Errors of the launch, and the error that the kernel stops with.
pub fn marked_in_turns(device: &Device, row: u32) -> Result<Vec<f32>, Error> {
    let a = device.tensor(&scalars::<f16>(&inputs::<f16>(14, 64 * 64)), [64 * 64])?;
    let mut c = device.filled_bytes([64 * 64], 0xab)?;
    mma_marked_in_turns::launch(device, 1, &a, &mut c, row, 3)?;
    device.synchronize()?;
    c.to_vec()
}

fn check_marked_in_turns(device: &Device) -> anyhow::Result<()> {
    let a = inputs::<f16>(14, 64 * 64);
    let sums: Vec<_> = product(&a, &a, 64).into_iter().map(|sum| 4 * sum).collect();
    same("the product", &marked_in_turns(device, 61)?, &scalars::<f32>(&sums))
}
