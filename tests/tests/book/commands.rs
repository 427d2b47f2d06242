//! The commands of the book's shell blocks exist: tasks of `cargo xtask`, subcommands of
//! `cargo tma`, and the packages, tests, programs and examples that are passed to cargo.

use tma_tests::sources::code_blocks;

use tma_tests_repository::{expect_none, files, root};

use crate::pages;

/// Returns every command of every shell block, with its location.
fn commands() -> Vec<(String, String)> {
    let mut found = vec![];
    for page in pages(&files()) {
        for block in code_blocks(&page.text).into_iter().filter(|block| block.info == "sh") {
            let lines = block.code.replace("\\\n", " ");
            for line in lines.lines() {
                // Words after `#` are a comment, and `a && b` are two commands.
                let line = line.split(" #").next().unwrap_or_default();
                let place = format!("{}:{}", page.path, block.line);
                found.extend(line.split("&&").map(|command| (place.clone(), command.trim().to_owned())));
            }
        }
    }
    found
}

/// Returns the problem with a command, if it is one of cargo's.
fn problem(command: &str) -> Option<String> {
    // Variables that are set for a command come before it.
    let words: Vec<_> = command.split_whitespace().skip_while(|word| word.contains('=')).collect();
    match words[..] {
        ["cargo", "xtask", task, ..] => {
            let known = variants("xtask/src/main.rs", "enum Task {");
            (!known.contains(&task.to_owned())).then(|| format!("there is no task {task}: {known:?}"))
        }
        ["cargo", "tma", command, ..] => {
            let known = variants("cargo-tma/src/arguments.rs", "enum Command {");
            (!known.contains(&command.to_owned()))
                .then(|| format!("there is no command {command}: {known:?}"))
        }
        ["cargo", "run" | "test" | "bench" | "build" | "install", ..] => missing_target(&words),
        _ => None,
    }
}

/// Returns the names that clap derives for the variants of an enum.
fn variants(file: &str, start: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (_, body) = text.split_once(start).unwrap_or_else(|| panic!("{file} has no `{start}`"));
    let body = body.split("\n}").next().unwrap_or_default();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    names
        .map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(line).to_lowercase())
        .collect()
}

/// Returns the folder of a package: its name, with or without `tma-`, or that of a layer of the
/// compiler.
fn folder_of(package: &str) -> Option<String> {
    let short = package.strip_prefix("tma-").unwrap_or(package);
    let layer = if short == "codegen" { "back" } else { short };
    // The folder `models` is no package, but a workspace.
    let folders =
        [format!("models/{package}"), short.to_owned(), package.to_owned(), format!("codegen/{layer}")];
    folders.into_iter().find(|folder| root().join(folder).join("Cargo.toml").exists())
}

/// Returns the target that cargo would not find: a package, a test, a program or a benchmark.
fn missing_target(words: &[&str]) -> Option<String> {
    let option = |name: &str| {
        let at = words.iter().take_while(|word| **word != "--").position(|word| *word == name)?;
        words.get(at + 1).copied()
    };
    let is_placeholder = |name: &str| name.chars().all(|c| c.is_ascii_uppercase());
    let package = option("-p").filter(|name| !is_placeholder(name))?;
    let Some(folder) = folder_of(package) else { return Some(format!("there is no package {package}")) };
    let wanted =
        [("--test", "tests"), ("--example", "examples"), ("--bench", "benches"), ("--bin", "src/bin")];
    wanted.into_iter().find_map(|(flag, inside)| {
        let name = option(flag).filter(|name| !is_placeholder(name))?;
        let paths = [format!("{folder}/{inside}/{name}.rs"), format!("{folder}/{inside}/{name}/main.rs")];
        (!paths.iter().any(|path| root().join(path).exists())).then(|| format!("there is none of {paths:?}"))
    })
}

#[test]
fn the_commands_of_the_book_exist() {
    let commands = commands();
    assert!(
        commands.iter().filter(|(_, command)| command.starts_with("cargo")).count() > 30,
        "{commands:#?}"
    );
    let wrong = commands
        .iter()
        .filter_map(|(place, command)| Some(format!("{place}: `{command}`: {}", problem(command)?)));
    expect_none(wrong);
}

#[test]
fn commands_that_do_not_exist_are_found() {
    for command in [
        "cargo xtask nothing",
        "cargo tma nothing",
        "cargo test -p tma-nothing",
        "X=1 cargo test -p tma-tests --test nothing",
        "cargo run -p tma-examples --bin nothing -- --release",
    ] {
        assert!(problem(command).is_some(), "{command}");
    }
    for command in
        ["cargo xtask demo", "cargo tma ptx scale --release", "cargo test -p tma-tests --test ptx", "ls"]
    {
        assert_eq!(problem(command), None, "{command}");
    }
}
