//! Modules that are made from others, `#[tma_module(from = ..)]`, which may be in other packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::{Build, Failure, Report, abi, check, check_in};

/// A package with a module that others are made from: `lib::fills::add`.
const LIBRARY: &str = "\
pub mod fills;
";

const FILLS: &str = "\
#[tma_module]
pub mod add {
    use tma_runtime::prelude::*;

    #[tma_device(open)]
    fn change(x: f32) -> f32 {
        x
    }

    #[tma_device]
    fn twice(x: f32) -> f32 {
        change(x) + change(x)
    }

    #[tma_kernel(threads = 32, instances(one = <1>, two = <2>))]
    pub fn fill<const N: u32>(out: Global<f32>, change_by: f32) {
        let i = thread_idx().x;
        out.set(N * i, twice(change(change_by)));
    }

    /// Calls nothing that is replaced.
    #[tma_kernel(threads = 32)]
    pub fn clear(out: Global<f32>) {
        out.set(thread_idx().x, 0.0);
    }
}
";

const MINE: &str = "\
#[tma_module(from = lib::fills::add, only = [\"*o\"])]
mod mine {
    #[tma_device]
    fn change(x: f32, by: f32, of: Global<f32>) -> f32 {
        helper(x * by) + of.get(0)
    }

    #[tma_device]
    fn helper(x: f32) -> f32 {
        -x
    }
}
";

/// The page about such modules.
const PAGE: &str = include_str!("../../../docs/language/modules.md");

/// Returns the block of the page that has `text`.
fn block(text: &str) -> &'static str {
    let mut blocks = PAGE.split("\n```").filter(|block| block.starts_with("rust") && block.contains(text));
    let block = blocks.next().unwrap_or_else(|| panic!("no block has {text:?}"));
    block.split_once('\n').expect("a line").1
}

/// Two packages, the second of which depends on the first.
struct Packages(PathBuf);

impl Packages {
    /// Creates the packages; `name` is that of the test.
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        let packages = Self(folder);
        packages.write("lib/src/lib.rs", LIBRARY);
        packages.write("lib/src/fills.rs", FILLS);
        packages
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Builds the second package, whose only file has this text.
    fn build(&self, text: &str) -> Report {
        self.write("user/src/lib.rs", text);
        let (package, out) = (self.0.join("user"), self.0.join("user/out"));
        let build = Build::new().package("lib", self.0.join("lib"));
        build.compile(&package, &[package.join("src")], &out).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the file with a template's path that the build script leaves for the macro.
    fn left(&self, path: &str) -> String {
        let file = format!("user/out/tma/{}.template", path.replace("::", "-"));
        fs::read_to_string(self.0.join(file)).unwrap()
    }
}

#[test]
fn a_template_of_another_package_is_found_and_left_for_the_macro() {
    let packages = Packages::new("found");
    let report = packages.build(MINE);
    assert_eq!(report.compiled, ["fill::two", "clear"]);
    assert_eq!(report.refused, [""; 0]);
    // The macro has the template's tokens, and merges them itself.
    let left: syn::ItemMod = syn::parse_str(&packages.left("lib::fills::add")).unwrap();
    assert_eq!(left, syn::parse_str(FILLS).unwrap());
    assert_eq!(packages.build(MINE).reused, ["fill::two", "clear"]);
}

/// Tools see the kernels that the build script compiles, with the hashes that name their PTX.
#[test]
fn a_check_of_a_package_has_the_kernels_that_its_build_compiles() {
    let packages = Packages::new("checked");
    packages.build(MINE);
    let (user, lib) = (packages.0.join("user"), packages.0.join("lib"));
    let others = BTreeMap::from([("lib".to_owned(), lib)]);
    let accepted = check_in(&user, &others, "src/lib.rs", MINE).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<_> = accepted.kernels.iter().map(|checked| checked.kernel.kernel().path()).collect();
    assert_eq!(names, ["fill::two", "clear"]);
    for checked in &accepted.kernels {
        assert_eq!(checked.made_from.as_deref(), Some(Path::new("lib/src/fills.rs")));
        let ptx = user.join("out").join(abi::ptx_file(checked.kernel.kernel(), checked.hash));
        assert!(ptx.exists(), "{}", ptx.display());
    }
    // Errors are reported by the line of the template.
    let failure = check_in(&user, &others, "src/lib.rs", &MINE.replace("-x", "-y")).unwrap_err();
    let Failure::Rules { errors, rendered, .. } = &failure else { panic!("{failure}") };
    assert!(!errors.is_empty() && rendered.contains("lib/src/fills.rs:2:"), "{rendered}");
    // Without the other package the template is not found.
    let failure = check_in(&user, &BTreeMap::new(), "src/lib.rs", MINE).unwrap_err();
    assert!(failure.to_string().contains("TMA0271"), "{failure}");
}

#[test]
fn the_page_makes_distances_of_sums() {
    let packages = Packages::new("page");
    packages.write("lib/src/lib.rs", block("pub mod sums"));
    let report = packages.build(&block("pub mod distances").replace("other_package", "lib"));
    assert_eq!(report.compiled, ["of_rows::n_8"]);
    assert_eq!(report.refused, [""; 0]);
}

#[test]
fn what_is_replaced_and_what_is_changed_in_a_template_is_compiled_again() {
    let packages = Packages::new("again");
    packages.build(MINE);
    let report = packages.build(&MINE.replace("-x", "x"));
    assert_eq!(report.compiled, ["fill::two", "clear"], "they share one module");
    packages.write("lib/src/fills.rs", &FILLS.replace("N * i", "N + i"));
    assert_eq!(packages.build(&MINE.replace("-x", "x")).compiled, ["fill::two"]);
}

#[test]
fn the_reason_why_there_is_no_template_is_left_as_well() {
    let packages = Packages::new("reasons");
    packages.write(
        "lib/src/lib.rs",
        &format!("{LIBRARY}mod plain {{}}\n#[tma_module(from = lib::fills::add)] pub mod made {{}}"),
    );
    for (path, reason) in [
        ("other::fills::add", "!package"),
        ("lib::fills::ad", "!module ad"),
        ("lib::missing::add", "!module missing"),
        ("lib::fills", "!unmarked"),
        ("lib::plain", "!unmarked"),
        ("lib::made", "!made"),
    ] {
        let report = packages.build(&MINE.replace("lib::fills::add", path));
        assert_eq!(report.compiled, [""; 0], "{path}");
        assert_eq!(packages.left(path), reason, "{path}");
    }
}

/// With the package's name or `crate`, from its own root.
#[test]
fn a_template_may_be_of_the_same_package() {
    let packages = Packages::new("own");
    let text = format!("{FILLS}{}", MINE.replace("lib::fills", "crate"));
    assert_eq!(packages.build(&text).compiled, ["fill::one", "fill::two", "clear", "fill::two", "clear"]);
}

/// The module written out, as it should expand.
#[test]
fn a_made_module_is_the_one_that_would_be_written_out() {
    let made = format!("{FILLS}{}", MINE.replace("lib::fills", "crate"));
    let written_out = "\
#[tma_module]
mod mine {
    #[tma_device]
    fn change(x: f32, by: f32, of: Global<f32>) -> f32 {
        helper(x * by) + of.get(0)
    }

    #[tma_device]
    fn twice(x: f32, change_by_: f32, change_of: Global<f32>) -> f32 {
        change(x, change_by_, change_of) + change(x, change_by_, change_of)
    }

    #[tma_kernel(threads = 32, instances(two = <2>))]
    pub fn fill<const N: u32>(out: Global<f32>, change_by: f32, change_by_: f32, change_of: Global<f32>) {
        let i = thread_idx().x;
        out.set(N * i, twice(change(change_by, change_by_, change_of), change_by_, change_of));
    }

    #[tma_kernel(threads = 32)]
    pub fn clear(out: Global<f32>) {
        out.set(thread_idx().x, 0.0);
    }

    #[tma_device]
    fn helper(x: f32) -> f32 {
        -x
    }
}
";
    let kernels = |text: &str| {
        let accepted = check("lib.rs", text).unwrap_or_else(|error| panic!("{error}"));
        let all = accepted.kernels.into_iter();
        all.map(|checked| (checked.hash, checked.kernel.kernel().to_string())).collect::<Vec<_>>()
    };
    let (made, written_out) = (kernels(&made), kernels(written_out));
    // The template's three kernels come first.
    assert_eq!(made.len(), 3 + written_out.len());
    for (made, written_out) in made[3..].iter().zip(&written_out) {
        assert_eq!(made.1, written_out.1);
        assert_eq!(made.0, written_out.0, "build script and macro name PTX by this");
    }
}

/// Patterns select from the template's kernels, not from those that the module has itself.
#[test]
fn kernels_of_the_module_itself_are_compiled_whatever_the_pattern() {
    let packages = Packages::new("own_kernels");
    let text = "
#[tma_module(from = lib::fills::add, only = [])]
mod mine {
    #[tma_kernel(threads = 32, instances(four = <4>, five = <5>))]
    pub fn own<const N: u32>(out: Global<f32>) {
        out.set(N, twice(1.0));
    }
}
";
    let report = packages.build(text);
    assert_eq!(report.compiled, ["clear", "own::four", "own::five"]);
    let others = BTreeMap::from([("lib".to_owned(), packages.0.join("lib"))]);
    let accepted = check_in(&packages.0.join("user"), &others, "src/lib.rs", text).unwrap();
    assert_eq!(accepted.kernels.len(), 3);
}

/// A module adds instances to those of its template, also with constants that the template
/// computes.
#[test]
fn a_module_adds_instances_of_its_own() {
    let packages = Packages::new("added");
    let mine = |options: &str| {
        packages.build(&format!("#[tma_module(from = lib::fills::add, {options})]\nmod mine {{}}"))
    };
    let report = mine("only = [], instances = [fill(three = <3>, N in [8, 16])]");
    assert_eq!(report.compiled, ["fill::three", "fill::n_8", "fill::n_16", "clear"], "{:?}", report.refused);
    let report = mine("only = [\"one\"], instances = [fill(N in [8])]");
    assert_eq!(
        (&report.reused[..], &report.compiled[..]),
        (&["clear"].map(str::to_owned)[..], &["fill::one", "fill::n_8"].map(str::to_owned)[..])
    );
    let report = mine("instances = [fill(N in [4]), fill(N in [32])]");
    assert_eq!(report.compiled, ["fill::one", "fill::two", "fill::n_4", "fill::n_32"]);

    let fills = FILLS
        .replace("one = <1>, two = <2>", "N in [1, 2], let M = 2 * N")
        .replace("fill<const N: u32>", "fill<const N: u32, const M: u32>");
    packages.write("lib/src/fills.rs", &fills.replace("out.set(N * i", "out.set(M * i"));
    let report = mine("only = [], instances = [fill(N in [5])]");
    assert_eq!(report.compiled, ["fill::n_5"], "{:?}", report.refused);

    let refused = |options: &str, wanted: &str| {
        let text = format!("{FILLS}#[tma_module(from = crate::add, {options})]\nmod mine {{}}");
        let error = check("lib.rs", &text).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    refused("instances = [full(N in [4])]", "TMA0274");
    refused("instances = [clear(N in [4])]", "the template has no generic kernel `clear`");
    refused("instances = [fill(K in [4])]", "TMA0010");
    refused("instances = [fill(one = <4>)]", "TMA0010");
    refused("instances = [fill]", "TMA0006");
    refused("instances = [], instances = []", "specified twice");
}

/// A kernel with an empty `instances(..)` is compiled by modules made from its module alone, with
/// the constants that the template computes.
#[test]
fn a_library_may_have_kernels_without_instances() {
    let packages = Packages::new("open_instances");
    for (lists, arguments) in [("", "const N: u32"), ("let M = 2 * N", "const N: u32, const M: u32")] {
        let fills = FILLS.replace("one = <1>, two = <2>", lists).replace("const N: u32", arguments);
        packages.write("lib/src/fills.rs", &fills);
        let alone = check("fills.rs", &fills).unwrap();
        let names: Vec<_> = alone.kernels.iter().map(|checked| checked.kernel.kernel().path()).collect();
        assert_eq!(names, ["clear"]);
        let mine = |options: &str| {
            packages.build(&format!("#[tma_module(from = lib::fills::add{options})]\nmod mine {{}}"))
        };
        let report = mine(", instances = [fill(N in [8, 16])]");
        assert!(report.compiled.starts_with(&["fill::n_8", "fill::n_16"].map(str::to_owned)), "{report:?}");
        let report = mine("");
        assert!(!report.compiled.iter().any(|name| name.starts_with("fill")), "{report:?}");
    }
    // Nothing can be made from a kernel outside of a module.
    let alone =
        "#[tma_kernel(threads = 32, instances())] fn k<const N: u32>(out: Global<u32>) { out.set(0, N); }";
    let error = check("lib.rs", alone).unwrap_err().to_string();
    assert!(error.contains("`k` is generic, but has no instances"), "{error}");
}

/// A template's imports are relative to the template.
#[test]
fn a_template_may_import_items() {
    let packages = Packages::new("imports");
    packages.write("lib/src/lib.rs", "pub mod fills; #[tma_module] pub mod shared { pub const K: u32 = 7; }");
    for path in ["crate::shared::K", "super::super::shared::K", "super::inner::K"] {
        let inner = "#[tma_module] pub mod inner { pub use crate::shared::K; }";
        let fills = FILLS.replace("use tma", &format!("use {path};\n    use tma"));
        packages.write(
            "lib/src/fills.rs",
            &format!("{inner}{}", fills.replace("out.set(N * i", "out.set(K * N * i")),
        );
        let report = packages.build(MINE);
        assert_eq!((report.refused, report.compiled.len() + report.reused.len()), (vec![], 2), "{path}");
    }
}

/// A text alone does not determine where other packages are.
#[test]
fn what_is_made_from_another_package_is_not_judged_in_a_text() {
    let kernels = |text: &str| check("lib.rs", text).map(|accepted| accepted.kernels.len());
    assert_eq!(kernels(&format!("{FILLS}{MINE}")).unwrap(), 3);
    let unknown = MINE.replace("lib::fills::add", "crate::ad");
    let error = kernels(&format!("{FILLS}{unknown}")).unwrap_err().to_string();
    assert!(error.contains("TMA0271") && error.contains("no module `ad`"), "{error}");
}

#[test]
fn tma0006_options_of_modules_and_device_functions_are_known_ones() {
    let refused = |text: &str, wanted: &str| {
        let error = check("lib.rs", text).unwrap_err().to_string();
        assert!(error.contains("TMA0006") && error.contains(wanted), "{error}");
    };
    refused("#[tma_module(form = crate::add)] mod mine {}", "`tma_module` has no option `form`");
    refused("#[tma_module(only = [\"a\"])] mod mine {}", "`only` requires `from`");
    refused("#[tma_module(instances = [])] mod mine {}", "`instances` requires `from`");
    refused("#[tma_module(from = crate::a, from = crate::b)] mod mine {}", "`from` is specified twice");
    refused("#[tma_module(from = \"add\")] mod mine {}", "malformed attribute");
}
