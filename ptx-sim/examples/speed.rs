//! How fast the simulator is on one core, as rows of the table in `docs/benchmarks.md`:
//! `cargo run --release -p ptx-sim --example speed`, or `-- 31` for 31 rounds.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use ptx_sim::tensor_map::{DataType, Fill, Interleave, Mode, Swizzle};
use ptx_sim::{Arg, Checks, GlobalMemory, LaunchConfig, Module, TensorMap, launch};

/// A kernel of the examples that takes two maps of a matrix, and its tile.
struct Case {
    name: &'static str,
    element: DataType,
    /// Rows and columns of a box, and of what a block does.
    boxed: [u32; 2],
    tile: [u32; 2],
    swizzle: Swizzle,
    shared_bytes: u32,
}

const CASES: [Case; 2] = [
    Case {
        name: "transpose",
        element: DataType::F32,
        boxed: [64, 32],
        tile: [64, 64],
        swizzle: Swizzle::B128,
        shared_bytes: 32768 + 8,
    },
    Case {
        name: "tma_copy",
        element: DataType::F16,
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
    const ALL: [Self; 4] = [Self::Nothing, Self::Checks, Self::Counts, Self::Timeline];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no checks",
            Self::Checks => "all checks, as by default",
            Self::Counts => "checks and counts",
            Self::Timeline => "checks, counts and a timeline",
        }
    }
}

/// What a launch took.
#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    thread_instructions: u64,
}

/// Rounds, unless the command line says another number.
const ROUNDS: usize = 11;
/// Rows and columns of the matrices.
const EXTENT: u64 = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    println!(
        "| what | seconds | million thread-instructions a second | times the row above | least to most |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for case in &CASES {
        let path = format!("examples/src/bin/{}.rs", case.name);
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&path))?;
        let compiled = tma_codegen::compile(&path, &source, tma_codegen::Target::default())?;
        let kernel = compiled.kernels.first().ok_or("the example has no kernel")?;
        let module = Module::load(&kernel.text)?;
        let rounds = in_turns(rounds, |observed| run(case, &module, &kernel.entry, observed))?;
        for observed in Observed::ALL {
            print_row(case, observed, &rounds);
        }
    }
    Ok(())
}

/// Each of the four once a round, in turns of who begins, after a round that does not count.
fn in_turns(
    rounds: usize,
    run: impl Fn(Observed) -> Result<Run, Box<dyn Error>>,
) -> Result<Vec<[Run; 4]>, Box<dyn Error>> {
    let mut all = Vec::new();
    for round in 0..=rounds {
        let mut runs = [Run { seconds: 0.0, thread_instructions: 0 }; 4];
        for turn in 0..4 {
            let observed = Observed::ALL[(round + turn) % 4];
            runs[observed as usize] = run(observed)?;
        }
        if round > 0 {
            all.push(runs);
        }
    }
    Ok(all)
}

/// The medians over the rounds. A ratio is taken within a round.
fn print_row(case: &Case, observed: Observed, rounds: &[[Run; 4]]) {
    let index = observed as usize;
    let sorted = |value: &dyn Fn(&[Run; 4]) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |values: &[f64]| values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
    let seconds = median(&sorted(&|runs| runs[index].seconds));
    let speed = median(&sorted(&|runs| runs[index].thread_instructions as f64 / runs[index].seconds / 1e6));
    print!("| `{}`, {} | {seconds:.3} | {speed:.1} |", case.name, observed.name());
    if index == 0 {
        println!(" | |");
        return;
    }
    let ratios = sorted(&|runs| runs[index].seconds / runs[index - 1].seconds);
    let (least, most) = (ratios.first().unwrap_or(&f64::NAN), ratios.last().unwrap_or(&f64::NAN));
    println!(" {:.2} | {least:.2} to {most:.2} |", median(&ratios));
}

/// Runs a case on a square matrix, on one core.
fn run(case: &Case, module: &Module, entry: &str, observed: Observed) -> Result<Run, Box<dyn Error>> {
    let mut memory = GlobalMemory::default();
    let bytes = EXTENT * EXTENT * u64::from(case.element.bytes());
    let src = memory.allocate(bytes, false).ok_or("no room")?;
    let dst = memory.allocate(bytes, false).ok_or("no room")?;
    let map = |address| {
        Arg::Map(TensorMap {
            element: case.element,
            address,
            extents: vec![EXTENT; 2],
            byte_strides: vec![EXTENT * u64::from(case.element.bytes())],
            mode: Mode::Tiled { box_extents: vec![case.boxed[1], case.boxed[0]] },
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle: case.swizzle,
            fill: Fill::Zeros,
        })
    };
    let config = LaunchConfig {
        grid: [EXTENT as u32 / case.tile[1], EXTENT as u32 / case.tile[0], 1],
        block: [128, 1, 1],
        host_threads: 1,
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
    Ok(Run { seconds, thread_instructions: report.thread_instructions })
}
