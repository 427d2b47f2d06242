//! How fast the simulator is on one core: launches of two examples, with more and more looked at.
//!
//! `docs/benchmarks.md` has the figures, and the targets.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, SamplingMode, Throughput};
use ptx_sim::tensor_map::{DataType, Fill, Interleave, Mode, Swizzle};
use ptx_sim::{Arg, Checks, GlobalMemory, LaunchConfig, Module, TensorMap, launch};

/// A kernel of the examples that takes two maps of a matrix, and its tile.
struct Case {
    name: &'static str,
    element: DataType,
    /// Rows and columns of a box, one of which each block moves.
    tile: [u32; 2],
    threads: u32,
    shared_bytes: u32,
}

const CASES: [Case; 2] = [
    Case { name: "transpose", element: DataType::F32, tile: [64, 64], threads: 512, shared_bytes: 32768 + 8 },
    Case { name: "tma_copy", element: DataType::F16, tile: [32, 256], threads: 128, shared_bytes: 16384 + 8 },
];

/// The checks of a launch: each level adds to those before it.
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
            Self::Checks => "checks",
            Self::Counts => "checks and counts",
            Self::Timeline => "checks, counts and timeline",
        }
    }
}

/// Rows and columns of the matrices.
const EXTENT: u64 = 1024;

/// A case, compiled.
struct Kernel {
    case: &'static Case,
    module: Module,
    entry: String,
}

fn kernels() -> Vec<Kernel> {
    let kernels = CASES.iter().map(|case| {
        let path = format!("examples/src/bin/{}.rs", case.name);
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&path))?;
        let compiled = tma_codegen::compile(&path, &source, tma_codegen::Target::default())?;
        let kernel = compiled.kernels.into_iter().next().ok_or("the example has no kernel")?;
        Ok(Kernel { case, module: Module::load(&kernel.text)?, entry: kernel.entry })
    });
    kernels.collect::<Result<_, Box<dyn Error>>>().expect("the examples compile")
}

/// Seconds of a launch, and thread-instructions per second.
fn launches(criterion: &mut Criterion) {
    for kernel in kernels() {
        let mut group = criterion.benchmark_group(kernel.case.name);
        let (_, instructions) = kernel.run(Observed::Nothing);
        group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(instructions));
        for observed in Observed::ALL {
            group.bench_function(observed.name(), |bencher| {
                bencher.iter_custom(|runs| (0..runs).map(|_| kernel.run(observed).0).sum());
            });
        }
    }
}

/// How many times as long a launch takes as one that looks at less. The two take turns, and who
/// begins changes, so that a ratio is one of neighbours in time.
fn ratios(criterion: &mut Criterion<Ratio>) {
    for kernel in kernels() {
        let mut group = criterion.benchmark_group(format!("{} ratio", kernel.case.name));
        group.sampling_mode(SamplingMode::Flat);
        for [less, more] in Observed::ALL.array_windows() {
            let id = format!("{} over {}", more.name(), less.name());
            group.bench_function(id, |bencher| {
                let mut round = 0;
                bencher.iter_custom(|rounds| {
                    (0..rounds)
                        .map(|_| {
                            round += 1;
                            let order = if round % 2 == 0 { [less, more] } else { [more, less] };
                            let [first, second] = order.map(|&observed| kernel.run(observed).0.as_secs_f64());
                            if round % 2 == 0 { second / first } else { first / second }
                        })
                        .sum()
                });
            });
        }
    }
}

/// A measurement that has no unit: criterion adds up the ratios of a sample, and takes their mean.
struct Ratio;

impl Measurement for Ratio {
    type Intermediate = ();
    type Value = f64;

    // Ratios are handed over by `iter_custom`, which asks for neither.
    fn start(&self) {}

    fn end(&self, (): ()) -> f64 {
        f64::NAN
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, ratio: &f64) -> f64 {
        *ratio
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for Ratio {
    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "times"
    }

    fn scale_throughputs(&self, _: f64, _: &Throughput, _: &mut [f64]) -> &'static str {
        "times"
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "times"
    }
}

impl Kernel {
    /// Runs it on a square matrix, on one core: how long that took, and its thread-instructions.
    fn run(&self, observed: Observed) -> (Duration, u64) {
        let case = self.case;
        let mut memory = GlobalMemory::default();
        let bytes = EXTENT * EXTENT * u64::from(case.element.bytes());
        let [src, dst] = [(); 2].map(|()| memory.allocate(bytes, false).expect("there is room"));
        let map = |address| {
            Arg::Map(TensorMap {
                element: case.element,
                address,
                extents: vec![EXTENT; 2],
                byte_strides: vec![EXTENT * u64::from(case.element.bytes())],
                mode: Mode::Tiled { box_extents: vec![case.tile[1], case.tile[0]] },
                element_strides: vec![1, 1],
                interleave: Interleave::None,
                swizzle: Swizzle::None,
                fill: Fill::Zeros,
            })
        };
        let config = LaunchConfig {
            grid: [EXTENT as u32 / case.tile[1], EXTENT as u32 / case.tile[0], 1],
            block: [case.threads, 1, 1],
            host_threads: 1,
            dynamic_shared_bytes: case.shared_bytes,
            checks: if observed >= Observed::Checks { Checks::ALL } else { Checks::NONE },
            profile: observed >= Observed::Counts,
            trace_events: if observed >= Observed::Timeline { usize::MAX } else { 0 },
            ..LaunchConfig::default()
        };
        let start = Instant::now();
        let report = launch(&self.module, &mut memory, &self.entry, &config, &[map(src), map(dst)]);
        let took = start.elapsed();
        let report = report.expect("the launch is one that the simulator takes");
        assert!(report.findings.is_empty(), "{}", report.findings.render(&self.module.sources(|_| None)));
        (took, report.thread_instructions)
    }
}

fn main() {
    let config = || Criterion::default().sample_size(11).measurement_time(Duration::from_secs(6));
    launches(&mut config().configure_from_args());
    ratios(&mut config().with_measurement(Ratio).configure_from_args());
    config().configure_from_args().final_summary();
}
