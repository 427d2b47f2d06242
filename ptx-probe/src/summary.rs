//! A trace in a few lines: who waits for what, how long, the spans of the kernel, and how busy the
//! tensor cores are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use crate::label;
use crate::site::{Awaited, SiteKind};
use crate::text::Source;
use crate::trace::{Interval, Row, Trace};

/// Parts of the launch in which the tensor cores are looked at.
const PARTS: usize = 10;

/// The sums of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The name of the kernel.
    pub kernel: String,
    /// Traced blocks, and all blocks.
    pub blocks: [u64; 2],
    /// The multiprocessors that ran them.
    pub multiprocessors: usize,
    /// From the beginning of the first warp to the end of the last one, in nanoseconds.
    pub span: f64,
    /// The time of the launch by the driver's events, in nanoseconds.
    pub launch: Option<f64>,
    /// The records that were replaced by later ones.
    pub lost: u64,
    /// The waits, the longest first.
    pub waits: Vec<Total>,
    /// The spans that the kernel names, the longest first.
    pub spans: Vec<Total>,
    /// The share of each tenth of the span in which a multiprocessor had multiplications in flight,
    /// from 0 to 1, as a mean over those that ran traced blocks. Empty without multiplications.
    pub multiplying: Vec<f64>,
}

/// The waits of one source line for one thing, or the spans that it names.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// The line.
    pub source: Option<Source>,
    /// The subject, such as `` `ring.full` ``, or the name of the span.
    pub subject: String,
    /// The warps that waited, or had the span.
    pub warps: usize,
    /// The number of waits or spans.
    pub times: u64,
    /// Their sum in nanoseconds, over all warps.
    pub total: f64,
    /// The longest, in nanoseconds.
    pub longest: f64,
    /// The sum as a share of the time in which those warps ran, from 0 to 1.
    pub share: f64,
}

impl Summary {
    /// Adds up a trace.
    pub fn of(trace: &Trace) -> Self {
        let traced: BTreeSet<u32> = trace.warps.iter().map(|warp| warp.block).collect();
        let multiprocessors: BTreeSet<u32> = trace.warps.iter().map(|warp| warp.multiprocessor).collect();
        Self {
            kernel: trace.kernel.clone(),
            blocks: [traced.len() as u64, trace.grid.iter().map(|&extent| u64::from(extent)).product()],
            multiprocessors: multiprocessors.len(),
            span: trace.span(),
            launch: trace.launch,
            lost: trace.lost,
            waits: totals(trace, waited),
            spans: totals(trace, named),
            multiplying: multiplying(trace),
        }
    }

    /// Returns the summary as JSON, with times in microseconds.
    pub fn to_json(&self) -> Value {
        let all = |totals: &[Total], subject: &str| -> Vec<Value> {
            totals.iter().map(|total| total.to_json(subject)).collect()
        };
        json!({
            "kernel": self.kernel,
            "traced_blocks": self.blocks[0],
            "blocks": self.blocks[1],
            "multiprocessors": self.multiprocessors,
            "span_us": self.span / 1e3,
            "launch_us": self.launch.map(|time| time / 1e3),
            "records_lost": self.lost,
            "waits": all(&self.waits, "waits_for"),
            "spans": all(&self.spans, "name"),
            "multiplying": self.multiplying,
        })
    }
}

impl Total {
    fn to_json(&self, subject: &str) -> Value {
        json!({
            "source": self.source.as_ref().map(|source| format!("{}:{}", source.file, source.line)),
            subject: self.subject.replace('`', ""),
            "warps": self.warps,
            "times": self.times,
            "total_us": self.total / 1e3,
            "longest_us": self.longest / 1e3,
            "share": self.share,
        })
    }
}

/// Returns the warp that waited, and for what.
fn waited(trace: &Trace, interval: &Interval) -> Option<(u32, String)> {
    let (Row::Warp(warp), SiteKind::Wait(awaited)) = (interval.row, trace.sites[interval.site].kind) else {
        return None;
    };
    // All stages of a ring are one line.
    let ring = label::variable(&trace.names, interval.operand).filter(|_| awaited == Awaited::Mbarrier);
    let subject = ring.map_or_else(|| label::subject(trace, interval), |ring| format!("`{}`", ring.name));
    Some((warp, subject))
}

/// Returns the warp that had a span, and the span's name.
fn named(trace: &Trace, interval: &Interval) -> Option<(u32, String)> {
    let Row::Spans(warp) = interval.row else { return None };
    Some((warp, label::subject(trace, interval)))
}

/// The totals of a subject, and its warps, by block and number.
type TotalOfWarps = (Total, BTreeSet<(u32, u32)>);

/// Adds up the intervals that have a subject, by source line and subject, the longest first.
fn totals(trace: &Trace, subject: impl Fn(&Trace, &Interval) -> Option<(u32, String)>) -> Vec<Total> {
    let lifetimes: BTreeMap<_, _> =
        trace.warps.iter().map(|warp| ((warp.block, warp.number), warp.end - warp.begin)).collect();
    let mut found: BTreeMap<(Option<&Source>, String), TotalOfWarps> = BTreeMap::new();
    for interval in &trace.intervals {
        let Some((warp, subject)) = subject(trace, interval) else { continue };
        let source = trace.sites[interval.site].source.as_ref();
        let (total, warps) = found.entry((source, subject.clone())).or_insert_with(|| {
            let source = source.cloned();
            let total = Total { source, subject, warps: 0, times: 0, total: 0.0, longest: 0.0, share: 0.0 };
            (total, BTreeSet::new())
        });
        let length = interval.end - interval.begin;
        total.times += 1;
        total.total += length;
        total.longest = total.longest.max(length);
        warps.insert((interval.block, warp));
    }
    let mut totals: Vec<Total> = found
        .into_values()
        .map(|(total, warps)| {
            let lifetime: f64 = warps.iter().filter_map(|warp| lifetimes.get(warp)).sum();
            Total { warps: warps.len(), share: total.total / lifetime.max(1.0), ..total }
        })
        .collect();
    totals.sort_by(|a, b| b.total.total_cmp(&a.total));
    totals
}

/// Returns the share of each part of the span in which multiprocessors had multiplications in
/// flight.
fn multiplying(trace: &Trace) -> Vec<f64> {
    let of_block: BTreeMap<_, _> = trace.warps.iter().map(|warp| (warp.block, warp.multiprocessor)).collect();
    let mut busy: BTreeMap<u32, Vec<(f64, f64)>> =
        of_block.values().map(|&number| (number, Vec::new())).collect();
    for interval in &trace.intervals {
        if let (Row::Multiplications(_), false) = (interval.row, interval.unfinished)
            && let Some(number) = of_block.get(&interval.block)
        {
            busy.entry(*number).or_default().push((interval.begin, interval.end));
        }
    }
    if busy.values().all(Vec::is_empty) {
        return Vec::new();
    }
    let part = (trace.span() / PARTS as f64).max(1.0);
    let mut sums = [0.0; PARTS];
    let multiprocessors = busy.len() as f64;
    for mut intervals in busy.into_values() {
        intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut covered = 0.0_f64;
        for (begin, end) in intervals {
            let begin = begin.max(covered);
            covered = covered.max(end);
            for (number, sum) in sums.iter_mut().enumerate() {
                let (from, to) = (number as f64 * part, (number + 1) as f64 * part);
                *sum += (end.min(to) - begin.max(from)).max(0.0);
            }
        }
    }
    sums.map(|sum| sum / part / multiprocessors).to_vec()
}

/// The most lines of waits, and of spans, that are shown.
const SHOWN: usize = 12;

/// Writes the longest totals, one a line, and the number of others, which are `less`.
fn table(f: &mut fmt::Formatter<'_>, totals: &[Total], subject: &str, less: &str) -> fmt::Result {
    writeln!(f, "\n  share     total    mean  longest   warps    times  {subject}, at")?;
    for total in totals.iter().take(SHOWN) {
        let Total { source, subject, warps, times, total, longest, share } = total;
        let mean = total / *times as f64;
        write!(
            f,
            "{:>6.1}% {:>7.0}µs {:>5.2}µs {:>6.1}µs {warps:>7} {times:>8}  {subject}",
            100.0 * share,
            total / 1e3,
            mean / 1e3,
            longest / 1e3,
        )?;
        if let Some(Source { file, line }) = source {
            write!(f, ", {file}:{line}")?;
        }
        writeln!(f)?;
    }
    if totals.len() > SHOWN {
        writeln!(f, "  and {} lines that {less}", totals.len() - SHOWN)?;
    }
    Ok(())
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [traced, all] = self.blocks;
        write!(f, "{}: {:.1} µs", self.kernel, self.span / 1e3)?;
        if let Some(launch) = self.launch {
            write!(f, " (launch: {:.1} µs)", launch / 1e3)?;
        }
        let blocks =
            if traced == all { format!("{all} blocks") } else { format!("{traced} of {all} blocks") };
        writeln!(f, ", {blocks} on {} multiprocessors", self.multiprocessors)?;
        if self.lost > 0 {
            writeln!(
                f,
                "{} records were replaced by later ones: the beginning of long warps is missing",
                self.lost
            )?;
        }
        table(f, &self.waits, "waits for", "waited less")?;
        if !self.spans.is_empty() {
            table(f, &self.spans, "span", "have shorter spans")?;
        }
        if !self.multiplying.is_empty() {
            let mean = self.multiplying.iter().sum::<f64>() / self.multiplying.len() as f64;
            let parts: Vec<_> = self.multiplying.iter().map(|part| format!("{:.0}", 100.0 * part)).collect();
            writeln!(
                f,
                "\nmultiplications in flight: {:.1} % of the time; by tenths of the launch: {} %",
                100.0 * mean,
                parts.join(" ")
            )?;
        }
        Ok(())
    }
}
