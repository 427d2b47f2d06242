//! Compile times of single kernels inside a running process, for the examples: the time to their
//! PTX, in release and in debug builds, and the time to the error of a misspelt word.
//!
//! Needs no GPU. `docs/benchmarks.md` has the figures and the targets.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use tma_codegen::{Checks, Target, check, compile_with};
use tma_tests::sources::examples;

fn ptx(criterion: &mut Criterion) {
    for checks in [Checks::Off, Checks::On] {
        let mut group = criterion.benchmark_group(format!("PTX, checks {}", checks.name()));
        for source in examples() {
            group.bench_with_input(BenchmarkId::from_parameter(source.name), source, |bencher, source| {
                bencher.iter(|| {
                    let compiled =
                        compile_with(source.path, black_box(source.text), Target::default(), checks);
                    compiled.unwrap_or_else(|failure| panic!("{}:\n{failure}", source.path))
                });
            });
        }
    }
}

fn error(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("error");
    for source in examples() {
        // Every example declares something in shared memory. Here the first declaration has a
        // misspelt initialiser.
        let misspelt = source.text.replacen("= shared()", "= sharde()", 1);
        group.bench_with_input(BenchmarkId::from_parameter(source.name), &misspelt, |bencher, text| {
            bencher.iter(|| check(source.path, black_box(text)).expect_err("it is misspelt").to_string());
        });
    }
}

fn main() {
    let config = Criterion::default().sample_size(25).warm_up_time(Duration::from_millis(500));
    let mut criterion = config.measurement_time(Duration::from_secs(1)).configure_from_args();
    ptx(&mut criterion);
    error(&mut criterion);
    criterion.final_summary();
}
