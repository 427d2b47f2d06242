//! A `libcuda` with which to link the feature `cust` if no CUDA toolkit is installed.
//!
//! cust's build script searches for a folder with `lib64` and links `-lcuda`. The real library
//! comes with the GPU's driver. The stub is an archive whose functions jump into that driver, which
//! is looked up when the program starts. A program therefore links and starts on any machine, and
//! can itself report that there is no driver.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{files, process};

/// The variable with additional folders in which cust's build script searches for a `lib64`.
pub const VARIABLE: &str = "CUDA_LIBRARY_PATH";

/// Creates the stub in `folder` unless it exists, for a package that `metadata` describes. Returns
/// `None` if cust finds a CUDA toolkit by itself.
///
/// # Errors
/// If the package does not use cust, or the C compiler fails.
pub fn provide(folder: &Path, metadata: &Value) -> Result<Option<PathBuf>> {
    if std::env::var_os(VARIABLE).is_some() || toolkit_is_installed() {
        return Ok(None);
    }
    let library = folder.join("lib64/libcuda.a");
    let source = folder.join("libcuda.c");
    let text = archive_source(&entry_points(&declarations(metadata)?));
    let unchanged = fs::read_to_string(&source).is_ok_and(|old| old == text);
    if !(unchanged && library.is_file()) {
        process::fresh_folder(folder)?;
        fs::create_dir_all(folder.join("lib64"))
            .with_context(|| format!("cannot create {}", folder.display()))?;
        // The source is written last, and marks the library next to it as complete.
        let draft = folder.join("libcuda.c.new");
        fs::write(&draft, &text)?;
        let object = folder.join("libcuda.o");
        let flags = ["-O1", "-fPIC", "-x", "c", "-c", "-o"];
        process::run(Command::new("cc").args(flags).arg(&object).arg(&draft))?;
        process::run(Command::new("ar").arg("rcs").arg(&library).arg(&object))?;
        fs::rename(&draft, &source)?;
    }
    Ok(Some(folder.to_owned()))
}

/// Returns whether one of the folders exists that find_cuda_helper 0.2, which cust builds with,
/// searches.
pub fn toolkit_is_installed() -> bool {
    let versioned = fs::read_dir("/usr/local").into_iter().flatten().flatten().map(|entry| entry.path());
    let versioned = versioned
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"cuda-")));
    let fixed = ["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from);
    fixed.into_iter().chain(versioned).any(|folder| {
        folder.join("lib64").is_dir() || folder.join("targets/x86_64-linux/include/cuda.h").is_file()
    })
}

/// Returns the source text of cust_raw, which declares every driver function that cust may call.
/// `metadata` is that of cargo.
fn declarations(metadata: &Value) -> Result<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let manifest = packages.iter().find(|package| package["name"] == "cust_raw");
    let manifest = manifest.and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|path| Path::new(path).parent());
    let folder = folder.context("cust_raw is not a dependency; enable the feature `cust` of tma-runtime")?;
    let texts = files::rust(&folder.join("src"))?.into_iter().map(fs::read_to_string);
    texts.collect::<Result<String, _>>().context("cannot read the sources of cust_raw")
}

/// Returns the names of the functions declared as `pub fn cu…`.
fn entry_points(declarations: &str) -> BTreeSet<&str> {
    let after = declarations.split("pub fn ").skip(1);
    let names = after
        .map(|rest| rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or(rest));
    names
        .filter(|name| {
            name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        })
        .collect()
}

/// Returns C source in which every function jumps to the driver's function of the same name. If
/// there is none, it returns CUDA_ERROR_STUB_LIBRARY (34), like the CUDA toolkit's own stub
/// (cuda.h, `enum cudaError_enum`).
fn archive_source(names: &BTreeSet<&str>) -> String {
    let functions: String = names.iter().map(|name| format!("    X({name}) \\\n")).collect();
    format!("#define FUNCTIONS \\\n{functions}\n{TRAMPOLINES}")
}

/// The jumps. They leave all arguments in place, whatever they are. C cannot express this, so they
/// are assembly.
const TRAMPOLINES: &str = r#"
#include <dlfcn.h>

static int missing(void) { return 34; }

#define X(name) __attribute__((used)) static void *slot_##name = (void *)missing;
FUNCTIONS
#undef X

#if defined(__x86_64__)
#define JUMP(name) "jmp *slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) "adrp x16, slot_" #name "\nldr x16, [x16, :lo12:slot_" #name "]\nbr x16\n"
#else
#error "write the jump for this processor"
#endif

#define X(name) __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" JUMP(name));
FUNCTIONS
#undef X

__attribute__((constructor)) static void bind(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found;
    if (!driver) return;
#define X(name) if ((found = dlsym(driver, #name))) slot_##name = found;
    FUNCTIONS
#undef X
}
"#;

#[cfg(test)]
mod tests {
    use super::{archive_source, entry_points};

    #[test]
    fn only_driver_functions_get_a_stub() {
        let names = entry_points(
            "unsafe extern \"C\" { pub fn cuInit(flags: u32) -> CUresult; }\n\
             pub fn cuMemAlloc_v2(pointer: *mut u64) -> CUresult;\n\
             pub fn cuInit(flags: u32) -> CUresult;\n\
             pub fn custom() {}\nfn cuPrivate() {}",
        );
        assert_eq!(names.iter().copied().collect::<Vec<_>>(), ["cuInit", "cuMemAlloc_v2"]);
        assert!(
            archive_source(&names)
                .starts_with("#define FUNCTIONS \\\n    X(cuInit) \\\n    X(cuMemAlloc_v2) \\\n\n")
        );
    }
}
