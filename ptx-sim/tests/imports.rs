//! The stages of the simulator import each other in one direction, as the crate's first page says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each stage, and the stages that it may import.
const STAGES: [(&str, &[&str]); 5] = [
    ("parse", &[]),
    ("isa", &[]),
    ("code", &["parse", "isa"]),
    ("machine", &["isa"]),
    ("exec", &["isa", "machine"]),
];

/// The modules of the crate that a file names by their path, but for those in comments.
fn imports(text: &str) -> BTreeSet<&str> {
    let code = text.lines().filter_map(|line| line.split("//").next());
    let paths = code.flat_map(|line| line.split("crate::").skip(1));
    paths.filter_map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next()).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

#[test]
fn stages_import_in_one_direction() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (stage, allowed) in STAGES {
        let files = rust_files(&source.join(stage));
        assert!(!files.is_empty(), "`{stage}` has files");
        for file in files {
            let text = fs::read_to_string(&file).expect("it can be read");
            for (other, _) in STAGES.iter().filter(|(other, _)| *other != stage && !allowed.contains(other)) {
                if imports(&text).contains(other) {
                    wrong.push(format!("{} imports `{other}`", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_wherever_they_stand() {
    let text = "use crate::machine::Stop;\nfn f(x: crate::exec::Turn) {} // crate::parse::Not\n";
    assert_eq!(imports(text), BTreeSet::from(["exec", "machine"]));
}
