//! Checks many bodies with rustc at once.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::workspace;

/// The beginning of each run's text: the vocabulary, and tags that distinguish types without
/// deciding any.
const HEADER: &str = "\
#![allow(warnings, arithmetic_overflow, overflowing_literals, unconditional_panic)]
use tma_runtime::prelude::*;
pub struct Tag<T>(T);
pub trait Tagged { type Tag; }
pub fn tag<T: Tagged>(_: T) -> T::Tag { loop {} }
macro_rules! tagged { ($($ty:ty)+) => { $(impl Tagged for $ty { type Tag = Tag<$ty>; })+ }; }
tagged!(bool i8 u8 i16 u16 i32 u32 i64 u64 usize f16 bf16 f32 f64 tf32 e4m3 e5m2);
impl<T: Tagged, const N: usize> Tagged for [T; N] { type Tag = [T::Tag; N]; }
";

/// A package that depends on the runtime, for rustc to check.
pub(super) struct Package {
    folder: PathBuf,
    target: PathBuf,
}

impl Package {
    /// Makes the package in `folder`. Its dependencies are built next to it, in the same folder as
    /// for the packages of tests.
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        let (target, folder) = (folder.join("packages"), folder.join("types"));
        let runtime = workspace().join("tma-runtime");
        let manifest = format!(
            "[package]\nname = \"types\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\ntma-runtime = {{ path = {runtime:?} }}\n"
        );
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(Self { folder, target })
    }

    /// Returns the errors of each body: the line in it, from 0, and the message.
    pub(super) fn judge(&self, bodies: &[String]) -> anyhow::Result<Vec<Vec<(usize, String)>>> {
        let mut text = HEADER.to_owned();
        let mut first_lines = vec![];
        for body in bodies {
            first_lines.push(text.lines().count());
            writeln!(text, "{body}")?;
        }
        fs::write(self.folder.join("src/lib.rs"), text)?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["check", "--offline", "--quiet", "--message-format=short", "--target-dir"]);
        cargo.arg(&self.target).current_dir(&self.folder).env_remove("OUT_DIR");
        let output = cargo.output().context("cannot run cargo")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let mut errors = vec![vec![]; bodies.len()];
        let mut found = 0;
        for (line, message) in said.lines().filter_map(error) {
            let body = first_lines.partition_point(|&first| first < line).checked_sub(1);
            let body = body.with_context(|| format!("an error outside of any body: {message}"))?;
            errors[body].push((line - 1 - first_lines[body], message.to_owned()));
            found += 1;
        }
        ensure!(output.status.success() == (found == 0), "rustc did not judge the bodies:\n{said}");
        // rustc does not check types if a name is unknown.
        let unjudged = said.lines().find(|line| UNJUDGED.iter().any(|code| line.contains(code)));
        ensure!(unjudged.is_none(), "rustc did not come to the types: {}", unjudged.unwrap_or_default());
        Ok(errors)
    }
}

/// Errors of unknown names, after which rustc gives up before it checks types.
const UNJUDGED: [&str; 3] = ["error[E0425]", "error[E0412]", "error[E0433]"];

/// Parses the line and the message of an error, in the form
/// `src/lib.rs:LINE:COLUMN: error[CODE]: MESSAGE`.
fn error(line: &str) -> Option<(usize, &str)> {
    let (line, rest) = line.strip_prefix("src/lib.rs:")?.split_once(':')?;
    let (_, message) = rest.split_once(": ")?;
    message.starts_with("error").then_some((line.parse().ok()?, message))
}
