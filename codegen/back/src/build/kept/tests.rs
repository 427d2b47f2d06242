use super::*;
use tma_front::parse::item::file::kernels_in;
use tma_front::parse::item::template::Elsewhere;

const PTX: &str = "// source: src/a.rs:10\n.target sm_90a\n\t.loc\t1 12 5\nret;\n";

struct Package(PathBuf);

impl Package {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("tma-kept-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Keeps these instances, which are all of the package.
    fn keep(&self, line: usize, instances: &[(&Subject, &str, &str)]) -> Vec<PathBuf> {
        compiled(line, instances).write(&self.0, Target::Sm90a).unwrap();
        ours(&self.0).unwrap()
    }

    fn take(&self, subject: &Subject, line: usize) -> Result<Texts, StaleReason> {
        take(&self.0, &at(line, subject), Target::Sm90a)
    }

    fn check(&self, line: usize, instances: &[(&Subject, &str, &str)]) -> Vec<(String, StaleReason)> {
        let stale = compiled(line, instances).check(&self.0, Target::Sm90a);
        stale.into_iter().map(|stale| (stale.kernel, stale.reason)).collect()
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn compiled(line: usize, instances: &[(&Subject, &str, &str)]) -> Compiled {
    let mut compiled = Compiled::default();
    for (subject, kernel, ptx) in instances {
        compiled.add(&at(line, subject), Path::new("src/a.rs"), kernel, ptx);
    }
    compiled
}

fn subject(name: &str, hash: u64) -> Subject {
    Subject { name: name.to_owned(), hash, lines: Lines::default() }
}

fn at(line: usize, subject: &Subject) -> Subject {
    Subject { lines: Lines { name: line, ..subject.lines }, ..subject.clone() }
}

fn texts(kernel: &str, ptx: &str) -> Texts {
    Texts::from([(kernel.to_owned(), ptx.to_owned())])
}

#[test]
fn kept_ptx_is_taken_and_its_lines_follow_the_kernel() {
    let package = Package::new("taken");
    let add = subject("add", 0);
    assert!(!is_in(&package.0));
    let files = package.keep(10, &[(&add, "add", PTX)]);
    assert!(is_in(&package.0));
    assert_eq!(files, [package.0.join("tma-ptx/add-0000000000000000.kept")]);
    assert_eq!(package.take(&add, 10), Ok(texts("add", PTX)));
    let moved = PTX.replace(":10", ":13").replace("1 12 5", "1 15 5");
    assert_eq!(package.take(&add, 13), Ok(texts("add", &moved)));
    assert_eq!(package.check(13, &[(&add, "add", &moved)]), []);
    let differs = [("add".to_owned(), StaleReason::Differs)];
    assert_eq!(package.check(13, &[(&add, "add", &moved.replace("ret", "exit"))]), differs);
}

#[test]
fn instances_of_a_kernel_share_a_file_of_the_same_bytes_each_time() {
    let package = Package::new("instances");
    let add = subject("add", 1);
    // Random digits, which nothing but the same digits compresses.
    let mut seed = 1_u64;
    let mut digits = || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        format!("{seed:016x}\n")
    };
    let wide: String = (0..4000).map(|_| digits()).collect();
    let narrow = wide.replacen("ab", "cd", 1);
    let both = [(&add, "add::wide", wide.as_str()), (&add, "add::narrow", &narrow)];
    let files = package.keep(1, &both);
    let bytes = fs::read(&files[0]).unwrap();
    assert_eq!(files.len(), 1);
    assert!(bytes.len() < wide.len() * 2 / 3, "{} of {} bytes", bytes.len(), wide.len());
    assert_eq!(package.take(&add, 1).unwrap().len(), 2);

    fs::remove_file(&files[0]).unwrap();
    package.keep(1, &[both[1], both[0]]);
    assert_eq!(fs::read(&files[0]).unwrap(), bytes);

    let absent = ("add::tall".to_owned(), StaleReason::Absent);
    let gone = ("add::narrow".to_owned(), StaleReason::Gone);
    assert_eq!(package.check(1, &[both[0], (&add, "add::tall", PTX)]), [absent, gone.clone()]);
    assert_eq!(package.check(1, &both[..1]), [gone]);
    assert_eq!(package.check(1, &both), []);
}

/// A file is rewritten only if what is taken from it differs from what was compiled.
#[test]
fn lines_that_follow_the_kernel_do_not_rewrite_its_file() {
    let package = Package::new("lines");
    let add = subject("add", 0);
    let file = &package.keep(10, &[(&add, "add", PTX)])[0];
    let bytes = fs::read(file).unwrap();
    let moved = PTX.replace(":10", ":13").replace("1 12 5", "1 15 5");
    package.keep(13, &[(&add, "add", &moved)]);
    assert_eq!(fs::read(file).unwrap(), bytes);
    // The kernel has moved, and this line has not moved along.
    package.keep(13, &[(&add, "add", PTX)]);
    assert_ne!(fs::read(file).unwrap(), bytes);
    assert_eq!(package.take(&add, 13), Ok(texts("add", PTX)));
}

#[test]
fn ptx_that_does_not_agree_is_refused_with_the_reason() {
    let package = Package::new("refused");
    let add = subject("add_one", 0);
    let files = package.keep(10, &[(&add, "add_one", PTX)]);
    assert_eq!(package.take(&subject("add_one", 1), 10), Err(StaleReason::Changed));
    assert_eq!(package.take(&subject("add", 0), 10), Err(StaleReason::Absent));
    let wanted = StaleReason::OtherTarget { found: "sm_90a".to_owned(), wanted: Target::Sm90 };
    assert_eq!(take(&package.0, &at(10, &add), Target::Sm90), Err(wanted));

    let whole = fs::read(&files[0]).unwrap();
    let with = |bytes: &[u8]| {
        fs::write(&files[0], bytes).unwrap();
        package.take(&add, 10)
    };
    for end in 0..whole.len() {
        assert_eq!(with(&whole[..end]), Err(StaleReason::Damaged), "{end} of {} bytes", whole.len());
    }
    assert_eq!(with(&[&whole[..], b"\n"].concat()), Err(StaleReason::Damaged));
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for at in header..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert_eq!(with(&damaged), Err(StaleReason::Damaged), "byte {at}");
    }
    let own = env!("CARGO_PKG_VERSION").as_bytes();
    let at = whole.windows(own.len()).position(|bytes| bytes == own).unwrap();
    let old = [&whole[..at], b"0.0.9", &whole[at + own.len()..]].concat();
    assert_eq!(with(&old), Err(StaleReason::OtherGenerator { found: "0.0.9".to_owned() }));

    // A failed assertion reports its line, which is in the code.
    let asserts = "call __assertfail;\n";
    package.keep(9, &[(&add, "add_one", asserts)]);
    assert_eq!(package.take(&add, 9), Ok(texts("add_one", asserts)));
    assert_eq!(package.take(&add, 10), Err(StaleReason::Moved));
    let other = Subject { lines: Lines { name: 9, positions: 1 }, ..add.clone() };
    assert_eq!(package.take(&other, 9), Err(StaleReason::Moved));
    package.keep(9, &[(&add, "add_one", PTX)]);
    assert_eq!(package.take(&other, 9), Ok(texts("add_one", PTX)));
}

/// The lines of what a kernel imports count, and those of its own statements.
#[test]
fn positions_are_relative_to_the_kernel() {
    let lines = |source: &str| {
        let (item, shared) = &kernels_in(source, &Elsewhere::UNKNOWN)[0];
        Lines::of(item, shared)
    };
    let text = "#[tma_module] mod m {\n#[tma_kernel]\nfn k() {\nf();\n}\n#[tma_device]\nfn f() {}\n}";
    let (old, moved) = (lines(text), lines(&format!("\n{text}")));
    assert_eq!((old.name, moved), (3, Lines { name: 4, ..old }));
    for (before, after) in [("f();", "\nf();"), ("#[tma_device]", "\n#[tma_device]"), ("f();", " f();")] {
        let other = lines(&text.replacen(before, after, 1));
        assert!(other.name == 3 && other.positions != old.positions, "{after}");
    }
}

/// The hash of the bytes is not a secret: what it covers may still be wrong.
#[test]
fn bytes_that_are_not_packed_ptx_are_damage() {
    let package = Package::new("bytes");
    let add = subject("add", 0);
    let file = &package.keep(1, &[(&add, "add", PTX)])[0];
    let whole = fs::read(file).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let with = |packed: &[u8]| {
        fs::write(file, archive::with_header(packed, Lines { name: 1, positions: 0 }, Target::Sm90a))
            .unwrap();
        package.take(&add, 1)
    };
    assert_eq!(with(&whole[header..]), Ok(texts("add", PTX)));
    for end in header..whole.len() {
        assert_eq!(with(&whole[header..end]), Err(StaleReason::Damaged), "{end} of {} bytes", whole.len());
    }
    for at in header..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            // Text of another kernel at worst, and no panic.
            assert_ne!(with(&damaged[header..]), Ok(Texts::new()), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn only_our_files_of_kernels_that_are_gone_are_removed() {
    let package = Package::new("stale");
    let (gone, here) = (subject("gone", 0), subject("here", 0));
    let both = [(&gone, "gone", PTX), (&here, "here", PTX)];
    package.keep(1, &both);
    for other in ["mine.kept", "mine.new", "here-0000000000000000.7.new"] {
        fs::write(package.0.join(FOLDER).join(other), PTX).unwrap();
    }
    let missing = compiled(1, &both[1..]).gone(&package.0).unwrap();
    assert_eq!(missing.len(), 1);
    assert_eq!((missing[0].kernel.as_str(), &missing[0].reason), ("gone", &StaleReason::Gone));
    package.keep(1, &both[1..]);
    let names = fs::read_dir(package.0.join(FOLDER)).unwrap();
    let mut left: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["here-0000000000000000.kept", "mine.kept", "mine.new"]);
}

#[test]
fn a_mode_is_for_one_package() {
    assert_eq!(KeepMode::of("write:kernels", "kernels"), KeepMode::Write);
    assert_eq!(KeepMode::of("check:kernels", "kernels"), KeepMode::Check);
    for (value, package) in
        [("write:kernels", "others"), ("write", "kernels"), ("", ""), ("off:kernels", "kernels")]
    {
        assert_eq!(KeepMode::of(value, package), KeepMode::Nothing, "{value} for {package}");
    }
}

#[test]
fn the_message_names_the_kernel_and_what_to_do() {
    let stale_kept = StaleKeptPtx {
        kernel: "add::one".to_owned(),
        location: ("src/a.rs".into(), 3),
        reason: StaleReason::Changed,
    };
    let error = BuildError::StaleKeptPtx(vec![stale_kept]).to_string();
    assert!(
        error.starts_with("src/a.rs:3: TMA0905: the PTX of `add::one` in `tma-ptx` is out of date"),
        "{error}"
    );
    assert!(error.contains("`cargo tma ptx --keep`"), "{error}");
}

/// Modules that use each other in a row: the kernel's, one that it imports from, and one behind it.
const FILES: [(&str, &str); 3] = [
    (
        "src/kernel.rs",
        "#[tma_module]
        pub mod kernels {
            use tma_runtime::prelude::*;
            use crate::near::near::scaled;
            #[tma_kernel(threads = 32, instances(T in [f32, u32]))]
            pub fn scale<T: TileElement>(x: Global<T>, y: f32) {
                let z = scaled(y);
                if z > 1.0 {
                    x.set(thread_idx().x, x.get(thread_idx().x + 32));
                }
            }
        }",
    ),
    (
        "src/near.rs",
        "#[tma_module]
        pub mod near {
            use tma_runtime::prelude::*;
            use crate::far::far::FACTOR;
            #[tma_device]
            pub fn scaled(y: f32) -> f32 {
                y * FACTOR
            }
        }",
    ),
    (
        "src/far.rs",
        "#[tma_module]
        pub mod far {
            pub const FACTOR: f32 = 2.0;
        }",
    ),
];

/// A change of any of the modules that a kernel is made from makes its kept PTX stale, and a change
/// of none does not.
#[test]
fn the_hash_has_all_that_a_kernel_is_made_from() {
    let package = Package::new("hash");
    let out_dir = package.0.join("out");
    fs::create_dir_all(package.0.join("src")).unwrap();
    let lines = "pub mod far;\npub mod kernel;\npub mod near;\n";
    fs::write(package.0.join("src/lib.rs"), lines).unwrap();
    fs::write(package.0.join("Cargo.toml"), "[package]\nname = \"kept\"\n").unwrap();
    for (file, text) in FILES {
        fs::write(package.0.join(file), text).unwrap();
    }
    let build = |ptx: bool| {
        let build = super::super::Build::new().ptx(ptx);
        build.compile(&package.0, &super::super::sources::roots(&package.0, &[]), &out_dir)
    };
    let report = build(false).unwrap();
    assert_eq!(report.compiled, ["scale::f32", "scale::u32"], "{report:?}");
    let ptx = fs::read_dir(out_dir.join("tma")).unwrap().map(|entry| entry.unwrap().file_name());
    let ptx = ptx.map(|name| name.into_string().unwrap()).find(|name| name.ends_with(".ptx")).unwrap();
    let hash = ptx.trim_end_matches(".ptx").rsplit('-').next().unwrap();
    let scale = subject("scale", u64::from_str_radix(hash, 16).unwrap());
    package.keep(6, &[(&scale, "scale::f32", PTX), (&scale, "scale::u32", PTX)]);
    assert_eq!(build(true).unwrap().kept, ["scale::f32", "scale::u32"]);
    assert!(fs::read_to_string(out_dir.join("tma").join(&ptx)).unwrap().ends_with("ret;\n"));

    for (at, old, new) in [
        (0, "z > 1.0", "z > 2.0"),
        (0, "[f32, u32]", "[f32, i32]"),
        (0, "threads = 32", "threads = 64"),
        (1, "y * FACTOR", "y + FACTOR"),
        (2, "2.0", "3.0"),
    ] {
        let (file, text) = FILES[at];
        fs::write(package.0.join(file), text.replacen(old, new, 1)).unwrap();
        let error = build(true).unwrap_err();
        let BuildError::StaleKeptPtx(stale) = &error else { panic!("{error}") };
        assert!(stale.iter().all(|stale| stale.reason == StaleReason::Changed), "{error}");
        assert_eq!(stale.len(), 2, "{new}: {error}");
        // A build that runs nothing checks the kernel instead.
        assert_eq!(build(false).unwrap().compiled.len(), 2, "{new}");
        fs::write(package.0.join(file), text).unwrap();
    }
    assert_eq!(build(true).unwrap().kept.len(), 2);
    // A comment is no change, and neither are other items of the file.
    let (file, text) = FILES[1];
    fs::write(package.0.join(file), format!("/// A module.\n{text}\npub fn other() {{}}\n")).unwrap();
    assert_eq!(build(true).unwrap().kept.len(), 2);
}

/// PTX that was taken from the folder is not reused by a build that compiles: it may be another
/// compiler's.
#[test]
fn kept_ptx_in_the_build_folder_does_not_count_as_compiled() {
    let package = Package::new("origin");
    let source =
        "#[tma_kernel(threads = 32)]\npub fn add(x: Global<u32>) {\n    x.set(thread_idx().x, 1);\n}\n";
    fs::create_dir_all(package.0.join("src")).unwrap();
    fs::write(package.0.join("src/lib.rs"), source).unwrap();
    let build = || {
        let roots = super::super::sources::roots(&package.0, &[]);
        super::super::Build::new().compile(&package.0, &roots, &package.0.join("out")).unwrap()
    };
    assert_eq!(build().compiled, ["add"]);
    assert_eq!(build().reused, ["add"]);
    let (item, shared) = &kernels_in(source, &Elsewhere::UNKNOWN)[0];
    let add = subject("add", hash::kernel(item, shared));
    package.keep(2, &[(&add, "add", PTX)]);
    assert_eq!(build().kept, ["add"]);
    fs::remove_dir_all(package.0.join(FOLDER)).unwrap();
    assert_eq!(build().compiled, ["add"]);
}
