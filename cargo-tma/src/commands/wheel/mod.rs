//! `cargo tma wheel`.

mod archive;
mod library;
mod metadata;
mod platform;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::arguments::Wheel;
use crate::output::Output;
use crate::package;
use crate::style::{bold, dim, good};
use archive::File;
use metadata::Metadata;

/// The version of the interface between library and Python module that this command packs.
const INTERFACE: u64 = 1;

/// The folder of a package with Python files of its own.
const OWN_FILES: &str = "python";

/// Builds the package's C library, and packs it with its Python module.
pub(crate) fn run(options: &Wheel) -> Result<Output> {
    let metadata = Metadata::read(options.package.as_deref())?;
    let built = package::library(&metadata.folder, &metadata.id, &features(options, &metadata))?;
    let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    let description = library::describe(&built, &metadata.package)?;
    checked(&description, &metadata.package)?;
    let kernels = library::kernels(&bytes)?;
    let platform = platform::of(&bytes)?;

    let module = &metadata.module;
    let of_module = |name: &str| format!("{module}/{name}");
    let mut files = vec![];
    for pair in description["module"].as_array().into_iter().flatten() {
        if let (Some(name), Some(text)) = (pair[0].as_str(), pair[1].as_str()) {
            files.push(File { path: of_module(name), bytes: text.into() });
        }
    }
    for (name, text) in own_files(&metadata.folder)? {
        let path = of_module(&name);
        ensure!(
            files.iter().all(|file| file.path != path),
            "`{OWN_FILES}/{name}` has the name of a file that every wheel has; rename it"
        );
        files.push(File { path, bytes: text });
    }
    files.push(File { path: of_module("library.so"), bytes });

    let out = options.out.clone().unwrap_or_else(|| metadata.target.join("wheels"));
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let wheel = archive::Wheel { name: module, version: &metadata.version, tag: &platform.tag };
    let path = out.join(wheel.file_name());
    for (name, bytes) in licenses(&metadata.folder)? {
        files.push(File { path: format!("{}/licenses/{name}", wheel.information()), bytes });
    }
    let size = wheel.write(&path, files, &metadata.text())?;
    Ok(described(&path, size, &description, &kernels, &platform))
}

/// Returns the features to build with: the caller's, and `cuda` if the package has it.
fn features(options: &Wheel, metadata: &Metadata) -> Vec<String> {
    let mut arguments = vec![];
    if options.no_default_features {
        arguments.push("--no-default-features".to_owned());
    }
    let cuda = metadata.has_cuda.then(|| "cuda".to_owned());
    for features in options.features.iter().cloned().chain(cuda) {
        arguments.extend(["--features".to_owned(), features]);
    }
    arguments
}

/// Checks what the library says of itself.
fn checked(description: &Value, package: &str) -> Result<()> {
    let interface = description["interface"].as_u64();
    ensure!(
        interface == Some(INTERFACE),
        "the package uses another version of tma-python than this command knows; install the `cargo tma` of the \
         same version"
    );
    let mistakes: Vec<_> =
        description["mistakes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(mistakes.is_empty(), "the operators of `{package}` have mistakes:\n  {}", mistakes.join("\n  "));
    ensure!(
        description["cuda"] == true,
        "the library runs on no GPU; add `cuda = [\"tma-python/cuda\"]` to the features of `{package}`, which this \
         command turns on"
    );
    ensure!(
        description["unwinds"] == true,
        "the library ends the process of Python when a call fails; remove `panic = \"abort\"` from the profile \
         `release` of `{package}`"
    );
    Ok(())
}

/// Returns the package's own Python files, by name.
fn own_files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    files_in(&folder.join(OWN_FILES), |name| name.ends_with(".py") || name.ends_with(".pyi"))
}

/// Returns the package's licences, by name.
fn licenses(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    files_in(folder, |name| name.starts_with("LICENSE") || name.starts_with("LICENCE"))
}

/// Returns the files of a folder whose names are wanted. There are none if there is no folder.
fn files_in(folder: &Path, is_wanted: fn(&str) -> bool) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| is_wanted(name) && path.is_file()) {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((name.to_owned(), bytes));
        }
    }
    files.sort();
    Ok(files)
}

fn described(
    path: &Path,
    size: u64,
    description: &Value,
    kernels: &[String],
    platform: &platform::Platform,
) -> Output {
    let operators = description["operators"].as_array().map(Vec::as_slice).unwrap_or_default();
    let schemas: Vec<_> = operators.iter().filter_map(|operator| operator["schema"].as_str()).collect();
    let mut text = format!("{} {}\n", good("Packed"), bold(path.display()));
    for schema in &schemas {
        text += &format!("  {schema}\n");
    }
    let megabytes = size as f64 / 1e6;
    text += &format!(
        "  {} kernels, {megabytes:.1} MB, Python 3.10 and later, {}\n",
        kernels.len(),
        platform.needs
    );
    text += &format!("  {}\n", dim(format!("pip install {}", path.display())));
    let json = json!({
        "wheel": path,
        "bytes": size,
        "tag": platform.tag,
        "operators": schemas,
        "kernels": kernels,
    });
    Output::clean(text, json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_says_is_checked() {
        let good = json!({ "interface": 1, "mistakes": [], "cuda": true, "unwinds": true });
        assert!(checked(&good, "p").is_ok());
        let wrong = |key: &str, value: Value, message: &str| {
            let mut description = good.clone();
            description[key] = value;
            let error = checked(&description, "p").unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        };
        wrong("interface", json!(2), "another version of tma-python");
        wrong("mistakes", json!(["`f`: a", "`g`: b"]), "of `p` have mistakes:\n  `f`: a\n  `g`: b");
        wrong("cuda", json!(false), "cuda = [\"tma-python/cuda\"]");
        wrong("unwinds", json!(false), "remove `panic = \"abort\"`");
    }

    #[test]
    fn own_files_are_python() {
        let folder = std::env::temp_dir().join(format!("cargo-tma-own-{}", std::process::id()));
        fs::create_dir_all(folder.join(OWN_FILES)).unwrap();
        for name in ["b.py", "a.py", "notes.txt"] {
            fs::write(folder.join(OWN_FILES).join(name), name).unwrap();
        }
        let names: Vec<_> = own_files(&folder).unwrap().into_iter().map(|(name, _)| name).collect();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["a.py", "b.py"]);
        assert!(own_files(Path::new("/nonexistent")).unwrap().is_empty());
    }
}
