//! Coordinates by tile cost nothing: the PTX is that of the same coordinates written by hand.
#![cfg(feature = "llvm")]

use tma_codegen::{Target, compile};

/// Returns the PTX of a checked copy of tiles of 16 × 64 with these coordinates.
fn copy(at: &str) -> String {
    let source = format!(
        "#[tma_kernel(threads = 32, checked)]\n\
         fn k(src: TensorMap<Tile<f16, Shape2<16, 64>>>, dst: TensorMap<Tile<f16, Shape2<16, 64>>>, row: u32, n: i32) {{\n\
         let tile: Tile<f16, Shape2<16, 64>> = shared(); let full: Barrier = shared();\n\
         if thread_idx().x == 0 {{\n\
         full.init(1); fence_barrier_init(); full.arrive_expect_tx(tile.bytes());\n\
         let at = {at};\n\
         src.load(tile, at, full); full.wait(0); dst.store(at, tile);\n\
         bulk_commit_group(); bulk_wait_group_read::<0>();\n}}\n}}"
    );
    match compile("src/kernel.rs", &source, Target::default()) {
        Ok(compiled) => compiled.kernels.into_iter().map(|kernel| kernel.text).collect(),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn the_ptx_is_that_of_coordinates_by_hand() {
    for (by_tile, by_hand) in [
        ("dst.block_tile()", "[block_idx().y.wrapping_mul(16), block_idx().x.wrapping_mul(64)]"),
        ("dst.tile_at([row, block_idx().x])", "[row.wrapping_mul(16), block_idx().x.wrapping_mul(64)]"),
        ("tile.tile_at([n, 2])", "[n.wrapping_mul(16), 128]"),
        ("src.tile_at([row / 3, row % 3])", "[(row / 3).wrapping_mul(16), (row % 3).wrapping_mul(64)]"),
    ] {
        let (found, wanted) = (copy(by_tile), copy(by_hand));
        assert!(wanted.contains("cp.async.bulk.tensor.2d"), "{wanted}");
        assert_eq!(found, wanted, "{by_tile}");
    }
    assert_ne!(copy("dst.tile_at([row, 0])"), copy("dst.tile_at([0, row])"), "rows are no columns");
}
