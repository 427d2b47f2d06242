//! The kernels of the chapter on communication between blocks, `docs/blocks.md`: the code here is
//! the code of the chapter, and its results equal those of plain Rust.
#![cfg(feature = "llvm")]

use std::fs;
use std::path::Path;

use tma_codegen::{Target, check, compile};
use tma_runtime::launch::{Arg, KernelParts, KernelSpec, ParamKind, ParamSpec, launch};
use tma_runtime::prelude::*;
use tma_runtime::spec::{Cluster, Scalar};
use tma_runtime::testing::under_seeds;
use tma_tests::sources::{CodeBlock, code_blocks};

/// Adds up `values`: each block a part, and the block that finishes last all parts. `finished` is 0
/// before and after the launch.
#[tma_kernel(threads = 128)]
pub fn sum_by_last(values: Global<f32>, parts: Global<f32>, finished: Global<u32>, total: Global<f32>) {
    let block: SharedArray<f32, 128> = shared();
    let t = thread_idx().x;
    block.set(t, values.get(block_idx().x * 128 + t));
    sync_threads();
    if t == 0 {
        let mut part = 0.0;
        for i in 0..128 {
            part += block.get(i);
        }
        parts.set(block_idx().x, part);
        // Releases this block's part, and acquires those of the blocks that were counted before.
        let before = finished.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        if before == grid_dim().x - 1 {
            let mut sum = 0.0;
            for i in 0..grid_dim().x {
                sum += parts.get(i);
            }
            total.set(0, sum);
            finished.set(0, 0);
        }
    }
}

/// Every block writes its index to one element.
#[tma_kernel(threads = 32)]
pub fn one_element(out: Global<u32>) {
    if thread_idx().x == 0 {
        out.set(0, block_idx().x);
    }
}

#[test]
fn plain_writes_of_blocks_race_where_that_is_asked() -> anyhow::Result<()> {
    let device = Device::simulator();
    let mut out = device.zeros([1])?;
    one_element::launch(&device, 2, &mut out)?;
    let device = Device::simulator().all_global_races(true);
    let mut out = device.zeros([1])?;
    let error = one_element::launch(&device, 2, &mut out).expect_err("both write the element");
    assert!(error.to_string().contains("race"), "{error}");
    Ok(())
}

#[test]
fn the_last_block_adds_up() -> anyhow::Result<()> {
    const BLOCKS: usize = 37;
    // Fractions, so that another order of additions would have another sum.
    let values: Vec<f32> = (0..BLOCKS * 128).map(|i| 1.0 / (1 + i % 97) as f32).collect();
    let parts = values.chunks(128).map(|part| part.iter().sum::<f32>());
    let wanted: f32 = parts.sum();
    under_seeds(8, |device| -> anyhow::Result<()> {
        let src = device.tensor(&values, [values.len()])?;
        let (mut parts, mut total) = (device.filled_bytes([BLOCKS], 0xab)?, device.zeros([1])?);
        let mut finished = device.zeros([1])?;
        for _ in 0..2 {
            total.fill_bytes(0)?;
            sum_by_last::launch(device, BLOCKS as u32, &src, &mut parts, &mut finished, &mut total)?;
            assert_eq!(total.to_vec()?, [wanted]);
        }
        assert_eq!(finished.to_vec()?, [0]);
        Ok(())
    })?;
    Ok(())
}

/// `out[i]` is the sum of `values[0..=i]`, 128 elements per block. `tickets` and `flags` are 0
/// before the launch.
#[tma_kernel(threads = 128)]
pub fn running_sums(
    values: Global<u32>,
    sums: Global<u32>,
    flags: Global<u32>,
    tickets: Global<u32>,
    out: Global<u32>,
) {
    let ticket: SharedArray<u32, 1> = shared();
    let block: SharedArray<u32, 128> = shared();
    let before: SharedArray<u32, 1> = shared();
    let t = thread_idx().x;
    if t == 0 {
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    let tile = ticket.get(0);
    block.set(t, values.get(tile * 128 + t));
    sync_threads();
    let mut sum = 0;
    for i in 0..t + 1 {
        sum += block.get(i);
    }
    if t == 127 {
        let mut sum_before = 0;
        if tile > 0 {
            // The block with the ticket before this one is running, or has ended.
            while flags.load(tile - 1, Order::Acquire, Scope::Device) == 0 {}
            sum_before = sums.get(tile - 1);
        }
        sums.set(tile, sum_before + sum);
        flags.store(tile, 1, Order::Release, Scope::Device);
        before.set(0, sum_before);
    }
    sync_threads();
    out.set(tile * 128 + t, before.get(0) + sum);
}

#[test]
fn a_block_waits_for_the_ticket_before_its_own() -> anyhow::Result<()> {
    const BLOCKS: usize = 19;
    let values: Vec<u32> = (0..BLOCKS as u32 * 128).map(|i| i * i % 1009).collect();
    let sum = |sum: &mut u32, &x: &u32| {
        *sum += x;
        Some(*sum)
    };
    let wanted: Vec<_> = values.iter().scan(0, sum).collect();
    under_seeds(8, |device| -> anyhow::Result<()> {
        let src = device.tensor(&values, [values.len()])?;
        let mut sums = device.filled_bytes([BLOCKS], 0xab)?;
        let (mut flags, mut tickets) = (device.zeros([BLOCKS])?, device.zeros([1])?);
        let mut out = device.filled_bytes([values.len()], 0xab)?;
        running_sums::launch(device, BLOCKS as u32, &src, &mut sums, &mut flags, &mut tickets, &mut out)?;
        assert_eq!(out.to_vec()?, wanted);
        Ok(())
    })?;
    Ok(())
}

/// `steps[i]` is how many steps of Collatz's sequence lead from `values[i]` to 1. `work` holds the
/// next tile and the blocks that have finished, both 0 before and after the launch.
#[tma_kernel(threads = 128)]
pub fn collatz(values: Global<u32>, steps: Global<u32>, work: Global<u32>, tiles: u32) {
    let next: SharedArray<u32, 1> = shared();
    let t = thread_idx().x;
    loop {
        if t == 0 {
            next.set(0, work.fetch_add(0, 1, Order::Relaxed, Scope::Device));
        }
        sync_threads();
        let tile = next.get(0);
        sync_threads(); // all threads have read the tile before thread 0 takes the next one
        if tile >= tiles {
            break;
        }
        let mut value = values.get(tile * 128 + t);
        let mut count = 0;
        while value != 1 {
            value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
            count += 1;
        }
        steps.set(tile * 128 + t, count);
    }
    if t == 0 && work.fetch_add(1, 1, Order::AcqRel, Scope::Device) == grid_dim().x - 1 {
        // No block takes another tile: the counters are as the next launch wants them.
        work.set(0, 0);
        work.set(1, 0);
    }
}

#[test]
fn each_tile_is_taken_once() -> anyhow::Result<()> {
    let of = |mut value: u32| {
        let mut count = 0;
        while value != 1 {
            value = if value.is_multiple_of(2) { value / 2 } else { 3 * value + 1 };
            count += 1;
        }
        count
    };
    under_seeds(4, |device| -> anyhow::Result<()> {
        let mut work = device.zeros([2])?;
        // Fewer tiles than blocks, equally many, and more.
        for tiles in [1, 5, 23] {
            let values: Vec<u32> = (1..=tiles * 128).collect();
            let wanted: Vec<u32> = values.iter().map(|&value| of(value)).collect();
            let src = device.tensor(&values, [values.len()])?;
            let mut steps = device.filled_bytes([values.len()], 0xab)?;
            let blocks = device.resident_blocks(&collatz::SPEC)?.min(5);
            collatz::launch(device, blocks, &src, &mut steps, &mut work, tiles)?;
            assert_eq!(steps.to_vec()?, wanted);
            assert_eq!(work.to_vec()?, [0, 0]);
        }
        Ok(())
    })?;
    Ok(())
}

/// Smooths `rows[0..n]` so many times, where `n` is 128 per block; the ends stay. The result is in
/// `rows[0..n]` after an even number of steps, else in `rows[n..2 * n]`.
#[tma_kernel(threads = 128)]
pub fn smooth(rows: Global<f32>, counter: Global<u32>, steps: u32) {
    let n = grid_dim().x * 128;
    let i = block_idx().x * 128 + thread_idx().x;
    for step in 0..steps {
        let from = step % 2 * n;
        let to = (step + 1) % 2 * n;
        let middle = rows.get(from + i);
        if i > 0 && i < n - 1 {
            let sides = rows.get(from + i - 1) + rows.get(from + i + 1);
            rows.set(to + i, (middle + middle + sides) / 4.0);
        } else {
            rows.set(to + i, middle);
        }
        sync_grid(counter); // the next step reads what neighbouring blocks have written
    }
}

#[test]
fn all_blocks_finish_a_step_before_the_next() -> anyhow::Result<()> {
    const BLOCKS: usize = 6;
    const STEPS: usize = 5;
    let n = BLOCKS * 128;
    let first: Vec<f32> = (0..n).map(|i| (i * 37 % 101) as f32).collect();
    let mut wanted = first.clone();
    for _ in 0..STEPS {
        let now = wanted.clone();
        for i in 1..n - 1 {
            wanted[i] = (now[i] + now[i] + (now[i - 1] + now[i + 1])) / 4.0;
        }
    }
    under_seeds(8, |device| -> anyhow::Result<()> {
        let mut rows = device.tensor(&[first.clone(), vec![0.0; n]].concat(), [2 * n])?;
        let mut counter = device.zeros([1])?;
        smooth::launch(device, BLOCKS as u32, &mut rows, &mut counter, STEPS as u32)?;
        assert_eq!(rows.to_vec()?[n..], wanted);
        Ok(())
    })?;
    Ok(())
}

/// Compiles the kernel of a block of the chapter, for launches whose parameters are all
/// `Global<u32>`.
fn spec(block: &CodeBlock) -> &'static KernelSpec {
    let checked = check("chapter.rs", &block.code).expect("the compiler accepts it");
    let compiled = compile("chapter.rs", &block.code, Target::default()).expect("it compiles");
    let ([checked], [ptx]) = (&checked.kernels[..], &compiled.kernels[..]) else {
        panic!("one kernel a block")
    };
    let kernel = checked.kernel.kernel();
    let params = kernel.params.iter().map(|param| ParamSpec {
        name: param.name.clone().leak(),
        kind: ParamKind::Global { element: Scalar::U32, written: param.written, alignment: 4 },
    });
    let parts = KernelParts {
        name: ptx.name.clone().leak(),
        entry: ptx.entry.clone().leak(),
        ptx: ptx.text.clone().leak(),
        threads: kernel.launch.threads,
        cluster: Cluster::None,
        cooperative: block.code.contains("sync_grid("),
        dependency_wait: false,
        team: false,
        shared_bytes: checked.kernel.layout().bytes(),
        params: params.collect::<Vec<_>>().leak(),
    };
    // SAFETY: the compiler made the PTX of this kernel.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
}

/// Returns the simulator's findings in three blocks of a kernel whose tensors are zero.
fn findings(spec: &'static KernelSpec) -> String {
    let device = Device::simulator();
    let mut tensors = vec![];
    for _ in spec.params {
        tensors.push(device.zeros::<u32, 1>([128]).expect("memory"));
    }
    let args: Vec<_> = tensors.iter_mut().map(|tensor| Arg::global_mut(tensor.slice_mut())).collect();
    let launched = launch(&device, spec, Grid::x(3), &args);
    launched.expect_err("the kernel is wrong").to_string()
}

#[test]
fn waits_go_wrong_as_the_chapter_says() -> anyhow::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/blocks.md");
    let chapter = code_blocks(&fs::read_to_string(page)?);
    let wrong = chapter.windows(2).filter(|pair| pair[0].info == "rust,finding");
    let mut quoted = 0;
    for pair in wrong {
        quoted += 1;
        let found = findings(spec(&pair[0]));
        // `...` is for lines that are left out.
        let mut lines = found.lines().map(str::trim);
        for quote in pair[1].code.lines().map(str::trim).filter(|line| *line != "...") {
            assert!(lines.any(|line| line == quote), "line {}: {quote}\nin\n{found}", pair[1].line);
        }
    }
    assert_eq!(quoted, 2);
    Ok(())
}
