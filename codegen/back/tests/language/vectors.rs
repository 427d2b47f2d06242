//! Vectors of elements in memory.

use super::{ir, means, refused};

/// Returns a kernel with a tile, a shared array and slices.
fn kernel(body: &str) -> String {
    format!(
        "#[tma_kernel(threads = 32)]\nfn k(n: u32, x: f32, f: Global<f32>, h: Global<f16>, d: Global<f64>, b: Global<u8>) {{ \
         let t: Tile<f16, Shape2<8, 64>, Swizzle128> = shared(); let s: SharedArray<f32, 64> = shared(); {body} }}"
    )
}

#[track_caller]
fn refuses(body: &str, message: &str) {
    let found = refused(&kernel(body));
    assert!(found.contains(message), "{body}:\n{found}");
}

#[track_caller]
fn accepts(body: &str) {
    if let Err(failure) = tma_codegen::check("language.rs", &kernel(body)) {
        panic!("{body}:\n{failure}");
    }
}

#[test]
fn vectors_are_arrays() {
    means(
        "let v = out.get_vec::<4>(n * 4); out.set_vec(n * 8, [v[1], v[0]]);",
        "v0 = global.get p1 (p0 * 4u32)\nv1 = v0\nglobal.set p1 (p0 * 8u32) [v1[1usize], v1[0usize]]",
    );
    means(
        "let t: Tile<f32, Shape2<8, 16>> = shared(); t.set_vec([n, 4], t.get_vec::<4>([0, 8])); t.set_vec([0, 0], [1.0; 2]);",
        "v0 = tile.get s0 [0i32, 8i32]\ntile.set s0 [p0, 4u32] v0\ntile.set s0 [0i32, 0i32] repeat(1.0f32, [f32; 2])",
    );
    means(
        "let s: SharedArray<u64, 8> = shared(); s.set_vec(n * 2, s.get_vec::<2>(6));",
        "v0 = shared.get s0 6u32\nshared.set s0 (p0 * 2u32) v0",
    );
}

/// The path and the policy of a plain access are a part of its statement.
#[test]
fn plain_accesses_have_a_path_and_a_policy() {
    means(
        "let p = l2_evict_first(1.0); out.hint(p).set_vec(0, out.hint(p).get_vec::<4>(4)); out.hint(p).set(n, 1);",
        "v0 = l2_evict_first(1.0f32)\nv1 = v0\nv2 = v0\nv3 = global.get p1 4i32 hint v2\nglobal.set p1 0i32 v3 hint v1\nv4 = v0\n\
         global.set p1 p0 1u32 hint v4",
    );
    let text = ir("#[tma_kernel(threads = 32)]\nfn k(n: u32, src: Global<u32>, out: Global<u32>) {\n\
                   out.set(0, src.get_nc(n) + src.hint(l2_evict_last(1.0)).get_vec_nc::<2>(0)[1]);\n}");
    for load in ["global.get_nc p1 p0\n", "global.get_nc p1 0i32 hint v"] {
        assert!(text.contains(load), "no `{load}` in\n{text}");
    }
}

/// A slice that changes while the kernel runs has no non-coherent loads, whatever changes it.
#[test]
fn non_coherent_loads_are_of_memory_that_does_not_change() {
    for (change, unchanged) in [
        ("f.set(n, x)", "f.get(n)"),
        ("f.set_vec(0, [x; 4])", "f.get_vec::<4>(0)"),
        ("f.atomic_add(0, x)", "f.hint(l2_evict_last(1.0)).get(0)"),
        ("f.store(0, x, Order::Relaxed, Scope::Block)", "f.len()"),
        ("f.load(0, Order::Acquire, Scope::Device)", "f.get_nc(3)"),
        ("f.bulk_store(0, s, 0, 4)", "f.bulk_prefetch(0, 4)"),
        ("f.bulk_reduce_add(0, s, 0, 4)", "f.get_vec_nc::<2>(2)"),
    ] {
        for load in ["f.get_nc(1)", "f.get_vec_nc::<2>(4)", "f.hint(l2_evict_first(1.0)).get_nc(n)"] {
            let found = refused(&kernel(&format!("{change}; d.set(0, 1.0); let loaded = {load};")));
            assert!(
                found.contains("TMA0246: non-coherent load of memory that changes"),
                "{change}:\n{found}"
            );
            accepts(&format!("{unchanged}; d.set(0, 1.0); let loaded = {load};"));
        }
    }
    let found = refused(&kernel("let loaded = f.get_vec_nc::<2>(4); f.set(n, x);"));
    assert!(found.contains("help: read `f` with `get_vec`"), "{found}");
}

#[test]
fn hints_are_for_plain_accesses_and_bulk_copies() {
    for word in [
        "atomic_add(0, x)",
        "load(0, Order::Relaxed, Scope::Device)",
        "len()",
        "swap(0, x, Order::Relaxed, Scope::Device)",
    ] {
        refuses(&format!("f.hint(l2_evict_first(1.0)).{word};"), "does not accept a cache hint\nhelp: call");
        accepts(&format!("f.{word};"));
    }
    refuses(
        "let p = l2_evict_first(1.0); f.hint(p).hint(p).get(0);",
        "an access accepts only one cache hint",
    );
    refuses("let v = f.hint(0.5f32).get(0);", "expected `CachePolicy`");
}

/// A power of two, and at most 16 bytes.
#[test]
fn lengths_are_those_of_instructions() {
    for (of, lengths, most) in
        [("b", &[2, 4, 8, 16][..], 32), ("h", &[2, 4, 8][..], 16), ("f", &[2, 4][..], 8), ("d", &[2][..], 4)]
    {
        for len in lengths {
            accepts(&format!("{of}.set_vec(0, {of}.get_vec::<{len}>(16));"));
        }
        for len in [0, 1, 3, most] {
            refuses(&format!("let v = {of}.get_vec::<{len}>(0);"), &format!("cannot have {len} elements"));
        }
    }
    refuses(
        "f.set_vec(0, [x; 3]);",
        "TMA0244: a vector of `f32` cannot have 3 elements\nhelp: use 2 or 4 elements of `f32`: a vector has at most 16 bytes",
    );
}

#[test]
fn vectors_begin_at_multiples_of_their_length() {
    for (of, len) in [("f", 4), ("h", 8), ("d", 2), ("b", 16)] {
        let half = len / 2;
        accepts(&format!("let v = {of}.get_vec::<{len}>(n * {len});"));
        accepts(&format!("let v = {of}.get_vec::<{len}>(n);"));
        refuses(
            &format!("let v = {of}.get_vec::<{len}>(n * {len} + {half});"),
            &format!("is always {half} more than a multiple of {len}"),
        );
        refuses(
            &format!("let v = {of}.get_vec::<{len}>({half});"),
            &format!("must be a multiple of {len}, but it is {half}"),
        );
        accepts(&format!("let v = {of}.get_vec::<{len}>({len});"));
    }
    accepts("t.set_vec([1, 8], t.get_vec::<8>([n, n * 8 + 56]));");
    refuses(
        "t.set_vec([1, 4], t.get_vec::<8>([n, n * 8]));",
        "the innermost coordinate of a vector of 8 elements must be a multiple of 8, but it is 4",
    );
    accepts("s.set_vec(n * 2, [x; 2]);");
    refuses(
        "s.set_vec(n * 2 + 1, [x; 2]);",
        "the index of a vector of 2 elements must be a multiple of 2, but it is always 1 more",
    );
}

#[test]
fn rows_and_arrays_are_of_whole_vectors() {
    let rows = |extent: u32| {
        format!("let u: Tile<f32, Shape2<8, {extent}>> = shared(); let v = u.get_vec::<4>([n, 0]);")
    };
    accepts(&rows(12));
    refuses(&rows(10), "rows of 10 elements cannot be divided into vectors of 4");
    let array = |len: u32| format!("let a: SharedArray<f32, {len}> = shared(); a.set_vec(n * 4, [x; 4]);");
    accepts(&array(12));
    refuses(&array(10), "an array of 10 elements cannot be divided into vectors of 4");
    accepts("let v = t.get_vec::<4>([7, 60]);");
    refuses("let v = t.get_vec::<4>([8, 60]);", "index 8 is out of bounds");
    refuses("let v = t.get_vec::<4>([7, 64]);", "index 64 is out of bounds");
}

#[test]
fn arguments_are_judged() {
    refuses(
        "let v = f.get_vec(0);",
        "TMA0104: `get_vec` needs the number of elements to read\nhelp: write `get_vec::<4>(..)`",
    );
    refuses("let v = t.get_vec([0, 0]);", "write `get_vec::<8>(..)`");
    refuses("f.set_vec(0, x);", "a vector must be an array of `f32`, not `f32`");
    refuses("f.set_vec(0, [n; 2]);", "mismatched types");
    accepts("f.set_vec(0, [1.0, 2.0]);");
    refuses("let v = f.get_vec::<4>([0, 0]);", "an index must be an integer of 32 or 64 bits");
    refuses("let v = t.get_vec::<4>([0]);", "expected 2 coordinates, found 1");
    refuses("let v = f.get_vec::<{ n as usize }>(0);", "TMA0105");
}
