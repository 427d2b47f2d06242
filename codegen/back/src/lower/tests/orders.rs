//! Orders between accesses: strong accesses and fences.

use super::{body, has, ptx};

#[test]
fn accesses_have_their_order_and_scope() {
    let text = body(
        "g: Global<u32>, h: Global<bf16>, b: Global<u8>, f: Global<f32>, o: Global<f32>",
        "let x = g.load(0, Order::Acquire, Scope::Device);
         g.store(1, x, Order::Release, Scope::System);
         g.store(2, g.fetch_min(3, x, Order::Relaxed, Scope::Cluster), Order::Relaxed, Scope::Block);
         g.set(4, g.compare_exchange(5, x, 7, Order::AcqRel, Scope::Device));
         h.fetch_add(0, bf16::ONE, Order::Release, Scope::Device);
         b.store(0, b.load(1, Order::Relaxed, Scope::Device), Order::Relaxed, Scope::Device);
         f.set(0, f.swap(1, 1.0, Order::Acquire, Scope::Device));
         f.add_vec(4, o.get_vec::<4>(0), Order::Relaxed, Scope::Device);
         h.add_vec(8, h.get_vec::<8>(0), Order::Release, Scope::Device);",
    );
    let wanted = [
        "ld.acquire.gpu.global.b32",
        "st.release.sys.global.b32",
        "atom.relaxed.cluster.global.min.u32",
        "st.relaxed.cta.global.b32",
        "atom.acq_rel.gpu.global.cas.b32",
        "atom.release.gpu.global.add.noftz.bf16",
        "ld.relaxed.gpu.global.b8",
        "st.relaxed.gpu.global.b8",
        "atom.acquire.gpu.global.exch.b32",
        "red.relaxed.gpu.global.add.v4.f32",
        "red.release.gpu.global.add.noftz.v8.bf16",
    ];
    has(&text, &wanted);
}

/// Plain accesses are not moved across a release or an acquire.
#[test]
fn accesses_stay_beside_orders() {
    let text = body(
        "data: Global<u32>, flag: Global<u32>",
        "data.set(0, 1);
         flag.store(0, 1, Order::Release, Scope::Device);
         data.set(0, 2);
         while flag.load(0, Order::Acquire, Scope::Device) != 2 {}
         data.set(1, data.get(0));",
    );
    let lines = ["st.global.b32", "st.release.gpu", "st.global.b32", "ld.acquire.gpu", "ld.global.b32"];
    let mut rest = text.as_str();
    for line in lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("no `{line}` in order in\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn shared_memory_has_its_orders() {
    let text = ptx("#[tma_kernel(threads = 32, cluster = 2)]
         pub fn kernel(out: Global<u32>) {
             let s: SharedArray<u32, 4> = shared();
             s.store(lane_idx() % 4, 0, Order::Relaxed, Scope::Block);
             sync_cluster();
             out.set(0, s.fetch_add(0, 1, Order::AcqRel, Scope::Block));
             out.set(1, remote(s, 0).fetch_or(1, 1, Order::Acquire, Scope::Cluster));
             sync_cluster();
         }");
    let wanted = [
        "st.relaxed.cta.shared.b32",
        "atom.acq_rel.cta.shared.add.u32",
        "atom.acquire.cluster.shared::cluster.or.b32",
    ];
    has(&text, &wanted);
}

#[test]
fn accesses_stay_among_fences() {
    let text = body(
        "map: TensorMap<Tile<u32, Shape1<4>>>, value: u32",
        "let tile: Tile<u32, Shape1<4>> = shared();
         tile.set([0u32], value);
         fence_proxy_async();
         tile.set([0u32], 5);
         sync_warp();",
    );
    let order = ["st.shared.b32", "fence.proxy.async.shared::cta;", "st.shared.b32", "bar.warp.sync"];
    let mut rest = text.as_str();
    for wanted in order {
        let Some((_, after)) = rest.split_once(wanted) else {
            panic!("no `{wanted}` in its place in\n{text}")
        };
        rest = after;
    }
}
