//! A package that makes its own kernels from those of `tma-kernels`, through cargo and rustc.

#[allow(dead_code, reason = "other tests use the rest")]
mod packages;

use std::fs;
use std::path::{Path, PathBuf};

use packages::{check, package, root};

/// The package's file, without `unsafe` and without a warning.
const USER: &str = "\
//! A user's epilogue.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs)]

use tma_kernels::gemm::{Epilogue, GemmError, GemmOptions, gemm};
use tma_runtime::prelude::*;
use tma_runtime::tma_module;

/// C = min(A · B · scale of the row, most).
#[tma_module(from = tma_kernels::gemm::full::with_options, only = [\"bf16_t64x64_n*\"])]
pub mod limited {
    use tma_runtime::prelude::*;

    #[tma_device]
    fn finish(x: f32, at: [u32; 3], scales: Global<f32>, most: f32) -> f32 {
        min(x * scales.get(at[1]), most)
    }
}

/// Multiplies.
pub fn multiply(device: &Device, scales: &DeviceTensor<f32, 1>) -> Result<(), GemmError> {
    let (a, b) = (device.zeros::<bf16, 2>([64, 64])?, device.zeros::<bf16, 2>([64, 64])?);
    let mut c = device.zeros::<bf16, 2>([64, 64])?;
    let epilogue = Epilogue::of(&limited::full::INSTANCES).with(limited::full::further(scales.slice(), 6.0));
    gemm(device, &a, &b, &mut c, GemmOptions { epilogue: Some(epilogue), ..GemmOptions::default() })
}
";

/// Creates a package with this file; `kernels` is its dependency on `tma-kernels`.
fn user(name: &str, kernels: &str, text: &str) -> PathBuf {
    let at = |package: &str| format!("{{ path = {:?}, default-features = false }}", root().join(package));
    let more = format!(
        "{kernels}tma-kernels = {}\n[build-dependencies]\ntma-codegen = {}\n",
        at("tma-kernels"),
        at("codegen/back")
    );
    let folder = package(&format!("templates/{name}"), &more);
    fs::write(folder.join("build.rs"), "fn main() { tma_codegen::build() }\n").unwrap();
    fs::write(folder.join("src/lib.rs"), text).unwrap();
    folder
}

#[track_caller]
fn refused(folder: &Path, text: &str, wanted: &[&str]) {
    fs::write(folder.join("src/lib.rs"), text).unwrap();
    let output = check(folder, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it was accepted:\n{text}");
    for wanted in wanted {
        assert!(said.contains(wanted), "{wanted:?} was not said, but:\n{said}");
    }
}

#[test]
fn a_package_makes_kernels_from_those_of_another() {
    let folder = user("accepted", "", USER);
    let output = check(&folder, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // Errors are reported in the file of the package.
    let misspelt = USER.replace("fn finish", "fn finnish");
    refused(&folder, &misspelt, &["TMA0272: `finnish` replaces no function", "src/lib.rs:15:8"]);
    let turned = USER.replace("x: f32, at: [u32; 3], scales", "at: [u32; 3], x: f32, scales");
    refused(
        &folder,
        &turned,
        &["TMA0273: the signature of `finish` must begin like", "fn finish(x: f32, _at: [u32; 3]) -> f32"],
    );
    refused(&folder, &USER.replace("get(at[1])", "get(at[3])"), &["TMA0208", "src/lib.rs:16:"]);
    let unknown = USER.replace("bf16_t64x64_n*", "bf16_t64x32_n*");
    refused(&folder, &unknown, &["TMA0274: `bf16_t64x32_n*` matches no instance", "src/lib.rs:10:"]);
    let elsewhere = USER.replace("full::with_options,", "full::options,");
    refused(&folder, &elsewhere, &["TMA0271", "there is no module `options` at this path", "src/lib.rs:10:"]);
    let number = USER.replace("further(scales.slice(), 6.0)", "further(scales.slice(), 6u32)");
    refused(&folder, &number, &["E0308", "src/lib.rs:"]);
}

/// Cargo does not tell build scripts about dev-dependencies.
#[test]
fn a_template_must_be_of_a_dependency() {
    let kernels_in_tests = "\n[dev-dependencies]\n";
    let folder = user("undeclared", kernels_in_tests, "");
    refused(&folder, USER, &["TMA0271", "the sources of its package are unknown"]);
}
