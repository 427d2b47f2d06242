//! LLVM 22: the location of its library.
//!
//! Only the shared library is needed: no headers, no `llvm-config`, no C++ compiler. On Debian the
//! package `libllvm22` is sufficient.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::system::{self, System};

/// The variable with the path of LLVM's library, or of its folder. If it is set, nothing else is
/// searched.
pub const VARIABLE: &str = "TMA_LLVM";

/// The corresponding variable of other crates that use LLVM 22. It is read if [`VARIABLE`] is not
/// set.
pub const BINDINGS: &str = "LLVM_SYS_221_PREFIX";

/// The environment variables that the search reads.
pub const VARIABLES: [&str; 4] = [VARIABLE, BINDINGS, "CONDA_PREFIX", "HOMEBREW_PREFIX"];

/// The names of the library. The version is that of its interface, which all releases 22.1.x share.
const NAMES: &[&str] = if cfg!(target_os = "macos") {
    &["libLLVM.22.1.dylib", "libLLVM-22.dylib"]
} else if cfg!(windows) {
    &["LLVM-C.lib"]
} else {
    &["libLLVM.so.22.1"]
};

/// A name without a version, which is only accepted in folders for LLVM 22.
const BARE_NAME: Option<&str> = if cfg!(target_os = "macos") { Some("libLLVM.dylib") } else { None };

/// The error that LLVM 22 was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The variable that names a path without the library, and its value.
    pub named: Option<(&'static str, PathBuf)>,
    /// The command that installs LLVM here, if one is known.
    pub command: Option<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES[0];
        match &self.named {
            Some((variable, path)) => {
                write!(f, "`{variable}` is `{}`, which has no `{name}`", path.display())?;
            }
            None => write!(f, "LLVM 22 is not installed: cannot find `{name}`")?,
        }
        match &self.command {
            Some(command) => write!(f, "; install it: {command}"),
            None => write!(f, "; install LLVM 22, and set `{VARIABLE}` to the folder with that file"),
        }
    }
}

impl std::error::Error for Missing {}

/// The locations to search.
#[derive(Clone, Debug, Default)]
pub struct SearchLocations {
    /// The variable that names LLVM's location, and its value.
    pub named: Option<(&'static str, PathBuf)>,
    /// Folders, in the order of the search.
    pub folders: Vec<PathBuf>,
}

/// Returns the path of LLVM 22's shared library on this machine.
///
/// # Errors
///
/// [`Missing`], with the command that installs it.
pub fn find() -> Result<PathBuf, Missing> {
    let locations = SearchLocations::here();
    search(&locations).ok_or_else(|| Missing {
        named: locations.named,
        command: System::here().llvm_command(system::is_root()),
    })
}

/// Returns the library in the first location that contains it.
pub fn search(locations: &SearchLocations) -> Option<PathBuf> {
    let Some((_, named)) = &locations.named else {
        return locations.folders.iter().find_map(|folder| library_in(folder, is_for_22(folder)));
    };
    if named.is_file() {
        return Some(named.clone());
    }
    ["", "lib", "lib64"].iter().find_map(|part| library_in(&named.join(part), true))
}

fn library_in(folder: &Path, also_bare: bool) -> Option<PathBuf> {
    let bare = BARE_NAME.filter(|_| also_bare);
    NAMES.iter().copied().chain(bare).map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Returns whether a folder belongs to LLVM 22, according to its name or to that of its link
/// target.
fn is_for_22(folder: &Path) -> bool {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    real.iter().any(|part| {
        let part = part.to_string_lossy();
        part == "llvm@22" || part.starts_with("22.")
    })
}

impl SearchLocations {
    /// Returns the locations on this machine.
    pub fn here() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = [VARIABLE, BINDINGS].into_iter().find_map(|name| Some((name, variable(name)?)));
        let mut folders = of_system(env::consts::ARCH);
        let brews =
            variable("HOMEBREW_PREFIX").into_iter().chain(["/opt/homebrew", "/usr/local"].map(PathBuf::from));
        folders
            .extend(brews.flat_map(|brew| ["opt/llvm@22/lib", "opt/llvm/lib"].map(|part| brew.join(part))));
        folders.extend(variable("CONDA_PREFIX").map(|conda| conda.join("lib")));
        Self { named, folders }
    }
}

/// Returns the folders of packages on a processor's Linux distributions. Debian has one for each
/// architecture. Fedora's 64-bit libraries are in `lib64`. Fedora, Arch and Alpine keep an older
/// LLVM in a folder of its own.
fn of_system(processor: &str) -> Vec<PathBuf> {
    let debian = [format!("/usr/lib/{processor}-linux-gnu"), "/usr/lib/llvm-22/lib".to_owned()];
    let others = [
        "/usr/lib64",
        "/usr/lib64/llvm22/lib64",
        "/usr/lib64/llvm22/lib",
        "/usr/lib",
        "/usr/lib/llvm22/lib",
        "/usr/local/lib64",
        "/usr/local/lib",
    ];
    debian.into_iter().chain(others.map(str::to_owned)).map(PathBuf::from).collect()
}

/// Returns the directives with which a build script makes cargo link the library at `path`.
///
/// The library gets a link in `out_dir`, where the linker finds it. Cargo adds folders in `target`
/// to the loader's path of everything that it runs, so build scripts and tests start even if the
/// loader does not search the library's folder. Source: The Cargo Book, "Dynamic library paths".
///
/// # Errors
///
/// If the link cannot be created.
pub fn directives(path: &Path, out_dir: &Path) -> std::io::Result<Vec<String>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let library = match name.strip_prefix("lib").and_then(|name| name.strip_suffix(".dylib")) {
        Some(name) => format!("dylib={name}"),
        None => match name.strip_suffix(".lib") {
            Some(name) => format!("dylib={name}"),
            None => format!("dylib:+verbatim={name}"),
        },
    };
    let folder = link(path, out_dir)?;
    Ok(vec![format!("rustc-link-search=native={}", folder.display()), format!("rustc-link-lib={library}")])
}

#[cfg(unix)]
fn link(path: &Path, out_dir: &Path) -> std::io::Result<PathBuf> {
    let folder = out_dir.join("llvm");
    let link = folder.join(path.file_name().unwrap_or_default());
    std::fs::create_dir_all(&folder)?;
    if std::fs::read_link(&link).is_ok_and(|old| old == path) {
        return Ok(folder);
    }
    if link.is_symlink() {
        std::fs::remove_file(&link)?;
    }
    std::os::unix::fs::symlink(path, &link)?;
    Ok(folder)
}

/// Links need a privilege on such systems. Programs find libraries through `PATH`.
#[cfg(not(unix))]
fn link(path: &Path, _out_dir: &Path) -> std::io::Result<PathBuf> {
    Ok(path.parent().unwrap_or(Path::new("")).to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    /// Creates a folder for one test, with an empty library at each of `paths`.
    fn folder(name: &str, paths: &[&str]) -> PathBuf {
        let root = env::temp_dir().join(format!("tma-setup-{name}-{}", std::process::id()));
        for path in paths {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn the_first_folder_with_the_library_is_taken() {
        let root = folder("folders", &["b/libLLVM.so.22.1", "c/libLLVM.so.22.1", "a/libLLVM.so.21.1"]);
        let folders = ["a", "b", "c"].map(|name| root.join(name)).to_vec();
        let locations = SearchLocations { named: None, folders };
        assert_eq!(search(&locations), Some(root.join("b/libLLVM.so.22.1")));
        assert_eq!(search(&SearchLocations { named: None, folders: vec![root.join("a")] }), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_variable_names_a_file_or_a_folder_and_nothing_else_is_searched() {
        let root = folder("named", &["lib/libLLVM.so.22.1", "x/libLLVM.so.22.1", "y/llvm.so", "z/a"]);
        let named = |path: &str| {
            let locations =
                SearchLocations { named: Some((VARIABLE, root.join(path))), folders: vec![root.join("x")] };
            search(&locations).map(|path| path.strip_prefix(&root).unwrap().to_owned())
        };
        assert_eq!(named(""), Some("lib/libLLVM.so.22.1".into()));
        assert_eq!(named("x"), Some("x/libLLVM.so.22.1".into()));
        assert_eq!(named("y/llvm.so"), Some("y/llvm.so".into()));
        assert_eq!(named("z"), None);
        assert_eq!(named("nowhere"), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_link_to_the_library_is_replaced_when_it_moves() {
        let root = folder("link", &["a/libLLVM.so.22.1", "b/libLLVM.so.22.1"]);
        let out = root.join("out");
        for name in ["a", "b", "b"] {
            let library = root.join(name).join("libLLVM.so.22.1");
            let said = directives(&library, &out).unwrap();
            let search = format!("rustc-link-search=native={}/llvm", out.display());
            assert_eq!(said, [search, "rustc-link-lib=dylib:+verbatim=libLLVM.so.22.1".to_owned()]);
            assert_eq!(fs::read_link(out.join("llvm/libLLVM.so.22.1")).unwrap(), library);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn missing_libraries_come_with_a_command() {
        let command = Some("brew install llvm@22".to_owned());
        let missing = Missing { named: None, command };
        let text =
            "LLVM 22 is not installed: cannot find `libLLVM.so.22.1`; install it: brew install llvm@22";
        assert_eq!(missing.to_string(), text);
        let missing = Missing { named: Some((VARIABLE, "/opt/llvm".into())), command: None };
        assert!(missing.to_string().starts_with("`TMA_LLVM` is `/opt/llvm`, which has no"), "{missing}");
        assert!(missing.to_string().contains("set `TMA_LLVM` to the folder"), "{missing}");
    }
}
