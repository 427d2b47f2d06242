//! GEMMs by the tensor cores, against cuBLAS and cuBLASLt: on the same matrices, in alternation.

pub mod contestants;
pub mod precision;
pub mod problem;
pub mod race;
pub mod report;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::json;
use tma_kernels::gemm::Choice;
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

use self::contestants::{Contestant, Role, yardstick};
use self::precision::{Bf16, E4m3, F16, Precision, S8, Tf32};
use self::problem::Problem;
use self::race::Race;
use self::report::{Format, Line, Ratio, Verdict};
use super::libraries::{cublas::Cublas, cublaslt::CublasLt, types};
use super::measure::Plan;
use super::slices::{Instruments, Measured, Slices};

/// The least ratio to cuBLAS of the example and of the fastest kernel without specialised warps,
/// and the shapes and precisions for which it is required.
const TARGET: f64 = 0.90;
const TARGET_SHAPES: [[usize; 3]; 2] = [[4096; 3], [8192; 3]];
const TARGET_PRECISIONS: [&str; 2] = [F16::NAME, Bf16::NAME];
const EXAMPLE: &str = "dense_gemm::";
const CUBLAS: &str = "cublas";

/// Small shapes, and shapes whose edges fall within tiles, for checks.
const RAGGED: [[usize; 3]; 5] =
    [[1000, 1040, 528], [128, 256, 64], [64, 16, 16], [136, 528, 208], [2056, 1296, 144]];

/// How GEMMs are measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// M, N and K of each GEMM; if empty, the shapes of the targets, or of the checks.
    pub shapes: Vec<[usize; 3]>,
    /// Use the [suite](Precision::SUITE) of each precision instead.
    pub suite: bool,
    /// The number of measured rounds.
    pub rounds: usize,
    /// The milliseconds of a slice.
    pub slice_ms: f64,
    /// The folder of cuBLAS's libraries.
    pub cublas: Option<PathBuf>,
    /// The number of algorithms of cuBLASLt among which the fastest is chosen.
    pub algorithms: usize,
    /// The choices for `tma_kernels::gemm`, each a contestant.
    pub choices: Vec<Choice>,
    /// A folder with PTX from elsewhere.
    pub yardstick: Option<PathBuf>,
    /// How results are printed.
    pub format: Format,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shapes: vec![],
            suite: false,
            rounds: 10,
            slice_ms: 100.0,
            cublas: None,
            algorithms: 16,
            choices: vec![],
            yardstick: None,
            format: Format::default(),
        }
    }
}

/// Parses `4096` or `4096x8192x1024`.
///
/// # Errors
///
/// A text of another form.
pub fn shape(text: &str) -> anyhow::Result<[usize; 3]> {
    let extents: Vec<usize> = text.split('x').map(str::parse).collect::<Result<_, _>>()?;
    let shape = match extents[..] {
        [extent] => [extent; 3],
        [m, n, k] => [m, n, k],
        _ => anyhow::bail!("`{text}` is no shape: write `4096`, or M, N and K as `4096x8192x1024`"),
    };
    ensure!(
        shape.iter().all(|&extent| extent > 0) && shape[1] % 8 == 0 && shape[2] % 8 == 0,
        "`{text}`: N and K must be multiples of 8, since rows begin at multiples of 16 bytes"
    );
    Ok(shape)
}

/// Returns the names of all kernels: precision and kernel.
pub fn names() -> Vec<String> {
    fn of<P: Precision>() -> impl Iterator<Item = String> {
        contestants::kernels::<P>().into_iter().map(|kernel| format!("{}/{}", P::NAME, kernel.name))
    }
    of::<F16>().chain(of::<Bf16>()).chain(of::<Tf32>()).chain(of::<E4m3>()).chain(of::<S8>()).collect()
}

/// Checks the planned contestants, and measures those with right results. Returns a verdict for
/// each, and one for each shape with a target.
///
/// # Errors
///
/// Errors of the device outside of the contestants.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let stream = device.stream()?;
    let rivals = Rivals::load(device, &stream, &plan.products);
    let instruments = Instruments::load(device)?;
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let race = Race { slices, rounds: plan.products.rounds };
    let benchmark = Products { device, stream: &stream, rivals: &rivals, race, plan };
    let mut verdicts = benchmark.precision::<F16>()?;
    verdicts.extend(benchmark.precision::<Bf16>()?);
    verdicts.extend(benchmark.precision::<Tf32>()?);
    verdicts.extend(benchmark.precision::<E4m3>()?);
    verdicts.extend(benchmark.precision::<S8>()?);
    Ok(verdicts)
}

/// The libraries that are installed on this machine.
struct Rivals {
    cublas: Option<Cublas>,
    cublaslt: Option<CublasLt>,
}

impl Rivals {
    /// Loads the available libraries, and prints their versions.
    fn load(device: &Device, stream: &Stream, options: &Options) -> Self {
        if matches!(device.id(), DeviceId::Simulator(_)) {
            return Self { cublas: None, cublaslt: None };
        }
        let folder = options.cublas.as_deref();
        let cublas = available("cuBLAS", Cublas::load(folder, stream));
        let cublaslt = available("cuBLASLt", CublasLt::load(folder, device));
        let line = json!({
            "benchmark": "products", "device": device.name(),
            "cublas": cublas.as_ref().map(|library| library.version),
            "cublaslt": cublaslt.as_ref().map(|library| library.version),
            "rounds": options.rounds, "slice_ms": options.slice_ms,
        });
        println!("{line}");
        Self { cublas, cublaslt }
    }
}

/// Returns the library, or prints the reason why it is missing on the standard error.
fn available<T>(name: &str, library: anyhow::Result<T>) -> Option<T> {
    library.inspect_err(|error| eprintln!("without {name}: {error:#}")).ok()
}

/// Everything that the benchmark needs besides the precision and the shape.
struct Products<'a> {
    device: &'a Device,
    stream: &'a Stream,
    rivals: &'a Rivals,
    race: Race<'a>,
    plan: &'a Plan,
}

impl Products<'_> {
    fn precision<P: Precision>(&self) -> anyhow::Result<Vec<bool>> {
        let options = &self.plan.products;
        let shapes = match &options.shapes[..] {
            _ if options.suite => P::SUITE,
            [] if self.plan.check_only => &RAGGED,
            [] => &TARGET_SHAPES,
            given => given,
        };
        let (mut verdicts, mut lines) = (vec![], vec![]);
        for &shape in shapes {
            verdicts.extend(self.shape::<P>(shape, &mut lines)?);
        }
        let summaries = report::summaries(&lines);
        match options.format {
            Format::Json => summaries.iter().for_each(|summary| println!("{}", json!(summary))),
            Format::Table if summaries.is_empty() => {}
            Format::Table => println!("{}: all shapes\n{}", P::NAME, report::table_of(&summaries)),
        }
        Ok(verdicts)
    }

    fn shape<P: Precision>(&self, shape: [usize; 3], lines: &mut Vec<Line>) -> anyhow::Result<Vec<bool>> {
        let options = &self.plan.products;
        let mut kernels = contestants::kernels::<P>();
        kernels.extend(options.choices.iter().map(|&choice| contestants::library(Some(choice))));
        if let Some(folder) = &options.yardstick {
            kernels.extend(yardstick::of_folder(folder)?);
        }
        let is_planned = |name: &str| self.plan.names("products", &format!("{}/{name}", P::NAME));
        kernels.retain(|kernel| is_planned(&kernel.name));
        if kernels.is_empty() {
            return Ok(vec![]);
        }
        let mut problem =
            Problem::<P>::new(self.device, shape).with_context(|| format!("no matrices for {shape:?}"))?;
        if let Some(launches) = self.plan.launches {
            return self.launched(&mut problem, &kernels, launches).map(|()| vec![]);
        }
        let product = self.rivals.cublaslt.as_ref().and_then(|library| {
            available("cuBLASLt's product", library.product(P::TYPES, shape, options.algorithms))
        });
        let cublas = self.rivals.cublas.as_ref().filter(|_| P::TYPES.operand != types::E4M3);
        let mut all: Vec<_> = cublas.into_iter().map(contestants::cublas::<P>).collect();
        if let Some(product) = &product {
            let best = if self.plan.check_only { 0 } else { self.best(&mut problem, product)? };
            all.push(contestants::cublaslt("cublaslt_first", product, 0));
            all.push(contestants::cublaslt("cublaslt_best", product, best));
        }
        all.extend(kernels);

        let (right, mut verdicts) = self.checked(&mut problem, all);
        if !self.plan.check_only && !right.is_empty() {
            let measured = self.race.run(&mut problem, &right)?;
            let lines_of_shape = report::lines(&right, &measured, shape);
            let judged = judge(&right, &measured, shape);
            match options.format {
                Format::Json => {
                    lines_of_shape.iter().for_each(|line| println!("{}", json!(line)));
                    judged.iter().for_each(|verdict| println!("{}", json!(verdict)));
                }
                Format::Table => {
                    print!("{}", report::table(&lines_of_shape));
                    judged.iter().for_each(|verdict| println!("{}", verdict.text()));
                    println!();
                }
            }
            lines.extend(lines_of_shape);
            verdicts.extend(judged.iter().map(Verdict::is_met));
        }
        Ok(verdicts)
    }

    /// Returns the fastest of cuBLASLt's algorithms, ignoring those that are wrong or cannot be
    /// launched.
    fn best<P: Precision>(
        &self,
        problem: &mut Problem<P>,
        product: &super::libraries::cublaslt::Product<'_>,
    ) -> anyhow::Result<usize> {
        let algorithms = 0..product.algorithms();
        let mut taking_part: Vec<usize> = algorithms.collect();
        taking_part.retain(|&algorithm| {
            let contestant = contestants::cublaslt("cublaslt", product, algorithm);
            available("an algorithm of cuBLASLt", problem.check(&contestant, self.stream, None)).is_some()
        });
        let contestant = |&algorithm: &usize| contestants::cublaslt("cublaslt", product, algorithm);
        let contestants: Vec<_> = taking_part.iter().map(contestant).collect();
        let fastest = self.race.fastest(problem, &contestants)?;
        let best = fastest.map_or(0, |index| taking_part[index]);
        let line = json!({
            "benchmark": format!("products/{}/cublaslt", P::NAME), "shape": problem.shape,
            "algorithms": product.algorithms(), "right": taking_part.len(), "best": best,
        });
        println!("{line}");
        Ok(best)
    }

    /// Returns the contestants with right results, and a verdict for each that is not a library.
    fn checked<'a, P: Precision>(
        &self,
        problem: &mut Problem<P>,
        contestants: Vec<Contestant<'a, P>>,
    ) -> (Vec<Contestant<'a, P>>, Vec<bool>) {
        let (mut right, mut verdicts) = (vec![], vec![]);
        let mut wanted = None;
        for contestant in contestants {
            let result = problem.check(&contestant, self.stream, wanted.as_deref());
            let name = format!("products/{}/{}", P::NAME, contestant.name);
            if contestant.role != Role::Library {
                verdicts.push(result.is_ok());
            }
            match result {
                Ok(()) => {
                    if self.plan.check_only {
                        println!("{}", json!({"benchmark": name, "shape": problem.shape, "right": true}));
                    }
                    wanted.get_or_insert_with(|| problem.found());
                    right.push(contestant);
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    let line =
                        json!({"benchmark": name, "shape": problem.shape, "right": false, "error": error});
                    println!("{line}");
                }
            }
        }
        (right, verdicts)
    }

    /// Launches each kernel this many times, for a profiler.
    fn launched<P: Precision>(
        &self,
        problem: &mut Problem<P>,
        kernels: &[Contestant<'_, P>],
        launches: usize,
    ) -> anyhow::Result<()> {
        for kernel in kernels {
            (0..launches).try_for_each(|_| kernel.multiply(self.stream, &mut problem.matrices))?;
            self.stream.synchronize()?;
            let name = format!("products/{}/{}", P::NAME, kernel.name);
            println!("{}", json!({"benchmark": name, "shape": problem.shape, "launches": launches}));
        }
        Ok(())
    }
}

/// Judges the example, and the fastest kernel without specialised warps, for shapes with a target.
fn judge<P: Precision>(
    contestants: &[Contestant<'_, P>],
    measured: &[Vec<Measured>],
    shape: [usize; 3],
) -> Vec<Verdict> {
    if !TARGET_SHAPES.contains(&shape) || !TARGET_PRECISIONS.contains(&P::NAME) {
        return vec![];
    }
    let Some(cublas) = contestants.iter().position(|contestant| contestant.name == CUBLAS) else {
        return vec![];
    };
    let median = |&index: &usize| report::of_speeds(&measured[index]).median;
    let dense = (0..contestants.len()).filter(|&index| contestants[index].role == Role::Dense);
    let fastest = dense.max_by(|a, b| median(a).total_cmp(&median(b)));
    let example = contestants.iter().position(|contestant| contestant.name.starts_with(EXAMPLE));
    let verdict = |(target, index): (&'static str, Option<usize>)| {
        let index = index?;
        let Ratio { median, spread, .. } = report::ratio_of(&measured[index], &measured[cublas]);
        let (benchmark, contestant) = (format!("products/{}", P::NAME), contestants[index].name.clone());
        Some(Verdict { benchmark, shape, target, contestant, ratio: median, spread, wanted: TARGET })
    };
    [("example", example), ("fastest_dense", fastest)].into_iter().filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_right_in_every_precision() {
        let options = Options { shapes: vec![[136, 272, 80]], ..Options::default() };
        let plan = Plan { only: EXAMPLE.to_owned(), check_only: true, products: options, ..Plan::default() };
        assert_eq!(run(&Device::simulator(), &plan).unwrap(), [true; 5]);
    }

    #[test]
    fn targets_are_judged_against_cublas_alone() {
        let contestant = |name: &str, role| Contestant::<Bf16>::new(name, role, |_, _| Ok(()));
        let contestants = [
            contestant("cublas", Role::Library),
            contestant("cublaslt_best", Role::Library),
            contestant("dense_gemm::bf16_bf16_f32_k_k", Role::Dense),
            contestant("wide", Role::Dense),
            contestant("persistent", Role::Kernel),
        ];
        let measured =
            [600.0, 900.0, 530.0, 545.0, 800.0].map(|tflops| vec![Measured { tflops, state: None }; 3]);
        let verdicts = judge(&contestants, &measured, [4096; 3]);
        assert_eq!(verdicts.iter().map(Verdict::is_met).collect::<Vec<_>>(), [false, true]);
        assert!(verdicts[0].text().ends_with("reaches 0.883 of cublas; 0.90 is wanted: missed"));
        assert_eq!(verdicts[1].contestant, "wide");
        assert!(judge(&contestants, &measured, [4096, 4096, 64]).is_empty(), "no target there");
        assert!(judge(&contestants[1..], &measured[1..], [4096; 3]).is_empty(), "no cuBLAS");
    }

    #[test]
    fn kernels_are_measured_in_rounds_on_the_simulator_too() {
        let options = Options { shapes: vec![[8, 16, 64]], rounds: 2, slice_ms: 1e-3, ..Options::default() };
        let plan = Plan { only: "bf16/dense_gemm".to_owned(), products: options, ..Plan::default() };
        assert_eq!(run(&Device::simulator(), &plan).unwrap(), [true]);
    }

    #[test]
    fn a_shape_is_one_extent_or_three() {
        assert_eq!(shape("4096").unwrap(), [4096; 3]);
        assert_eq!(shape("4096x8192x1024").unwrap(), [4096, 8192, 1024]);
        for wrong in ["", "4096x8192", "0", "8x8x8x8", "64x64x12", "64x12x64", "-8"] {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
    }
}
