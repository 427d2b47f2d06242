//! Compares the book's output of the command with the actual output: `docs/five-minutes.md` and the
//! example with a `Global` in `docs/cargo-tma.md`.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{environment, has, new_package, printed, root};

/// A block of code: the words after its fence, and its lines.
struct Block {
    info: String,
    code: String,
}

/// Returns the blocks of the part of a page that begins with this heading.
fn blocks(page: &str, heading: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let (_, part) =
        text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{page} has no {heading}"));
    let part = part.split("\n## ").next().unwrap_or_default();
    let mut lines = part.lines();
    let mut found = vec![];
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let code: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(Block { info: info.to_owned(), code: code.join("\n") });
        }
    }
    found
}

/// Asserts that the text contains each line of the quote, in this order. `...` stands for omitted
/// lines.
#[track_caller]
fn quotes(quote: &str, text: &str) {
    let mut lines = text.lines().map(str::trim_end);
    for wanted in quote.lines().filter(|line| *line != "...") {
        assert!(lines.any(|line| line == wanted), "no line `{wanted}`, in this order, in\n{text}");
    }
}

fn block<'a>(blocks: &'a [Block], info: &str, number: usize) -> &'a str {
    let block = blocks.iter().filter(|block| block.info == info).nth(number);
    &block.unwrap_or_else(|| panic!("there is no block `{info}` number {number}")).code
}

/// Returns the output of cargo, and whether it succeeds.
fn cargo(folder: &Path, command: &str) -> (String, bool) {
    let mut cargo = Command::new(env!("CARGO"));
    environment(cargo.arg(command), folder);
    let output = cargo.output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (text, output.status.success())
}

#[test]
fn the_getting_started_page_shows_real_output() {
    let page = "docs/five-minutes.md";
    let folder = new_package("hello");
    let (said, is_right) = cargo(&folder, "test");
    assert!(is_right, "{said}");
    quotes(block(&blocks(page, "## 3. Make a package"), "text", 0), &said);

    let inside = blocks(page, "## 5. Look inside");
    let (_, run) = block(&inside, "sh", 0).split_once("cargo tma run ").unwrap();
    has(&printed(&folder, &format!("run {}", run.replace("\\\n", " ")), 0), &["no findings"]);
    assert!(folder.join("scale.json").exists());

    let source = folder.join("src/lib.rs");
    let right = fs::read_to_string(&source).unwrap();
    let broken = right.replace("    fence_proxy_async();\n", "");
    assert_ne!(broken, right);
    fs::write(&source, broken).unwrap();
    let (said, is_right) = cargo(&folder, "build");
    assert!(!is_right, "{said}");
    quotes(block(&blocks(page, "## 4. Break it"), "text", 0), &said);
}

#[test]
fn a_slice_of_global_memory_is_two_arguments() {
    let page = blocks("docs/cargo-tma.md", "## Running a kernel");
    let folder = new_package("global");
    let kernel = block(&page, "rust", 0);
    fs::write(folder.join("src/lib.rs"), format!("//! Adds.\n\nuse tma_runtime::prelude::*;\n\n{kernel}\n"))
        .unwrap();
    // These files use the kernel that was replaced.
    fs::remove_file(folder.join("src/main.rs")).unwrap();
    fs::remove_dir_all(folder.join("tests")).unwrap();
    let run = |number| block(&page, "sh", number).strip_prefix("cargo tma ").unwrap().replace("\\\n", " ");
    quotes(block(&page, "text", 0), &printed(&folder, &run(1), 0));
    quotes(block(&page, "text", 1), &printed(&folder, &run(2), 2));

    // The arguments that the message suggests form a launch.
    let typed =
        block(&page, "text", 1).lines().filter_map(|line| line.trim().strip_prefix("--")).collect::<Vec<_>>();
    printed(&folder, &format!("run add --grid 1 --{}", typed.join(" --")), 0);
}
