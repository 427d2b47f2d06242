//! The JSON of `ptx-sim run --trace`, read back.
#![cfg(feature = "cli")]

use std::collections::BTreeMap;
use std::fs;

use crate::common;
use crate::common::command::{COPY, file, output_path, printed, run, wrong_bytes};
use serde_json::Value;

/// The shape and arguments of `tma_copy_pipelined` on a matrix of 200×1032 (7 by 5 tiles) that two
/// blocks share.
const PIPELINED: &str = "--grid 2 --block 64 --shared 65616 --buffer random:f16:200x1032:5 --buffer zeros:f16:200x1032 \
                         --buffer zeros:u32:2 --arg map:0:f16:extents=200x1032:box=32x256 \
                         --arg map:1:f16:extents=200x1032:box=32x256 --arg address:2 --arg len:2 --arg u32:5 --arg u32:35";

/// The rows: their names, and their events without those that only name the row.
type Rows = BTreeMap<String, Vec<Value>>;

/// Runs a kernel with a trace. Returns the output, the whole trace, and its rows.
fn traced(name: &str, ptx: &str, words: &str, code: i32) -> (String, Value, Rows) {
    let (ptx, target) = (file(&format!("{name}.ptx"), ptx), output_path(&format!("{name}.json")));
    let text = printed(&run(&[&ptx, "--trace", &target.to_string_lossy()], words), code);
    let trace: Value = serde_json::from_slice(&fs::read(target).expect("it is written")).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("it is a list");
    let mut names = BTreeMap::new();
    for event in events.iter().filter(|event| event["name"] == "thread_name") {
        let name = event["args"]["name"].as_str().expect("a row has a name");
        let other = names.insert((number(event, "pid"), number(event, "tid")), name.to_owned());
        assert_eq!(other, None, "two names for a row");
    }
    let mut rows = Rows::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let name = &names[&(number(event, "pid"), number(event, "tid"))];
        rows.entry(name.clone()).or_default().push(event.clone());
    }
    assert_eq!(rows.len(), names.len(), "a row without events, or two rows of one name");
    (text, trace, rows)
}

fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_else(|| panic!("no `{key}` in {event}"))
}

fn end(slice: &Value) -> u64 {
    number(slice, "ts") + number(slice, "dur")
}

fn tma_copy() -> (String, String) {
    common::compile("examples/src/bin/tma_copy.rs").pop().expect("it has a kernel")
}

fn arg<'e>(event: &'e Value, key: &str) -> &'e str {
    event["args"][key].as_str().unwrap_or_else(|| panic!("no `{key}` in {event}"))
}

/// Returns the slices of a row in a category, in the order of the file.
fn slices<'r>(rows: &'r Rows, row: &str, category: &str) -> Vec<&'r Value> {
    let of = |event: &&Value| event["ph"] == "X" && event["cat"] == category;
    rows.get(row).unwrap_or_else(|| panic!("no row `{row}`")).iter().filter(of).collect()
}

#[test]
fn every_row_is_in_order_and_without_overlap() {
    let pipelined = common::compile("examples/src/bin/tma_copy_pipelined.rs");
    let (entry, deep) = pipelined.first().expect("it has a kernel");
    let (copy_entry, copy) = tma_copy();
    for (name, entry, text, shape) in [
        ("order_copy", &copy_entry, &copy, COPY.to_owned()),
        ("order_pipelined", entry, deep, PIPELINED.to_owned()),
    ] {
        for seed in 0..4 {
            let words = format!("{shape} --entry {entry} --seed {seed}");
            let (_, trace, rows) = traced(name, text, &words, 0);
            assert!(arg_of_metadata(&trace, "clock").contains("Not a clock"), "{name}");
            for (row, events) in &rows {
                let starts: Vec<_> = events.iter().map(|event| number(event, "ts")).collect();
                assert!(starts.is_sorted(), "{name}, seed {seed}: {row} is out of order");
                let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
                for pair in slices.windows(2) {
                    assert!(end(pair[0]) <= number(pair[1], "ts"), "{name}, seed {seed}: {row}: {pair:?}");
                }
                for event in events {
                    assert!(event["ph"] == "X" || event["ph"] == "i", "{event}");
                    // A run of instructions may begin where the compiler names no line.
                    assert!(event["cat"] == "runs" || arg(event, "source").contains(".rs:"), "{event}");
                    assert!(event["args"]["PTX line"].as_u64() > Some(0), "{event}");
                }
            }
        }
    }
}

fn arg_of_metadata<'t>(trace: &'t Value, key: &str) -> &'t str {
    trace["otherData"][key].as_str().unwrap_or_default()
}

#[test]
fn a_load_lands_before_the_wait_for_it_ends() {
    let (entry, text) = tma_copy();
    for seed in 0..8 {
        let words = format!("{COPY} --entry {entry} --seed {seed}");
        let (printed, _, rows) = traced("landing", &text, &words, 0);
        assert!(printed.contains("trace: "), "{printed}");
        for (x, y) in (0..3).flat_map(|x| (0..3).map(move |y| (x, y))) {
            let block = format!("block ({x},{y},0)");
            let [load] = slices(&rows, &format!("{block} loads"), "copy")[..] else { panic!("{block}") };
            assert_eq!(load["args"]["bytes"], 16384);
            assert_eq!(load["args"]["coordinates"], serde_json::json!([y * 32, x * 256]));
            assert_eq!(arg(load, "issued by"), format!("thread 0 of {block}"));
            let mbarrier = arg(load, "mbarrier");
            let phases = slices(&rows, &format!("{block} mbarrier {mbarrier}"), "mbarrier");
            assert_eq!(
                phases.first().map(|phase| (&phase["name"], end(phase))),
                Some((&"phase 0".into(), end(load)))
            );
            for warp in 0..4 {
                let waits = slices(&rows, &format!("{block} warp {warp}"), "wait");
                let on = |wait: &&&Value| {
                    wait["args"]["mbarrier"] == mbarrier && wait["args"]["timed out"].is_null()
                };
                let wait = waits.iter().filter(on).max_by_key(|wait| end(wait)).expect("each warp waits");
                assert!(end(load) < end(wait), "seed {seed}, {block}, warp {warp}: {load} {wait}");
                assert!(arg(wait, "source text").contains("full.wait(0)"), "{wait}");
                assert!(
                    wait["name"].as_str().is_some_and(|name| name.starts_with("mbarrier.try_wait")),
                    "{wait}"
                );
                let barrier = |wait: &&&Value| arg(wait, "waits for") == "barrier 0 of the block";
                assert!(waits.iter().any(|wait| barrier(&wait)), "{waits:?}");
            }
            let [store] = slices(&rows, &format!("{block} stores"), "copy")[..] else { panic!("{block}") };
            let waits = slices(&rows, &format!("{block} warp 0"), "wait");
            let group =
                waits.iter().find(|wait| arg(wait, "waits for") == "all but 0 bulk groups to be read");
            let read = number(&store["args"], "read at");
            assert!(read < end(group.expect("thread 0 waits")) && read <= end(store), "seed {seed}: {store}");
        }
    }
}

#[test]
fn unfinished_events_are_marked() {
    let (entry, text) = tma_copy();
    let words = format!("{COPY} --entry {entry}");
    let (_, _, rows) = traced("never", &wrong_bytes(&text), &words, 1);
    for warp in 0..4 {
        let waits = slices(&rows, &format!("block (0,0,0) warp {warp}"), "wait");
        let last = waits.last().expect("each warp waits");
        assert_eq!(last["args"]["unfinished"], "never completed", "{last}");
        assert!(last["name"].as_str().is_some_and(|name| name.starts_with("mbarrier.try_wait")), "{last}");
    }
}

#[test]
fn the_event_limit_is_applied_and_reported() {
    let (entry, text) = tma_copy();
    let words = format!("{COPY} --entry {entry}");
    let (whole, trace, _) = traced("whole", &text, &words, 0);
    assert!(!whole.contains("did not fit"), "{whole}");
    let all = number(&trace["otherData"], "events");
    let (part, trace, rows) = traced("part", &text, &format!("{words} --trace-events 30"), 0);
    assert_eq!(rows.values().map(Vec::len).sum::<usize>(), 30);
    assert_eq!(number(&trace["otherData"], "events left out"), all - 30);
    assert!(part.contains(&format!("; {} more did not fit: raise --trace-events\n", all - 30)), "{part}");
}

#[test]
fn bank_conflicts_are_shown_with_their_lines() {
    let source = "examples/src/bin/transpose.rs";
    let (entry, text) = common::compile(source).pop().expect("it has a kernel");
    let ptx = file("conflicts.ptx", text);
    let words = format!(
        "--entry {entry} --grid 2,2 --block 512 --shared 32776 --buffer random:f32:128x128 \
         --buffer zeros:f32:128x128 --arg map:0:f32:extents=128x128:box=64x64 \
         --arg map:1:f32:extents=128x128:box=64x64"
    );
    let text = printed(&run(&[&ptx], &words), 0);
    let (_, table) = text.split_once("shared-memory bank conflicts\n").expect("there is a table");
    let all: Vec<_> = table.lines().last().unwrap_or_default().split_whitespace().collect();
    assert_eq!(all, ["1024", "1024", "0", "all"], "{table}");
    let line = format!("{source}:");
    assert!(table.contains(&line) && table.contains(": output.set([column, row]"), "{table}");
}

#[test]
fn spans_that_the_ptx_marks_are_those_of_each_warp() {
    let ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n\t// span begin all\n\
               \t// span begin part\n\tbar.sync 0;\n\t// span end part\n\t// span end other\n\tret;\n}\n";
    let (text, _, rows) = traced("spans", ptx, "--entry k --grid 1 --block 64", 0);
    let count = |class: &str| -> u32 {
        let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(class));
        let number = rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no {class} in {text}"))
    };
    assert_eq!(count("control flow"), 2, "marks count as control flow: {text}");
    assert_eq!(count("all"), count("barriers") + 2, "marks count: {text}");
    for warp in 0..2 {
        let row = format!("block (0,0,0) spans of warp {warp}");
        let events = rows.iter().filter(|(name, _)| name.split(", overlap").next() == Some(&row));
        let spans = events.flat_map(|(_, events)| events).filter(|event| event["cat"] == "span");
        let mut found: Vec<_> = spans
            .map(|span| (span["name"].as_str().expect("a name"), span["args"].get("unfinished").is_some()))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [("all", true), ("part", false)], "warp {warp}");
    }
}
