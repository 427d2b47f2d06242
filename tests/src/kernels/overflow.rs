//! Integer overflow in checked kernels: results that just fit, methods that wrap, and operators
//! that stop. `tests/tests/overflow.rs` compares each operator of each type with plain Rust.

use anyhow::ensure;
use tma_runtime::prelude::*;

use super::faults::Fault;
use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::sample_pairs;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "overflow::fits", run: |device, _| check_fits(device) },
    Case { name: "overflow::wraps", run: check_wraps },
];

/// The faults of this module: operands with which each operation overflows.
pub const FAULTS: &[Fault] = &[
    fault("overflow::add", |device| run(device, 0, i32::MAX, 1), &["add with overflow", FILE]),
    fault("overflow::subtract", |device| run(device, 1, i32::MIN, 1), &["subtract with overflow", FILE]),
    fault("overflow::multiply", |device| run(device, 2, 1 << 16, 1 << 15), &["multiply with overflow", FILE]),
    fault("overflow::negate", |device| run(device, 3, i32::MIN, 0), &["negate with overflow", FILE]),
    fault("overflow::shift_left", |device| run(device, 4, 1, 32), &["shift left with overflow", FILE]),
    fault("overflow::shift_right", |device| run(device, 5, 1, -1), &["shift right with overflow", FILE]),
    fault("overflow::abs", |device| run(device, 6, i32::MIN, 0), &["negate with overflow", FILE]),
    fault("overflow::pow", |device| run(device, 7, 2, 31), &["multiply with overflow", FILE]),
    fault("overflow::add_bytes", |device| run(device, 8, 255, 1), &["add with overflow", FILE]),
    fault("overflow::subtract_unsigned", |device| run(device, 9, 3, 4), &["subtract with overflow", FILE]),
    fault("overflow::multiply_words", |device| run(device, 10, -1, 2), &["multiply with overflow", FILE]),
    fault("overflow::next_multiple", |device| run(device, 11, -1, 16), &["add with overflow", FILE]),
];

/// The file that the messages name.
const FILE: &str = "overflow.rs";

/// An operation of [`overflow`], its operands, and the result, which just fits.
const FITTING: [(u32, i32, i32, i32); 14] = [
    (0, i32::MAX - 1, 1, i32::MAX),
    (0, i32::MIN, i32::MAX, -1),
    (1, i32::MIN + 1, 1, i32::MIN),
    (2, 1 << 16, -(1 << 15), i32::MIN),
    (3, i32::MIN + 1, 0, i32::MAX),
    (4, 1, 31, i32::MIN),
    (5, i32::MIN, 31, -1),
    (6, i32::MIN + 1, 0, i32::MAX),
    (7, -2, 31, i32::MIN),
    (8, 254, 1, 255),
    (9, 4, 4, 0),
    (10, -1, 1, -1),
    (11, -16, 16, -16),
    (11, -17, 16, -16),
];

const fn fault(
    name: &'static str,
    run: fn(&Device) -> Result<(), Error>,
    printed: &'static [&'static str],
) -> Fault {
    Fault { name, run, code: Some("TMA0608"), printed }
}

/// Runs an operation for its fault.
fn run(device: &Device, operation: u32, a: i32, b: i32) -> Result<(), Error> {
    result(device, operation, a, b).map(drop)
}

/// Returns the result of an operation of [`overflow`].
fn result(device: &Device, operation: u32, a: i32, b: i32) -> Result<i32, Error> {
    let mut out = device.zeros([1])?;
    overflow::launch(device, 1, operation, a, b, &mut out)?;
    Ok(out.to_vec()?[0])
}

fn check_fits(device: &Device) -> anyhow::Result<()> {
    for (operation, a, b, wanted) in FITTING {
        let found = result(device, operation, a, b)?;
        ensure!(found == wanted, "operation {operation} of {a} and {b} gives {found}, not {wanted}");
    }
    Ok(())
}

/// Runs `overflow_wraps` on edge values and random ones.
fn check_wraps(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let (a, b) = sample_pairs::<i64>(1, n);
    let results = |(&x, &y): (&i64, &i64)| {
        let (narrow, by) = ([x as u8, y as u8], y as u32);
        [
            x.wrapping_add(y),
            x.wrapping_sub(y),
            x.wrapping_mul(y),
            x.wrapping_neg(),
            x.wrapping_shl(by),
            x.wrapping_shr(by),
            narrow[0].wrapping_add(narrow[1]).into(),
            narrow[0].wrapping_sub(narrow[1]).into(),
            narrow[0].wrapping_mul(narrow[1]).into(),
            narrow[0].wrapping_neg().into(),
            narrow[0].wrapping_shl(by).into(),
            narrow[0].wrapping_shr(by).into(),
        ]
    };
    let wanted: Vec<i64> = a.iter().zip(&b).flat_map(results).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let (a, b) = (device.tensor(&a, [n])?, device.tensor(&b, [n])?);
    overflow_wraps::launch(device, blocks(n), &a, &b, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// Computes one operation.
#[tma_kernel(threads = 1, checked)]
pub fn overflow(operation: u32, a: i32, b: i32, out: Global<i32>) {
    let result = match operation {
        0 => a + b,
        1 => a - b,
        2 => a * b,
        3 => -a,
        4 => a << b,
        5 => a >> b,
        6 => a.abs(),
        7 => a.pow(b as u32),
        8 => (a as u8 + b as u8) as i32,
        9 => (a as u32 - b as u32) as i32,
        10 => (a as u64 * b as u64) as i32,
        _ => (a as u32).next_multiple_of(b as u32) as i32,
    };
    out.set(0, result);
}

/// Applies methods that wrap to operands on which operators would stop.
#[tma_kernel(threads = 128, checked)]
pub fn overflow_wraps(a: Global<i64>, b: Global<i64>, out: Global<i64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let by = y as u32;
        let words = [
            x.wrapping_add(y),
            x.wrapping_sub(y),
            x.wrapping_mul(y),
            x.wrapping_neg(),
            x.wrapping_shl(by),
            x.wrapping_shr(by),
        ];
        let narrow = x as u8;
        let other = y as u8;
        let bytes = [
            narrow.wrapping_add(other),
            narrow.wrapping_sub(other),
            narrow.wrapping_mul(other),
            narrow.wrapping_neg(),
            narrow.wrapping_shl(by),
            narrow.wrapping_shr(by),
        ];
        for k in unroll(0..6usize) {
            out.set(i * 12 + k as u64, words[k]);
            out.set(i * 12 + 6 + k as u64, bytes[k] as i64);
        }
    }
}
