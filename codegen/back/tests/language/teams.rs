//! Teams: memory of all ranks.

use super::{ir, refused};

/// Returns a kernel with a slice and a map of each rank, and the statements of its body.
#[track_caller]
fn of_team(body: &str) -> String {
    ir(&format!(
        "#[tma_kernel(threads = 32)]\nfn k(n: u32, x: Peers<Global<u32>>, m: Peers<TensorMap<Tile<f32, Shape2<8, 8>>>>) \
         {{\n{body}\n}}"
    ))
}

#[track_caller]
fn has(text: &str, wanted: &[&str]) {
    for line in wanted {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

/// The numbers of the team come last.
#[test]
fn parameters_of_a_team() {
    let text = of_team("");
    let order = [
        "param p0 n: u32",
        "param p1 x: Peers<Global<u32>>",
        "param p2 m: Peers<TensorMap<Tile<f32, Shape2<8, 8>>>>",
        "param p3 x.own(): Global<u32>",
        "param p4 rank(): u32",
        "param p5 ranks(): u32",
    ];
    let mut rest = text.as_str();
    for line in order {
        let at = rest.find(line).unwrap_or_else(|| panic!("no `{line}` in order in\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

/// A kernel without peers is one of a team if it asks for its rank.
#[test]
fn numbers_of_a_team() {
    let text =
        ir("#[tma_kernel(threads = 32)]\nfn k(out: Option<Global<u32>>) { let a = rank() + ranks(); }");
    has(&text, &["param p1 out.is_some()", "param p2 rank()", "param p3 ranks()", "v0 = (p2 + p3)"]);
}

#[test]
fn slices_of_ranks() {
    let text = of_team(
        "let peer = x.of(n + 1); peer.set(n, x.own().get(n) + peer.len() as u32);
         let v = x.of(rank()).get_vec::<2>(4);",
    );
    has(
        &text,
        &[
            "v0 = (p0 + 1u32)",
            "v1 = global.get p3 p0",
            "global.set p1[rank v0] p0 (v1 + (len(p1) as u32))",
            "global.get p1[rank v2] 4i32",
            "p1 x: Peers<Global<u32>> written",
            "p3 x.own(): Global<u32> written",
        ],
    );
}

/// The rank is the one at the time of `of`.
#[test]
fn the_rank_of_a_slice_does_not_change() {
    let text = of_team("let mut r = n; let peer = x.of(r); r = 0; peer.set(0, r);");
    has(&text, &["v0 = p0", "v1 = v0", "v0 = 0u32", "global.set p1[rank v1] 0i32 v0"]);
}

#[test]
fn accesses_with_an_order() {
    let text = of_team(
        "x.of(n).store(0, 1, Order::Release, Scope::System);
         let a = x.of(0).fetch_add(1, 2, Order::Relaxed, Scope::System);
         let b = x.own().fetch_add(1, 2, Order::Relaxed, Scope::Block);",
    );
    has(
        &text,
        &[
            "global.store.release.sys p1[rank v0] 0i32 1u32",
            "global.add.relaxed.sys p1[rank v1] 1i32 2u32",
            "global.add.relaxed.cta p3 1i32 2u32",
        ],
    );
}

#[test]
fn copies_of_ranks() {
    let text = of_team(
        "let a: SharedArray<u32, 32> = shared(); let t: Tile<f32, Shape2<8, 8>> = shared(); let b: Barrier = shared();
         x.of(n).bulk_load(a, 0, 32, 0, b); x.of(1).bulk_reduce_add(4, a, 0, 4);
         m.of(n).load(t, [0, 0], b); m.own().store([0, 8], t);",
    );
    has(
        &text,
        &[
            "bulk.load s0[0u32] s2 p1[rank v0][0i32; 32u32]",
            "bulk.reduce_add s0[0u32] p1[rank v1][4i32; 4u32]",
            "tma.load p2[v2] [0i32, 0i32]",
            "tma.store p2[p4] [0i32, 8i32]",
            "m: Peers<TensorMap<Tile<f32, Shape2<8, 8>>>> written",
        ],
    );
}

#[test]
fn device_functions_take_memory_of_ranks() {
    let text = ir("#[tma_module] mod m { use tma_runtime::prelude::*;
         #[tma_device] fn first<T: Scalar>(x: Peer<Global<T>>) -> T { x.get(0) }
         #[tma_device] fn next<T: Scalar>(x: Peers<Global<T>>) -> T { first(x.of((rank() + 1) % ranks())) }
         #[tma_kernel(threads = 32)] pub fn k(x: Peers<Global<f32>>, y: Global<f32>) { y.set(0, next(x)); } }");
    has(&text, &["global.get p0[rank"]);
}

#[track_caller]
fn is_refused(params: &str, body: &str, wanted: &[&str]) {
    let found = refused(&format!("#[tma_kernel(threads = 32)]\nfn k({params}) {{ {body} }}"));
    has(&found, wanted);
}

#[test]
fn scopes_of_one_gpu() {
    for access in ["load(0, Order::Relaxed, Scope::Device)", "store(0, 1, Order::Release, Scope::Block)"] {
        let body = format!("let _ = x.of(0).{access};");
        is_refused("x: Peers<Global<u32>>", &body, &["TMA0247", "use `Scope::System`"]);
    }
}

#[test]
fn methods_that_peers_do_not_have() {
    for call in ["atomic_add(0, 1)", "get_nc(0)", "hint(l2_evict_first(1.0))", "bulk_prefetch(0, 4)"] {
        let body = format!("let _ = x.of(0).{call};");
        is_refused("x: Peers<Global<u32>>", &body, &["TMA0103"]);
    }
    is_refused("x: Peers<Global<u32>>", "let _ = x.get(0);", &["TMA0103"]);
}

#[test]
fn memory_that_no_rank_has() {
    is_refused("x: Peers<u32>", "", &["`Peers` must be of a slice or a tensor map"]);
    is_refused("x: Peers<Maps<Tile<f32, Shape2<8, 8>>>>", "", &["`Peers` must be of"]);
    is_refused("x: Peer<Global<u32>>", "", &["TMA0005"]);
    is_refused("x: Peers<Global<u32>>", "let _ = x.of(-1i32);", &["TMA0102"]);
}

/// rustc rejects these as well.
#[test]
fn memory_of_another_gpu_is_not_that_of_this_one() {
    is_refused("x: Peers<Global<u32>>", "sync_grid(x.of(0));", &["TMA0102"]);
    let found = refused(
        "#[tma_module] mod m { use tma_runtime::prelude::*;
         #[tma_device] fn first(x: Global<u32>) -> u32 { x.get(0) }
         #[tma_kernel(threads = 32)] pub fn k(x: Peers<Global<u32>>) { let a = first(x.of(0)); } }",
    );
    has(&found, &["TMA0102"]);
}

/// A write through one name of the memory rules out non-coherent loads through the other.
#[test]
fn own_memory_is_that_of_the_peers() {
    let body = "x.of(1).set(0, x.own().get_nc(1));";
    is_refused("x: Peers<Global<u32>>", body, &["TMA0246"]);
}

#[test]
fn a_loop_does_not_wait_for_plain_memory_of_a_rank() {
    is_refused("x: Peers<Global<u32>>", "while x.of(1).get(0) == 0 {}", &["TMA0713"]);
    is_refused("x: Peers<Global<u32>>", "while x.own().get(0) == 0 {}", &["TMA0713"]);
}
