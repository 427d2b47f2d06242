//! Measures the speed of kernels on a GPU: the examples against the driver's own copy, variants of
//! one task against each other, GEMMs against cuBLAS, attention in alternation with other
//! processes, and launches against the driver's own launch.

pub mod additions;
pub mod append;
pub mod attention;
pub mod attention_backward;
pub mod copies;
pub mod decode;
pub mod experts;
pub mod few_rows;
pub mod gradients;
pub mod host_time;
pub mod kernels;
pub mod latents;
pub mod launches;
pub mod libraries;
pub mod linear_loss;
pub mod measure;
pub mod model;
pub mod probes;
pub mod products;
pub mod scales;
pub mod serve;
pub mod slices;
pub mod streams;
pub mod training;

use anyhow::ensure;
use tma_runtime::Device;

use self::measure::Plan;
use super::runner::Tally;

/// Returns for each contestant of a benchmark whether its result is right.
type Check = fn(&Device, &Plan) -> anyhow::Result<Vec<bool>>;

/// A benchmark.
struct Benchmark {
    name: &'static str,
    contestants: fn() -> Vec<String>,
    /// Prints JSON lines, and returns for each target whether it is reached.
    run: fn(&Device, &Plan) -> anyhow::Result<Vec<bool>>,
    /// Checks the results of the contestants without measuring.
    check: Option<Check>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark { name: "copies", contestants: || named(copies::CONTESTANTS), run: copies::run, check: None },
    Benchmark {
        name: "reduce_add",
        contestants: || named(additions::CONTESTANTS),
        run: additions::run,
        check: Some(|device, _| additions::check(device).map(|()| vec![true])),
    },
    Benchmark {
        name: "multicast",
        contestants: || named(streams::CONTESTANTS),
        run: streams::run,
        check: Some(|device, _| streams::check(device).map(|()| vec![true])),
    },
    Benchmark {
        name: "release_fence",
        contestants: || named(scales::CONTESTANTS),
        run: scales::run,
        check: Some(|device, _| scales::check(device).map(|()| vec![true])),
    },
    Benchmark {
        name: "launch_overhead",
        contestants: || named(launches::CONTESTANTS),
        run: launches::run,
        check: None,
    },
    Benchmark {
        name: "host_time",
        contestants: || named(host_time::CONTESTANTS),
        run: host_time::run,
        check: None,
    },
    Benchmark { name: "probes", contestants: || named(probes::CONTESTANTS), run: probes::run, check: None },
    Benchmark {
        name: "products",
        contestants: products::names,
        run: products::run,
        check: Some(products::run),
    },
    Benchmark {
        name: "attention",
        contestants: attention::names,
        run: attention::run,
        check: Some(attention::check),
    },
    Benchmark {
        name: "attention_backward",
        contestants: attention_backward::names,
        run: attention_backward::run,
        check: Some(attention_backward::check_short),
    },
    Benchmark { name: "append", contestants: append::names, run: append::run, check: Some(append::check) },
    Benchmark { name: "decode", contestants: decode::names, run: decode::run, check: Some(decode::check) },
    Benchmark {
        name: "experts",
        contestants: experts::names,
        run: experts::run,
        check: Some(experts::check),
    },
    Benchmark {
        name: "few_rows",
        contestants: few_rows::names,
        run: few_rows::run,
        check: Some(few_rows::run),
    },
    Benchmark {
        name: "latents",
        contestants: latents::names,
        run: latents::run,
        check: Some(latents::check),
    },
    Benchmark {
        name: "linear_loss",
        contestants: linear_loss::names,
        run: linear_loss::run,
        check: Some(linear_loss::check),
    },
    Benchmark { name: "model", contestants: model::names, run: model::run, check: None },
];

fn named(contestants: &[&str]) -> Vec<String> {
    contestants.iter().map(|&name| name.to_owned()).collect()
}

/// Measures the benchmarks of the plan, and prints a JSON line per result.
///
/// # Errors
///
/// Errors of the device, a contestant with a wrong result, and a plan that names none.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Tally> {
    let planned = |benchmark: &&Benchmark| {
        (benchmark.contestants)().iter().any(|contestant| plan.names(benchmark.name, contestant))
    };
    let planned: Vec<_> = BENCHMARKS.iter().filter(planned).collect();
    ensure!(!planned.is_empty(), "no benchmark has `{}` in its name; there are {}", plan.only, all_names());
    let mut verdicts = vec![];
    for benchmark in planned {
        let measured = if plan.check_only { benchmark.check } else { Some(benchmark.run) };
        verdicts.extend(measured.map_or(Ok(vec![]), |measured| measured(device, plan))?);
    }
    let passed = verdicts.iter().filter(|&&met| met).count();
    Ok(Tally { passed, failed: verdicts.len() - passed })
}

/// Returns every `benchmark/contestant`.
fn all_names() -> String {
    let of = |benchmark: &Benchmark| {
        let name = |contestant: &String| format!("{}/{contestant}", benchmark.name);
        (benchmark.contestants)().iter().map(name).collect::<Vec<_>>()
    };
    BENCHMARKS.iter().flat_map(of).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_there_is_not_is_answered_with_those_that_there_are() {
        let plan = Plan { only: "load_by_all".to_owned(), launches: Some(1), ..Plan::default() };
        let error = run(&Device::simulator(), &plan).map(drop).unwrap_err().to_string();
        assert!(error.contains("`load_by_all`") && error.contains("multicast/load_by_each::six"), "{error}");
    }

    #[test]
    fn a_contestant_is_launched_as_often_as_planned() {
        let plan = |only: &str| Plan { only: only.to_owned(), launches: Some(3), ..Plan::default() };
        for only in ["launch_overhead/", "overhead/bare"] {
            let tally = run(&Device::simulator(), &plan(only)).unwrap();
            assert_eq!(tally, Tally { passed: 0, failed: 0 }, "nothing is judged");
        }
    }
}
