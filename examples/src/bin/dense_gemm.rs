//! Multiplies matrices with the tensor cores: C = A · Bᵀ, a tile of 128 × 128 a block.
//!
//! All four warps of a block multiply, and one thread of them loads ahead: the schedule of the
//! tutorials' dense GEMM. Tiles of A and B pass through a pipeline of five stages. The accumulator
//! stays in registers until the end, where it is converted, stored to shared memory, and copied out
//! from there. Rows, columns and depth may be any: what lies outside is loaded as zeros, and not
//! stored.

use tma_runtime::prelude::*;

/// The kernel, and the tiles that it moves.
#[tma_module]
pub mod gemm {
    use tma_runtime::prelude::*;

    type A = Tile<f16, Shape2<128, 64>, Swizzle128>;
    type B = Tile<f16, Shape2<128, 64>, Swizzle128>;
    type C = Tile<f16, Shape2<128, 64>, Swizzle128>;

    /// C = A · Bᵀ, where A is M × K and B is N × K, in `steps` steps of 64 along K.
    #[tma_kernel(threads = 128)]
    pub fn dense_gemm(a: TensorMap<A>, b: TensorMap<B>, c: TensorMap<C>, steps: u32) {
        let ring: Pipeline<(A, B), 5> = shared();
        let out: Stages<C, 2> = shared();
        let leader = thread_idx().x == 0;
        if leader {
            ring.init(4); // each warp releases what it has read
            fence_barrier_init();
        }
        sync_threads();

        let m = block_idx().y * 128;
        let n = block_idx().x * 128;
        let mut producer = ring.producer();
        if leader {
            for k in 0..min(steps, 4) {
                let slot = producer.acquire();
                a.load(slot.0, [m, k * 64], slot.barrier());
                b.load(slot.1, [n, k * 64], slot.barrier());
            }
        }

        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<f32, 128, 128>::zero();
        let slot = consumer.wait();
        let mut flight = sum.mma(slot.0, slot.1, slot);
        for k in 1..steps {
            let slot = consumer.wait();
            let done = flight.mma(slot.0, slot.1, slot);
            if elect_one() {
                done.release();
            }
            if leader && k + 3 < steps {
                let slot = producer.acquire();
                a.load(slot.0, [m, (k + 3) * 64], slot.barrier());
                b.load(slot.1, [n, (k + 3) * 64], slot.barrier());
            }
        }
        let _last = flight.wait();

        for j in unroll(0..2u32) {
            sum.columns::<64>(j).store(out[j]);
        }
        fence_proxy_async();
        sync_threads();
        if leader {
            c.store([m, n], out[0]);
            c.store([m, n + 64], out[1]);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

/// Launches the multiplication of all of `a` and `b`.
pub fn launch(
    device: &Device,
    a: &DeviceTensor<f16, 2>,
    b: &DeviceTensor<f16, 2>,
    c: &mut DeviceTensor<f16, 2>,
) -> Result<(), Error> {
    let ([m, k], [n, _]) = (a.shape(), b.shape());
    let steps = u32::try_from(k.div_ceil(64)).unwrap_or(u32::MAX);
    gemm::dense_gemm::launch(device, Grid::tiles([m, n], [128, 128]), a, b, c, steps)
}

/// Numbers between -1 and 1 that look random, and are the same each time.
fn numbers(len: usize, seed: u32) -> Vec<f16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f16::from_f32((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..len).map(|_| next()).collect()
}

/// Multiplies matrices of these extents, and gives the greatest error of an element, relative to
/// it.
pub fn error_of(device: &Device, [m, n, k]: [usize; 3]) -> anyhow::Result<f64> {
    let (host_a, host_b) = (numbers(m * k, 1), numbers(n * k, 2));
    let a = device.tensor(&host_a, [m, k])?;
    let b = device.tensor(&host_b, [n, k])?;
    let mut c = device.zeros([m, n])?;
    launch(device, &a, &b, &mut c)?;

    let mut worst = 0.0_f64;
    for (i, found) in c.to_vec()?.iter().enumerate() {
        let (row, column) = (i / n, i % n);
        let products = (0..k).map(|j| host_a[row * k + j].to_f64() * host_b[column * k + j].to_f64());
        let wanted: f64 = products.sum();
        worst = worst.max((found.to_f64() - wanted).abs() / wanted.abs().max(1.0));
    }
    Ok(worst)
}

/// Multiplies matrices of several extents, whole tiles and ragged ones, and checks each element.
pub fn run(device: &Device) -> anyhow::Result<()> {
    for [m, n, k] in [[128, 128, 64], [200, 264, 328], [1, 8, 8], [129, 136, 648]] {
        let worst = error_of(device, [m, n, k])?;
        anyhow::ensure!(worst < 1e-3, "{m} × {n} × {k}: an element is wrong by {worst:.2e} of itself");
        println!("{}: {m} × {n} × {k}, no element wrong by more than {worst:.1e} of itself", device.name());
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
