//! Bank conflicts of accesses, from the text of a kernel.

use tma_codegen::protocol::{Budget, SharedAccess, report};

/// Returns the accesses of a kernel with a tile of 32 rows and this body.
fn accesses(threads: u32, row: &str, body: &str) -> Vec<SharedAccess> {
    let source = format!(
        "#[tma_kernel(threads = {threads}, protocol = trusted(\"only its accesses are looked at\"))]
        fn k(src: TensorMap<Tile<{row}>>, out: Global<f32>, n: u32, at: Global<u32>) {{
            let tile: Tile<{row}> = shared();
            let words: SharedArray<u32, 1024> = shared();
            let full: Barrier = shared();
            let thread = thread_idx().x;
            if thread == 0 {{
                full.init(1);
                fence_barrier_init();
            }}
            sync_threads();
            if thread == 0 {{
                full.arrive_expect_tx(tile.bytes());
                src.load(tile, [0, 0], full);
            }}
            full.wait(0);
            {body}
        }}"
    );
    let accepted =
        tma_codegen::check("kernel.rs", &source).unwrap_or_else(|failure| panic!("{failure}\n{source}"));
    report(&accepted.kernels[0].kernel, Budget::REPORT).accesses
}

/// Returns wavefronts and ideal of the only access, or `None` if its banks are unknown.
#[track_caller]
fn only(threads: u32, row: &str, body: &str) -> Option<(u32, u32)> {
    let all = accesses(threads, row, body);
    let [access] = all.as_slice() else { panic!("{all:?}") };
    access.worst.map(|worst| (worst.needed, worst.ideal))
}

const PLAIN: &str = "f32, Shape2<32, 32>";
const SWIZZLED: &str = "f32, Shape2<32, 32>, Swizzle128";

#[test]
fn rows_columns_and_swizzles() {
    let row = "out.set(thread, tile.get([0, thread]));";
    let column = "out.set(thread, tile.get([thread, 0]));";
    assert_eq!(only(32, PLAIN, row), Some((1, 1)));
    assert_eq!(only(32, PLAIN, column), Some((32, 1)), "all in one bank");
    assert_eq!(only(32, SWIZZLED, row), Some((1, 1)));
    assert_eq!(only(32, SWIZZLED, column), Some((4, 1)), "eight chunks are exchanged");
    assert_eq!(only(32, PLAIN, "tile.set([thread, 0], 1.0);"), Some((32, 1)));
    assert_eq!(only(32, PLAIN, "out.set(thread, tile.get([3, 4]));"), Some((1, 1)), "one word for all");
}

/// The worst of all iterations and warps counts, and only active lanes.
#[test]
fn iterations_warps_and_branches() {
    let strides = "for i in 0..3 { out.set(thread, words.get(thread << i) as f32); }";
    assert_eq!(only(32, PLAIN, strides), Some((4, 1)), "strides 1, 2, 4");
    let warps = "out.set(thread, words.get(thread * (1 + warp_idx())) as f32);";
    assert_eq!(only(64, PLAIN, warps), Some((2, 1)), "the second warp has stride 2");
    let one = "if thread == 0 { out.set(0, tile.get([0, 0])); }";
    assert_eq!(only(64, PLAIN, one), Some((1, 1)));
    let half = "if thread < 8 { out.set(thread, tile.get([thread, 0])); }";
    assert_eq!(only(64, PLAIN, half), Some((8, 1)));
    // Threads that are followed separately execute the same access together.
    let apart = "if thread == 5 { out.set(0, 1.0); full.wait(0); }
        out.set(thread, tile.get([thread, 0]));";
    assert_eq!(only(32, PLAIN, apart), Some((32, 1)));
}

#[test]
fn vectors_go_by_parts_of_warps() {
    let row = "f32, Shape2<32, 128>";
    let along = "out.set(thread, tile.get_vec::<4>([0, thread * 4])[0]);";
    assert_eq!(only(32, row, along), Some((4, 4)));
    let across = "out.set(thread, tile.get_vec::<4>([thread, 0])[0]);";
    assert_eq!(only(32, row, across), Some((32, 4)));
    assert_eq!(only(32, row, "words.set_vec(thread * 4, [1; 4]);"), Some((4, 4)));
    assert_eq!(only(32, row, "words.set_vec(thread * 32, [1; 2]);"), Some((32, 2)));
}

#[test]
fn what_is_not_followed_is_not_known() {
    assert_eq!(only(32, PLAIN, "out.set(thread, tile.get([at.get(thread) % 32, 0]));"), None);
    // A known access does not hide an unknown one.
    let both = accesses(32, PLAIN, "words.set(at.get(thread) % 1024, 1); words.set(thread, 2);");
    let worst: Vec<_> = both.iter().map(|access| (access.writes, access.worst.is_some())).collect();
    assert_eq!(worst, [(true, false), (true, true)]);
}
