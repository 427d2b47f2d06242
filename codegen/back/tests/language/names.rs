//! Names have the meaning that they have for rustc.

use super::{body, ir, module, refused};

/// A module's item hides a word of the same name, as in rustc.
#[test]
fn items_of_the_module_hide_the_vocabulary() {
    let of_module = module(
        "#[tma_device] fn min(a: u32, b: u32) -> u32 { a + b }\ntype u8 = u64;\nconst r#shared: u32 = 4;",
        "let x: u8 = u8::MAX; out.set(0, min(n, self::min(shared, self::shared)) + x as u32);",
    );
    assert!(of_module.contains("v2 = (p0 + v1)") && of_module.contains("v0 = 8u32"), "{of_module}");
    // The low 32 bits of 2^64 - 1.
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

/// An argument has its meaning where it is written, and the alias in the module.
#[test]
fn aliases_have_parameters() {
    let text = ir("#[tma_module] mod m {
         const N: u32 = 8;
         type Wide<const ROWS: u32> = Shape2<ROWS, 64>;
         type Stage<T, const ROWS: u32, W> = Tile<T, Wide<ROWS>, W>;
         type Small<T, W> = Stage<T, N, W>;
         type Ring<T, const STAGES: u32> = Stages<Stage<T, STAGES, Swizzle128>, STAGES>;
         type Sum<const M: u32> = Accumulator<f32, 64, M>;
         type List<T, const LEN: usize> = [T; LEN];
         #[tma_device]
         fn rows<const M: u32>(tile: Stage<f16, M, NoSwizzle>) -> u32 {
             let more: Stage<f16, M, NoSwizzle> = shared();
             tile.rows() + more.rows()
         }
         #[tma_kernel(threads = 128, instances(a = <f16, Swizzle128, 24>))]
         fn k<T: TileElement, W: Swizzle, const N: u32>(out: Global<u32>, map: TensorMap<Stage<T, N, W>>) {
             let ring: Ring<T, N> = shared();
             let tile: Tile<f16, Wide<N>> = shared();
             let small: Small<T, W> = shared();
             let list: List<u32, 2> = [0; 2];
             let sum = Sum::<N>::zero();
             out.set(list[0] + sum.len() as u32, ring[0].rows() + rows(tile) + small.rows());
         } }");
    for part in [
        "map: TensorMap<Tile<f16, Shape2<24, 64>, Swizzle128>>",
        "Stages<Tile<f16, Shape2<24, 64>, Swizzle128>, 24>",
        "Tile<f16, Shape2<24, 64>>",
        "Tile<f16, Shape2<8, 64>, Swizzle128>",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn aliases_have_as_many_arguments_as_parameters() {
    let refused = |used: &str| {
        refused(&format!(
            "#[tma_module] mod m {{
             type Stage<T, const N: u32> = Tile<T, Shape2<N, 64>>;
             #[tma_kernel(threads = 32)]
             fn k(n: u32, out: Global<u32>) {{ let tile: {used} = shared(); out.set(n, tile.rows()); }} }}"
        ))
    };
    for (used, message) in [
        (
            "Stage<f32>",
            "TMA0104: `Stage` takes 2 generic arguments, but 1 was supplied\nhelp: write `Stage<T, N>`\n",
        ),
        (
            "Stage",
            "TMA0104: `Stage` takes 2 generic arguments, but 0 were supplied\nhelp: write `Stage<T, N>`\n",
        ),
        ("Stage<8, f32>", "TMA0004: expected a type"),
        ("Stage<f32, n>", "TMA01"),
        ("Stage<f32, -1>", "TMA0109: "),
        ("Stage<Barrier, 8>", "TMA0004: expected a scalar type, found `Barrier`"),
    ] {
        let errors = refused(used);
        assert!(errors.starts_with(message), "{used}:\n{errors}");
    }
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

#[test]
fn a_type_in_angle_brackets_decides() {
    let wide = body("out.set(0, (min::<u64>(1, 2) << 40) as u32);");
    assert_eq!(wide, body("out.set(0, (min(1u64, 2u64) << 40) as u32);"));
}

/// A method that takes a reference could be another trait's that takes the value: the test of rustc
/// reports each of them; see `expand/methods.rs`.
#[test]
fn a_kernel_that_rustc_refuses_uses_every_method_that_takes_a_reference() {
    let refused = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/rustc/tests/ui/refused/");
    let said = ["methods_around.stderr", "methods_around_warps.stderr"]
        .map(|file| std::fs::read_to_string(format!("{refused}{file}")).unwrap())
        .concat();
    let lang = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tma-runtime/src/lang");
    let mut methods = Vec::new();
    for file in files(lang.as_ref()) {
        let source = std::fs::read_to_string(file).unwrap();
        let declared =
            source.lines().filter_map(|line| line.trim().strip_prefix("pub fn ")?.split_once("(&"));
        let names =
            declared.filter(|(_, rest)| rest.contains("self")).filter_map(|(name, _)| name.split('<').next());
        methods.extend(names.map(str::to_owned));
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

/// rustc checks the name of each word in this file; see `expand/names.rs`.
#[test]
fn a_kernel_that_rustc_sees_uses_every_word() {
    let source = include_str!("../../../../tests/rustc/tests/ui/accepted/every_word.rs");
    let uses = |word: &str| source.split(|c: char| !c.is_alphanumeric() && c != '_').any(|name| name == word);
    let table = include_str!("../../../../tma-runtime/src/lang/mod.rs");
    let words = table
        .lines()
        .filter(|line| line.starts_with("//! | "))
        .flat_map(|row| row.split('`').skip(1).step_by(2));
    // The first row names all scalars in one pair of quotes, and macros have their `!`.
    let words = words.flat_map(|words| words.split_whitespace()).map(|word| word.trim_end_matches('!'));
    let missing: Vec<_> = words.filter(|word| !uses(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
