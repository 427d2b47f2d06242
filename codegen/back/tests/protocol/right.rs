//! Right kernels that are as unusual as possible: none of them is refused.

use std::path::PathBuf;

use tma_codegen::protocol::{Budget, Verdict, judge};

use crate::tree::{kernels, root};
use crate::verdict;

/// The folders of right kernels.
pub(crate) const RIGHT: [&str; 3] = ["right", "right_by_orders", "right_between_blocks"];

/// Returns the path of one of these folders.
pub(crate) fn folder_of(name: &str) -> PathBuf {
    root().join("codegen/back/tests/protocol").join(name)
}

fn is_right(source: &str) {
    if let Verdict::Broken(diagnostic) = verdict(source) {
        panic!("{}\n{source}", diagnostic.text());
    }
}

fn is_proved(source: &str) {
    let found = verdict(source);
    assert!(matches!(found, Verdict::Proved), "{found:?}\n{source}");
}

const TILE: &str = "Tile<f32, Shape2<32, 32>>";

/// Returns a ring of `stages` stages and `count` tiles, filled by one thread and read by 128.
fn ring(stages: u32, count: &str, each: &str) -> String {
    format!(
        "#[tma_kernel(threads = 160)]
        fn k(src: TensorMap<{TILE}>, out: Global<f32>, tiles: u32, lens: Global<u32>) {{
            let ring: Pipeline<({TILE},), {stages}> = shared();
            if thread_idx().x == 0 {{
                ring.init(4);
                fence_barrier_init();
            }}
            sync_threads();
            let count = {count};
            if warp_idx() == 4 {{
                if elect_one() {{
                    let mut producer = ring.producer();
                    for k in 0..count {{
                        let slot = producer.acquire();
                        src.load(slot.0, [k * 32, 0], slot.barrier());
                    }}
                }}
            }} else {{
                let mut consumer = ring.consumer();
                for k in 0..count {{
                    {each}
                }}
            }}
        }}"
    )
}

const READ: &str = "let slot = consumer.wait();
    out.set(k * 128 + thread_idx().x, slot.0.get([thread_idx().x / 32, lane_idx()]));
    sync_warp();
    if lane_idx() == 0 { slot.release(); }";

#[test]
fn rings_of_all_sizes_by_any_count() {
    for stages in 1..7 {
        for count in ["tiles", "tiles / 2", "tiles + 1", "min(tiles, 7)", "5", "block_idx().x", "lens.get(0)"]
        {
            is_right(&ring(stages, count, READ));
        }
    }
}

#[test]
fn a_release_by_the_elected_lane() {
    for release in [
        "if elect_one() { slot.release(); }",
        "if lane_idx() == 31 { slot.release(); }",
        "if thread_idx().x % 32 == 5 { slot.release(); }",
    ] {
        is_right(&ring(3, "tiles", &READ.replace("if lane_idx() == 0 { slot.release(); }", release)));
    }
}

#[test]
fn conditions_that_belong_together() {
    let source = |condition: &str| {
        format!(
            "#[tma_kernel(threads = 64)]
            fn k(src: TensorMap<{TILE}>, out: Global<f32>, has_bias: bool, rows: u32, lens: Global<u32>, bias: Option<Global<f32>>) {{
                let tile: {TILE} = shared();
                let full: Barrier = shared();
                if thread_idx().x == 0 {{
                    full.init(1);
                    fence_barrier_init();
                }}
                sync_threads();
                if thread_idx().x == 0 && {condition} {{
                    full.arrive_expect_tx(tile.bytes());
                    src.load(tile, [0, 0], full);
                }}
                if {condition} {{
                    full.wait(0);
                    out.set(thread_idx().x, tile.get([0, lane_idx()]));
                }}
            }}"
        )
    };
    for condition in [
        "has_bias",
        "rows > 3",
        "block_idx().x * 64 < rows",
        "lens.get(block_idx().x) != 0",
        "bias.is_some()",
    ] {
        is_proved(&source(condition));
    }
}

#[test]
fn persistent_loops_and_early_exits() {
    is_right(&format!(
        "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<{TILE}>, out: Global<f32>, tiles: u32) {{
            let ring: Pipeline<({TILE},), 2> = shared();
            if block_idx().x >= tiles {{ return; }}
            if thread_idx().x == 0 {{
                ring.init(1);
                fence_barrier_init();
            }}
            sync_threads();
            let mut tile = block_idx().x;
            if warp_idx() == 1 {{
                let mut producer = ring.producer();
                while tile < tiles {{
                    if elect_one() {{
                        let slot = producer.acquire();
                        src.load(slot.0, [tile * 32, 0], slot.barrier());
                    }}
                    tile += grid_dim().x;
                }}
            }} else {{
                let mut consumer = ring.consumer();
                loop {{
                    if tile >= tiles {{ break; }}
                    let slot = consumer.wait();
                    out.set(tile * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
                    sync_warp();
                    if lane_idx() == 0 {{ slot.release(); }}
                    tile += grid_dim().x;
                }}
            }}
        }}"
    ));
}

#[test]
fn work_from_a_queue() {
    is_right(
        "#[tma_kernel(threads = 64)]
        fn k(queue: Global<u32>, out: Global<u32>, tiles: u32) {
            let next: SharedArray<u32, 1> = shared();
            loop {
                if thread_idx().x == 0 {
                    next.set(0, queue.atomic_add(0, 1));
                }
                sync_threads();
                let tile = next.get(0);
                sync_threads();
                if tile >= tiles { break; }
                out.set(tile * 64 + thread_idx().x, tile);
            }
        }",
    );
}

/// The host ensures that both parts together have `tiles` numbers.
#[test]
fn loaded_numbers_that_go_together() {
    is_right(
        "#[tma_kernel(threads = 64)]
        fn k(lens: Global<u32>, out: Global<u32>, tiles: u32) {
            let number: Stages<SharedArray<u32, 1>, 2> = shared();
            let full: Stages<Barrier, 2> = shared();
            let empty: Stages<Barrier, 2> = shared();
            if thread_idx().x == 0 {
                for stage in 0..2 {
                    full[stage].init(1);
                    empty[stage].init(1);
                }
            }
            sync_threads();
            if thread_idx().x == 0 {
                let mut sent = 0;
                for part in 0..lens.get(0) {
                    empty[sent % 2].wait((sent / 2 & 1) ^ 1);
                    number[sent % 2].set(0, part);
                    full[sent % 2].arrive();
                    sent += 1;
                }
                for part in 0..lens.get(1) {
                    empty[sent % 2].wait((sent / 2 & 1) ^ 1);
                    number[sent % 2].set(0, part);
                    full[sent % 2].arrive();
                    sent += 1;
                }
            }
            if thread_idx().x == 32 {
                for tile in 0..tiles {
                    full[tile % 2].wait(tile / 2 & 1);
                    out.set(tile, number[tile % 2].get(0));
                    empty[tile % 2].arrive();
                }
            }
        }",
    );
}

#[test]
fn barriers_of_every_kind() {
    is_proved(
        "#[tma_kernel(threads = 128)]
        fn k(out: Global<u32>) {
            let row: SharedArray<u32, 128> = shared();
            row.set(thread_idx().x, 1);
            if warp_idx() < 2 {
                named_barrier_sync(1, 64);
                out.set(thread_idx().x, row.get(63 - thread_idx().x));
            } else {
                named_barrier_sync(2, 64);
                out.set(thread_idx().x, row.get(191 - thread_idx().x));
            }
        }",
    );
    is_right(
        "#[tma_kernel(threads = 64)]
        fn k(out: Global<u32>, rounds: u32) {
            let met: Barrier = shared();
            let row: Stages<SharedArray<u32, 64>, 2> = shared();
            if thread_idx().x == 0 { met.init(64); }
            sync_threads();
            for round in 0..rounds {
                row[round % 2].set(thread_idx().x, round);
                let token = met.arrive_token();
                met.wait_token(token);
                out.set(thread_idx().x, row[round % 2].get(63 - thread_idx().x));
            }
        }",
    );
}

#[test]
fn polls_that_only_wait() {
    is_proved(&format!(
        "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<{TILE}>, out: Global<f32>) {{
            let tile: {TILE} = shared();
            let full: Barrier = shared();
            if thread_idx().x == 0 {{
                full.init(1);
                fence_barrier_init();
                full.arrive_expect_tx(tile.bytes());
                src.load(tile, [0, 0], full);
            }}
            sync_threads();
            while !full.try_wait(0) {{}}
            out.set(thread_idx().x, tile.get([0, lane_idx()]));
        }}"
    ));
}

#[test]
fn clusters_that_hand_over() {
    is_right(
        "#[tma_kernel(threads = 32, cluster = 2)]
        fn k(out: Global<u32>, rounds: u32) {
            let full: Barrier = shared();
            let value: SharedArray<u32, 32> = shared();
            if thread_idx().x == 0 { full.init(32); }
            sync_cluster();
            for round in 0..rounds {
                remote(value, 1 - cluster_rank()).set(lane_idx(), round);
                remote(full, 1 - cluster_rank()).arrive();
                full.wait(round % 2);
                out.set(lane_idx(), value.get(lane_idx()));
                sync_cluster();
            }
            sync_cluster();
        }",
    );
}

/// The kernels of the folders of right ones, each judged with the budget of a macro and of a
/// report. Prints how many of each folder are proved.
#[test]
fn no_unusual_kernel_is_refused() {
    let (mut wrong, mut judged) = (vec![], 0);
    for folder in RIGHT {
        let [mut proved, mut checked, mut undecided] = [0; 3];
        for (name, kernel) in kernels(&folder_of(folder)) {
            judged += 1;
            let by_macro = judge(&kernel, Budget::MACRO).verdict;
            let by_report = judge(&kernel, Budget::REPORT).verdict;
            match &by_report {
                Verdict::Proved => proved += 1,
                Verdict::CheckedUpTo(_) => checked += 1,
                Verdict::NotDecided(_) => undecided += 1,
                Verdict::Broken(_) => {}
            }
            for verdict in [by_macro, by_report] {
                if let Verdict::Broken(diagnostic) = verdict {
                    let line = diagnostic.span.start().line;
                    wrong.push(format!("{name}:{line}: {}", diagnostic.text()));
                }
            }
        }
        println!("{folder}: {proved} proved, {checked} checked, {undecided} not decided");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(judged >= 215, "{judged} kernels");
}

/// Elements that a thread changes in place, rounds of the grid with a barrier on either side, and
/// equal values of all threads.
#[test]
fn global_memory_in_which_blocks_write_disjoint_elements() {
    is_proved(
        "#[tma_kernel(threads = 128)]
        fn k(x: Global<f32>, count: u32) {
            for i in (block_idx().x * 128 + thread_idx().x..count).step_by(4096) {
                x.set(i, x.get(i) * 2.0);
            }
        }",
    );
    is_proved(
        "#[tma_kernel(threads = 32)]
        fn k(counter: Global<u32>, sums: Global<u32>, out: Global<u32>) {
            let block = block_idx().x;
            let mut sum = 0;
            for round in 0..4u32 {
                sums.set(block * 32 + lane_idx(), round + block);
                sync_grid(counter);
                sum += sums.get((block + 1) % grid_dim().x * 32 + lane_idx());
                sync_grid(counter);
            }
            out.set(block * 32 + lane_idx(), sum);
        }",
    );
    is_proved(
        "#[tma_kernel(threads = 32)]
        fn k(out: Global<u32>, count: u32) {
            out.set(0, count);
        }",
    );
}

/// Each operation of an index is visited once, and each loop a few times.
#[test]
fn long_chains_of_variables_and_deep_nests_of_loops() {
    let chain: String = (1..100).map(|n| format!("let a{n} = a{0} * a{0};\n", n - 1)).collect();
    is_right(&format!(
        "#[tma_kernel(threads = 32)]
        fn k(x: Global<u32>, a0: u32) {{
            {chain}
            x.set(a99 % 2, x.get(a98 % 2));
        }}"
    ));
    let (open, close): (String, String) =
        (0..40).map(|n| (format!("for i{n} in 0..x.get({n}) {{\n"), "}".to_owned())).unzip();
    is_right(&format!(
        "#[tma_kernel(threads = 32)]
        fn k(x: Global<u32>, counter: Global<u32>) {{
            {open}
            x.set(lane_idx(), 1);
            {close}
            sync_grid(counter);
        }}"
    ));
}
