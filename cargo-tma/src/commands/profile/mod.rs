//! `cargo tma profile`: the counters of Nsight Compute beside the lines of a kernel.
//!
//! `ncu` runs the program, profiles one launch, and writes a report. The report is then read by
//! `ncu` as well, which prints it as comma-separated values: the metrics of the launch
//! ([`launch`]), and those of each instruction under its line of the source ([`lines`]). Columns
//! and metrics that a version of `ncu` does not have are left out.

mod launch;
mod lines;
mod nsight;
mod stalls;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::arguments::Profile;
use crate::output::Output;
use crate::style::{bold, dim, source};

use launch::LaunchMetrics;
use lines::LineMetrics;

/// The most lines of the source that the text shows. JSON has all.
const SHOWN_LINES: usize = 20;

/// The most reasons that the text shows for a line.
const SHOWN_REASONS: usize = 4;

/// Profiles a launch of a kernel, or reads the report of an earlier run.
pub(crate) fn run(options: &Profile) -> Result<Output> {
    let ncu = nsight::find()?;
    let (report, succeeded) = match &options.report {
        Some(report) => (report.clone(), true),
        None => {
            let out = options.out.clone().unwrap_or_else(|| default_report(&options.kernel));
            let out =
                std::path::absolute(&out).with_context(|| format!("{}: no such path", out.display()))?;
            let succeeded = nsight::record(&ncu, options, &out)?;
            (out, succeeded)
        }
    };
    let is_wanted = |entry: &str| nsight::is_entry(entry, &options.kernel);
    let raw = nsight::page(&ncu, &report, &["--page", "raw"])?;
    let launch = LaunchMetrics::read(&raw, is_wanted)
        .with_context(|| format!("{} has no launch of `{}`", report.display(), options.kernel))?;
    let page = nsight::page(&ncu, &report, &["--page", "source", "--print-source", "cuda,sass"])?;
    let lines = lines::read(&page, is_wanted);
    let mut text = launch.text() + "\n" + &of_lines(&lines);
    if options.report.is_none() {
        text += &dim(format!("the report for Nsight Compute: {}", report.display()));
        text += "\n";
    }
    let json = json!({
        "report": report,
        "program_succeeded": succeeded,
        "launch": launch.json(),
        "lines": lines.iter().map(LineMetrics::json).collect::<Vec<_>>(),
    });
    Ok(Output { text, json, is_clean: succeeded })
}

fn default_report(kernel: &str) -> PathBuf {
    PathBuf::from(format!("{}.ncu-rep", kernel.replace("::", "-")))
}

/// Shows lines of the source, those with the most samples first.
fn of_lines(lines: &[LineMetrics]) -> String {
    let all: u64 = lines.iter().map(LineMetrics::samples).sum();
    let mut shown: Vec<_> = lines.iter().filter(|line| line.is_of_interest(all)).collect();
    shown.sort_by_key(|line| std::cmp::Reverse(line.samples()));
    if shown.is_empty() {
        return "no instruction has a line of the source\n".to_owned();
    }
    let mut text = bold("  share  instructions  bank conflicts  global memory  line") + "\n";
    for line in shown.iter().take(SHOWN_LINES) {
        let share = percent(line.samples(), all);
        let global = line.global_bytes.map_or_else(|| "-".to_owned(), |bytes| launch::bytes(bytes as f64));
        let conflicts = line.conflicts.map_or_else(|| "-".to_owned(), |number| number.to_string());
        text += &format!(
            "{share:>6.1}%  {:>12}  {conflicts:>14}  {global:>13}  {}\n",
            line.instructions,
            source(format!("{}{}", line.place(), code_of(line)))
        );
        let reasons = line.reasons();
        let reasons: Vec<_> = reasons
            .iter()
            .take(SHOWN_REASONS)
            .map(|(stall, samples)| format!("{} {:.1}%", stall.words(), percent(*samples, all)))
            .collect();
        if !reasons.is_empty() {
            text += &format!("         waits for: {}\n", reasons.join(", "));
        }
    }
    if let Some(more) = shown.len().checked_sub(SHOWN_LINES).filter(|&more| more > 0) {
        text += &format!("and {more} more lines; --format json has all\n");
    }
    text + &dim(format!("of {all} samples of warps\n"))
}

/// Returns the text of a line of the source, if the file is here.
fn code_of(line: &LineMetrics) -> String {
    let text = line.code.clone().or_else(|| {
        let file = std::fs::read_to_string(Path::new(&line.file)).ok()?;
        file.lines().nth((line.line as usize).checked_sub(1)?).map(str::to_owned)
    });
    text.map_or_else(String::new, |text| format!(": {}", text.trim()))
}

fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { 100.0 * part as f64 / all as f64 }
}

impl LineMetrics {
    fn json(&self) -> Value {
        let reasons = self.reasons().into_iter().map(
            |(stall, samples)| json!({ "waits_for": stall.words(), "ncu": stall.ncu(), "samples": samples }),
        );
        json!({
            "file": self.file,
            "line": self.line,
            "samples": self.samples(),
            "instructions": self.instructions,
            "bank_conflicts": self.conflicts,
            "global_bytes": self.global_bytes,
            "stalls": reasons.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
