//! `cargo tma new`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::arguments::New;
use crate::output::Output;
use crate::style::{bold, dim, good};

/// The files of the new package, and their texts.
const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../templates/manifest.toml")),
    (".gitignore", include_str!("../../templates/gitignore")),
    ("build.rs", include_str!("../../templates/build.rs")),
    ("src/lib.rs", include_str!("../../templates/src/lib.rs")),
    ("src/main.rs", include_str!("../../templates/src/main.rs")),
    ("tests/seeds.rs", include_str!("../../templates/tests/seeds.rs")),
];

/// The files of a new package with an operator of PyTorch.
const FILES_TORCH: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("../../templates/torch/manifest.toml")),
    FILES[1],
    FILES[2],
    ("src/lib.rs", concat!(include_str!("../../templates/src/lib.rs"), "\npub mod operators;\n")),
    ("src/operators.rs", include_str!("../../templates/torch/operators.rs")),
    FILES[5],
    ("tests/test_scale.py", include_str!("../../templates/torch/test_scale.py")),
];

/// The name of the package's crate in the templates, which are valid Rust.
const CRATE: &str = "new_package";

/// Names that a package cannot have, because they have another meaning in Rust or in cargo's
/// folders.
const TAKEN: [&str; 12] = [
    "test",
    "core",
    "std",
    "alloc",
    "proc_macro",
    "build",
    "deps",
    "examples",
    "incremental",
    "crate",
    "self",
    "super",
];

/// The dependencies, by their placeholder and their package.
const DEPENDENCIES: [(&str, &str); 3] =
    [("runtime", "tma-runtime"), ("codegen", "codegen/back"), ("python", "tma-python")];

/// Creates the package.
pub(crate) fn run(options: &New) -> Result<Output> {
    let folder = &options.path;
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.context("the path must end in the name of the package")?;
    check_name(name)?;
    ensure!(!folder.exists(), "{} already exists; choose another folder, or remove it", folder.display());
    let project = project(options.project.as_deref())?;
    let all: &[(&str, &str)] = if options.torch { &FILES_TORCH } else { &FILES };
    for (path, text) in all {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let text = filled(text, name, project.as_deref());
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let start = if options.torch {
        ("cargo tma wheel".to_owned(), "packs its operator for Python")
    } else {
        ("cargo run".to_owned(), "launches it")
    };
    let next = [
        (format!("cd {}", folder.display()), ""),
        ("cargo test".to_owned(), "runs the kernel on the simulator under 8 seeds"),
        start,
        ("cargo tma ptx scale".to_owned(), "shows its PTX"),
        ("cargo tma doctor".to_owned(), "reports what is missing, if something fails"),
    ];
    let mut text = format!("{} {} in {}\n", good("Created"), bold(name), folder.display());
    for (command, description) in &next {
        text += &format!("  {command:<22}{}\n", dim(description));
    }
    let files: Vec<_> = all.iter().map(|(path, _)| folder.join(path)).collect();
    Ok(Output::clean(text, json!({ "name": name, "folder": folder, "files": files, "project": project })))
}

/// Checks that a name is valid for a package in cargo and, with `_` for `-`, for a crate in rustc.
/// Source: The Cargo Book, "The Manifest Format", "The `name` field".
fn check_name(name: &str) -> Result<()> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_inner);
    ensure!(is_name, "`{name}` is not a valid package name; use a letter, then letters, digits, `-` and `_`");
    ensure!(!TAKEN.contains(&name), "`{name}` is reserved by Rust or cargo; choose another name");
    Ok(())
}

/// Returns the folder of the project that the package depends on, or `None` for released versions.
fn project(named: Option<&Path>) -> Result<Option<PathBuf>> {
    let is_project = |folder: &Path| {
        DEPENDENCIES.iter().all(|(_, package)| folder.join(package).join("Cargo.toml").is_file())
    };
    let Some(named) = named else {
        let installed_from = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned);
        return Ok(installed_from.filter(|folder| is_project(folder)));
    };
    if !is_project(named) {
        bail!("{} is not a clone of the project: tma-runtime or codegen/back is missing", named.display());
    }
    let absolute = fs::canonicalize(named).with_context(|| format!("cannot read {}", named.display()))?;
    Ok(Some(absolute))
}

/// Inserts the package's name and dependencies into a template.
fn filled(text: &str, name: &str, project: Option<&Path>) -> String {
    let mut text = text
        .replace("{name}", name)
        .replace(CRATE, &name.replace('-', "_"))
        .replace("{rust_version}", env!("CARGO_PKG_RUST_VERSION"));
    for (key, package) in DEPENDENCIES {
        let dependency = match project {
            Some(project) => format!("{{ path = {:?} }}", project.join(package).display().to_string()),
            None => format!("{:?}", env!("CARGO_PKG_VERSION")),
        };
        text = text.replace(&format!("{{{key}}}"), &dependency);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cargo_refuses_are_refused() {
        for name in ["hello", "hello-tma", "Hello_2"] {
            check_name(name).unwrap();
        }
        for name in ["", "2fast", "-x", "a b", "a/b", "né", "test", "core", "a.b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn dependencies_are_released_versions_without_a_clone() {
        let text = filled(FILES[0].1, "hello-tma", None);
        let version = env!("CARGO_PKG_VERSION");
        assert!(text.contains(&format!("tma-runtime = \"{version}\"\n")), "{text}");
        assert!(text.contains(&format!("tma-codegen = \"{version}\"\n")), "{text}");
        assert!(filled("use new_package::scale;", "hello-tma", None).contains("use hello_tma::scale;"));
        let text = filled(FILES[0].1, "hello-tma", Some(Path::new("/p")));
        assert!(text.contains("tma-codegen = { path = \"/p/codegen/back\" }\n"), "{text}");
        assert!(!text.contains("{name}") && text.contains("name = \"hello-tma\""), "{text}");
        let text = filled(FILES_TORCH[0].1, "hello-tma", Some(Path::new("/p")));
        assert!(text.contains("tma-python = { path = \"/p/tma-python\" }\n"), "{text}");
    }

    #[test]
    fn nothing_is_overwritten() {
        let options = New { path: std::env::temp_dir(), torch: false, project: None };
        assert!(run(&options).is_err());
    }
}
