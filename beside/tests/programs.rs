//! Compares `docs/beside.md` with the programs: the code that it quotes, and their output.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../docs/beside.md");

fn run(program: &str) -> Output {
    Command::new(program).env("TMA_DEVICE", "sim").output().expect("the program starts")
}

/// Whether the page has this line as what the program prints after the device's name.
fn is_on_the_page(program: &str, line: &str) -> bool {
    let said = line.split_once(": ").map_or(line, |(_, said)| said);
    let row = PAGE.lines().find(|row| row.starts_with(&format!("| [`{program}`]"))).unwrap_or_default();
    row.contains(&format!("`{said}`"))
}

#[test]
fn programs_for_any_device_print_what_the_page_says() {
    for (name, program) in [
        ("arrays", env!("CARGO_BIN_EXE_arrays")),
        ("weights", env!("CARGO_BIN_EXE_weights")),
        ("dlpack", env!("CARGO_BIN_EXE_dlpack")),
    ] {
        let output = run(program);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let line = String::from_utf8_lossy(&output.stdout);
        assert!(is_on_the_page(name, line.trim_end()), "docs/beside.md does not say of {name}: {line}");
    }
}

#[test]
fn the_number_of_devices_is_that_of_the_machine() {
    let output = run(env!("CARGO_BIN_EXE_devices"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = String::from_utf8_lossy(&output.stdout);
    let is_simulated = line.starts_with("ptx-sim");
    assert!(!is_simulated || is_on_the_page("devices", line.trim_end()), "{line}");
}

/// They say what is missing, or, on a machine with a GPU and NCCL, what the page says.
#[test]
fn programs_for_gpus_say_so() {
    for (name, program) in [
        ("cudarc_memory", env!("CARGO_BIN_EXE_cudarc_memory")),
        ("cudarc_launch", env!("CARGO_BIN_EXE_cudarc_launch")),
        #[cfg(feature = "cust")]
        ("cust_exchange", env!("CARGO_BIN_EXE_cust_exchange")),
        ("nccl", env!("CARGO_BIN_EXE_nccl")),
    ] {
        let output = run(program);
        let (line, message) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let missing = ["TMA0601", "TMA0602", "TMA0603", "needs a GPU", "libnccl"];
        match output.status.success() {
            true => assert!(is_on_the_page(name, line.trim_end()) || name == "nccl", "{line}"),
            false => assert!(missing.iter().any(|missing| message.contains(missing)), "{name}: {message}"),
        }
    }
}

#[test]
fn what_the_page_quotes_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    for folder in ["src", "src/bin", "candle/src", "python"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder can be listed").flatten() {
            sources += &fs::read_to_string(entry.path()).unwrap_or_default();
        }
    }
    let unindented = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let sources = unindented(&sources);
    let quotes: Vec<_> = PAGE.split("\n```").skip(1).step_by(2).collect();
    let quotes = quotes.iter().filter_map(|block| block.split_once('\n'));
    let code: Vec<_> = quotes.filter(|(kind, _)| matches!(*kind, "rust" | "python")).collect();
    assert!(code.len() > 5, "the page quotes {} pieces", code.len());
    for (_, quote) in code {
        assert!(sources.contains(&unindented(quote)), "no program has\n{quote}");
    }
}
