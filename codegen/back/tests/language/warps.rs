//! The words of a warp: their statements, and their errors.

use super::{ir, means, refused};

/// Checks the error of a kernel of `threads` threads.
#[track_caller]
fn refuses(threads: u32, body: &str, message: &str) {
    let found = refused(&format!(
        "#[tma_kernel(threads = {threads})]\nfn k(n: u32, x: f32, out: Global<f32>) {{ {body} }}"
    ));
    assert!(found.contains(message), "{body}:\n{found}");
}

#[track_caller]
fn accepts(threads: u32, body: &str) {
    let source =
        format!("#[tma_kernel(threads = {threads})]\nfn k(n: u32, x: f32, out: Global<f32>) {{ {body} }}");
    if let Err(failure) = tma_codegen::check("language.rs", &source) {
        panic!("{body}:\n{failure}");
    }
}

#[test]
fn shuffles() {
    means(
        "let a = shuffle_xor(x, 1) + shuffle_up(x, n); let b = shuffle_down::<u32>(n, 31); let c = shuffle_idx(true, 0);",
        "v0 = warp.shuffle_xor p3 1u32\nv1 = warp.shuffle_up p3 p0\nv2 = (v0 + v1)\n\
         v3 = warp.shuffle_down p0 31u32\nv4 = v3\nv5 = warp.shuffle_idx true 0u32\nv6 = v5",
    );
    // The use of the result determines the type of a literal.
    means("let a: i64 = shuffle_idx(1, 0);", "v0 = warp.shuffle_idx 1i64 0u32\nv1 = v0");
}

#[test]
fn votes_and_matches() {
    means(
        "if vote_all(n == 0) || vote_any(n > 9) { out.set(0, ballot(x > 1.0)); }",
        "v0 = warp.vote_all (p0 == 0u32)\nv2 = v0\nif v2\nelse\n  v1 = warp.vote_any (p0 > 9u32)\n  v2 = v1\n\
         if v2\n  v3 = warp.vote_ballot (p3 > 1.0f32)\n  global.set p1 0i32 v3",
    );
    means(
        "out.set(0, match_any(x) & match_all(n as u64));",
        "v0 = warp.match_any p3\nv1 = warp.match_all (p0 as u64)\nglobal.set p1 0i32 (v0 & v1)",
    );
}

#[test]
fn reductions() {
    means(
        "let a = warp_reduce_add(x); let b = warp_reduce_min::<u32>(n) + warp_reduce_max(n); \
         let c = warp_reduce_and(n) | warp_reduce_or(n) ^ warp_reduce_xor(n);",
        "v0 = warp.reduce_add p3\nv1 = v0\nv2 = warp.reduce_min p0\nv3 = warp.reduce_max p0\nv4 = (v2 + v3)\n\
         v5 = warp.reduce_and p0\nv6 = warp.reduce_or p0\nv7 = warp.reduce_xor p0\nv8 = (v5 | (v6 ^ v7))",
    );
}

#[test]
fn a_warp_has_32_lanes() {
    for (last, word, what) in [
        ("31", "shuffle_xor", "the lane mask of a shuffle must be 0 to 31, not 32"),
        ("31", "shuffle_up", "the lane distance of a shuffle must be 0 to 31, not 32"),
        ("31", "shuffle_down", "the lane distance of a shuffle must be 0 to 31, not 32"),
        ("31", "shuffle_idx", "the lane of a shuffle must be 0 to 31, not 32"),
    ] {
        accepts(32, &format!("out.set(n, {word}(x, {last}));"));
        refuses(32, &format!("out.set(n, {word}(x, 32));"), what);
    }
}

#[test]
fn types_are_judged() {
    refuses(32, "let t = shuffle_xor([x, x], 1);", "`shuffle_xor` takes scalars, not `[f32; 2]`");
    accepts(32, "let t = [shuffle_xor(x, 1), shuffle_xor(x, 2)];");
    refuses(32, "let t = match_any(out);", "`match_any` takes scalars, not `Global<f32>`");
    refuses(
        32,
        "let t = warp_reduce_xor(x);",
        "`warp_reduce_xor` does not support `f32`\nhelp: use an integer",
    );
    accepts(32, "let t = warp_reduce_xor(x.to_bits());");
    refuses(32, "let t = warp_reduce_add(x > 0.0);", "`warp_reduce_add` does not support `bool`");
    accepts(32, "let t = warp_reduce_add((x > 0.0) as u32);");
    refuses(32, "let t = shuffle_up::<u32>(x, 1);", "mismatched types");
    refuses(32, "let t = vote_all(n);", "mismatched types");
    refuses(32, "let t = ballot(n > 0, 1);", "`ballot` takes 1 argument, but 2 were supplied");
    refuses(32, "let t = shuffle_idx(x, 1.0);", "mismatched types");
}

#[test]
fn reductions_by_shuffles_need_whole_warps() {
    for body in ["out.set(n, warp_reduce_max(x));", "let t = warp_reduce_add(n as u64);"] {
        accepts(96, body);
        refuses(80, body, "with 80 threads the block's last warp has 16");
    }
    accepts(80, "let t = warp_reduce_add(n as i16) as u64 + warp_reduce_xor(n as u64);");
}

/// Warpgroups and the kernel's named barriers share 15 barriers.
#[test]
fn tma0263_barriers_for_all_warpgroups() {
    let of = |body: &str| format!("#[tma_kernel(threads = 256)]\nfn k(n: u32) {{ {body} }}");
    let all = |numbers: std::ops::RangeInclusive<u32>| -> String {
        numbers.map(|number| format!("named_barrier_sync({number}, 256);")).collect()
    };
    for (broken, message, kept) in [
        (
            format!("sync_warpgroup(); {}", all(1..=14)),
            "the 2 warpgroups need one barrier each, but the kernel uses 14 of 15",
            format!("sync_warpgroup(); {}", all(1..=13)),
        ),
        (
            "sync_warpgroup(); named_barrier_arrive(n, 256); named_barrier_sync(14, 256);".to_owned(),
            "the kernel uses number 14 itself",
            "sync_warpgroup(); named_barrier_arrive(n, 256); named_barrier_sync(13, 256);".to_owned(),
        ),
        (
            format!("sync_warpgroup(); {}", all(1..=15)),
            "the kernel uses 15 of 15",
            format!("sync_threads(); {}", all(1..=15)),
        ),
    ] {
        let text = refused(&of(&broken));
        assert!(text.starts_with("TMA0263") && text.contains(message), "{text}");
        ir(&of(&kept));
    }
}
