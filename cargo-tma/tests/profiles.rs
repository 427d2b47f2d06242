//! A build after a check compiles nothing again for the host: no build script, no macro, and none
//! of their dependencies. The test asks cargo for its plan, and compiles nothing.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use common::{environment, new_package, root};

/// The lines without which cargo compiles these units again.
const LINES: &str = "[profile.dev.build-override]\ndebug = false\n";
/// The profile of the package that the compiler of kernels shares with the simulator.
const MODEL: &str = "[profile.dev.package.tma-model]\nopt-level = 3\n";

/// The units that cargo would compile for a command line.
struct Plan {
    units: Vec<Value>,
    /// Whether a unit belongs to the program, and not only to a build script or a macro.
    is_program: Vec<bool>,
}

impl Plan {
    fn new(folder: &Path, line: &str) -> Self {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(line.split_whitespace()).args(["--unit-graph", "-Z", "unstable-options"]);
        environment(&mut cargo, folder);
        // With this variable, stable cargo prints the unit graph too. Debug information must stay
        // enabled, unlike in the other tests: without it there would be nothing to compare.
        cargo.env("RUSTC_BOOTSTRAP", "1");
        for variable in ["CARGO_PROFILE_DEV_DEBUG", "CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG"] {
            cargo.env_remove(variable);
        }
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let graph: Value = serde_json::from_slice(&output.stdout).unwrap();
        let units = graph["units"].as_array().unwrap().clone();
        let mut plan = Self { is_program: vec![false; units.len()], units };
        let roots = graph["roots"].as_array().unwrap().iter();
        roots.for_each(|root| plan.mark(root.as_u64().unwrap() as usize));
        plan
    }

    /// Marks a unit and its dependencies as the program's, except for build scripts and macros.
    fn mark(&mut self, index: usize) {
        let kind = &self.units[index]["target"]["kind"][0];
        if self.is_program[index] || kind == "custom-build" || kind == "proc-macro" {
            return;
        }
        self.is_program[index] = true;
        self.dependencies(index).into_iter().for_each(|dependency| self.mark(dependency));
    }

    fn dependencies(&self, index: usize) -> Vec<usize> {
        let all = self.units[index]["dependencies"].as_array().unwrap().iter();
        all.map(|dependency| dependency["index"].as_u64().unwrap() as usize).collect()
    }

    /// Returns all units, indexed by a hash of everything that cargo compares before it reuses a
    /// unit: the package, its compilation settings, and the same for each dependency.
    fn by_hash(&self) -> BTreeMap<u64, &Value> {
        let mut known = BTreeMap::new();
        (0..self.units.len()).map(|index| (self.hash(index, &mut known), &self.units[index])).collect()
    }

    fn hash(&self, index: usize, known: &mut BTreeMap<usize, u64>) -> u64 {
        if let Some(hash) = known.get(&index) {
            return *hash;
        }
        let mut unit = self.units[index].clone();
        // The setting of the common profile only applies to the program's units.
        if !self.is_program[index] {
            unit["profile"]["lto"] = "false".into();
        }
        let mut dependencies: Vec<_> =
            self.dependencies(index).into_iter().map(|dependency| self.hash(dependency, known)).collect();
        dependencies.sort_unstable();
        let own = ["pkg_id", "target", "profile", "platform", "mode", "features"].map(|key| &unit[key]);
        let hash = fnv(&format!("{own:?} {dependencies:?}"));
        known.insert(index, hash);
        hash
    }
}

/// Computes the FNV-1a hash.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns the host units of `cargo check` that a subsequent `cargo build` compiles again.
fn recompiled(folder: &Path, arguments: &str) -> Vec<String> {
    let plan = |command| Plan::new(folder, &format!("{command} {arguments}"));
    let (check, build) = (plan("check"), plan("build"));
    let build = build.by_hash();
    // Units that are only checked belong to the program itself.
    let host = check.by_hash().into_iter().filter(|(_, unit)| unit["mode"] != "check");
    let host: Vec<_> = host.collect();
    assert!(host.len() > 20, "a check compiles {} units for the host", host.len());
    let again = host.into_iter().filter(|(hash, _)| !build.contains_key(hash));
    again.map(|(_, unit)| format!("{} {}", unit["pkg_id"], unit["target"]["kind"])).collect()
}

/// Returns the book's manifest, adapted to the path of this clone.
fn manifest_of_the_book() -> String {
    let page = fs::read_to_string(root().join("docs/getting-started.md")).unwrap();
    let (_, text) = page.split_once("```toml\n[package]").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let text = text.replace("\"../tma/", &format!("\"{}/", root().display()));
    format!("[package]{text}\n[workspace]\n")
}

#[test]
fn a_build_after_a_check_reuses_host_dependencies() {
    let folder = new_package("check-then-build");
    let manifest = folder.join("Cargo.toml");
    let template = fs::read_to_string(&manifest).unwrap();
    for text in [template, manifest_of_the_book()] {
        fs::write(&manifest, &text).unwrap();
        assert_eq!(recompiled(&folder, ""), [""; 0], "with\n{text}");
        // Either change is sufficient for the compiler of kernels to be compiled again.
        for (line, instead) in [(LINES, ""), (MODEL, &format!("{MODEL}debug = true\n"))] {
            let other = text.replace(line, instead);
            assert_ne!(other, text);
            fs::write(&manifest, other).unwrap();
            let again = recompiled(&folder, "");
            assert!(again.iter().any(|unit| unit.contains("tma-codegen")), "{line} {instead}: {again:?}");
        }
    }
}

/// The workspace's own examples. `tests` also uses the compiler as a library, which is then built
/// twice with any profile.
#[test]
fn nor_does_one_of_the_examples() {
    assert_eq!(recompiled(&root(), "-p tma-examples"), [""; 0]);
}
