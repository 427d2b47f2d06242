//! Embeds the error pages, for `cargo tma explain`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folder of the pages: a symbolic link in the package, or its target if git does not create
/// links.
const FOLDERS: [&str; 2] = ["pages", "../docs/errors"];

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = FOLDERS.map(|folder| package.join(folder)).into_iter().find(|folder| folder.is_dir());
    let folder = folder.ok_or_else(|| io::Error::other("the error pages are missing"))?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages = vec![];
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let code = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if code.starts_with("TMA") && path.extension().is_some_and(|extension| extension == "md") {
            pages.push((code, path));
        }
    }
    pages.sort();
    let rows: String = pages.iter().map(|(code, path)| row(code, path)).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("pages.rs");
    fs::write(out, format!("&[{rows}]"))
}

fn row(code: &str, path: &Path) -> String {
    format!("({code:?}, include_str!({:?})),\n", path.display().to_string())
}
