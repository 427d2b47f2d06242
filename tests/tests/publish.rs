//! Requirements on every published package: metadata, a page, licences, and no unneeded files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folders of the workspace's packages that are published.
fn published() -> Vec<PathBuf> {
    let inside = |folder: &str| fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let folders = inside("").chain(inside("codegen"));
    let is_published = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.contains("[package]") && !manifest.contains("publish = false")
    };
    let mut found: Vec<_> = folders.filter(is_published).collect();
    found.sort();
    found
}

fn manifest(folder: &Path) -> String {
    fs::read_to_string(folder.join("Cargo.toml")).unwrap()
}

/// Returns the name in a manifest.
fn name(manifest: &str) -> &str {
    manifest.split_once("name = \"").and_then(|(_, rest)| rest.split('"').next()).unwrap()
}

/// Returns the features in a manifest, without `default`.
fn features(manifest: &str) -> Vec<&str> {
    let section = manifest.split_once("\n[features]\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n[").next().unwrap_or_default();
    let lines = section.lines().filter(|line| !line.starts_with(['#', ' ', ']']));
    lines
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| *name != "default")
        .collect()
}

#[test]
fn published_packages_say_what_they_are() {
    let all = published();
    assert_eq!(all.len(), 12, "{all:?}");
    for folder in all {
        let manifest = manifest(&folder);
        let name = name(&manifest);
        for key in ["version", "edition", "rust-version", "license"] {
            assert!(manifest.contains(&format!("\n{key}.workspace = true\n")), "{name}: {key}");
        }
        let documentation = format!("documentation = \"https://docs.rs/{name}\"");
        for line in ["readme = \"README.md\"", &documentation, "[package.metadata.docs.rs]", "include = ["] {
            assert!(manifest.contains(line), "{name} lacks {line}");
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = fs::read_to_string(folder.join(licence)).unwrap();
            assert_eq!(text, fs::read_to_string(root().join(licence)).unwrap(), "{name}: {licence}");
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
        for feature in features(&manifest) {
            assert!(readme.contains(&format!("\n| `{feature}` | o")), "{name}: README.md lacks `{feature}`");
        }
    }
}

/// The categories of the registry that fit a package of this project. Source: its list of
/// categories.
const CATEGORIES: [&str; 12] = [
    "command-line-utilities",
    "compilers",
    "concurrency",
    "development-tools::build-utils",
    "development-tools::cargo-plugins",
    "development-tools::profiling",
    "development-tools::testing",
    "emulators",
    "hardware-support",
    "mathematics",
    "science",
    "simulation",
];

/// Returns the texts of a list in a manifest: `key = ["a", "b"]`.
fn list<'a>(manifest: &'a str, key: &str) -> Vec<&'a str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{key} = [")));
    line.map(|line| line.split('"').skip(1).step_by(2).collect()).unwrap_or_default()
}

/// Returns the problems with the keywords and categories of a package.
fn misfiled(manifest: &str) -> Vec<String> {
    let (keywords, categories) = (list(manifest, "keywords"), list(manifest, "categories"));
    // Source: The Cargo Book, "The `keywords` field".
    let is_keyword = |word: &str| {
        word.len() <= 20
            && word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_+".contains(c))
    };
    let mut wrong = vec![];
    for (what, words) in [("keywords", &keywords), ("categories", &categories)] {
        if !(1..=5).contains(&words.len()) {
            wrong.push(format!("{} {what}", words.len()));
        }
    }
    wrong.extend(keywords.iter().filter(|word| !is_keyword(word)).map(|word| format!("the keyword {word}")));
    let unknown = categories.iter().filter(|category| !CATEGORIES.contains(category));
    wrong.extend(unknown.map(|category| format!("the category {category}")));
    wrong
}

#[test]
fn published_packages_are_found_by_what_they_are() {
    let mut all = vec![];
    for folder in published() {
        let manifest = manifest(&folder);
        assert_eq!(misfiled(&manifest), [""; 0], "{}", name(&manifest));
        all.push((list(&manifest, "keywords").join(" "), list(&manifest, "categories").join(" ")));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "two packages are filed alike");
}

#[test]
fn words_that_the_registry_refuses_are_found() {
    let manifest = "keywords = [\"GPU\", \"a b\"]\ncategories = [\"kernels\"]\n";
    assert_eq!(misfiled(manifest), ["the keyword GPU", "the keyword a b", "the category kernels"]);
    assert_eq!(misfiled("[package]\n"), ["0 keywords", "0 categories"]);
}

/// The repository has no public address yet. When the workspace names one, every package must have
/// it.
#[test]
fn packages_name_the_repository_of_the_workspace() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let is_known = workspace.lines().any(|line| line.starts_with("repository = \"https://"));
    for folder in published() {
        let manifest = manifest(&folder);
        let inherits = manifest.lines().any(|line| line == "repository.workspace = true");
        let invents = manifest.lines().any(|line| line.starts_with("repository = "));
        assert_eq!((inherits, invents), (is_known, false), "{}", name(&manifest));
    }
}

/// Returns the blocks of code of a library's front page, each after its fence. Returns `None` if
/// the package is no library.
fn front_page(folder: &Path) -> Option<Vec<String>> {
    let library = fs::read_to_string(folder.join("src/lib.rs")).ok()?;
    let front = library.lines().map_while(|line| line.strip_prefix("//!"));
    let front: String = front.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    Some(front.split("```").skip(1).step_by(2).map(str::to_owned).collect())
}

/// The front page of each library has an example: one that rustdoc compiles and runs, or the kernel
/// of a new package, which needs a build script.
#[test]
fn front_pages_have_an_example() {
    let kernel = fs::read_to_string(root().join("cargo-tma/templates/src/lib.rs")).unwrap();
    let (_, kernel) = kernel.split_once("\n\n").expect("a title comes first");
    for folder in published() {
        let Some(blocks) = front_page(&folder) else { continue };
        let name = folder.display();
        assert!(
            blocks.iter().any(|block| block.starts_with('\n') || block.starts_with("ignore\n")),
            "{name}"
        );
        for block in blocks.iter().filter_map(|block| block.strip_prefix("ignore\n")) {
            assert_eq!(block, kernel, "{name}");
        }
    }
}

/// The packages that users have through another one, to which their pages lead. `tma-codegen` and
/// `tma-runtime` are here because their pages show a kernel with its build script.
const NO_EXAMPLE_OF_THE_FRONT_PAGE: [&str; 6] =
    ["tma-setup", "tma-front", "tma-protocol", "tma-codegen", "tma-macros", "tma-runtime"];

/// The page of a package shows the example of its documentation, which rustdoc runs, without the
/// lines that rustdoc hides.
#[test]
fn readmes_have_the_example_of_the_documentation() {
    for folder in published() {
        let manifest = manifest(&folder);
        let (name, blocks) = (name(&manifest), front_page(&folder));
        let Some(blocks) = blocks.filter(|_| !NO_EXAMPLE_OF_THE_FRONT_PAGE.contains(&name)) else { continue };
        let is_shown = |line: &&str| !line.trim_start().starts_with("# ");
        let example = blocks.iter().find_map(|block| block.strip_prefix('\n')).expect("an example");
        let example: String = example.lines().filter(is_shown).map(|line| format!("{line}\n")).collect();
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.contains(&format!("```rust\n{example}```\n")), "{name}");
    }
}

#[test]
fn features_are_read_with_and_without_comments() {
    let manifest = "[package]\nname = \"a\"\n\n[features]\ndefault = [\"b\"]\n# B.\nb = []\nlong = [\n    \"b\",\n]\n\n[lib]\nc = 1\n";
    assert_eq!(features(manifest), ["b", "long"]);
    assert_eq!(features("[package]\nname = \"a\"\n"), [""; 0]);
}

/// The first kernel that readers see is the one of a new package, which is tested.
#[test]
fn the_readme_of_the_runtime_has_the_kernel_of_a_new_package() {
    let kernel = fs::read_to_string(root().join("cargo-tma/templates/src/lib.rs")).unwrap();
    let readme = fs::read_to_string(root().join("tma-runtime/README.md")).unwrap();
    assert!(readme.contains(&format!("```rust\n{kernel}```\n")));
}

/// Returns the files of a package, as `cargo package` would pack it.
fn packed(package: &str) -> Vec<String> {
    let mut list = Command::new(env!("CARGO"));
    list.args(["package", "--list", "--allow-dirty", "--offline", "-p", package]).current_dir(root());
    let output = list.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn packages_hold_their_sources_and_no_corpus() {
    let simulator = packed("ptx-sim");
    assert!(simulator.iter().any(|file| file == "src/lib.rs"), "{simulator:?}");
    let more: Vec<_> =
        simulator.iter().filter(|file| file.contains('/') && !file.starts_with("src/")).collect();
    assert!(more.is_empty(), "{more:?}");
    for package in ["ptx-sim", "cargo-tma"] {
        let files = packed(package);
        for wanted in ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "build.rs"] {
            assert!(files.iter().any(|file| file == wanted), "{package} lacks {wanted}");
        }
    }
    // Through a link, which is packed as its target.
    let tools = packed("cargo-tma");
    assert!(tools.iter().any(|file| file == "pages/TMA0203.md"), "{tools:?}");
    assert!(tools.iter().any(|file| file == "templates/src/lib.rs"), "{tools:?}");
}

/// Returns the packages that are compiled for some features of a package, one per line.
fn compiled(package: &str, features: &str) -> String {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--prefix", "none", "-p", package, "--features", features]);
    let output = tree.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The build scripts of packages that link the driver fail if CUDA is not installed.
#[test]
fn the_feature_cuda_links_nothing_of_cuda() {
    let linking = |features: &str| {
        let names = ["cust ", "cust_raw ", "find_cuda_helper ", "cudarc "];
        let compiled = compiled("tma-runtime", features);
        assert!(compiled.contains("\nlibloading "), "{compiled}");
        compiled.lines().any(|line| names.iter().any(|name| line.starts_with(name)))
    };
    assert!(!linking("cuda"));
    assert!(linking("cust"));
}

/// The oldest supported Rust is the same in the manifest and everywhere else, and CI builds with
/// it.
#[test]
fn the_oldest_rust_is_the_same_everywhere() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let oldest =
        workspace.split_once("rust-version = \"").and_then(|(_, rest)| rest.split('"').next()).unwrap();
    let ci = fs::read_to_string(root().join(".github/workflows/ci.yml")).unwrap();
    assert!(ci.contains(&format!("rust: [stable, \"{oldest}\"]")), "CI does not build with Rust {oldest}");
    let mut named = 0;
    for page in ["README.md", "docs/getting-started.md", "docs/cargo-tma.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for (_, rest) in text.match_indices("Rust 1.").map(|(at, _)| text.split_at(at + "Rust ".len())) {
            let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            assert_eq!(version.trim_end_matches('.'), oldest, "{page}");
            named += 1;
        }
    }
    assert!(named > 0, "no page names the oldest Rust");
}
