//! What names mean: what rustc takes them to mean.

use super::{body, module, refused};

/// A module's item of a word's name is meant, as it is in rustc.
#[test]
fn items_of_the_module_hide_the_vocabulary() {
    let of_module = module(
        "#[tma_device] fn min(a: u32, b: u32) -> u32 { a + b }\ntype u8 = u64;\nconst r#shared: u32 = 4;",
        "let x: u8 = u8::MAX; out.set(0, min(n, self::min(shared, self::shared)) + x as u32);",
    );
    assert!(of_module.contains("v2 = (p0 + v1)") && of_module.contains("v0 = 8u32"), "{of_module}");
    // The least 32 bits of 2^64 - 1.
    assert!(of_module.contains("(v2 + 4294967295u32)"), "{of_module}");
}

#[test]
fn aliases_stand_for_shapes_and_swizzles() {
    let of_module = module(
        "type Rows = Shape2<8, 64>; type Swizzle64 = Swizzle128; type Again = Rows;",
        "let tile: Tile<f16, Again, Swizzle64> = shared(); out.set(0, tile.rows());",
    );
    assert!(of_module.contains("Tile<f16, Shape2<8, 64>, Swizzle128>"), "{of_module}");
}

#[test]
fn raw_names_are_the_same_names() {
    assert_eq!(body("let x = 1; let r#x = 2; out.set(0, x);"), body("let x = 1; let x = 2; out.set(0, x);"));
    assert_eq!(body("out.set(0, r#min(n, 2));"), body("out.set(0, min(n, 2));"));
    assert_eq!(
        body("let r#type = n; printf!(\"{type}\");"),
        body("let r#type = n; printf!(\"{}\", r#type);")
    );
}

#[test]
fn words_have_paths() {
    for path in
        ["tma_runtime::lang::min", "::tma_runtime::prelude::min", "lang::min", "super::min", "self::min"]
    {
        assert_eq!(body(&format!("out.set(0, {path}(n, 2));")), body("out.set(0, min(n, 2));"), "{path}");
    }
    assert_eq!(
        body("out.set(0, core::primitive::u32::MAX as core::primitive::u32);"),
        body("out.set(0, u32::MAX as u32);")
    );
}

#[track_caller]
fn says(items: &str, body: &str, want: &str) {
    let said = refused(&format!(
        "#[tma_module]\nmod m {{\n{items}\n#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>) {{\n{body}\n}}\n}}"
    ));
    assert!(said.contains(want), "{want:?} is not in:\n{said}");
    assert_eq!(said.matches("TMA").count(), 1, "{said}");
}

#[test]
fn items_of_the_host_are_refused_at_their_names() {
    for (items, body, want) in [
        (
            "fn min(a: u32, b: u32) -> u32 { a }",
            "out.set(0, min(n, 1));",
            "TMA0120: `min` is a function of the host",
        ),
        ("fn other(a: u32) -> u32 { a }", "out.set(0, other(n));", "write `#[tma_device]` on it"),
        ("#[tma_kernel(threads = 1)] fn j() {}", "j();", "a kernel is launched, not called"),
        ("", "k(n, out);", "TMA0120: `k` is this kernel"),
        ("struct Barrier;", "let b: Barrier = shared();", "TMA0120: `Barrier` is a struct of the host"),
        ("enum f16 {}", "let x = f16::from_f32(1.0);", "TMA0120: `f16` is an enum of the host"),
        ("struct u8(u32);", "let x = n as u8;", "TMA0120: `u8` is a struct of the host"),
        (
            "trait Swizzle128 {}",
            "let t: Tile<f16, Shape2<8, 64>, Swizzle128> = shared();",
            "`Swizzle128` is a trait",
        ),
        (
            "union Shape1 { x: u32 }",
            "let t: Tile<f16, Shape1<64>> = shared();",
            "`Shape1` is a union of the host",
        ),
        ("static N: u32 = 4;", "out.set(0, N);", "TMA0120: `N` is a `static`"),
        (
            "macro_rules! assert { () => {} }",
            "assert!(n > 1);",
            "TMA0120: `assert` is a macro of this module",
        ),
        (
            "fn unroll(x: u32) -> u32 { x }",
            "for i in unroll(0..4u32) { out.set(i, 1); }",
            "TMA0120: `unroll`",
        ),
        ("fn shared(x: u32) -> u32 { x }", "let b: Barrier = shared();", "TMA0120: `shared`"),
    ] {
        says(items, body, want);
    }
}

#[test]
fn variables_are_not_called_and_paths_are_read_whole() {
    for (body, want) in [
        ("let min = n; out.set(0, min(n, 1));", "TMA0120: `min` is a variable here"),
        ("let unroll = n; for i in unroll(0..4u32) { out.set(i, 1); }", "TMA0002: `for` runs over a range"),
        ("let MAX = 3; out.set(0, <u32>::MAX);", "TMA0121: kernels do not have `<T>::name`"),
        ("out.set(0, <u32>::min(n, 1));", "TMA0121: kernels do not have `<T>::name`"),
        ("out.set(0, std::cmp::max(n, 1));", "TMA0121: `std::cmp::max` is not of the kernel language"),
        ("out.set(0, u32::min(n, 1));", "TMA0101: `u32` has no function `min`"),
        ("out.set(0, super::other(n));", "TMA0121: `super::other` is not of the kernel language"),
        ("let b: std::sync::Barrier = shared();", "TMA0121: `std::sync::Barrier`"),
        ("out.set(0, super::n);", "TMA0101: kernels do not know names by path"),
        (
            "let four = 4; out.set(0, match n { four => 1, _ => 2 });",
            "TMA0003: kernels do not have this pattern",
        ),
    ] {
        says("", body, want);
    }
    says("#[tma_device] fn f(x: u32) -> u32 { x }", "out.set(0, super::f(n));", "TMA0121: `super::f`");
    says(
        "type Row = SharedArray<u32, 4>;",
        "let r: super::Row = shared();",
        "TMA0004: `Row` is not a kernel's type",
    );
}

#[test]
fn a_type_in_angle_brackets_decides() {
    let wide = body("out.set(0, (min::<u64>(1, 2) << 40) as u32);");
    assert_eq!(wide, body("out.set(0, (min(1u64, 2u64) << 40) as u32);"));
}

/// What is refused at its declaration is not reported again where it is used, nor with advice to
/// write what is there.
#[test]
fn a_refused_closure_is_reported_once() {
    let said = refused(
        "#[tma_kernel(threads = 32)]\nfn k(out: Global<u32>) { let f = |x: u32| x; out.set(0, f(1)); }",
    );
    assert_eq!(said.matches("TMA").count(), 1, "{said}");
    assert!(said.contains("kernels do not have closures"), "{said}");
}

/// A method that takes a reference could be another's that takes the value: rustc says so of each
/// there; see `expand/methods.rs`.
#[test]
fn a_kernel_that_rustc_refuses_uses_every_method_that_takes_a_reference() {
    let said = include_str!("../../../tests/tests/ui/refused/methods_around.stderr");
    let lang = concat!(env!("CARGO_MANIFEST_DIR"), "/../tma-runtime/src/lang");
    let mut methods = Vec::new();
    for file in files(lang.as_ref()) {
        let source = std::fs::read_to_string(file).unwrap();
        let declared =
            source.lines().filter_map(|line| line.trim().strip_prefix("pub fn ")?.split_once("(&"));
        methods.extend(declared.filter(|(_, rest)| rest.contains("self")).map(|(name, _)| name.to_owned()));
    }
    assert!(methods.iter().any(|name| name == "flip"), "{methods:?}");
    for name in &methods {
        let types = methods.iter().filter(|other| *other == name).count();
        let refused = said.matches(&format!("multiple `{name}` found")).count();
        assert!(refused >= types, "of {types} methods `{name}` {refused} are refused");
    }
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// rustc proves the name of each word there; see `expand/names.rs`.
#[test]
fn a_kernel_that_rustc_sees_uses_every_word() {
    let source = include_str!("../../../tests/tests/ui/accepted/every_word.rs");
    let uses = |word: &str| source.split(|c: char| !c.is_alphanumeric() && c != '_').any(|name| name == word);
    let table = include_str!("../../../tma-runtime/src/lang/mod.rs");
    let words = table
        .lines()
        .filter(|line| line.starts_with("//! | "))
        .flat_map(|row| row.split('`').skip(1).step_by(2));
    // The first row names all scalars in one pair of quotes, and macros have their `!`.
    let words = words.flat_map(|words| words.split_whitespace()).map(|word| word.trim_end_matches('!'));
    let missing: Vec<_> = words.filter(|word| !uses(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
