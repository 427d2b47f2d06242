//! `cargo tma check`: its output for right, slow and wrong kernels, and its exit codes.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use common::{environment, fresh, has, new_package, printed, root, tma};

#[track_caller]
fn json(folder: &Path, line: &str, code: i32) -> Value {
    serde_json::from_str(&printed(folder, &format!("{line} --format json"), code)).unwrap()
}

/// Returns the number, from 1, of the first line that contains a text.
fn line_of(source: &str, text: &str) -> u64 {
    source.lines().position(|line| line.contains(text)).unwrap() as u64 + 1
}

const LAUNCH: &str = "--grid 1,2 --buffer random:f32:64x64 --buffer zeros:f32:64x64 --arg f32:2 \
    --arg map:0:f32:extents=64x64:box=32x64 --arg map:1:f32:extents=64x64:box=32x64";

#[test]
fn right_slow_and_wrong_kernels() {
    let folder = new_package("check-tma");
    let source = folder.join("src/lib.rs");
    let right = fs::read_to_string(&source).unwrap();
    let text = printed(&folder, "check", 0);
    has(&text, &["scale  src/lib.rs:", "    proved (", "    no bank conflicts in 2 accesses\n"]);
    has(&text, &[" registers, no spills\n", "1 kernel: 1 proved, 0 checked"]);
    let data = json(&folder, "check scale", 0);
    let kernel = &data["kernels"][0];
    assert_eq!(
        (&data["clean"], &kernel["protocol"]["verdict"]),
        (&true.into(), &"proved".into()),
        "{data:#}"
    );
    assert!(kernel["ptxas"]["registers"].as_u64().is_some_and(|registers| registers > 8), "{data:#}");
    assert_eq!(kernel["shared_accesses"].as_array().map(Vec::len), Some(2), "{data:#}");
    has(&printed(&folder, "check nobody", 2), &["there is no kernel `nobody`; available: scale"]);
    let output = tma(&folder, "check nobody --format json");
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(error["error"], "there is no kernel `nobody`; available: scale");

    conflicts(&folder, &source, &right);
    wrong(&folder, &source, &right);
    fs::write(&source, &right).unwrap();
    notes_of_ptxas(&folder);
}

/// Threads access a column: rows of 256 bytes start in the same bank.
fn conflicts(folder: &Path, source: &Path, right: &str) {
    let slow = right.replace("[i * 2 + thread / 64, thread % 64]", "[thread % 32, i * 4 + thread / 32]");
    assert_ne!(slow, right);
    fs::write(source, &slow).unwrap();
    let line = line_of(&slow, "tile.set(place");
    let wanted = [
        format!("bank conflict: src/lib.rs:{line}: a warp reads in 32 wavefronts instead of 1\n"),
        format!("bank conflict: src/lib.rs:{line}: a warp writes in 32 wavefronts instead of 1\n"),
    ];
    has(&printed(folder, "check", 0), &[&wanted[0], &wanted[1], "1 with bank conflicts"]);
    has(&printed(folder, "check --deny conflicts", 1), &[&wanted[0]]);
    // The simulator, which counts actual wavefronts, agrees.
    let ran = json(folder, &format!("run scale {LAUNCH}"), 0);
    let counted = ran["bank_conflicts"].as_array().unwrap();
    let at = counted.iter().find(|count| count["site"]["source"]["line"] == line).unwrap();
    let number = |key: &str| at["shared"][key].as_u64().unwrap();
    assert_eq!(number("wavefronts"), 32 * number("accesses"), "{at:#}");
}

fn wrong(folder: &Path, source: &Path, right: &str) {
    let unfenced = right.replace("    fence_proxy_async();\n", "");
    fs::write(source, &unfenced).unwrap();
    let text = printed(folder, "check", 1);
    has(&text, &["    broken (", "TMA0707", "0 proved", "1 broken", "the package does not build"]);
    let data = json(folder, "check", 1);
    assert_eq!((&data["clean"], &data["builds"]), (&false.into(), &false.into()));
    let error = &data["kernels"][0]["protocol"]["error"];
    let line = line_of(&unfenced, "dst.store");
    assert_eq!((&error["code"], &error["line"]), (&"TMA0707".into(), &line.into()), "{data:#}");

    // A trusted kernel is reported, but does not fail the check.
    let trusted = unfenced.replace(
        "#[tma_kernel(threads = 128)]",
        "#[tma_kernel(protocol = trusted(\"a test\"), threads = 128)]",
    );
    fs::write(source, trusted).unwrap();
    let text = printed(folder, "check", 0);
    has(&text, &["    broken (", "do not check it: a test\n", "1 broken and trusted"]);

    // A kernel breaks a rule for statements, so the other kernels of the file are not checked.
    fs::write(source, right.replace("full.wait(0)", "full.wait(2)")).unwrap();
    let text = printed(folder, "check", 1);
    has(&text, &["src/lib.rs  rejected\nerror[TMA", "0 kernels: ", "1 file with kernels that break rules"]);
    let data = json(folder, "check --no-build", 1);
    assert_eq!(data["refused"][0]["errors"][0]["line"], line_of(right, "full.wait(0)"), "{data:#}");
}

/// Notes of ptxas fail the check. On a terminal, work that takes over a second shows progress.
fn notes_of_ptxas(folder: &Path) {
    let real = std::env::var_os("TMA_PTXAS").map_or(root().join("target/tools/ptxas"), PathBuf::from);
    let slow = folder.join("slow-ptxas");
    let note = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async is serialized";
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || sleep 3\n'{}' \"$@\" && echo '{note}'\n",
        real.display()
    );
    fs::write(&slow, script).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();

    let check = format!("'{}' tma check", env!("CARGO_BIN_EXE_cargo-tma"));
    let mut terminal = Command::new("script");
    environment(terminal.args(["--quiet", "--return", "--command", &check, "/dev/null"]), folder);
    let output = terminal.env("TMA_PTXAS", &slow).env("TERM", "xterm").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    // Colours are used, because this is a terminal.
    has(&text, &["assembling with ptxas [", "\x1b[1m", "(C7510)", "1 with spills or ptxas notes"]);
}

#[test]
fn sources_are_judged_where_nothing_can_be_built() {
    let folder = fresh("anywhere");
    let kernel = "#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>) {\n    let all: SharedArray<u32, 64> = \
        shared();\n    all.set(thread_idx().x, n);\n    sync_threads();\n    out.set(thread_idx().x, all.get(31 - \
        thread_idx().x));\n}\n";
    fs::create_dir(folder.join("kernels")).unwrap();
    fs::write(folder.join("kernels/k.rs"), kernel).unwrap();
    fs::write(folder.join("kernels/host.rs"), "fn main() {}").unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_cargo-tma"));
    check.args(["tma", "check", "--no-build", "--source", "kernels"]);
    environment(&mut check, &folder);
    let output = check.env("TMA_LLVM", "/nonexistent").env("PATH", "").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    has(&text, &["k  kernels/k.rs:2\n    proved (", "no bank conflicts in 2 accesses"]);
    assert!(!text.contains("registers"), "{text}");
    has(
        &printed(&folder, "check --no-build --source nowhere.rs", 2),
        &["no such file or folder: nowhere.rs"],
    );
}

/// An uncertain finding is shown with an example. Executions are only counted if there are any.
#[test]
fn verdicts_name_their_kernel() {
    let folder = fresh("verdicts");
    let head = "#[tma_kernel(threads = 64)]\nfn";
    let kernels = [
        format!("{head} alone(out: Global<u32>) {{\n    out.set(thread_idx().x, 1);\n}}"),
        format!("{head} meets() {{\n    sync_threads();\n}}"),
        format!(
            "{head} waits(tiles: u32) {{\n    let met: Barrier = shared();\n    if thread_idx().x == 0 {{ met.init(64); \
             }}\n    sync_threads();\n    for k in 0..tiles {{ met.arrive(); met.wait(k & 1); }}\n    if tiles == 0 {{ \
             met.wait(0); }}\n}}"
        ),
    ];
    fs::write(folder.join("k.rs"), kernels.join("\n")).unwrap();
    let text = printed(&folder, "check --no-build --source k.rs", 0);
    has(
        &text,
        &[
            "proved: nothing to prove, since no thread waits for another\n",
            "proved (3 visited states)\n",
            "a rule is broken here in some launches, but not in others\n            TMA0701 with `tiles` = 0: deadlock: ",
            "if no launch has these values, add `assume(tiles > 0)`",
        ],
    );
    assert!(!text.contains("0 paths"), "{text}");
}

/// An undecided kernel is only an error with `--deny undecided`.
#[test]
fn undecided_kernels_fail_where_they_are_denied() {
    let folder = fresh("undecided");
    let kernel = "#[tma_kernel(threads = 32)]\nfn k(at: Global<u32>) {\n    let all: SharedArray<u32, 64> = shared();\n    \
        all.set(at.get(thread_idx().x) % 64, 1);\n}\n";
    fs::write(folder.join("k.rs"), kernel).unwrap();
    let text = printed(&folder, "check --no-build --source k.rs", 0);
    has(
        &text,
        &["not decided (", "bank conflicts unknown for 1 access at addresses that are not tracked: line 4"],
    );
    printed(&folder, "check --no-build --source k.rs --deny undecided", 1);
}

/// Kernels with instructions of their own are counted, and each use is listed once.
#[test]
fn instructions_of_the_kernels_own_are_counted() {
    let folder = fresh("own-instructions");
    let kernel = |name: &str, line: &str| {
        format!(
            "#[tma_kernel(threads = 32)]\nfn {name}(n: u32, at: Global<u32>) {{\n    let mut x = n;\n{line}    at.set(thread_idx().x, x);\n}}\n"
        )
    };
    let brev = "    for i in 0..2 {\n        unsafe { ptx!(\"brev.b32 {x}, {x};\", inout x) };\n    }\n";
    let clock = "    unsafe { ptx!(\"mov.u32 {x}, %clock;\", out x, volatile) };\n";
    let kernels = [kernel("plain", ""), kernel("reversed", brev), kernel("timed", clock)].concat();
    fs::write(folder.join("k.rs"), kernels.clone()).unwrap();
    let text = printed(&folder, "check --no-build --source k.rs", 0);
    let at = |text: &str| line_of(&kernels, text);
    has(
        &text,
        &[
            &format!("k.rs:{}: not checked: the instructions of `ptx!`\n", at("brev")),
            &format!("    k.rs:{}: the effects of `ptx!` are not tracked\n", at("clock")),
            "3 kernels: 2 proved, 0 checked up to a number of iterations, 1 not decided, 0 broken\n",
            "2 kernels use `ptx!`, which is not checked\n",
        ],
    );
    assert_eq!(text.matches("not checked: the instructions").count(), 2, "{text}");
    let data = json(&folder, "check --no-build --source k.rs", 0);
    assert_eq!(data["summary"]["with_ptx"], 2, "{data:#}");
    let uses = &data["kernels"][1]["protocol"]["exceptions"];
    assert_eq!(uses[0]["line"], at("brev"), "{data:#}");
    assert_eq!(uses[0]["ptx"], true, "{data:#}");
}

/// Modules instantiated from templates of this package, and of one that it depends on.
#[test]
fn kernels_of_made_modules_are_listed() {
    let beside = fresh("made");
    let write = |path: &str, text: &str| {
        let path = beside.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let template = "\
#[tma_module]
pub mod sums {
    #[tma_device(open)]
    fn term(x: f32) -> f32 { x }

    #[tma_kernel(threads = 32, instances(N in [4, 8]))]
    pub fn of_rows<const N: u32>(rows: Global<f32>, out: Global<f32>) {
        let row: SharedArray<f32, 32> = shared();
        row.set(thread_idx().x, term(rows.get(thread_idx().x * N)));
        sync_threads();
        out.set(thread_idx().x, row.get(31 - thread_idx().x));
    }
}
";
    write("lib/src/lib.rs", &format!("//! Sums.\n\n{template}"));
    write("lib/build.rs", "fn main() {}\n");
    let manifest = |name: &str, more: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}\n[workspace]\n"
        )
    };
    write("lib/Cargo.toml", &manifest("sum-lib", "links = \"sum_lib\"\n"));
    let user = "[dependencies]\nother = { path = \"../lib\", package = \"sum-lib\" }\n";
    write("user/Cargo.toml", &manifest("user", user));
    let made = |name: &str, from: &str, finish: &str| {
        format!(
            "#[tma_module(from = {from})]\nmod {name} {{\n    #[tma_device]\n    fn term(x: f32) -> f32 {{ {finish} }}\n}}\n"
        )
    };
    write("user/src/lib.rs", "mod own;\nmod made;\n");
    write("user/src/own.rs", template);
    let all =
        made("doubled", "other::sums, only = [\"n_8\"]", "x * 2.0") + &made("mine", "crate::own::sums", "-x");
    write("user/src/made.rs", &all);

    let folder = beside.join("user");
    let text = printed(&folder, "check --no-build", 0);
    // The line in the template, and the instantiating file. `only` restricts the instances.
    has(&text, &["of_rows::n_8  other/src/lib.rs:9, made in src/made.rs\n    proved ("]);
    has(&text, &["of_rows::n_4 and another instance  src/own.rs:7, made in src/made.rs\n    proved ("]);
    has(&text, &["of_rows::n_4 and another instance  src/own.rs:7\n    proved (", "5 kernels: 5 proved"]);
    let data = json(&folder, "check --no-build", 0);
    let made: Vec<_> = data["kernels"].as_array().unwrap().iter().map(|kernel| &kernel["made_in"]).collect();
    assert_eq!(made.iter().filter(|made| ***made == "src/made.rs").count(), 3, "{data:#}");

    // A mistake in the module's own function is reported at the template's line, or the function's.
    fs::write(folder.join("src/made.rs"), all.replace("x * 2.0", "x * y")).unwrap();
    let text = printed(&folder, "check --no-build", 1);
    has(&text, &["src/made.rs  rejected", "TMA0101", "1 file with kernels that break rules"]);
    fs::write(folder.join("src/made.rs"), all.replace("other::sums", "other::sum")).unwrap();
    has(&printed(&folder, "check --no-build", 1), &["src/made.rs  rejected", "TMA0271"]);
}
