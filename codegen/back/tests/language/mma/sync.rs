//! Matmuls by a warp: the meaning of their words, and each rule with a kernel that satisfies it.

use super::super::{ir, refused};

/// Returns a kernel with the tiles `a` and `b` of `f16`, others, and `n` and `out`.
fn kernel(threads: u32, body: &str) -> String {
    format!(
        "#[tma_kernel(threads = {threads})]\nfn k(n: u32, out: Global<f32>) {{\n\
         let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();\n\
         let b: Tile<f16, Shape2<32, 64>, Swizzle128> = shared();\n\
         let bytes: Tile<i8, Shape2<64, 64>, Swizzle64> = shared();\n\
         let cube: Tile<f16, Shape3<2, 32, 64>, Swizzle128> = shared();\n\
         let words: Tile<u32, Shape2<16, 8>> = shared();\n\
         let narrow: Tile<e4m3, Shape2<64, 64>, Swizzle64> = shared();\n{body}\n}}"
    )
}

/// Returns the statements of a kernel with this body that multiply, load or store.
#[track_caller]
fn statements(body: &str) -> Vec<String> {
    let text = ir(&kernel(64, body));
    let is_here = |line: &&str| {
        ["fragment.", "mma_sync", "accumulator.store", "pack", "row_", "matrix."]
            .iter()
            .any(|word| line.contains(word))
    };
    text.lines().filter(is_here).map(|line| line.trim().to_owned()).collect()
}

/// Returns the error of a kernel with this body, which has exactly one.
#[track_caller]
fn error(body: &str) -> String {
    let text = refused(&kernel(64, body));
    assert_eq!(text.lines().filter(|line| line.starts_with("TMA0")).count(), 1, "{text}");
    text
}

/// Checks that a kernel violates a rule, and that its variant satisfies it.
#[track_caller]
fn flipped(broken: &str, code: &str, message: &str, kept: &str) {
    let text = error(broken);
    assert!(text.starts_with(code) && text.contains(message), "{text}");
    statements(kept);
}

/// Returns a matmul of operands of these types, loaded from these tiles.
fn product(sum: &str, [left, left_tile]: [&str; 2], [right, right_tile]: [&str; 2]) -> String {
    format!(
        "let mut sum = WarpAccumulator::<{sum}>::zero(); \
         let x = WarpLeft::<{left}>::load({left_tile}, [0, 0]); \
         let y = WarpRight::<{right}>::load({right_tile}, [0, 0]); sum.mma_sync(x, y);"
    )
}

#[test]
fn a_multiplication_is_a_statement_of_registers() {
    let body = "let mut sum = WarpAccumulator::<f32, 16, 32>::zero(); \
                let x = WarpLeft::<f16, 16, 16>::load(a, [n * 16, 0]); \
                let y = WarpRight::<f16, 32, 16>::load(cube.batch(1).t(), [0, 16]); sum.mma_sync(x, y); \
                sum.store(b, [16, 32]); sum.store_to(out.matrix(0, [16, 32], 32), [0, 0]); \
                let weights = sum.pack::<f16>(); let most = sum.row_max();";
    let matrix = "p1[v5; 16u32 x 32u32, 32u32]";
    assert_eq!(
        statements(body),
        [
            "v1 = fragment.load s0 [(p0 * 16u32), 0u32]",
            "v3 = fragment.load.transposed s3[1u32] [0u32, 16u32]",
            "mma_sync v0 v2 v4",
            "accumulator.store v0 s1 [16u32, 32u32]",
            &format!("matrix.check {matrix}"),
            &format!("accumulator.store_to v0[0u32; 32] {matrix} [0u32, 0u32]"),
            "v6 = pack v0",
            "v8 = row_max v0",
        ]
    );
}

#[test]
fn narrow_tiles_are_widened() {
    let body = "let x = WarpLeft::<f16, 16, 32>::widen(narrow, [16, 0]); \
                let y = WarpRight::<f16, 32, 8>::widen(narrow.t_if::<true>(), [0, 8]); \
                let z = WarpRight::<f16, 8, 8>::widen(a.t(), [0, 8]);";
    assert_eq!(
        statements(body),
        [
            "v0 = fragment.widen s5 [16u32, 0u32]",
            "v2 = fragment.widen.transposed s5 [0u32, 8u32]",
            "v4 = fragment.widen.transposed s0 [0u32, 8u32]",
        ]
    );
    let widen = |operand: &str, at: &str| format!("let x = {operand}::widen({at});");
    for (code, broken, message, kept) in [
        (
            "TMA0251",
            widen("WarpLeft::<f16, 16, 24>", "narrow, [0, 0]"),
            "must have a multiple of 16 columns, but `WarpLeft<f16, 16, 24>` has 24",
            widen("WarpLeft::<f16, 16, 32>", "narrow, [0, 0]"),
        ),
        (
            "TMA0251",
            widen("WarpRight::<f16, 8, 16>", "narrow.t_if::<true>(), [0, 0]"),
            "must have a multiple of 16 rows, but `WarpRight<f16, 8, 16>` has 8",
            widen("WarpRight::<f16, 16, 8>", "narrow.t_if::<true>(), [0, 0]"),
        ),
        (
            "TMA0252",
            widen("WarpLeft::<bf16, 16, 16>", "narrow, [0, 0]"),
            "`WarpLeft<bf16, 16, 16>` cannot be loaded from a tile of e4m3",
            widen("WarpLeft::<f16, 16, 16>", "narrow, [0, 0]"),
        ),
        (
            "TMA0252",
            "let x = WarpLeft::<f16, 16, 16>::load(narrow, [0, 0]);".to_owned(),
            "use `widen` instead of `load`",
            widen("WarpLeft::<f16, 16, 16>", "narrow, [0, 0]"),
        ),
        (
            "TMA0261",
            widen("WarpLeft::<f16, 16, 16>", "narrow, [0, 8]"),
            "the first column must be a multiple of 16, but it is 8",
            widen("WarpLeft::<f16, 16, 16>", "narrow, [8, 16]"),
        ),
    ] {
        flipped(&broken, code, message, &kept);
    }
}

#[test]
fn lengths_and_places_are_those_of_a_warp() {
    let text = ir(&kernel(
        64,
        "let sum = WarpAccumulator::<f32, 32, 24>::zero(); let rows = WarpRows::<f32, 32>::filled(1.0); \
         for i in unroll(0..sum.len()) { out.set(sum.at(i)[0], sum[i] * rows[sum.row(i)]); } \
         out.set(0, rows.len() as f32);",
    ));
    assert!(text.contains("24usize") && text.contains("4usize"), "{text}");
    assert!(!text.contains("warp_idx"), "the rows are those of each warp: {text}");
}

#[test]
fn every_kind_of_product_has_its_word() {
    for (word, sum, left, right) in [
        ("mma_sync_saturating", "i32, 16, 8", ["i8, 16, 32", "bytes"], ["i8, 8, 32", "bytes"]),
        ("mma_sync_and_popc", "i32, 16, 8", ["u32, 16, 8", "words"], ["u32, 8, 8", "words"]),
        ("mma_sync_xor_popc", "i32, 16, 8", ["u32, 16, 4", "words"], ["u32, 8, 4", "words"]),
    ] {
        let found = statements(&product(sum, left, right).replace("mma_sync", word));
        assert!(found.iter().any(|line| line.starts_with(word)), "{found:?}");
    }
}

#[test]
fn tma0251_extents() {
    let kept = product("f32, 16, 32", ["f16, 16, 16", "a"], ["f16, 32, 16", "b"]);
    for (broken, message) in [
        (product("f32, 32, 32", ["f16, 16, 16", "a"], ["f16, 32, 16", "b"]), "cannot be multiplied into"),
        (product("f32, 16, 24", ["f16, 16, 16", "a"], ["f16, 32, 16", "b"]), "cannot be multiplied into"),
        (product("f32, 16, 32", ["f16, 16, 32", "a"], ["f16, 32, 16", "b"]), "cannot be multiplied into"),
        ("let sum = WarpAccumulator::<f32, 8, 8>::zero();".to_owned(), "has 8 rows"),
        ("let sum = WarpAccumulator::<f32, 16, 12>::zero();".to_owned(), "a multiple of 8 columns, not 12"),
        ("let sum = WarpAccumulator::<f64, 32, 256>::zero();".to_owned(), "needs 512"),
        ("let rows = WarpRows::<f32, 8>::filled(0.0);".to_owned(), "has 8 rows"),
        ("let x = WarpLeft::<f16, 24, 16>::load(a, [0, 0]);".to_owned(), "has 24 rows"),
        ("let x = WarpRight::<f16, 12, 16>::load(a, [0, 0]);".to_owned(), "has 12 rows"),
        (
            "let x = WarpLeft::<f16, 16, 12>::load(a, [0, 0]);".to_owned(),
            "K must be a multiple of 8 elements",
        ),
        (
            "let x = WarpLeft::<f16, 16, 16>::load(cube, [0, 0]);".to_owned(),
            "cannot load from or store to parts of",
        ),
    ] {
        flipped(&broken, "TMA0251", message, &kept);
    }
}

#[test]
fn tma0252_elements() {
    let kept = product("i32, 16, 8", ["i8, 16, 32", "bytes"], ["i8, 8, 32", "bytes"]);
    for (broken, message) in [
        (
            product("f32, 16, 8", ["i8, 16, 32", "bytes"], ["i8, 8, 32", "bytes"]),
            "products of i8 cannot be added",
        ),
        (product("f32, 16, 8", ["f16, 16, 16", "a"], ["i8, 8, 16", "bytes"]), "cannot multiply f16 by i8"),
        (
            product("i32, 16, 8", ["u32, 16, 8", "words"], ["u32, 8, 8", "words"]),
            "`mma_sync` cannot multiply `u32` elements",
        ),
        (
            product("f32, 16, 8", ["f16, 16, 16", "a"], ["f16, 8, 16", "b"])
                .replace("mma_sync", "mma_sync_saturating"),
            "cannot saturate",
        ),
        (
            "let x = WarpLeft::<bf16, 16, 16>::load(a, [0, 0]);".to_owned(),
            "cannot be loaded from a tile of f16",
        ),
        (
            "let x = WarpLeft::<i8, 16, 32>::load(bytes.t(), [0, 0]);".to_owned(),
            "can transpose only elements of 16 bits",
        ),
        ("let sum = WarpAccumulator::<bf16, 16, 8>::zero();".to_owned(), "must hold f32, f16, i32 or f64"),
        (
            "let sum = WarpAccumulator::<i32, 16, 16>::zero(); sum.store(a, [0, 0]);".to_owned(),
            "an accumulator of i32 cannot be stored to a tile of f16",
        ),
    ] {
        flipped(&broken, "TMA0252", message, &kept);
    }
}

#[test]
fn tma0261_parts_begin_with_a_chunk() {
    let load = |operand: &str, at: &str| format!("let x = {operand}::load({at});");
    let left = "WarpLeft::<f16, 16, 16>";
    flipped(
        &load(left, "a, [0, 4]"),
        "TMA0261",
        "the first column must be a multiple of 8, but it is 4",
        &load(left, "a, [4, 8]"),
    );
    flipped(
        &load(left, "a.t(), [n * 8 + 3, 0]"),
        "TMA0261",
        "the first row must be a multiple of 8, but it is always 3 more than a multiple of 8",
        &load(left, "a.t(), [n * 8, 3]"),
    );
    flipped(
        "let sum = WarpAccumulator::<f32, 16, 8>::zero(); sum.store(a, [0, 12]);",
        "TMA0261",
        "the first column must be a multiple of 8, but it is 12",
        "let sum = WarpAccumulator::<f32, 16, 8>::zero(); sum.store(a, [1, 16]);",
    );
}

#[test]
fn tma0208_parts_are_in_the_tile() {
    let load = |at: &str| format!("let x = WarpLeft::<f16, 16, 16>::load({at});");
    for (broken, message) in [
        ("b, [17, 0]", "rows 17 to 32 are out of bounds: the tile has 32"),
        ("b, [0, 56]", "columns 56 to 71 are out of bounds: the tile has 64"),
        ("b.t(), [0, 24]", "columns 24 to 39 are out of bounds: the tile has 32"),
    ] {
        flipped(&load(broken), "TMA0208", message, &load("b, [16, 48]"));
    }
    flipped(
        "for i in unroll(0..5u32) { let x = WarpLeft::<f16, 16, 16>::load(a, [i * 16, 0]); }",
        "TMA0208",
        "where `i` is 4",
        "for i in unroll(0..4u32) { let x = WarpLeft::<f16, 16, 16>::load(a, [i * 16, 0]); }",
    );
    flipped(
        "let sum = WarpAccumulator::<f32, 16, 32>::zero(); sum.store(a, [n, 40]);",
        "TMA0208",
        "columns 40 to 71",
        "let sum = WarpAccumulator::<f32, 16, 32>::zero(); sum.store(a, [n, 32]);",
    );
}

#[test]
fn operands_are_in_registers() {
    let text =
        refused(&kernel(64, "let mut sum = WarpAccumulator::<f32, 16, 32>::zero(); sum.mma_sync(a, b);"));
    assert!(text.contains("expected a `WarpLeft`, found `Tile") && text.contains("a `WarpRight`"), "{text}");
    let text = error("let x = WarpLeft::<f16, 16, 16>::load(3u32, [0, 0]);");
    assert!(text.contains("expected a tile to load the operand from, found"), "{text}");
    let text = error("let x = WarpLeft::<f16, 16, 16>::store(a, [0, 0]);");
    assert!(text.contains("load"), "{text}");
}

#[test]
fn lanes_execute_collectively() {
    let multiply = product("f32, 16, 32", ["f16, 16, 16", "a"], ["f16, 32, 16", "b"]);
    let load = |at: &str| format!("let x = WarpLeft::<f16, 16, 16>::load(a, {at});");
    for (broken, kept) in [
        (format!("if lane_idx() == 0 {{ {multiply} }}"), format!("if warp_idx() == 0 {{ {multiply} }}")),
        (load("[lane_idx(), 0]"), load("[warp_idx() * 16, 0]")),
    ] {
        flipped(&broken, "TMA0264", "threads of a warp", &kept);
    }
    let text = refused(&kernel(48, &multiply));
    assert!(text.starts_with("TMA0215") && text.contains("the block has 48 threads"), "{text}");
}

#[test]
fn indices_are_known() {
    let text = error("let mut sum = WarpAccumulator::<f32, 16, 32>::zero(); sum[n as usize] = 1.0;");
    assert!(text.starts_with("TMA0254"), "{text}");
}

#[test]
fn what_a_warp_reads_of_a_pipeline_is_fenced_before_its_release() {
    let text =
        ir("#[tma_kernel(threads = 32)]\nfn k(map: TensorMap<Tile<f16, Shape2<16, 64>, Swizzle128>>) {\n\
         let ring: Pipeline<(Tile<f16, Shape2<16, 64>, Swizzle128>,), 2> = shared();\n\
         let mut consumer = ring.consumer();\nlet slot = consumer.wait();\n\
         let x = WarpLeft::<f16, 16, 16>::load(slot.0, [0, 0]);\nslot.release();\n}");
    let (fence, arrive) = (text.find("fence.proxy"), text.rfind("arrive"));
    assert!(fence.is_some() && fence < arrive, "{text}");
}
