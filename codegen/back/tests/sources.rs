//! The files that the build script reads, and the kernels that it finds in them.

use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::{Build, BuildError, Report, Target};

/// A package for a test.
struct Package(PathBuf);

impl Package {
    /// Creates an empty package; `name` is that of the test.
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

    /// Returns the names and texts of the files that were written.
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

// A file without PTX is written again for each location, whose line it holds.
#[cfg(feature = "llvm")]
#[test]
fn the_same_kernel_at_two_locations_is_compiled_once() {
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

#[test]
fn warnings_are_in_the_report_with_their_locations() {
    let package = Package::new("warned");
    package.write(
        "lib.rs",
        "#[tma_kernel(threads = 32)]\nfn k() {\n    let full: Barrier = shared();\n    if thread_idx().x == 0 { full.init(1); }\n}\n",
    );
    for compiled in [1, 0] {
        let report = package.compile();
        assert_eq!(report.compiled.len(), compiled, "a kernel is warned of, compiled or kept");
        let [warning] = &report.warnings[..] else { panic!("{report:?}") };
        let text = warning.to_string();
        assert!(text.starts_with("src/lib.rs:3:25: TMA0015: unused shared memory: `full`"), "{text}");
    }
}

/// The macro does not know the target, so only the build script can report this.
#[test]
fn missing_features_are_errors_with_their_locations() {
    let package = Package::new("lacking");
    let changing = "fn k(maps: Maps<Tile<f32, Shape1<32>>>, model: TensorMap<Tile<f32, Shape1<32>>>) {\n    \
                    let map: SharedMap<Tile<f32, Shape1<32>>> = shared();\n    \
                    if lane_idx() == 0 { map.copy_from(model);\n    \
                    map.set_extent::<0>(4); }\n    sync_warp(); map.publish(maps, 0);\n}\n";
    package.write("lib.rs", format!("{}#[tma_kernel(threads = 32)]\n{changing}", kernel("first")));
    let roots = [package.0.join("src")];
    let build = |target| Build::new().target(target).compile(&package.0, &roots, &package.0.join("out"));
    let error = build(Target::Sm90).expect_err("sm_90 lacks it");
    let BuildError::Target(errors) = &error else { panic!("{error}") };
    assert_eq!(errors.len(), 1);
    assert!(
        error.to_string().starts_with("src/lib.rs:6:5: TMA0227: `set_extent` requires `tensormap.replace`"),
        "{error}"
    );
    assert_eq!(build(Target::Sm90a).map(|report| report.compiled.len()).ok(), Some(2));
}
