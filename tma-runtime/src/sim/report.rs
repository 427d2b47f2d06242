//! What becomes of a launch's report: findings are the launch's error, notes go to standard error.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use ptx_sim::machine::Site;
use ptx_sim::report::Sources;
use ptx_sim::{Finding, FindingKind, Module, Report};

use crate::error::Error;

/// A kernel, by the address of its PTX, and a line of its source, or of the PTX where that has none.
type Place = (usize, Option<(u32, u32)>, u32);

/// The notes that were told: each once in a process, however many devices, seeds and launches there are.
static TOLD: Mutex<BTreeSet<Place>> = Mutex::new(BTreeSet::new());

/// A launch of a kernel that was run.
pub(super) struct Ran<'l> {
    pub(super) kernel: &'static str,
    pub(super) ptx: &'static str,
    pub(super) module: &'l Module,
    pub(super) seed: u64,
}

impl Ran<'_> {
    /// Tells the notes of `report` that are new, and gives the error that its findings are.
    pub(super) fn judge(&self, report: &Report) -> Result<(), Error> {
        if !report.notes.is_empty() {
            let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
            let text = self.notes(report, &mut told);
            // Where standard error is closed nobody wants to know.
            let _ = io::stderr().write_all(text.as_bytes());
        }
        if report.findings.is_empty() {
            return Ok(());
        }
        let text = report.findings.render(&self.sources());
        if report.findings.iter().any(|finding| finding.kind == FindingKind::Internal) {
            return Err(Error::SimulatedLaunch { kernel: self.kernel, why: text });
        }
        Err(Error::Findings { kernel: self.kernel, seed: self.seed, count: report.findings.len(), text })
    }

    /// The notes that are not in `told` yet, as text.
    fn notes(&self, report: &Report, told: &mut BTreeSet<Place>) -> String {
        let is_new = |note: &&Finding| {
            let site = note.parties.first().map_or_else(Site::default, |party| party.site);
            let line = if site.source.is_some() { 0 } else { site.ptx_line };
            told.insert((self.ptx.as_ptr() as usize, site.source, line))
        };
        let fresh: Vec<_> = report.notes.iter().filter(is_new).collect();
        if fresh.is_empty() {
            return String::new();
        }
        let sources = self.sources();
        let notes: Vec<_> = fresh.iter().map(|note| note.render(&sources)).collect();
        format!("`{}` on the simulator, with seed {}:\n{}\n", self.kernel, self.seed, notes.join("\n"))
    }

    fn sources(&self) -> Sources<'_> {
        self.module.sources(|path| std::fs::read_to_string(path).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n  ret;\n}\n";

    fn judged(report: &Report) -> Result<(), Error> {
        let module = Module::load(PTX).expect("it loads");
        Ran { kernel: "k", ptx: PTX, module: &module, seed: 3 }.judge(report)
    }

    fn with(kinds: &[FindingKind]) -> Report {
        let mut report = Report::default();
        for kind in kinds {
            report.findings.add(Finding::new(*kind, "something"));
        }
        report
    }

    #[test]
    fn findings_are_an_error() {
        assert!(judged(&Report::default()).is_ok());
        let error = judged(&with(&[FindingKind::Race])).expect_err("there is a finding");
        assert_eq!(error.code(), "TMA0616");
        assert!(error.to_string().contains("with seed 3:\n\nrace: something\n"), "{error}");
        let error = judged(&with(&[FindingKind::InstructionLimit])).expect_err("there is a finding");
        assert_eq!(error.code(), "TMA0616");
    }

    #[test]
    fn an_internal_error_is_none_of_the_kernel() {
        let error = judged(&with(&[FindingKind::Race, FindingKind::Internal])).expect_err("there is one");
        assert_eq!(error.code(), "TMA0617");
        let text = error.to_string();
        assert!(text.contains("cannot run `k`: internal error: something\n\nrace: something\n"), "{text}");
    }

    #[test]
    fn a_note_is_told_once() {
        let mut report = Report::default();
        report.notes.add(Finding::new(FindingKind::BoxOutside, "a box"));
        let module = Module::load(PTX).expect("it loads");
        let ran = Ran { kernel: "k", ptx: PTX, module: &module, seed: 3 };
        let mut told = BTreeSet::new();
        let text = ran.notes(&report, &mut told);
        assert_eq!(text, "`k` on the simulator, with seed 3:\nnote: box outside of the tensor: a box\n\n");
        assert_eq!(ran.notes(&report, &mut told), "");
    }
}
