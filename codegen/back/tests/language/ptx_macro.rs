//! `ptx!`: its operands and effects in the IR, and forms that are rejected.

use super::{body, ir, refused};

fn kernel(body: &str) -> String {
    format!(
        "#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>, input: Global<u32>, v: Global<u8>) {{\n{body}\n}}"
    )
}

#[test]
fn outputs_are_assigned_after_the_instructions() {
    let found = body("let mut y = 0u32; unsafe { ptx!(\"popc.b32 {y}, {x};\", out y, x = in n + 1) };");
    assert!(
        found.contains("ptx [Text(\"popc.b32 \"), Output(0), Text(\", \"), Input(0), Text(\";\")]"),
        "{found}"
    );
}

#[test]
fn lines_and_braces_are_joined() {
    let found = body(
        "let mut y = n; unsafe { ptx!(\"{{ .reg .b32 t;\", \"add.u32 t, {y}, 1;\", \"mov.b32 {y}, t; }}\", inout y) };",
    );
    assert!(found.contains("{ .reg .b32 t;"), "{found}");
    assert!(found.contains("from 0"), "{found}");
}

#[test]
fn a_write_is_one_of_the_parameter() {
    let written = ir(&kernel("unsafe { ptx!(\"st.global.b32 [{out}], {n};\", in out, in n, writes(out)) };"));
    assert!(written.contains("out: Global<u32> written"), "{written}");
    let read = "let mut x = 0u32; unsafe { ptx!(\"ld.global.nc.b32 {x}, [{input}];\", out x, in input, reads(input)) };";
    assert!(!ir(&kernel(read)).contains("written"));
}

#[test]
fn mistakes_are_refused() {
    for (body, want) in [
        ("let mut y = 0u32; unsafe { ptx!(\"mov.b32 {y}, {z};\", out y) };", "refers to `z`"),
        ("unsafe { ptx!(\"mov.b32 t, 1;\", in n) };", "does not use the operand `n`"),
        ("unsafe { ptx!(\"{n} {n}\", in n, n = in 1u32) };", "declared twice"),
        ("unsafe { ptx!(\"{n\", in n) };", "unclosed `{`"),
        ("unsafe { ptx!(\"{n}\", into n) };", "malformed `ptx!`"),
        ("unsafe { ptx!(\"{n}\", n = into n) };", "expected one of: `in`, `out`, `inout`"),
        ("unsafe { ptx!(\"[{out}]\", in out) };", "does not say what it accesses"),
        ("unsafe { ptx!(\"{n}\", in n, reads(n)) };", "is not in memory"),
        ("unsafe { ptx!(\"{x}\", x = in v.get(0)) };", "cannot be an operand of `ptx!`"),
        ("let y = 0u32; unsafe { ptx!(\"mov.b32 {y}, 1;\", out y) };", "`y`"),
        ("unsafe { out.set(0, 1) };", "`unsafe` blocks are not supported"),
    ] {
        let found = refused(&kernel(body));
        assert!(found.contains(want), "{body}: {found}");
    }
}
