//! What every package that is published has: metadata, a page, licences, and no more than it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folders of the workspace's packages that are published.
fn published() -> Vec<PathBuf> {
    let folders = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
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

/// The name in a manifest.
fn name(manifest: &str) -> &str {
    manifest.split_once("name = \"").and_then(|(_, rest)| rest.split('"').next()).unwrap()
}

/// The features in a manifest, without `default`.
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
    assert_eq!(all.len(), 8, "{all:?}");
    for folder in all {
        let manifest = manifest(&folder);
        let name = name(&manifest);
        for key in ["version", "edition", "rust-version", "license", "keywords", "categories"] {
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

#[test]
fn features_are_read_with_and_without_comments() {
    let manifest = "[package]\nname = \"a\"\n\n[features]\ndefault = [\"b\"]\n# B.\nb = []\nlong = [\n    \"b\",\n]\n\n[lib]\nc = 1\n";
    assert_eq!(features(manifest), ["b", "long"]);
    assert_eq!(features("[package]\nname = \"a\"\n"), [""; 0]);
}

/// The first kernel that people see is the one that they get, which is tested.
#[test]
fn the_readme_of_the_runtime_has_the_kernel_of_a_new_package() {
    let kernel = fs::read_to_string(root().join("cargo-tma/templates/src/lib.rs")).unwrap();
    let readme = fs::read_to_string(root().join("tma-runtime/README.md")).unwrap();
    assert!(readme.contains(&format!("```rust\n{kernel}```\n")));
}

/// What a package has in it, as `cargo package` would pack it.
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
    // Through a link, which is packed as what it leads to.
    let tools = packed("cargo-tma");
    assert!(tools.iter().any(|file| file == "pages/TMA0203.md"), "{tools:?}");
    assert!(tools.iter().any(|file| file == "templates/src/lib.rs"), "{tools:?}");
}

/// The packages that are compiled for some features of a package, one a line.
fn compiled(package: &str, features: &str) -> String {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--prefix", "none", "-p", package, "--features", features]);
    let output = tree.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The build scripts of packages that link the driver fail where CUDA is not installed.
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

/// The oldest Rust is that of the manifest, wherever it is named, and CI builds with it.
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
