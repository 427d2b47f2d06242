//! The kernels of the repository, which are right: none of them is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::check::CheckedKernel;
use tma_codegen::protocol::{Budget, Verdict, judge};
use tma_codegen::{Accepted, Checked};

/// The folders of kernels that run, and are tested to be right.
pub(crate) const FOLDERS: [&str; 5] =
    ["examples/src", "tests/src/kernels", "tests/src/conformance", "tests/src/gpu", "tma-kernels/src"];

/// The number of instances of a kernel that are judged: they differ in types more than in order.
const INSTANCES: usize = 3;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the source files below a folder.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("a folder of sources").flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns the kernels of a file, which may import items from others of its package, and from
/// `tma_kernels`.
fn accepted(path: &Path) -> Accepted<Checked> {
    let is_package = |folder: &&Path| folder.join("Cargo.toml").exists();
    let package = path.ancestors().skip(1).find(is_package).expect("the package of a source file");
    let within = path.strip_prefix(package).expect("a file of the package").display().to_string();
    let source = fs::read_to_string(path).expect("a source file");
    let others = BTreeMap::from([("tma_kernels".to_owned(), root().join("tma-kernels"))]);
    let checked = tma_codegen::check_in(package, &others, &within, &source);
    checked.unwrap_or_else(|failure| panic!("{}: {failure}", path.display()))
}

fn has_kernels(path: &Path) -> bool {
    fs::read_to_string(path).expect("a source file").contains("#[tma_kernel")
}

/// Returns the kernels in the files below a folder, each with the name of its file.
pub(crate) fn kernels(folder: &Path) -> Vec<(String, CheckedKernel)> {
    let with_kernels = sources(folder).into_iter().filter(|path| has_kernels(path));
    let found = with_kernels.flat_map(|path| {
        let name = path.display().to_string();
        accepted(&path).kernels.into_iter().map(move |checked| (name.clone(), checked.kernel))
    });
    found.collect()
}

/// A kernel that warns is changed, or marked as intended.
#[test]
fn no_kernel_has_warnings() {
    let mut found = String::new();
    for path in FOLDERS.iter().flat_map(|folder| sources(&root().join(folder))) {
        if has_kernels(&path) {
            found += &accepted(&path).rendered;
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// Returns the first [`INSTANCES`] of each kernel.
pub(crate) fn first_instances(all: Vec<(String, CheckedKernel)>) -> Vec<(String, CheckedKernel)> {
    let mut last = (String::new(), 0);
    let is_first = |(_, checked): &(String, CheckedKernel)| {
        let name = &checked.kernel().name;
        let number = if last.0 == *name { last.1 + 1 } else { 0 };
        last = (name.clone(), number);
        number < INSTANCES
    };
    all.into_iter().filter(is_first).collect()
}

/// Kernels of teams are judged, but not counted: what orders ranks is not decided yet
/// (`docs/language/several-gpus.md`, "What is checked between ranks").
#[test]
fn no_right_kernel_is_refused() {
    let (mut refused, mut judged, mut proved) = (vec![], 0, 0);
    for (name, checked) in FOLDERS.iter().flat_map(|folder| first_instances(kernels(&root().join(folder)))) {
        let counts = u32::from(!checked.kernel().is_of_team());
        judged += counts;
        match judge(&checked, Budget::MACRO).verdict {
            Verdict::Broken(diagnostic) => {
                refused.push(format!("{name}: {}:\n{}", checked.kernel().path(), diagnostic.text()));
            }
            Verdict::Proved => proved += counts,
            Verdict::CheckedUpTo(_) | Verdict::NotDecided(_) => {}
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(judged > 300 && proved * 3 > judged * 2, "{proved} of {judged} are proved");
}

/// The kernels of the book, and those that it shows to be wrong.
#[test]
fn the_book_shows_right_kernels_and_wrong_ones() {
    let (mut wrong, mut findings) = (vec![], 0);
    for page in [
        "language/kernels",
        "language/values",
        "language/control-flow",
        "language/modules",
        "language/shared-memory",
        "language/global-memory",
        "language/barriers",
        "language/tma",
        "language/tensor-maps",
        "language/tensor-cores",
        "language/warp-multiplications",
        "language/ordering",
        "language/warps-and-clusters",
        "pipelines",
        "protocol",
        "tutorial",
        "tutorial-store",
        "tutorial-tensor-cores",
        "tutorial-multicast",
    ] {
        let text = fs::read_to_string(root().join(format!("docs/{page}.md"))).expect("a page of the book");
        let mut blocks = text.split("```rust,");
        blocks.next();
        for block in blocks {
            let Some((kind, rest)) = block.split_once('\n') else { continue };
            let code = rest.split("```").next().unwrap_or_default();
            let Ok(accepted) = tma_codegen::check(page, code) else { continue };
            for checked in accepted.kernels {
                let verdict = judge(&checked.kernel, Budget::MACRO).verdict;
                match (kind, verdict) {
                    ("kernel", Verdict::Broken(diagnostic)) => {
                        wrong.push(format!("{page}: {}", diagnostic.text()));
                    }
                    ("finding", Verdict::Broken(_)) => findings += 1,
                    _ => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(findings > 3, "{findings} kernels of the book that are wrong are refused");
}
