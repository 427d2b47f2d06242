//! The timeline of a launch in the Chrome trace event format, which Perfetto opens. Source: "Trace
//! Event Format", the document of the Chromium project.
//!
//! A block is a process. Slices of one row must nest, so events that overlap (copies of one engine,
//! diverged lanes of a warp that wait at two instructions) are spread over several rows below each
//! other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::machine::{Phase, Site};
use crate::report::Sources;
use crate::trace::{Awaited, CopyEvent, Event, EventKind, Row, Trace};
use serde_json::{Map, Value, json};
use tma_model::timeline::levels;

const CLOCK: &str = "steps of the simulator, shown as microseconds: one instruction of one warp, or one step in \
                     which only the engines progress. Not a clock: it does not predict times on a GPU";

/// Writes the timeline of a launch of the kernel `entry` to the file `path`, in the Chrome trace
/// event format. Returns a line that says how many events it has.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write_timeline(
    path: &Path,
    entry: &str,
    trace: &Trace,
    sources: &Sources<'_>,
) -> Result<String, String> {
    let name = path.display();
    File::create(path)
        .map(BufWriter::new)
        .and_then(|mut file| {
            write_to(&mut file, entry, trace, sources)?;
            file.flush()
        })
        .map_err(|error| format!("{name}: {error}"))?;
    let (kept, left_out) = (trace.events.len(), trace.left_out);
    let note = match left_out {
        0 => String::new(),
        _ => format!("; {left_out} more did not fit: raise --trace-events"),
    };
    Ok(format!("trace: {kept} events in {name}{note}\n"))
}

fn write_to(file: &mut impl Write, entry: &str, trace: &Trace, sources: &Sources<'_>) -> io::Result<()> {
    let metadata = json!({
        "kernel": entry,
        "clock": CLOCK,
        "events": trace.events.len(),
        "events left out": trace.left_out,
    });
    write!(file, "{{\"displayTimeUnit\": \"ns\",\n\"otherData\": {metadata},\n\"traceEvents\": [")?;
    let mut lines = Lines { sources, trace, known: BTreeMap::new() };
    let (mut process, mut row_id) = (0, 0);
    let mut separator = "\n";
    let mut put = |event: Value| -> io::Result<()> {
        file.write_all(separator.as_bytes())?;
        separator = ",\n";
        serde_json::to_writer(&mut *file, &event).map_err(io::Error::from)
    };
    for (block, rows) in by_row(&trace.events) {
        process += 1;
        let block = block_name(block);
        put(json!({"ph": "M", "pid": process, "name": "process_name", "args": {"name": block}}))?;
        put(
            json!({"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}),
        )?;
        for (row, mut events) in rows {
            events.sort_by_key(|event| (event.begin, event.end));
            for (level, events) in levels(&events, span).into_iter().enumerate() {
                row_id += 1;
                let name = format!("{block} {}", row_name(trace, row, level));
                put(
                    json!({"ph": "M", "pid": process, "tid": row_id, "name": "thread_name", "args": {"name": name}}),
                )?;
                let order = json!({"sort_index": row_id});
                put(
                    json!({"ph": "M", "pid": process, "tid": row_id, "name": "thread_sort_index", "args": order}),
                )?;
                for event in events {
                    put(slice(event, process, row_id, &mut lines))?;
                }
            }
        }
    }
    write!(file, "\n]}}\n")
}

/// A rank of a team, and the index of a block (z, y, x).
type Block = (Option<u32>, [u32; 3]);

/// Groups the events by block, and within a block by row.
fn by_row(events: &[Event]) -> BTreeMap<Block, BTreeMap<Row, Vec<&Event>>> {
    let mut blocks: BTreeMap<_, BTreeMap<_, Vec<_>>> = BTreeMap::new();
    for event in events {
        let [x, y, z] = event.block;
        blocks.entry((event.rank, [z, y, x])).or_default().entry(event.row).or_default().push(event);
    }
    blocks
}

fn is_instant(event: &Event) -> bool {
    match &event.kind {
        EventKind::Signals { .. } => true,
        EventKind::Copies(_) => event.row == Row::Prefetches,
        EventKind::Runs(_) | EventKind::Waits { .. } | EventKind::Span(_) | EventKind::Phase(_) => false,
    }
}

/// Names a block. Its index is in the order in which blocks are sorted, z first.
fn block_name(block: Block) -> String {
    let (rank, [z, y, x]) = block;
    let rank = rank.map_or_else(String::new, |rank| format!("rank {rank} "));
    format!("{rank}block ({x},{y},{z})")
}

fn row_name(trace: &Trace, row: Row, level: usize) -> String {
    let row = match row {
        Row::Mbarrier(at) => format!("mbarrier {}", trace.mbarrier(at)),
        row => row.to_string(),
    };
    if level == 0 { row } else { format!("{row}, overlap {level}") }
}

/// Returns the beginning and the end of an event that is no instant.
fn span(event: &Event) -> Option<(u64, u64)> {
    (!is_instant(event)).then_some((event.begin, event.end))
}

fn slice(event: &Event, process: u32, row: u32, lines: &mut Lines<'_>) -> Value {
    let trace = lines.trace;
    let instruction = lines.instruction(event.site);
    let mut args = Map::new();
    let (category, name) = match &event.kind {
        EventKind::Runs(instructions) => {
            args.insert("instructions".into(), json!(instructions));
            ("runs", "runs".to_owned())
        }
        EventKind::Waits { awaited: target, lanes, timed_out } => {
            args.insert("lanes".into(), json!(format!("{lanes:#010x}")));
            args.insert("waits for".into(), json!(awaited(trace, target)));
            if let Awaited::Mbarrier { at, rank, .. } = target {
                args.insert("mbarrier".into(), json!(trace.mbarrier(*at)));
                args.insert("rank in the cluster".into(), json!(rank));
            }
            if *timed_out {
                args.insert("timed out".into(), json!(true));
            }
            ("wait", instruction.mnemonic.clone())
        }
        EventKind::Signals { lanes } => {
            args.insert("lanes".into(), json!(format!("{lanes:#010x}")));
            ("signal", instruction.mnemonic.clone())
        }
        EventKind::Copies(copy) => {
            describe_copy(trace, copy, &mut args);
            ("copy", format!("{} bytes, {}", copy.bytes, copy.kind))
        }
        EventKind::Span(name) => ("span", name.to_string()),
        EventKind::Phase(number) => {
            args.insert("parity".into(), json!(number % 2));
            ("mbarrier", format!("phase {number}"))
        }
    };
    args.extend(instruction.args.clone());
    if event.unfinished {
        args.insert("unfinished".into(), json!("never completed"));
    }
    let mut value = json!({
        "ph": "X", "pid": process, "tid": row, "ts": event.begin, "cat": category, "name": name, "args": args,
    });
    if is_instant(event) {
        value["ph"] = json!("i");
        value["s"] = json!("t");
    } else {
        value["dur"] = json!(event.end - event.begin);
    }
    value
}

fn describe_copy(trace: &Trace, copy: &CopyEvent, args: &mut Map<String, Value>) {
    // The block is in the cluster of the event's, so its rank is that of the row.
    let [x, y, z] = copy.issuing_block;
    let issuer = format!("thread {} of {}", copy.issuing_thread, block_name((None, [z, y, x])));
    args.insert("bytes".into(), json!(copy.bytes));
    args.insert("issued by".into(), json!(issuer));
    if !copy.coordinates.is_empty() {
        // Outermost first, as everywhere in this project.
        let outermost_first: Vec<_> = copy.coordinates.iter().rev().collect();
        args.insert("coordinates".into(), json!(outermost_first));
    }
    if let Some(at) = copy.shared {
        args.insert("shared memory".into(), json!(format!("{at:#x}")));
    }
    if let Some(at) = copy.mbarrier {
        args.insert("mbarrier".into(), json!(trace.mbarrier(at)));
    }
    if let Some(group) = copy.group {
        args.insert("bulk group".into(), json!(group));
    }
    if let Some(step) = copy.read {
        args.insert("read at".into(), json!(step));
    }
}

fn awaited(trace: &Trace, target: &Awaited) -> String {
    match *target {
        Awaited::Barrier(id) => format!("barrier {id} of the block"),
        Awaited::Cluster => "the cluster's barrier".to_owned(),
        Awaited::Mbarrier { at, phase: Phase::Parity(parity), .. } => {
            format!("the phase with parity {} of the mbarrier {}", u8::from(parity), trace.mbarrier(at))
        }
        Awaited::Mbarrier { at, phase: Phase::State(state), .. } => {
            format!("phase {} of the mbarrier {}", state >> 32, trace.mbarrier(at))
        }
        Awaited::BulkGroups { pending, read } => {
            format!("all but {pending} bulk groups{}", if read { " to be read" } else { "" })
        }
        Awaited::AsyncGroups(None) => "all its `cp.async`".to_owned(),
        Awaited::AsyncGroups(Some(pending)) => format!("all but {pending} groups of `cp.async`"),
        Awaited::MultiplyGroups(pending) => format!("all but {pending} groups of multiplications"),
        Awaited::Registers(count) => format!("{count} registers a thread"),
        Awaited::Lanes(lanes) => format!("lanes {lanes:#010x} of the warp"),
    }
}

/// The descriptions of lines, cached because finding a line in a long text is slow.
struct Lines<'s> {
    sources: &'s Sources<'s>,
    trace: &'s Trace,
    known: BTreeMap<Site, Instruction>,
}

struct Instruction {
    /// The instruction's name with its modifiers.
    mnemonic: String,
    args: Map<String, Value>,
}

impl<'s> Lines<'s> {
    fn instruction(&mut self, site: Site) -> &Instruction {
        let sources = self.sources;
        self.known.entry(site).or_insert_with(|| {
            let text = sources.ptx_line(site.ptx_line).unwrap_or_default().trim();
            let mut args = Map::new();
            args.insert("PTX line".into(), json!(site.ptx_line));
            args.insert("PTX".into(), json!(text));
            if let Some((file, line)) = site.source {
                args.insert("source".into(), json!(format!("{}:{line}", sources.file_name(file))));
                if let Some(text) = sources.file_line(file, line) {
                    args.insert("source text".into(), json!(text.trim()));
                }
            }
            Instruction { mnemonic: mnemonic(text).to_owned(), args }
        })
    }
}

/// Returns the name of a line's first instruction, past braces, directives, labels and predicates.
fn mnemonic(line: &str) -> &str {
    let statements = line.split([';', '{', '}']);
    let mut names = statements.filter_map(|statement| {
        statement.split_whitespace().find(|word| !word.starts_with('@') && !word.ends_with(':'))
    });
    names.find(|name| !name.starts_with('.')).unwrap_or("instruction")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_line() {
        for (line, name) in [
            (
                "mbarrier.try_wait.parity.shared::cta.b64 %done, [%r8], %r9;",
                "mbarrier.try_wait.parity.shared::cta.b64",
            ),
            ("@!%p1 bar.sync 0;", "bar.sync"),
            ("{ .reg .pred p; wait: @p bra.uni done; }", "bra.uni"),
            ("fence.proxy.async;", "fence.proxy.async"),
            ("", "instruction"),
        ] {
            assert_eq!(mnemonic(line), name, "{line}");
        }
    }
}
