//! A report as JSON, for programs.

use tma_model::help::Help;
use tma_model::rule::Rule;

use crate::Report;
use crate::machine::Site;
use crate::report::{Finding, Findings, Sources};
use serde_json::{Value, json};

use super::npy::Array;
use super::show::SHOWN;

/// Returns everything that a run prints about a launch.
pub(super) fn report(sources: &Sources<'_>, report: &Report, buffers: Vec<Value>) -> Value {
    let classes = report.profile.by_class().into_iter().map(|(class, executed)| {
        json!({ "class": class.to_string(), "warps": executed.warps, "threads": executed.threads })
    });
    let engines = report.counters.iter().filter(|(_, moved)| moved.copies > 0).map(
        |(kind, moved)| json!({ "kind": kind.to_string(), "copies": moved.copies, "bytes": moved.bytes }),
    );
    let conflicts = report.profile.shared_by_source().into_iter().map(|(site, shared)| {
        let (accesses, wavefronts) = (shared.accesses, shared.wavefronts);
        let counts =
            json!({ "accesses": accesses, "wavefronts": wavefronts, "conflicts": shared.conflicts() });
        json!({ "site": location(sources, site), "shared": counts })
    });
    json!({
        "printed": report.printed,
        "findings": findings(sources, &report.findings),
        "notes": findings(sources, &report.notes),
        "stopped": report.stopped,
        "instructions": classes.collect::<Vec<_>>(),
        "copies": engines.collect::<Vec<_>>(),
        "bank_conflicts": conflicts.collect::<Vec<_>>(),
        "buffers": buffers,
    })
}

fn findings(sources: &Sources<'_>, findings: &Findings) -> Vec<Value> {
    let one = |finding: &Finding| {
        let parties = finding.parties.iter().map(|party| {
            let thread = json!({ "block": party.block, "thread": party.thread.index.0, "does": party.does });
            json!({ "who": thread, "site": location(sources, party.site) })
        });
        json!({
            "kind": finding.kind.to_string(),
            "code": finding.kind.rule().map(Rule::code),
            "rule": finding.kind.rule().map(Rule::sentence),
            "message": finding.message,
            "parties": parties.collect::<Vec<_>>(),
            "help": finding.help.as_ref().map(Help::in_language),
            "times": finding.times,
        })
    };
    findings.iter().map(one).collect()
}

fn location(sources: &Sources<'_>, site: Site) -> Value {
    let source = site.source.map(|(file, line)| json!({ "file": sources.file_name(file), "line": line }));
    json!({ "ptx_line": site.ptx_line, "source": source })
}

/// Returns the first elements of a buffer. They are strings because JSON numbers do not cover the
/// range of every type.
pub(super) fn buffer(index: usize, array: &Array, count: Option<usize>) -> Value {
    let size = array.ty.bytes();
    let shown = array.bytes.chunks_exact(size).take(count.unwrap_or(SHOWN));
    let elements: Vec<_> = shown.map(|bytes| array.ty.show(bytes)).collect();
    json!({ "index": index, "type": array.ty.name(), "shape": array.shape, "elements": elements })
}
