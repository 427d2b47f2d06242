//! The folders of modules.

use std::collections::BTreeMap;

use tma_tests_repository::{File, expect_none, files};

use crate::{planted, sources};

/// The largest number of modules in one folder, not counting folders.
const MOST_MODULES: usize = 20;

/// Roots and tests of a folder's module, which are not modules of their own.
const NOT_COUNTED: [&str; 4] = ["lib.rs", "main.rs", "mod.rs", "tests.rs"];

#[test]
fn a_module_with_children_lies_in_its_folder() {
    expect_none(beside_their_folder(&files()));
}

#[test]
fn modules_beside_their_folder_are_found() {
    let paths = ["a/src/x.rs", "a/src/x/y.rs", "a/src/z/mod.rs", "a/src/z/y.rs", "a/src/zz.rs"];
    let found = beside_their_folder(&paths.map(|path| planted(path, "")));
    assert_eq!(found, ["a/src/x.rs should be a/src/x/mod.rs"]);
}

#[test]
fn a_folder_has_few_modules() {
    expect_none(crowded(&files()));
}

#[test]
fn crowded_folders_are_found() {
    let of = |folder: &str, count| (0..count).map(|i| format!("{folder}/m{i}.rs")).collect::<Vec<_>>();
    let paths = [of("a/src", 20), of("b/src/c", 21), vec!["a/src/lib.rs".to_owned()], of("tests/src/d", 30)];
    let found = crowded(&paths.concat().iter().map(|path| planted(path, "")).collect::<Vec<_>>());
    assert_eq!(found, ["b/src/c has 21 modules; 20 are allowed"]);
}

fn beside_their_folder(files: &[File]) -> Vec<String> {
    let rust: Vec<_> = sources(files).map(|file| file.path.as_str()).collect();
    let modules = rust.iter().filter_map(|path| path.strip_suffix(".rs"));
    let beside = modules.filter(|module| {
        let folder = format!("{module}/");
        module.contains("/src/") && rust.iter().any(|path| path.starts_with(&folder))
    });
    beside.map(|module| format!("{module}.rs should be {module}/mod.rs")).collect()
}

/// The kernels of `tests` are a list by theme, and are not counted.
fn crowded(files: &[File]) -> Vec<String> {
    let mut folders = BTreeMap::<_, usize>::new();
    for file in sources(files).filter(|file| file.path.contains("/src") && !file.path.starts_with("tests/")) {
        if let Some((folder, name)) = file.path.rsplit_once('/')
            && !NOT_COUNTED.contains(&name)
        {
            *folders.entry(folder).or_default() += 1;
        }
    }
    let crowded = folders.into_iter().filter(|(_, count)| *count > MOST_MODULES);
    crowded
        .map(|(folder, count)| format!("{folder} has {count} modules; {MOST_MODULES} are allowed"))
        .collect()
}
