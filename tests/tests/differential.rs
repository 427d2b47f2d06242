//! Generated kernels on the simulator against the same text as plain Rust, bit for bit.
#![cfg(feature = "llvm")]

use std::path::{Path, PathBuf};

use tma_tests::differential::{Batch, device};

/// The number of kernels of a program that rustc compiles.
const BATCH: usize = 250;
/// The number of programs.
const BATCHES: u64 = 8;

/// Returns a folder for the test.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential").join(name)
}

#[test]
fn generated_kernels_compute_what_plain_rust_does() -> anyhow::Result<()> {
    for seed in 0..BATCHES {
        let failures = Batch::new(seed, BATCH, &folder("all"))?.failures();
        let first = failures.first().map(ToString::to_string).unwrap_or_default();
        assert!(
            failures.is_empty(),
            "{} of {BATCH} kernels of seed {seed} differ, as\n{first}",
            failures.len()
        );
    }
    Ok(())
}

/// Found by a generated kernel: an operand that does not fit `f16` must not be rounded to `f16`
/// before the operation.
#[test]
fn a_product_of_bf16_is_rounded_to_f16_afterwards() {
    let source = "#[tma_kernel(threads = 1)]\npub fn k(words: Global<u64>, out: Global<u64>) {\n\
                  let a = bf16::from_bits(words.get(0) as u16);\nlet b = bf16::from_bits(words.get(1) as u16);\n\
                  out.set(0, f16::from_f32(a.to_f32() * b.to_f32()).to_bits() as u64);\n\
                  out.set(1, f16::from_f64(a.to_f64() / b.to_f64()).to_bits() as u64);\n}";
    let compiled = tma_codegen::compile("k.rs", source, tma_codegen::Target::default()).expect("it compiles");
    // 2^40 and 2^-40, infinite and 0 as `f16`; the product is 1.0, and the quotient is infinite.
    let found = device::run(&compiled.kernels[0], 1, &[0x5380, 0x2b80], 2);
    assert_eq!(found, Ok(vec![0x3c00, 0x7c00]));
}

/// The test can fail: it would find a compiler that takes one instruction for another.
#[test]
fn an_instruction_that_is_taken_for_another_is_found() -> anyhow::Result<()> {
    let batch = Batch::new(1 << 32, 150, &folder("mutated"))?;
    let swaps = [
        ("add.s32", "sub.s32"),
        ("mul.lo.s32", "add.s32"),
        ("shr.s32", "shr.u32"),
        ("shl.b64", "shr.u64"),
        ("and.b32", "or.b32"),
        ("xor.b64", "or.b64"),
        ("setp.eq.b32", "setp.ne.b32"),
        ("min.s32", "max.s32"),
        ("cvt.s64.s32", "cvt.u64.u32"),
        ("cvt.rn.f16.f32", "cvt.rz.f16.f32"),
        ("cvt.rn.bf16.f32", "cvt.rz.bf16.f32"),
        ("cvt.rzi.s32.f32", "cvt.rni.s32.f32"),
        ("add.rn.f32", "sub.rn.f32"),
        ("mul.rn.f64", "add.rn.f64"),
        ("fma.rn.f32", "fma.rz.f32"),
        ("sqrt.rn.f64", "sqrt.rz.f64"),
        ("neg.f64", "abs.f64"),
        // In shared memory that is reused as another type.
        ("ld.shared.b32", "ld.shared.b16"),
        ("barrier.sync.aligned", "// barrier"),
    ];
    let missed: Vec<_> = swaps.iter().filter(|(from, to)| batch.failure_with(from, to).is_none()).collect();
    assert!(missed.is_empty(), "nobody finds {missed:?}");
    assert!(batch.failures().is_empty());
    Ok(())
}
