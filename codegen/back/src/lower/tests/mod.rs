//! Tests of lowering through LLVM, which inspect the PTX. If a kernel has no inputs, the optimiser
//! computes what it stores: the constant in the PTX is the kernel's result.

mod cached;
mod orders;
mod ptx;
mod spans;
mod teams;

use crate::{Target, compile};

/// Compiles the only kernel of `source` and returns its PTX.
fn ptx_for(source: &str, target: Target) -> String {
    let mut all = compile("src/kernel.rs", source, target).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(all.kernels.len(), 1, "one kernel");
    all.kernels.remove(0).text
}

fn ptx(source: &str) -> String {
    ptx_for(source, Target::Sm90a)
}

/// Returns the PTX of a kernel of 32 threads with `params` and `body`.
fn body(params: &str, body: &str) -> String {
    ptx(&format!("#[tma_kernel(threads = 32)]\npub fn kernel({params}) {{\n{body}\n}}\n"))
}

#[track_caller]
fn has(ptx: &str, wanted: &[&str]) {
    for line in wanted {
        assert!(ptx.contains(line), "no `{line}` in\n{ptx}");
    }
}

#[track_caller]
fn has_not(ptx: &str, unwanted: &[&str]) {
    for line in unwanted {
        assert!(!ptx.contains(line), "`{line}` in\n{ptx}");
    }
}

/// Asserts that a kernel without inputs stores `wanted`, the value of its `answer: u32`.
#[track_caller]
fn computes(statements: &str, wanted: u32) {
    let text = body(
        "",
        &format!("let answers: SharedArray<u32, 1> = shared();\n{statements}\nanswers.set(0, answer);"),
    );
    let stored = wanted as i32;
    has(&text, &[&format!("st.shared.b32 \t[tma_shared], {stored};")]);
}

const COPY: &str = "
#[tma_kernel(threads = 128, min_blocks = 2, max_registers = 64)]
pub fn tma_copy(
    src: TensorMap<Tile<f16, Shape2<128, 64>>>,
    dst: TensorMap<Tile<f16, Shape2<128, 64>>>,
) {
    let tile: Tile<f16, Shape2<128, 64>> = shared();
    let full: Barrier = shared();
    let at = [block_idx().y * 128, block_idx().x * 64];
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if leader {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    full.wait(0);
    if leader {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
";

#[test]
fn copy_kernel_uses_the_copy_engine() {
    let text = ptx(COPY);
    has(
        &text,
        &[
            ".version 8.0\n.target sm_90a\n",
            ".extern .shared .align 128 .b8 tma_shared[];",
            ".visible .entry tma_copy(",
            ".param .align 64 .b8 tma_copy_param_0[128]",
            ".reqntid 128, 1, 1",
            ".minnctapersm 2",
            ".maxnreg 64",
            "mbarrier.init.shared::cta.b64 [",
            "fence.mbarrier_init.release.cluster;",
            "barrier.sync.aligned 0;",
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [",
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [",
            "mbarrier.try_wait.parity.shared::cta.b64 %done, [",
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [",
            "cp.async.bulk.commit_group;",
            "cp.async.bulk.wait_group.read 0;",
        ],
    );
    has_not(&text, &[".maxntid", ".local", "ld.param.b64"]);
}

#[test]
fn text_names_its_source_and_nothing_else() {
    let text = ptx(COPY);
    let header = format!(
        "// kernel: tma_copy\n// generator: tma-codegen {}\n// source: src/kernel.rs:3\n\
         // shared 0..16384 tile: Tile<f16, Shape2<128, 64>>\n// shared 16384..16392 full: \
         Barrier\n\n\
         .version",
        env!("CARGO_PKG_VERSION")
    );
    assert!(text.starts_with(&header), "{text}");
    has(&text, &["\t.file\t1 \"src/kernel.rs\"\n", "\t.loc\t1 18 9\n"]);
    has_not(&text, &["debug", ".section", "$L__tmp", "begin inline asm"]);
}

#[test]
fn shared_variables_are_noted_where_they_lie() {
    let text = ptx("#[tma_kernel(threads = 32)] pub fn k() { let sums: SharedArray<u32, 6> = shared();\n\
        let full: Stages<Barrier, 3> = shared(); let tiles: Stages<Tile<u8, Shape2<3, 16>>, 2> = shared();\n\
        full[1].init(1); }");
    let notes: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("// shared ")).collect();
    let wanted = [
        "0..256 by 128 tiles: Stages<Tile<u8, Shape2<3, 16>>, 2>",
        "256..280 sums: SharedArray<u32, 6>",
        "280..304 by 8 full: Stages<Barrier, 3>",
    ];
    assert_eq!(notes, wanted);
}

#[test]
fn same_kernel_gives_same_text() {
    let first = ptx(COPY);
    body("", "printf!(\"between\");");
    assert_eq!(first, ptx(COPY));
}

#[test]
fn version_is_that_of_the_target_and_the_instructions() {
    let arithmetic = "#[tma_kernel(threads = 32)] pub fn k(out: Global<u32>) { out.set(0u32, 1); }";
    let copying = "#[tma_kernel(threads = 32)] pub fn k() { bulk_commit_group(); }";
    for (source, target, version) in [
        (arithmetic, Target::Sm90, "7.8"),
        (copying, Target::Sm90, "8.0"),
        (arithmetic, Target::Sm90a, "8.0"),
        (copying, Target::Sm100a, "8.6"),
        (copying, Target::Sm120a, "8.7"),
    ] {
        has(&ptx_for(source, target), &[&format!(".version {version}\n.target {target}\n")]);
    }
}

#[test]
fn loads_name_the_blocks_own_memory_where_they_can() {
    for (target, space) in [(Target::Sm90, "cluster"), (Target::Sm100a, "cta"), (Target::Sm120a, "cta")] {
        has(&ptx_for(COPY, target), &[&format!("tensor.2d.shared::{space}.global.tile.mbarrier")]);
    }
}

#[test]
fn coordinates_are_innermost_first() {
    let text = body(
        "map: TensorMap<Tile<u8, Shape5<1, 1, 1, 1, 16>>>, a: u32, b: u32, c: u32, d: u32, e: u32",
        "let tile: Tile<u8, Shape5<1, 1, 1, 1, 16>> = shared(); map.store([a, b, c, d, e], tile);",
    );
    let register = |index| {
        let (_, rest) = text.split_once("ld.param.b32 \t").expect("a parameter");
        let loads = std::iter::once(rest).chain(rest.split("ld.param.b32 \t").skip(1));
        let wanted = format!("[kernel_param_{index}]");
        let line = loads.filter_map(|rest| rest.lines().next()).find(|line| line.contains(&wanted));
        line.and_then(|line| line.split(',').next()).expect("the parameter's register").to_owned()
    };
    let coordinates: Vec<_> = (1..=5).rev().map(register).collect();
    has(&text, &["cp.async.bulk.tensor.5d.global.shared::cta", &format!("{{{}}}]", coordinates.join(", "))]);
}

/// Returns the byte that PTX ISA, "Swizzling Modes", maps `offset` to.
fn swizzled(span: u32, offset: u32) -> u32 {
    let (row, chunk) = (offset / 128, offset / 16 % 8);
    let moved = match span {
        32 => chunk ^ (row & 1),
        64 => chunk ^ (row & 3),
        128 => chunk ^ (row & 7),
        _ => chunk,
    };
    row * 128 + moved * 16 + offset % 16
}

#[test]
fn elements_are_where_the_copy_engine_puts_them() {
    for (span, swizzle) in [(0, "NoSwizzle"), (32, "Swizzle32"), (64, "Swizzle64"), (128, "Swizzle128")] {
        // Rows as long as the span, and shorter rows.
        for row_bytes in [span.max(32), 16, 32.min(span.max(16))] {
            for (row, column) in [(0, 1), (1, 0), (5, 7), (9, 3), (13, 6), (31, 5)] {
                let text = body(
                    "value: u16",
                    &format!(
                        "let tile: Tile<u16, Shape2<32, {}>, {swizzle}> = shared();
                         tile.set([{row}u32, {column}u32], value);",
                        row_bytes / 2
                    ),
                );
                let place = swizzled(span, row * row_bytes.max(span) + column * 2);
                has(&text, &[&format!("[tma_shared+{place}], ")]);
            }
        }
    }
}

#[test]
fn stages_are_apart_by_their_alignment() {
    let text = body(
        "value: u8",
        "let tiles: Stages<Tile<u8, Shape1<16>>, 3> = shared(); tiles[2u32].set([1u32], value);",
    );
    has(&text, &["[tma_shared+257], "]);
}

#[test]
fn ranges_end_where_rusts_do() {
    let count = |range: &str| format!("let mut answer = 0u32; for _i in {range} {{ answer += 1; }}");
    computes(&count("0..=255u8"), 256);
    computes(&count("(250..255u8).step_by(3)"), 2);
    computes(&count("(100..=127i8).step_by(9)"), 4);
    computes(&count("-128..127i8"), 255);
    computes(&count("(0..10u8).step_by(300)"), 1);
    computes(&count("5..5"), 0);
    computes(&count("7..=3"), 0);
    computes(&count("unroll((0..10).step_by(4))"), 3);
    computes(&count("unroll(250..=255u8)"), 6);
}

#[test]
fn control_flow_goes_where_rusts_does() {
    computes(
        "let mut answer = 0u32; for i in 0..10u32 { if i % 2 == 0 { continue; } if i > 6 { break; } answer += i; }",
        9,
    );
    computes(
        "let mut answer = 0u32; for i in unroll(0..10u32) { if i == 3 { continue; } if i == 5 { break; } answer += i; }",
        7,
    );
    computes("let mut answer = 1u32; while answer < 100 { answer *= 3; }", 243);
    computes("let mut answer = 0u32; loop { answer += 7; if answer > 30 { break; } }", 35);
    computes(
        "let mut answer = 0u32;
         for i in -2..4i32 { match i { -2 => answer += 1, 0..=1 => answer += 10, 3 | -1 => answer += 100, _ => answer += 1000 } }",
        1221,
    );
}

#[test]
fn integers_wrap_and_shift_modulo_the_width() {
    computes("let mut x = 250u8; for _i in 0..10u32 { x += 1; } let answer = x as u32;", 4);
    computes("let mut s = 30u32; for _i in 0..5u32 { s += 1; } let answer = 1u32 << s;", 8);
    computes("let mut x = -128i8; for _i in 0..1u32 { x = -x; } let answer = x as i32 as u32;", 0xffff_ff80);
    computes(
        "let mut x = -7i32; for _i in 0..1u32 { x = x / 2 + x % 4; } let answer = x as u32;",
        -6i32 as u32,
    );
    computes(
        "let mut d = 1i32; for _i in 0..2u32 { d -= 1; } let answer = (-2147483648i32 / d) as u32;",
        0x8000_0000,
    );
}

#[test]
fn division_by_zero_deletes_nothing() {
    let text =
        body("out: Global<i32>, a: i32, b: i32", "if b == 0 { out.set(0u32, 77); } out.set(1u32, a / b);");
    has(&text, &["div.s32", "], 77;"]);
}

#[test]
fn float_operations_are_rounded_one_by_one() {
    let text = body(
        "out: Global<f32>, a: f32, b: f32",
        "out.set(0u32, a * b + a); out.set(1u32, a / b); out.set(2u32, sqrt(a)); out.set(3u32, recip(a));",
    );
    has(&text, &["mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32", "rcp.rn.f32"]);
    has_not(&text, &["fma", "ftz", "approx"]);
}

#[test]
fn functions_become_their_instructions() {
    let text = body(
        "out: Global<f32>, a: f32, b: f32",
        "out.set(0u32, fma(a, b, a)); out.set(1u32, rsqrt(a)); out.set(2u32, exp2(a)); out.set(3u32, log2(a));
         out.set(4u32, min(a, b)); out.set(5u32, max(a, b)); out.set(6u32, abs(a)); out.set(7u32, exp2_ftz(b));",
    );
    has(
        &text,
        &[
            "fma.rn.f32",
            "rsqrt.approx.f32",
            "ex2.approx.f32",
            "ex2.approx.ftz.f32",
            "lg2.approx.f32",
            "min.f32",
            "max.f32",
            "abs.f32",
        ],
    );
}

#[test]
fn every_scalar_is_stored_and_read() {
    for (scalar, width) in [
        ("bool", 8),
        ("i8", 8),
        ("u8", 8),
        ("i16", 16),
        ("u16", 16),
        ("i32", 32),
        ("u32", 32),
        ("i64", 64),
        ("u64", 64),
        ("usize", 64),
        ("f16", 16),
        ("bf16", 16),
        ("f32", 32),
        ("f64", 64),
        ("e4m3", 8),
        ("e5m2", 8),
    ] {
        let text = body(
            &format!("from: Global<{scalar}>, to: Global<{scalar}>, value: {scalar}"),
            "to.set(0u32, from.get(1u32)); to.set(2u32, value);",
        );
        has(&text, &[&format!("ld.global.b{width}"), &format!("st.global.b{width}"), "ld.param"]);
    }
}

#[test]
fn conversions_are_the_hardwares() {
    for (from, to, wanted) in [
        ("f32", "i32", "cvt.rzi.s32.f32"),
        ("f32", "u64", "cvt.rzi.u64.f32"),
        ("f64", "i32", "cvt.rzi.s32.f64"),
        ("f32", "i8", "min.s32"),
        ("f32", "f16", "cvt.rn.f16.f32"),
        ("f64", "bf16", "cvt.rn.bf16.f64"),
        ("u64", "f32", "cvt.rn.f32.u64"),
        ("i32", "f16", "cvt.rn.f16.s32"),
        ("bf16", "f16", "cvt.rn.f16.f32"),
        ("f32", "e4m3", "cvt.rn.satfinite.e4m3x2.f32"),
        ("f16", "e5m2", "cvt.rn.satfinite.e5m2x2.f32"),
        ("e4m3", "f32", "cvt.rn.f16x2.e4m3x2"),
        ("e5m2", "f64", "cvt.rn.f16x2.e5m2x2"),
    ] {
        let text =
            body(&format!("out: Global<{to}>, a: {from}"), &format!("out.set(0u32, cast::<{to}>(a));"));
        has(&text, &[wanted]);
    }
}

#[test]
fn unrolled_arrays_are_in_registers() {
    let text = body(
        "from: Global<f32>, to: Global<f32>, n: u32",
        "let mut sums = [0.0f32; 64];
         for i in 0..n { for j in unroll(0..64usize) { sums[j] += from.get(i) * (j as f32); } }
         for j in unroll(0..64usize) { to.set(j, sums[j]); }",
    );
    has_not(&text, &[".local"]);
}

#[test]
fn indices_into_global_memory_are_checked() {
    let text = body("out: Global<u32>, i: u64", "out.set(i, 1);");
    let message: Vec<_> = b"index out of bounds of `out`".iter().map(u8::to_string).collect();
    has(&text, &[".extern .func __assertfail", "call.uni __assertfail", &message.join(", ")]);
}

#[test]
fn printing_passes_what_c_expects() {
    let text = body(
        "x: f32, i: i8, l: u64, b: bool",
        "printf!(\"{} {:.3} {} {:x} {:8} {} 100%\\n\", x, x, i, i, l, b);",
    );
    let format: Vec<_> = b"%g %.3f %d %x %8llu %s 100%%\n".iter().map(u8::to_string).collect();
    has(&text, &["vprintf", &format.join(", "), "st.local", "cvt.f64.f32"]);
}

#[test]
fn errors_carry_their_code() {
    let error = crate::backend::BackendError::Unchecked("nothing".to_owned());
    let text = crate::Failure::Backend(error).to_string();
    assert!(text.starts_with("TMA0902: a checked kernel has nothing"), "{text}");
}

#[test]
fn names_that_ptx_cannot_have_are_spelt_otherwise() {
    for (name, symbol) in [
        ("r#type", "type"),
        ("größe", "gr_uf6__udf_e"),
        ("tma_shared", "tma_shared_"),
        ("vprintf", "vprintf_"),
        ("__assertfail", "__assertfail_"),
        ("WARP_SZ", "WARP_SZ_"),
    ] {
        let text = ptx(&format!(
            "#[tma_kernel(threads = 32)]\nfn {name}(out: Global<u32>) {{\nlet all: SharedArray<u32, 4> = shared();\n\
             all.set(0, out.get(0));\nprintf!(\"{{}}\", all.get(1));\n}}"
        ));
        has(
            &text,
            &[
                &format!(".entry {symbol}("),
                ".extern .shared .align 16 .b8 tma_shared[]",
                "call.uni __assertfail",
                "vprintf, ",
            ],
        );
        assert!(text.is_ascii(), "ptxas takes nothing else: {text}");
    }
}

#[test]
fn a_step_of_zero_stops_the_grid() {
    let steps = |step: &str| {
        let statement = format!("for i in (0..9u32).step_by({step}) {{ all.set(i, 1); }}");
        body("n: u32", &format!("let all: SharedArray<u32, 9> = shared();\n{statement}"))
    };
    has(&steps("n as usize"), &["__assertfail"]);
    for never_zero in ["2", "grid_dim().x as usize", "(n as usize + 1)"] {
        has_not(&steps(never_zero), &["__assertfail"]);
    }
}

#[test]
fn checked_kernels_test_what_is_not_known() {
    let kernel = |option: &str, at: &str| {
        ptx(&format!(
            "#[tma_kernel(threads = 32{option})]\npub fn k(dst: TensorMap<Tile<f32, Shape2<8, 32>>>, n: i32) {{\n\
             let tile: Tile<f32, Shape2<8, 32>> = shared();\ndst.reduce_add({at}, tile);\n}}"
        ))
    };
    has(&kernel(", checked", "[n, n]"), &["__assertfail", "cp.reduce.async"]);
    has_not(&kernel(", checked", "[8, 32]"), &["__assertfail"]);
    has_not(&kernel("", "[n, n]"), &["__assertfail"]);
}

#[test]
fn checked_kernels_test_indices_that_are_not_known() {
    let kernel = |option: &str, statement: &str| {
        ptx(&format!(
            "#[tma_kernel(threads = 32{option})]\npub fn k(n: u32, m: i32) {{\n\
             let tiles: Stages<Tile<u32, Shape2<8, 32>>, 2> = shared();\nlet row: SharedArray<u32, 4> = shared();\n\
             let mut sums = [0u32; 4];\n{statement}\nrow.set(3, sums[0]);\n}}"
        ))
    };
    for (unknown, known) in [
        ("tiles[0].set([n, 3], 1);", "tiles[1].set([7u32, 31], 1);"),
        ("tiles[0].set([3, m], 1);", "tiles[1].set([7, 31], m as u32);"),
        ("tiles[n].set([3, 3], 1);", "for i in unroll(0..2u32) { tiles[i].set([3, 3], 1); }"),
        ("row.set(n, 1);", "for i in unroll(0..4u32) { row.set(i, 1); }"),
        ("sums[n as usize] = row.get(3);", "for i in unroll(0..4usize) { sums[i] = row.get(3); }"),
        ("named_barrier_sync(n, 32);", "named_barrier_sync(15, 32);"),
        ("named_barrier_sync(1, n);", "named_barrier_sync(1, 64);"),
    ] {
        has(&kernel(", checked", unknown), &["__assertfail"]);
        has_not(&kernel("", unknown), &["__assertfail"]);
        has_not(&kernel(", checked", known), &["__assertfail"]);
    }
}

#[test]
fn interleaved_coordinates_are_tested_and_counted_in_pixels() {
    let kernel = |at: &str| {
        ptx(&format!(
            "#[tma_kernel(threads = 32)]\npub fn k(dst: TensorMap<Tile<f16, Shape3<2, 1, 64>, Interleave16>>, n: u32) {{\n\
             let tile: Tile<f16, Shape3<2, 1, 64>, Interleave16> = shared();\ndst.store([0, 3, {at}], tile);\n}}"
        ))
    };
    has(&kernel("n"), &["__assertfail"]);
    has_not(&kernel("8 * n"), &["__assertfail"]);
    // 5 pixels of 8 elements; slice 3, image 0.
    has(&kernel("40"), &["mov.b32 \t%r1, 5;", "{%r1, %r2, %r3}"]);
}
