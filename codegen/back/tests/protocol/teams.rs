//! Verdicts on kernels of a team.

use tma_codegen::protocol::{UndecidedReason, Verdict};

use crate::verdict;

const TILE: &str = "Tile<f32, Shape2<32, 32>>";

#[track_caller]
fn kernel(params: &str, body: &str) -> String {
    format!("#[tma_kernel(threads = 128)]\nfn k({params}) {{\n{body}\n}}")
}

#[track_caller]
fn is_proved(source: &str) {
    let found = verdict(source);
    assert!(matches!(found, Verdict::Proved), "{found:?}\n{source}");
}

#[track_caller]
fn is_undecided(source: &str, wanted: UndecidedReason) {
    let Verdict::NotDecided(reasons) = verdict(source) else { panic!("it is decided:\n{source}") };
    assert!(reasons.iter().any(|one| one.reason == wanted), "{reasons:?}\n{source}");
}

/// A copy of a tile per block, from `src` to `dst`.
fn copied(params: &str, src: &str, dst: &str) -> String {
    let body = format!(
        "let tile: {TILE} = shared();
         let full: Barrier = shared();
         let leader = thread_idx().x == 0;
         let at = [block_idx().y * 32, block_idx().x * 32];
         if leader {{ full.init(1); fence_barrier_init(); }}
         sync_threads();
         if leader {{
             full.arrive_expect_tx(tile.bytes());
             {src}.load(tile, at, full);
         }}
         full.wait(0);
         if leader {{
             {dst}.store(at, tile);
             bulk_commit_group();
             bulk_wait_group_read::<0>();
         }}"
    );
    kernel(params, &body)
}

#[test]
fn maps_of_ranks_are_followed_like_any_other() {
    let params = format!("src: Peers<TensorMap<{TILE}>>, dst: TensorMap<{TILE}>");
    is_proved(&copied(&params, "src.of((rank() + 1) % ranks())", "dst"));
    is_proved(&copied(&params, "src.own()", "dst"));
    let params = format!("src: TensorMap<{TILE}>, dst: Peers<TensorMap<{TILE}>>");
    is_proved(&copied(&params, "src", "dst.of((rank() + 1) % ranks())"));
}

/// Whichever map it is, the barrier has to be announced the bytes.
#[test]
fn mistakes_with_maps_of_ranks_are_found() {
    let params = format!("src: Peers<TensorMap<{TILE}>>, dst: TensorMap<{TILE}>");
    let source = copied(&params, "src.of(0)", "dst").replace("tile.bytes()", "64");
    assert!(matches!(verdict(&source), Verdict::Broken(_)), "{source}");
}

const SLICES: &str = "x: Peers<Global<f32>>, y: Peers<Global<f32>>";
const INDEX: &str = "let i = block_idx().x * 128 + thread_idx().x;";

#[test]
fn ranks_that_only_read_or_only_write() {
    let body = "for r in 0..ranks() { y.of(r).set(rank() * 4096 + i, x.own().get(i) + x.of(r).get(i)); }";
    is_proved(&kernel(SLICES, &format!("{INDEX} {body}")));
}

/// Only `own` is used, so no other rank accesses the memory.
#[test]
fn memory_of_this_rank_alone() {
    is_proved(&kernel(
        SLICES,
        &format!("{INDEX} x.own().set(i, y.own().get(i)); y.own().set(i, x.own().get(i));"),
    ));
}

/// Neither a barrier of the block nor one of the grid orders the ranks.
#[test]
fn memory_that_one_rank_writes_and_another_reads() {
    let writes = "x.of((rank() + 1) % ranks()).set(i, 1.0);";
    for (params, order) in [
        (SLICES, ""),
        (SLICES, "sync_threads();"),
        ("x: Peers<Global<f32>>, y: Peers<Global<f32>>, c: Global<u32>", "sync_grid(c);"),
    ] {
        let source = kernel(params, &format!("{INDEX} {writes} {order} y.own().set(i, x.own().get(i));"));
        is_undecided(&source, UndecidedReason::Peers);
    }
    let reads = "x.own().set(i, 1.0); y.own().set(i, x.of((rank() + 1) % ranks()).get(i));";
    is_undecided(&kernel(SLICES, &format!("{INDEX} {reads}")), UndecidedReason::Peers);
}

#[test]
fn a_strong_access_with_the_scope_of_one_gpu() {
    let body = |scope: &str| {
        format!(
            "x.of(0).fetch_add(0, 1, Order::Relaxed, Scope::System);
             x.own().fetch_add(0, 1, Order::Relaxed, Scope::{scope});"
        )
    };
    let source = |scope| kernel("x: Peers<Global<u32>>", &body(scope));
    is_undecided(&source("Device"), UndecidedReason::Peers);
    is_proved(&source("System"));
}

/// Flags are not followed.
#[test]
fn waits_for_other_ranks() {
    let body = "if thread_idx().x == 0 {
        f.of((rank() + 1) % ranks()).store(block_idx().x, 1, Order::Release, Scope::System);
        while f.own().load(block_idx().x, Order::Acquire, Scope::System) == 0 {}
    }
    sync_threads();";
    is_undecided(&kernel("f: Peers<Global<u32>>", body), UndecidedReason::WaitLoop);
}

/// A rank is below the number of ranks, of which there are at most 8.
#[test]
fn ranks_that_no_team_has() {
    let waits = |condition: &str| {
        let body = format!(
            "let never: Barrier = shared();
             if thread_idx().x == 0 {{ never.init(1); }}
             sync_threads();
             if {condition} {{ never.wait(0); }}"
        );
        kernel("x: Peers<Global<f32>>", &body)
    };
    for impossible in ["rank() >= 8", "ranks() > 8", "ranks() == 0"] {
        is_proved(&waits(impossible));
    }
    assert!(matches!(verdict(&waits("rank() == 0")), Verdict::Broken(_)));
    assert!(!matches!(verdict(&waits("rank() == ranks()")), Verdict::Broken(_)));
}
