//! The package, and its metadata for Python.
//! Source: Python's core metadata specification, version 2.1; PEP 440.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::package;

/// Words that cannot be the name of a module.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The parts of the manifest that a wheel needs.
#[derive(Debug)]
pub(super) struct Metadata {
    /// Name of the package.
    pub(super) package: String,
    /// Its identifier in cargo's output.
    pub(super) id: String,
    /// Name of the Python module, and of the wheel.
    pub(super) module: String,
    /// Version, as Python writes it.
    pub(super) version: String,
    pub(super) folder: PathBuf,
    /// The folder for results of builds.
    pub(super) target: PathBuf,
    /// Whether the package has the feature `cuda`.
    pub(super) has_cuda: bool,
    summary: Option<String>,
    license: Option<String>,
    readme: Option<String>,
}

impl Metadata {
    /// Reads the manifest of a package, or of that in the current folder.
    ///
    /// # Errors
    ///
    /// If the package is no C library, or its name or version has no equivalent in Python.
    pub(super) fn read(package: Option<&str>) -> Result<Self> {
        let found = package::find(package)?;
        let metadata = package::metadata(&["--no-deps"])?;
        let target = metadata["target_directory"].as_str().context("cargo metadata is incomplete")?;
        let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let json = packages.iter().find(|package| package["name"] == found.name.as_str());
        Self::of(json.context("cargo metadata is incomplete")?, found, Path::new(target))
    }

    fn of(json: &Value, found: package::Package, target: &Path) -> Result<Self> {
        let text = |key: &str| json[key].as_str().map(str::to_owned);
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let name = found.name.clone();
        let is_library = list(&json["targets"])
            .iter()
            .any(|target| list(&target["crate_types"]).iter().any(|kind| kind == "cdylib"));
        ensure!(
            is_library,
            "the package `{name}` is no C library; add `[lib]` with `crate-type = [\"cdylib\", \"rlib\"]` to its \
             Cargo.toml"
        );
        let module =
            json["metadata"]["tma-wheel"]["name"].as_str().map_or(name.replace('-', "_"), str::to_owned);
        check_module(&module)?;
        let readme = text("readme").and_then(|path| fs::read_to_string(found.folder.join(path)).ok());
        Ok(Self {
            module,
            version: version(&text("version").context("cargo metadata is incomplete")?)?,
            id: found.id,
            folder: found.folder,
            target: target.to_owned(),
            has_cuda: json["features"].get("cuda").is_some(),
            summary: text("description"),
            license: text("license"),
            readme,
            package: name,
        })
    }

    /// Returns the file `METADATA`.
    pub(super) fn text(&self) -> String {
        let mut text = format!("Metadata-Version: 2.1\nName: {}\nVersion: {}\n", self.module, self.version);
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (key, value) in [("Summary", &self.summary), ("License", &self.license)] {
            text += &value.as_ref().map(|value| format!("{key}: {}\n", one_line(value))).unwrap_or_default();
        }
        text += "Requires-Python: >=3.10\n";
        if let Some(readme) = &self.readme {
            text += &format!("Description-Content-Type: text/markdown\n\n{readme}");
        }
        text
    }
}

/// Checks that a name is one of a module in Python.
fn check_module(name: &str) -> Result<()> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    ensure!(
        is_name && !KEYWORDS.contains(&name),
        "`{name}` is no name of a Python module; set another one in Cargo.toml: `[package.metadata.tma-wheel]` with \
         `name = \"..\"`"
    );
    Ok(())
}

/// Returns a version of cargo as Python writes it.
fn version(cargo: &str) -> Result<String> {
    let (rest, local) = cargo.split_once('+').unwrap_or((cargo, ""));
    let (release, pre) = rest.split_once('-').unwrap_or((rest, ""));
    let local = if local.is_empty() { String::new() } else { format!("+{}", local.replace('-', ".")) };
    let (kind, number) = pre.split_once('.').unwrap_or((pre, "0"));
    let kind = match kind {
        "" => return Ok(format!("{release}{local}")),
        "alpha" => "a",
        "beta" => "b",
        "rc" => "rc",
        _ => bail!("the version {cargo} has no equivalent in Python; use `-alpha.N`, `-beta.N` or `-rc.N`"),
    };
    let number: u64 =
        number.parse().with_context(|| format!("the version {cargo} has no equivalent in Python"))?;
    Ok(format!("{release}{kind}{number}{local}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_versions_are_those_of_python() {
        for name in ["hello", "_x", "hello_2"] {
            check_module(name).unwrap();
        }
        for name in ["", "2fast", "a-b", "a.b", "class", "né"] {
            assert!(check_module(name).is_err(), "{name}");
        }
        for (cargo, python) in [
            ("0.1.0", "0.1.0"),
            ("1.0.0-alpha.2", "1.0.0a2"),
            ("1.0.0-rc.1+git-3", "1.0.0rc1+git.3"),
            ("1.0.0-beta", "1.0.0b0"),
        ] {
            assert_eq!(version(cargo).unwrap(), python);
        }
        assert!(version("1.0.0-dev").is_err() && version("1.0.0-rc.x").is_err());
    }

    #[test]
    fn a_package_must_be_a_c_library() {
        let of = |kinds: &[&str], name: Option<&str>| {
            let found = package::Package::named("a-b", Path::new("/nonexistent"));
            let json = json!({
                "version": "0.1.0",
                "description": "Two\n  lines.",
                "license": "MIT",
                "targets": [{ "crate_types": kinds }],
                "features": { "cuda": [] },
                "metadata": { "tma-wheel": { "name": name } },
            });
            Metadata::of(&json, found, Path::new("/t"))
        };
        let error = of(&["lib"], None).unwrap_err().to_string();
        assert!(error.contains("`a-b` is no C library; add `[lib]`"), "{error}");
        let error = of(&["cdylib"], Some("a-b")).unwrap_err().to_string();
        assert!(error.contains("`a-b` is no name of a Python module"), "{error}");
        let metadata = of(&["cdylib", "rlib"], None).unwrap();
        assert!(metadata.has_cuda);
        let text = "Metadata-Version: 2.1\nName: a_b\nVersion: 0.1.0\nSummary: Two lines.\nLicense: MIT\n\
            Requires-Python: >=3.10\n";
        assert_eq!(metadata.text(), text);
    }
}
