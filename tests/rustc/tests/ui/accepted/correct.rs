//! A kernel that breaks no rule, and its launch with all that a launcher takes.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 128)]
fn scale(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>, factor: f32) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..256).step_by(128) {
        out.set(i, tile.get([i / 32, i % 32]) * factor);
    }
}

fn launch(device: &Device, src: &DeviceTensor<f32, 2>, out: &mut DeviceTensor<f32, 1>) -> Result<(), Error> {
    let stream = device.stream()?;
    scale::launch(device, 1, src, &mut *out, 2.0)?;
    scale::launch(&stream, (1, 1), src.view(), out.view_mut(), 2.0)
}

/// Types and constants that follow from those of an instance.
#[tma_module]
mod instances {
    use tma_runtime::prelude::*;

    type Half<T, const ROWS: u32> = Tile<T, Shape2<ROWS, 32>>;

    #[tma_device]
    fn rows<T: TileElement, const ROWS: u32>(tile: Half<T, ROWS>) -> u32 {
        tile.rows()
    }

    #[tma_kernel(threads = 32, instances(T in [f32, f16], WIDE in [one = false, two = true], let ROWS = if WIDE { 16 } else { 8 }))]
    pub fn prepare<T: TileElement, const WIDE: bool, const ROWS: u32>(
        src: TensorMap<Half<T, ROWS>>,
        out: Global<u32>,
    ) {
        let tile: Half<T, ROWS> = shared();
        tile.set([0, thread_idx().x], tile.get([0, thread_idx().x]));
        src.prefetch_descriptor();
        out.set(thread_idx().x, rows(tile));
    }
}

fn find(
    device: &Device,
    src: &DeviceTensor<f32, 2>,
    out: &mut DeviceTensor<u32, 1>,
) -> Option<Result<(), Error>> {
    use instances::prepare::{Key, Launcher, find, table};

    let table = table();
    let launcher: Launcher<'_, f32> = table.find(Key { wide: true })?;
    let same = find::<f32>(Key { wide: true })?;
    assert_eq!(launcher.spec().name, same.spec().name);
    Some(launcher.launch(device, 1, src, out))
}

fn main() {
    _ = (launch, find);
}
