//! The file of a timeline: what the simulator and traces of GPUs write, in the Chrome trace event
//! format.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The timeline of a launch.
#[derive(Debug)]
pub(super) struct Timeline {
    /// The kernel.
    pub(super) kernel: String,
    /// The unit of its times: microseconds, or steps of the simulator.
    pub(super) unit: Unit,
    /// The blocks, in the file's order.
    pub(super) blocks: Vec<Block>,
}

/// The unit of a timeline's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Microseconds,
    Steps,
}

impl Unit {
    /// Returns the word for several.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Steps => "steps",
        }
    }
}

/// The rows of a block.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
}

/// The activity of a warp, an engine or an mbarrier.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The name without that of the block, such as `warp 0`.
    pub(super) name: String,
    /// The slices by their beginning. Instants are left out.
    pub(super) slices: Vec<Slice>,
}

impl Row {
    /// Returns whether it has what a warp does.
    pub(super) fn is_warp(&self) -> bool {
        self.name.starts_with("warp ") && !self.is_overlap()
    }

    /// Returns whether it has the slices that overlap with those of the row above.
    pub(super) fn is_overlap(&self) -> bool {
        self.name.contains(", overlap ")
    }

    /// Returns whether anything happens between two times.
    pub(super) fn is_busy(&self, from: f64, to: f64) -> bool {
        self.slices.iter().any(|slice| slice.begin < to && slice.end > from)
    }
}

/// An activity between two times.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) begin: f64,
    pub(super) end: f64,
    pub(super) kind: Kind,
    pub(super) label: String,
}

/// The kind of a slice, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Runs,
    Waits,
    /// A wait that never ended.
    Stuck,
    Copies,
    Multiplies,
    Span,
    Phase,
}

impl Kind {
    /// All kinds, in the order of a legend.
    pub(super) const ALL: [Self; 7] =
        [Self::Runs, Self::Waits, Self::Stuck, Self::Copies, Self::Multiplies, Self::Span, Self::Phase];

    /// Returns what a legend says.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Waits => "waits",
            Self::Stuck => "waits forever",
            Self::Copies => "copy in flight",
            Self::Multiplies => "multiplications in flight",
            Self::Span => "span of the kernel",
            Self::Phase => "phase of an mbarrier",
        }
    }

    fn of(category: &str, unfinished: bool) -> Option<Self> {
        Some(match category {
            "runs" => Self::Runs,
            "wait" if unfinished => Self::Stuck,
            "wait" => Self::Waits,
            "copy" => Self::Copies,
            "multiply" => Self::Multiplies,
            "span" => Self::Span,
            "mbarrier" => Self::Phase,
            _ => return None,
        })
    }
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Timeline> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not a timeline", path.display()))?;
    parse(&file).with_context(|| format!("{} is not a timeline of a kernel", path.display()))
}

fn parse(file: &Value) -> Result<Timeline> {
    let clock = file["otherData"]["clock"].as_str().context("it does not say what its clock counts")?;
    let unit = if clock.starts_with("steps") { Unit::Steps } else { Unit::Microseconds };
    let kernel = file["otherData"]["kernel"].as_str().unwrap_or("a kernel").to_owned();
    let events = file["traceEvents"].as_array().context("it has no events")?;
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    let mut rows: BTreeMap<(u64, u64), Row> = BTreeMap::new();
    for event in events {
        let process = event["pid"].as_u64().context("an event has no process")?;
        let of = (process, event["tid"].as_u64().unwrap_or_default());
        let named = || event["args"]["name"].as_str().unwrap_or_default().to_owned();
        match (event["ph"].as_str(), event["name"].as_str()) {
            (Some("M"), Some("process_name")) => blocks.entry(process).or_default().name = named(),
            (Some("M"), Some("thread_name")) => rows.entry(of).or_default().name = named(),
            (Some("X"), _) => rows.entry(of).or_default().slices.extend(slice(event)),
            _ => {}
        }
    }
    for ((process, _), mut row) in rows {
        row.slices.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        let block = blocks.entry(process).or_default();
        // `block (0,0,0) warp 0`, where the block may be followed by its multiprocessor.
        let own = block.name.split(" on multiprocessor ").next().unwrap_or_default();
        let rest = row.name.strip_prefix(own).map(|name| name.trim_start().to_owned());
        row.name = rest.unwrap_or(row.name);
        block.rows.push(row);
    }
    ensure!(blocks.values().any(|block| !block.rows.is_empty()), "it has no rows");
    Ok(Timeline { kernel, unit, blocks: blocks.into_values().collect() })
}

fn slice(event: &Value) -> Option<Slice> {
    let args = &event["args"];
    let kind = Kind::of(event["cat"].as_str()?, args.get("unfinished").is_some())?;
    let begin = event["ts"].as_f64()?;
    let label = match kind {
        Kind::Runs => "",
        Kind::Waits | Kind::Stuck => {
            args["mbarrier"].as_str().or_else(|| args["waits for"].as_str()).unwrap_or("waits")
        }
        Kind::Copies | Kind::Multiplies | Kind::Span | Kind::Phase => event["name"].as_str()?,
    };
    Some(Slice { begin, end: begin + event["dur"].as_f64()?, kind, label: label.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_lose_the_name_of_their_block() {
        let name = |kind: &str, tid: u64, name: &str| json!({"ph": "M", "pid": 1, "tid": tid, "name": kind, "args": {"name": name}});
        let file = json!({
            "otherData": {"kernel": "k", "clock": "microseconds of the GPU"},
            "traceEvents": [
                name("process_name", 0, "block (0,0,0) on multiprocessor 7"),
                name("thread_name", 1, "block (0,0,0) warp 0"),
                {"ph": "X", "pid": 1, "tid": 1, "ts": 2.0, "dur": 1.5, "cat": "wait", "name": "bar",
                 "args": {"waits for": "barrier 0"}},
                {"ph": "i", "pid": 1, "tid": 1, "ts": 4.0, "cat": "signal", "name": "arrive", "args": {}},
            ],
        });
        let timeline = parse(&file).unwrap();
        assert_eq!(timeline.unit, Unit::Microseconds);
        let row = &timeline.blocks[0].rows[0];
        assert_eq!((row.name.as_str(), row.slices.len()), ("warp 0", 1));
        assert_eq!((row.slices[0].end, row.slices[0].label.as_str()), (3.5, "barrier 0"));
    }

    #[test]
    fn a_file_of_something_else_is_an_error() {
        let error = parse(&json!({"traceEvents": []})).unwrap_err().to_string();
        assert!(error.contains("clock"), "{error}");
    }
}
