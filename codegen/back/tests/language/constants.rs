//! Constants, and the `const fn` that compute them.

use super::{means, module, refused};

const ITEMS: &str = "use tma_runtime::prelude::*;
     const fn stages(bytes: u32) -> u32 { if bytes > 32768 { 4 } else { 6 } }
     const fn log(x: u32) -> u32 { let mut n = 0; let mut x = x; while x > 1 { x /= 2; n += 1; } n }
     const fn kind(x: i32) -> u32 { match x { 0 => 10, 1..=4 => 20, _ => twice(15) } }
     const fn twice(x: u32) -> u32 { return x * 2; }
     const fn odd(limit: u32) -> u32 {
         let (mut sum, mut i) = (0, 0);
         loop { i += 1; if i > limit { break; } if i % 2 == 0 { continue; } sum += i; }
         sum
     }
     const fn table() -> [u32; 4] { let mut all = [1; 4]; let mut i = 1; while i < 4 { all[i] = all[i - 1] * 3; i += 1; } all }
     const fn checked(x: u32) -> u32 { assert!(x < 8); 64 / x }
     const fn endless() -> u32 { let mut x = 1; while x > 0 { x = 1; } x }
     const fn pair(x: u32) -> (u32, u32) { (x, x + 1) }
     const fn last<const N: usize>(xs: [u32; N]) -> u32 { xs[N - 1] }
     #[tma_device] const fn marked(x: u32) -> u32 { x + 5 }
     #[tma_device] fn plain(x: u32) -> u32 { x }
     const TABLE: [u32; 4] = table();
     const SUM: u32 = TABLE[2] + stages(40_000);
     type Row = Tile<u32, Shape2<{ stages(0) }, { 8 * twice(2) }>>;";

/// Returns the value of a constant of type `u32`.
#[track_caller]
fn value(constant: &str) -> String {
    let text = module(&format!("{ITEMS} const X: u32 = {constant};"), "out.set(0, X);");
    let (_, value) = text.split_once("global.set p1 0i32 ").unwrap_or_else(|| panic!("{text}"));
    value.trim().to_owned()
}

#[test]
fn a_const_fn_is_evaluated() {
    assert_eq!(value("stages(40_000)"), "4u32");
    assert_eq!(value("stages(4) + 1"), "7u32");
    assert_eq!(value("log(1000)"), "9u32");
    assert_eq!(value("kind(0) + kind(3) + kind(-1)"), "60u32");
    assert_eq!(value("odd(9)"), "25u32");
    assert_eq!(value("TABLE[3]"), "27u32");
    assert_eq!(value("SUM"), "13u32");
    assert_eq!(value("checked(4)"), "16u32");
    assert_eq!(value("pair(3).1"), "4u32");
    assert_eq!(value("last([1, 2, 7])"), "7u32");
    assert_eq!(value("marked(2)"), "7u32");
    assert_eq!(value("{ let x = 3; let y = x * 2; y + 1 }"), "7u32");
    assert_eq!(value("if SUM > 3 { 1 } else { 2 }"), "1u32");
    assert_eq!(value("{ let [a, b, ..] = TABLE; a + b }"), "4u32");
    assert_eq!(value("u32::MAX - 1 + 1"), "4294967295u32");
    assert_eq!(value("u32::MAX.wrapping_add(2)"), "1u32");
    // What `&&` does not evaluate may overflow.
    assert_eq!(value("if SUM < 13 && SUM - 14 < 5 { 1 } else { 2 }"), "2u32");
}

/// The arithmetic of constants and generics in a kernel.
#[test]
fn known_overflow_in_a_kernel_is_refused() {
    let kernel = |body: &str| {
        format!(
            "#[tma_module] mod m {{ {ITEMS} #[tma_device] fn before(x: u32) -> u32 {{ x - 1 }}
             #[tma_device] fn stores(out: Global<u32>, x: u32) -> bool {{ out.set(1, x); x > 3 }}
             #[tma_kernel(threads = 32, instances(a = <1>, b = <2>))]
             fn k<const N: u32>(out: Global<u32>) {{ {body} }} }}"
        )
    };
    for (body, words) in [
        ("out.set(0, N - 2);", "attempt to subtract with overflow (in the instance `a`)"),
        ("out.set(0, before(0));", "attempt to subtract with overflow"),
        ("let x = 200u8; out.set(0, (x + 100) as u32);", "attempt to add with overflow"),
        ("let x = -(-128i8); out.set(0, x as u32);", "attempt to negate with overflow"),
        ("out.set(0, N * u32::MAX);", "attempt to multiply with overflow (in the instance `b`)"),
        (
            "if N > 0 && stores(out, 1) { out.set(0, N - 2); }",
            "attempt to subtract with overflow (in the instance `a`)",
        ),
    ] {
        let errors = refused(&kernel(body));
        let wanted = format!("TMA0111: cannot evaluate this expression: {words}");
        assert!(errors.contains(&wanted), "{body}\n{errors}");
        assert_eq!(errors.matches("TMA").count(), 1, "{errors}");
    }
    for body in [
        "if N > 1 { out.set(0, N - 2); }",
        "if N > 1 && out.get(0) < N - 2 { out.set(0, 1); }",
        "if N > 1 && thread_idx().x < N - 2 { out.set(0, N - 2); }",
        "if N == 1 || out.get(0) < N - 2 { out.set(0, 1); }",
        "if N > 1 && stores(out, 1) { out.set(0, N - 2); }",
        "if N > 1 && stores(out, N - 2) { out.set(0, N - 2); }",
        "if N == 1 || stores(out, 1) { out.set(0, N); } else { out.set(0, N - 2); }",
        "if stores(out, 1) && N > 1 && stores(out, 2) { out.set(0, N - 2); }",
        "out.set(0, N.wrapping_sub(2));",
    ] {
        let checked = tma_codegen::check("language.rs", &kernel(body));
        assert!(checked.is_ok(), "{body}");
    }
}

/// A right side that a constant on the left makes irrelevant is neither evaluated nor compiled.
#[test]
fn a_constant_left_side_decides() {
    let kernel = |condition: &str| {
        module(
            "#[tma_device] fn stores(out: Global<u32>, x: u32) -> bool { out.set(1, x); x > 3 }
             const N: u32 = 1;",
            &format!("if {condition} {{ out.set(2, n); }} else {{ out.set(3, n); }}"),
        )
    };
    for (condition, stored) in [("N > 1 && stores(out, n)", 3), ("N == 1 || stores(out, n)", 2)] {
        let text = kernel(condition);
        assert_eq!(text.matches("global.set").count(), 1, "{text}");
        assert!(text.contains(&format!("global.set p1 {stored}i32 p0")), "{text}");
    }
    assert_eq!(kernel("N == 1 && stores(out, n)").matches("global.set").count(), 3);
}

/// Wherever a constant may be, one may be computed.
#[test]
fn constants_are_computed_everywhere() {
    let text = module(
        &format!(
            "{ITEMS} #[tma_device] fn repeat<const N: u32>(x: u32) -> u32 {{ x * N }}
             #[tma_kernel(threads = 32 * stages(40_000), instances(N in [few = {{ twice(1) }}, many = {{ log(1 << 20) }}]))]
             fn g<const N: u32>(out: Global<u32>) {{ out.set(0, N); }}"
        ),
        "let tile: Row = shared(); let all = [n; stages(0) as usize]; out.set(0, repeat::<{ twice(4) }>(all[2]) + tile.bytes());",
    );
    assert!(text.contains("Shape2<6, 32>"), "{text}");
    assert!(text.contains("[u32; 6]"), "{text}");
    assert!(text.contains("* 8u32"), "{text}");
    assert!(text.contains("kernel g::few threads [128, 1, 1]"), "{text}");
    assert!(text.contains("global.set p0 0i32 20u32"), "{text}");
}

/// In a kernel, a `const fn` is a device function.
#[test]
fn kernels_call_a_const_fn() {
    let text = module(ITEMS, "out.set(0, stages(n)); out.set(1, marked(n));");
    assert!(text.contains("(p0 > 32768u32)") && text.contains("+ 5u32"), "{text}");
    // Nothing of a constant is left in the kernel.
    let text = module(ITEMS, "let x = [0u32; stages(0) as usize];");
    assert_eq!(text.matches("  local ").count(), 1, "{text}");
}

#[track_caller]
fn refuses(constant: &str, message: &str) {
    let errors = refused(&format!(
        "#[tma_module] mod m {{ {ITEMS} const X: u32 = {constant}; #[tma_kernel(threads = 32, instances(a = <1>, b = <2>))] fn k<const N: u32>(out: Global<u32>) {{ out.set(N, X); }} }}"
    ));
    assert!(errors.contains(message), "{errors}");
    assert_eq!(errors.matches("TMA").count(), 1, "{errors}");
}

#[test]
fn a_constant_must_have_a_value() {
    refuses("endless()", "TMA0111: cannot evaluate this constant: it takes more than 100000 steps");
    refuses("loop {}", "it takes more than 100000 steps");
    refuses("checked(9)", "TMA0111: cannot evaluate this constant: the assertion fails");
    refuses("checked(0)", "TMA0111: cannot evaluate this constant: division by zero");
    refuses("u32::MAX + 1", "TMA0111: cannot evaluate this constant: attempt to add with overflow");
    refuses("twice(1 << 31)", "TMA0111: cannot evaluate this constant: attempt to multiply with overflow");
    refuses("SUM - 14", "TMA0111: cannot evaluate this constant: attempt to subtract with overflow");
    refuses("-(i32::MIN) as u32", "TMA0111: cannot evaluate this constant: attempt to negate with overflow");
    refuses("1 << (SUM + 19)", "TMA0111: cannot evaluate this constant: attempt to shift left with overflow");
    refuses(
        "(i8::MIN / -1) as u32",
        "TMA0111: cannot evaluate this constant: attempt to divide with overflow",
    );
    refuses("16u32.pow(8)", "TMA0111: cannot evaluate this constant: attempt to multiply with overflow");
    refuses("TABLE[4]", "TMA0111: cannot evaluate this constant: index out of bounds");
    refuses("plain(3)", "TMA0105: a constant cannot call `plain`");
    refuses("thread_idx().x", "TMA0105: this must be a constant");
    refuses("stages(thread_idx().x)", "TMA0105: this must be a constant");
    refuses("{ for _ in 0..2 {} 1 }", "TMA0105: this must be a constant");
    refuses("stages(nothing)", "`nothing`");
    refuses("stages(1.0)", "expected `u32`, found a float");
}

#[test]
fn the_size_of_a_scalar_is_a_constant() {
    means("out.set(n, size_of::<f64>() as u32);", "global.set p1 p0 8u32");
    for (call, message) in [
        ("size_of()", "`size_of` needs a scalar type"),
        ("size_of::<Barrier>()", "`size_of` needs a scalar type, not `Barrier`"),
        ("size_of::<[f32; 4]>()", "`size_of` needs a scalar type, not `[f32; 4]`"),
    ] {
        let source =
            format!("#[tma_kernel(threads = 32)]\nfn k(out: Global<u32>) {{ out.set(0, {call} as u32); }}");
        let found = refused(&source);
        assert!(found.contains(message), "{call}\n{found}");
    }
}
