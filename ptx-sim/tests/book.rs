//! What `docs/simulator.md` quotes of the command is what the command prints.
#![cfg(feature = "cli")]

mod common;

use std::fs;
use std::path::Path;

use common::command::{file, printed, run, wrong_bytes};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/simulator.md");
    fs::read_to_string(path).expect("the page is there")
}

/// That the page has a block with just this.
#[track_caller]
fn expect_quoted(text: &str) {
    assert!(page().contains(&format!("```text\n{text}```\n")), "docs/simulator.md does not quote:\n{text}");
}

/// From the line that begins the bank conflicts on.
fn conflicts(text: &str) -> &str {
    let start = text.find("shared-memory bank conflicts\n").expect("they are printed");
    text[start..].split_inclusive("all\n").next().unwrap_or_default()
}

/// The options of `tma_copy` in the page, but for the file that they write.
fn options() -> String {
    let page = page();
    let command = page.split_once("ptx-sim run target/ptx/tma_copy.ptx ").expect("the page has a command").1;
    let (command, _) = command.split_once("```").expect("the block ends");
    let (options, _) = command.split_once("--out").expect("it writes the copy");
    options.replace('\\', " ")
}

#[test]
fn the_copy_is_counted_as_the_page_says() {
    let (_, text) = common::compile("examples/src/bin/tma_copy.rs").pop().expect("it has a kernel");
    let ptx = file("book_tma_copy.ptx", &text);
    expect_quoted(&printed(&run(&[&ptx], &options()), 0));
}

#[test]
fn the_wrong_byte_count_is_found_as_the_page_says() {
    let (_, text) = common::compile("examples/src/bin/tma_copy.rs").pop().expect("it has a kernel");
    let ptx = file("book_wrong.ptx", wrong_bytes(&text));
    let options = options();
    let (options, _) = options.split_once("--show").expect("it shows the copy");
    expect_quoted(&printed(&run(&[&ptx], options), 1));
}

#[test]
fn bank_conflicts_are_those_of_the_page() {
    let run = |kernel: (String, String), shape: &str, extent: u32, map: &str| {
        let ptx = file(&format!("book_{}.ptx", kernel.0), kernel.1);
        let square = format!("f32:{extent}x{extent}");
        let map = |buffer| format!("--arg map:{buffer}:f32:extents={extent}x{extent}:{map}");
        let options =
            format!("{shape} --buffer random:{square} --buffer zeros:{square} {} {}", map(0), map(1));
        printed(&run(&[&ptx, "--entry", &kernel.0], &options), 0)
    };
    let transpose = common::compile("examples/src/bin/transpose.rs").pop().expect("it has a kernel");
    let text = run(transpose, "--grid 2,2 --block 128 --shared 32776", 128, "box=64x32:swizzle=128");
    expect_quoted(conflicts(&text));
    let source = file("naive.rs", common::NAIVE);
    let naive = common::compile_text(&source, common::NAIVE).pop().expect("it has a kernel");
    let text = run(naive, "--grid 1 --block 32 --shared 8200", 32, "box=32x32");
    expect_quoted(&conflicts(&text).replace(&source, "naive.rs"));
}
