//! The build script on its own package: which kernels are compiled again, which are kept, and which
//! are removed.
#![cfg(feature = "llvm")]

#[allow(dead_code, reason = "other tests use the rest")]
mod packages;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::{ffi::OsStrExt, fs::symlink};
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

/// Has no line numbers among its instructions, as bounds checks or assertions would.
const WAIT: &str = "\
#[tma_kernel(threads = 32, protocol = trusted(\"a sketch\"))]
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

/// A package with one file, and its build script.
struct Package {
    folder: PathBuf,
}

impl Package {
    /// Creates an empty package; `name` is that of the test.
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
        self.write("lib.rs", text);
        self.run(target)
    }

    /// Writes a file in `src`.
    fn write(&self, name: impl AsRef<Path>, text: &str) {
        let path = self.folder.join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs the build script.
    fn run(&self, target: Target) -> Report {
        let source = self.folder.join("src");
        Build::new().target(target).compile(&self.folder, &[source], &self.folder.join("out")).unwrap()
    }

    /// Returns the PTX files by name, with their contents.
    fn files(&self) -> BTreeMap<String, String> {
        let entries = fs::read_dir(self.folder.join("out/tma")).unwrap();
        let file = |path: PathBuf| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        };
        entries.map(|entry| file(entry.unwrap().path())).collect()
    }

    /// Returns the text of the one file of a kernel or instance.
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

    /// Returns the names of the files written since they were [aged](Self::age) to `date`.
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
    let (compiled, reused, refused) = (names(compiled), names(reused), names(refused));
    Report { compiled, reused, refused, ..Report::default() }
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
fn without_ptx_kernels_are_checked_and_compiled_later() {
    let package = Package::new("without_ptx");
    package.write("lib.rs", &format!("{ADD}{BROKEN}"));
    let run = |build: Build| {
        build.compile(&package.folder, &[package.folder.join("src")], &package.folder.join("out")).unwrap()
    };
    for _ in 0..2 {
        assert_eq!(run(Build::new().ptx(false)).refused, ["broken"]);
        let files: Vec<_> = package.files().into_values().collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        assert!(file.contains("// no code: PTX is disabled (`TMA_PTX=off`)"), "{file}");
    }
    assert_eq!(run(Build::new()), report(&["add"], &[], &["broken"]));
    assert!(package.ptx("add").contains(".visible .entry"));
    assert_eq!(run(Build::new()), report(&[], &["add"], &["broken"]));
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

/// Parsing again is skipped only if the result is known.
#[test]
fn what_an_earlier_run_knows_changes_nothing() {
    const UNUSED: &str =
        "#[tma_kernel(threads = 32)]\nfn unused() { let tile: Tile<f32, Shape1<32>> = shared(); }\n";
    let package = Package::new("known");
    let text = format!("{ADD}{FILL}{UNUSED}");
    let first = package.build(&text);
    assert_eq!(first.warnings.len(), 1);
    let names = ["add", "fill::one", "fill::two", "unused"];
    let again = Report { warnings: first.warnings.clone(), ..report(&[], &names, &[]) };
    assert_eq!(package.build(&text), again, "a warning is told again");
    let (before, known) = (package.files(), package.folder.join("out/tma-known"));
    assert_eq!(fs::read_to_string(&known).unwrap().lines().count(), 3);
    for damaged in ["0123", "kernel\tzz\tadd\ttma/add.ptx\n", ""] {
        fs::write(&known, damaged).unwrap();
        assert_eq!(package.build(&text), again, "by what is not known: {damaged:?}");
    }
    let part = before.keys().find(|name| name.contains("fill-two")).unwrap();
    fs::remove_file(package.folder.join("out/tma").join(part)).unwrap();
    let found = package.build(&text);
    assert_eq!(
        (found.compiled, found.reused),
        (vec!["fill::two".into()], ["add", "fill::one", "unused"].map(String::from).to_vec())
    );
    assert_eq!(package.files(), before);
}

#[test]
fn files_that_stay_are_taken_as_they_were() {
    let package = Package::new("files_that_stay");
    package.write("lib.rs", FILL);
    package.write("other.rs", ADD);
    package.run(Target::default());
    let known = package.folder.join("out/tma-known");
    let files =
        || fs::read_to_string(&known).unwrap().lines().filter(|line| line.starts_with("file")).count();
    assert_eq!(files(), 2);

    let (old, date) = (package.files(), package.age());
    assert_eq!(package.build(&FILL.replace("<2>", "<3>")).reused, ["add"]);
    assert_eq!(files(), 2, "the one that changed is known as it is now");
    assert_eq!(package.written_since(date).len(), 2);

    let part = old.keys().find(|name| name.contains("add")).unwrap();
    fs::remove_file(package.folder.join("out/tma").join(part)).unwrap();
    assert_eq!(package.build(FILL).compiled, ["fill::one", "fill::two", "add"]);
    assert_eq!(package.files(), old);
    package.write("other.rs", &format!("{BROKEN}{ADD}"));
    for _ in 0..2 {
        assert_eq!(package.run(Target::default()).refused, ["broken"]);
        assert_eq!(files(), 1, "what breaks a rule is looked at each time");
    }
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
    // Bounds checks contain their line, which is part of the code.
    assert_eq!(package.build(&text), report(&["add"], &["wait"], &[]));
    assert!(old.contains("src/lib.rs:2\n"), "{old}");
    assert!(package.ptx("wait").contains("src/lib.rs:4\n"));
    assert!(package.ptx("add").contains("src/lib.rs:12\n"));

    // Files that were kept and moved equal those of a fresh compilation.
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

/// A file as a full disk, or the end of a process while it writes, leaves it.
#[test]
fn a_part_of_a_file_is_made_again() {
    let package = Package::new("a_part_of_a_file");
    package.build(ADD);
    let whole = package.files();
    let (name, text) = whole.first_key_value().unwrap();
    let path = package.folder.join("out/tma").join(name);
    let lines: Vec<_> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    for end in [0, 10, lines[0], lines[lines.len() / 2], text.len() / 2, text.len() - 1] {
        fs::write(&path, &text[..end]).unwrap();
        assert_eq!(package.build(ADD), report(&["add"], &[], &[]), "{end} of {} bytes", text.len());
        assert_eq!(package.files(), whole);
    }
    // The length is unchanged, but the disk wrote zeros.
    fs::write(&path, text.replace("ret;", "\0\0\0\0")).unwrap();
    assert_eq!(package.build(ADD), report(&["add"], &[], &[]));
    assert_eq!(package.files(), whole);

    fs::write(path.with_extension("ptx.new"), &text[..10]).unwrap();
    package.build(ADD);
    assert_eq!(package.files(), whole, "what was being written is removed");
}

#[test]
fn links_between_folders_come_to_an_end() {
    let package = Package::new("links");
    let source = package.folder.join("src");
    package.write("kernels/add.rs", ADD);
    fs::create_dir_all(package.folder.join("shared")).unwrap();
    fs::write(package.folder.join("shared/fill.rs"), FILL).unwrap();
    // Files outside of the source folder are not sources.
    fs::write(package.folder.join("outside.rs"), WAIT).unwrap();
    for (to, link) in [
        (".", "here"),
        (".", "here_too"),
        ("..", "up"),
        ("../src", "again"),
        ("kernels", "a"),
        ("nowhere", "broken"),
        ("../shared", "shared"),
        ("../shared", "shared_too"),
        ("../here", "kernels/across"),
    ] {
        symlink(to, source.join(link)).unwrap();
    }
    let found = package.run(Target::default());
    assert_eq!(found, report(&["add", "fill::one", "fill::two"], &[], &[]), "each once");
    assert!(package.ptx("add").contains("// source: src/kernels/add.rs:2\n"), "{}", package.ptx("add"));
    assert!(package.ptx("fill::one").contains("// source: src/shared/fill.rs:2\n"));
}

/// The file system allows almost any name, and PTX is read line by line.
#[test]
fn names_of_files_stay_within_their_line() {
    let package = Package::new("names");
    let names: [&[u8]; 9] = [
        b"new\nret;.rs",
        b"carriage\rreturn.rs",
        b"bell\x07escape\x1b[31m.rs",
        b"quote\" 7.rs",
        b"back\\slash.rs",
        b"*/ ret; /*.rs",
        b"line\xe2\x80\xa8separator.rs",
        b"\xff\xfe.rs",
        b"folder\nret;/a.rs",
    ];
    for (number, name) in names.iter().enumerate() {
        package.write(OsStr::from_bytes(name), &ADD.replace("add(", &format!("add_{number}(")));
    }
    let found = package.run(Target::default());
    assert_eq!(found.compiled.len(), names.len(), "{found:?}");
    for (number, name) in names.iter().enumerate() {
        let ptx = package.ptx(&format!("add_{number}"));
        let shown = String::from_utf8_lossy(name);
        assert!(ptx.bytes().all(|byte| byte == b'\n' || byte == b'\t' || (b' '..=b'~').contains(&byte)));
        let header: Vec<_> = ptx.lines().take_while(|line| line.starts_with("//")).collect();
        assert_eq!(header.len(), 4, "{shown:?}: {ptx}");
        assert!(header[3].starts_with("// source: src/") && header[3].ends_with(".rs:2"), "{}", header[3]);
        assert_eq!(ptx.lines().filter(|line| line.contains("ret;") && !line.contains('.')).count(), 1);
        ptx_sim::Module::load(&ptx).unwrap_or_else(|error| panic!("{shown:?}: {error}\n{ptx}"));
    }
    assert_eq!(package.run(Target::default()).compiled, [""; 0], "all are kept");
}

/// Cargo cannot watch a path that does not exist. The folder of the package has a name that would
/// break cargo's directives.
#[test]
fn a_folder_made_after_the_first_build_is_found_by_the_build_after_the_error() {
    const TARGETS: [&str; 4] = ["--lib", "--tests", "--examples", "--benches"];
    let folder = packages::package_with_build_script("new\nline/late");
    for name in ["tests", "examples", "benches"] {
        fs::remove_dir_all(folder.join(name)).ok();
    }
    fs::write(folder.join("src/lib.rs"), "//! Nothing.\n").unwrap();
    let check = || {
        let output = packages::check(&folder, &TARGETS);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (accepted, said) = check();
    assert!(accepted, "{said}");
    for name in ["tests", "examples", "benches"] {
        fs::create_dir(folder.join(name)).unwrap();
        let kernel = ADD.replace("add", name);
        let text = format!("//! A kernel.\nuse tma_runtime::prelude::*;\n{kernel}fn main() {{}}\n");
        fs::write(folder.join(name).join("late.rs"), text).unwrap();

        let (accepted, said) = check();
        assert!(!accepted, "how was it found?");
        let file = format!("no PTX for `{name}`: the build script has not seen the current `{name}/late.rs`");
        for wanted in [&file, "build again"] {
            assert!(said.contains(wanted), "{wanted:?} was not said, but:\n{said}");
        }
        let (accepted, said) = check();
        assert!(accepted, "{said}");
        let (accepted, said) = check();
        assert!(accepted && !said.contains("late v0.0.0"), "nothing has changed:\n{said}");
    }
}
