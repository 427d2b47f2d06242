//! Kernels with probes and with limited waits, on the simulator: they compute the same, and record
//! what the simulator's own timeline shows. ptxas accepts them without a note.
#![cfg(feature = "llvm")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ptx_sim::trace::EventKind;
use serde_json::Value;
use tma_codegen::{Target, check, compile};
use tma_runtime::launch::{Arg, KernelParts, KernelSpec, LaunchOn, ParamKind, ParamSpec, With, launch};
use tma_runtime::prelude::*;
use tma_runtime::spec::{Cluster, Scalar};
use tma_runtime::trace::{Awaited, Row, SiteKind, Summary, Trace, perfetto, take_traces};
use tma_setup::{program::PTXAS, ptxas};
use tma_tests::examples::row_sums::row_sums;
use tma_tests::kernels::spans::{NUMBERS, spans, wanted};
use tma_tests::parallel::on_all_cores;
use tma_tests::sources::{Source, corpus, examples};

const SEQUENCES: usize = 3;
const COLUMNS: usize = 32;

/// Runs a launch with a trace, and returns the trace.
fn only_trace(launch: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Trace> {
    // All tests of the process share the traces that nobody has taken.
    static TAKING: Mutex<()> = Mutex::new(());
    let _alone = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    launch()?;
    let mut traces = take_traces();
    anyhow::ensure!(traces.len() == 1, "{} traces", traces.len());
    Ok(traces.remove(0))
}

/// Runs `row_sums` with a trace, and returns the trace.
fn traced(device: &Device) -> anyhow::Result<Trace> {
    let src = device.tensor(&[1.0; 24 * COLUMNS], [24, COLUMNS])?;
    let rows = device.tensor(&[24_u32, 8, 16], [SEQUENCES])?;
    let tiles = device.tensor(&[3_u32, 1, 2], [SEQUENCES])?;
    let mut sums = device.zeros::<f32, 1>([SEQUENCES * 128])?;
    only_trace(|| {
        row_sums::launch(device.with().trace(), SEQUENCES as u32, &src, &rows, &tiles, &mut sums)?;
        let wanted = [6.0, 2.0, 4.0].map(|sum| [sum; 128]).concat();
        anyhow::ensure!(sums.to_vec()? == wanted, "the probes change the sums");
        Ok(())
    })
}

#[test]
fn a_trace_has_the_waits_and_loads_of_every_warp() -> anyhow::Result<()> {
    let trace = traced(&Device::simulator())?;
    assert_eq!((trace.kernel.as_str(), trace.grid, trace.lost), ("row_sums", [3, 1, 1], 0));
    assert_eq!(trace.warps.len(), 3 * 5);
    assert!(trace.warps.iter().all(|warp| warp.end > warp.begin), "{:?}", trace.warps);

    let loads: Vec<_> = trace.intervals.iter().filter(|interval| interval.row == Row::Loads).collect();
    assert_eq!(loads.len(), 3 + 1 + 2);
    assert!(loads.iter().all(|load| !load.unfinished && load.end > load.begin), "{loads:?}");

    let summary = Summary::of(&trace);
    let wait = |subject: &str| summary.waits.iter().find(|wait| wait.subject == subject);
    let full = wait("`ring.full`").expect("consumers wait for tiles");
    assert_eq!((full.warps, full.times), (3 * 4, 4 * (3 + 1 + 2)));
    let line = include_str!("../../examples/src/bin/row_sums.rs")
        .lines()
        .position(|line| line.contains("consumer.wait()"))
        .expect("the kernel waits");
    let source = full.source.as_ref().expect("a line");
    assert_eq!((source.file.as_str(), source.line as usize), ("../examples/src/bin/row_sums.rs", line + 1));
    assert_eq!(wait("`ring.empty`").map(|wait| (wait.warps, wait.times)), Some((3, 3 + 1 + 2)));
    assert_eq!(wait("barrier 0 of the block").map(|wait| wait.warps), Some(3 * 5));
    assert!(summary.multiplying.is_empty() && summary.launch.is_none(), "{summary:?}");
    Ok(())
}

/// Returns the names of the rows of a timeline, without levels of overlap.
fn rows(timeline: &Value) -> BTreeSet<String> {
    let events = timeline["traceEvents"].as_array().expect("events");
    let names = events.iter().filter(|event| event["name"] == "thread_name");
    names
        .filter_map(|event| {
            Some(event["args"]["name"].as_str()?.split(',').take(3).collect::<Vec<_>>().join(","))
        })
        .collect()
}

#[test]
fn its_file_has_the_rows_of_the_simulators_timeline() -> anyhow::Result<()> {
    let trace = traced(&Device::simulator())?;
    let mut file = Vec::new();
    perfetto::write(&mut file, &trace)?;
    let timeline: Value = serde_json::from_slice(&file)?;
    assert_eq!(timeline["otherData"]["summary"]["kernel"], "row_sums");
    let block = |block: u32, row: &str| format!("block ({block},0,0) {row}");
    let wanted = (0..3).flat_map(|number| {
        let warps = (0..5).map(move |warp| block(number, &format!("warp {warp}")));
        warps.chain([block(number, "loads")])
    });
    assert_eq!(rows(&timeline), wanted.collect());
    let events = timeline["traceEvents"].as_array().expect("events");
    let slices = events.iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(slices, trace.intervals.len());
    Ok(())
}

/// Runs the kernel with spans.
fn launch_spans(on: &impl LaunchOn) -> anyhow::Result<()> {
    let numbers = on.device().tensor(&NUMBERS, [NUMBERS.len()])?;
    let mut counts = on.device().zeros::<u32, 1>([64])?;
    spans::launch(on, 1, &numbers, &mut counts)?;
    anyhow::ensure!(counts.to_vec()? == [[8; 32], [0; 32]].concat(), "other counts");
    Ok(())
}

/// Counts the spans of each warp by their names.
fn counted<'n>(spans: impl Iterator<Item = (u32, &'n str)>) -> Vec<(u32, &'n str, usize)> {
    let mut counts = BTreeMap::<_, usize>::new();
    for span in spans {
        *counts.entry(span).or_default() += 1;
    }
    counts.into_iter().map(|((warp, name), times)| (warp, name, times)).collect()
}

#[test]
fn a_trace_has_the_spans_that_the_kernel_names() -> anyhow::Result<()> {
    let trace = only_trace(|| launch_spans(&Device::simulator().with().trace()))?;
    let found: Vec<_> = trace
        .intervals
        .iter()
        .filter_map(|interval| match interval.row {
            Row::Spans(warp) => Some((warp, trace.sites[interval.site].span()?, interval)),
            _ => None,
        })
        .collect();
    assert_eq!(counted(found.iter().map(|(warp, name, _)| (*warp, *name))), wanted());
    assert!(found.iter().all(|(.., span)| !span.unfinished && span.end >= span.begin), "{found:?}");
    // Each step is in the count of its warp.
    for (warp, name, step) in &found {
        let around = found.iter().find(|(each, name, _)| each == warp && *name == "count");
        let (.., around) = around.expect("each warp counts");
        assert!(around.begin <= step.begin && step.end <= around.end, "{name} of warp {warp}");
    }

    let summary = Summary::of(&trace);
    let step = summary.spans.iter().find(|span| span.subject == "step").expect("steps");
    assert_eq!((step.warps, step.times), (2, 10));
    let line = include_str!("../src/kernels/spans.rs").lines().position(|line| line.contains("!(\"step\")"));
    let source = step.source.as_ref().map(|source| (source.file.as_str(), source.line as usize));
    assert_eq!(source, line.map(|line| ("src/kernels/spans.rs", line + 1)));
    let text = summary.to_string();
    assert!(text.contains("  span, at\n") && text.contains("  step, src/kernels/spans.rs:"), "{text}");
    Ok(())
}

#[test]
fn the_simulators_timeline_has_the_same_spans() -> anyhow::Result<()> {
    let timeline = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&timeline);
    let device = Device::simulator().reporting(1 << 16, move |_, report| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&report.trace.events);
    });
    launch_spans(&device)?;
    let events = timeline.lock().unwrap_or_else(PoisonError::into_inner);
    let found = events.iter().filter_map(|event| match (&event.kind, event.row) {
        (EventKind::Span(name), Row::Spans(warp)) if !event.unfinished => Some((warp, &**name)),
        _ => None,
    });
    assert_eq!(counted(found), wanted());
    Ok(())
}

#[test]
fn a_launch_that_cannot_be_traced_is_an_error() -> anyhow::Result<()> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let src = device.zeros::<f32, 2>([8, COLUMNS])?;
    let one = device.tensor(&[1_u32], [1])?;
    let mut sums = device.zeros::<f32, 1>([128])?;
    let captured =
        stream.capture(|capture| row_sums::launch(capture.with().trace(), 1, &src, &one, &one, &mut sums));
    assert_eq!(captured.err().map(|error| error.code()), Some("TMA0631"));
    Ok(())
}

/// Returns the kernel `spans` with other parts.
fn changed(change: impl FnOnce(KernelParts) -> KernelParts) -> &'static KernelSpec {
    // SAFETY: with more shared memory the kernel does the same; without PTX it does nothing.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(change(*spans::SPEC.parts())) }))
}

#[test]
fn probes_count_in_the_blocks_that_fit() -> anyhow::Result<()> {
    let device = Device::simulator();
    // Two warps have probes: 16 bytes each.
    let half = changed(|parts| KernelParts { shared_bytes: 113 * 1024, ..parts });
    let (plain, traced) = (device.resident_blocks(half)?, device.with().trace().resident_blocks(half)?);
    assert_eq!(plain, 2 * traced);
    assert_eq!(device.with().trace().resident_blocks(half)?, traced);

    let whole = changed(|parts| KernelParts { shared_bytes: 227 * 1024, ..parts });
    let numbers = device.tensor(&NUMBERS, [NUMBERS.len()])?;
    let mut counts = device.zeros::<u32, 1>([64])?;
    let mut launch_whole = |on: &With<'_>, spec| {
        launch(on, spec, Grid::x(1), &[Arg::global(numbers.slice()), Arg::global_mut(counts.slice_mut())])
    };
    launch_whole(&device.with(), whole)?;
    let error = launch_whole(&device.with().trace(), whole).expect_err("no room for probes");
    assert_eq!(error.code(), "TMA0631");
    assert!(error.to_string().contains("232480 bytes of shared memory, 32 of them for probes"), "{error}");

    let nothing = changed(|parts| KernelParts { ptx: "", ..parts });
    let error = launch_whole(&device.with().trace(), nothing).expect_err("there is no PTX");
    assert_eq!(error.code(), "TMA0605");
    Ok(())
}

/// A kernel in which threads wait in each way that limits replace: at all barriers of the block, at
/// the cluster's, and at an mbarrier. Each block adds up the numbers of the cluster's other block.
const BARRIERS: &str = "
    use tma_runtime::prelude::*;
    #[tma_kernel(threads = 128, cluster = 2)]
    pub fn barriers(input: Global<u32>, output: Global<u32>) {
        let numbers: SharedArray<u32, 128> = shared();
        let full: Barrier = shared();
        let i = thread_idx().x;
        if i == 0 {
            full.init(64);
            fence_barrier_init();
        }
        numbers.set(i, 0);
        sync_cluster();
        for step in 0..4u32 {
            numbers.set(i, input.get(step * 256 + block_idx().x * 128 + i));
            sync_cluster();
            let other = remote(numbers, 1 - cluster_rank()).get(127 - i);
            sync_cluster();
            numbers.set(i, other);
            sync_threads();
            let mut sum = numbers.get((i + 1) % 128);
            if i < 64 {
                full.arrive();
                named_barrier_sync(3, 96);
                sum += numbers.get(i + 32);
            } else if i < 96 {
                named_barrier_arrive(3, 96);
            }
            full.wait(step % 2);
            if i < 64 {
                named_barrier_sync(3, 64);
            }
            sync_warpgroup();
            output.set(step * 256 + block_idx().x * 128 + i, sum);
            sync_threads();
        }
    }";

/// Runs the kernel with its own PTX or with another.
fn run_barriers(rewrite: impl Fn(KernelParts) -> KernelParts) -> anyhow::Result<Vec<u32>> {
    let checked = check("barriers.rs", BARRIERS).expect("the compiler accepts it");
    let compiled = compile("barriers.rs", BARRIERS, Target::default()).expect("it compiles");
    let (kernel, ptx) = (&checked.kernels[0].kernel, &compiled.kernels[0]);
    let param = |name, written| ParamSpec {
        name,
        kind: ParamKind::Global { element: Scalar::U32, written, alignment: 4 },
    };
    let parts = KernelParts {
        name: "barriers",
        entry: ptx.entry.clone().leak(),
        ptx: ptx.text.clone().leak(),
        threads: [128, 1, 1],
        cluster: Cluster::Fixed([2, 1, 1]),
        cooperative: false,
        dependency_wait: false,
        team: false,
        shared_bytes: kernel.layout().bytes(),
        params: vec![param("input", false), param("output", true)].leak(),
    };
    // SAFETY: the compiler made the PTX of this kernel, and its waits do not change what it
    // accesses.
    let spec = Box::leak(Box::new(unsafe { KernelSpec::from_parts(rewrite(parts)) }));
    let device = Device::simulator();
    let numbers: Vec<u32> = (0..4 * 256).map(|i| i * 7919 % 1013).collect();
    let input = device.tensor(&numbers, [numbers.len()])?;
    let mut output = device.zeros::<u32, 1>([numbers.len()])?;
    let launched =
        launch(&device, spec, Grid::x(2), &[Arg::global(input.slice()), Arg::global_mut(output.slice_mut())]);
    if let Err(error) = launched {
        // The last round of the cluster's barrier ends with an operation in the memory of another
        // block, which may end when it has seen the value. The simulator does not conclude from the
        // value that the operation is over.
        let text = error.to_string();
        let is_that = text.contains("found 1 mistake") && text.contains("\nblock gone: ");
        anyhow::ensure!(is_that && text.contains("shared::cluster.add.u32"), "{text}");
    }
    Ok(output.to_vec()?)
}

#[test]
fn kernels_with_limited_waits_compute_the_same() -> anyhow::Result<()> {
    let plain = run_barriers(|parts| parts)?;
    assert!(plain.iter().any(|&sum| sum > 1013));
    let limited = run_barriers(|parts| {
        let second = Duration::from_secs(1).as_nanos() as u64;
        let watched = ptx_probe::watch::watch(parts.ptx, parts.entry, parts.shared_bytes, 0, second);
        let watched = watched.expect("the compiler's PTX");
        let kinds: BTreeSet<_> = watched.sites.iter().map(|site| format!("{:?}", site.kind)).collect();
        let wanted = [Awaited::Barrier, Awaited::Cluster, Awaited::Mbarrier];
        assert_eq!(kinds, wanted.map(|awaited| format!("{:?}", SiteKind::Wait(awaited))).into());
        let barriers = watched.ptx.lines().filter(|line| line.trim().starts_with("barrier.")).count();
        assert_eq!(barriers, 2, "arrive and wait at the cluster's barrier, before the counters are used");
        KernelParts { ptx: watched.ptx.leak(), shared_bytes: watched.shared_bytes, ..parts }
    })?;
    assert_eq!(limited, plain);
    Ok(())
}

#[test]
fn ptxas_accepts_probes_and_limits() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools");
    let assembler = PTXAS.require(&tools, "cargo xtask setup").unwrap_or_else(|error| panic!("{error}")).path;
    let spans = corpus().iter().filter(|source| source.path.ends_with("spans.rs"));
    let sources: Vec<&Source> = examples().iter().chain(spans).collect();
    let problems: Vec<Vec<String>> = on_all_cores(sources, |source| {
        let compiled = compile(source.path, source.text, Target::default()).expect("examples compile");
        // Instances of one kernel have the same waits.
        let mut kernels = compiled.kernels;
        kernels.dedup_by_key(|kernel| kernel.name.split("::").next().map(str::to_owned));
        let texts = kernels.iter().flat_map(|kernel| {
            let layout = ptx_probe::ring::Layout::of(132, 384).expect("a layout");
            let probed = ptx_probe::instrument(&kernel.text, &kernel.entry, 0, 1 << 32, layout);
            let watched = ptx_probe::watch::watch(&kernel.text, &kernel.entry, 0, 1 << 32, 1_000_000_000);
            [
                (kernel.name.clone(), probed.expect("the compiler's PTX").ptx),
                (kernel.name.clone(), watched.expect("the compiler's PTX").ptx),
            ]
        });
        let report = |(name, text): (String, String)| match ptxas::assemble(&assembler, "sm_90a", &text) {
            Ok(report) if report.warnings.is_empty() => None,
            Ok(report) => Some(format!("{name}: {:?}", report.warnings)),
            Err(error) => Some(format!("{name}: {error}")),
        };
        texts.filter_map(report).collect()
    });
    assert_eq!(problems.concat(), Vec::<String>::new());
}
