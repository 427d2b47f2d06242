//! Runs each operation on a GPU, compares it with candle's result on the CPU, and times some of
//! them beside those of candle_nn: `cargo run --release -p tma-candle --features cuda --example
//! check`.
//!
//! The argument `cpu` compares them on the simulator.

mod cases;
mod reference;
mod speed;

use candle_core::{DType, Device, Result, bail};

use cases::CASES;
use reference::{Random, distance};

/// The distance from the reference that rounding explains, relative to its greatest number.
const BOUNDS: [(DType, f32); 3] = [(DType::BF16, 0.008), (DType::F16, 0.001), (DType::F32, 2e-6)];

fn main() -> Result<()> {
    let device = match std::env::args().nth(1).as_deref() {
        None => Device::new_cuda(0)?,
        Some("cpu") => Device::Cpu,
        Some(other) => bail!("the argument `{other}` is not `cpu`"),
    };
    let mut failures = 0;
    println!("{:<34}{:>6}  distance", "operation", "type");
    for (dtype, bound) in BOUNDS {
        for case in CASES.iter().filter(|case| case.has_f32 || dtype != DType::F32) {
            let mut random = Random::new(&device, dtype);
            let is_right = match (case.run)(&mut random) {
                Ok((found, wanted)) => {
                    let distance = distance(&found, &wanted)?;
                    println!("{:<34}{:>6}  {distance:.2e}", case.name, dtype.as_str());
                    distance <= bound && found.dims() == wanted.dims()
                }
                Err(error) => {
                    println!("{:<34}{:>6}  {error}", case.name, dtype.as_str());
                    false
                }
            };
            failures += usize::from(!is_right);
        }
    }
    let (found, wanted) = cases::scaled_linear(&mut Random::new(&device, DType::BF16))?;
    let apart = distance(&found, &wanted)?;
    println!("{:<34}{:>6}  {apart:.2e}", "scaled_linear", "bf16");
    failures += usize::from(apart.is_nan() || apart > 0.004);
    if failures > 0 {
        bail!("{failures} results are too far from candle's")
    }
    println!("all results are within the bounds");
    if device.is_cuda() { speed::report(&device) } else { Ok(()) }
}
