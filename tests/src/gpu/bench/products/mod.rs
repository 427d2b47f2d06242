//! Products of matrices by the tensor cores, against cuBLAS: on the same matrices, in turns.
//!
//! A slice is many launches of one contestant one after the other, first some that do not count, so
//! that clock and cache are those of that contestant alone. In a round each has one slice, in
//! changing order; ratios are taken within a round.

pub mod contestants;
pub mod cublas;
pub mod problem;

use anyhow::{Context, ensure};
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

use self::contestants::Blocks;
use self::cublas::Cublas;
use self::problem::{Element, Problem, Way};
use super::measure::{Plan, Spread, ratio};

/// What the example and the fastest kernel without specialised warps must reach of cuBLAS, and
/// where.
const TARGET: f64 = 0.90;
const TARGET_SHAPES: [[usize; 3]; 2] = [[4096; 3], [8192; 3]];
const EXAMPLE: &str = "dense_gemm::";

/// Shapes whose edges fall within tiles, and small ones, for checks.
const RAGGED: [[usize; 3]; 5] =
    [[1000, 1032, 520], [128, 256, 64], [64, 8, 8], [136, 520, 200], [2056, 1288, 136]];

/// How products are measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// M, N and K of each product; if there are none, those of the targets, or of the checks.
    pub shapes: Vec<[usize; 3]>,
    /// Rounds that are measured.
    pub rounds: usize,
    /// Milliseconds of a slice.
    pub slice_ms: f64,
    /// The path of cuBLAS's library.
    pub cublas: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { shapes: vec![], rounds: 10, slice_ms: 100.0, cublas: None }
    }
}

/// `4096` or `4096x8192x1024`.
///
/// # Errors
///
/// What is neither.
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

/// The names of all contestants: element and kernel.
pub fn names() -> Vec<String> {
    fn of<T: Element>() -> impl Iterator<Item = String> {
        T::contestants().iter().map(|contestant| format!("{}/{}", T::NAME, contestant.kernel.name))
    }
    of::<f16>().chain(of::<bf16>()).collect()
}

/// Checks the planned contestants, and measures those that are right; a verdict for each, and one
/// for each shape with a target.
///
/// # Errors
///
/// Those of the device, outside of the contestants.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let stream = device.stream()?;
    let library = match device.id() {
        DeviceId::Cuda(_) => Cublas::load(plan.products.cublas.as_deref(), &stream),
        DeviceId::Simulator(_) => Err(anyhow::anyhow!("the simulator has no cuBLAS")),
    };
    let cublas = match library {
        Ok(cublas) => {
            println!("{{\"benchmark\": \"products\", \"cublas\": {}}}", cublas.version);
            Some(cublas)
        }
        Err(error) => {
            println!(
                "{{\"benchmark\": \"products\", \"cublas\": null, \"error\": {:?}}}",
                format!("{error:#}")
            );
            None
        }
    };
    let mut verdicts = vec![];
    let race = Race { device, stream: &stream, cublas: cublas.as_ref(), plan };
    let shapes = match &plan.products.shapes[..] {
        [] if plan.check_only => &RAGGED[..],
        [] => &TARGET_SHAPES[..],
        given => given,
    };
    for &shape in shapes {
        verdicts.extend(race.run::<f16>(shape)?);
        verdicts.extend(race.run::<bf16>(shape)?);
    }
    Ok(verdicts)
}

/// All that a race needs but the element and the shape.
struct Race<'a> {
    device: &'a Device,
    stream: &'a Stream,
    cublas: Option<&'a Cublas>,
    plan: &'a Plan,
}

impl Race<'_> {
    fn run<T: Element>(&self, shape: [usize; 3]) -> anyhow::Result<Vec<bool>> {
        let is_planned = |way: &Way<'_>| self.plan.names("products", &format!("{}/{}", T::NAME, way.name()));
        let kernels = T::contestants().iter().map(Way::Kernel).filter(is_planned);
        let ways: Vec<_> = self.cublas.map(Way::Library).into_iter().chain(kernels).collect();
        if ways.iter().all(|way| matches!(way, Way::Library(_)) && !is_planned(way)) {
            return Ok(vec![]);
        }
        let mut problem =
            Problem::<T>::new(self.device, shape).with_context(|| format!("no matrices for {shape:?}"))?;
        if let Some(launches) = self.plan.launches {
            for way in ways {
                for _ in 0..launches {
                    problem.multiply(way, self.stream)?;
                }
                self.stream.synchronize()?;
                println!("{}, \"launches\": {launches}}}", head::<T>(way, shape));
            }
            return Ok(vec![]);
        }
        let (right, mut verdicts) = self.checked(&mut problem, &ways);
        if !self.plan.check_only && !right.is_empty() {
            let speeds = self.speeds(&mut problem, &right)?;
            verdicts.extend(judge::<T>(&right, &speeds, shape));
        }
        Ok(verdicts)
    }

    /// The ways that give the right product, and whether each does.
    fn checked<'a, T: Element>(
        &self,
        problem: &mut Problem<T>,
        ways: &[Way<'a>],
    ) -> (Vec<Way<'a>>, Vec<bool>) {
        let (mut right, mut verdicts) = (vec![], vec![]);
        let mut wanted = None;
        for &way in ways {
            let head = head::<T>(way, problem.shape);
            eprintln!("checking {head}}}");
            let result = problem.check(way, self.stream, wanted.as_deref());
            verdicts.push(result.is_ok());
            match result {
                Ok(()) => {
                    if self.plan.check_only {
                        println!("{head}, \"right\": true}}");
                    }
                    wanted.get_or_insert_with(|| problem.found());
                    right.push(way);
                }
                Err(error) => println!("{head}, \"right\": false, \"error\": {:?}}}", format!("{error:#}")),
            }
        }
        (right, verdicts)
    }

    /// TFLOP/s of each way in each round.
    fn speeds<T: Element>(
        &self,
        problem: &mut Problem<T>,
        ways: &[Way<'_>],
    ) -> anyhow::Result<Vec<Vec<f64>>> {
        let options = &self.plan.products;
        let mut launches = vec![];
        for &way in ways {
            self.milliseconds(problem, way, 2)?;
            let one = self.milliseconds(problem, way, 4)? / 4.0;
            launches.push((options.slice_ms / one).ceil().clamp(1.0, 1e5) as usize);
        }
        let mut speeds = vec![vec![]; ways.len()];
        for round in 0..options.rounds {
            for turn in 0..ways.len() {
                // Every other round backwards, so that neighbours change.
                let turn = if round % 2 == 0 { turn } else { ways.len() - 1 - turn };
                let index = (round + turn) % ways.len();
                let (way, launches) = (ways[index], launches[index]);
                (0..launches.div_ceil(4)).try_for_each(|_| problem.multiply(way, self.stream))?;
                let milliseconds = self.milliseconds(problem, way, launches)?;
                speeds[index].push(problem.operations() * launches as f64 / milliseconds / 1e9);
            }
        }
        Ok(speeds)
    }

    fn milliseconds<T: Element>(
        &self,
        problem: &mut Problem<T>,
        way: Way<'_>,
        launches: usize,
    ) -> anyhow::Result<f64> {
        let start = self.stream.record()?;
        (0..launches).try_for_each(|_| problem.multiply(way, self.stream))?;
        Ok(f64::from(start.elapsed_ms(&self.stream.record()?)?))
    }
}

/// Prints the speeds, slowest first, and judges the example, and the fastest kernel without
/// specialised warps.
fn judge<T: Element>(ways: &[Way<'_>], speeds: &[Vec<f64>], shape: [usize; 3]) -> Vec<bool> {
    let median = |index: &usize| Spread::of(&speeds[*index]).median;
    let mut order: Vec<_> = (0..ways.len()).collect();
    order.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let library = ways.iter().position(|way| matches!(way, Way::Library(_)));
    let ratio_of = |index: usize| library.map(|library| ratio(&speeds[index], &speeds[library]));
    for &index in &order {
        let Spread { median, width } = Spread::of(&speeds[index]);
        print!("{}, \"tflops\": {median:.1}, \"spread\": {width:.4}", head::<T>(ways[index], shape));
        if let Some(Spread { median, width }) = ratio_of(index) {
            print!(", \"ratio_to_cublas\": {median:.4}, \"ratio_spread\": {width:.4}");
        }
        println!("}}");
    }
    let is_dense =
        |way: Way<'_>| matches!(way, Way::Kernel(contestant) if contestant.blocks == Blocks::PerTile);
    let example = ways.iter().position(|way| way.name().starts_with(EXAMPLE));
    let fastest = order.into_iter().rfind(|&index| is_dense(ways[index]));
    let mut verdicts = vec![];
    for (what, index) in [("example", example), ("fastest_dense", fastest)] {
        let Some((index, Spread { median, width })) = index.and_then(|index| Some((index, ratio_of(index)?)))
        else {
            continue;
        };
        println!(
            "{{\"benchmark\": \"products/{}\", \"shape\": {shape:?}, \"{what}\": \"{}\", \"ratio\": {median:.4}, \
             \"spread\": {width:.4}, \"wanted\": {TARGET:.2}}}",
            T::NAME,
            ways[index].name()
        );
        if TARGET_SHAPES.contains(&shape) {
            verdicts.push(median >= TARGET);
        }
    }
    verdicts
}

/// The beginning of a line about a contestant.
fn head<T: Element>(way: Way<'_>, shape: [usize; 3]) -> String {
    format!("{{\"benchmark\": \"products/{}/{}\", \"shape\": {shape:?}", T::NAME, way.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_right_for_either_element() {
        let options = Options { shapes: vec![[136, 264, 72]], ..Options::default() };
        let plan = Plan { only: EXAMPLE.to_owned(), check_only: true, products: options, ..Plan::default() };
        assert_eq!(run(&Device::simulator(), &plan).unwrap(), [true, true]);
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
