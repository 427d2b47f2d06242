//! The build script's side: which files it reads, and what it finds in them.

use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::{Build, Report};

/// A package of its own.
struct Package(PathBuf);

impl Package {
    /// An empty one; `name` is that of the test.
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(folder.join("src")).unwrap();
        Self(folder)
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        fs::write(self.0.join("src").join(file), text).unwrap();
    }

    fn compile(&self) -> Report {
        let roots = [self.0.join("src")];
        Build::new().compile(&self.0, &roots, &self.0.join("out")).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The names and texts of what was written.
    fn written(&self) -> Vec<(PathBuf, String)> {
        let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
        let entries = fs::read_dir(self.0.join("out/tma")).unwrap();
        let mut files: Vec<_> = entries.map(|entry| read(entry.unwrap().path())).collect();
        files.sort();
        files
    }
}

fn kernel(name: &str) -> String {
    format!("#[tma_kernel(threads = 32)] fn {name}(out: Global<u32>) {{ out.set(0, 1); }}\n")
}

#[test]
fn kernels_are_found_wherever_they_stand() {
    let package = Package::new("found");
    let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(kernel);
    package.write(
        "lib.rs",
        format!(
            "{a} mod inner {{ fn host() {{ {b} }} }}\n\
             #[tma_module] mod kernels {{ {c} mod deeper {{ {d} }} fn host() {{ {e} }} }}"
        ),
    );
    let mut found = package.compile().compiled;
    found.sort();
    assert_eq!(found, ["a", "b", "c", "d", "e"]);
}

#[test]
fn the_same_kernel_in_two_places_is_compiled_once() {
    let package = Package::new("twice");
    let k = kernel("k");
    package.write("lib.rs", format!("mod a {{\n{k}}}\nmod b {{\n{k}}}\n"));
    assert_eq!(package.compile().compiled, ["k"]);
    let written = package.written();
    assert_eq!(written.len(), 1);
    let again = package.compile();
    assert_eq!((again.compiled, again.reused), (vec![], vec!["k".to_owned(), "k".to_owned()]));
    assert_eq!(package.written(), written);
}

#[test]
fn what_is_no_rust_file_is_passed_over() {
    let package = Package::new("strange");
    package.write("lib.rs", kernel("k"));
    package.write("latin.rs", b"// tma_kernel \xff");
    package.write("broken.rs", "#[tma_kernel(threads = 32)] fn (");
    #[cfg(unix)]
    std::os::unix::fs::symlink(Path::new("nowhere"), package.0.join("src/.#lib.rs")).unwrap();
    assert_eq!(package.compile().compiled, ["k"]);
}
