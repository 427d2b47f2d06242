//! Checks that the simulator prints what `docs/simulator.md`, `docs/debugging.md` and the first
//! page quote.
#![cfg(feature = "cli")]

use std::fs;
use std::path::Path;

use crate::common;
use crate::common::command::{file, output_path, printed, run, wrong_bytes};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/simulator.md");
    fs::read_to_string(path).expect("the page is there")
}

/// Expects the page to have a block with exactly this text.
#[track_caller]
fn expect_quoted(text: &str) {
    assert!(page().contains(&format!("```text\n{text}```\n")), "docs/simulator.md does not quote:\n{text}");
}

/// Returns the section on bank conflicts.
fn conflicts(text: &str) -> &str {
    let start = text.find("shared-memory bank conflicts\n").expect("they are printed");
    text[start..].split_inclusive("all\n").next().unwrap_or_default()
}

/// Returns the options of `tma_copy` in the page, without the file to write.
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
    let text = run(transpose, "--grid 2,2 --block 512 --shared 32776", 128, "box=64x64");
    expect_quoted(conflicts(&text));
    let source = file("naive.rs", common::NAIVE);
    let naive = common::compile_text(&source, common::NAIVE).pop().expect("it has a kernel");
    let text = run(naive, "--grid 1 --block 32 --shared 8200", 32, "box=32x32");
    expect_quoted(&conflicts(&text).replace(&source, "naive.rs"));
}

/// Returns the text without comments and whitespace, to compare the CUDA C++ kernel on the book's
/// first page with the one in `cuda/tensor.cu`.
fn words(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().concat()
}

#[test]
fn the_first_page_shows_a_kernel_of_the_corpus_without_its_fence() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("the file is there");
    let page = read("docs/README.md");
    let (_, block) = page.split_once("```cpp\n").expect("the page has a kernel in CUDA C++");
    let (shown, _) = block.split_once("```").expect("the block ends");
    let fenced = shown.replacen("    __syncthreads();\n", "    publish();\n", 1);
    assert!(words(&read("ptx-sim/tests/corpus/cuda/tensor.cu")).contains(&words(&fenced)), "{fenced}");

    // `publish` is a fence and a barrier; the kernel's first fence belongs to `start`.
    let ptx = read("ptx-sim/tests/corpus/cuda/tensor.ptx");
    let lines: Vec<_> = ptx.lines().collect();
    let entry = lines.iter().position(|line| line.contains(".entry tile_copy(")).expect("it is there");
    let mut fences = (entry..lines.len()).filter(|&at| lines[at].contains("fence.proxy.async.shared::cta"));
    let fence = fences.nth(1).expect("it has two fences");
    let without = [&lines[..fence], &lines[fence + 1..]].concat().join("\n");

    let ptx = file("book_tile_copy.ptx", &without);
    let options = "--entry tile_copy --grid 2,2 --block 128 --shared 0 \
        --buffer random:f32:32x64 --buffer zeros:f32:32x64 \
        --arg map:0:f32:extents=32x64:box=16x32 --arg map:1:f32:extents=32x64:box=16x32";
    let text = printed(&run(&[&ptx], options), 1);
    let (finding, _) = text.split_once("\n\nfindings: 1\n").expect("there is one finding");
    assert!(
        page.contains(&format!("```text\n{finding}\n```\n")),
        "docs/README.md does not quote:\n{finding}"
    );
}

/// Writes a NumPy file with one number, and returns its path.
fn number(name: &str, value: u32) -> String {
    let mut header = b"{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }".to_vec();
    header.resize(117, b' ');
    header.push(b'\n');
    let mut content = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    content.extend(header);
    content.extend(value.to_le_bytes());
    file(name, content)
}

#[test]
fn the_deadlock_is_reported_and_drawn_as_its_page_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/debugging.md");
    let page = fs::read_to_string(path).expect("the page is there");
    let (_, block) = page.split_once("```rust,finding\n").expect("the page has a kernel");
    let (source, _) = block.split_once("```").expect("the block ends");
    let path = file("row_sums.rs", source);
    let (_, text) = common::compile_text(&path, source).pop().expect("it is a kernel");
    let ptx = file("row_sums.ptx", &text);

    let (_, command) = page.split_once("ptx-sim run row_sums.ptx ").expect("the page has a command");
    let (options, _) = command.split_once("```").expect("the block ends");
    let trace = output_path("row_sums.json");
    let launched = |rows: u32, tiles: u32, code: i32| {
        let (rows, tiles) = (number("rows.npy", rows), number("tiles.npy", tiles));
        let options = options.replace('\\', " ").replace("npy:rows.npy", &format!("npy:{rows}"));
        let options = options.replace("npy:tiles.npy", &format!("npy:{tiles}"));
        printed(&run(&[&ptx], &options.replace("row_sums.json", &trace.to_string_lossy())), code)
    };
    assert!(launched(16, 2, 0).starts_with("no findings\n"), "with 16 rows it is right");
    let text = launched(20, 3, 1).replace(&path, "row_sums.rs");
    let (finding, _) = text.split_once("\n\nfindings: 1\n").expect("there is one finding");
    assert!(
        page.contains(&format!("```text\n{finding}\n```\n")),
        "docs/debugging.md does not quote:\n{finding}"
    );

    // The drawing shows two loads, and four warps that wait until the end.
    let trace: serde_json::Value =
        serde_json::from_slice(&fs::read(trace).expect("it is written")).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("it is a list");
    let slices = |is: &dyn Fn(&serde_json::Value) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(slices(&|event| event["args"]["unfinished"].is_string()), 4);
    assert_eq!(slices(&|event| event["name"] == "1024 bytes, tensor loads"), 2);
}
