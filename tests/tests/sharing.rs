//! Two packages, of which one imports items for its kernels from the other, through cargo and
//! rustc.

#[allow(dead_code, reason = "other tests use the rest")]
mod packages;

use std::fs;
use std::path::{Path, PathBuf};

use packages::{check, package_with_build_script};

/// The library's files: its root, and two files with a module each.
const LIBRARY: [(&str, &str); 3] = [
    ("src/lib.rs", "//! Shared.\n#![deny(warnings, missing_docs)]\npub mod epilogue;\npub mod schedule;\n"),
    (
        "src/schedule.rs",
        "\
//! The order of tiles.
use tma_runtime::tma_module;

/// Positions of tiles.
#[tma_module]
pub mod order {
    use tma_runtime::prelude::*;

    /// The rows of a tile.
    pub const ROWS: u32 = 8;

    /// A position.
    #[derive(Clone, Copy)]
    pub struct Position {
        /// The row.
        pub row: u32,
    }

    #[tma_device]
    impl Position {
        /// Returns the position below.
        pub fn below(self) -> Position {
            Position { row: min(self.row + 1, ROWS - 1) }
        }
    }

    /// Returns the square root of a positive number, or zero.
    #[tma_device]
    pub fn root(x: f32) -> f32 {
        helper(x).sqrt()
    }

    #[tma_device]
    fn helper(x: f32) -> f32 {
        max(x, 0.0)
    }
}
",
    ),
    (
        "src/epilogue.rs",
        "\
//! Computations on each element.
use tma_runtime::tma_module;

/// Finishes elements.
#[tma_module]
pub mod scaled {
    pub use super::super::schedule::order::{Position, root};
    use crate::schedule::order::ROWS as ALL;
    use tma_runtime::prelude::*;

    /// Finishes an element.
    #[tma_device]
    pub fn finish(x: f32, at: Position) -> f32 {
        root(x) + cast::<f32>(at.row) / cast::<f32>(ALL)
    }
}
",
    ),
];

/// The program's file. It has a `helper` and `ROWS` of its own.
const USER: &str = "\
//! Uses the library.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs)]

use tma_runtime::tma_module;

/// Kernels.
#[tma_module]
pub mod mine {
    use shared::epilogue::scaled::{Position as At, finish, root};
    use tma_runtime::prelude::*;

    const ROWS: u32 = 100;

    #[tma_device]
    fn helper(x: f32) -> f32 {
        -x
    }

    /// Uses items of both packages.
    #[tma_kernel(threads = 32)]
    pub fn fill(out: Global<f32>) {
        let at = At { row: ROWS };
        out.set(thread_idx().x, helper(finish(2.0, at.below())) + root(3.0));
    }
}

/// Kernels with all items of a module.
#[tma_module]
pub mod all {
    use shared::schedule::order::*;
    use tma_runtime::prelude::*;

    /// Fills.
    #[tma_kernel(threads = 32)]
    pub fn rows(out: Global<u32>) {
        out.set(thread_idx().x, Position { row: ROWS }.below().row);
    }
}
";

/// Two packages.
struct Packages {
    library: PathBuf,
    user: PathBuf,
}

impl Packages {
    /// Creates the packages; `name` is that of the test.
    fn new(name: &str) -> Self {
        let library = package_with_build_script(&format!("sharing/{name}/shared"));
        for (file, text) in LIBRARY {
            fs::write(library.join(file), text).unwrap();
        }
        let user = package_with_build_script(&format!("sharing/{name}/user"));
        replace(
            &user.join("Cargo.toml"),
            "[dependencies]",
            "[dependencies]\nshared = { path = \"../shared\" }",
        );
        fs::write(user.join("src/lib.rs"), USER).unwrap();
        let packages = Self { library, user };
        packages.link();
        packages
    }

    fn link(&self) {
        let linked = "version = \"0.0.0\"\nlinks = \"shared\"";
        replace(&self.library.join("Cargo.toml"), "version = \"0.0.0\"", linked);
    }
}

fn replace(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{old:?} is not in {text}");
    fs::write(file, text.replacen(old, new, 1)).unwrap();
}

#[track_caller]
fn accepted(folder: &Path) {
    let output = check(folder, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
fn refused(folder: &Path, wanted: &[&str]) {
    let output = check(folder, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it was accepted");
    for wanted in wanted {
        assert!(said.contains(wanted), "{wanted:?} was not said, but:\n{said}");
    }
}

#[test]
fn a_package_imports_items_of_another() {
    let Packages { library, user } = Packages::new("accepted");
    accepted(&user);

    // A change in the library is one in the kernels, and is found without a change in the program.
    replace(&library.join("src/schedule.rs"), "max(x, 0.0)", "max(x, 1.0)");
    accepted(&user);
    // A mistake in it is reported at the `use`.
    replace(
        &library.join("src/schedule.rs"),
        "max(x, 1.0)",
        "max(x, 1.0)\n    }\n    #[tma_device]\n    fn unused() {}\n    fn host(x: f32) -> f32 {\n        x",
    );
    replace(&library.join("src/schedule.rs"), "helper(x).sqrt()", "host(x).sqrt()");
    refused(&user, &["TMA0120: `host` is a host function here", "src/lib.rs:10:"]);
}

#[test]
fn another_item_in_the_place_of_a_module_is_refused() {
    let Packages { user, .. } = Packages::new("hidden");
    // A macro makes a module that hides the package in rustc's eyes, with the same names.
    let hidden = "\
    macro_rules! hide {
        () => {
            mod shared {
                pub mod schedule {
                    pub use ::shared::epilogue::scaled as order;
                }
            }
        };
    }
    hide!();
    use self::shared::schedule::order::root;
";
    let text = USER.replace(
        "    use shared::epilogue::scaled::{Position as At, finish, root};\n",
        &format!("    use ::shared::epilogue::scaled::{{Position as At, finish}};\n{hidden}"),
    );
    fs::write(user.join("src/lib.rs"), text).unwrap();
    refused(&user, &["TMA0275: kernels cannot use `root`"]);
}

/// Adding `links` changes nothing that cargo watches.
#[test]
fn a_library_without_links_is_found_once_it_has_them() {
    let packages = Packages::new("unlinked");
    replace(&packages.library.join("Cargo.toml"), "links = \"shared\"\n", "");
    refused(&packages.user, &["TMA0275", "the sources of its package are unknown", "with `links = \"..\"`"]);
    packages.link();
    accepted(&packages.user);
}
