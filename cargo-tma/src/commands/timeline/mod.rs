//! `cargo tma timeline`.

mod drawing;
mod file;

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

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
        format!("{} has blocks 0 to {}, and not {}", options.file.display(), count - 1, options.block)
    })?;
    let mut rows = chosen(block, &options.rows)?;
    let (from, to) = interval(options, &rows)?;
    rows.retain(|row| !row.is_overlap() || row.is_busy(from, to));
    let title = format!("{}, {}", timeline.kernel, block.name);
    let unit = timeline.unit;
    let mut text = format!("{}: {from} to {to} {}\n", style::bold(&title), unit.name());
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    for row in &rows {
        let shares = shares(row, from, to).into_iter();
        let shares: Vec<_> =
            shares.map(|(kind, share)| format!("{} {:.1} %", kind.name(), 100.0 * share)).collect();
        _ = writeln!(text, "  {:width$}  {}", row.name, shares.join(", "));
    }
    if let Some(path) = &options.svg {
        let svg = drawing::svg(&Drawing { title: &title, rows: rows.clone(), unit, from, to });
        fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        _ = writeln!(text, "drawing: {}", path.display());
    }
    let json = json!({
        "kernel": timeline.kernel, "block": block.name, "blocks": count, "unit": unit.name(),
        "from": from, "to": to, "rows": rows.iter().map(|row| of_row(row, from, to)).collect::<Vec<_>>(),
    });
    Ok(Output::clean(text, json))
}

/// Returns the rows whose name begins with one of `names`, in the order of `names`; all if there
/// are none.
fn chosen<'a>(block: &'a Block, names: &[String]) -> Result<Vec<&'a Row>> {
    if names.is_empty() {
        return Ok(block.rows.iter().collect());
    }
    let mut rows = vec![];
    for name in names {
        let is_it = |row: &&Row| {
            row.name.strip_prefix(name.as_str()).is_some_and(|rest| !rest.starts_with(char::is_numeric))
        };
        let found: Vec<_> = block.rows.iter().filter(is_it).collect();
        let known = || block.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(", ");
        ensure!(!found.is_empty(), "{} has no row `{name}`; it has {}", block.name, known());
        rows.extend(found);
    }
    Ok(rows)
}

/// Returns the interval that is asked for, or that of all slices.
fn interval(options: &Options, rows: &[&Row]) -> Result<(f64, f64)> {
    let slices = || rows.iter().flat_map(|row| &row.slices);
    let from = options.from.unwrap_or_else(|| slices().map(|slice| slice.begin).fold(f64::MAX, f64::min));
    let to = options.to.unwrap_or_else(|| slices().map(|slice| slice.end).fold(f64::MIN, f64::max));
    ensure!(from < to, "nothing happens between {from} and {to}");
    Ok((from, to))
}

/// Returns the share of the interval that slices of each kind take, without those of no length.
fn shares(row: &Row, from: f64, to: f64) -> Vec<(Kind, f64)> {
    let of = |kind: Kind| {
        let slices = row.slices.iter().filter(|slice| slice.kind == kind);
        slices.map(|slice| (slice.end.min(to) - slice.begin.max(from)).max(0.0)).sum::<f64>() / (to - from)
    };
    Kind::ALL.map(|kind| (kind, of(kind))).into_iter().filter(|(_, share)| *share > 0.0).collect()
}

fn of_row(row: &Row, from: f64, to: f64) -> Value {
    let shares = shares(row, from, to).into_iter();
    let shares: serde_json::Map<_, _> =
        shares.map(|(kind, share)| (kind.name().to_owned(), json!(share))).collect();
    json!({ "name": row.name, "shares": shares })
}
