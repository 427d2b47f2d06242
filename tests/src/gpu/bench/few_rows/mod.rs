//! GEMMs of few rows by weights that no cache holds. They read each weight once, so the figures are
//! bytes of weights per second, beside those that a copy reads and writes.
//!
//! As for [scaled GEMMs of many rows](super::experts), the rivals of scaled GEMMs run in other
//! processes: `tests/rivals` starts them, and requests [slices in alternation](super::serve) from
//! this program.

mod bf16;
mod scaled;

use anyhow::Context;
use serde_json::json;
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

use super::libraries::cublas::Cublas;
use super::measure::{Plan, Spread};
use super::slices::{Instruments, Slices};

/// The bytes of weights that launches go through in turn, so that the L2 cache of 50 to 60 MB holds
/// none of them.
const COLD_BYTES: usize = 200_000_000;
/// The number of elements of the result that the host computes.
const SAMPLES: u64 = 300;

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scaled(scaled::Kind),
    Bf16(bf16::Kind),
}

impl Kind {
    /// Returns the shapes that are measured, or those of a check.
    fn shapes(self, check_only: bool) -> Vec<[usize; 3]> {
        let all = |weights: &[[usize; 2]], rows: &[usize]| {
            weights.iter().flat_map(|&[n, k]| rows.iter().map(move |&m| [m, n, k])).collect()
        };
        match self {
            Self::Scaled(_) if check_only => scaled::SMALL.to_vec(),
            Self::Bf16(_) if check_only => bf16::SMALL.to_vec(),
            // A copy takes as long for any number of rows.
            Self::Scaled(scaled::Kind::Copy) => all(&scaled::WEIGHTS, &[1]),
            Self::Bf16(bf16::Kind::Copy) => all(&bf16::WEIGHTS, &[1]),
            Self::Scaled(_) => all(&scaled::WEIGHTS, &scaled::ROWS),
            Self::Bf16(_) => all(&bf16::WEIGHTS, &bf16::ROWS),
        }
    }
}

/// A way to read the weights.
#[derive(Clone, Copy, Debug)]
pub struct Contestant {
    /// The name in results.
    pub name: &'static str,
    kind: Kind,
}

/// All contestants.
pub const CONTESTANTS: [Contestant; 9] = [
    Contestant { name: "cold/scaled", kind: Kind::Scaled(scaled::Kind::Scaled) },
    Contestant { name: "cold/masked", kind: Kind::Scaled(scaled::Kind::Masked) },
    Contestant { name: "cold/quantized", kind: Kind::Scaled(scaled::Kind::Quantized) },
    Contestant { name: "cold/copy", kind: Kind::Scaled(scaled::Kind::Copy) },
    Contestant { name: "cold/bf16", kind: Kind::Bf16(bf16::Kind::Chosen) },
    Contestant { name: "cold/bf16_constant", kind: Kind::Bf16(bf16::Kind::Constant) },
    Contestant { name: "cold/bf16_tiles", kind: Kind::Bf16(bf16::Kind::Tiles) },
    Contestant { name: "cold/bf16_cublas", kind: Kind::Bf16(bf16::Kind::Cublas) },
    Contestant { name: "cold/bf16_copy", kind: Kind::Bf16(bf16::Kind::Copy) },
];

/// A contestant with its tensors.
pub enum Task {
    /// Weights of `e4m3`.
    Scaled(scaled::Task),
    /// Weights of `bf16`.
    Bf16(bf16::Task),
}

impl Task {
    /// Allocates and fills the tensors: weights of `COLD_BYTES` if they should be cold.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(
        stream: &Stream,
        shape: [usize; 3],
        contestant: Contestant,
        is_cold: bool,
    ) -> anyhow::Result<Self> {
        Ok(match contestant.kind {
            Kind::Scaled(kind) => Self::Scaled(scaled::Task::new(stream.device(), shape, kind, is_cold)?),
            Kind::Bf16(kind) => Self::Bf16(bf16::Task::new(stream, shape, kind, is_cold)?),
        })
    }

    /// Queues the launch for the next weights.
    ///
    /// # Errors
    ///
    /// Errors of the launch.
    pub fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        match self {
            Self::Scaled(task) => task.queue(stream),
            Self::Bf16(task) => task.queue(stream),
        }
    }

    /// Runs a launch into poisoned memory, and compares some elements with what the host computes.
    ///
    /// # Errors
    ///
    /// Errors of the launch, and an element that is wrong.
    pub fn check(&mut self, stream: &Stream) -> anyhow::Result<()> {
        match self {
            Self::Scaled(task) => task.check(stream),
            Self::Bf16(task) => task.check(stream),
        }
    }

    /// Returns the bytes of weights that a launch reads; of a copy, also those that it writes.
    pub fn bytes(&self) -> f64 {
        match self {
            Self::Scaled(task) => task.bytes(),
            Self::Bf16(task) => task.bytes(),
        }
    }
}

/// Returns the contestant of this name.
///
/// # Errors
///
/// Another name.
pub fn find(name: &str) -> anyhow::Result<Contestant> {
    let found = CONTESTANTS.into_iter().find(|contestant| contestant.name == name);
    found.with_context(|| format!("there is no contestant `{name}`"))
}

/// Returns the names of the contestants.
pub fn names() -> Vec<String> {
    CONTESTANTS.iter().map(|contestant| contestant.name.to_owned()).collect()
}

/// Checks each contestant at each of its shapes, and measures it unless the plan is only to check.
/// Returns a verdict for each check.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let mut verdicts = vec![];
    for contestant in CONTESTANTS.iter().filter(|contestant| plan.names("few_rows", contestant.name)) {
        if contestant.kind == Kind::Bf16(bf16::Kind::Cublas) && !has_cublas(&stream) {
            continue;
        }
        let name = format!("few_rows/{}", contestant.name);
        for shape in contestant.kind.shapes(plan.check_only) {
            let mut task = Task::new(&stream, shape, *contestant, !plan.check_only)?;
            if let Some(launches) = plan.launches {
                (0..launches).try_for_each(|_| task.queue(&stream))?;
                stream.synchronize()?;
                println!("{}", json!({"benchmark": name, "shape": shape, "launches": launches}));
                continue;
            }
            let checked = task.check(&stream);
            verdicts.push(checked.is_ok());
            if let Err(error) = checked {
                let error = format!("{error:#}");
                println!("{}", json!({"benchmark": name, "shape": shape, "error": error}));
            } else if !plan.check_only {
                let bytes = task.bytes();
                let mut queue = || task.queue(&stream);
                let slice = slices.prepare(&mut queue)?;
                let rounds = 0..plan.products.rounds;
                // SAFETY: `task` has the tensors of the slice, and is borrowed.
                let measured = rounds.map(|_| unsafe { slices.run(&slice, bytes, &mut queue) });
                let speeds: Vec<f64> =
                    measured.map(|round| Ok(round?.tflops * 1e3)).collect::<anyhow::Result<_>>()?;
                let Spread { median, width } = Spread::of(&speeds);
                println!(
                    "{}",
                    json!({"benchmark": name, "shape": shape, "gb_per_s": median, "spread": width})
                );
            }
        }
    }
    Ok(verdicts)
}

/// Returns whether this machine has cuBLAS, or prints the reason why it is missing on the standard
/// error.
fn has_cublas(stream: &Stream) -> bool {
    let is_simulator = matches!(stream.device().id(), DeviceId::Simulator(_));
    let load = || Cublas::load(None, stream).inspect_err(|error| eprintln!("without cuBLAS: {error:#}"));
    !is_simulator && load().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_is_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        let verdicts = run(&Device::simulator(), &plan).unwrap();
        assert_eq!(verdicts, vec![true; scaled::SMALL.len() * 4 + bf16::SMALL.len() * 4]);
        assert!(find("cold/none").is_err());
    }
}
