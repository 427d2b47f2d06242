//! The package in the current folder, and the PTX from its build script.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tma_setup::process;

use crate::arguments::Build;
use crate::kernel::Kernel;
use crate::progress;

/// The folder in which a package saves PTX.
pub(crate) const KEPT_DIRECTORY: &str = "tma-ptx";

/// A package.
#[derive(Debug)]
pub(crate) struct Package {
    /// Identifier in cargo's output.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Folder of its `Cargo.toml`.
    pub(crate) folder: PathBuf,
}

/// The result of a build.
#[derive(Debug)]
pub(crate) struct Built {
    /// Kernels that compiled, by name.
    pub(crate) kernels: Vec<Kernel>,
    /// Whether everything else compiled too.
    pub(crate) all_built: bool,
}

fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // cargo uses the colour setting of this command.
    match anstream::ColorChoice::global() {
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => {
            command.env("CARGO_TERM_COLOR", "always");
        }
        anstream::ColorChoice::Never => _ = command.env("CARGO_TERM_COLOR", "never"),
        anstream::ColorChoice::Auto => {}
    }
    command
}

/// Returns `cargo metadata` of the current folder.
pub(crate) fn metadata(more: &[&str]) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1"]).args(more);
    let text = progress::during("resolving dependencies", || process::output(&mut command))?;
    serde_json::from_str(&text).context("cannot parse the output of cargo metadata")
}

/// Returns the package with this name, or else that of the current folder.
pub(crate) fn find(name: Option<&str>) -> Result<Package> {
    let metadata = metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = match name {
        Some(name) => packages.iter().find(|package| package["name"] == name),
        None => {
            let mut locate = cargo();
            let manifest = process::output(locate.args(["locate-project", "--message-format", "plain"]))?;
            packages.iter().find(|package| package["manifest_path"] == manifest.trim())
        }
    };
    let names =
        || packages.iter().filter_map(|package| package["name"].as_str()).collect::<Vec<_>>().join(", ");
    let package = found.with_context(|| match name {
        Some(name) => format!("the workspace has no package `{name}`; it has: {}", names()),
        None => format!(
            "the current folder is a workspace, not a package; choose one with --package: {}",
            names()
        ),
    })?;
    let text = |key: &str| package[key].as_str().map(str::to_owned).context("cargo metadata is incomplete");
    let manifest = PathBuf::from(text("manifest_path")?);
    let folder = manifest.parent().unwrap_or(&manifest).to_owned();
    Ok(Package { id: text("id")?, name: text("name")?, folder })
}

impl Package {
    #[cfg(test)]
    pub(crate) fn named(name: &str, folder: &Path) -> Self {
        Self { id: name.to_owned(), name: name.to_owned(), folder: folder.to_owned() }
    }

    /// Returns the folders of the packages with `links` that this one depends on, indexed by their
    /// names in its code. Cargo only tells build scripts about these.
    ///
    /// # Errors
    ///
    /// If cargo cannot resolve the dependencies.
    pub(crate) fn with_links(&self) -> Result<BTreeMap<String, PathBuf>> {
        let metadata = metadata(&[])?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let packages = list(&metadata["packages"]);
        let nodes = list(&metadata["resolve"]["nodes"]);
        let own = nodes.iter().find(|node| node["id"] == self.id.as_str());
        let folder = |dependency: &Value| {
            let package = packages.iter().find(|package| package["id"] == dependency["pkg"])?;
            package["links"].as_str()?;
            let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
            Some((dependency["name"].as_str()?.to_owned(), folder.to_owned()))
        };
        Ok(own.map(|own| list(&own["deps"])).unwrap_or_default().iter().filter_map(folder).collect())
    }

    /// Builds the package, and reads the PTX of its kernels.
    ///
    /// # Errors
    ///
    /// If cargo fails before the kernels are compiled, or the package has no kernels.
    pub(crate) fn kernels(&self, build: &Build) -> Result<Vec<Kernel>> {
        // Kernels have PTX even if something else fails to build later.
        let Built { kernels, .. } = self.build(build)?;
        ensure!(!kernels.is_empty(), "the package `{}` has no kernel that compiles", self.name);
        Ok(kernels)
    }

    /// Builds the package as far as possible.
    ///
    /// # Errors
    ///
    /// If cargo fails before the kernels are compiled.
    pub(crate) fn build(&self, build: &Build) -> Result<Built> {
        let mut command = self.cargo(build, build.release);
        command.args(["--message-format", "json-render-diagnostics"]);
        // Cargo shows its own progress and errors.
        let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
        let messages = String::from_utf8_lossy(&output.stdout);
        let Some(out_dir) = self.out_dir(&messages) else {
            ensure!(output.status.success(), "the package does not build");
            bail!(
                "the package `{}` has no build script; put `fn main() {{ tma_codegen::build() }}` into `build.rs`",
                self.name
            );
        };
        let kernels = kernels_in(&out_dir.join("tma"), &self.folder)?;
        Ok(Built { kernels, all_built: output.status.success() })
    }

    /// Returns the command of a build. It reuses everything that `cargo test` and `cargo run` have
    /// built. A release build only checks the package: optimising everything would take longer, to
    /// no purpose.
    fn cargo(&self, build: &Build, is_release: bool) -> Command {
        let mut command = cargo();
        command.args(if is_release { &["check", "--release"][..] } else { &["build"] });
        command.arg("--manifest-path").arg(self.folder.join("Cargo.toml"));
        command.args(build.no_default_features.then_some("--no-default-features"));
        command.args(build.features.iter().flat_map(|features| ["--features", features]));
        command
    }

    /// Makes the build script write or check the saved PTX, and returns whether it succeeded.
    pub(crate) fn keep(&self, task: &str, build: &Build) -> Result<bool> {
        let mut command = self.cargo(build, true);
        let status = command.env("TMA_KEEP", format!("{task}:{}", self.name)).stdout(Stdio::null()).status();
        Ok(status.context("cannot start cargo")?.success())
    }

    /// Returns the names of the kernels whose PTX is saved, sorted. Kernels of different modules
    /// may have the same name.
    pub(crate) fn kept(&self) -> Result<Vec<String>> {
        let folder = self.folder.join(KEPT_DIRECTORY);
        let mut names = vec![];
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let kernel = stem.rsplit_once('-').map(|(kernel, _)| kernel.to_owned());
            names.extend(kernel.filter(|_| path.extension().is_some_and(|extension| extension == "kept")));
        }
        names.sort();
        Ok(names)
    }

    /// Returns the output folder of the build script, from cargo's messages. Source: The Cargo
    /// Book, "External tools", "Build Script Output".
    fn out_dir(&self, messages: &str) -> Option<PathBuf> {
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut scripts = messages.filter(|message| message["reason"] == "build-script-executed");
        let own = scripts.find(|message| message["package_id"] == self.id.as_str())?;
        own["out_dir"].as_str().map(PathBuf::from)
    }
}

/// Builds the C library of the package in a folder, without symbols, and returns its path.
///
/// # Errors
///
/// If it does not build.
pub(crate) fn library(folder: &Path, id: &str, features: &[String]) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--release", "--lib", "--message-format", "json-render-diagnostics"]);
    command.args(["--config", "profile.release.strip = \"symbols\""]);
    command.arg("--manifest-path").arg(folder.join("Cargo.toml")).args(features);
    // Cargo shows its own progress and errors.
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the package does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut artifacts = messages
        .filter(|message| message["reason"] == "compiler-artifact" && message["package_id"] == id)
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let is_library =
        |path: &Path| path.extension().is_some_and(|extension| extension == env::consts::DLL_EXTENSION);
    let found = artifacts.find_map(|path| path.as_str().map(PathBuf::from).filter(|path| is_library(path)));
    found.context("cargo built no C library")
}

/// Returns the kernels whose PTX is in a folder, sorted by name.
fn kernels_in(folder: &Path, package: &Path) -> Result<Vec<Kernel>> {
    let mut kernels = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            kernels.push(Kernel::read(path, text, package)?);
        }
    }
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

/// Returns whether a name matches a kernel, either directly or as the kernel of this instance.
pub(crate) fn is_named(kernel: &str, name: &str) -> bool {
    kernel == name || kernel.split_once("::").is_some_and(|(generic, _)| generic == name)
}

/// Returns the kernels that a name matches: one, or all instances of one.
///
/// # Errors
///
/// If there is none. The error lists all names.
pub(crate) fn named(kernels: Vec<Kernel>, name: &str) -> Result<Vec<Kernel>> {
    let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.clone()).collect();
    let found: Vec<_> = kernels.into_iter().filter(|kernel| is_named(&kernel.name, name)).collect();
    ensure!(!found.is_empty(), "there is no kernel `{name}`; available: {}", names.join(", "));
    Ok(found)
}

/// Returns the only kernel that a name matches.
///
/// # Errors
///
/// If there is none, or the kernel has several instances.
pub(crate) fn only(kernels: Vec<Kernel>, name: &str) -> Result<Kernel> {
    let mut found = named(kernels, name)?;
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|kernel| kernel.name.as_str()).collect();
        bail!("`{name}` has several instances; choose one: {}", names.join(", "));
    }
    found.pop().context("there is no kernel")
}
