//! A program carries the PTX of the types that it uses, and of no others. This test is such a
//! program: it must call nothing but what its one test names.
#![cfg(feature = "llvm")]

use std::collections::BTreeSet;
use std::{env, fs};

use tma_kernels::gemm::{GemmOptions, gemm};
use tma_runtime::prelude::*;

/// Returns the names of the entry points in this program.
fn carried() -> BTreeSet<String> {
    // The text must not contain what it looks for.
    let mark = [".visible", " .entry "].concat();
    let program = fs::read(env::current_exe().expect("a program")).expect("the program is readable");
    let starts = program.windows(mark.len()).enumerate().filter(|(_, text)| *text == mark.as_bytes());
    let names = starts.map(|(at, _)| {
        let name =
            program[at + mark.len()..].iter().take_while(|byte| byte.is_ascii_graphic() && **byte != b'(');
        name.map(|byte| char::from(*byte)).collect()
    });
    names.collect()
}

#[test]
fn a_gemm_of_bf16_carries_no_other_types() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::open()?;
    let a = device.tensor(&[bf16::from_f32(0.5); 64 * 32], [64, 32])?;
    let b = device.tensor(&[bf16::from_f32(2.0); 32 * 16], [32, 16])?;
    let mut c = device.zeros::<bf16, 2>([64, 16])?;
    gemm(&device, &a, &b, &mut c, GemmOptions::default())?;
    assert_eq!(c.to_vec()?, [bf16::from_f32(32.0); 64 * 16]);

    let carried = carried();
    assert!(carried.contains("plain__bf16_t64x64_nn"), "{carried:?}");
    let is_used = |name: &String| name.contains("__bf16_") && !name.contains("__bf16_f32_");
    let others: Vec<_> = carried.iter().filter(|name| !is_used(name)).collect();
    assert!(others.is_empty(), "{} of {} kernels: {others:?}", others.len(), carried.len());
    Ok(())
}
