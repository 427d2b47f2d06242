//! Every synchronisation step of the examples' PTX, removed or weakened: the simulator must find each within 32 seeds, and
//! nothing in the kernels as they are within 256.
#![cfg(feature = "llvm")]

use std::fmt::Write as _;

use tma_runtime::launch::{Arg, Grid, KernelSpec, launch};
use tma_runtime::prelude::{Device, DeviceTensor, Error};
use tma_tests::examples::{tma_copy, tma_copy_pipelined, tma_scale, transpose};

/// Seeds within which a mutant must be found.
const SEEDS: u64 = 32;
/// Seeds under which nothing may be found in a kernel as it is.
const QUIET_SEEDS: u64 = 256;

/// A kernel, and how it is launched on a small problem with ragged edges.
struct Subject {
    spec: KernelSpec,
    run: fn(&Device, &'static KernelSpec) -> Result<(), Error>,
}

fn subjects() -> [Subject; 4] {
    [
        Subject {
            spec: tma_copy::tma_copy::SPEC,
            run: |device, spec| {
                let (src, dst) = (halves(device, [150, 72])?, halves(device, [150, 72])?);
                let grid = Grid::tiles(src.shape(), [128, 64]);
                launch(&device, spec, grid, &[Arg::map(src.view()), Arg::map(dst.view())])
            },
        },
        Subject {
            spec: tma_copy_pipelined::tma_copy_pipelined::deep::SPEC,
            run: |device, spec| {
                let (src, dst) = (halves(device, [400, 264])?, halves(device, [400, 264])?);
                let work: DeviceTensor<u32, 1> = device.zeros([2])?;
                let args = [
                    Arg::map(src.view()),
                    Arg::map(dst.view()),
                    Arg::global(work.slice()),
                    Arg::scalar(2u32),
                    Arg::scalar(26u32),
                ];
                launch(&device, spec, Grid::x(2), &args)
            },
        },
        Subject {
            spec: tma_scale::tma_scale::SPEC,
            run: |device, spec| {
                let (src, dst) = (floats(device, [70, 36])?, floats(device, [70, 36])?);
                let grid = Grid::tiles(src.shape(), [64, 32]);
                let maps = [Arg::map(src.view()), Arg::map(dst.view()), Arg::scalar(2.0f32)];
                launch(&device, spec, grid, &maps)
            },
        },
        Subject {
            spec: transpose::transpose::SPEC,
            run: |device, spec| {
                let (src, dst) = (floats(device, [68, 72])?, floats(device, [72, 68])?);
                let grid = Grid::tiles(src.shape(), [64, 64]);
                launch(&device, spec, grid, &[Arg::map(src.view()), Arg::map(dst.view())])
            },
        },
    ]
}

fn halves(device: &Device, shape: [usize; 2]) -> Result<DeviceTensor<tma_runtime::lang::f16, 2>, Error> {
    device.filled_bytes(shape, 0x3c)
}

fn floats(device: &Device, shape: [usize; 2]) -> Result<DeviceTensor<f32, 2>, Error> {
    device.filled_bytes(shape, 0x3c)
}

/// A change to one instruction.
struct Mutant {
    line: usize,
    what: &'static str,
    ptx: String,
}

/// Instructions that may be left out, by how they begin.
const REMOVED: [&str; 8] = [
    "barrier.sync",
    "bar.warp.sync",
    "fence.mbarrier_init",
    "fence.proxy.async",
    "mbarrier.init",
    "mbarrier.arrive.expect_tx",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
];

fn mutants(ptx: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = ptx.lines().collect();
    let mut all = vec![];
    let mut change = |line: usize, what, text: String| {
        let mut changed: Vec<&str> = lines.clone();
        changed[line] = &text;
        all.push(Mutant { line: line + 1, what, ptx: changed.join("\n") + "\n" });
    };
    for (i, line) in lines.iter().enumerate() {
        let text = line.trim();
        if REMOVED.iter().any(|start| text.starts_with(start)) {
            change(i, "removed", String::new());
        }
        // The last operand, as a number in its place.
        let with_last = |value: &str| {
            line.rsplit_once(", ").map(|(rest, _)| format!("{rest}, {value};")).unwrap_or_default()
        };
        if text.starts_with("mbarrier.arrive.expect_tx") {
            change(i, "16 bytes expected", with_last("16"));
            change(i, "1 MiB less 16 expected", with_last("1048560"));
        }
        if text.starts_with("mbarrier.init") {
            change(i, "one arrival more", with_last("2"));
        }
        if text.starts_with("mbarrier.try_wait.parity") {
            let parity = text.trim_end_matches(';').rsplit(", ").next().unwrap_or_default();
            change(i, "the other phase", format!("\txor.b32 {parity}, {parity}, 1;\n{line}"));
        }
        if text.starts_with("@!%done bra wait_") {
            change(i, "tried once, not waited", String::new());
        }
    }
    all
}

/// A specification with other code. Kernels are kept by the address of their code, so it must live for ever.
fn with_ptx(spec: &KernelSpec, ptx: String) -> &'static KernelSpec {
    Box::leak(Box::new(KernelSpec { ptx: Box::leak(ptx.into_boxed_str()), ..*spec }))
}

/// Whether the simulator found a mistake; that it could not run the mutant at all would be this test's mistake.
#[track_caller]
fn is_found(result: &Result<(), Error>) -> bool {
    match result {
        Ok(()) => false,
        Err(Error::Findings { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_missing_step_is_found() {
    let (mut table, mut missed, mut count) = (String::new(), 0, 0);
    for subject in subjects() {
        for mutant in mutants(subject.spec.ptx) {
            count += 1;
            let spec = with_ptx(&subject.spec, mutant.ptx.clone());
            let found =
                (0..SEEDS).find(|&seed| is_found(&(subject.run)(&Device::simulator().seed(seed), spec)));
            let verdict = found.map_or_else(|| "MISSED".to_owned(), |seed| format!("found by seed {seed}"));
            missed += usize::from(found.is_none());
            let text = subject.spec.ptx.lines().nth(mutant.line - 1).unwrap_or_default().trim();
            let _ = writeln!(table, "{} | {text} | {} | {verdict}", subject.spec.name, mutant.what);
        }
    }
    println!("{table}{count} mutants, {missed} missed");
    assert!(count > 40, "too few mutants: {count}");
    assert_eq!(missed, 0, "missed:\n{table}");
}

#[test]
fn nothing_is_found_in_the_kernels_as_they_are() {
    for subject in subjects() {
        let spec = with_ptx(&subject.spec, subject.spec.ptx.to_owned());
        for seed in 0..QUIET_SEEDS {
            let result = (subject.run)(&Device::simulator().seed(seed), spec);
            assert!(result.is_ok(), "{}, seed {seed}: {result:?}", spec.name);
        }
    }
}
