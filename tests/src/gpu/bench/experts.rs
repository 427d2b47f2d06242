//! Grouped GEMMs, where each group of rows has its own matrix, and scaled GEMMs of `e4m3`, both by
//! `tma_kernels`. As for [attention](super::attention), the rivals run in other processes:
//! `tests/rivals` starts them, and requests [slices in alternation](super::serve) from this
//! program.

use anyhow::ensure;
use serde_json::json;
use tma_kernels::gemm::{GroupedOptions, GroupedWorkspace, Scales, gemm_grouped, gemm_scaled};
use tma_runtime::prelude::*;

use super::measure::{Plan, Spread};
use super::products::problem::normal;
use super::slices::{Instruments, Queue, Slices};
use crate::random::{hash, noise_of};

/// The number of columns of K, and of rows of B, that share a scale.
const BLOCK: usize = 128;
/// The number of elements of the result that the host computes.
const SAMPLES: u64 = 500;

/// A GEMM with its operands and its result, to be queued repeatedly.
pub struct Task {
    /// Queues the GEMM.
    multiply: Box<Multiply>,
    /// The number of operations of one launch.
    pub operations: f64,
}

type Multiply = dyn FnMut(&Stream) -> anyhow::Result<()>;

impl Task {
    /// Queues the GEMM once.
    ///
    /// # Errors
    ///
    /// Errors of the launch.
    pub fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        (self.multiply)(stream)
    }
}

/// A kernel, and how tasks for it are made and checked.
pub struct Contestant {
    /// The name in results.
    pub name: &'static str,
    /// Makes a task of this shape, and compares its result with what the host computes.
    pub task: fn(&Device, [usize; 3]) -> anyhow::Result<Task>,
    /// The shapes that are measured, the same as in `tests/rivals/torch_rivals.py`.
    shapes: &'static [[usize; 3]],
    /// The shape that is checked without measuring.
    small: [usize; 3],
}

/// All contestants.
pub static CONTESTANTS: [Contestant; 2] = [
    Contestant {
        name: "grouped/bf16/tma_kernels",
        task: groups,
        shapes: &[[8, 4096, 7168], [8, 7168, 2048], [64, 4096, 7168], [64, 7168, 2048]],
        small: [2, 72, 136],
    },
    Contestant {
        name: "scaled/e4m3/tma_kernels",
        task: scaled,
        shapes: &[
            [4096, 7168, 2048],
            [8192, 7168, 7168],
            [4096, 4096, 7168],
            [4096, 7168, 16384],
            [128, 7168, 2048],
        ],
        small: [136, 200, 272],
    },
];

/// Returns the number of rows of each group: ragged, and the same as in `torch_rivals.py`.
fn rows_of(groups: usize) -> Vec<usize> {
    (0..groups).map(|i| 128 * (1 + 37 * i % 16) - 13 * i % 128).collect()
}

/// Compares sampled elements of a result of `columns` columns with their expected values.
fn compare(found: &[bf16], columns: usize, wanted: impl Fn(usize, usize) -> f64) -> anyhow::Result<()> {
    for sample in 0..SAMPLES.min(found.len() as u64) {
        let place = (hash(94, sample) % found.len() as u64) as usize;
        let (row, column) = (place / columns, place % columns);
        let (found, wanted) = (found[place].to_f64(), wanted(row, column));
        // `bf16` rounds by 2^-9; the absolute part covers cancellation in the sums.
        let is_right = (found - wanted).abs() <= wanted.abs() / 128.0 + 0.05;
        ensure!(is_right, "row {row} column {column} is {found}, not {wanted}");
    }
    Ok(())
}

fn groups(device: &Device, [groups, n, k]: [usize; 3]) -> anyhow::Result<Task> {
    let rows = rows_of(groups);
    let mut m = 0;
    let mut ends = vec![];
    for rows in rows {
        m += rows;
        ends.push(m);
    }
    let numbers = |seed, len| noise_of(len, |i| bf16::from_f64(normal(seed, i)));
    let (host_a, host_b) = (numbers(95, m * k), numbers(96, groups * n * k));
    let (a, b) = (device.tensor(&host_a, [m, k])?, device.tensor(&host_b, [groups, n, k])?);
    let of_device = ends.iter().map(|&end| u32::try_from(end)).collect::<Result<Vec<_>, _>>()?;
    let of_device = device.tensor(&of_device, [groups])?;
    let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
    let mut workspace = GroupedWorkspace::new(device)?;
    let options = GroupedOptions { transpose_b: true, ..GroupedOptions::default() };
    gemm_grouped(device, &a, &b, &of_device, &mut c, options)?;
    compare(&c.to_vec()?, n, |row, column| {
        let group = ends.partition_point(|&end| end <= row);
        let (x, y) = (&host_a[row * k..][..k], &host_b[(group * n + column) * k..][..k]);
        x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
    })?;
    let multiply = Box::new(move |stream: &Stream| {
        let options = GroupedOptions {
            transpose_b: true,
            workspace: Some(&mut workspace),
            ..GroupedOptions::default()
        };
        Ok(gemm_grouped(stream, &a, &b, &of_device, &mut c, options)?)
    });
    Ok(Task { multiply, operations: 2.0 * (m * n * k) as f64 })
}

fn scaled(device: &Device, [m, n, k]: [usize; 3]) -> anyhow::Result<Task> {
    let (steps, blocks) = (k.div_ceil(BLOCK), n.div_ceil(BLOCK));
    // Operands of at most about 448, and scales of 1, 2 and 3 in 20,000.
    let numbers = |seed, len| noise_of(len, |i| e4m3::from_f64(normal(seed, i) * 100.0));
    let scales = |seed, len| noise_of(len, |i| (hash(seed, i) % 3 + 1) as f32 / 20_000.0);
    let (host_a, host_b) = (numbers(95, m * k), numbers(96, n * k));
    let (host_of_a, host_of_b) = (scales(97, m * steps), scales(98, blocks * steps));
    let (a, b) = (device.tensor(&host_a, [m, k])?, device.tensor(&host_b, [n, k])?);
    let of_a = device.tensor(&host_of_a, [m, steps])?;
    let of_b = device.tensor(&host_of_b, [blocks, steps])?;
    let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
    gemm_scaled(device, &a, &b, Some(Scales { a: of_a.view(), b: of_b.view() }), &mut c)?;
    compare(&c.to_vec()?, n, |row, column| {
        let scale = |x: usize| {
            f64::from(host_of_a[row * steps + x / BLOCK])
                * f64::from(host_of_b[column / BLOCK * steps + x / BLOCK])
        };
        (0..k).map(|x| host_a[row * k + x].to_f64() * host_b[column * k + x].to_f64() * scale(x)).sum()
    })?;
    let multiply = Box::new(move |stream: &Stream| {
        let scales = Scales { a: of_a.view(), b: of_b.view() };
        Ok(gemm_scaled(stream, &a, &b, Some(scales), &mut c)?)
    });
    Ok(Task { multiply, operations: 2.0 * (m * n * k) as f64 })
}

/// Returns the names of the contestants.
pub fn names() -> Vec<String> {
    CONTESTANTS.iter().map(|kernel| kernel.name.to_owned()).collect()
}

/// Checks and measures each kernel at each of its shapes. Returns a verdict for each check.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, |kernel| kernel.shapes)
}

/// Checks each kernel at a small shape.
///
/// # Errors
///
/// Errors of the device.
pub fn check(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, |kernel| std::slice::from_ref(&kernel.small))
}

fn run_at(
    device: &Device,
    plan: &Plan,
    shapes: impl Fn(&'static Contestant) -> &'static [[usize; 3]],
) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let mut verdicts = vec![];
    for kernel in CONTESTANTS.iter().filter(|kernel| plan.names("experts", kernel.name)) {
        for &shape in shapes(kernel) {
            let task = (kernel.task)(device, shape);
            verdicts.push(task.is_ok());
            let mut task = match task {
                Ok(task) => task,
                Err(error) => {
                    let error = format!("{error:#}");
                    println!(
                        "{}",
                        json!({"benchmark": kernel.name, "shape": shape, "right": false, "error": error})
                    );
                    continue;
                }
            };
            if let Some(launches) = plan.launches {
                (0..launches).try_for_each(|_| task.queue(&stream))?;
                stream.synchronize()?;
                println!("{}", json!({"benchmark": kernel.name, "shape": shape, "launches": launches}));
            } else if !plan.check_only {
                let speeds = rounds(&slices, plan.products.rounds, &mut task)?;
                let Spread { median, width } = Spread::of(&speeds);
                println!(
                    "{}",
                    json!({"benchmark": kernel.name, "shape": shape, "tflops": median, "spread": width})
                );
            }
        }
    }
    Ok(verdicts)
}

/// Returns the speed in each round.
fn rounds(slices: &Slices<'_>, rounds: usize, task: &mut Task) -> anyhow::Result<Vec<f64>> {
    let operations = task.operations;
    let queue: &mut Queue<'_> = &mut || task.queue(slices.stream);
    let slice = slices.prepare(queue)?;
    // SAFETY: `task` owns the tensors of the slice, and outlives the run.
    (0..rounds).map(|_| Ok(unsafe { slices.run(&slice, operations, queue) }?.tflops)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        assert_eq!(check(&Device::simulator(), &plan).unwrap(), [true; 2]);
    }

    #[test]
    fn rows_are_those_of_the_script() {
        assert_eq!(rows_of(8), [128, 755, 1382, 2009, 588, 1215, 1842, 421]);
    }

    #[test]
    fn a_wrong_element_is_found() {
        let found = [bf16::from_f32(1.0); 4];
        assert!(compare(&found, 2, |_, _| 1.0).is_ok());
        assert!(compare(&found, 2, |row, column| (1 + row * column * 2) as f64).is_err());
    }
}
