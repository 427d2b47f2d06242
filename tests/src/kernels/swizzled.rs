//! Swizzled tiles, of every element type: rows as long as the swizzle allows, and shorter ones.
//!
//! Elements that the copy engine loads are read with `get`, and compared with the tensor. Elements
//! that are written with `set` are stored by the copy engine, and compared with the written ones.

use tma_runtime::prelude::*;

use crate::case::Case;
use crate::compare::{same, same_bits};
use crate::random::{Sample, noise};

/// A case that runs the instance for these generics.
macro_rules! case {
    ($name:literal, $element:ty, $swizzle:ty, $cols:literal) => {
        Case {
            name: concat!("swizzles::", $name),
            run: |device, _| check::<$element, $swizzle, $cols>(device),
        }
    };
}

/// The cases of this module.
pub const CASES: &[Case] = &[
    case!("full_none_u8", u8, NoSwizzle, 48),
    case!("full_none_bf16", bf16, NoSwizzle, 40),
    case!("full_none_i32", i32, NoSwizzle, 20),
    case!("full_none_f64", f64, NoSwizzle, 10),
    case!("full_32_e5m2", e5m2, Swizzle32, 32),
    case!("full_32_u16", u16, Swizzle32, 16),
    case!("full_32_f32", f32, Swizzle32, 8),
    case!("full_32_i64", i64, Swizzle32, 4),
    case!("full_64_e4m3", e4m3, Swizzle64, 64),
    case!("full_64_f16", f16, Swizzle64, 32),
    case!("full_64_u32", u32, Swizzle64, 16),
    case!("full_64_u64", u64, Swizzle64, 8),
    case!("full_128_u8", u8, Swizzle128, 128),
    case!("full_128_bf16", bf16, Swizzle128, 64),
    case!("full_128_f32", f32, Swizzle128, 32),
    case!("full_128_f64", f64, Swizzle128, 16),
    case!("narrow_32_u16", u16, Swizzle32, 8),
    case!("narrow_64_f32", f32, Swizzle64, 8),
    case!("narrow_128_f16", f16, Swizzle128, 32),
    case!("narrow_128_u32", u32, Swizzle128, 4),
];

/// Loads a tile, copies it to `seen`, replaces it by `given` and stores that.
#[tma_kernel(threads = 128, instances(
    W in [none = NoSwizzle], (T, COLS) in [(u8, 48), (bf16, 40), (i32, 20), (f64, 10)];
    W in [Swizzle32], (T, COLS) in [(e5m2, 32), (u16, 16), (f32, 8), (i64, 4), (u16, 8)];
    W in [Swizzle64], (T, COLS) in [(e4m3, 64), (f16, 32), (u32, 16), (u64, 8), (f32, 8)];
    W in [Swizzle128], (T, COLS) in [(u8, 128), (bf16, 64), (f32, 32), (f64, 16), (f16, 32), (u32, 4)];
))]
pub fn rewritten<T: TileElement, W: Swizzle, const COLS: u32>(
    src: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    dst: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    seen: Global<T>,
    given: Global<T>,
) {
    let tile: Tile<T, Shape2<24, COLS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..tile.rows() * tile.cols()).step_by(128) {
        let at = [i / tile.cols(), i % tile.cols()];
        seen.set(i, tile.get(at));
        tile.set(at, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn check<T: Sample, W: Swizzle, const COLS: u32>(device: &Device) -> anyhow::Result<()>
where
    rewritten::Instance<T, W, COLS>: rewritten::Compiled,
{
    let shape = [24, COLS as usize];
    let n = shape[0] * shape[1];
    let (source, given) = (noise::<T>(31, n), noise::<T>(32, n));
    let src = device.tensor(&source, shape)?;
    let mut dst = device.filled_bytes(shape, 0xab)?;
    let mut seen = device.filled_bytes([n], 0xab)?;
    let given_on_device = device.tensor(&given, [n])?;
    rewritten::launch::<T, W, COLS>(device, 1, &src, &mut dst, &mut seen, &given_on_device)?;
    same("read by `get`", &seen.to_vec()?, &source)?;
    same_bits(&dst.to_vec()?, &given)
}
