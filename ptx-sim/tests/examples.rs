//! The four examples on ragged shapes, under several seeds. Results must equal those of plain Rust,
//! with no findings.

use crate::common::{Matrix, example, tiles};
use ptx_sim::tensor_map::{DataType, Swizzle};
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, Report, launch};

const SEEDS: u64 = 8;

fn clean(module: &Module, report: &Report) {
    let sources = module.sources(|_| None);
    assert!(report.findings.is_empty(), "{}", report.findings.render(&sources));
    assert!(report.thread_instructions > 0);
}

fn halves(count: u64) -> Vec<u8> {
    (0..count).flat_map(|i| (i as u16).wrapping_mul(40503).to_le_bytes()).collect()
}

fn floats(count: u64) -> Vec<f32> {
    (0..count).map(|i| i as f32 / 7.0).collect()
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn tma_copy() {
    let (entry, module) = example("tma_copy");
    for seed in 0..SEEDS {
        for shape in [[1, 8], [70, 520], [32, 256]] {
            let mut memory = GlobalMemory::default();
            let host = halves(shape[0] * shape[1]);
            let src = Matrix::new(&mut memory, DataType::F16, shape, Some(&host));
            let dst = Matrix::new(&mut memory, DataType::F16, shape, None);
            let config = tiles(&src, [32, 256], 128, 16384 + 8, seed);
            let map = |matrix: &Matrix| Arg::Map(matrix.map([32, 256], Swizzle::None));
            let report =
                launch(&module, &mut memory, &entry, &config, &[map(&src), map(&dst)]).expect("it starts");
            clean(&module, &report);
            assert_eq!(dst.bytes(&memory), host, "seed {seed}, {shape:?}");
        }
    }
}

#[test]
fn tma_scale() {
    let (entry, module) = example("tma_scale");
    for seed in 0..SEEDS {
        for shape in [[1, 4], [100, 68]] {
            let mut memory = GlobalMemory::default();
            let host = floats(shape[0] * shape[1]);
            let src = Matrix::new(&mut memory, DataType::F32, shape, Some(&bytes_of(&host)));
            let dst = Matrix::new(&mut memory, DataType::F32, shape, None);
            let config = tiles(&src, [64, 32], 128, 8192 + 8, seed);
            let map = |matrix: &Matrix| Arg::Map(matrix.map([64, 32], Swizzle::None));
            let factor = Arg::Bytes(2.5_f32.to_le_bytes().to_vec());
            let args = [map(&src), map(&dst), factor];
            let report = launch(&module, &mut memory, &entry, &config, &args).expect("it starts");
            clean(&module, &report);
            let wanted: Vec<f32> = host.iter().map(|value| value * 2.5).collect();
            assert_eq!(dst.bytes(&memory), bytes_of(&wanted), "seed {seed}, {shape:?}");
        }
    }
}

#[test]
fn tma_copy_pipelined() {
    let (entry, module) = example("tma_copy_pipelined");
    for seed in 0..SEEDS {
        for (shape, blocks) in [([70, 520], 2), ([200, 1032], 3)] {
            let mut memory = GlobalMemory::default();
            let host = halves(shape[0] * shape[1]);
            let src = Matrix::new(&mut memory, DataType::F16, shape, Some(&host));
            let dst = Matrix::new(&mut memory, DataType::F16, shape, None);
            let work = memory.allocate(8, false).expect("there is room");
            let map = |matrix: &Matrix| Arg::Map(matrix.map([32, 256], Swizzle::None));
            let (down, across) = (shape[0].div_ceil(32) as u32, shape[1].div_ceil(256) as u32);
            let number = |value: u32| Arg::Bytes(value.to_le_bytes().to_vec());
            let config = LaunchConfig {
                grid: [blocks, 1, 1],
                block: [64, 1, 1],
                dynamic_shared_bytes: 4 * 16384 + 8 * 8 + 4 * 4,
                seed,
                checks: ptx_sim::Checks::ALL,
                ..LaunchConfig::default()
            };
            let length = Arg::Bytes(2_u64.to_le_bytes().to_vec());
            let args =
                [map(&src), map(&dst), Arg::Address(work), length, number(across), number(down * across)];
            let report = launch(&module, &mut memory, &entry, &config, &args).expect("it starts");
            clean(&module, &report);
            assert_eq!(dst.bytes(&memory), host, "seed {seed}, {shape:?}");
            let mut counters = [1; 8];
            memory.read(work, &mut counters).expect("it is there");
            assert_eq!(counters, [0; 8], "the counters are as they were");
        }
    }
}

#[test]
fn transpose() {
    let (entry, module) = example("transpose");
    for seed in 0..SEEDS {
        for shape in [[64, 64], [100, 132], [4, 8]] {
            let (host, dst, memory) = run_transpose(&module, &entry, shape, seed, 1);
            let [rows, cols] = shape.map(|extent| extent as usize);
            let wanted: Vec<f32> = (0..cols)
                .flat_map(|c| (0..rows).map(move |r| (r, c)))
                .map(|(r, c)| host[r * cols + c])
                .collect();
            assert_eq!(dst.bytes(&memory), bytes_of(&wanted), "seed {seed}, {shape:?}");
        }
    }
}

fn run_transpose(
    module: &Module,
    entry: &str,
    shape: [u64; 2],
    seed: u64,
    host_threads: usize,
) -> (Vec<f32>, Matrix, GlobalMemory) {
    let mut memory = GlobalMemory::default();
    let host = floats(shape[0] * shape[1]);
    let src = Matrix::new(&mut memory, DataType::F32, shape, Some(&bytes_of(&host)));
    let dst = Matrix::new(&mut memory, DataType::F32, [shape[1], shape[0]], None);
    let config = LaunchConfig { host_threads, ..tiles(&dst, [64, 64], 512, 32768 + 8, seed) };
    let map = |matrix: &Matrix| Arg::Map(matrix.map([64, 64], Swizzle::None));
    let report = launch(module, &mut memory, entry, &config, &[map(&src), map(&dst)]).expect("it starts");
    clean(module, &report);
    (host, dst, memory)
}

#[test]
fn several_host_threads_give_the_same() {
    let (entry, module) = example("transpose");
    let [one, two] = [1, 3].map(|threads| {
        let (_, dst, memory) = run_transpose(&module, &entry, [200, 132], 5, threads);
        dst.bytes(&memory)
    });
    assert_eq!(one, two);
}
