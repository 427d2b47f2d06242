//! What a run prints.

use std::fmt::{self, Write as _};
use std::fs;

use ptx_sim::{Module, Report};

use crate::npy::Array;

/// How many elements of a buffer are shown where the command line does not say.
const SHOWN: usize = 16;
/// Elements in a line.
const PER_LINE: usize = 8;

/// Printed text, findings and counts of a launch.
pub(crate) fn report(module: &Module, report: &Report) -> String {
    let mut text = report.printed.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // A source file that is not here is left out: the finding still names its line.
    let sources = module.sources(|file| fs::read_to_string(file).ok());
    if report.findings.is_empty() {
        text.push_str("no findings\n");
    } else {
        append(&mut text, format_args!("{}\n", report.findings.render(&sources)));
        append(&mut text, format_args!("findings: {}\n", report.findings.len()));
    }
    append(&mut text, format_args!("instructions of threads  {}\n", report.thread_instructions));
    append(&mut text, format_args!("instructions of warps    {}\n", report.warp_instructions));
    let counters = report.counters;
    for (engine, copies, bytes) in [
        ("asynchronous loads", counters.loads, counters.load_bytes),
        ("asynchronous stores", counters.stores, counters.store_bytes),
    ] {
        append(&mut text, format_args!("{engine:<25}{copies} of {bytes} bytes in all\n"));
    }
    text
}

/// The first elements of a buffer, each line with the index of its first.
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

fn append(text: &mut String, what: fmt::Arguments<'_>) {
    // A `String` takes everything.
    let _ = text.write_fmt(what);
}
