//! A check that a package's kept PTX matches its kernels.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Error;

/// The folder in which a package keeps its PTX.
const FOLDER: &str = "tma-ptx";

/// The end of the names of kept files, and the prefix of their first lines, which continue with the
/// target and the version of the generator.
const EXTENSION: &str = "kept";
const KEPT: &str = "kept: ";

/// The prefixes of the lines of PTX that state what it is for and what generated it.
const TARGET: &str = ".target ";
const GENERATOR: &str = "// generator: tma-codegen ";

/// Panics unless the package's folder `tma-ptx` holds the current PTX of its kernels, and of no
/// others ([`Error::PtxNotKept`](crate::Error::PtxNotKept)).
///
/// The check compares kernels, target and generator, and works in any build, including one with
/// debug assertions, whose PTX has checks. `cargo tma ptx --check` compares the instructions. A
/// package's test is:
///
/// ```text
/// #[test]
/// fn ptx_is_kept() {
///     tma_runtime::assert_ptx_kept!();
/// }
/// ```
#[macro_export]
macro_rules! assert_ptx_kept {
    () => {
        let package = ::std::path::Path::new(::core::env!("CARGO_MANIFEST_DIR"));
        let out_dir = ::std::path::Path::new(::core::env!("OUT_DIR"));
        if let ::core::result::Result::Err(error) = $crate::testing::ptx_is_kept(package, out_dir) {
            ::core::panic!("{error}");
        }
    };
}

/// Checks the condition that [`assert_ptx_kept!`](crate::assert_ptx_kept) asserts, for the package
/// in the folder `package` whose build script wrote to the folder `out_dir` (`OUT_DIR`).
///
/// # Errors
///
/// [`Error::PtxNotKept`] with all kernels whose PTX is not kept.
pub fn ptx_is_kept(package: &Path, out_dir: &Path) -> Result<(), Error> {
    let (kept, made) = (package.join(FOLDER), out_dir.join("tma"));
    let names = files(&made, "ptx");
    let current: BTreeSet<_> = names.iter().map(|name| kept_file(name)).collect();
    let gone = files(&kept, EXTENSION).into_iter();
    let gone = gone.filter(|name| !current.contains(name) && header(&kept.join(name)).is_some());
    let stale = names.iter().filter(|name| !agree(&made.join(name), &kept.join(kept_file(name))));
    let kernels: BTreeSet<_> = stale.map(|name| kernel(name)).chain(gone.map(|name| kernel(&name))).collect();
    if kernels.is_empty() && !names.is_empty() {
        return Ok(());
    }
    Err(Error::PtxNotKept { package: package.to_owned(), kernels: kernels.into_iter().collect() })
}

/// Returns the names of the files in a folder that end with `extension`. There are none if the
/// folder is missing.
fn files(folder: &Path, extension: &str) -> BTreeSet<String> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    paths.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// Returns whether kept PTX is for the same target, and by the same generator, as that of the
/// build.
fn agree(made: &Path, kept: &Path) -> bool {
    let made = fs::read_to_string(made).unwrap_or_default();
    let after = |prefix| made.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default();
    header(kept).is_some_and(|kept| kept.starts_with(&format!("{} {} ", after(TARGET), after(GENERATOR))))
}

/// Returns the first line of a kept file, without its prefix.
fn header(kept: &Path) -> Option<String> {
    let bytes = fs::read(kept).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    Some(str::from_utf8(line).ok()?.strip_prefix(KEPT)?.to_owned())
}

/// Returns the kept file of a PTX file, which has all instances of the kernel.
fn kept_file(ptx: &str) -> String {
    let (kernel, hash) = ptx.rsplit_once('-').unwrap_or((ptx, ""));
    let kernel = kernel.split('-').next().unwrap_or(kernel);
    format!("{kernel}-{}.{EXTENSION}", hash.trim_end_matches(".ptx"))
}

/// Returns the kernel of a file: `copy::large` for `copy-large-0123456789abcdef.ptx`.
fn kernel(file: &str) -> String {
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    name.replacen('-', "::", 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const PTX: &str = "// generator: tma-codegen 0.1.0\n.target sm_90a\nret;\n";
    const HEADER: &str = "kept: sm_90a 0.1.0 12 0123456789abcdef 0123456789abcdef\n";

    /// Makes a package and its `OUT_DIR`, with files of these names and texts.
    fn package(name: &str, made: &[(&str, &str)], kept: &[(&str, &str)]) -> (PathBuf, Result<(), Error>) {
        let folder = std::env::temp_dir().join(format!("tma-testing-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        for (place, files) in [("out/tma", made), (FOLDER, kept)] {
            fs::create_dir_all(folder.join(place)).unwrap();
            for (name, text) in files {
                fs::write(folder.join(place).join(name), text).unwrap();
            }
        }
        let result = ptx_is_kept(&folder, &folder.join("out"));
        fs::remove_dir_all(&folder).unwrap();
        (folder, result)
    }

    #[test]
    fn kept_ptx_passes_with_any_build() {
        let made = [("copy-00.ptx", PTX), ("scale-wide-01.ptx", PTX), ("scale-tall-01.ptx", PTX)];
        // The compressed bytes are not read.
        let bytes = HEADER.to_owned() + "\u{1}\u{2}";
        let kept = [("copy-00.kept", bytes.as_str()), ("scale-01.kept", HEADER), ("mine.kept", "not ours")];
        package("same", &made, &kept).1.unwrap();
    }

    #[test]
    fn each_difference_names_its_kernel() {
        let named = |name: &str, made: &[(&str, &str)], kept: &[(&str, &str)]| {
            let (_, result) = package(name, made, kept);
            let error = result.unwrap_err();
            assert!(error.to_string().starts_with("TMA0560: "), "{error}");
            let Error::PtxNotKept { kernels, .. } = error else { panic!("{error}") };
            kernels
        };
        let made = [("copy-00.ptx", PTX), ("scale-wide-01.ptx", PTX)];
        let kept = [("copy-00.kept", HEADER), ("scale-01.kept", HEADER)];
        assert_eq!(named("absent", &made, &kept[..1]), ["scale::wide"]);
        assert_eq!(named("changed", &made[..1], &[("copy-07.kept", HEADER)]), ["copy"]);
        assert_eq!(named("gone", &made[..1], &kept), ["scale"]);
        let target = HEADER.replace("sm_90a", "sm_90");
        assert_eq!(named("target", &made[..1], &[("copy-00.kept", &target)]), ["copy"]);
        let version = HEADER.replace("0.1.0", "0.0.9");
        assert_eq!(named("generator", &made[..1], &[("copy-00.kept", &version)]), ["copy"]);
        assert_eq!(named("empty", &made[..1], &[("copy-00.kept", "")]), ["copy"]);
        assert_eq!(named("nothing", &[], &[]), [""; 0]);
    }
}
