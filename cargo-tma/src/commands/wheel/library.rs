//! The C library of a wheel: its description, and the kernels in it.

use std::ffi::{CStr, c_char};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The function that returns the description, which `tma_python::library!` makes.
const DESCRIBE: &[u8] = b"tma_python_describe";

/// Opens a library, and returns its description.
///
/// # Errors
///
/// If the library cannot be opened, or declares no operators.
pub(super) fn describe(path: &Path, package: &str) -> Result<Value> {
    // SAFETY: the user's own package, which was just built; opening it runs what its code runs.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.with_context(|| format!("cannot open {}", path.display()))?;
    // SAFETY: `tma-python` makes no other function of this name.
    let text = unsafe {
        let Ok(describe) = library.get::<unsafe extern "C" fn() -> *const c_char>(DESCRIBE) else {
            bail!(
                "the library of `{package}` has no operators; declare them by `tma_python::operator!`, and list \
                 them in `src/lib.rs` by `tma_python::library!`"
            );
        };
        CStr::from_ptr(describe()).to_owned()
    };
    serde_json::from_slice(text.to_bytes()).context("the description of the library is not JSON")
}

/// Returns the names of the kernels in a library.
///
/// # Errors
///
/// If one of them has no PTX.
pub(super) fn kernels(library: &[u8]) -> Result<Vec<String>> {
    const NAME: &[u8] = b"// kernel: ";
    const NO_CODE: &[u8] = b"// no code: ";
    if let Some(why) = after(library, NO_CODE).next() {
        bail!(
            "the library has kernels without PTX: {}; pass the feature that enables LLVM with --features, or keep \
             the PTX with `cargo tma ptx --keep`",
            String::from_utf8_lossy(why)
        );
    }
    let names = after(library, NAME).map(|name| String::from_utf8_lossy(name).into_owned());
    // The text may also stand in code that reads it.
    let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Returns the rest of the line after each `mark`.
fn after<'b>(bytes: &'b [u8], mark: &'static [u8]) -> impl Iterator<Item = &'b [u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        // The first byte is searched for first: a library has many megabytes.
        let start = rest
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == mark[0])
            .map(|(at, _)| at)
            .find(|at| rest[*at..].starts_with(mark))?;
        rest = &rest[start + mark.len()..];
        let end = rest.iter().position(|byte| *byte == b'\n' || *byte == 0).unwrap_or(rest.len());
        Some(&rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_in_the_bytes() {
        let found = kernels(b"..// kernel: b\nret;\n\0// kernel: a::x\nret;").unwrap();
        assert_eq!(found, ["a::x", "b"]);
        let error = kernels(b"..// no code: LLVM is missing\n..").unwrap_err().to_string();
        assert!(error.contains("without PTX: LLVM is missing; pass the feature"), "{error}");
    }
}
