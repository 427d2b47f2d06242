//! Control flow: branches, matches and loops, compared with the same text in plain Rust.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::samples;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case {
        name: "control::matches",
        run: |device, options| {
            let launch: Launch = |device, grid, input, out| control_matches::launch(device, grid, input, out);
            check(device, options, launch, matched)
        },
    },
    Case {
        name: "control::loops",
        run: |device, options| {
            let launch: Launch = |device, grid, input, out| control_loops::launch(device, grid, input, out);
            check(device, options, launch, looped)
        },
    },
    Case {
        name: "control::branches",
        run: |device, options| {
            let launch: Launch =
                |device, grid, input, out| control_branches::launch(device, grid, input, out);
            check(device, options, launch, branched)
        },
    },
    Case { name: "control::ranges", run: ranges },
    Case { name: "control::short_circuit", run: short_circuit },
];

type Launch = fn(&Device, Grid, &DeviceTensor<i32, 1>, &mut DeviceTensor<i32, 1>) -> Result<(), Error>;

/// Compares a kernel that maps each input to a result with the function that computes it in Rust.
fn check(device: &Device, options: &Options, launch: Launch, wanted: fn(i32) -> i32) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let mut inputs = samples::<i32>(11, n);
    // Small numbers, for which the arms and loops differ.
    for (i, input) in inputs.iter_mut().enumerate().skip(64).step_by(2) {
        *input = i as i32 % 256 - 64;
    }
    let wanted: Vec<i32> = inputs.iter().map(|&x| wanted(x)).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// `match` with literals, ranges of every kind, alternatives, a wide and a narrow type, and as a
/// value.
#[tma_kernel(threads = 128)]
pub fn control_matches(input: Global<i32>, out: Global<i32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = input.get(i);
    let mut sum = match x {
        i32::MIN..=-33 => 1,
        -32 | -16 | -8 => 2,
        -7..0 => x * 3,
        0 => 4,
        1..=9 | 21..=29 => {
            let square = x * x;
            square + 1
        }
        100.. => 5,
        _ => 6,
    };
    match x as u8 {
        0..=127 => sum += 10,
        128..=255 => sum += 20,
    }
    sum = match x % 2 == 0 {
        true => sum + 100,
        false => sum,
    };
    out.set(i, sum);
}

fn matched(x: i32) -> i32 {
    let mut sum = match x {
        i32::MIN..=-33 => 1,
        -32 | -16 | -8 => 2,
        -7..0 => x * 3,
        0 => 4,
        1..=9 | 21..=29 => x * x + 1,
        100.. => 5,
        _ => 6,
    };
    sum += if x as u8 <= 127 { 10 } else { 20 };
    if x % 2 == 0 { sum + 100 } else { sum }
}

/// Nested loops with labelled `break` and `continue`, `while` with a side effect in its condition,
/// and `loop`.
#[tma_kernel(threads = 128)]
pub fn control_loops(input: Global<i32>, out: Global<i32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = input.get(i) & 63;
    let mut sum = 0;
    'rows: for row in 0..16 {
        for col in 0..16 {
            if col > row {
                continue 'rows;
            }
            if row * col > x {
                break 'rows;
            }
            if (row ^ col) & 3 == 1 {
                continue;
            }
            sum += row * 16 + col;
        }
        sum += 1000;
    }
    let mut steps = 0;
    while steps < 8 && input.get(i) & 63 > steps * 4 {
        steps += 1;
    }
    let mut n = x + 1;
    loop {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
        if n == 1 {
            break;
        }
    }
    for down in (0..x).step_by(7) {
        sum ^= down << 8;
    }
    out.set(i, sum + steps * 0x10000);
}

fn looped(x: i32) -> i32 {
    let x = x & 63;
    let mut sum = 0;
    'rows: for row in 0..16 {
        for col in 0..=row {
            if row * col > x {
                break 'rows;
            }
            if (row ^ col) & 3 != 1 {
                sum += row * 16 + col;
            }
        }
        // Only the last row has no column beyond the diagonal.
        if row == 15 {
            sum += 1000;
        }
    }
    let mut steps = (x + 3) / 4;
    steps = steps.min(8);
    let mut n = x + 1;
    loop {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
        if n == 1 {
            break;
        }
    }
    for down in (0..x).step_by(7) {
        sum ^= down << 8;
    }
    sum + steps * 0x10000
}

/// `if` as statement and value, `else if`, blocks as values, an early return, and every compound
/// assignment.
#[tma_kernel(threads = 128)]
pub fn control_branches(input: Global<i32>, out: Global<i32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = input.get(i);
    if x == i32::MAX {
        out.set(i, -1);
        return;
    }
    let size = if x < -10 {
        -1
    } else if x < 10 {
        0
    } else {
        1
    };
    let mut y = {
        let twice = x + x;
        twice ^ size
    };
    y += 3;
    y -= size;
    y *= 5;
    y /= 7;
    y %= 1000;
    y &= 0x3ff;
    y |= 0x400;
    y ^= x;
    y <<= 2;
    y >>= 1;
    let x = !y;
    out.set(i, -x);
}

fn branched(x: i32) -> i32 {
    if x == i32::MAX {
        return -1;
    }
    let size = i32::from(x >= 10) - i32::from(x < -10);
    let y = (x.wrapping_add(x) ^ size).wrapping_add(3).wrapping_sub(size).wrapping_mul(5) / 7 % 1000;
    let y = (((y & 0x3ff) | 0x400) ^ x) << 2 >> 1;
    (!y).wrapping_neg()
}

/// Loops up to the ends of their types, without a wrap-around; loops that do not run; unrolled
/// loops.
#[tma_kernel(threads = 32)]
pub fn control_ranges(out: Global<u64>, from: u32, count: u32) {
    if thread_idx().x == 0 {
        let mut bytes = 0;
        for i in 250..=255u8 {
            bytes += i as u64;
        }
        out.set(0, bytes);

        let mut last = 0;
        for i in (4_294_967_290..=4_294_967_295u32).step_by(2) {
            last += i as u64;
        }
        out.set(1, last);

        let mut low = 0u64;
        for i in -128..=-126i8 {
            low += i as u64;
        }
        out.set(2, low);

        let mut none = 7;
        for _ in from..from {
            none = 0;
        }
        for _ in from + 1..=from {
            none = 0;
        }
        out.set(3, none);

        let mut dynamic = 0;
        for i in (from..from + count).step_by(count as usize / 4) {
            dynamic = dynamic * 100 + i as u64;
        }
        out.set(4, dynamic);

        let mut unrolled = 0;
        for i in unroll((0..=8u64).step_by(4)) {
            for j in unroll(0..3) {
                if j == 1 {
                    continue;
                }
                unrolled = unrolled * 10 + i / 4 + j;
            }
        }
        out.set(5, unrolled);

        let mut early = 0;
        for i in unroll(0..10u64) {
            if i == from as u64 {
                break;
            }
            early += 1;
        }
        out.set(6, early);

        let mut near_end = 0;
        for i in (250..255u8).step_by(200) {
            near_end += i as u64;
        }
        out.set(7, near_end);
    }
}

fn ranges(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut out = device.filled_bytes([8], 0xab)?;
    control_ranges::launch(device, 1, &mut out, 3, 20)?;
    let wanted = [
        250 + 251 + 252 + 253 + 254 + 255,
        4_294_967_290 + 4_294_967_292 + 4_294_967_294,
        (-128i64 - 127 - 126) as u64,
        7,
        3_08_13_18,
        2_13_24,
        3,
        250,
    ];
    same("results", &out.to_vec()?, &wanted)
}

/// `&&` and `||` evaluate their right side only if the left leaves the result open: here it would
/// be out of bounds.
#[tma_kernel(threads = 128)]
pub fn control_short_circuit(input: Global<i32>, out: Global<bool>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let next = i as u64 + 1;
    let grows = next < input.len() && input.get(next) > input.get(i);
    let ends_or_falls = next == input.len() || input.get(next) < input.get(i);
    out.set(i as u64 * 2, grows);
    out.set(i as u64 * 2 + 1, ends_or_falls);
}

fn short_circuit(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let inputs = samples::<i32>(12, n);
    let wanted: Vec<bool> = (0..n)
        .flat_map(|i| {
            let next = inputs.get(i + 1).copied();
            [next.is_some_and(|next| next > inputs[i]), next.is_none_or(|next| next < inputs[i])]
        })
        .collect();
    let mut out = device.filled_bytes([2 * n], 0xab)?;
    control_short_circuit::launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}
