//! Bounds of a kernel that an instance does not fulfil, and a body that needs one that is missing.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32, instances(T in [f32, f64], U in [u32, f32]))]
pub fn in_a_clause<T, U>(out: Global<T>, count: Global<U>)
where
    T: TileElement + Send,
    U: TileElement + Ord,
{
    out.set(0, out.get(1));
    count.set(0, count.get(1));
}

#[tma_kernel(threads = 32, instances(whole = <u32, 2>, real = <f32, 2>))]
pub fn behind_the_generic<T: TileElement + Ord, const N: u32>(out: Global<T>) {
    out.set(N, out.get(1));
}

#[tma_kernel(threads = 32, instances(square = <8, 8>, oblong = <8, 16>))]
pub fn of_a_shape<const ROWS: u32, const COLS: u32>(src: TensorMap<Tile<f32, Shape2<ROWS, COLS>>>)
where
    Shape2<ROWS, COLS>: MatrixShape<COLS, ROWS>,
{
    src.prefetch_descriptor();
}

#[tma_kernel(threads = 128, instances(T in [f16, bf16]))]
pub fn missing<T: Multiply<T, f32>>(out: TensorMap<Tile<T, Shape2<64, 64>>>) {
    let tile: Tile<T, Shape2<64, 64>> = shared();
    let sum = Accumulator::<f32, 64, 64>::zero();
    sum.store(tile);
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        out.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

trait Mine: Copy {
    fn sqrt(self) -> Self;
}

impl Mine for f32 {
    fn sqrt(self) -> Self {
        self
    }
}

#[tma_kernel(threads = 32, instances(T in [f32]))]
pub fn method_of_a_clause<T: TileElement>(out: Global<T>)
where
    T: Mine,
{
    out.set(0, out.get(0).sqrt());
}

fn main() {}
