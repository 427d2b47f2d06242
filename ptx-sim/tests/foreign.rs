//! PTX that nvcc and Triton wrote, under several seeds, against plain Rust.

use half::f16;
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};

const SEEDS: u64 = 8;

/// A kernel, its launch and its memory.
struct Run<'a> {
    ptx: &'a str,
    entry: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
}

impl Run<'_> {
    /// Runs the kernel under each seed on fresh copies of `buffers`, the arguments made from their addresses; `judge`
    /// sees the buffers afterwards.
    #[track_caller]
    fn check(&self, buffers: &[Vec<u8>], args: impl Fn(&[u64]) -> Vec<Arg>, judge: impl Fn(&[Vec<u8>])) {
        let module = Module::load(self.ptx).expect("it loads");
        for seed in 0..SEEDS {
            let mut memory = GlobalMemory::default();
            let addresses: Vec<u64> = buffers
                .iter()
                .map(|bytes| {
                    let address = memory.allocate(bytes.len() as u64, false).expect("there is room");
                    memory.write(address, bytes).expect("it was just allocated");
                    address
                })
                .collect();
            let config = LaunchConfig {
                grid: self.grid,
                block: self.block,
                dynamic_shared_bytes: self.shared,
                seed,
                ..LaunchConfig::default()
            };
            let report =
                launch(&module, &mut memory, self.entry, &config, &args(&addresses)).expect("it starts");
            let sources = module.sources(|_| None);
            assert!(report.findings.is_empty(), "seed {seed}: {}", report.findings.render(&sources));
            let after: Vec<Vec<u8>> = buffers
                .iter()
                .zip(&addresses)
                .map(|(bytes, &address)| {
                    let mut after = vec![0; bytes.len()];
                    memory.read(address, &mut after).expect("it is still there");
                    after
                })
                .collect();
            judge(&after);
        }
    }
}

const NVCC: &str = include_str!("corpus/nvcc.ptx");

fn nvcc(entry: &'static str, grid: u32, block: u32) -> Run<'static> {
    Run { ptx: NVCC, entry, grid: [grid, 1, 1], block: [block, 1, 1], shared: 0 }
}

/// Numbers as memory has them, and back.
macro_rules! memory_of {
    ($bytes:ident, $values:ident, $ty:ty) => {
        fn $bytes(values: &[$ty]) -> Vec<u8> {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        fn $values(bytes: &[u8]) -> Vec<$ty> {
            let size = size_of::<$ty>();
            bytes.chunks(size).map(|chunk| <$ty>::from_le_bytes(chunk.try_into().expect("whole"))).collect()
        }
    };
}
memory_of!(of_i32, i32s, i32);
memory_of!(of_u32, u32s, u32);
memory_of!(of_i64, i64s, i64);
memory_of!(of_f16, f16s, f16);
memory_of!(of_f32, f32s, f32);
memory_of!(of_f64, f64s, f64);

/// A number that looks random.
fn mixed(i: u32) -> u32 {
    let x = (i ^ 0x9e37_79b9).wrapping_mul(0x85eb_ca6b);
    (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35) ^ (x >> 16)
}

fn floats(n: u32) -> Vec<f32> {
    (0..n).map(|i| (mixed(i) >> 8) as f32 / 65536.0 - 128.0).collect()
}

fn scalar(value: i32) -> Arg {
    Arg::Bytes(value.to_le_bytes().into())
}

fn addresses(of: &[u64]) -> Vec<Arg> {
    of.iter().map(|&address| Arg::Address(address)).collect()
}

#[test]
fn saxpy_rounds_once() {
    let (x, y) = (floats(1000), floats(2000)[1000..].to_vec());
    let wanted: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 1.7f32.mul_add(*x, *y)).collect();
    nvcc("saxpy", 8, 128).check(
        &[of_f32(&x), of_f32(&y)],
        |at| {
            vec![
                Arg::Bytes(1.7f32.to_le_bytes().into()),
                Arg::Address(at[0]),
                Arg::Address(at[1]),
                scalar(1000),
            ]
        },
        |after| assert_eq!(f32s(&after[1]), wanted),
    );
}

#[test]
fn a_block_sums_through_shared_memory() {
    let x: Vec<f32> = (0..3000).map(|i| (mixed(i) % 64) as f32).collect();
    nvcc("block_sum", 3, 256).check(
        &[of_f32(&x), of_f32(&[0.0; 3])],
        |at| [addresses(at), vec![scalar(3000)]].concat(),
        |after| assert_eq!(f32s(&after[1]).iter().sum::<f32>(), x.iter().sum::<f32>()),
    );
}

#[test]
fn warps_sum_by_shuffles_and_one_atomic() {
    let x: Vec<i32> = (0..512).map(|i| mixed(i) as i32 >> 8).collect();
    nvcc("warp_sum", 4, 128).check(&[of_i32(&x), of_i32(&[0])], addresses, |after| {
        assert_eq!(i32s(&after[1]), [x.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x))]);
    });
}

#[test]
fn a_histogram_counts_in_shared_memory_first() {
    let x: Vec<u8> = (0..5000).map(|i| (mixed(i) >> 11) as u8).collect();
    let mut wanted = [0u32; 256];
    for byte in &x {
        wanted[usize::from(*byte)] += 1;
    }
    nvcc("histogram", 3, 128).check(
        &[x, of_u32(&[0; 256])],
        |at| [addresses(at), vec![scalar(5000)]].concat(),
        |after| assert_eq!(u32s(&after[1]), wanted),
    );
}

#[test]
fn a_padded_tile_is_transposed() {
    let x = floats(64 * 64);
    let wanted: Vec<f32> = (0..64 * 64).map(|i| x[i % 64 * 64 + i / 64]).collect();
    let run = Run { grid: [2, 2, 1], block: [32, 8, 1], ..nvcc("transpose32", 1, 1) };
    run.check(
        &[of_f32(&x), of_f32(&vec![0.0; 64 * 64])],
        |at| [addresses(at), vec![scalar(64)]].concat(),
        |after| assert_eq!(f32s(&after[1]), wanted),
    );
}

#[test]
fn a_scan_goes_back_and_forth_between_two_buffers() {
    let x: Vec<i32> = (0..256).map(|i| mixed(i) as i32 >> 12).collect();
    let wanted: Vec<i32> = x.iter().scan(0, |sum, x| Some(std::mem::replace(sum, *sum + x) + x)).collect();
    nvcc("scan", 1, 256).check(&[of_i32(&x), of_i32(&[0; 256])], addresses, |after| {
        assert_eq!(i32s(&after[1]), wanted);
    });
}

#[test]
fn packed_halves_round_once() {
    let x: Vec<f16> = (0..256).map(|i| f16::from_f32((mixed(i) % 4096) as f32 / 256.0)).collect();
    // A half times a half is exact in f64, and so is the sum with 1.5.
    let wanted: Vec<f16> = x.iter().map(|x| f16::from_f64(x.to_f64() * x.to_f64() + 1.5)).collect();
    nvcc("halves", 1, 128).check(&[of_f16(&x), of_f16(&[f16::ZERO; 256])], addresses, |after| {
        assert_eq!(f16s(&after[1]), wanted);
    });
}

#[test]
fn doubles_have_roots_and_quotients() {
    let x: Vec<f64> = (0..64).map(|i| f64::from(mixed(i)) / 1e5).collect();
    let wanted: Vec<f64> = x.iter().map(|x| x.sqrt() / (x + 3.0)).collect();
    nvcc("doubles", 1, 64).check(&[of_f64(&x), of_f64(&[0.0; 64])], addresses, |after| {
        assert_eq!(f64s(&after[1]), wanted);
    });
}

#[test]
fn lanes_part_and_meet_again() {
    let steps = |mut n: u32| {
        let mut k = 0;
        while n != 1 {
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            k += 1;
        }
        k
    };
    let wanted: Vec<i32> = (1..=128).map(steps).collect();
    nvcc("divergent", 2, 64)
        .check(&[of_i32(&[0; 128])], addresses, |after| assert_eq!(i32s(&after[0]), wanted));
}

#[test]
fn warps_vote_and_reduce() {
    let x: Vec<i32> = (0..64).map(|i| (mixed(i) % 100) as i32).collect();
    let wanted: Vec<u32> = (0..64usize)
        .map(|i| {
            let warp = &x[i / 32 * 32..i / 32 * 32 + 32];
            let odd_before = warp[..i % 32].iter().filter(|x| **x % 2 == 1).count() as u32;
            let any = if warp.iter().any(|x| *x > 90) { 1000 } else { 0 };
            odd_before + any + warp.iter().sum::<i32>() as u32
        })
        .collect();
    nvcc("votes", 1, 64).check(&[of_i32(&x), of_u32(&[0; 64])], addresses, |after| {
        assert_eq!(u32s(&after[1]), wanted);
    });
}

#[test]
fn long_integers_are_multiplied_shifted_and_divided() {
    let x: Vec<i64> = (0..64).map(|i| i64::from(mixed(i)) << 20 ^ i64::from(mixed(i + 99))).collect();
    let step = |v: i64| v.wrapping_mul(6_364_136_223_846_793_005).wrapping_add((v >> 7) % 1_000_003);
    let wanted: Vec<i64> = x.iter().map(|x| (0..9).fold(*x, |v, _| step(v))).collect();
    nvcc("longs", 1, 64).check(
        &[of_i64(&x), of_i64(&[0; 64])],
        |at| [addresses(at), vec![scalar(9)]].concat(),
        |after| assert_eq!(i64s(&after[1]), wanted),
    );
}

/// Triton's kernels take two more addresses than the source says: scratch memory, which these do not use.
fn triton_arguments(at: &[u64], n: i32) -> Vec<Arg> {
    [addresses(at), vec![scalar(n), Arg::Address(0), Arg::Address(0)]].concat()
}

#[test]
fn triton_adds() {
    let (x, y) = (floats(1000), floats(2000)[1000..].to_vec());
    let wanted: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
    let ptx = include_str!("corpus/triton_add.ptx");
    Run { ptx, entry: "add", grid: [4, 1, 1], block: [128, 1, 1], shared: 0 }.check(
        &[of_f32(&x), of_f32(&y), of_f32(&[0.0; 1000])],
        |at| triton_arguments(at, 1000),
        |after| assert_eq!(f32s(&after[2]), wanted),
    );
}

#[test]
fn triton_normalises_exponentials() {
    let x: Vec<f32> = floats(8 * 500).iter().map(|x| x / 32.0).collect();
    let ptx = include_str!("corpus/triton_softmax.ptx");
    Run { ptx, entry: "softmax", grid: [8, 1, 1], block: [128, 1, 1], shared: 1024 }.check(
        &[of_f32(&x), of_f32(&[0.0; 4000])],
        |at| triton_arguments(at, 500),
        |after| {
            for (row, found) in x.chunks(500).zip(f32s(&after[1]).chunks(500)) {
                let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
                for (x, found) in row.iter().zip(found) {
                    let wanted = f64::from(*x).exp() / sum;
                    // `ex2.approx` errs by 2 units in the last place, and its argument is rounded.
                    assert!((f64::from(*found) / wanted - 1.0).abs() < 4e-6, "{found} is not {wanted}");
                }
            }
        },
    );
}
