//! Checked kernels: their tests, their messages, and which builds check the kernels that do not
//! decide it themselves.
#![cfg(feature = "llvm")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tma_codegen::{Build, Checks, Target, compile_with};
use tma_tests::differential::device;

const FILE: &str = "src/kernels.rs";

/// Returns a kernel of one thread that takes `words` and writes `out`.
fn kernel(option: &str, body: &str) -> String {
    let head = format!("#[tma_kernel(threads = 1{option})]\nfn k(words: Global<u64>, out: Global<u64>) {{");
    format!("{head}\n    {body}\n}}\n")
}

/// Returns the value that the kernel writes to `out[0]`, or the message that it stops with.
fn run(source: &str, checks: Checks, words: &[u64]) -> Result<u64, String> {
    let compiled = compile_with(FILE, source, Target::default(), checks);
    let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
    device::run(&compiled.kernels[0], 1, words, 1).map(|out| out[0])
}

/// Whether the kernel can stop for other reasons than the bounds of slices, which every kernel
/// tests, judged by its PTX.
fn tests_more(option: &str, body: &str, checks: Checks) -> bool {
    let count = |option: &str, body: &str, checks| {
        let compiled = compile_with(FILE, &kernel(option, body), Target::default(), checks);
        compiled.unwrap_or_else(|failure| panic!("{failure}")).kernels[0]
            .text
            .matches("call.uni __assertfail")
            .count()
    };
    count(option, body, checks) > count(", unchecked", body, Checks::Off)
}

/// The tests that only checked kernels have, each in the third line of a kernel, at the column of
/// rustc's own panic; with words for which it fails, and its message.
const TESTED: &[(&str, usize, [u64; 2], &str)] = &[
    ("out.set(0, words.get(0) / words.get(1));", 16, [7, 0], "attempt to divide by zero"),
    (
        "out.set(0, words.get(0) % words.get(1));",
        16,
        [7, 0],
        "attempt to calculate the remainder with a divisor of zero",
    ),
    (
        "out.set(0, (words.get(0) as i32 / words.get(1) as i32) as u64);",
        17,
        [i32::MIN as u64, u64::MAX],
        "attempt to divide with overflow",
    ),
    (
        "out.set(0, (words.get(0) as i8 % words.get(1) as i8) as u64);",
        17,
        [0x80, 0xff],
        "attempt to calculate the remainder with overflow",
    ),
    ("out.set(0, (words.get(0) as i64 / -1) as u64);", 17, [1 << 63, 0], "attempt to divide with overflow"),
    (
        "let mut a = words.get(0) as u16; a /= words.get(1) as u16; out.set(0, a as u64);",
        38,
        [3, 1 << 16],
        "attempt to divide by zero",
    ),
    ("out.set(0, words.get(0) + words.get(1));", 16, [u64::MAX, 1], "attempt to add with overflow"),
    ("out.set(0, words.get(0).div_ceil(words.get(1)));", 16, [3, 0], "attempt to divide by zero"),
    ("assume(words.get(0) < 5); out.set(0, 1);", 5, [7, 0], "an assumption does not hold"),
    // The value is unused, but is computed nevertheless.
    ("words.get(0) / words.get(1); out.set(0, 0);", 5, [3, 0], "attempt to divide by zero"),
    ("let _ = words.get(0) % words.get(1); out.set(0, 0);", 13, [3, 0], "remainder with a divisor of zero"),
    (
        "let a = [words.get(0); 3]; out.set(0, a[words.get(1) as usize]);",
        45,
        [3, 3],
        "index out of bounds of `a`, 3 elements",
    ),
    (
        "let a: SharedArray<u64, 8> = shared(); a.set(words.get(0) as u32, 1); out.set(0, 1);",
        50,
        [8, 0],
        "index out of bounds of `a`, 8 elements",
    ),
];

#[test]
fn kernels_are_checked_where_they_or_the_build_say_so() {
    for (body, ..) in TESTED {
        for (option, checks, wanted) in [
            ("", Checks::On, true),
            ("", Checks::Off, false),
            (", checked", Checks::Off, true),
            (", unchecked", Checks::On, false),
        ] {
            assert_eq!(
                tests_more(option, body, checks),
                wanted,
                "`{option}` with checks {}: {body}",
                checks.name()
            );
        }
    }
}

#[test]
fn a_checked_kernel_names_the_place_and_says_what_rustc_says() {
    for (body, column, words, message) in TESTED {
        let said = run(&kernel("", body), Checks::On, words).expect_err(body);
        assert!(
            said.contains(&format!("{FILE}:3:{column} in k: ")) && said.contains(message),
            "{body}\n{said}"
        );
    }
}

/// The tests of a warp for the parts of tiles that it loads and stores.
#[test]
fn parts_of_tiles_are_in_the_tile_and_begin_with_a_chunk() {
    let source = |body: &str| {
        format!(
            "#[tma_kernel(threads = 32)]\nfn k(words: Global<u64>, out: Global<u64>) {{\n\
             let tile: Tile<f16, Shape2<32, 64>, Swizzle128> = shared();\n\
             for column in 0..64 {{ tile.set([lane_idx(), column], f16::ZERO); }}\nsync_warp();\n\
             let at = words.get(0) as u32;\n{body}\nout.set(0, 1);\n}}"
        )
    };
    for (body, right, wrong, message) in [
        (
            "let x = WarpLeft::<f16, 16, 16>::load(tile, [at, 0]); \
             let y = WarpRight::<f16, 8, 16>::load(tile, [0, 0]); \
             let mut sum = WarpAccumulator::<f32, 16, 8>::zero(); sum.mma_sync(x, y); \
             sync_warp(); sum.store(tile, [0, 0]);",
            13,
            17,
            "index out of bounds of `tile`, 16 of 32 rows",
        ),
        (
            "let x = WarpLeft::<f16, 16, 16>::load(tile.t(), [at, 0]); \
             let y = WarpRight::<f16, 8, 16>::load(tile, [0, 0]); \
             let mut sum = WarpAccumulator::<f32, 16, 8>::zero(); sum.mma_sync(x, y); \
             sync_warp(); sum.store(tile, [0, 0]);",
            48,
            20,
            "a part of a tile does not begin at a multiple of 8",
        ),
        (
            "let sum = WarpAccumulator::<f32, 16, 8>::zero(); sum.store(tile, [0, at]);",
            56,
            64,
            "index out of bounds of `tile`, 8 of 64 columns",
        ),
    ] {
        let run = |at: u64| {
            let compiled = compile_with(FILE, &source(body), Target::default(), Checks::On);
            let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
            device::run(&compiled.kernels[0], 32, &[at], 1).map(|out| out[0])
        };
        assert_eq!(run(right), Ok(1), "{body}");
        let said = run(wrong).expect_err(body);
        assert!(said.contains(message), "{body}\n{said}");
    }
}

#[test]
fn what_is_right_passes_the_tests() {
    for (body, words, wanted) in [
        (TESTED[0].0, [7, 2], 3),
        (TESTED[1].0, [7, 4], 3),
        (TESTED[2].0, [i32::MIN as u64, 1], i64::from(i32::MIN) as u64),
        (TESTED[2].0, [7, u64::MAX], -7_i64 as u64),
        (TESTED[3].0, [0x81, 0xff], 0),
        (TESTED[4].0, [5, 0], -5_i64 as u64),
        (TESTED[6].0, [u64::MAX, 0], u64::MAX),
        (TESTED[7].0, [7, 2], 4),
        (TESTED[8].0, [4, 0], 1),
        (TESTED[11].0, [3, 2], 3),
    ] {
        for checks in [Checks::On, Checks::Off] {
            assert_eq!(run(&kernel("", body), checks, &words), Ok(wanted), "{body}");
        }
    }
    // The right side is evaluated only if it is needed, as in Rust.
    let guarded = "let b = words.get(1); out.set(0, (b != 0 && words.get(0) / b == 3) as u64);";
    assert_eq!(run(&kernel("", guarded), Checks::On, &[7, 0]), Ok(0));
    assert_eq!(run(&kernel("", guarded), Checks::On, &[7, 2]), Ok(1));
}

/// Returns a new folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("checks").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(folder.join("src")).unwrap();
    folder
}

#[test]
fn the_other_kind_is_compiled_anew() {
    let package = folder("both_kinds");
    fs::write(package.join("src/lib.rs"), kernel("", TESTED[0].0)).unwrap();
    let build = |checks| {
        let build = Build::new().checks(checks);
        build.compile(&package, &[package.join("src")], &package.join("out")).unwrap()
    };
    let text = || {
        let mut files = fs::read_dir(package.join("out/tma")).unwrap();
        let text = fs::read_to_string(files.next().unwrap().unwrap().path()).unwrap();
        assert!(files.next().is_none(), "the macro asks for one name, whatever the build");
        text
    };
    for (checks, asserts) in [(Checks::Off, 2), (Checks::On, 3)] {
        assert_eq!(build(checks).compiled, ["k"]);
        assert_eq!(build(checks).reused, ["k"]);
        assert_eq!(text().matches("call.uni __assertfail").count(), asserts + 1);
    }
}

/// Cargo against rustc: the build script's decision, and `cfg!(debug_assertions)` in the
/// package.
#[test]
fn the_build_script_decides_as_rustc_does() {
    let package = folder("profiles");
    let decision = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codegen/back/src/build/checks.rs");
    let script = format!(
        "#[derive(Debug)] enum Checks {{ On, Off }}\n#[path = {decision:?}] mod checks;\n\
         fn main() {{ println!(\"cargo::rustc-env=CHECKS={{:?}}\", checks::of_this_build()); }}\n"
    );
    let manifest = "[package]\nname = \"profiles\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                    [profile.plain]\ninherits = \"dev\"\ndebug-assertions = false\n\
                    [profile.careful]\ninherits = \"release\"\ndebug-assertions = true\n[workspace]\n";
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::write(package.join("build.rs"), script).unwrap();
    let program = "fn main() { println!(\"{} {}\", env!(\"CHECKS\"), cfg!(debug_assertions)); }\n";
    fs::write(package.join("src/main.rs"), program).unwrap();

    let run = |profile: &str, flags: Option<&str>| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&package).args(["run", "--quiet", "--offline", "--profile", profile]);
        cargo.env("CARGO_TARGET_DIR", package.join("target"));
        for variable in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_CFG_DEBUG_ASSERTIONS"] {
            cargo.env_remove(variable);
        }
        cargo.envs(flags.map(|flags| ("RUSTFLAGS", flags)));
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for (profile, flags, wanted) in [
        ("dev", None, "On true"),
        ("release", None, "Off false"),
        ("plain", None, "Off false"),
        ("careful", None, "On true"),
        ("dev", Some("-C debug-assertions=off"), "Off false"),
        ("release", Some("-Cdebug-assertions"), "On true"),
    ] {
        assert_eq!(run(profile, flags), wanted, "{profile}, {flags:?}");
    }
}
