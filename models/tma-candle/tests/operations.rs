//! Each operation beside candle's own on the CPU, in every element type.

#[path = "../examples/check/cases.rs"]
mod cases;
#[path = "../examples/check/gradients.rs"]
mod gradients;
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

/// Checks the gradients of all operations of a type that have some.
fn check_gradients(dtype: DType, bound: f32) -> Result<()> {
    let cases = CASES.iter().filter(|case| case.has_gradient && (case.has_f32 || dtype != DType::F32));
    let mut wrong = vec![];
    for case in cases {
        let begin = std::time::Instant::now();
        let distance = gradients::greatest_distance(case, &Device::Cpu, dtype);
        println!("{} of {dtype:?}: {distance:?}, {:?}", case.name, begin.elapsed());
        if !distance.as_ref().is_ok_and(|distance| *distance <= bound) {
            wrong.push(format!("{} of {dtype:?}: {distance:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

// The roundings are those of the result that a gradient is computed from, of the gradient of the
// result, of the weights and slopes of scores, and of the gradient: 2^-9 of the number each in BF16.

#[test]
fn gradients_of_bf16_are_those_of_candle() -> Result<()> {
    check_gradients(DType::BF16, 4.0 / 512.0)
}

#[test]
fn gradients_of_f16_are_those_of_candle() -> Result<()> {
    check_gradients(DType::F16, 4.0 / 4096.0)
}

/// Derivatives of activations have an error of 2^-15.
#[test]
fn gradients_of_f32_are_those_of_candle() -> Result<()> {
    check_gradients(DType::F32, 1.0 / 32768.0)
}
