//! Bulk copies without a tensor map.

use super::{body, ir};

/// Returns a kernel with a slice of f32, shared memory of several kinds, and `statement`.
fn copying(statement: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]\nfn k(g: Global<f32>, n: u32, i: i64) {{\n\
         let a: SharedArray<f32, 64> = shared();\nlet t: Tile<f32, Shape2<8, 16>> = shared();\n\
         let w: Tile<f32, Shape2<8, 16>, Swizzle64> = shared();\nlet h: SharedArray<f16, 64> = shared();\n\
         let b: Barrier = shared();\n{statement}\n}}"
    )
}

#[test]
fn each_word_is_one_statement() {
    let text = body(
        "let a: SharedArray<u32, 64> = shared();\nlet b: Barrier = shared();\n\
         out.bulk_prefetch(0, 1000);\nout.bulk_load(a, 4, n, 8u64, b);\n\
         out.bulk_store(n, a, 0, 64);\nout.bulk_reduce_xor(n, a, 0, 64);",
    );
    let wanted = [
        "bulk.prefetch p1[0i32; 1000u32]",
        "bulk.load s0[4u32] s1 p1[8u64; p0]",
        "bulk.store s0[0u32] p1[p0; 64u32]",
        "bulk.reduce_xor s0[0u32] p1[p0; 64u32]",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn what_is_stored_to_is_written_and_what_is_only_read_is_not() {
    assert!(
        ir(&copying("g.bulk_load(a, 0, 64, n * 64, b); g.bulk_prefetch(0, 4);")).contains("g: Global<f32>\n")
    );
    assert!(ir(&copying("g.bulk_store(n * 64, a, 0, 64);")).contains("g: Global<f32> written\n"));
    assert!(ir(&copying("g.bulk_reduce_add(i, t, 16, 112);")).contains("g: Global<f32> written\n"));
}

#[test]
fn what_is_not_known_may_be_a_multiple_of_16_bytes() {
    ir(&copying("g.bulk_load(a, n, n, i, b); g.bulk_store(i * 2, a, n * 6, 4);"));
}

#[test]
fn constants_stay_within_shared_memory() {
    ir(&copying("g.bulk_load(a, 32, 32, 0, b); g.bulk_load(t, n, 128, 0, b);"));
}

#[test]
fn hints_are_for_bulk_copies() {
    assert!(
        ir(&copying("g.hint(l2_evict_last(1.0)).bulk_prefetch(0, 4);")).contains("p0[0i32; 4u32] hint v")
    );
}

/// Returns a kernel in clusters with shared memory of several kinds, and `statement`.
fn across(statement: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64, cluster = 2)]\nfn k(g: Global<u32>, n: u32) {{\n\
         let a: SharedArray<u32, 64> = shared();\nlet s: SharedArray<u32, 32> = shared();\n\
         let h: SharedArray<f16, 64> = shared();\nlet b: Barrier = shared();\n{statement}\n}}"
    )
}

#[test]
fn copies_go_to_other_blocks() {
    let text = ir(&across(
        "a.bulk_copy_to(remote(s, 1), n, 16, remote(b, 1));\na.bulk_reduce_min_to(remote(a, n), 0, 64, remote(b, n));\n\
         g.bulk_load_multicast(a, 0, 64, 0, b, 0b11);",
    ));
    for wanted in [
        "bulk.copy_to s0[p1; 16u32] remote(s1, 1u32) remote(s3, 1u32)\n",
        "bulk.reduce_min_to s0[0u32; 64u32] remote(s0, p1) remote(s3, p1)\n",
        "bulk.load_multicast s0[0u32] s3 3u16 p0[0i32; 64u32]\n",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

#[test]
fn a_reduction_may_go_to_the_block_itself() {
    ir(&across("a.bulk_reduce_add_to(remote(s, cluster_rank()), 0, 8, remote(b, cluster_rank()));"));
}
