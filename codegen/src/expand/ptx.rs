//! The kernel's PTX in the macro's output, or why there is none.

use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use quote::quote;

use crate::build::FOLDERS;
use crate::diag::{Code, Diagnostic};
use crate::ir::Kernel;
use crate::parse::file;
use crate::{abi, hash, note};

/// `include_str!` of the kernel's PTX.
pub(super) fn include(kernel: &Kernel, hash: u64) -> Result<TokenStream, Diagnostic> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let out_dir = variable("OUT_DIR").filter(|out_dir| note::is_read(out_dir));
    let Some(out_dir) = out_dir else { return Err(no_build_script(kernel)) };
    let path = out_dir.join(abi::ptx_file(&kernel.name, kernel.instance.as_deref(), hash));
    if path.is_file() {
        let path = path.to_string_lossy();
        return Ok(quote!(::core::include_str!(#path)));
    }
    if is_editor() {
        return Ok(quote!(""));
    }
    let source = kernel.span.first().local_file();
    let package = variable("CARGO_MANIFEST_DIR").unwrap_or_default();
    let place = source.map_or(Place::Unknown, |source| place(&source, hash, &package));
    if place != Place::Unknown {
        note::leave(&out_dir, &kernel.path());
    }
    Err(not_seen(kernel, &place))
}

/// Whether an editor expands the macro. What it shows is being typed, and no build script has seen
/// it: that is no mistake, and rustc reports what is.
fn is_editor() -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    // `rust-analyzer-proc-macro-srv` of the toolchain, or rust-analyzer itself.
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rust-analyzer"))
}

/// Where a kernel stands.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// In a file that the build script reads when it runs.
    Read(String),
    /// In a file that it reads only if its folder is named.
    Elsewhere(String),
    /// In no file as it is here.
    Unknown,
}

/// Looks for the kernel as the build script does: in the text of its file.
fn place(source: &Path, hash: u64, package: &Path) -> Place {
    let text = std::fs::read_to_string(source).unwrap_or_default();
    if !file::kernels_in(&text).iter().any(|(item, shared)| hash::kernel(item, shared) == hash) {
        return Place::Unknown;
    }
    // Both may be written through links, and rustc's paths are relative to the workspace.
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let within = canonical(source).strip_prefix(canonical(package)).map(Path::to_owned);
    match within {
        Ok(path) if FOLDERS.iter().any(|folder| path.starts_with(folder)) => {
            Place::Read(path.display().to_string())
        }
        Ok(path) => Place::Elsewhere(path.display().to_string()),
        Err(_) => Place::Elsewhere(source.display().to_string()),
    }
}

fn no_build_script(kernel: &Kernel) -> Diagnostic {
    let help = "`build.rs` must hold `fn main() { tma_codegen::build() }`, and `Cargo.toml` must name \
                `tma-codegen` under `[build-dependencies]`";
    missing(kernel, "this package has no build script that compiles kernels", help.to_owned())
}

fn not_seen(kernel: &Kernel, place: &Place) -> Diagnostic {
    let (why, help) = match place {
        Place::Read(file) => (
            format!("the build script has not seen `{file}` as it is now"),
            "build again: the script runs again and finds it".to_owned(),
        ),
        Place::Elsewhere(file) => (
            format!(
                "the build script did not read `{file}`: it reads `src`, `examples`, `tests` and `benches`"
            ),
            "name the file or its folder in `build.rs`: \
             `fn main() { tma_codegen::Build::new().source(\"..\").run_or_exit() }`"
                .to_owned(),
        ),
        Place::Unknown => (
            "the build script did not see this kernel: it reads the files in `src`, `examples`, `tests` and \
             `benches`, and not what macros make"
                .to_owned(),
            "write the kernel out instead of letting a macro make it".to_owned(),
        ),
    };
    missing(kernel, &why, help)
}

fn missing(kernel: &Kernel, why: &str, help: String) -> Diagnostic {
    let message = format!("there is no PTX for `{}`: {why}", kernel.path());
    Diagnostic { code: Code::MissingPtx, span: kernel.span, message, help: Some(help) }
}
