//! Items that modules import from others by `use`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::{Build, Report, abi, check, check_in};

/// Returns the hashes and the text of all kernels.
fn kernels(text: &str) -> Vec<(u64, String)> {
    let accepted = check("lib.rs", text).unwrap_or_else(|error| panic!("{error}"));
    let all = accepted.kernels.into_iter();
    all.map(|checked| (checked.hash, checked.kernel.kernel().to_string())).collect()
}

/// Returns the text of the only kernel.
fn kernel(text: &str) -> String {
    let mut all = kernels(text);
    assert_eq!(all.len(), 1);
    all.remove(0).1
}

#[track_caller]
fn refused(text: &str, wanted: &str) {
    let error = check("lib.rs", text).expect_err("it is refused").to_string();
    assert!(error.contains(wanted), "{wanted:?} is missing:\n{error}");
}

/// A module with items of each kind. `K`, `helper` and `Block` are its own.
const LIBRARY: &str = "
#[tma_module]
pub mod lib {
    use tma_runtime::prelude::*;

    pub const K: u32 = 3;
    type Block = Tile<u32, Shape2<K, 32>>;
    pub type Row = Tile<u32, Extents>;
    type Extents = Shape2<K, 64>;

    #[derive(Clone, Copy)]
    pub struct At { pub row: u32, pub column: u32 }

    #[tma_device]
    impl At {
        pub fn below(self) -> At {
            At { row: self.row + K, ..self }
        }
    }

    #[tma_device]
    pub fn scaled(x: u32) -> u32 {
        helper(x) * K
    }

    #[tma_device]
    pub fn add<const N: u32>(x: &mut u32) {
        for _ in 0..N {
            *x += K;
        }
    }

    #[tma_device]
    pub fn words(tile: Block) -> u32 {
        tile.bytes() / K
    }

    #[tma_device]
    fn helper(x: u32) -> u32 {
        min(x, K + 4)
    }
}
";

/// Returns a module that imports items, with items of the same names as those of the library.
fn importing(uses: &str, body: &str) -> String {
    format!(
        "{LIBRARY}
#[tma_module]
mod user {{
    use tma_runtime::prelude::*;
    {uses}

    #[tma_device]
    fn helper(x: u32) -> u32 {{
        x + 1000
    }}

    #[tma_device]
    fn min(x: u32, y: u32) -> u32 {{
        x + y + 2000
    }}

    #[tma_kernel(threads = 32)]
    fn k(out: Global<u32>, n: u32) {{
        {body}
    }}
}}"
    )
}

#[test]
fn names_are_those_of_the_module_in_which_they_are_written() {
    // `K`, `helper` and `min` are those of the library within its function.
    let imported = kernel(&importing(
        "use crate::lib::scaled; const K: u32 = 50;",
        "out.set(0, scaled(n)); out.set(1, helper(n) + K); out.set(2, min(n, n));",
    ));
    for wanted in ["min(", "3u32", "7u32", "1000u32", "50u32", "2000u32"] {
        assert!(imported.contains(wanted), "{wanted}: {imported}");
    }
    // Each name, renamed so that none is in both modules.
    let text = "
#[tma_module]
mod m {
    use tma_runtime::prelude::*;
    const LK: u32 = 3;
    const UK: u32 = 50;
    #[tma_device] fn scaled(x: u32) -> u32 { lhelper(x) * LK }
    #[tma_device] fn lhelper(x: u32) -> u32 { min(x, LK + 4) }
    #[tma_device] fn uhelper(x: u32) -> u32 { x + 1000 }
    #[tma_device] fn umin(x: u32, y: u32) -> u32 { x + y + 2000 }
    #[tma_kernel(threads = 32)]
    fn k(out: Global<u32>, n: u32) {
        out.set(0, scaled(n)); out.set(1, uhelper(n) + UK); out.set(2, umin(n, n));
    }
}";
    let renamed = kernel(text).replace(" lhelper ", " helper ").replace(" uhelper ", " helper ");
    assert_eq!(imported, renamed.replace(" umin ", " min "));
}

#[test]
fn items_of_every_kind_are_imported() {
    let whole = kernel(&importing(
        "use crate::lib::{K as ROWS, At as Position};",
        "out.set(ROWS, Position { row: n, column: 1 }.below().row);",
    ));
    assert!(whole.contains("v0 = (p1 + 3u32)") && whole.contains("global.set p0 3u32 v0"), "{whole}");
    let generic =
        kernel(&importing("use crate::lib::add;", "let mut x = n; add::<2>(&mut x); out.set(0, x);"));
    assert!(generic.contains("3u32"), "{generic}");
    let bytes = kernel(&importing(
        "use crate::lib::Row;",
        "let tile: Row = shared(); tile.set([0, 0], n); sync_threads(); out.set(0, tile.get([0, 0]) + tile.bytes());",
    ));
    assert!(bytes.contains("Tile<u32, Shape2<3, 64>>"), "{bytes}");
    let all = importing("use super::lib::*;", "out.set(K, scaled(At { row: n, column: 1 }.below().row));");
    let named = importing(
        "use super::lib::{K, scaled, At};",
        "out.set(K, scaled(At { row: n, column: 1 }.below().row));",
    );
    assert_eq!(kernel(&all), kernel(&named));
}

/// A private alias within the signature of an imported function.
#[test]
fn types_of_an_imported_function_are_those_of_its_module() {
    let text = importing(
        "use crate::lib::words; type Block = Tile<u32, Shape2<3, 32>>;",
        "let tile: Block = shared(); tile.set([0, 0], n); sync_threads(); out.set(tile.get([0, 0]), words(tile));",
    );
    // The 384 bytes of the tile, divided by the library's constant.
    assert!(kernel(&text).contains("v1 = 128u32"), "{}", kernel(&text));
}

#[test]
fn structs_of_the_same_name_are_two_types() {
    refused(
        &importing(
            "use crate::lib::At as Other; #[derive(Clone, Copy)] struct At { row: u32, column: u32 }
             #[tma_device] fn row(at: At) -> u32 { at.row }",
            "out.set(0, row(Other { row: 1, column: 2 }));",
        ),
        "TMA0102",
    );
}

#[test]
fn reexports_are_followed() {
    let text = |through: &str| {
        format!(
            "{LIBRARY}
#[tma_module] pub mod second {{ pub use super::lib::{{scaled as twice, K}}; }}
#[tma_module] pub mod third {{ pub use super::second::*; }}
#[tma_module] mod user {{
    use tma_runtime::prelude::*;
    use crate::{through};
    #[tma_kernel(threads = 32)] fn k(out: Global<u32>, n: u32) {{ out.set(K, twice(n)); }}
}}"
        )
    };
    let direct = kernel(&text("lib::{scaled as twice, K}"));
    for through in ["second::{twice, K}", "second::*", "third::{K, twice}", "third::*"] {
        assert_eq!(kernel(&text(through)), direct, "{through}");
    }
}

#[test]
fn imported_functions_may_call_functions_of_the_same_name() {
    let text = importing("use crate::lib::scaled as inner;", "out.set(0, scaled(n));").replace(
        "#[tma_device]\n    fn min",
        "#[tma_device] fn scaled(x: u32) -> u32 { inner(x) + 5 }\n    #[tma_device]\n    fn min",
    );
    assert!(kernel(&text).contains("5u32"));
}

#[test]
fn the_imported_items_are_part_of_the_hash() {
    let text = importing("use crate::lib::scaled;", "out.set(0, scaled(n));");
    let hash = |text: &str| kernels(text)[0].0;
    let changed = text.replacen("min(x, K + 4)", "min(x, K + 5)", 1);
    assert_ne!(hash(&text), hash(&changed));
    assert_ne!(hash(&text), hash(&text.replacen("pub const K: u32 = 3", "pub const K: u32 = 4", 1)));
    // Documentation and code of the host do not count.
    assert_eq!(hash(&text), hash(&text.replacen("pub const K", "/// Rows.\n pub const K", 1)));
}

#[test]
fn tma0275_what_kernels_cannot_use_is_refused_where_it_is_used() {
    let unknown = importing("use crate::lib::nope;", "nope(n);");
    refused(
        &unknown,
        "kernels cannot use `nope`, imported as `crate::lib::nope`: the module shares no `nope`",
    );
    refused(&importing("use crate::libs::scaled;", "scaled(n);"), "there is no module `libs` at this path");
    refused(&importing("use other::lib::scaled;", "scaled(n);"), "the sources of its package are unknown");
    let host = importing("use crate::lib::host;", "out.set(0, host(n));").replacen(
        "pub const K",
        "pub fn host(x: u32) -> u32 { x } pub const K",
        1,
    );
    refused(&host, "the module shares no `host`");
    // On the host it may be used.
    assert_eq!(kernels(&importing("use crate::lib::nope; use other::Thing;", "out.set(0, n);")).len(), 1);
}

#[test]
fn mistakes_in_an_imported_function_are_reported_at_the_use() {
    let text = importing("use crate::lib::scaled;", "out.set(0, scaled(n));").replacen(
        "helper(x) * K",
        "helpers(x) * K",
        1,
    );
    let line = 1 + text[..text.find("use crate::lib::scaled").unwrap()].matches('\n').count();
    refused(&text, &format!("lib.rs:{line}:21"));
    refused(&text, "cannot find function `helpers`");
}

#[test]
fn a_constant_of_the_host_belongs_into_the_module() {
    let text =
        "const C: u32 = 4; #[tma_kernel(threads = 32)] fn k(out: Global<u32>, n: u32) { out.set(n, C); }";
    refused(text, "move the constant `C` into the kernel's `#[tma_module]`, import it there by `use`");
}

/// Two packages, the second of which depends on the first.
struct Packages(PathBuf);

impl Packages {
    /// Creates the packages; `name` is that of the test.
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sharing").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        let packages = Self(folder);
        packages.write("dep/src/lib.rs", "pub mod files;\n");
        packages.write("dep/src/files/mod.rs", &format!("pub mod inner;\n{LIBRARY}"));
        packages.write(
            "dep/src/files/inner.rs",
            "#[tma_module] pub mod nested { pub use super::super::lib::scaled; pub use crate::files::lib::K as ALL; }",
        );
        packages.write("user/src/lib.rs", "mod a;\nmod kernels;\n");
        packages.write("user/src/a.rs", "#[tma_module]\npub mod own { pub const STEP: u32 = 9; }\n");
        packages
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Builds the second package.
    fn build(&self) -> Report {
        let (package, out) = (self.0.join("user"), self.0.join("user/out"));
        let build = Build::new().package("dep", self.0.join("dep"));
        let roots = ["src", "examples"].map(|folder| package.join(folder));
        let roots: Vec<_> = roots.into_iter().filter(|root| root.exists()).collect();
        build.compile(&package, &roots, &out).unwrap_or_else(|error| panic!("{error}"))
    }
}

const USER: &str = "
#[tma_module]
mod user {
    use tma_runtime::prelude::*;
    use super::super::a::own::STEP;
    use dep::files::inner::nested::{ALL, scaled};

    #[tma_kernel(threads = 32)]
    pub fn k(out: Global<u32>) {
        out.set(STEP, scaled(ALL));
    }
}
";

#[test]
fn items_of_other_files_and_packages_are_imported() {
    let packages = Packages::new("found");
    packages.write("user/src/kernels.rs", USER);
    let report = packages.build();
    assert_eq!((&report.compiled[..], &report.refused[..]), (&["k".to_owned()][..], &[][..]));
    assert_eq!(packages.build().reused, ["k"]);
    // Tools see the same kernel.
    let (user, dep) = (packages.0.join("user"), packages.0.join("dep"));
    let others = BTreeMap::from([("dep".to_owned(), dep)]);
    let accepted = check_in(&user, &others, "src/kernels.rs", USER).unwrap_or_else(|error| panic!("{error}"));
    let checked = &accepted.kernels[0];
    assert!(user.join("out").join(abi::ptx_file(checked.kernel.kernel(), checked.hash)).exists());
    assert!(checked.kernel.kernel().to_string().contains("9u32"));
    // A change in the other package's file changes the kernel.
    packages.write("dep/src/files/mod.rs", &format!("pub mod inner;\n{}", LIBRARY.replace("K + 4", "K + 5")));
    assert_eq!(packages.build().compiled, ["k"]);
}

/// In an example, `crate` is the example.
#[test]
fn the_root_of_an_example_is_its_own_file() {
    let packages = Packages::new("examples");
    packages.write("user/src/kernels.rs", "");
    let own = "#[tma_module] mod own { pub const STEP: u32 = 1; }";
    packages.write(
        "user/examples/alone.rs",
        &format!("{own}{}", USER.replace("super::super::a::own", "crate::own")),
    );
    packages.write(
        "user/examples/several/main.rs",
        &format!(
            "mod part; {own}{}",
            USER.replace("super::super::a::own", "super::own").replace("fn k", "fn other")
        ),
    );
    packages.write(
        "user/examples/several/part.rs",
        &USER.replace("super::super::a::own", "crate::own").replace("fn k", "fn part"),
    );
    let report = packages.build();
    assert_eq!(report.refused, [""; 0]);
    assert_eq!(report.compiled, ["k", "other", "part"]);
}
