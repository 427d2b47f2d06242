//! Accesses with an order and a scope.

use super::{ir, means, refused};

#[test]
fn accesses_to_global_memory() {
    means(
        "let a = out.load(n, Order::Acquire, Scope::Device); out.store(0, a, Order::Release, Scope::System);",
        "v0 = global.load.acquire.gpu p1 p0\nv1 = v0\nglobal.store.release.sys p1 0i32 v1",
    );
    means(
        "let a = out.fetch_add(0, 1, Order::AcqRel, Scope::Device) + out.fetch_xor(1, n, Order::Relaxed, Scope::Block);",
        "v0 = global.add.acq_rel.gpu p1 0i32 1u32\nv1 = global.xor.relaxed.cta p1 1i32 p0\nv2 = (v0 + v1)",
    );
    means(
        "let a = out.swap(0, n, Order::Acquire, Scope::Cluster); \
         let b = out.compare_exchange(1, a, n, Order::Release, Scope::Device) == a;",
        "v0 = global.exchange.acquire.cluster p1 0i32 p0\nv1 = v0\n\
         v2 = global.compare_exchange.release.gpu p1 1i32 v1 p0\nv3 = (v2 == v1)",
    );
}

#[test]
fn accesses_to_shared_memory() {
    means(
        "let s: SharedArray<u64, 4> = shared(); s.store(0, 1, Order::Relaxed, Scope::Block); \
         let a = s.fetch_max(n, 2, Order::AcqRel, Scope::Cluster) + s.load(1, Order::Acquire, Scope::Block);",
        "shared.store.relaxed.cta s0 0u32 1u64\nv0 = shared.max.acq_rel.cluster s0 p0 2u64\n\
         v1 = shared.load.acquire.cta s0 1u32\nv2 = (v0 + v1)",
    );
    let remote = ir("#[tma_kernel(threads = 32, cluster = 2)]\nfn k(out: Global<u32>) { \
         let s: SharedArray<u32, 4> = shared(); sync_cluster(); \
         out.set(0, remote(s, 1).swap(0, 1, Order::AcqRel, Scope::Cluster)); sync_cluster(); }");
    let wanted = "v0 = shared.exchange.acq_rel.cluster remote(s0, 1u32) 0u32 1u32";
    assert!(remote.contains(wanted), "{remote}");
}

#[test]
fn vectors_are_added() {
    let text = ir("#[tma_kernel(threads = 32)]\nfn k(sums: Global<bf16>, x: bf16) { \
         sums.add_vec(8, [x, x], Order::Relaxed, Scope::Device); }");
    assert!(text.contains("global.add_vec.relaxed.gpu p0 8i32 [p1, p1]"), "{text}");
    assert!(text.contains("param p0 sums: Global<bf16> written"), "{text}");
}

/// Orders and scopes are constants, which a `let` and a device function may name.
#[test]
fn orders_and_scopes_have_other_names() {
    means(
        "let order = Order::Acquire; let scope = Scope::Device; let a = out.load(0, order, scope);",
        "v0 = global.load.acquire.gpu p1 0i32\nv1 = v0",
    );
    let text = ir("#[tma_module] mod m { use tma_runtime::prelude::*; \
         #[tma_device] fn read(g: Global<u32>, order: Order, scope: Scope) -> u32 { g.load(0, order, scope) } \
         #[tma_kernel(threads = 32)] pub fn k(g: Global<u32>) { \
         g.set(1, read(g, Order::Relaxed, Scope::System)); } }");
    assert!(text.contains("global.load.relaxed.sys p0 0i32"), "{text}");
}

/// With only a load, the launcher does not require `&mut`.
#[test]
fn loads_do_not_write() {
    let text = |body: &str| ir(&format!("#[tma_kernel(threads = 32)]\nfn k(a: Global<u32>) {{ {body} }}"));
    assert!(!text("let x = a.load(0, Order::Relaxed, Scope::Device);").contains("written"));
    for writes in [
        "a.store(0, 1, Order::Relaxed, Scope::Device);",
        "a.fetch_or(0, 1, Order::Relaxed, Scope::Device);",
        "a.compare_exchange(0, 1, 2, Order::Relaxed, Scope::Device);",
    ] {
        assert!(text(writes).contains("written"), "{writes}");
    }
}

#[track_caller]
fn is_refused(body: &str, wanted: &[&str]) {
    let source = format!(
        "#[tma_kernel(threads = 32)]\nfn k(a: Global<u32>, h: Global<f16>, d: Global<f64>) {{\n    {body}\n}}"
    );
    let found = refused(&source);
    for text in wanted {
        assert!(found.contains(text), "no `{text}` in\n{found}");
    }
}

#[test]
fn orders_that_an_access_cannot_have() {
    let wanted = [
        "TMA0245",
        "only a write can release, but `load` has `Order::AcqRel`",
        "use `Order::Relaxed` or `Order::Acquire`",
    ];
    is_refused("let x = a.load(0, Order::AcqRel, Scope::Device);", &wanted);
    is_refused(
        "a.store(0, 1, Order::Acquire, Scope::Device);",
        &["only an access that returns a value can acquire, but `store` has `Order::Acquire`"],
    );
    is_refused(
        "h.add_vec(0, [f16::ONE; 2], Order::AcqRel, Scope::Device);",
        &["only an access that returns a value can acquire, but `add_vec` has `Order::AcqRel`"],
    );
    is_refused(
        "let s: SharedArray<u32, 1> = shared(); s.store(0, 1, Order::Relaxed, Scope::System);",
        &["TMA0245", "shared memory is visible to its cluster only, but `store` has `Scope::System`"],
    );
}

#[test]
fn orders_and_scopes_are_named() {
    is_refused(
        "let x = a.load(0, Order::SeqCst, Scope::Device);",
        &["`Order` has no variant `SeqCst`", "use `Relaxed`, `Acquire`, `Release` or `AcqRel`"],
    );
    is_refused(
        "let x = a.load(0, Order::Relaxed, Scope::Gpu);",
        &["`Scope` has no variant `Gpu`", "use `Block`, `Cluster`, `Device` or `System`"],
    );
    is_refused("let x = a.load(0, Scope::Device, Order::Relaxed);", &["Order", "Scope"]);
    is_refused("let x = a.load(0);", &["load(i, order, scope)"]);
    is_refused(
        "let x = a.load(0, if h.len() > 3 { Order::Acquire } else { Order::Relaxed }, Scope::Device);",
        &["Order"],
    );
}

#[test]
fn elements_that_an_access_does_not_have() {
    is_refused(
        "h.fetch_max(0, f16::ONE, Order::Relaxed, Scope::Device);",
        &["`fetch_max` does not support `f16` elements", "can be i32, u32, i64, u64 or usize"],
    );
    is_refused(
        "h.compare_exchange(0, f16::ONE, f16::ONE, Order::Relaxed, Scope::Device);",
        &["`compare_exchange` does not support `f16` elements"],
    );
    is_refused(
        "d.add_vec(0, [1.0, 2.0], Order::Relaxed, Scope::Device);",
        &["`add_vec` does not support `f64` elements", "can be f16, bf16 or f32"],
    );
    is_refused("a.atomic_add(0, 1.5);", &["u32"]);
}
