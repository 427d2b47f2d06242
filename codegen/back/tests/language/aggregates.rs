//! Structs, tuples and patterns.

use super::{ir, module, refused};

const POINT: &str = "use tma_runtime::prelude::*; \
     #[derive(Clone, Copy)] struct P { row: u32, column: u32 } \
     #[derive(Clone, Copy)] struct Pair(u32, f32); \
     #[derive(Clone, Copy)] struct Nested { p: P, pair: Pair, w: [u32; 2] } \
     #[tma_device] impl P { \
         fn new(row: u32) -> Self { Self { row, column: Self::two() } } \
         fn two() -> u32 { 2 } \
         fn sum(self) -> u32 { self.row + self.column } \
         fn scaled(&self, by: u32) -> u32 { self.row * by } \
         fn step(&mut self, by: u32) { self.row += by; } \
         fn reset(&mut self) { *self = P { row: 0, column: self.row }; } }";

/// Returns the statements of a kernel, without names and declarations.
#[track_caller]
fn statements(body: &str) -> String {
    let text = module(POINT, body);
    let declared =
        |line: &&str| ["  param ", "  shared ", "  local "].iter().any(|word| line.starts_with(word));
    text.lines().skip(1).filter(|line| !declared(line)).map(|line| format!("{line}\n")).collect()
}

/// Compares a kernel with one that has a variable for each part.
#[track_caller]
fn same(with: &str, without: &str) {
    assert_eq!(statements(with), statements(without));
}

#[test]
fn parts_are_variables() {
    same("let p = P { column: 1, row: n }; out.set(p.row, p.column);", "let row = n; out.set(row, 1);");
    same(
        "let mut p = P { row: n, column: 1 }; p.row += 2; p.column = p.row;",
        "let mut row = n; let mut column = 1; row += 2; column = row;",
    );
    same(
        "let t = (n, (2, n + 1)); out.set(t.0, t.1.1 + t.1.0);",
        "let a = n; let c = n + 1; out.set(a, c + 2);",
    );
    same(
        "let mut q = Nested { p: P { row: n, column: 1 }, pair: Pair(n, 1.0), w: [n, 2] }; q.w[1] += q.p.row;",
        "let mut a = n; let mut b = 1u32; let mut c = n; let mut d = 1.0f32; let mut w = [n, 2]; w[1] += a;",
    );
    same(
        "let p = P { row: n, ..P { row: 1, column: 2 } }; out.set(p.row, p.column);",
        "let row = n; out.set(row, 2);",
    );
}

#[test]
fn copies_are_values() {
    same(
        "let mut p = P { row: n, column: 1 }; let q = p; p.row = 7; out.set(q.row, p.row);",
        "let mut a = n; let mut b = 1u32; let c = a; let d = b; a = 7; out.set(c, a);",
    );
}

/// `p = P { row: p.column, column: p.row }` exchanges the two.
#[test]
fn a_whole_assignment_reads_before_it_writes() {
    let text = statements("let mut p = P { row: n, column: 1 }; p = P { row: p.column, column: p.row };");
    assert_eq!(text, "  v0 = p0\n  v1 = 1u32\n  v2 = v0\n  v0 = v1\n  v1 = v2\n", "{text}");
    let text = statements("let mut a = n; let mut b = 1; (a, b) = (b, a);");
    assert_eq!(text, "  v0 = p0\n  v1 = 1u32\n  v2 = v1\n  v3 = v0\n  v0 = v2\n  v1 = v3\n", "{text}");
    // Parts that stay as they are cost nothing.
    same(
        "let mut p = P { row: n, column: 1 }; p = P { row: p.row + 1, ..p };",
        "let mut row = n; let mut column = 1u32; row = row + 1;",
    );
}

#[test]
fn operands_are_read_in_order() {
    same(
        "let mut p = P { row: n, column: 1 }; let x = p.row + { p.row = 2; 3 };",
        "let mut a = n; let mut b = 1u32; let x = a + { a = 2; 3 };",
    );
    same(
        "let mut t = (n, 1); let u = (t.0, { t.0 = 2; 3 }); out.set(u.0, u.1);",
        "let mut a = n; let mut b = 1; let held = a; a = 2; let c = held; out.set(c, 3);",
    );
}

#[test]
fn patterns() {
    same("let (a, (_, b)) = (n, (1, n + 2)); out.set(a, b);", "let a = n; let b = n + 2; out.set(a, b);");
    same("let (a, .., b) = (n, 1, 2, n); out.set(a, b);", "let a = n; let b = n; out.set(a, b);");
    same(
        "let P { column: c, row } = P { row: n, column: 2 }; out.set(c, row);",
        "let row = n; out.set(2u32, row);",
    );
    same("let Pair(a, ..) = Pair(n, 1.0); out.set(a, a);", "let a = n; out.set(a, a);");
    same("let [a, mut b] = [n, 2]; b += a;", "let a = n; let mut b = 2; b += a;");
    same(
        "let v = [n; 3]; let [a, .., b] = v; out.set(a, b);",
        "let v = [n; 3]; let a = v[0]; let b = v[2]; out.set(a, b);",
    );
    same("let (n, m) = (n + 1, n); out.set(n, m);", "let a = n + 1; let b = n; out.set(a, b);");
}

/// Literals in tuples take their types from their uses.
#[test]
fn types_are_inferred() {
    let text = module(POINT, "let (a, b) = (1, 2.0); let c = a + n; let mut t = (0, 1); t = (n, 2u64);");
    assert!(text.contains("u64"), "{text}");
    let errors = refused(
        "#[tma_kernel(threads = 32)] fn k(n: u32) { let t = (n, 1.0f32); let (a, b): (u32, u32) = t; }",
    );
    assert!(errors.contains("expected `(u32, u32)`, found `(u32, f32)`"), "{errors}");
}

#[test]
fn functions_of_structs_are_inlined() {
    let text =
        statements("let mut p = P::new(n); p.step(3); p.reset(); out.set(p.sum(), p.scaled(2) + P::two());");
    assert!(text.contains("+ 3u32"), "{text}");
    // Methods modify the variable itself.
    let text = statements("let mut q = (P { row: n, column: 1 }, 2); q.0.step(n); out.set(q.0.row, q.1);");
    assert!(text.ends_with("  l0:\n    v0 = (v0 + p0)\n  global.set p1 v0 v2\n"), "{text}");
}

/// A loop or block that is left with a struct assigns its parts where it is left.
#[test]
fn breaks_have_parts() {
    let text = statements(
        "let mut i = 0; \
         let p = loop { i += 1; if i > n { break P { row: i, column: 2 }; } if i > 9 { break P { row: 7, column: n }; } }; \
         out.set(p.row, p.column);",
    );
    for wanted in [
        "      v1 = v0\n      v2 = 2u32\n      break l0\n",
        "      v1 = 7u32\n      v2 = p0\n      break l0\n",
    ] {
        assert!(text.contains(wanted), "{text}");
    }
    let text =
        statements("let (a, b) = 'found: { if n > 3 { break 'found (n, 1); } (2, 3) }; out.set(a, b);");
    let wanted = "      v0 = p0\n      v1 = 1u32\n      leave l0\n    v0 = 2u32\n    v1 = 3u32\n  v2 = v0\n  v3 = v1\n";
    assert!(text.contains(wanted), "{text}");
    let errors = refused(
        "#[tma_kernel(threads = 32)] fn k(n: u32) { let t = loop { if n > 1 { break (n, 1u32); } break (n, 1.0); }; }",
    );
    assert!(errors.contains("expected `(u32, u32)`, found `(u32, a float)`"), "{errors}");
}

/// The elements of an array of structs are variables like fields.
#[test]
fn arrays_have_parts() {
    same(
        "let mut ps = [P { row: n, column: 1 }, P { row: 2, column: n }]; ps[1].row += ps[0].row; ps[0] = ps[1]; \
         out.set(ps[0].row, ps[1].column);",
        "let mut a = n; let mut b = 1u32; let mut c = 2u32; let mut d = n; c += a; a = c; b = d; out.set(a, d);",
    );
    same(
        "let ts: [(u32, u32); 2] = [(n, 1); 2]; let [x, (y, _)] = ts; out.set(x.0, y);",
        "let a = n; let b = n; let c = a; let d = b; out.set(c, d);",
    );
    let text =
        statements("let mut ps = [P::new(n); 2]; ps[1].step(3); let q = ps; out.set(q[1].row, ps[0].sum());");
    assert!(text.contains("+ 3u32"), "{text}");
    let items = &format!(
        "{POINT} const AT: [(u32, u32); 2] = [(3, 4), (5, 6)];
         #[tma_device] fn second(ps: &[P; 2]) -> u32 {{ ps[1].row }}
         #[tma_device] fn change(ps: &mut [P; 2]) {{ ps[0].row = 1; ps[1] = P {{ row: 7, column: 8 }}; }}
         #[tma_device] fn both(n: u32) -> [P; 2] {{ [P {{ row: n, column: 1 }}; 2] }}"
    );
    let text = module(items, "let mut ps = both(n); change(&mut ps); out.set(second(&ps), AT[1].0);");
    assert!(text.contains("5u32"), "{text}");
    for (body, message) in [
        (
            "let ps = [P { row: n, column: 1 }; 2]; out.set(ps[n as usize].row, 1);",
            "this index must be a constant",
        ),
        ("let ps = [P { row: n, column: 1 }; 2]; out.set(ps[2].row, 1);", "index out of bounds"),
        ("let ps = [P { row: n, column: 1 }; 2]; ps[1].row = 2;", "`ps`"),
        ("let ps = [P { row: n, column: 1 }, (1, 2)];", "expected `P`"),
        ("let ps: [P; 3] = [P { row: n, column: 1 }; 2];", "expected `[P; 3]`, found `[P; 2]`"),
        (
            "let mut ps = [P { row: n, column: 1 }; 2]; ps[n as usize] = ps[0];",
            "this index must be a constant",
        ),
        ("let ps = [P { row: n, column: 1 }; 200];", "has at most 256 values, not 400"),
        (
            "let ps = [P { row: n, column: 1 }; 2]; for p in ps { out.set(0, p.row); }",
            "must iterate over a range or a register array",
        ),
    ] {
        let errors = refused(&format!(
            "#[tma_module] mod m {{ {items} #[tma_kernel(threads = 32)] fn k(n: u32, out: Global<u32>) {{ {body} }} }}"
        ));
        assert!(errors.contains(message), "{errors}");
    }
}

/// `==` compares the parts.
#[test]
fn parts_are_compared() {
    same(
        "let a = (n, (1, 2.0)); let b = (2, (n, 1.0)); if a == b { out.set(0, 1); }",
        "let a = n; let b = n; if (a == 2) & (1 == b) & (2.0 == 1.0) { out.set(0, 1); }",
    );
    let derived = "use tma_runtime::prelude::*; \
         #[derive(Clone, Copy, PartialEq)] struct P { row: u32, at: [u32; 2] } \
         #[derive(Clone, Copy)] struct Plain { row: u32 }";
    let text = module(derived, "let p = P { row: n, at: [1, n] }; let q = p; if p != q { out.set(0, 1); }");
    assert!(
        text.contains("if (!(((p0 == p0) & (v0[0usize] == v1[0usize])) & (v0[1usize] == v1[1usize])))"),
        "{text}"
    );
    for (body, message) in [
        ("let p = Plain { row: n }; let same = p == p;", "`Plain` has no operator `==`"),
        ("let p = (Plain { row: n }, 1); let same = p != p;", "`Plain` has no operator `!=`"),
        ("let p = (n, 1); let same = p == (1.0, 1);", "expected `(u32, an integer)`"),
        ("let p = (n, 1); let same = p < p;", "has no operator `<`"),
        ("let b: Barrier = shared(); let p = (n, b); let same = p == p;", "`Barrier` has no operator `==`"),
    ] {
        let errors = refused(&format!(
            "#[tma_module] mod m {{ {derived} #[tma_kernel(threads = 32)] fn k(n: u32) {{ {body} }} }}"
        ));
        assert!(errors.contains(message), "{errors}");
    }
}

/// Each exit of a function assigns the parts of its result, and so does each branch of an `if`.
#[test]
fn results_have_parts() {
    let items = "use tma_runtime::prelude::*; \
         #[tma_device] fn ordered(a: u32, b: u32) -> (u32, u32) { if a > b { return (b, a); } (a, b) }";
    let text = module(items, "let (low, high) = ordered(n, 7); out.set(low, high);");
    assert!(
        text.contains("      v0 = 7u32\n      v1 = p0\n      leave l0\n    v0 = p0\n    v1 = 7u32\n"),
        "{text}"
    );
    let text = statements(
        "let p = P::new(n); let q = if n > 3 { p } else { P { row: 1, ..p } }; out.set(q.row, 1);",
    );
    assert!(text.contains("if (p0 > 3u32)"), "{text}");
}

/// A slice in a struct is the parameter itself, not a copy.
#[test]
fn handles_in_structs_are_the_objects() {
    let items = "use tma_runtime::prelude::*; \
         #[derive(Clone, Copy)] struct View { data: Global<u32>, tile: Tile<f32, Shape2<8, 8>>, first: u32 } \
         #[tma_device] impl View { \
             fn new(data: Global<u32>, tile: Tile<f32, Shape2<8, 8>>) -> View { View { data, tile, first: 0 } } \
             fn put(&self, value: u32) { self.data.set(self.first, value); self.tile.set([0, 0], 1.0); } }";
    let text = module(items, "let tile: Tile<f32, Shape2<8, 8>> = shared(); View::new(out, tile).put(n);");
    assert!(text.contains("global.set p1") && text.contains("s0"), "{text}");
}

/// A variable that holds a reference is an error, and no copy of the value.
#[test]
fn references_are_not_kept() {
    let items = "#[derive(Clone, Copy)] struct P { row: u32 }";
    for body in [
        "let mut q = p; q.row = 1;",
        "let mut q = { p }; q.row = 1;",
        "let q = (p, 1);",
        "let mut y = x; *y = 1;",
        "let mut y = { x }; *y = 1;",
    ] {
        let errors = refused(&format!(
            "#[tma_module] mod m {{ use tma_runtime::prelude::*; {items} \
             #[tma_device] fn f(p: &mut P, x: &mut u32) {{ {body} }} \
             #[tma_kernel(threads = 32)] fn k(n: u32) {{ \
             let mut p = P {{ row: n }}; let mut x = n; f(&mut p, &mut x); }} }}"
        ));
        assert!(errors.contains("TMA0002"), "{body}: {errors}");
    }
}

/// The kernels that the simulator runs, and those of the language reference.
#[test]
fn kernels_with_structs_are_accepted() {
    ir(include_str!("../../../../tests/src/kernels/structs.rs"));
}
