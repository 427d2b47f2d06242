//! The text that a run prints.

use std::fmt::{self, Write as _};

use crate::machine::Site;
use crate::profile::{Profile, SharedAccesses};
use crate::report::Sources;
use crate::{Counters, PRINTED_BYTES, Report};

use super::npy::Array;

/// How many elements of a buffer are shown by default.
pub(super) const SHOWN: usize = 16;
/// Elements in one line of output.
const PER_LINE: usize = 8;

/// Returns the printed text, findings and counts of a launch.
pub(crate) fn report(sources: &Sources<'_>, report: &Report) -> String {
    let mut text = match report.printed_lost {
        0 => String::new(),
        lost => format!(
            "printed: {lost} more bytes before these; like a GPU's, the print buffer of a launch keeps the last \
             {PRINTED_BYTES}\n"
        ),
    };
    text.push_str(&report.printed);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if report.findings.is_empty() {
        text.push_str("no findings\n");
    } else {
        append(&mut text, format_args!("{}\n", report.findings.render(sources)));
        append(&mut text, format_args!("findings: {}\n", report.findings.len()));
    }
    if !report.notes.is_empty() {
        append(&mut text, format_args!("\n{}\n", report.notes.render(sources)));
        append(&mut text, format_args!("notes: {}\n", report.notes.len()));
    }
    instructions(&mut text, report);
    engines(&mut text, &report.counters);
    bank_conflicts(&mut text, &report.profile, sources);
    text
}

fn instructions(text: &mut String, report: &Report) {
    append(text, format_args!("instructions{:>26}{:>14}\n", "of warps", "of threads"));
    for (class, executed) in report.profile.by_class() {
        row(text, &class.to_string(), executed.warps, executed.threads);
    }
    row(text, "all", report.warp_instructions, report.thread_instructions);
}

fn engines(text: &mut String, counters: &Counters) {
    let busy: Vec<_> = counters.iter().filter(|(_, moved)| moved.copies > 0).collect();
    if busy.is_empty() {
        text.push_str("asynchronous engines: no copies\n");
        return;
    }
    append(text, format_args!("asynchronous engines{:>18}{:>14}\n", "copies", "bytes"));
    for (kind, moved) in busy {
        row(text, &kind.to_string(), moved.copies, moved.bytes);
    }
}

fn row(text: &mut String, name: &str, first: u64, second: u64) {
    append(text, format_args!("  {name:<26}{first:>10}{second:>14}\n"));
}

fn bank_conflicts(text: &mut String, profile: &Profile, sources: &Sources<'_>) {
    let lines = profile.shared_by_source();
    if lines.is_empty() {
        text.push_str("shared-memory bank conflicts: no accesses\n");
        return;
    }
    text.push_str("shared-memory bank conflicts\n");
    append(text, format_args!("{:>12}{:>12}{:>12}\n", "accesses", "wavefronts", "conflicts"));
    let mut row = |shared: SharedAccesses, location: &str| {
        let (SharedAccesses { accesses, wavefronts, .. }, conflicts) = (shared, shared.conflicts());
        append(text, format_args!("{accesses:>12}{wavefronts:>12}{conflicts:>12}  {location}\n"));
    };
    for (site, shared) in &lines {
        row(*shared, &location(sources, *site));
    }
    row(profile.shared(), "all");
}

/// Returns the source line with its text, or the PTX line if there is no source.
fn location(sources: &Sources<'_>, site: Site) -> String {
    let (name, line) = match site.source {
        Some((file, line)) => (format!("{}:{line}", sources.file_name(file)), sources.file_line(file, line)),
        None => (format!("PTX line {}", site.ptx_line), sources.ptx_line(site.ptx_line)),
    };
    line.map_or_else(|| name.clone(), |line| format!("{name}: {}", line.trim()))
}

/// Formats the first elements of a buffer. Each line starts with the index of its first element.
pub(crate) fn buffer(index: usize, array: &Array, count: Option<usize>) -> String {
    let size = array.ty.bytes();
    let total = array.bytes.len() / size;
    let mut text = format!("buffer {index}: {total} of {}\n", array.ty.name());
    let shown = &array.bytes[..total.min(count.unwrap_or(SHOWN)) * size];
    for (line, bytes) in shown.chunks(PER_LINE * size).enumerate() {
        let numbers: Vec<_> = bytes.chunks(size).map(|bytes| array.ty.show(bytes)).collect();
        append(&mut text, format_args!("{:>8}: {}\n", line * PER_LINE, numbers.join(" ")));
    }
    text
}

fn append(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = text.write_fmt(arguments);
}
