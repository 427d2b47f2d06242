//! The operation on tensors that candle has on the CPU, on the simulator.

use std::process::Command;

#[test]
fn the_program_prints_what_the_page_says() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tma-beside-candle"));
    let output = program.env("TMA_DEVICE", "sim").output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = String::from_utf8_lossy(&output.stdout);
    let said = line.trim_end().split_once(": ").map_or("", |(_, said)| said);
    let page = include_str!("../../../docs/beside.md");
    assert!(page.contains(&format!("`{said}`")), "docs/beside.md does not say: {line}");
}
