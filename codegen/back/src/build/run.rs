//! One run of the build script: processes the kernels one by one, and writes their PTX.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs, mem};

use tma_front::abi::{ptx_file, ptx_file_of};
use tma_front::bug;
use tma_front::check::for_target;
use tma_front::diag::{Diagnostic, Located, Sink};
use tma_front::ir::Kernel;
use tma_front::parse::item::file::kernels_in;
use tma_front::parse::item::template::Elsewhere;
use tma_front::parse::item::{KernelItem, ModuleItems};
use tma_front::target::Goal;

use super::batch::{Batch, PtxProducer};
use super::kept::{self, KeepMode, StaleKeptPtx, StaleReason, Subject};
use super::known::{self, Known};
use super::reuse::{self, Fingerprint};
use super::{BuildError, Report, file_error, store};
use crate::dump;
use crate::pipeline::{Front, Instance, Rules, front};
use crate::templates::Packages;

/// The folder in `OUT_DIR` that contains only files of kernels.
const FOLDER: &str = "tma";

/// The state of a run.
pub(super) struct Run<'a> {
    goal: Goal,
    producer: PtxProducer,
    keep: KeepMode,
    package: &'a Path,
    out_dir: &'a Path,
    /// The results of the previous run, and those of this one.
    before: Known,
    known: Known,
    /// The files that belong to current kernels.
    current: HashSet<PathBuf>,
    /// The kernels being compiled, and the destination of the PTX of each.
    compiled: Batch,
    awaited: Vec<(Subject, PtxFile)>,
    /// The errors about features that the target does not have.
    lacking: Vec<Located>,
    /// Whether a kernel needs a package whose location is unknown.
    lacks_package: bool,
    /// Whether the PTX that the package keeps is used.
    uses_kept: bool,
    /// The PTX to keep or to compare.
    to_keep: kept::Compiled,
    /// The kernels whose kept PTX was needed but could not be used.
    stale_kept: Vec<StaleKeptPtx>,
    report: Report,
}

/// The folders of a package's build.
#[derive(Clone, Copy)]
pub(super) struct Paths<'a> {
    pub(super) package: &'a Path,
    pub(super) out_dir: &'a Path,
}

/// A kernel of a source file.
#[derive(Clone, Copy)]
struct KernelSource<'k> {
    subject: &'k Subject,
    fingerprint: &'k Fingerprint,
    /// The file, as messages name it.
    source: &'k Path,
    /// Why its kept PTX cannot be used, in a build that needs it.
    stale: Option<&'k StaleReason>,
}

/// The destination of the PTX of an instance.
pub(super) struct PtxFile {
    /// `kernel`, or `kernel::instance`.
    kernel: String,
    /// The name of the form `tma/NAME-HASH.ptx`, and the full path of this file.
    name: String,
    file: PathBuf,
    /// The inputs of the PTX.
    pub(super) fingerprint: Fingerprint,
    /// The source file, as messages name it.
    pub(super) source: PathBuf,
    /// The contents left by an earlier run.
    old: Option<String>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        paths: Paths<'a>,
        goal: Goal,
        producer: PtxProducer,
        keep: KeepMode,
    ) -> Result<Self, BuildError> {
        let Paths { package, out_dir } = paths;
        let folder = out_dir.join(FOLDER);
        fs::create_dir_all(&folder).map_err(file_error(&folder))?;
        let uses_kept = match keep {
            KeepMode::Nothing => kept::is_in(package) && !(kept::is_compiled() && producer.is_wanted()),
            KeepMode::Write | KeepMode::Check => false,
        };
        Ok(Self {
            goal,
            producer,
            keep,
            package,
            out_dir,
            before: Known::read(out_dir),
            known: Known::default(),
            current: HashSet::new(),
            compiled: Batch::new(producer, goal.checks),
            awaited: vec![],
            lacking: vec![],
            lacks_package: false,
            uses_kept,
            to_keep: kept::Compiled::default(),
            stale_kept: vec![],
            report: Report::default(),
        })
    }

    /// Returns the origin of PTX, for fingerprints. Kept PTX is never taken for PTX that a later
    /// build with the same `OUT_DIR` has compiled.
    fn origin(&self) -> &'static str {
        if self.uses_kept { kept::ORIGIN } else { self.producer.name() }
    }

    /// Processes the kernels of the file `source`.
    pub(super) fn take_file(
        &mut self,
        text: &str,
        source: &Path,
        packages: &Packages,
    ) -> Result<(), BuildError> {
        let file = reuse::file(text, self.origin(), self.goal, source);
        if self.take_known_file(file, source)? {
            return Ok(());
        }
        // A template is in another file, which may change while this one does not.
        let is_alone = Cell::new(true);
        let find = |path: &syn::Path| {
            is_alone.set(false);
            packages.find(path)
        };
        let whole = self.package.join(source);
        let find_imports = |module: &syn::ItemMod, around: &[String]| {
            let imports = packages.imports(&whole, module, around);
            is_alone.set(is_alone.get() && imports.found.is_empty() && imports.missing.is_empty());
            imports
        };
        let elsewhere = Elsewhere { template: &find, imports: &find_imports };
        let mut kernels = vec![];
        for (item, shared) in kernels_in(text, &elsewhere) {
            let source = shared.template.as_deref().unwrap_or(source);
            let fingerprint = reuse::fingerprint(&item, &shared, self.origin(), self.goal, source);
            if !self.take_known(&fingerprint, source)? {
                self.take(&item, &shared, &fingerprint, source)?;
            }
            kernels.push(fingerprint);
        }
        if is_alone.get() {
            self.known.insert_file(file, kernels);
        }
        Ok(())
    }

    /// Reuses the results of an earlier run for all kernels of a file. Returns whether they were
    /// complete.
    fn take_known_file(&mut self, file: u64, source: &Path) -> Result<bool, BuildError> {
        let Some(kernels) = self.before.file(file).map(<[_]>::to_vec) else { return Ok(false) };
        let reused: Option<Vec<_>> = kernels.iter().map(|kernel| self.reused(kernel, source)).collect();
        let Some(reused) = reused else { return Ok(false) };
        for (fingerprint, files) in kernels.iter().zip(reused) {
            self.keep_reused(fingerprint, files)?;
        }
        self.known.insert_file(file, kernels);
        Ok(true)
    }

    /// Processes a kernel of the file `source`.
    fn take(
        &mut self,
        item: &KernelItem,
        shared: &ModuleItems,
        fingerprint: &Fingerprint,
        source: &Path,
    ) -> Result<(), BuildError> {
        let subject = Subject::new(item, shared);
        let stale = if self.uses_kept {
            match kept::take(self.package, &subject, self.goal.target) {
                Ok(texts) => return self.take_kept(&subject, texts, fingerprint, source),
                // A build without PTX serves to check what was changed.
                Err(reason) => self.producer.is_wanted().then_some(reason),
            }
        } else {
            None
        };
        let out_dir = self.out_dir;
        let is_known = |kernel: &Kernel, hash| {
            let old = fs::read_to_string(out_dir.join(ptx_file(kernel, hash)));
            old.is_ok_and(|old| fingerprint.heads(&old))
        };
        let front = front(item, shared, Rules::ProtocolUnless(&is_known));
        self.lacks_package |= front.diagnostics.errors.iter().any(|error| error.mistake.is_of_packages());
        self.take_instances(
            front,
            KernelSource { subject: &subject, fingerprint, source, stale: stale.as_ref() },
        )
    }

    /// Uses the kept PTX of a kernel, without parsing it.
    fn take_kept(
        &mut self,
        subject: &Subject,
        texts: kept::Texts,
        fingerprint: &Fingerprint,
        source: &Path,
    ) -> Result<(), BuildError> {
        for (kernel, ptx) in texts {
            let name = ptx_file_of(&kernel, subject.hash());
            let destination = self.destination(kernel, name, fingerprint, source);
            self.report.kept.push(destination.kernel.clone());
            // The same kernel may occur elsewhere as well, and shares the PTX.
            if self.current.insert(destination.file.clone()) {
                store(&destination, &fingerprint.mark(&ptx))?;
            }
        }
        Ok(())
    }

    /// Reuses the results of an earlier run for a kernel, without parsing it. Returns whether they
    /// were complete.
    fn take_known(&mut self, fingerprint: &Fingerprint, source: &Path) -> Result<bool, BuildError> {
        let Some(reused) = self.reused(fingerprint, source) else { return Ok(false) };
        self.keep_reused(fingerprint, reused)?;
        Ok(true)
    }

    /// Returns the PTX of all instances of a kernel, if an earlier run left it.
    fn reused(&self, fingerprint: &Fingerprint, source: &Path) -> Option<Vec<(PtxFile, String)>> {
        if self.keep != KeepMode::Nothing || self.uses_kept || dump::is_wanted() {
            return None;
        }
        let reused = |known::Instance { kernel, file }: &known::Instance| {
            let destination = self.destination(kernel.clone(), file.clone(), fingerprint, source);
            let text = destination.reused()?;
            Some((destination, text))
        };
        self.before.instances(fingerprint)?.iter().map(reused).collect()
    }

    fn keep_reused(
        &mut self,
        fingerprint: &Fingerprint,
        reused: Vec<(PtxFile, String)>,
    ) -> Result<(), BuildError> {
        let mut instances = vec![];
        for (destination, text) in reused {
            store(&destination, &text)?;
            self.current.insert(destination.file);
            self.report.reused.push(destination.kernel.clone());
            instances.push(known::Instance { kernel: destination.kernel, file: destination.name });
        }
        self.known.insert(fingerprint, instances);
        Ok(())
    }

    fn take_instances(&mut self, front: Front, of: KernelSource<'_>) -> Result<(), BuildError> {
        let KernelSource { subject: _, fingerprint, source, stale: _ } = of;
        let located = |diagnostic: &Diagnostic| Located::new(source, diagnostic);
        let warnings = &front.diagnostics.warnings;
        self.report.warnings.extend(warnings.iter().map(located));
        let (mut sink, mut instances, mut is_right) = (Sink::default(), vec![], warnings.is_empty());
        for instance in front.instances {
            let checked = match instance {
                Instance::Known(kernel, _) => bug!("{}: only the macro skips checks", kernel.path()),
                Instance::Refused(kernel) => {
                    self.report.refused.push(kernel.path());
                    is_right = false;
                    continue;
                }
                Instance::Checked(checked) => *checked,
            };
            sink.enter(checked.kernel().instance.as_deref());
            let Some(target_kernel) = for_target(checked, self.goal.target, &mut sink) else { continue };
            let kernel = target_kernel.kernel().kernel();
            let destination =
                self.destination(kernel.path(), ptx_file(kernel, front.hash), fingerprint, source);
            instances
                .push(known::Instance { kernel: destination.kernel.clone(), file: destination.name.clone() });
            if !self.take_existing(&destination, of)? {
                self.compiled.add(target_kernel, source);
                self.awaited.push((of.subject.clone(), destination));
            }
        }
        let lacking = sink.into_errors();
        if is_right && lacking.is_empty() {
            self.known.insert(fingerprint, instances);
        }
        self.lacking.extend(lacking.iter().map(located));
        Ok(())
    }

    /// Uses the existing PTX of an instance, or records why the kept PTX cannot be used. Returns
    /// false if the instance must be compiled.
    fn take_existing(&mut self, destination: &PtxFile, of: KernelSource<'_>) -> Result<bool, BuildError> {
        // The same kernel occurs elsewhere as well, and shares the PTX.
        if !self.current.insert(destination.file.clone()) {
            self.report.reused.push(destination.kernel.clone());
            return Ok(true);
        }
        if let Some(reason) = of.stale {
            let location = (of.source.to_owned(), of.fingerprint.line());
            let kernel = destination.kernel.clone();
            self.stale_kept.push(StaleKeptPtx { kernel, location, reason: reason.clone() });
            return Ok(true);
        }
        let Some(text) = destination.reused() else { return Ok(false) };
        self.report.reused.push(destination.kernel.clone());
        self.write(of.subject, destination, &text)?;
        Ok(true)
    }

    /// Waits for the compilation, and removes files that belong to no kernel.
    pub(super) fn finish(mut self, packages: &Packages) -> Result<Report, BuildError> {
        if self.lacks_package {
            packages.note_lack();
        }
        self.write_compiled()?;
        self.write_templates(packages)?;
        if !self.lacking.is_empty() {
            return Err(BuildError::Target(self.lacking));
        }
        match self.keep {
            KeepMode::Nothing => {}
            #[cfg(feature = "llvm")]
            KeepMode::Write => self.to_keep.write(self.package, self.goal.target)?,
            // Without LLVM, `compile_and_keep` has refused.
            #[cfg(not(feature = "llvm"))]
            KeepMode::Write => {}
            KeepMode::Check => {
                self.stale_kept.extend(self.to_keep.check(self.package, self.goal.target));
                self.stale_kept.extend(self.to_keep.gone(self.package)?);
            }
        }
        if !self.stale_kept.is_empty() {
            return Err(BuildError::StaleKeptPtx(self.stale_kept));
        }
        self.remove_stale()?;
        if self.known != self.before {
            self.known.write(self.out_dir).map_err(file_error(self.out_dir))?;
        }
        Ok(self.report)
    }

    fn write_compiled(&mut self) -> Result<(), BuildError> {
        let compiled = mem::replace(&mut self.compiled, Batch::new(self.producer, self.goal.checks));
        let awaited = mem::take(&mut self.awaited);
        let mut failure = None;
        let (subjects, awaited): (Vec<_>, Vec<_>) = awaited.into_iter().unzip();
        for ((subject, destination), text) in subjects.iter().zip(&awaited).zip(compiled.finish(&awaited)) {
            match text {
                Ok(ptx) => {
                    self.report.compiled.push(destination.kernel.clone());
                    self.write(subject, destination, &destination.fingerprint.mark(&ptx))?;
                }
                // The successful results are written, and will be reused by the next run.
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Writes the PTX of an instance, and notes it to be kept or compared if requested.
    fn write(&mut self, subject: &Subject, destination: &PtxFile, text: &str) -> Result<(), BuildError> {
        if self.keep != KeepMode::Nothing {
            let ptx = text.split_once('\n').map_or("", |(_, ptx)| ptx);
            self.to_keep.add(subject, &destination.source, &destination.kernel, ptx);
        }
        store(destination, text)
    }

    /// Writes the templates that the macro needs.
    fn write_templates(&mut self, packages: &Packages) -> Result<(), BuildError> {
        for (name, text) in packages.requested() {
            let file = self.out_dir.join(name);
            if fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                store::write(&file, &text).map_err(file_error(&file))?;
            }
            self.current.insert(file);
        }
        Ok(())
    }

    fn remove_stale(&self) -> Result<(), BuildError> {
        let folder = self.out_dir.join(FOLDER);
        for entry in fs::read_dir(&folder).map_err(file_error(&folder))? {
            let path = entry.map_err(file_error(&folder))?.path();
            if !self.current.contains(&path) {
                fs::remove_file(&path).map_err(file_error(&path))?;
            }
        }
        Ok(())
    }

    fn destination(&self, kernel: String, name: String, fingerprint: &Fingerprint, source: &Path) -> PtxFile {
        let file = self.out_dir.join(&name);
        let old = fs::read_to_string(&file).ok();
        PtxFile { kernel, name, file, fingerprint: fingerprint.clone(), source: source.to_owned(), old }
    }
}

impl PtxFile {
    /// Returns the PTX of an earlier run, with adjusted line numbers, if the kernel is unchanged.
    fn reused(&self) -> Option<String> {
        reuse::reuse(self.old.as_deref()?, &self.fingerprint)
    }
}

/// Writes the PTX of an instance. An unchanged file keeps its modification time, so that crates
/// including it are not rebuilt.
fn store(destination: &PtxFile, text: &str) -> Result<(), BuildError> {
    match destination.old.as_deref() == Some(text) {
        true => Ok(()),
        false => store::write(&destination.file, text).map_err(file_error(&destination.file)),
    }
}
