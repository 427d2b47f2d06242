//! No input makes the compiler panic, overflow its stack or run forever: input that is too large is
//! an error.

use tma_codegen::Failure;
use tma_codegen::diag::{Code, Diagnostic};

fn kernel(body: &str) -> String {
    format!("#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>) {{\n{body}\n}}\n")
}

/// Returns the codes of a source's errors; none if it is accepted.
#[track_caller]
fn codes(source: &str) -> Vec<Code> {
    match tma_codegen::check("hostile.rs", source) {
        Ok(_) => vec![],
        Err(Failure::Rules { errors, .. }) => errors.iter().map(Diagnostic::code).collect(),
        Err(other) => panic!("{other}"),
    }
}

const DEEP: usize = 10_000;

#[test]
fn what_nests_too_deeply_is_refused() {
    let repeated = |before: &str, inner: &str, after: &str| {
        format!("let x = {}{inner}{};", before.repeat(DEEP), after.repeat(DEEP))
    };
    let bodies = [
        repeated("(", "n", ")"),
        repeated("[", "n", "]"),
        repeated("{", "n", "}"),
        repeated("- ", "n", ""),
        repeated("!", "n", ""),
        repeated("n + ", "n", ""),
        repeated("n && ", "n", ""),
        repeated("", "n", " as u32"),
        repeated("", "n", ".max(1)"),
        repeated("", "n", "[0]"),
        repeated("max(", "n", ", 1)"),
        repeated("if n == 0 { 1 } else ", "{ n }", ""),
        repeated("if n == 0 { ", "n", " } else { 1 }"),
        repeated("return ", "n", ""),
        format!("let x: {}u32{} = n;", "Stages<".repeat(DEEP), ", 1>".repeat(DEEP)),
        format!("match n {{ {}1{} => {{}} _ => {{}} }}", "(".repeat(DEEP), ")".repeat(DEEP)),
        format!("{}{}", "loop { ".repeat(DEEP), "}".repeat(DEEP)),
    ];
    for body in bodies {
        assert_eq!(codes(&kernel(&body)), [Code::UnsupportedExpression], "{}..", &body[..40]);
    }
}

#[test]
fn what_is_long_is_not_deep() {
    let long = |part: &str| kernel(&part.repeat(2_000));
    for part in ["if n == 0 { out.set(0, 1); }\n", "match n { 0 => {} -1..=5 if n => {} _ => {} }\n"] {
        assert!(!codes(&long(part)).contains(&Code::UnsupportedExpression), "{part}");
    }
    let arms: String = (0..2_000).map(|i| format!("{i} => {{ out.set({i}, 1); }}\n")).collect();
    assert_eq!(codes(&kernel(&format!("match n {{ {arms} _ => {{}} }}"))), []);
    assert_eq!(codes(&kernel(&format!("out.set(0, {}n);", "n + ".repeat(100)))), []);
    assert_eq!(codes(&kernel(&format!("{} {{}}", "if n == 0 {} else ".repeat(60)))), []);
    let nested = format!("{} out.set(0, n); {}", "if n > 0 { ".repeat(30), "}".repeat(30));
    assert_eq!(codes(&kernel(&nested)), []);
}

#[test]
fn chains_through_constants_and_functions_end() {
    let constants: String = (0..1_000).map(|i| format!("const C{i}: u32 = C{} + 1;\n", i + 1)).collect();
    let module = |items: &str, body: &str| format!("#[tma_module]\nmod m {{\n{items}\n{}}}", kernel(body));
    let found = codes(&module(&format!("{constants} const C1000: u32 = 1;"), "out.set(0, C0);"));
    assert!(found.contains(&Code::UnsupportedExpression), "{found:?}");
    let functions: String =
        (0..1_000).map(|i| format!("#[tma_device] fn f{i}(x: u32) -> u32 {{ f{}(x) }}\n", i + 1)).collect();
    let last = "#[tma_device] fn f1000(x: u32) -> u32 { x }";
    let found = codes(&module(&format!("{functions}{last}"), "out.set(0, f0(n));"));
    assert!(found.contains(&Code::UnsupportedExpression), "{found:?}");
    let aliases = "type A = B; type B = A;";
    assert!(!codes(&module(aliases, "let x: A = n; out.set(0, x);")).contains(&Code::Recursion));
}

/// Each is found before anything is unrolled or inlined, so that only counting takes time.
#[test]
fn what_grows_too_large_is_refused() {
    let loops = |turns: &[u32], inner: &str| {
        let heads: String =
            turns.iter().enumerate().map(|(i, n)| format!("for i{i} in unroll(0..{n}u32) {{ ")).collect();
        kernel(&format!("{heads}{inner}{}", "}".repeat(turns.len())))
    };
    let set = "out.set(i0, n);";
    assert_eq!(codes(&loops(&[1024], set)), []);
    assert_eq!(codes(&loops(&[1024, 8], set)), []);
    assert_eq!(codes(&loops(&[1024, 1024], set)), [Code::KernelSize]);
    assert_eq!(codes(&loops(&[1024, 1024, 1024], set)), [Code::KernelSize]);
    assert_eq!(codes(&loops(&[1024; 20], set)), [Code::KernelSize]);
    // A loop that is not unrolled contains its body once.
    assert_eq!(codes(&loops(&[16, 16], "for j in 0..1000000000u32 { out.set(j, n); }")), []);
    assert_eq!(codes(&loops(&[1024, 1024], "")), []);
    // Each one by itself is small enough.
    assert_eq!(
        codes(&kernel(&"for i in unroll(0..1024u32) { out.set(i, n); }".repeat(40))),
        [Code::KernelSize]
    );
    assert_eq!(
        codes(&loops(&[1024], "let x = [0u32; 1024]; out.set(0, x[n as usize]);")),
        [Code::KernelSize]
    );
}

/// Each instance by itself is small enough.
#[test]
fn instances_that_are_too_large_together_are_refused() {
    let instances = |count: usize, turns: u32| {
        let list: Vec<_> = (0..count).map(|value| value.to_string()).collect();
        codes(&format!(
            "#[tma_kernel(threads = 32, instances(V in [{}]))]\n\
             fn k<const V: u32>(out: Global<u32>) {{\n\
             for i in unroll(0..{turns}u32) {{ for j in unroll(0..16u32) {{ out.set(i * V, j); }} }}\n}}",
            list.join(", ")
        ))
    };
    assert_eq!(instances(256, 16), []);
    assert_eq!(instances(2, 1000), []);
    assert_eq!(instances(256, 1000), [Code::KernelSize]);
}

#[test]
fn functions_that_double_the_kernel_are_refused() {
    let levels = |count: usize, body: &str| {
        let functions: String = (1..=count)
            .map(|i| format!("#[tma_device] fn f{i}(x: u32) -> u32 {{ f{0}(x) + f{0}(x) }}\n", i - 1))
            .collect();
        let first = format!("#[tma_device] fn f0(x: u32) -> u32 {{ {body} x + 1 }}\n");
        let call = kernel(&format!("out.set(0, f{count}(n));"));
        codes(&format!("#[tma_module]\nmod m {{\n{first}{functions}{call}}}"))
    };
    assert_eq!(levels(6, ""), []);
    assert!(levels(20, "").contains(&Code::KernelSize));
    assert!(levels(60, "").contains(&Code::KernelSize));
    // A few calls of a long function.
    assert!(levels(10, &"let x = x * 3;".repeat(500)).contains(&Code::KernelSize));
}

#[test]
fn numbers_at_the_edge_are_judged() {
    let huge = "Tile<f64, Shape5<4294967295, 4294967295, 4294967295, 4294967295, 4294967295>>";
    for (body, code) in [
        ("let x: i32 = 170141183460469231731687303715884105727 + 0; out.set(x, 1);", Code::LiteralRange),
        ("let x = 340282366920938463463374607431768211456;", Code::LiteralRange),
        ("let x: i64 = -9223372036854775809;", Code::LiteralRange),
        ("let x = [0u64; 4294967295];", Code::UnsupportedType),
        ("let x = [0u64; 4294967296];", Code::LiteralRange),
        ("for i in unroll(0..4294967295u32) { out.set(i, 1); }", Code::UnsupportedExpression),
        ("for i in (0..4).step_by(0) { out.set(i, 1); }", Code::ConstantValue),
        ("let x: Stages<Barrier, 4294967295> = shared();", Code::SharedBudget),
        ("let x: Stages<Stages<Barrier, 4294967295>, 4294967295> = shared();", Code::SharedBudget),
        ("let x: SharedArray<f32, 0> = shared();", Code::IndexRange),
        (&format!("let x: {huge} = shared();"), Code::SharedBudget),
        (&format!("let x: {huge} = shared(); out.set(0, x.bytes());"), Code::LiteralRange),
        (&format!("let x: Stages<{huge}, 4294967295> = shared();"), Code::SharedBudget),
        ("let mut x = []; x = [x; 0];", Code::TypeMismatch),
        ("printf!(\"{:4096}\", n);", Code::Format),
        ("printf!(\"{:.99999}\", 1.0f32);", Code::Format),
        ("printf!(\"{:99999999999}\", n);", Code::Format),
    ] {
        let found = codes(&kernel(body));
        assert!(found.contains(&code), "{body}: {found:?}");
    }
    assert_eq!(codes(&kernel("printf!(\"{:4095}\", n);")), []);
}

#[test]
fn a_constant_as_wide_as_the_compiler_counts_is_refused() {
    let source =
        format!("#[tma_module] mod m {{ const A: i32 = {} + 1; {} }}", i128::MAX, kernel("out.set(A, 1);"));
    assert_eq!(codes(&source), [Code::LiteralRange]);
}
