//! How fast the simulator is: `cargo run --release -p ptx-sim --example speed`

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use ptx_sim::tensor_map::{Element, Fill, Interleave, Mode, Swizzle};
use ptx_sim::{Arg, Checks, GlobalMemory, LaunchConfig, Module, TensorMap, launch};

/// A kernel of the examples that takes two maps of a matrix, and its tile.
struct Case {
    name: &'static str,
    element: Element,
    /// Rows and columns of a box, and of what a block does.
    boxed: [u32; 2],
    tile: [u32; 2],
    swizzle: Swizzle,
    shared_bytes: u32,
}

const CASES: [Case; 2] = [
    Case {
        name: "transpose",
        element: Element::F32,
        boxed: [64, 32],
        tile: [64, 64],
        swizzle: Swizzle::B128,
        shared_bytes: 32768 + 8,
    },
    Case {
        name: "tma_copy",
        element: Element::F16,
        boxed: [128, 64],
        tile: [128, 64],
        swizzle: Swizzle::None,
        shared_bytes: 16384 + 8,
    },
];

/// What a launch looks at: each as well as those before it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Observed {
    Nothing,
    Checks,
    Counts,
    Timeline,
}

impl Observed {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no checks",
            Self::Checks => "all checks",
            Self::Counts => "all checks, counted",
            Self::Timeline => "all checks, counted, with a timeline",
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let extent = 1024;
    for case in &CASES {
        let path = format!("examples/src/bin/{}.rs", case.name);
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&path))?;
        let kernels = tma_codegen::compile(&path, &source, tma_codegen::Target::default())?;
        let kernel = kernels.first().ok_or("the example has no kernel")?;
        let module = Module::load(&kernel.text)?;
        let time = |what| run(case, &module, &kernel.entry, extent, what);
        let plain = time(Observed::Nothing)?;
        let checked = time(Observed::Checks)?;
        let counted = time(Observed::Counts)?;
        let traced = time(Observed::Timeline)?;
        println!(
            "  cost of the checks: {:.2} times, of counts in addition {:.2}, of a timeline in addition {:.2}",
            checked / plain,
            counted / checked,
            traced / counted
        );
    }
    Ok(())
}

/// Runs a case on a square matrix and prints what it took.
fn run(
    case: &Case,
    module: &Module,
    entry: &str,
    extent: u64,
    observed: Observed,
) -> Result<f64, Box<dyn Error>> {
    let mut memory = GlobalMemory::default();
    let bytes = extent * extent * u64::from(case.element.bytes());
    let src = memory.allocate(bytes, false).ok_or("no room")?;
    let dst = memory.allocate(bytes, false).ok_or("no room")?;
    let map = |address| {
        Arg::Map(TensorMap {
            element: case.element,
            address,
            extents: vec![extent, extent],
            byte_strides: vec![extent * u64::from(case.element.bytes())],
            mode: Mode::Tiled { box_extents: vec![case.boxed[1], case.boxed[0]] },
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle: case.swizzle,
            fill: Fill::Zeros,
        })
    };
    let config = LaunchConfig {
        grid: [extent as u32 / case.tile[1], extent as u32 / case.tile[0], 1],
        block: [128, 1, 1],
        dynamic_shared_bytes: case.shared_bytes,
        checks: if observed >= Observed::Checks { Checks::ALL } else { Checks::NONE },
        profile: observed >= Observed::Counts,
        trace_events: if observed >= Observed::Timeline { usize::MAX } else { 0 },
        ..LaunchConfig::default()
    };
    let start = Instant::now();
    let report = launch(module, &mut memory, entry, &config, &[map(src), map(dst)])?;
    let seconds = start.elapsed().as_secs_f64();
    if !report.findings.is_empty() {
        return Err(report.findings.render(&module.sources(|_| None)).into());
    }
    println!(
        "{} {extent} × {extent}, {}: {:.3} s, {:.1} million thread-instructions a second, {:.0} MB/s moved",
        case.name,
        observed.name(),
        seconds,
        report.thread_instructions as f64 / seconds / 1e6,
        (report.counters.loads().bytes + report.counters.stores().bytes) as f64 / seconds / 1e6,
    );
    Ok(seconds)
}
