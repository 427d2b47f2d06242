//! Each operation beside candle's own on the CPU, in every element type.

#[path = "../examples/check/cases.rs"]
mod cases;
#[path = "../examples/check/reference.rs"]
mod reference;

use candle_core::{DType, Device, Result};
use cases::CASES;
use reference::{Random, distance};

/// Checks all operations of a type. Each result is rounded a few times.
fn check(dtype: DType, bound: f32) -> Result<()> {
    let mut wrong = vec![];
    for case in CASES.iter().filter(|case| case.has_f32 || dtype != DType::F32) {
        let begin = std::time::Instant::now();
        let distance = match (case.run)(&mut Random::new(&Device::Cpu, dtype)) {
            Ok((found, wanted)) if found.dims() == wanted.dims() => distance(&found, &wanted)?.to_string(),
            Ok((found, wanted)) => format!("{:?} instead of {:?}", found.dims(), wanted.dims()),
            Err(error) => error.to_string(),
        };
        println!("{} of {dtype:?}: {distance}, {:?}", case.name, begin.elapsed());
        if !distance.parse::<f32>().is_ok_and(|distance| distance <= bound) {
            wrong.push(format!("{} of {dtype:?}: {distance}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn operations_of_bf16_are_those_of_candle() -> Result<()> {
    check(DType::BF16, 0.008)
}

#[test]
fn operations_of_f16_are_those_of_candle() -> Result<()> {
    check(DType::F16, 0.001)
}

#[test]
fn operations_of_f32_are_those_of_candle() -> Result<()> {
    check(DType::F32, 2e-6)
}

#[test]
fn weights_of_8_bits_have_scales() -> Result<()> {
    let (found, wanted) = cases::scaled_linear(&mut Random::new(&Device::Cpu, DType::BF16))?;
    let distance = distance(&found, &wanted)?;
    assert!(distance < 0.004, "{distance}");
    Ok(())
}
