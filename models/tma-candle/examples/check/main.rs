//! Runs each operation on a GPU, compares it with candle's result on the CPU, and times some of
//! them beside those of candle_nn: `cargo run --release -p tma-candle --features cuda --example
//! check`.
//!
//! The argument `cpu` compares them on the simulator.

mod cases;
mod gradients;
mod reference;
mod speed;

use candle_core::{DType, Device, Result, bail};

use cases::CASES;
use reference::{Random, distance};

/// The distance from the reference that rounding explains, relative to its greatest number: of
/// results, and of gradients.
const BOUNDS: [(DType, [f32; 2]); 3] = [
    (DType::BF16, [0.008, 4.0 / 512.0]),
    (DType::F16, [0.001, 4.0 / 4096.0]),
    (DType::F32, [2e-6, 1.0 / 32768.0]),
];

fn main() -> Result<()> {
    let device = match std::env::args().nth(1).as_deref() {
        None => Device::new_cuda(0)?,
        Some("cpu") => Device::Cpu,
        Some(other) => bail!("the argument `{other}` is not `cpu`"),
    };
    let mut failures = 0;
    println!("{:<44}{:>6}  distance", "operation", "type");
    for (dtype, [bound, of_gradients]) in BOUNDS {
        for case in CASES.iter().filter(|case| case.has_f32 || dtype != DType::F32) {
            let result = (case.run)(&mut Random::new(&device, dtype)).and_then(|(found, wanted)| {
                if found.dims() != wanted.dims() {
                    bail!("{:?} instead of {:?}", found.dims(), wanted.dims())
                }
                distance(&found, &wanted)
            });
            failures += usize::from(!is_within(case.name, dtype, result, bound));
            if case.has_gradient {
                let result = gradients::greatest_distance(case, &device, dtype);
                let name = format!("{}, gradients", case.name);
                failures += usize::from(!is_within(&name, dtype, result, of_gradients));
            }
        }
    }
    let (found, wanted) = cases::scaled_linear(&mut Random::new(&device, DType::BF16))?;
    let apart = distance(&found, &wanted)?;
    println!("{:<44}{:>6}  {apart:.2e}", "scaled_linear", "bf16");
    failures += usize::from(apart.is_nan() || apart > 0.004);
    if failures > 0 {
        bail!("{failures} results are too far from candle's")
    }
    println!("all results are within the bounds");
    if device.is_cuda() { speed::report(&device) } else { Ok(()) }
}

/// Prints a distance, and returns whether it is within the bound.
fn is_within(name: &str, dtype: DType, distance: Result<f32>, bound: f32) -> bool {
    let text = distance.as_ref().map_or_else(ToString::to_string, |distance| format!("{distance:.2e}"));
    println!("{name:<44}{:>6}  {text}", dtype.as_str());
    distance.is_ok_and(|distance| distance <= bound)
}
