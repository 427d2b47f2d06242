//! The health of the tree: rules that no compiler checks, and that should hold in every commit.

use std::{collections::BTreeSet, fs, path::PathBuf};

use tma_tests_repository::{File, expect_none, files, root};

/// The limit of docs/ARCHITECTURE.md: longer files hide their subject.
const LONGEST_FILE: usize = 500;

/// A module of kernels sees only itself, so a large kernel and its functions are one file.
const LONGEST_KERNEL: usize = 600;

/// Returns the error codes in `text`: `TMA0` and three digits.
fn codes(text: &str) -> BTreeSet<&str> {
    let starts = text.match_indices("TMA0").map(|(start, _)| start);
    let words = starts.filter_map(|start| text.get(start..start + 7));
    words.filter(|word| word.bytes().skip(4).all(|digit| digit.is_ascii_digit())).collect()
}

/// Returns the codes that the sources of the compiler, the runtime and the kernel library define.
fn defined_codes(files: &[File]) -> BTreeSet<&str> {
    const SOURCES: [&str; 9] = [
        "cargo-tma/src/",
        "codegen/back/build.rs",
        "codegen/back/src/",
        "codegen/front/src/",
        "codegen/protocol/src/",
        "tma-kernels/src/",
        "tma-model/src/",
        "tma-python/src/",
        "tma-runtime/src/",
    ];
    let is_source = |file: &&File| SOURCES.iter().any(|at| file.path.starts_with(at));
    let codes: BTreeSet<_> = files
        .iter()
        .filter(is_source)
        .filter(|file| file.is_rust())
        .flat_map(|file| codes(file.split_tests().0))
        .collect();
    assert!(!codes.is_empty(), "no error code was found in the sources");
    codes
}

/// Returns the pages of the error codes, with the code that each is named after.
fn pages(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("docs/errors/")?.strip_suffix(".md")?;
        name.starts_with("TMA").then_some((name, file))
    })
}

/// Returns the text of a Markdown file inside its fences (`inside`), or outside them.
fn fenced(markdown: &str, inside: bool) -> String {
    let mut in_fence = false;
    let mut kept = String::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if in_fence == inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() {
    let files = files();
    let defined = defined_codes(&files);
    let described: BTreeSet<_> = pages(&files).map(|(code, _)| code).collect();
    let missing = defined.difference(&described).map(|code| format!("docs/errors/{code}.md is missing"));
    let stale =
        described.difference(&defined).map(|code| format!("docs/errors/{code}.md: no source has this code"));
    expect_none(missing.chain(stale));
}

#[test]
fn every_error_page_is_headed_by_its_code() {
    let files = files();
    let wrong = pages(&files).filter(|(code, page)| !page.text.starts_with(&format!("# {code}")));
    expect_none(wrong.map(|(code, page)| format!("{} does not begin with `# {code}`", page.path)));
}

#[test]
fn every_error_code_is_tested() {
    let files = files();
    let in_tests = files
        .iter()
        .filter(|file| file.is_test() || file.is_rust())
        .map(|file| file.split_tests().1.to_owned());
    let in_examples = pages(&files).map(|(_, page)| fenced(&page.text, true));
    let tested: String = in_tests.chain(in_examples).collect();
    let tested = codes(&tested);
    let untested = defined_codes(&files).into_iter().filter(|code| !tested.contains(code));
    expect_none(untested.map(|code| format!("{code} is in no test and in no example of a page")));
}

#[test]
fn no_rust_file_is_too_long() {
    let most = |file: &File| match file.text.contains("#[tma_module]") {
        true => LONGEST_KERNEL,
        false => LONGEST_FILE,
    };
    let all = files().into_iter().filter(File::is_rust);
    let long = all.map(|file| (file.text.lines().count(), most(&file), file.path));
    let long = long.filter(|(lines, most, _)| lines > most);
    expect_none(long.map(|(lines, most, path)| format!("{path} has {lines} lines; {most} are allowed")));
}

#[test]
fn nothing_is_left_unfinished() {
    // Concatenated here, so that this file does not contain them.
    let marks = [("todo", "!("), ("unimplemented", "!("), ("dbg", "!("), ("#[", "ignore")]
        .map(|(a, b)| format!("{a}{b}"));
    let files = files();
    let rust = files.iter().filter(|file| file.is_rust());
    let found = rust.flat_map(|file| lines_with(file, &marks));
    expect_none(found);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let homes = ["home", "root"].map(|name| format!("/{name}/"));
    let temporary = ["/tmp".to_owned() + "/"];
    let files = files();
    let in_tests = files.iter().flat_map(|file| lines_with(file, &homes));
    let elsewhere = files.iter().filter(|file| !file.is_test()).flat_map(|file| lines_with(file, &temporary));
    expect_none(in_tests.chain(elsewhere));
}

/// Returns `path:line: text` of every line of `file` where one of `marks` begins a word or a path.
fn lines_with(file: &File, marks: &[String]) -> Vec<String> {
    let begins = |line: &str, at: usize| {
        !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '}'))
    };
    let has = |line: &str, mark: &String| line.match_indices(mark.as_str()).any(|(at, _)| begins(line, at));
    let lines = file.text.lines().zip(1..).filter(|(line, _)| marks.iter().any(|mark| has(line, mark)));
    lines.map(|(line, number)| format!("{}:{number}: {}", file.path, line.trim())).collect()
}

#[test]
fn every_package_is_described_licensed_and_linted() {
    let files = files();
    let manifests =
        files.iter().filter(|file| file.path.ends_with("Cargo.toml") && file.text.contains("[package]"));
    let wanted = ["description = \"", "license.workspace = true", "[lints]\nworkspace = true"];
    let missing = manifests.flat_map(|file| {
        let absent =
            wanted.into_iter().filter(|line| !format!("\n{}", file.text).contains(&format!("\n{line}")));
        absent.map(|line| format!("{} lacks `{}`", file.path, line.replace('\n', " ")))
    });
    expect_none(missing);
}

/// With `autotests = false`, cargo ignores test files that the manifest does not name.
#[test]
fn no_test_of_the_simulator_is_forgotten() {
    let named = ["all.rs", "growth.rs"]; // in the manifest
    let files = files();
    let all = files.iter().find(|file| file.path == "ptx-sim/tests/all.rs").expect("it is there");
    let names = files.iter().filter_map(|file| file.path.strip_prefix("ptx-sim/tests/"));
    let modules = names.filter(|name| !named.contains(name)).filter_map(|name| match name.split_once('/') {
        Some((folder, "mod.rs")) => Some(folder),
        Some(_) => None,
        None => name.strip_suffix(".rs"),
    });
    let forgotten = modules.filter(|name| !all.text.contains(&format!("\nmod {name};\n")));
    expect_none(forgotten.map(|name| format!("ptx-sim/tests/all.rs lacks `mod {name};`")));
}

#[test]
fn links_in_the_documentation_lead_somewhere() {
    let files = files();
    let documents = files.iter().filter(|file| {
        let is_of_root = !file.path.contains('/');
        let is_page = ["docs/", "lab/"].iter().any(|folder| file.path.starts_with(folder))
            || file.path.ends_with("README.md");
        file.path.ends_with(".md") && (is_of_root || is_page)
    });
    let broken = documents.flat_map(|file| {
        let folder = root().join(&file.path).parent().map(PathBuf::from).expect("a file lies in a folder");
        let targets = link_targets(&fenced(&file.text, false));
        let broken = targets.into_iter().filter(move |target| !folder.join(target).exists());
        broken.map(|target| format!("{}: there is no {target}", file.path))
    });
    expect_none(broken);
}

#[test]
fn the_examples_are_those_of_their_readme() {
    let files = files();
    let folder = "examples/src/bin/";
    let programs = files.iter().filter_map(|file| file.path.strip_prefix(folder)?.strip_suffix(".rs"));
    let readme =
        files.iter().find(|file| file.path == "examples/README.md").expect("the examples have a README");
    let rows: Vec<_> = readme.text.lines().filter(|line| line.starts_with("| [`")).collect();
    let row = |program: &str| format!("| [`{program}`](src/bin/{program}.rs) | ");
    let missing = programs.filter(|program| !rows.iter().any(|line| line.starts_with(&row(program))));
    expect_none(missing.map(|program| format!("examples/README.md has no row for {program}")));
}

/// Returns the files that unfenced Markdown links to: `[text](file#part)` and `[name]: file`.
fn link_targets(markdown: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in markdown.lines() {
        // Every second piece between backquotes is code, and `a[i](x)` in code is not a link.
        let prose: Vec<_> = line.split('`').step_by(2).collect();
        let prose = prose.join("`");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        targets.extend(inline.map(str::to_owned));
        if let Some((name, target)) = prose.trim_start().split_once("]: ")
            && name.starts_with('[')
            && !name.starts_with("[^")
        {
            targets.extend(target.split_whitespace().next().map(str::to_owned));
        }
    }
    let is_file = |target: &String| {
        !target.contains("://") && !target.starts_with("mailto:") && !target.starts_with('#')
    };
    let without_part = |target: String| target.split('#').next().unwrap_or_default().to_owned();
    targets.into_iter().filter(is_file).map(without_part).collect()
}

#[test]
fn links_are_found_in_prose_only() {
    let text = "See [a](x.md#part) and [b](../y.md \"title\"), not `m[i](z)` nor [c](https://example.org).\n\
                [ref]: docs/w.md\n[^note]: not a link\n[here](#part)\n```\n[d](v.md)\n```\n";
    assert_eq!(link_targets(&fenced(text, false)), ["x.md", "../y.md", "docs/w.md"]);
}

#[test]
fn the_changelog_tells_of_this_version() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).expect("there is a CHANGELOG.md");
    let version = env!("CARGO_PKG_VERSION");
    let heading = |line: &str| line.starts_with("## ") && line.contains(version);
    assert!(changelog.lines().any(heading), "CHANGELOG.md has no heading `## {version}`");
}
