//! A check that a package's kept PTX matches its kernels.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Error;

/// The folder in which a package keeps its PTX.
const FOLDER: &str = "tma-ptx";

/// The prefix of the first line of a kept file.
const KEPT: &str = "// kept: ";

/// The prefixes of the lines that state what PTX is for and what generated it.
const HEADERS: [&str; 2] = ["// generator: ", ".target "];

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
    let kept = package.join(FOLDER);
    let made = out_dir.join("tma");
    let names = ptx_files(&made, |_| true);
    let mut wrong: BTreeSet<_> =
        names.iter().filter(|name| !agree(&made.join(name), &kept.join(name))).collect();
    let gone = ptx_files(&kept, |text| text.starts_with(KEPT));
    wrong.extend(gone.difference(&names));
    if wrong.is_empty() && !names.is_empty() {
        return Ok(());
    }
    let kernels: BTreeSet<_> = wrong.into_iter().map(|name| kernel(name)).collect();
    Err(Error::PtxNotKept { package: package.to_owned(), kernels: kernels.into_iter().collect() })
}

/// Returns the names of the PTX files in a folder whose text satisfies `is_wanted`. There are none
/// if the folder is missing.
fn ptx_files(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    let wanted = paths.filter(|path| fs::read_to_string(path).is_ok_and(|text| is_wanted(&text)));
    wanted.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// Returns whether kept PTX is for the same target, and by the same generator, as that of the
/// build.
fn agree(made: &Path, kept: &Path) -> bool {
    let Ok(kept) = fs::read_to_string(kept) else { return false };
    let made = fs::read_to_string(made).unwrap_or_default();
    let header = |text: &str, prefix| text.lines().find(|line| line.starts_with(prefix)).map(str::to_owned);
    kept.starts_with(KEPT) && HEADERS.iter().all(|prefix| header(&made, prefix) == header(&kept, prefix))
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

    /// Makes a package and its `OUT_DIR`, with files of these names and texts.
    fn package(name: &str, made: &[(&str, &str)], kept: &[(&str, &str)]) -> (PathBuf, Result<(), Error>) {
        let folder = std::env::temp_dir().join(format!("tma-testing-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        for (place, header, files) in
            [("out/tma", "// fingerprint: 0\n", made), (FOLDER, "// kept: 0\n", kept)]
        {
            fs::create_dir_all(folder.join(place)).unwrap();
            for (name, text) in files {
                fs::write(folder.join(place).join(name), format!("{header}{text}")).unwrap();
            }
        }
        let result = ptx_is_kept(&folder, &folder.join("out"));
        fs::remove_dir_all(&folder).unwrap();
        (folder, result)
    }

    #[test]
    fn kept_ptx_passes_with_a_checked_build() {
        let files = [("copy-00.ptx", PTX), ("scale-wide-01.ptx", PTX)];
        package("same", &files, &files).1.unwrap();
        let checked = PTX.replace("ret;", "trap; ret;");
        package("checked", &[("copy-00.ptx", &checked)], &[("copy-00.ptx", PTX)]).1.unwrap();
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
        assert_eq!(named("absent", &made, &made[..1]), ["scale::wide"]);
        assert_eq!(named("changed", &made[..1], &[("copy-07.ptx", PTX)]), ["copy"]);
        assert_eq!(named("gone", &made[..1], &made), ["scale::wide"]);
        let target = PTX.replace("sm_90a", "sm_90");
        assert_eq!(named("target", &made[..1], &[("copy-00.ptx", &target)]), ["copy"]);
        let version = PTX.replace("0.1.0", "0.0.9");
        assert_eq!(named("generator", &made[..1], &[("copy-00.ptx", &version)]), ["copy"]);
        assert_eq!(named("nothing", &[], &[]), [""; 0]);
    }
}
