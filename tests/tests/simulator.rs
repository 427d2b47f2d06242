//! Every kernel of the corpus and every example on the simulator, under several seeds, compared
//! with plain Rust.
#![cfg(feature = "llvm")]

use std::sync::{Arc, Mutex};

use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;
use tma_tests::case::Options;
use tma_tests::gpu::bench::{additions, scales, streams};
use tma_tests::gpu::example_runs;
use tma_tests::is_all;
use tma_tests::kernels;
use tma_tests::parallel::on_all_cores;

/// Returns the number of seeds. The hardware may do whatever a seed decides, so the results must
/// agree.
fn seeds() -> u64 {
    if is_all() { 8 } else { 4 }
}

/// A check with its name.
type Check<'a> = (String, Box<dyn Fn(&Device) -> anyhow::Result<()> + Send + Sync + 'a>);

/// Runs each check under each seed, on its own simulator; fails with a list of all failures.
fn run_all(checks: Vec<Check<'_>>) {
    assert!(!checks.is_empty());
    let results = on_all_cores(checks, |(name, check)| {
        under_seeds(seeds(), |device| check(device)).map_err(|failure| format!("{name}: {failure}"))
    });
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn the_corpus_computes_what_plain_rust_does() {
    let options = Options { quick: true };
    let checks = kernels::cases().map(|case| -> Check<'_> {
        (case.name.to_owned(), Box::new(move |device| (case.run)(device, &options)))
    });
    run_all(checks.collect());
}

#[test]
fn the_examples_compute_what_plain_rust_does() {
    let tests = example_runs::tests(&Options { quick: true });
    run_all(tests.into_iter().map(|test| -> Check<'_> { (test.name, test.run) }).collect());
}

#[test]
fn the_benchmarks_compute_what_plain_rust_does() {
    run_all(vec![
        ("reduce_add".to_owned(), Box::new(additions::check)),
        ("release_fence".to_owned(), Box::new(scales::check)),
        ("multicast".to_owned(), Box::new(streams::check)),
    ]);
}

#[test]
fn a_kernel_with_texts_is_launched_again() -> anyhow::Result<()> {
    let device = Device::simulator();
    // The texts are variables of the module: they must outlive the launch, and no tensor may
    // replace them.
    let mut kept = vec![];
    for _ in 0..3 {
        kernels::faults::fault_printf::launch(&device, 1, -7, 0xbeef, 1.5)?;
        kept.push(device.filled_bytes::<u8, 1>([4096], 0xab)?);
    }
    for tensor in kept {
        assert_eq!(tensor.to_vec()?, [0xab; 4096]);
    }
    Ok(())
}

#[test]
fn a_device_reports_its_launches() -> anyhow::Result<()> {
    let reports = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&reports);
    let device = Device::simulator().host_threads(2).reporting(3, move |kernel, report| {
        let events = report.trace.events.len();
        kept.lock().expect("nobody panics").push((kernel.name, report.warp_instructions, events));
    });
    kernels::faults::fault_printf::launch(&device, 4, -7, 0xbeef, 1.5)?;
    let reports = reports.lock().expect("nobody panics");
    assert!(matches!(reports[..], [("fault_printf", 1.., 3)]), "{reports:?}");
    Ok(())
}

/// Word for word, as a GPU prints it.
#[test]
fn tiles_are_printed_in_rows() -> anyhow::Result<()> {
    let printed = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&printed);
    let device = Device::simulator()
        .reporting(0, move |_, report| kept.lock().expect("nobody panics").push_str(&report.printed));
    kernels::printing::run(&device)?;
    let printed = printed.lock().expect("nobody panics");
    assert_eq!(*printed, kernels::printing::PRINTED, "found:\n{printed}");
    Ok(())
}

/// A copy that the engine refuses, in a kernel that tests its coordinates: the error and its line.
#[test]
fn checked_kernels_name_what_is_wrong_and_the_line() -> anyhow::Result<()> {
    let line_of = |code: &str| {
        let line = include_str!("../src/kernels/faults.rs").lines().position(|line| line.trim() == code);
        line.expect("the kernel has such a line") + 1
    };
    let load = line_of("src.load(tile, [from_row, from_col], full);");
    let store = line_of("dst.store([to_row, to_col], tile);");
    for (from, to, line, message) in [
        ([0, 4], [0, 0], load, "the innermost coordinate of a copy by `src` is no multiple of 8 (16 bytes)"),
        ([0, 8], [0, 1], store, "the innermost coordinate of a copy by `dst` is no multiple of 8 (16 bytes)"),
        ([-8, -8], [-1, 0], store, "a copy into `dst` starts before the tensor"),
    ] {
        let device = Device::simulator();
        let src = device.zeros([16, 64])?;
        let mut dst = device.zeros([16, 64])?;
        let done =
            kernels::faults::fault_copy::launch(&device, 1, &src, &mut dst, from[0], from[1], to[0], to[1])
                .and_then(|()| device.synchronize());
        let error = done.expect_err("the coordinates are wrong").to_string();
        assert!(error.contains(message) && error.contains(&format!("faults.rs:{line}")), "{error}");
    }
    Ok(())
}

/// Bulk copies out of bounds of their source or destination, or that the engine would refuse: the
/// error and its line.
#[test]
fn bulk_copies_name_what_is_wrong_and_the_line() -> anyhow::Result<()> {
    let code = "src.bulk_load(part, at, count, from, full);";
    let line = include_str!("../src/kernels/faults.rs").lines().position(|line| line.trim() == code);
    let place = format!("faults.rs:{}", line.expect("the kernel has such a line") + 1);
    for (from, at, count, message) in [
        (100, 0, 4, Some("bulk copy out of bounds of `src`")),
        (96, 0, 8, Some("bulk copy out of bounds of `src`")),
        (-4, 0, 4, Some("bulk copy out of bounds of `src`")),
        (0, 0, 104, Some("bulk copy out of bounds of `src`")),
        (0, 60, 8, Some("bulk copy out of bounds of shared memory")),
        (0, u32::MAX - 3, 8, Some("bulk copy out of bounds of shared memory")),
        (2, 0, 4, Some("the index of a bulk copy of `src` is not a multiple of 4, 16 bytes")),
        (0, 1, 4, Some("the place of a bulk copy in shared memory is not a multiple of 4, 16 bytes")),
        (0, 0, 3, Some("the count of a bulk copy of `src` is not a multiple of 4, 16 bytes")),
        (96, 60, 4, None),
        (36, 0, 64, None),
    ] {
        let device = Device::simulator();
        let src = device.zeros([100])?;
        let done = kernels::faults::fault_bulk::launch(&device, 1, &src, from, at, count);
        match (done, message) {
            (Ok(()), None) => {}
            (Err(error), Some(message)) => {
                let error = error.to_string();
                assert!(error.contains(message) && error.contains(&place), "{error}");
            }
            (done, _) => panic!("from {from} to {at}, {count} elements: {done:?}"),
        }
    }
    Ok(())
}

/// Indices outside of tiles, arrays and stages, and a barrier of another number, in a kernel that
/// tests them.
#[test]
fn checked_kernels_name_the_index_and_the_line() -> anyhow::Result<()> {
    let place_of = |code: &str| {
        let line = include_str!("../src/kernels/faults.rs").lines().position(|line| line.trim() == code);
        format!("faults.rs:{}", line.expect("the kernel has such a line") + 1)
    };
    let tile = place_of("let of_tile = tile.get([row, column]);");
    let line = place_of("let of_line = lines[stage].get(element);");
    let registers = place_of("let of_registers = parts[part as usize];");
    let barrier = place_of("named_barrier_sync(barrier, 32);");
    for (at, others, place, message) in [
        ([4, 0], [0, 0, 0, 1], &tile, "index out of bounds of `tile`, 4 rows"),
        ([-1, 0], [0, 0, 0, 1], &tile, "index out of bounds of `tile`, 4 rows"),
        ([0, 32], [0, 0, 0, 1], &tile, "index out of bounds of `tile`, 32 columns"),
        ([0, 0], [2, 0, 0, 1], &line, "index out of bounds of `lines`, 2 stages"),
        ([0, 0], [0, 32, 0, 1], &line, "index out of bounds of a stage of `lines`, 32 elements"),
        ([0, 0], [0, u32::MAX, 0, 1], &line, "index out of bounds of a stage of `lines`, 32 elements"),
        ([0, 0], [0, 0, 3, 1], &registers, "index out of bounds of `parts`, 3 elements"),
        ([0, 0], [0, 0, 0, 0], &barrier, "named barriers are 1 to 15"),
        ([0, 0], [0, 0, 0, 16], &barrier, "named barriers are 1 to 15"),
    ] {
        let done = kernels::faults::index(&Device::simulator(), at, others);
        let error = done.expect_err("an index is wrong").to_string();
        assert!(error.contains(message) && error.contains(place), "{error}");
    }
    kernels::faults::index(&Device::simulator(), [3, 31], [1, 31, 2, 15])?;
    Ok(())
}

/// A kernel with matmuls calls no function, and yet reports the line and the message: the error
/// equals that of a GPU.
#[test]
fn kernels_that_multiply_stop_with_the_line() -> anyhow::Result<()> {
    let source = include_str!("../src/kernels/mma/stops.rs");
    let place_of = |code: &str, of: &str| {
        let found = source.lines().enumerate().find_map(|(number, line)| Some((number, line.find(code)?)));
        let (line, column) = found.expect("the kernel has such a line");
        format!("src/kernels/mma/stops.rs:{}:{}", line + 1, column + code.find(of).unwrap() + 1)
    };
    let places = [
        place_of("marks.set([row, 1], 7);", "row"),
        place_of("marks.set([row + turn, ", "row"),
        place_of("assert!(sum[0] < limit", "assert"),
        place_of("c.set(i, result.get(", "i,"),
    ];
    for (fault, place) in kernels::mma::stops::FAULTS.iter().zip(places) {
        for seed in 0..4 {
            let error = (fault.run)(&Device::simulator().seed(seed)).expect_err(fault.name);
            assert!(error.to_string().contains(&place), "{error}\n{place}");
            kernels::faults::judge(fault, &format!("ended with {error}"))?;
        }
    }
    Ok(())
}
