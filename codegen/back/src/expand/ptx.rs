//! The kernel's PTX in the macro's output, or the error that explains its absence.

use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use quote::quote;
use tma_front::diag::Diagnostic;
use tma_front::diag::mistake::{Build, SourceFile};
use tma_front::ir::Kernel;
use tma_front::parse::item::file::kernels_in;

use crate::build::FOLDERS;
use crate::pipeline::{Front, Instance};
use crate::{abi, hash, note, templates};

/// The PTX of a kernel's instances.
pub(super) struct Ptx {
    /// The PTX of each instance, or an empty string.
    pub(super) texts: Vec<TokenStream>,
    /// The error if a correct kernel has no PTX.
    pub(super) missing: Option<Diagnostic>,
    /// Whether every instance has PTX.
    pub(super) is_whole: bool,
}

impl Ptx {
    /// Looks for the files that the build script writes.
    pub(super) fn of(front: &Front) -> Self {
        let mut ptx = Self { texts: vec![], missing: None, is_whole: true };
        for instance in &front.instances {
            let found = match instance {
                Instance::Refused(_) => None,
                Instance::Checked(_) | Instance::Known(..) => match include(instance.kernel(), front.hash) {
                    Ok(text) => Some(text),
                    Err(lacking) => {
                        let location = instance.kernel().span;
                        ptx.missing.get_or_insert_with(|| Diagnostic::new(lacking, location));
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

/// Returns whether this kernel has a PTX file. Only accepted kernels have one: of this build, or of
/// the build that kept it.
pub(super) fn is_there(kernel: &Kernel, hash: u64) -> bool {
    out_dir().is_some_and(|out_dir| file(&out_dir, kernel, hash).is_file())
}

/// Returns `OUT_DIR`, if a build script that calls this crate has run.
fn out_dir() -> Option<PathBuf> {
    std::env::var_os("OUT_DIR").map(PathBuf::from).filter(|out_dir| note::is_read(out_dir))
}

/// Returns the file with the PTX of a kernel.
fn file(out_dir: &Path, kernel: &Kernel, hash: u64) -> PathBuf {
    out_dir.join(abi::ptx_file(kernel, hash))
}

/// Generates an `include_str!` of the kernel's PTX.
fn include(kernel: &Kernel, hash: u64) -> Result<TokenStream, Build> {
    let Some(out_dir) = out_dir() else {
        return Err(Build::NoScript { kernel: kernel.path() });
    };
    let path = file(&out_dir, kernel, hash);
    if path.is_file() {
        let path = path.to_string_lossy();
        return Ok(quote!(::core::include_str!(#path)));
    }
    if is_editor() {
        return Ok(quote!(""));
    }
    let source = kernel.span.first().local_file();
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let source = source.map_or(SourceFile::Unknown, |source| source_file(&source, hash, &package));
    if source != SourceFile::Unknown {
        note::leave(&out_dir, &kernel.path());
    }
    Err(Build::NotSeen { kernel: kernel.path(), file: source })
}

/// Whether an editor expands the macro. The code is still being typed and no build script has seen
/// it, so missing PTX is not an error. rustc reports actual errors.
pub(super) fn is_editor() -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    // Either `rust-analyzer-proc-macro-srv` of the toolchain, or rust-analyzer itself.
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rust-analyzer"))
}

/// Looks for the kernel in the text of its file, as the build script does.
fn source_file(source: &Path, hash: u64, package: &Path) -> SourceFile {
    let text = std::fs::read_to_string(source).unwrap_or_default();
    let kernels = kernels_in(&text, &templates::LEFT);
    if !kernels.iter().any(|(item, shared)| hash::kernel(item, shared) == hash) {
        return SourceFile::Unknown;
    }
    // Both paths may contain links, and rustc's paths are relative to the workspace.
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
