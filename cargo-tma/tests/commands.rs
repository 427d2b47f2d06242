//! The commands as users call them: their output and exit codes.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use common::{environment, fresh, has, new_package, printed};

#[track_caller]
fn json(folder: &Path, line: &str, code: i32) -> Value {
    serde_json::from_str(&printed(folder, &format!("{line} --format json"), code)).unwrap()
}

const LAUNCH: &str = "--grid 1,2 --buffer random:f32:64x64 --buffer zeros:f32:64x64 --arg f32:2 \
    --arg map:0:f32:extents=64x64:box=32x64 --arg map:1:f32:extents=64x64:box=32x64";

/// The program of the package launches the kernel once, on the simulator if there is no GPU.
fn traces(folder: &Path) {
    has(&printed(folder, "trace scale", 0), &["open ", "scale.trace.json at https://ui.perfetto.dev"]);
    let report = json(folder, "trace scale --out other.json", 0);
    assert_eq!((&report["program_succeeded"], &report["summary"]["kernel"]), (&true.into(), &"scale".into()));
    let waits = report["summary"]["waits"].as_array().expect("waits");
    assert!(waits.iter().any(|wait| wait["waits_for"] == "full"), "{report:#}");
    assert!(folder.join("other.json").exists());
    let drawn = printed(folder, "timeline other.json --rows loads,warp --svg other.svg", 0);
    has(&drawn, &["scale, block (0,0,0)", "  loads ", "copy in flight", "  warp 0", "drawing: other.svg"]);
    assert!(fs::read_to_string(folder.join("other.svg")).unwrap().starts_with("<svg"));
    let rows = json(folder, "timeline other.json --block 1 --rows loads", 0);
    assert_eq!((&rows["unit"], &rows["rows"][0]["name"]), (&"µs".into(), &"loads".into()));
    has(&printed(folder, "timeline other.json --rows gone", 2), &["has no row `gone`; it has warp 0"]);
    has(&printed(folder, "timeline other.json --block 99", 2), &["has no block 99; its blocks are 0 to "]);
    has(&printed(folder, "timeline other.json --from 30 --to 20", 2), &["ends at 20, which is not after 30"]);
    has(&printed(folder, "timeline other.json --from inf", 2), &["must be finite numbers"]);
    has(&printed(folder, "timeline Cargo.toml", 2), &["Cargo.toml is not a timeline"]);
    let never = printed(folder, "trace scale --launch 9", 2);
    has(&never, &["`scale` was not launched 9 times on a stream"]);
}

#[test]
fn a_new_package_passes_its_test_and_is_shown() {
    let folder = new_package("hello-tma");
    let mut test = Command::new(env!("CARGO"));
    environment(test.arg("test"), &folder);
    let output = test.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    has(&out, &["test scale_doubles ... ok"]);
    assert!(!err.contains("warning"), "{err}");

    ptx_and_sass(&folder);
    runs(&folder);
    traces(&folder);

    // The boxes of the map are smaller than the kernel's tiles, so the barrier's bytes never
    // arrive.
    let wrong = LAUNCH.replacen("box=32x64", "box=16x64", 1);
    has(&printed(&folder, &format!("run scale {wrong}"), 1), &["findings: "]);
    let report = json(&folder, &format!("run scale {wrong}"), 1);
    assert!(report["findings"].as_array().is_some_and(|findings| !findings.is_empty()), "{report:#}");

    // A changed source is compiled again. A kernel that the compiler rejects is not shown.
    let source = folder.join("src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    assert!(text.contains("    fence_proxy_async();\n"));
    fs::write(&source, text.replace("    fence_proxy_async();\n", "")).unwrap();
    has(&printed(&folder, "ptx scale", 2), &["TMA0707", "has no kernel that compiles"]);
}

fn ptx_and_sass(folder: &Path) {
    let list = printed(folder, "ptx", 0);
    has(&list, &["scale  sm_90a\n", " registers, no spills\n"]);
    let text = printed(folder, "ptx scale --release", 0);
    has(
        &text,
        &[
            "// src/lib.rs:",
            ": full.wait(0);\n",
            "mbarrier.try_wait",
            ".entry scale(",
            " registers, no spills",
        ],
    );
    assert!(!text.contains(".loc"), "{text}");
    let plain = printed(folder, "ptx scale --release --plain", 0);
    assert!(plain.contains("\t.loc\t") && !plain.contains("full.wait"), "{plain}");
    let data = json(folder, "ptx scale --release", 0);
    assert_eq!((&data[0]["kernel"], &data[0]["ptx"]), (&"scale".into(), &plain.as_str().into()));
    assert!(data[0]["ptxas"]["registers"].as_u64().is_some_and(|registers| registers > 8), "{data:#}");

    let text = printed(folder, "sass scale --release", 0);
    has(
        &text,
        &["UTMALDG.2D", "UTMASTG.2D", "EXIT ;", ": src.load(tile, at, full);\n", " registers, no spills"],
    );
    let data = json(folder, "sass scale --release", 0);
    let lines = data[0]["sass"].as_array().unwrap();
    let load =
        lines.iter().find(|line| line["text"].as_str().is_some_and(|text| text.contains("UTMALDG"))).unwrap();
    assert!(load["source"].as_str().is_some_and(|place| place.starts_with("src/lib.rs:")), "{load}");

    let error = printed(folder, "ptx scael", 2);
    has(&error, &["error: there is no kernel `scael`; available: scale"]);
    has(&printed(folder, "ptx -p nobody", 2), &["no package `nobody`; it has: hello-tma"]);
    has(
        &printed(folder, "doctor", 0),
        &["this package: hello-tma compiles its kernels", "LLVM 22: ", "ptxas: "],
    );
}

fn runs(folder: &Path) {
    let text = printed(folder, &format!("run scale {LAUNCH} --show 1:3 --trace trace.json"), 0);
    has(&text, &["no findings", "buffer 1: 4096 of f32", "tensor load", "shared-memory bank conflicts"]);
    let trace: Value = serde_json::from_str(&fs::read_to_string(folder.join("trace.json")).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().is_some_and(|events| !events.is_empty()));
    let rows = json(folder, "timeline trace.json", 0);
    assert_eq!((&rows["unit"], &rows["rows"][0]["name"]), (&"steps".into(), &"warp 0".into()));
    let report = json(folder, &format!("run scale {LAUNCH} --show 1:3"), 0);
    assert_eq!(report["findings"], Value::Array(vec![]));
    assert_eq!(report["buffers"][0]["elements"].as_array().map(Vec::len), Some(3));
    has(&printed(folder, "run scale --grid 1 --arg f32:2", 2), &["error: ", "scale"]);
}

#[test]
fn a_package_is_not_made_over_another_or_with_a_bad_name() {
    let folder = fresh("taken");
    printed(&folder, "new twice", 0);
    has(&printed(&folder, "new twice", 2), &["twice already exists"]);
    has(&printed(&folder, "new 2fast", 2), &["`2fast` is not a valid package name"]);
    has(&printed(&folder, "new other --project .", 2), &["is not a clone of the project"]);
    assert!(!folder.join("other").exists());
    let made = json(&folder, "new third", 0);
    assert_eq!(made["name"], "third");
}

#[test]
fn errors_are_explained_and_layouts_drawn() {
    let folder = fresh("explain");
    has(&printed(&folder, "explain TMA0203", 0), &["TMA0203: ", "swizzle"]);
    assert_eq!(json(&folder, "explain 203", 0)["code"], "TMA0203");
    has(&printed(&folder, "explain", 0), &["TMA0001", "TMA0903"]);
    has(&printed(&folder, "explain TMA9999", 2), &["error: there is no error `TMA9999`"]);

    has(
        &printed(&folder, "layout tile f16 8x64 --swizzle 128 --svg a.svg", 0),
        &["Swizzle128", "drawing: a.svg"],
    );
    assert!(fs::read_to_string(folder.join("a.svg")).unwrap().starts_with("<svg"));
    assert!(json(&folder, "layout accumulator f32 64x16 --warp 0", 0)["svg"].is_string());
    has(&printed(&folder, "layout operand f16 64x60", 2), &["TMA0549"]);
}

#[test]
fn colours_are_for_terminals_unless_requested() {
    let folder = fresh("colours");
    assert!(!printed(&folder, "explain 203", 0).contains('\x1b'));
    assert!(printed(&folder, "explain 203 --color always", 0).contains("\x1b[1m"));
}

#[test]
fn the_doctor_names_missing_tools_and_advice() {
    let folder = fresh("doctor");
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_cargo-tma"));
    doctor.args(["tma", "doctor"]).current_dir(&folder);
    doctor.env("TMA_LLVM", "/nonexistent").env_remove("TMA_PTXAS").env("XDG_CACHE_HOME", &folder);
    let output = doctor.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let data: Value =
        serde_json::from_slice(&doctor.args(["--format", "json"]).output().unwrap().stdout).unwrap();
    let llvm = data.as_array().unwrap().iter().find(|check| check["what"] == "LLVM 22").unwrap();
    assert_eq!(llvm["state"], "missing");
    assert!(llvm["advice"].as_str().is_some_and(|advice| text.contains(advice)), "{llvm}");
    has(&text, &["no  LLVM 22: TMA0903: `TMA_LLVM` is `/nonexistent`", "    -> ", "Something is missing"]);
}

#[test]
fn setup_reports_installed_tools_and_is_idempotent() {
    let folder = fresh("setup");
    let text = printed(&folder, "setup", 0);
    has(&text, &["libLLVM", "ptxas", "nvdisasm"]);
    let data = json(&folder, "setup", 0);
    assert!(data["llvm"].as_str().is_some_and(|path| path.contains("libLLVM")), "{data}");
    assert!(data["ptxas"]["release"].as_str().is_some_and(|release| release.contains('.')), "{data}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
