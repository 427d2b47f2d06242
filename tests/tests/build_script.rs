//! The build script's side on a package of its own: what is compiled again, what is kept, what is removed.
#![cfg(feature = "llvm")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tma_codegen::{Build, Report, Target};

const ADD: &str = "\
#[tma_kernel(threads = 32)]
fn add(values: Global<f32>, amount: f32) {
    let i = thread_idx().x;
    values.set(i, values.get(i) + amount);
}
";

const FILL: &str = "\
#[tma_kernel(threads = 32, instances(one = <1>, two = <2>))]
fn fill<const N: u32>(values: Global<u32>) {
    values.set(thread_idx().x, N);
}
";

/// Has no line among its instructions, as what checks bounds or asserts has.
const WAIT: &str = "\
#[tma_kernel(threads = 32)]
fn wait() {
    let met: Barrier = shared();
    met.init(32);
    met.arrive();
    met.wait(0);
}
";

const BROKEN: &str = "\
#[tma_kernel(threads = 32)]
fn broken(values: Global<u32>) {
    values.set(0, 1.5);
}
";

/// A package with one file, and what the build script makes of it.
struct Package {
    folder: PathBuf,
}

impl Package {
    /// An empty one; `name` is that of the test.
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_script").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(folder.join("src")).unwrap();
        Self { folder }
    }

    /// Writes the file and runs the build script.
    fn build(&self, text: &str) -> Report {
        self.build_for(Target::default(), text)
    }

    fn build_for(&self, target: Target, text: &str) -> Report {
        let source = self.folder.join("src");
        fs::write(source.join("lib.rs"), text).unwrap();
        Build::new().target(target).compile(&self.folder, &[source], &self.folder.join("out")).unwrap()
    }

    /// The PTX files by name, with their contents.
    fn files(&self) -> BTreeMap<String, String> {
        let entries = fs::read_dir(self.folder.join("out/tma")).unwrap();
        let file = |path: PathBuf| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        };
        entries.map(|entry| file(entry.unwrap().path())).collect()
    }

    /// The text of the one file of a kernel or instance.
    fn ptx(&self, kernel: &str) -> String {
        let mut found =
            self.files().into_values().filter(|text| text.contains(&format!("// kernel: {kernel}\n")));
        let text = found.next().unwrap_or_else(|| panic!("there is no PTX of {kernel}"));
        assert_eq!(found.next(), None, "{kernel} has two files");
        text
    }

    /// Makes all files look an hour old, and returns the date that they then have.
    fn age(&self) -> SystemTime {
        let date = SystemTime::now() - Duration::from_secs(3600);
        for name in self.files().keys() {
            let file = File::options().append(true).open(self.folder.join("out/tma").join(name)).unwrap();
            file.set_modified(date).unwrap();
        }
        date
    }

    /// The names of the files that were written since they were [aged](Self::age) to `date`.
    fn written_since(&self, date: SystemTime) -> Vec<String> {
        let is_new = |name: &String| {
            let modified = fs::metadata(self.folder.join("out/tma").join(name)).unwrap().modified().unwrap();
            modified > date + Duration::from_secs(60)
        };
        self.files().into_keys().filter(is_new).collect()
    }
}

fn report(compiled: &[&str], reused: &[&str], refused: &[&str]) -> Report {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Report { compiled: names(compiled), reused: names(reused), refused: names(refused) }
}

#[test]
fn one_file_an_instance() {
    let package = Package::new("one_file_an_instance");
    let found = package.build(&format!("{ADD}{FILL}"));
    assert_eq!(found, report(&["add", "fill::one", "fill::two"], &[], &[]));
    assert_eq!(package.files().len(), 3);
    assert!(package.ptx("fill::two").contains(".visible .entry"));
}

#[test]
fn nothing_changed_nothing_written() {
    let package = Package::new("nothing_changed");
    let text = format!("{ADD}{FILL}");
    package.build(&text);
    let (before, date) = (package.files(), package.age());
    assert_eq!(package.build(&text), report(&[], &["add", "fill::one", "fill::two"], &[]));
    assert_eq!(package.files(), before);
    assert_eq!(package.written_since(date), [""; 0]);
}

#[test]
fn a_changed_body_compiles_that_kernel_alone() {
    let package = Package::new("a_changed_body");
    package.build(&format!("{ADD}{FILL}"));
    let (old, date) = (package.files(), package.age());
    let found = package.build(&format!("{}{FILL}", ADD.replace("+ amount", "- amount")));
    assert_eq!(found, report(&["add"], &["fill::one", "fill::two"], &[]));

    let written = package.written_since(date);
    assert_eq!(written.len(), 1, "{written:?}");
    assert!(!old.contains_key(&written[0]), "another body, another name: the macro never takes the old PTX");
    assert_eq!(package.files().len(), 3, "the old PTX is gone");
    assert!(package.ptx("add").contains("sub"));
}

#[test]
fn moved_kernels_get_new_lines() {
    let package = Package::new("moved_kernels");
    package.build(&format!("{WAIT}{ADD}"));
    let old = package.ptx("wait");
    let text = format!("// A comment.\n\n{WAIT}\n{ADD}");
    // Bounds checks say their line on the GPU: that is code.
    assert_eq!(package.build(&text), report(&["add"], &["wait"], &[]));
    assert!(old.contains("src/lib.rs:2\n"), "{old}");
    assert!(package.ptx("wait").contains("src/lib.rs:4\n"));
    assert!(package.ptx("add").contains("src/lib.rs:12\n"));

    // What was kept and moved is what would have been compiled.
    let fresh = Package::new("moved_kernels_fresh");
    fresh.build(&text);
    assert_eq!(package.files(), fresh.files());
}

#[test]
fn another_target_compiles_all() {
    let package = Package::new("another_target");
    package.build(ADD);
    assert_eq!(package.build_for(Target::Sm100a, ADD), report(&["add"], &[], &[]));
    assert!(package.ptx("add").contains(".target sm_100a\n"));
}

#[test]
fn what_breaks_a_rule_is_passed_over() {
    let package = Package::new("passed_over");
    assert_eq!(package.build(&format!("{BROKEN}{ADD}")), report(&["add"], &[], &["broken"]));
    assert_eq!(package.files().len(), 1);
    assert_eq!(package.build("fn this is not Rust"), report(&[], &[], &[]));
}

#[test]
fn what_is_gone_is_removed() {
    let package = Package::new("what_is_gone");
    package.build(&format!("{FILL}{ADD}"));
    assert_eq!(package.build(FILL), report(&[], &["fill::one", "fill::two"], &[]));
    assert_eq!(package.files().len(), 2);
    let one = FILL.replace(", two = <2>", "");
    // The attribute is a part of the kernel: its other instances have new names too.
    assert_eq!(package.build(&one), report(&["fill::one"], &[], &[]));
    assert_eq!(package.files().len(), 1);
}

#[test]
fn shared_items_are_a_part_of_each_kernel() {
    let package = Package::new("shared_items");
    let module = |n: u32| {
        format!(
            "#[tma_module]\nmod kernels {{\nconst N: u32 = {n};\n#[tma_kernel(threads = 32)]\n\
             fn write(values: Global<u32>) {{ values.set(thread_idx().x, N); }}\n}}\n{ADD}"
        )
    };
    assert_eq!(package.build(&module(7)), report(&["write", "add"], &[], &[]));
    let first = package.ptx("write");
    assert_eq!(package.build(&module(8)), report(&["write"], &["add"], &[]));
    assert_ne!(package.ptx("write"), first);
}
