//! Wrong kernels, such as others have written and found out later.

use tma_codegen::check::protocol::Verdict;
use tma_codegen::diag::Code;

use crate::verdict;

/// The code, and the line in the text, of what is wrong.
fn found(source: &str) -> (Code, usize) {
    match verdict(source) {
        Verdict::Broken(diagnostic) => (diagnostic.code(), diagnostic.span.start().line),
        other => panic!("{other:?}\n{source}"),
    }
}

/// The line that has the mark.
fn marked(source: &str) -> usize {
    source.lines().position(|line| line.contains("//~")).expect("a line is marked") + 1
}

fn is_found(code: Code, source: &str) {
    assert_eq!(found(source), (code, marked(source)), "{source}");
}

/// As FlashKDA's: a proxy fence before a loop over stores, where each turn writes anew.
#[test]
fn a_fence_before_the_loop() {
    is_found(
        Code::MissingFence,
        "#[tma_kernel(threads = 32)]
        fn k(dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
            let tile: Tile<f32, Shape2<32, 32>> = shared();
            fence_proxy_async();
            for turn in 0..4u32 {
                for row in 0..32 { tile.set([row, thread_idx().x], 1.0); }
                sync_threads();
                if thread_idx().x == 0 {
                    dst.store([turn * 32, 0], tile); //~
                    bulk_commit_group();
                    bulk_wait_group_read::<0>();
                }
                sync_threads();
            }
        }",
    );
}

/// As DeepEP's: a wait that leaves one group more open than buffers allow.
#[test]
fn a_wait_for_one_group_too_few() {
    is_found(
        Code::EarlyRefill,
        "#[tma_kernel(threads = 32)]
        fn k(dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
            let tiles: Stages<Tile<f32, Shape2<32, 32>>, 2> = shared();
            for turn in 0..4u32 {
                if thread_idx().x == 0 { bulk_wait_group_read::<2>(); }
                sync_threads();
                for row in 0..32 {
                    tiles[turn % 2].set([row, thread_idx().x], 1.0); //~
                }
                fence_proxy_async();
                sync_threads();
                if thread_idx().x == 0 {
                    dst.store([turn * 32, 0], tiles[turn % 2]);
                    bulk_commit_group();
                }
            }
            bulk_wait_group_read::<0>();
        }",
    );
}

/// As flash-attention's: a phase that is flipped once more than the barrier completes.
#[test]
fn a_phase_flipped_without_a_wait() {
    let (code, _) = found(
        "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
            let tile: Tile<f32, Shape2<32, 32>> = shared();
            let full: Barrier = shared();
            if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
            sync_threads();
            let mut parity = 0;
            for turn in 0..4u32 {
                if turn == 2 { parity ^= 1; } else {
                    if thread_idx().x == 0 {
                        full.arrive_expect_tx(tile.bytes());
                        src.load(tile, [turn * 32, 0], full);
                    }
                    full.wait(parity);
                    parity ^= 1;
                    out.set(thread_idx().x, tile.get([0, lane_idx()]));
                    fence_proxy_async();
                    sync_threads();
                }
            }
        }",
    );
    assert!(matches!(code, Code::Overrun | Code::Deadlock), "{code}");
}

/// As TileLang's: bytes are expected, and nobody arrives.
#[test]
fn bytes_without_an_arrival() {
    is_found(
        Code::Deadlock,
        "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
            let tile: Tile<f32, Shape2<32, 32>> = shared();
            let full: Barrier = shared();
            if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
            sync_threads();
            if thread_idx().x == 0 {
                full.expect_tx(tile.bytes());
                src.load(tile, [0, 0], full);
            }
            full.wait(0); //~
            out.set(thread_idx().x, tile.get([0, lane_idx()]));
        }",
    );
}

/// The elected lane is taken for lane 0: what it prepared for, another lane does.
#[test]
fn the_elected_lane_is_not_lane_0() {
    is_found(
        Code::SharedRace,
        "#[tma_kernel(threads = 32)]
        fn k(out: Global<u32>) {
            let value: SharedArray<u32, 1> = shared();
            if lane_idx() == 0 { value.set(0, 7); }
            if elect_one() { out.set(0, value.get(0)); } //~
        }",
    );
}

/// Nothing is certain that happens for launches alone that a kernel may not be made for.
#[test]
fn launches_that_may_never_be_are_no_error() {
    let source = "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
            let tile: Tile<f32, Shape2<32, 32>> = shared();
            let full: Barrier = shared();
            if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
            sync_threads();
            for k in 0..tiles {
                if thread_idx().x == 0 && k == 0 {
                    full.arrive_expect_tx(tile.bytes());
                    src.load(tile, [0, 0], full);
                }
            }
            full.wait(0);
            out.set(thread_idx().x, tile.get([0, lane_idx()]));
        }";
    assert!(matches!(verdict(source), Verdict::NotDecided(_)), "{:?}", verdict(source));
}

/// Of a vector each element is accessed, not only the first.
#[test]
fn a_race_for_a_later_element_of_a_vector() {
    for (one, other) in [
        ("words.set_vec(thread * 4, [thread; 4]);", "words.get(thread / 4 * 4 + 1)"),
        ("if thread % 4 == 3 { words.set(thread, thread); }", "words.get_vec::<4>(thread / 4 * 4)[3]"),
    ] {
        let source = format!(
            "#[tma_kernel(threads = 32)]
            fn k(out: Global<u32>) {{
                let words: SharedArray<u32, 128> = shared();
                let thread = thread_idx().x;
                {one}
                out.set(thread, {other});
            }}"
        );
        assert_eq!(found(&source).0, Code::SharedRace, "{source}");
    }
}
