//! The kernel's PTX in the macro's output, or why there is none.

use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use quote::quote;

use crate::build::FOLDERS;
use crate::diag::{Code, Diagnostic};
use crate::ir::Kernel;
use crate::parse::item::file;
use crate::pipeline::{Front, Instance};
use crate::{abi, hash, note};

/// The PTX of a kernel's instances.
pub(super) struct Ptx {
    /// That of each, or an empty text.
    pub(super) texts: Vec<TokenStream>,
    /// Why there is none of a kernel that broke no rule.
    pub(super) missing: Option<Diagnostic>,
    /// Whether there is that of every instance.
    pub(super) is_whole: bool,
}

impl Ptx {
    /// Looks for it where the build script puts it.
    pub(super) fn of(front: &Front) -> Self {
        let mut ptx = Self { texts: vec![], missing: None, is_whole: true };
        for instance in &front.instances {
            let found = match instance {
                Instance::Refused(_) => None,
                Instance::Checked(checked) => match include(checked.kernel(), front.hash) {
                    Ok(text) => Some(text),
                    Err(error) => {
                        ptx.missing.get_or_insert(error);
                        None
                    }
                },
            };
            ptx.is_whole &= found.is_some();
            ptx.texts.push(found.unwrap_or_else(|| quote!("")));
        }
        ptx
    }
}

/// `include_str!` of the kernel's PTX.
fn include(kernel: &Kernel, hash: u64) -> Result<TokenStream, Diagnostic> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let out_dir = variable("OUT_DIR").filter(|out_dir| note::is_read(out_dir));
    let Some(out_dir) = out_dir else { return Err(no_build_script(kernel)) };
    let path = out_dir.join(abi::ptx_file(&kernel.name, kernel.instance.as_deref(), hash));
    if path.is_file() {
        let path = path.to_string_lossy();
        return Ok(quote!(include_str!(#path)));
    }
    if is_editor() {
        return Ok(quote!(""));
    }
    let source = kernel.span.first().local_file();
    let package = variable("CARGO_MANIFEST_DIR").unwrap_or_default();
    let file = source.map_or(SourceFile::Unknown, |source| source_file(&source, hash, &package));
    if file != SourceFile::Unknown {
        note::leave(&out_dir, &kernel.path());
    }
    Err(not_seen(kernel, &file))
}

/// Whether an editor expands the macro. What it shows is being typed, and no build script has seen
/// it: that is no mistake, and rustc reports what is.
fn is_editor() -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    // `rust-analyzer-proc-macro-srv` of the toolchain, or rust-analyzer itself.
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rust-analyzer"))
}

/// The file of a kernel, as the build script sees it.
#[derive(Debug, PartialEq, Eq)]
enum SourceFile {
    /// In a file that the build script reads when it runs.
    Read(String),
    /// In a file that it reads only if its folder is named.
    NotRead(String),
    /// In no file as it is here.
    Unknown,
}

/// Looks for the kernel as the build script does: in the text of its file.
fn source_file(source: &Path, hash: u64, package: &Path) -> SourceFile {
    let text = std::fs::read_to_string(source).unwrap_or_default();
    if !file::kernels_in(&text).iter().any(|(item, shared)| hash::kernel(item, shared) == hash) {
        return SourceFile::Unknown;
    }
    // Both may be written through links, and rustc's paths are relative to the workspace.
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let within = canonical(source).strip_prefix(canonical(package)).map(Path::to_owned);
    match within {
        Ok(path) if FOLDERS.iter().any(|folder| path.starts_with(folder)) => {
            SourceFile::Read(path.display().to_string())
        }
        Ok(path) => SourceFile::NotRead(path.display().to_string()),
        Err(_) => SourceFile::NotRead(source.display().to_string()),
    }
}

fn no_build_script(kernel: &Kernel) -> Diagnostic {
    let help = "`build.rs` must hold `fn main() { tma_codegen::build() }`, and `Cargo.toml` must name \
                `tma-codegen` under `[build-dependencies]`";
    missing(kernel, "this package has no build script that compiles kernels", help.to_owned())
}

fn not_seen(kernel: &Kernel, file: &SourceFile) -> Diagnostic {
    let (why, help) = match file {
        SourceFile::Read(name) => (
            format!("the build script has not seen `{name}` as it is now"),
            "build again: the script runs again and finds it".to_owned(),
        ),
        SourceFile::NotRead(name) => (
            format!(
                "the build script did not read `{name}`: it reads `src`, `examples`, `tests` and `benches`"
            ),
            "name the file or its folder in `build.rs`: \
             `fn main() { tma_codegen::Build::new().source(\"..\").run_or_exit() }`"
                .to_owned(),
        ),
        SourceFile::Unknown => (
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
    let mut error = Diagnostic::new(Code::MissingPtx, kernel.span, message);
    error.help(help);
    error
}
