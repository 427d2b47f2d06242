//! `cargo tma profile` with a program in place of `ncu`, which prints what the real one has
//! printed.

#![cfg(unix)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use common::{environment, fresh, has, root};

/// Writes a program that prints the recorded pages of a kernel, and does `more` if it is not asked
/// for a page.
fn nsight(folder: &Path, kernel: &str, more: &str) -> PathBuf {
    let recorded = root().join("cargo-tma/src/commands/profile/recorded").join(kernel);
    let recorded = recorded.display();
    let path = folder.join("ncu");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*raw*) cat '{recorded}-raw.csv' ;;\n*source,*|*cuda,sass*) cat \
         '{recorded}-source.csv' ;;\n*) {more} ;;\nesac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn profile(folder: &Path, ncu: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-tma"));
    command.arg("tma").arg("profile").args(line.split_whitespace());
    environment(&mut command, folder);
    command.env("TMA_NCU", ncu).output().unwrap()
}

/// Creates a package with an empty program, which builds at once.
fn program(name: &str) -> PathBuf {
    let folder = fresh(name);
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), "fn main() {}\n").unwrap();
    fs::write(folder.join("Cargo.toml"), "[package]\nname = \"nothing\"\nedition = \"2024\"\n[workspace]\n")
        .unwrap();
    folder
}

#[test]
fn a_report_is_shown_as_text_and_json() {
    let folder = fresh("profile-report");
    let ncu = nsight(&folder, "gemm", "exit 1");
    let output = profile(&folder, &ncu, "plain --report gemm.ncu-rep");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    has(
        &String::from_utf8_lossy(&output.stdout),
        &[
            "plain::bf16_t128x256_cluster2x1_nt on NVIDIA H200: 173.6 µs",
            "waits for: multiplications ",
            "src/gemm/dense.rs:15",
        ],
    );
    let output = profile(&folder, &ncu, "plain --report gemm.ncu-rep --format json");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["launch"]["entry"], "plain__bf16_t128x256_cluster2x1_nt");
    assert!(json["launch"]["tensor_core_percent"].as_f64().is_some_and(|share| share > 90.0), "{json:#}");
    let lines = json["lines"].as_array().unwrap();
    let reasons = |line: u64| &lines.iter().find(|of| of["line"] == line).unwrap()["stalls"];
    assert!(
        reasons(17).as_array().unwrap().iter().any(|stall| stall["waits_for"] == "the phase of an mbarrier")
    );

    let output = profile(&folder, &ncu, "scale --report gemm.ncu-rep");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    has(&String::from_utf8_lossy(&output.stderr), &["gemm.ncu-rep has no launch of `scale`"]);
}

#[test]
fn only_the_program_is_run_by_ncu() {
    let folder = program("profile-run");
    // The program's path and arguments are the last words, behind those of `ncu`.
    let ncu = nsight(
        &folder,
        "tma_copy_pipelined",
        "echo \"$@\" > words; while [ $# -gt 0 ]; do [ \"$1\" = --export ] && : > \"$2\"; shift; done",
    );
    let output = profile(&folder, &ncu, "tma_copy_pipelined::deep --launch 3 -- --quiet -- --rows 7");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    has(
        &String::from_utf8_lossy(&output.stdout),
        &["tma_copy_pipelined::deep on NVIDIA H200: 5.6 µs", "tma_copy_pipelined-deep.ncu-rep"],
    );
    let words = fs::read_to_string(folder.join("words")).unwrap();
    has(
        &words,
        &[
            "--kernel-name regex:^tma_copy_pipelined__deep(__.*)?_?$ --launch-skip 2 --launch-count 1",
            "/nothing --rows 7\n",
        ],
    );
}

#[test]
fn what_is_missing_is_said() {
    let folder = program("profile-missing");
    let said = |ncu: &Path| {
        let output = profile(&folder, ncu, "scale -- --quiet");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    has(
        &said(Path::new("/nonexistent/ncu")),
        &["error: TMA0907: TMA_NCU is `/nonexistent/ncu`, which is not a file"],
    );
    let log = "while [ $# -gt 0 ]; do [ \"$1\" = --log-file ] && echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' > \"$2\"; shift; done";
    has(&said(&nsight(&folder, "gemm", log)), &["error: TMA0908: this user may not read the counters"]);
    has(&said(&nsight(&folder, "gemm", ":")), &["error: `scale` was not launched 1 times on a GPU"]);
}
