//! Conversion of the findings of a launch's report into the launch's error.

use ptx_sim::{FindingKind, Module, Report};

use crate::backend::assertion::failed;
use crate::error::Error;
use crate::spec::KernelSpec;
use tma_model::assertion::{Record, Remark};

/// Returns the error of a launch whose only finding is a failed assertion that the PTX describes.
/// It is the same error as on a GPU.
pub(super) fn assertion(spec: &'static KernelSpec, module: &Module, report: &Report) -> Option<Error> {
    let [finding] = report.findings.iter().collect::<Vec<_>>()[..] else { return None };
    let party = finding.parties.first().filter(|_| finding.kind == FindingKind::Trap)?;
    let ptx = module.sources(|_| None).ptx;
    let line = ptx.lines().nth((party.site.ptx_line as usize).checked_sub(1)?)?;
    let [x, y, _] = spec.threads.map(|extent| extent.max(1));
    let linear = party.thread.index.0;
    let thread = [linear % x, linear / x % y, linear / (x * y)];
    let number = Remark::find(line)?.number;
    failed(spec, ptx, Record { number, thread, block: party.block })
}

/// Returns the error of a launch that ran with `seed`, if it has findings. Notes alone are not an
/// error. They are listed after the findings.
pub(super) fn judge(kernel: &'static str, module: &Module, seed: u64, report: &Report) -> Result<(), Error> {
    if report.findings.is_empty() {
        return Ok(());
    }
    let sources = module.sources(|path| std::fs::read_to_string(path).ok());
    let mut text = report.findings.render(&sources);
    if !report.notes.is_empty() {
        text = format!("{text}\n{}", report.notes.render(&sources));
    }
    if report.findings.iter().any(|finding| finding.kind == FindingKind::Internal) {
        return Err(Error::SimulatedLaunch { kernel, why: text });
    }
    Err(Error::Findings { kernel, seed, count: report.findings.len(), text })
}

#[cfg(test)]
mod tests {
    use ptx_sim::Finding;
    use tma_model::rule::Rule;

    use super::*;

    const PTX: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n  ret;\n}\n";

    fn judged(findings: &[FindingKind], notes: &[FindingKind]) -> Result<(), Error> {
        let mut report = Report::default();
        for kind in findings {
            report.findings.add(Finding::new(*kind, "something"));
        }
        for kind in notes {
            report.notes.add(Finding::new(*kind, "a box"));
        }
        judge("k", &Module::load(PTX).expect("it loads"), 3, &report)
    }

    #[test]
    fn findings_are_an_error() {
        let error = judged(&[FindingKind::Race], &[]).expect_err("there is a finding");
        assert_eq!(error.code(), "TMA0616");
        let rule = Rule::Race.reference();
        let wanted = format!("found 1 mistake in `k`, with seed 3:\n\nrace: something\n  {rule}\n");
        assert!(error.to_string().ends_with(&wanted), "{error}");
        let error = judged(&[FindingKind::InstructionLimit], &[]).expect_err("there is a finding");
        assert_eq!(error.code(), "TMA0616");
    }

    #[test]
    fn an_internal_error_is_none_of_the_kernel() {
        let error = judged(&[FindingKind::Race, FindingKind::Internal], &[]).expect_err("there is one");
        assert_eq!(error.code(), "TMA0617");
        let text = error.to_string();
        assert!(text.contains("cannot run `k`: internal error: something\n\nrace: something\n"), "{text}");
    }

    #[test]
    fn notes_are_no_errors_and_follow_findings() {
        assert!(judged(&[], &[]).is_ok());
        assert!(judged(&[], &[FindingKind::BoxOutside]).is_ok());
        let error = judged(&[FindingKind::Race], &[FindingKind::BoxOutside]).expect_err("there is a finding");
        let text = error.to_string();
        assert!(text.contains("found 1 mistake"), "{text}");
        let wanted = format!(
            "race: something\n  {}\n\nnote: box outside of the tensor: a box\n",
            Rule::Race.reference()
        );
        assert!(text.ends_with(&wanted), "{text}");
    }
}
