//! Stages import only from earlier stages, and packages only from lower ones.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, UseTree};

use tma_tests_repository::{File, expect_none, files};

use crate::{parse, planted, sources};

/// A stage, which is a module of the package's root, and the stages that it may import.
type Stage = (&'static str, &'static [&'static str]);

const FRONT: [Stage; 7] = [
    ("ir", &[]),
    ("abi", &["ir"]),
    ("diag", &["ir"]),
    ("infer", &["ir", "diag"]),
    ("words", &["ir", "diag", "infer"]),
    ("parse", &["ir", "abi", "diag", "infer", "words"]),
    ("check", &["ir", "abi", "diag"]),
];

const BACK: [Stage; 4] =
    [("backend", &[]), ("lower", &["backend"]), ("emit", &["backend", "lower"]), ("host", &[])];

const SIMULATOR: [Stage; 5] = [
    ("parse", &[]),
    ("isa", &[]),
    ("code", &["parse", "isa"]),
    ("machine", &["isa"]),
    ("exec", &["isa", "machine"]),
];

/// All modules of the runtime's root, in layers: each imports only from those before it.
const RUNTIME: [&str; 16] = [
    "spec", "layout", "scalar", "lang", "error", "map", "binding", "backend", "device", "tensor", "trace",
    "launch", "exchange", "progress", "tune", "testing",
];

/// Each package, and the packages of the project that its library depends on.
const PACKAGES: [(&str, &[&str]); 16] = [
    ("tma-model", &[]),
    ("tma-setup", &[]),
    ("codegen/front", &["tma-model"]),
    ("codegen/protocol", &["tma-front", "tma-model"]),
    ("codegen/back", &["tma-front", "tma-model", "tma-protocol"]),
    ("tma-macros", &["tma-codegen"]),
    ("ptx-probe", &["tma-model"]),
    ("ptx-sim", &["tma-model"]),
    ("tma-runtime", &["ptx-probe", "ptx-sim", "tma-macros", "tma-model"]),
    ("tma-python", &["tma-runtime"]),
    ("tma-kernels/python", &["tma-python", "tma-runtime"]),
    ("conformance", &["tma-model", "tma-runtime"]),
    ("examples", &["tma-runtime"]),
    ("tests", &["ptx-probe", "ptx-sim", "tma-codegen", "tma-model", "tma-runtime"]),
    ("cargo-tma", &["ptx-probe", "ptx-sim", "tma-codegen", "tma-model", "tma-runtime", "tma-setup"]),
    ("xtask", &["tma-setup"]),
];

#[test]
fn stages_of_the_compiler_import_from_those_before() {
    let files = files();
    expect_none(later_imports(&files, "codegen/front", &FRONT));
    expect_none(later_imports(&files, "codegen/back", &BACK));
}

#[test]
fn stages_of_the_simulator_import_from_those_before() {
    expect_none(later_imports(&files(), "ptx-sim", &SIMULATOR));
}

#[test]
fn layers_of_the_runtime_import_from_those_below() {
    let files = files();
    expect_none(later_imports(&files, "tma-runtime", &layers(&RUNTIME)));
    let paths = files.iter().filter_map(|file| file.path.strip_prefix("tma-runtime/src/"));
    let modules: BTreeSet<_> = paths.filter_map(|path| module_of(path).first().copied()).collect();
    assert_eq!(modules, RUNTIME.into_iter().chain(["lib"]).collect(), "each module has its layer");
}

#[test]
fn imports_from_higher_layers_are_found() {
    let text = "use crate::{launch::Arg, spec::MapSpec};\nuse crate::layout::Layout;";
    let lower = planted("tma-runtime/src/backend/sim/mod.rs", text);
    let higher = planted("tma-runtime/src/tune/mod.rs", text);
    let wanted = ["tma-runtime/src/backend/sim/mod.rs:1: `backend` imports `launch`"];
    assert_eq!(later_imports(&[lower, higher], "tma-runtime", &layers(&RUNTIME)), wanted);
}

#[test]
fn later_imports_are_found_in_every_form() {
    let root =
        planted("ptx-sim/src/lib.rs", "mod exec;\npub use exec::{Executor, warp as w};\npub use isa::Op;");
    let text = "use crate::{exec::a, isa};
use crate::exec as e;
fn f() { crate::machine::x(); crate::parse::x(); }
use super::super::exec::Executor;
use super::isa;
use crate::{Executor, Op};
fn g() -> crate::w::A {}
// crate::exec::Not
macro_rules! m { () => { $crate::machine::x() } }
#[cfg(test)]
mod tests { use crate::exec::a; }";
    let inner = planted("ptx-sim/src/code/decode.rs", text);
    let found = later_imports(&[root, inner], "ptx-sim", &SIMULATOR);
    let lines: Vec<_> = found.iter().filter_map(|found| found.split(':').nth(1)).collect();
    assert_eq!(lines, ["1", "2", "3", "4", "6", "7", "9"], "{found:#?}");
}

#[test]
fn packages_are_built_on_those_below() {
    let files = files();
    let wanted = PACKAGES.map(|(package, below)| (package.to_owned(), names(below)));
    assert_eq!(dependencies(&files), BTreeMap::from(wanted));
}

#[test]
fn the_model_is_built_on_nothing_and_reads_no_machine() {
    expect_none(impure(&files(), "tma-model"));
}

#[test]
fn dependencies_are_found_in_every_form() {
    let text = "[package]\nname = \"ptx-sim\"\n[dependencies]\ntma-model.workspace = true\nhalf = \"2\"\n\
        [target.'cfg(unix)'.dependencies]\nxtask = { path = \"../xtask\" }\n\
        [dev-dependencies]\ntma-codegen.workspace = true\n";
    let files =
        [planted("ptx-sim/Cargo.toml", text), planted("tma-model/src/a.rs", "use std::time::Instant;")];
    let wanted = BTreeMap::from([("ptx-sim".to_owned(), names(&["tma-model", "xtask"]))]);
    assert_eq!(dependencies(&files), wanted);
    assert_eq!(impure(&files, "ptx-sim"), ["ptx-sim depends on something"]);
    assert_eq!(impure(&files, "tma-model"), ["tma-model/src/a.rs uses std::time"]);
}

/// Returns stages of which each may import from all before it.
fn layers<'a>(names: &'a [&'static str]) -> Vec<(&'static str, &'a [&'static str])> {
    names.iter().enumerate().map(|(below, &name)| (name, &names[..below])).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns `path:line` of each mention of a stage that the file's own stage must not import. Tests
/// may mention all.
fn later_imports(files: &[File], package: &str, stages: &[(&str, &[&str])]) -> Vec<String> {
    let prefix = format!("{package}/src/");
    let of_package: Vec<_> = sources(files).filter(|file| file.path.starts_with(&prefix)).collect();
    let root = of_package.iter().find(|file| file.path == format!("{prefix}lib.rs"));
    let exported = root.map(|root| exports(root)).unwrap_or_default();
    let mut problems = vec![];
    for file in of_package {
        let module = module_of(&file.path[prefix.len()..]);
        let Some((own, allowed)) = stages.iter().find(|(name, _)| module.first() == Some(name)) else {
            continue;
        };
        let tokens: TokenStream = file.split_tests().0.parse().expect("a Rust file is tokens");
        for (line, name) in root_names(tokens, module.len()) {
            let name = exported.get(&name).unwrap_or(&name);
            let is_stage = stages.iter().any(|(stage, _)| stage == name);
            if is_stage && name != own && !allowed.contains(&name.as_str()) {
                problems.push(format!("{}:{line}: `{own}` imports `{name}`", file.path));
            }
        }
    }
    problems
}

/// Returns the path of a file's module.
fn module_of(path: &str) -> Vec<&str> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.split('/').filter(|part| *part != "mod").collect()
}

/// Returns the items that the root of a package re-exports: the name, and the module it comes from.
fn exports(root: &File) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in parse(root, &root.text).items {
        if let Item::Use(item) = item
            && let UseTree::Path(path) = &item.tree
        {
            leaves(&path.tree, &mut |name| {
                found.insert(name, path.ident.to_string());
            });
        }
    }
    found
}

fn leaves(tree: &UseTree, found: &mut impl FnMut(String)) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, found),
        UseTree::Name(name) => found(name.ident.to_string()),
        UseTree::Rename(rename) => found(rename.rename.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, found)),
        _ => {}
    }
}

/// Returns line and name of each item of the root that a module `depth` below it names by
/// `crate::name`, `crate::{name, ..}`, or by `depth` times `super`.
fn root_names(tokens: TokenStream, depth: usize) -> Vec<(usize, String)> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut found = vec![];
    for (i, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            found.extend(root_names(group.stream(), depth));
        }
        let is_later = i >= 2 && is_path_mark(&tokens[i - 2..]);
        let start = match token {
            TokenTree::Ident(ident) if *ident == "crate" => Some(i),
            TokenTree::Ident(ident) if *ident == "super" && !is_later => {
                last_super(&tokens[i..], depth).map(|n| i + n)
            }
            _ => None,
        };
        let Some(start) = start.filter(|start| is_path_mark(&tokens[start + 1..])) else { continue };
        match tokens.get(start + 3) {
            Some(TokenTree::Ident(name)) => found.push((name.span().start().line, name.to_string())),
            Some(TokenTree::Group(group)) => found.extend(heads(group.stream())),
            _ => {}
        }
    }
    found
}

/// Returns the index of the `super` that leads to the root, if there are `depth` of them.
fn last_super(tokens: &[TokenTree], depth: usize) -> Option<usize> {
    let is_super = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if *ident == "super");
    let last = 3 * depth.checked_sub(1)?;
    let steps = tokens.iter().step_by(3).take(depth);
    (tokens.len() > last && steps.clone().all(is_super)).then_some(last)
}

/// Returns the first name of each path in the braces of a `use`.
fn heads(paths: TokenStream) -> Vec<(usize, String)> {
    let mut found = vec![];
    let mut begins = true;
    for token in paths {
        if let (true, TokenTree::Ident(name)) = (begins, &token) {
            found.push((name.span().start().line, name.to_string()));
        }
        begins = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
    }
    found
}

/// Whether tokens begin with `::`.
fn is_path_mark(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    tokens.len() >= 2 && tokens[..2].iter().all(is_colon)
}

/// Returns the packages of the project that each library depends on.
fn dependencies(files: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let packages = PACKAGES.map(|(folder, _)| folder);
    let manifests = packages.into_iter().filter_map(|package| Some((package, manifest(files, package)?)));
    let of_project = |name: &String| {
        PACKAGES.iter().any(|(folder, below)| name == folder || below.contains(&name.as_str()))
    };
    manifests
        .map(|(package, manifest)| {
            (package.to_owned(), required(manifest).into_iter().filter(of_project).collect())
        })
        .collect()
}

fn manifest<'f>(files: &'f [File], package: &str) -> Option<&'f File> {
    files.iter().find(|file| file.path == format!("{package}/Cargo.toml"))
}

/// Returns the names under `[dependencies]`, including those for some targets only.
fn required(manifest: &File) -> Vec<String> {
    let mut inside = false;
    let mut names = vec![];
    for line in manifest.text.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]" || line.ends_with(".dependencies]");
        } else if let (true, Some(name)) = (inside, line.split(['.', ' ', '=']).next())
            && !name.is_empty()
            && !name.starts_with('#')
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Finds everything by which a package is more than pure functions: dependencies, and uses of the
/// standard library that read the machine.
fn impure(files: &[File], package: &str) -> Vec<String> {
    let depends = manifest(files, package).is_some_and(|manifest| !required(manifest).is_empty());
    let source = format!("{package}/src/");
    let of_the_machine = ["std::env", "std::fs", "std::io", "std::net", "std::process", "std::time"];
    let of_package = sources(files).filter(|file| file.path.starts_with(&source));
    let uses = of_package.flat_map(|file| {
        let found = of_the_machine.into_iter().filter(|name| file.text.contains(name));
        found.map(|name| format!("{} uses {name}", file.path))
    });
    depends.then(|| format!("{package} depends on something")).into_iter().chain(uses).collect()
}
