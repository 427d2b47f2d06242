//! Shuffles, `clamp` and vectors that go wrong while a kernel runs: the findings of the simulator,
//! and the messages of checked kernels.
#![cfg(feature = "llvm")]
#![allow(clippy::single_range_in_vec_init, reason = "a view of one dimension has one range")]

use tma_codegen::{Checks, Target, compile_with};
use tma_runtime::prelude::*;
use tma_tests::differential::device;
use tma_tests::kernels::vectors::{vector_from, vector_from_checked};

/// Returns the contents of `out`, one word per thread, of a kernel of `threads` threads, or the
/// error that it stops with.
fn run(threads: u32, option: &str, body: &str, words: &[u64]) -> Result<Vec<u64>, String> {
    let head = format!(
        "#[tma_kernel(threads = {threads}{option})]\nfn k(words: Global<u64>, out: Global<u64>) {{\n\
         let lane = thread_idx().x;\n"
    );
    let source = format!("{head}{body}\n}}\n");
    let compiled = compile_with("src/kernels.rs", &source, Target::default(), Checks::Off);
    let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
    device::run(&compiled.kernels[0], threads, words, threads as usize)
}

#[track_caller]
fn stops(threads: u32, option: &str, body: &str, words: &[u64], message: &str) {
    let found = run(threads, option, body, words).expect_err("it goes wrong");
    assert!(found.contains(message), "{body}:\n{found}");
}

#[test]
fn shuffles_of_lanes_that_are_not_there_are_found() {
    let shuffle = |mask| format!("out.set(lane, shuffle_xor(lane, {mask}) as u64);");
    assert_eq!(run(40, "", &shuffle(4), &[]).unwrap()[39], 35);
    stops(40, "", &shuffle(8), &[], "is not active: it has exited, or the block has no such thread");
    let after =
        |last| format!("if lane >= {last} {{ return; }} out.set(lane, shuffle_idx(lane, 20) as u64);");
    assert_eq!(run(32, "", &after(32), &[]).unwrap(), [20; 32]);
    stops(32, "", &after(16), &[], "reads the value of lane 20, which is not active");
}

/// All lanes take part; in a branch, some wait for the others forever.
#[test]
fn words_of_a_warp_in_a_branch_are_found() {
    for word in ["shuffle_up(lane, 1)", "ballot(lane > 3)", "match_any(lane)", "warp_reduce_add(lane)"] {
        let body = |condition: &str| format!("if {condition} {{ out.set(lane, {word} as u64); }}");
        run(32, "", &body("lane < 32"), &[]).unwrap_or_else(|found| panic!("{word}:\n{found}"));
        // The other lanes reach the end of the kernel and exit: a wait for them continues without
        // them.
        stops(32, "", &(body("lane < 16") + " sync_warp();"), &[], "wait");
    }
}

#[test]
fn checked_shuffles_are_by_lanes() {
    let body = "out.set(lane, shuffle_down(lane, words.get(0) as u32) as u64);";
    assert_eq!(run(32, ", checked", body, &[31]).unwrap()[0], 31);
    stops(32, ", checked", body, &[32], "a shuffle by more than the 32 lanes of a warp");
    // Otherwise only the five lowest bits count.
    assert_eq!(run(32, "", body, &[33]).unwrap()[0], 1);
}

#[test]
fn checked_clamps_have_numbers_between_their_bounds() {
    let body = "out.set(0, clamp(words.get(0), words.get(1), words.get(2)));";
    assert_eq!(run(1, ", checked", body, &[9, 3, 5]).unwrap(), [5]);
    stops(1, ", checked", body, &[9, 5, 3], "assertion failed: min <= max");
    let body =
        "out.set(0, clamp(f64::from_bits(words.get(0)), -1.0, f64::from_bits(words.get(1))).to_bits());";
    let bits = |x: f64| x.to_bits();
    assert_eq!(run(1, ", checked", body, &[bits(7.0), bits(2.0)]).unwrap(), [bits(2.0)]);
    stops(1, ", checked", body, &[bits(7.0), bits(-2.0)], "assertion failed: min <= max");
    stops(1, ", checked", body, &[bits(7.0), bits(f64::NAN)], "assertion failed: min <= max");
    let body = "out.set(0, (words.get(0) as i32).clamp(words.get(1) as i32, 5) as u64);";
    assert_eq!(run(1, ", checked", body, &[9, -3_i64 as u64]).unwrap(), [5]);
    stops(1, ", checked", body, &[9, 6], "assertion failed: min <= max");
}

/// All elements of a vector are in bounds, whatever its index is.
#[test]
fn vectors_stay_within_their_slice() -> anyhow::Result<()> {
    let code = "dst.set_vec(0, src.get_vec::<4>(i));";
    let text = include_str!("../src/kernels/vectors.rs");
    let line = text.lines().position(|line| line.trim() == code).expect("the kernel has such a line") + 1;
    for (len, i, inside) in [
        (8, 0, true),
        (8, 4, true),
        (7, 4, false),
        (8, 8, false),
        (4, 0, true),
        (3, 0, false),
        (0, 0, false),
        (8, u32::MAX - 3, false),
    ] {
        let device = Device::simulator();
        let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
        // A tensor cannot be empty, but a part of one can.
        let src = device.tensor(&[values.clone(), vec![0.0; 4]].concat(), [len + 4])?;
        let mut dst = device.zeros([4])?;
        let done = vector_from::launch(&device, 1, src.view().slice([0..len])?, i, &mut dst);
        match (done, inside) {
            (Ok(()), true) => assert_eq!(dst.to_vec()?, values[i as usize..][..4]),
            (Err(error), false) => {
                let error = error.to_string();
                assert!(
                    error.contains("index out of bounds of `src`, for a vector of 4 elements"),
                    "{error}"
                );
                assert!(error.contains(&format!("vectors.rs:{line}")), "{error}");
            }
            (done, _) => panic!("{len} elements, from {i}: {done:?}"),
        }
    }
    Ok(())
}

#[test]
fn vectors_are_aligned() -> anyhow::Result<()> {
    let device = Device::simulator();
    let src = device.tensor(&[1.0f32; 16], [16])?;
    let mut dst = device.zeros([4])?;
    // Each error is found as early as possible: by the launcher, by a checked kernel, or else by
    // the hardware.
    let error = vector_from::launch(&device, 1, src.view().slice([2..16])?, 0, &mut dst).unwrap_err();
    assert!(error.to_string().starts_with("TMA0531"), "{error}");
    vector_from::launch(&device, 1, src.view().slice([4..16])?, 0, &mut dst)?;
    vector_from_checked::launch(&device, 1, &src, 4, &mut dst)?;
    let error = vector_from_checked::launch(&device, 1, &src, 2, &mut dst).unwrap_err().to_string();
    assert!(error.contains("the index of a vector of `src` is not a multiple of its length, 4"), "{error}");
    let device = Device::simulator();
    let src = device.tensor(&[1.0f32; 16], [16])?;
    let mut dst = device.zeros([4])?;
    let error = vector_from::launch(&device, 1, &src, 2, &mut dst).unwrap_err().to_string();
    assert!(error.contains("multiple of 16"), "{error}");
    Ok(())
}
