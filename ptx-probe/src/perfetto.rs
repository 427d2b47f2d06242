//! A trace in the Chrome trace event format, which Perfetto opens. Source: "Trace Event Format",
//! the document of the Chromium project.
//!
//! As in the simulator's timelines, a block is a process, and rows have the same names. Slices of
//! one row must nest, so copies that overlap are spread over several rows below each other.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use tma_model::timeline::levels;

use crate::label;
use crate::site::SiteKind;
use crate::summary::Summary;
use crate::trace::{Interval, Row, Trace};

/// The most intervals of a file, unless the first block alone has more. A browser shows this many
/// without delay.
const MOST_INTERVALS: usize = 400_000;

const CLOCK: &str = "microseconds of the GPU after the first warp of the launch";

/// Returns how many of the first traced blocks a file shows.
pub fn shown_blocks(trace: &Trace) -> usize {
    let mut all = 0;
    let blocks = trace.intervals.chunk_by(|a, b| a.block == b.block);
    let fitting = blocks.map(<[_]>::len).take_while(|intervals| {
        all += intervals;
        all <= MOST_INTERVALS
    });
    fitting.count().max(1)
}

/// Writes a trace: the first blocks, as many as [`shown_blocks`] says.
///
/// # Errors
///
/// If `file` cannot be written.
pub fn write(file: &mut impl Write, trace: &Trace) -> io::Result<()> {
    let shown = shown_blocks(trace);
    let metadata = json!({
        "kernel": trace.kernel,
        "clock": CLOCK,
        "launch in microseconds": trace.launch.map(|time| time / 1e3),
        "blocks shown": shown,
        "records lost": trace.lost,
        "summary": Summary::of(trace).to_json(),
    });
    write!(file, "{{\"displayTimeUnit\": \"ns\",\n\"otherData\": {metadata},\n\"traceEvents\": [")?;
    let mut separator = "\n";
    let mut put = |event: Value| -> io::Result<()> {
        file.write_all(separator.as_bytes())?;
        separator = ",\n";
        serde_json::to_writer(&mut *file, &event).map_err(io::Error::from)
    };
    let mut number = 0;
    for intervals in trace.intervals.chunk_by(|a, b| a.block == b.block).take(shown) {
        let block = intervals[0].block;
        let (name, process) = (label::block(trace, block), block + 1);
        let warps = trace.warps.iter().filter(|warp| warp.block == block);
        let multiprocessor = warps.clone().next().map_or(0, |warp| warp.multiprocessor);
        let title = format!("{name} on multiprocessor {multiprocessor}");
        put(json!({"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}))?;
        put(
            json!({"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}),
        )?;
        for (row, intervals) in by_row(intervals) {
            for (level, intervals) in
                levels(&intervals, |interval| Some((interval.begin, interval.end))).into_iter().enumerate()
            {
                number += 1;
                let title = match level {
                    0 => format!("{name} {row}"),
                    level => format!("{name} {row}, overlap {level}"),
                };
                put(
                    json!({"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": {"name": title}}),
                )?;
                let order = json!({"sort_index": number});
                put(
                    json!({"ph": "M", "pid": process, "tid": number, "name": "thread_sort_index", "args": order}),
                )?;
                for interval in intervals {
                    put(slice(trace, interval, process, number))?;
                }
            }
        }
    }
    write!(file, "\n]}}\n")
}

fn by_row(intervals: &[Interval]) -> BTreeMap<Row, Vec<&Interval>> {
    let mut rows: BTreeMap<Row, Vec<&Interval>> = BTreeMap::new();
    for interval in intervals {
        rows.entry(interval.row).or_default().push(interval);
    }
    for intervals in rows.values_mut() {
        intervals.sort_by(|a, b| {
            (a.begin, a.end).partial_cmp(&(b.begin, b.end)).unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    rows
}

fn slice(trace: &Trace, interval: &Interval, process: u32, row: u32) -> Value {
    let site = &trace.sites[interval.site];
    let subject = label::subject(trace, interval);
    let (category, name, key) = match site.kind {
        SiteKind::Wait(_) => ("wait", label::mnemonic(&site.instruction).to_owned(), "waits for"),
        SiteKind::Copy(_) => ("copy", label::mnemonic(&site.instruction).to_owned(), "copy"),
        SiteKind::CommitCopies | SiteKind::CommitMultiplications => ("multiply", "wgmma".to_owned(), "runs"),
        SiteKind::Span(_) => ("span", subject.clone(), "span"),
    };
    let mut args = json!({key: subject, "PTX line": site.ptx_line, "PTX": site.instruction});
    if let Some(source) = &site.source {
        args["source"] = json!(format!("{}:{}", source.file, source.line));
    }
    if interval.unfinished {
        args["unfinished"] = json!("nobody waited for its end");
    }
    json!({
        "ph": "X", "pid": process, "tid": row, "cat": category, "name": name, "args": args,
        "ts": microseconds(interval.begin), "dur": microseconds(interval.end - interval.begin),
    })
}

/// Converts nanoseconds, and keeps three digits.
fn microseconds(nanoseconds: f64) -> f64 {
    nanoseconds.round() / 1e3
}
