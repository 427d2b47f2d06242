//! `cargo tma timeline`.

mod drawing;
mod file;

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, json};

use crate::arguments::Timeline as Options;
use crate::output::Output;
use crate::style;
use drawing::Drawing;
use file::{Block, Kind, Row};

/// Lists the rows of a block, and writes a drawing of them if a file is given.
pub(crate) fn run(options: &Options) -> Result<Output> {
    let timeline = file::read(&options.file)?;
    let count = timeline.blocks.len();
    let block = timeline.blocks.get(options.block).with_context(|| {
        let (file, last) = (options.file.display(), count - 1);
        format!("{file} has no block {}; its blocks are 0 to {last}", options.block)
    })?;
    let mut rows = chosen(block, &options.rows)?;
    let (from, to) = interval(options, &rows)?;
    rows.retain(|row| !row.is_overlap() || row.is_busy(from, to));
    let title = format!("{}, {}", timeline.kernel, block.name);
    let unit = timeline.unit;
    let mut text = format!("{}: {} to {} {}\n", style::bold(&title), rounded(from), rounded(to), unit.name());
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    let mut json_of_rows = vec![];
    for row in &rows {
        let shares = shares(row, from, to);
        let words = shares.iter().map(|(kind, share)| format!("{} {:.1} %", kind.name(), 100.0 * share));
        _ = writeln!(text, "  {:width$}  {}", row.name, words.collect::<Vec<_>>().join(", "));
        let shares = shares.iter().map(|(kind, share)| (kind.name().to_owned(), json!(share)));
        json_of_rows.push(json!({ "name": row.name, "shares": shares.collect::<Map<_, _>>() }));
    }
    if let Some(path) = &options.svg {
        let svg = drawing::svg(&Drawing { title: &title, rows, unit, from, to });
        fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        _ = writeln!(text, "drawing: {}", path.display());
    }
    let json = json!({
        "kernel": timeline.kernel, "block": block.name, "blocks": count, "unit": unit.name(),
        "from": from, "to": to, "rows": json_of_rows,
    });
    Ok(Output::clean(text, json))
}

/// Returns the rows whose name begins with one of `names`, in the order of `names`; all if there
/// are none.
fn chosen<'a>(block: &'a Block, names: &[String]) -> Result<Vec<&'a Row>> {
    if names.is_empty() {
        return Ok(block.rows.iter().collect());
    }
    let mut rows: Vec<&Row> = vec![];
    for name in names {
        let is_it = |row: &&Row| {
            row.name.strip_prefix(name.as_str()).is_some_and(|rest| !rest.starts_with(char::is_numeric))
        };
        let found: Vec<&Row> = block.rows.iter().filter(is_it).collect();
        let known = || block.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(", ");
        ensure!(!found.is_empty(), "{} has no row `{name}`; it has {}", block.name, known());
        let is_new = |row: &&Row| !rows.iter().any(|chosen| std::ptr::eq::<Row>(*chosen, *row));
        let new: Vec<_> = found.into_iter().filter(is_new).collect();
        rows.extend(new);
    }
    Ok(rows)
}

/// Returns the interval that is asked for, or that of all slices.
fn interval(options: &Options, rows: &[&Row]) -> Result<(f64, f64)> {
    let slices = || rows.iter().flat_map(|row| &row.slices);
    let first = slices().map(|slice| slice.begin).reduce(f64::min);
    let last = slices().map(|slice| slice.end).reduce(f64::max);
    let (Some(from), Some(to)) = (options.from.or(first), options.to.or(last)) else {
        bail!("these rows have no slices; pass --from and --to");
    };
    ensure!(from.is_finite() && to.is_finite(), "--from and --to must be finite numbers");
    ensure!(from < to, "the interval ends at {to}, which is not after {from}, where it begins");
    Ok((from, to))
}

/// Rounds to three digits, which is what files have.
fn rounded(time: f64) -> f64 {
    (time * 1e3).round() / 1e3
}

/// Returns the share of the interval that slices of each kind take, without kinds that take none.
fn shares(row: &Row, from: f64, to: f64) -> Vec<(Kind, f64)> {
    let of = |kind: Kind| {
        let slices = row.slices.iter().filter(|slice| slice.kind == kind);
        slices.map(|slice| (slice.end.min(to) - slice.begin.max(from)).max(0.0)).sum::<f64>() / (to - from)
    };
    Kind::ALL.map(|kind| (kind, of(kind))).into_iter().filter(|(_, share)| *share > 0.0).collect()
}
