//! `docs/getting-started.md`, followed step by step: a package next to a folder `tma` with this
//! repository.
#![cfg(feature = "llvm")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tma_tests::sources::{CodeBlock, code_blocks};

/// The lines in `Cargo.toml` by which the page optimises the simulator and the compiler of kernels.
const OPTIMISED: &str = r#"[profile.dev.package.ptx-sim]
opt-level = 3
debug = "line-tables-only"
[profile.dev.package.tma-model]
opt-level = 3
[profile.dev.package.tma-front]
opt-level = 1
[profile.dev.package.tma-protocol]
opt-level = 1
[profile.dev.package.tma-codegen]
opt-level = 1"#;

/// The hint of a program without these lines.
const HINT: &str = "hint: the simulator was compiled without optimisation";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the blocks of a page in one language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = code_blocks(&text).into_iter().filter(|block: &CodeBlock| block.info == language);
    blocks.map(|block| block.code).collect()
}

/// Returns the one block of a page in `language` that contains `text`.
#[track_caller]
fn block(page: &str, language: &str, text: &str) -> String {
    let mut found = blocks(page, language).into_iter().filter(|block| block.contains(text));
    let block = found.next().unwrap_or_else(|| panic!("{page} has no `{text}`"));
    assert_eq!(found.next(), None, "{page} has two blocks with `{text}`");
    block
}

/// Creates the page's package, with the page's files.
fn package() -> PathBuf {
    const PAGE: &str = "docs/getting-started.md";
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // The same settings as in `cargo-tma/tests`, for the same reason.
    fs::create_dir_all(all.join(".cargo")).unwrap();
    let packages = ["tma-front", "tma-protocol", "tma-codegen"];
    let settings =
        packages.map(|package| format!("[profile.dev.package.{package}]\nopt-level = 0\n")).concat();
    fs::write(all.join(".cargo/config.toml"), settings).unwrap();
    let beside = all.join("getting-started");
    let folder = beside.join("hello-tma");
    fs::create_dir_all(folder.join("src")).unwrap();
    if !beside.join("tma").exists() {
        symlink(root().canonicalize().unwrap(), beside.join("tma")).unwrap();
    }
    write_manifest(&folder, &block(PAGE, "toml", "[package]"));
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::write(folder.join("build.rs"), block(PAGE, "rust", "    tma_codegen::build();")).unwrap();
    fs::write(folder.join("src/main.rs"), block(PAGE, "rust", "fn main() -> anyhow::Result<()>")).unwrap();
    folder
}

/// Writes the manifest. The package is inside of this workspace, but is not a member. It names the
/// repository by the same path as the packages of `cargo-tma/tests`, so that their dependencies are
/// compiled once for all.
fn write_manifest(folder: &Path, text: &str) {
    let repository = format!("path = \"{}/", root().canonicalize().unwrap().display());
    let text = text.replace("path = \"../tma/", &repository);
    fs::write(folder.join("Cargo.toml"), format!("{text}\n\n[workspace]\n")).unwrap();
}

/// Runs a command line in `folder`. Returns its standard output and standard error.
#[track_caller]
fn run(folder: &Path, line: &str) -> (String, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder);
    // The environment of a reader's shell, but without network, CUDA and GPU.
    shell.env_remove("OUT_DIR").env_remove("CARGO_TARGET_DIR").env("CUDA_LIBRARY_PATH", "nowhere");
    shell.env_remove("TMA_HINTS").env("CARGO_NET_OFFLINE", "true").env("TMA_DEVICE", "sim");
    // The program is not debugged, and its dependencies compile in half the time.
    shell.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    let output = shell.output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "`{line}` failed:\n{err}");
    (out, err)
}

/// The feature `cuda` is built without CUDA: the path that would name a library to link does not
/// exist.
#[test]
fn the_page_works_as_it_is_written() {
    let folder = package();
    let expected = "ptx-sim: 1000 results as expected\n";

    let command = block("docs/getting-started.md", "sh", "--features cuda");
    let (out, err) = run(&folder, &command);
    assert_eq!(out, expected);
    assert!(!err.contains(HINT), "{err}");

    // The program does not need a driver to start either: it reports that there is none.
    let (said, _) = run(&folder, &format!("TMA_DEVICE=cuda {command} 2>&1 || true"));
    let expected_of_gpu = expected.split_once(": ").unwrap().1;
    let is_missing = said.contains("TMA0601: ") || said.contains("TMA0602: ");
    assert!(is_missing || said.ends_with(expected_of_gpu), "{said}");

    // Without the lines for the simulator the program prints the hint, and only once for two
    // launches.
    let manifest = block("docs/getting-started.md", "toml", "[package]");
    assert!(manifest.contains(OPTIMISED), "{manifest}");
    write_manifest(&folder, &manifest.replace(OPTIMISED, ""));
    let main = block("docs/getting-started.md", "rust", "fn main() -> anyhow::Result<()>");
    let (before, launch) = main.split_once("    axpy::launch").unwrap();
    let (launch, after) = launch.split_once('\n').unwrap();
    let launch = format!("    axpy::launch{launch}\n");
    let again = launch.replace("3.0", "0.0");
    fs::write(folder.join("src/main.rs"), format!("{before}{launch}{again}{after}")).unwrap();
    let (out, err) = run(&folder, "cargo run");
    assert_eq!(out, expected);
    assert_eq!(err.matches(HINT).count(), 1, "{err}");
    for line in OPTIMISED.lines() {
        assert!(err.contains(&format!("      {line}\n")), "{line} is not in:\n{err}");
    }
    let (_, err) = run(&folder, "TMA_HINTS=off cargo run");
    assert!(!err.contains(HINT), "{err}");
}
