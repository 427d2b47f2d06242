//! The counts of instructions, bytes and bank conflicts in a report, and the timeline.

use crate::common;
use ptx_sim::profile::{Class, Executed, SharedAccesses, StateSpace};
use ptx_sim::tensor_map::{DataType, Swizzle};
use ptx_sim::trace::{Awaited, Event, EventKind, Row};
use ptx_sim::{Arg, CopyKind, GlobalMemory, LaunchConfig, Module, Moved, Report, launch};

fn observed(config: LaunchConfig) -> LaunchConfig {
    LaunchConfig { profile: true, trace_events: 1 << 20, ..config }
}

/// Runs a kernel from one matrix of floats to another, each of which is a single tile of `side`
/// rows and columns.
fn transpose(module: &Module, entry: &str, side: u32, config: &LaunchConfig) -> Report {
    let mut memory = GlobalMemory::default();
    let extent = u64::from(side);
    let bytes = vec![0; (extent * extent * 4) as usize];
    let [src, dst] = [Some(&*bytes), None]
        .map(|bytes| common::Matrix::new(&mut memory, DataType::F32, [extent; 2], bytes));
    let args = [&src, &dst].map(|matrix| Arg::Map(matrix.map([side; 2], Swizzle::None)));
    let report = launch(module, &mut memory, entry, config, &args).expect("it starts");
    assert!(report.findings.is_empty(), "{}", report.findings.render(&module.sources(|_| None)));
    report
}

fn naive(config: &LaunchConfig) -> Report {
    let (entry, text) = common::compile_text("naive.rs", common::NAIVE).pop().expect("it has a kernel");
    transpose(&Module::load(&text).expect("it loads"), &entry, 32, config)
}

fn one_warp() -> LaunchConfig {
    observed(LaunchConfig { block: [32, 1, 1], dynamic_shared_bytes: 8200, ..LaunchConfig::default() })
}

#[test]
fn the_example_has_no_bank_conflict() {
    let (entry, module) = common::example("transpose");
    let config = LaunchConfig { block: [512, 1, 1], dynamic_shared_bytes: 32776, ..LaunchConfig::default() };
    let report = transpose(&module, &entry, 64, &observed(config));
    let shared = report.profile.shared();
    // Sixteen warps read and write 64 × 64 floats, 32 at a time.
    assert_eq!(shared, SharedAccesses { accesses: 256, wavefronts: 256, ideal: 256 });
    let lines = report.profile.shared_by_source();
    assert!(lines.iter().all(|(_, shared)| shared.conflicts() == 0), "{lines:?}");
}

#[test]
fn a_column_of_a_tile_that_is_not_swizzled_has_31_an_access() {
    let report = naive(&one_warp());
    let lines = report.profile.shared_by_source();
    let by_line: Vec<_> = lines.iter().map(|(site, shared)| (site.source.map(|s| s.1), *shared)).collect();
    let get = SharedAccesses { accesses: 32, wavefronts: 32, ideal: 32 };
    let set = SharedAccesses { wavefronts: 32 * 32, ..get };
    assert_eq!(by_line, [(Some(20), get), (Some(21), set)]);
    assert_eq!(report.profile.shared().conflicts(), 31 * 32);
}

#[test]
fn instructions_and_bytes_are_counted_by_kind() {
    let report = naive(&one_warp());
    let classes = report.profile.by_class();
    let all = classes.values().fold(Executed::default(), |mut sum, executed| {
        sum += *executed;
        sum
    });
    assert_eq!((all.warps, all.threads), (report.warp_instructions, report.thread_instructions));
    let accesses = Executed { warps: 32, threads: 1024 };
    assert_eq!(classes[&Class::Load(StateSpace::Shared)], accesses);
    assert_eq!(classes[&Class::Store(StateSpace::Shared)], accesses);
    assert_eq!(classes[&Class::Copy], Executed { warps: 2, threads: 2 });
    assert_eq!(classes.get(&Class::Float), None);
    for (kind, moved) in report.counters.iter() {
        let tile = matches!(kind, CopyKind::TensorLoad | CopyKind::TensorStore);
        let wanted = if tile { Moved { copies: 1, bytes: 4096 } } else { Moved::default() };
        assert_eq!(moved, wanted, "{kind}");
    }
}

#[test]
fn nothing_is_counted_by_default() {
    let report = naive(&LaunchConfig { profile: false, trace_events: 0, ..one_warp() });
    assert!(report.profile.lines().is_empty());
    assert_eq!((report.trace.events.len(), report.trace.left_out), (0, 0));
    // Counting does not change the checks, the order of warps or the landings.
    let observed = naive(&one_warp());
    assert_eq!(observed.thread_instructions, report.thread_instructions);
}

/// An `atom` on one word by all lanes, a generic load of the block's own memory, and a load from
/// global memory.
const SPACES: &str = "\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry spaces(.param .u64 data) {
    .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .pred %p;
    .shared .align 16 .b8 tile[4096];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    st.shared.u32 [%r2], 0;
    atom.shared.add.u32 %r3, [%r2], 1;
    cvt.u64.u32 %d1, %r2;
    cvta.shared.u64 %d1, %d1;
    ld.u32 %r3, [%d1];
    ld.param.u64 %d2, [data];
    ld.global.u32 %r3, [%d2];
    setp.lt.u32 %p, %r1, 5;
    @%p ld.shared.u32 %r3, [%r2];
    ret;
}
";

#[test]
fn every_space_that_leads_to_shared_memory_counts() {
    let module = Module::load(SPACES).expect("it loads");
    let mut memory = GlobalMemory::default();
    let data = memory.allocate(4, true).expect("there is room");
    // All lanes write the same word, which the checks would report.
    let checks = ptx_sim::Checks::NONE;
    let config = observed(LaunchConfig { block: [32, 1, 1], checks, ..LaunchConfig::default() });
    let report = launch(&module, &mut memory, "spaces", &config, &[Arg::Address(data)]).expect("it starts");
    assert!(report.findings.is_empty(), "{}", report.findings.render(&module.sources(|_| None)));
    let lines = report.profile.shared_by_source();
    let by_line: Vec<_> =
        lines.iter().map(|(site, s)| (site.ptx_line, s.accesses, s.wavefronts, s.ideal)).collect();
    assert_eq!(by_line, [(9, 1, 1, 1), (10, 1, 32, 1), (13, 1, 1, 1), (17, 1, 1, 1)]);
    let classes = report.profile.by_class();
    assert_eq!(classes[&Class::Load(StateSpace::Shared)], Executed { warps: 1, threads: 5 });
    assert_eq!(classes[&Class::Load(StateSpace::Global)], Executed { warps: 1, threads: 32 });
}

fn copies(events: &[Event], row: Row) -> Vec<&Event> {
    events.iter().filter(|event| event.row == row).collect()
}

#[test]
fn the_timeline_has_copies_waits_and_phases_in_order() {
    for seed in 0..8 {
        let report = naive(&LaunchConfig { seed, ..one_warp() });
        let events = &report.trace.events;
        let [load] = copies(events, Row::Loads)[..] else { panic!("seed {seed}: {events:?}") };
        let [store] = copies(events, Row::Stores)[..] else { panic!("seed {seed}: {events:?}") };
        let EventKind::Copies(loaded) = &load.kind else { panic!("{load:?}") };
        let EventKind::Copies(stored) = &store.kind else { panic!("{store:?}") };
        assert_eq!((loaded.kind, loaded.bytes), (CopyKind::TensorLoad, 4096));
        assert_eq!((&loaded.coordinates, loaded.issuing_thread), (&vec![0, 0], 0));
        assert_eq!((stored.kind, stored.group), (CopyKind::TensorStore, Some(1)));
        let [phase] = copies(events, Row::Mbarrier(loaded.mbarrier.expect("it has one")))[..] else {
            panic!("seed {seed}: {events:?}")
        };
        assert_eq!((&phase.kind, phase.end, phase.unfinished), (&EventKind::Phase(0), load.end, false));
        let waits = |matches: fn(&Awaited) -> bool| {
            let waits = events.iter().filter(
                move |event| matches!(&event.kind, EventKind::Waits { awaited, timed_out: false, .. } if matches(awaited)),
            );
            waits.max_by_key(|wait| wait.end).expect("there is one")
        };
        let full = waits(|awaited| matches!(awaited, Awaited::Mbarrier { .. }));
        assert!(load.begin < full.begin && load.end < full.end, "seed {seed}: {load:?} {full:?}");
        let group = waits(|awaited| matches!(awaited, Awaited::BulkGroups { read: true, .. }));
        let read = stored.read.expect("it was read");
        assert!(
            store.begin < read && read < group.end && read <= store.end,
            "seed {seed}: {store:?} {group:?}"
        );
        assert!(full.end <= store.begin, "seed {seed}");
        assert!(events.iter().all(|event| event.begin <= event.end && !event.unfinished), "seed {seed}");
    }
}

#[test]
fn the_number_of_events_is_limited() {
    let (entry, module) = common::example("transpose");
    let run = |trace_events, host_threads| {
        let mut memory = GlobalMemory::default();
        let matrix = common::Matrix::new(&mut memory, DataType::F32, [192; 2], Some(&[0; 192 * 192 * 4]));
        let args = [0, 1].map(|_| Arg::Map(matrix.map([64, 64], Swizzle::None)));
        let tiles = common::tiles(&matrix, [64, 64], 512, 32776, 3);
        let config = LaunchConfig { trace_events, host_threads, profile: true, ..tiles };
        launch(&module, &mut memory, &entry, &config, &args).expect("it starts")
    };
    let whole = run(usize::MAX, 1);
    let all = whole.trace.events.len();
    assert_eq!(whole.trace.left_out, 0);
    for limit in [1, 100, all - 1, all] {
        let part = run(limit, 1);
        assert_eq!(part.trace.events, whole.trace.events[..limit], "limit {limit}");
        assert_eq!(part.trace.left_out, (all - limit) as u64, "limit {limit}");
    }
    // Several clusters at a time give the same result, whichever ends first.
    let together = run(usize::MAX, 4);
    assert!(together.trace == whole.trace);
    assert_eq!(together.profile, whole.profile);
}

/// The halves of a warp synchronise from two instructions.
const DIVERGED: &str = "\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry apart() {
    .reg .b32 %r<2>; .reg .pred %p;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p, %r1, 16;
    @%p bra low;
    bar.warp.sync 0xffffffff;
    bra end;
low:
    bar.warp.sync 0xffffffff;
end:
    ret;
}
";

#[test]
fn released_lanes_have_waited_until_their_release() {
    let module = Module::load(DIVERGED).expect("it loads");
    let config = observed(LaunchConfig { block: [32, 1, 1], ..LaunchConfig::default() });
    for seed in 0..8 {
        let config = LaunchConfig { seed, ..config.clone() };
        let report = launch(&module, &mut GlobalMemory::default(), "apart", &config, &[]).expect("it starts");
        let waits = report.trace.events.iter().filter_map(|event| match event.kind {
            EventKind::Waits { lanes, .. } => Some((event.end, lanes, event.unfinished)),
            _ => None,
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable();
        let [(first, some, false), (second, others, false)] = waits[..] else { panic!("{waits:?}") };
        assert_eq!((first, some ^ others), (second, u32::MAX), "seed {seed}");
    }
}
