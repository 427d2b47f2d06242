//! The package that the editor opens.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::workspace;

/// Kernels of every form: alone, with instances, with an instruction of its own, in a module, and a
/// device function. Some blocks are statements followed by others, some are not. Checks type at the positions of `// HERE name`.
pub(super) const SOURCE: &str = r#"//! Kernels to be edited.

use tma_runtime::prelude::*;

/// Copies tiles.
#[tma_kernel(threads = 128)]
pub fn alone(map: TensorMap<Tile<f16, Shape2<64, 64>>>, out: TensorMap<Tile<f16, Shape2<64, 64>>>) {
    let tile: Tile<f16, Shape2<64, 64>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    let at = [block_idx().y * 64, block_idx().x * 64];
    if leader {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if leader {
        full.arrive_expect_tx(tile.bytes());
        map.load(tile, at, full);
        // HERE nested
    } else {
        fence_proxy_async();
    }
    full.wait(0);
    // HERE alone
    for i in 0..4u32 {
        if i == 3 {
            fence_proxy_async();
        }
    }
    match block_idx().x {
        0 => {}
        _ => fence_proxy_async(),
    }
    if leader {
        out.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Adds.
#[tma_kernel(threads = 32, instances(one = <1>, two = <2>))]
pub fn instances<const N: u32>(map: Global<u32>) {
    let tile: Tile<u32, Shape1<32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(N);
    }
    tile.set([thread_idx().x], N);
    // HERE instances
    map.set(thread_idx().x, tile.get([thread_idx().x]));
}

/// Finds the highest bit.
#[tma_kernel(threads = 32)]
pub fn instruction(map: Global<u32>) {
    let tile: Tile<u32, Shape1<32>> = shared();
    let array: SharedArray<u32, 32> = reuse(tile);
    let number = thread_idx().x;
    let mut highest = 0;
    // SAFETY: it accesses no memory.
    unsafe { ptx!("bfind.u32 {highest}, {number};", out highest, in number) };
    array.set(number, highest);
    // HERE instruction
    map.set(number, array.get(number));
}

#[tma_module]
pub mod shared {
    /// Twice a number.
    #[tma_device]
    pub fn doubled(number: u32) -> u32 {
        number + number
    }
}

#[tma_module]
pub mod kernels {
    use super::shared::doubled;
    use tma_runtime::prelude::*;

    const THREADS: u32 = 32;

    /// Uses the device function.
    #[tma_kernel(threads = 32)]
    pub fn before(map: Global<u32>) {
        if thread_idx().x < THREADS {
            map.set(0, doubled(THREADS));
        }
    }

    #[tma_device]
    fn helped(map: Global<u32>, tile: Tile<u32, Shape1<32>>) {
        if THREADS > 3 {
            map.set(thread_idx().x, 1);
        }
        // HERE device
        tile.set([thread_idx().x], 2);
    }

    /// Behind it.
    #[tma_kernel(threads = 32)]
    pub fn behind(map: Global<u32>) {
        let tile: Tile<u32, Shape1<32>> = shared();
        let full: Barrier = shared();
        if thread_idx().x == 0 {
            full.init(1);
        }
        // HERE behind
        helped(map, tile);
    }
}
"#;

/// Writes the package, and returns its folder.
pub(super) fn write() -> Result<PathBuf> {
    let folder = workspace::target().join("editor");
    let path = |package: &str| workspace::root().join(package);
    let manifest = format!(
        "[package]\nname = \"edited\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\ntma-runtime = {{ path = {:?} }}\n\n\
         [build-dependencies]\ntma-codegen = {{ path = {:?}, default-features = false }}\n",
        path("tma-runtime"),
        path("codegen/back"),
    );
    let files = [
        ("Cargo.toml", manifest.as_str()),
        ("build.rs", "fn main() { tma_codegen::build() }\n"),
        ("src/lib.rs", SOURCE),
    ];
    fs::create_dir_all(folder.join("src")).context("cannot create the package")?;
    for (name, text) in files {
        fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    fs::copy(path("Cargo.lock"), folder.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
    Ok(folder)
}

/// Returns the path of the package's source.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join("src/lib.rs")
}
