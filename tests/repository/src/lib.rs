//! The text files of the repository and their contents, for tests of rules that no compiler checks.
//!
//! The package depends on no other package of the workspace, so that these tests take seconds after
//! any change.

use std::{fs, path::Path, process::Command};

/// A text file of the repository, and its path from the root, with `/`.
pub struct File {
    /// The path.
    pub path: String,
    /// The contents.
    pub text: String,
}

impl File {
    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the whole file is for tests only.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Returns the file without its test module, and the test module. By convention it comes last.
    pub fn split_tests(&self) -> (&str, &str) {
        match self.text.find("#[cfg(test)]\nmod tests {") {
            _ if self.is_test() => ("", &self.text),
            Some(start) => self.text.split_at(start),
            None => (&self.text, ""),
        }
    }
}

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("the package lies two folders below the root")
}

/// Returns all text files of the project: in a checkout those that git does not ignore, else all
/// except `target`.
pub fn files() -> Vec<File> {
    let paths = if root().join(".git").exists() { listed_by_git() } else { found_in(root()) };
    let read = |path: String| Some(File { text: fs::read_to_string(root().join(&path)).ok()?, path });
    let files: Vec<_> = paths.into_iter().filter_map(read).collect();
    assert!(files.iter().any(|file| file.path == "tests/repository/tests/tidy.rs"), "the tree was not found");
    files
}

fn listed_by_git() -> Vec<String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().expect("git runs in a checkout");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let paths = String::from_utf8(output.stdout).expect("paths are text");
    paths.split_terminator('\0').map(str::to_owned).collect()
}

fn found_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder can be listed").flatten().map(|entry| entry.path());
    let visited = entries.filter(|path| !path.ends_with("target") && !path.is_symlink());
    let paths = visited.flat_map(|path| if path.is_dir() { found_in(&path) } else { vec![relative(&path)] });
    paths.collect()
}

/// Returns the path from the root, with `/`.
pub fn relative(path: &Path) -> String {
    let parts = path.strip_prefix(root()).expect("a path in the tree").iter();
    parts.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Fails with a list of `problems`, if there are any.
#[track_caller]
pub fn expect_none(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<_> = problems.into_iter().collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
