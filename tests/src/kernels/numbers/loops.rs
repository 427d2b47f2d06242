//! The orders in which loops iterate, loops over arrays, and `break` with a value, compared with
//! the same text in plain Rust.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::hash;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "numbers::loops::orders", run: orders },
    Case { name: "numbers::loops::elements", run: elements },
    Case { name: "numbers::loops::breaks", run: breaks },
];

/// Ranges in reverse, with and without steps.
#[tma_kernel(threads = 128)]
pub fn numbers_orders(bounds: Global<u32>, out: Global<u32>) {
    let t = block_idx().x * 128 + thread_idx().x;
    let a = bounds.get(t * 3);
    let b = bounds.get(t * 3 + 1);
    let c = bounds.get(t * 3 + 2);
    let n = (c % 9 + 1) as usize;
    let mut all = 1u32;
    for i in (a..b).rev() {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a..=b).rev() {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a..b).rev().step_by(n) {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a..b).step_by(n).rev() {
        all = all.wrapping_mul(31).wrapping_add(i);
        if i == c {
            continue;
        }
        all ^= 5;
    }
    for i in (a..=b).rev().step_by(n) {
        if i == c {
            break;
        }
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a as u8..=b as u8).step_by(n).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (a as i8..b as i8).step_by(n).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (-(a as i32)..=b as i32).rev().step_by(7) {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (a as u64..=b as u64).rev().rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (i32::MIN..i32::MIN + 3).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (250..=255u8).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in unroll((0..7u32).rev()) {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in unroll((0..20u16).step_by(3).rev()) {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    let mut end = b;
    for mut i in (a..end).rev() {
        end = 0;
        i = i.wrapping_mul(3);
        all = all.wrapping_mul(31).wrapping_add(i ^ end);
    }
    out.set(t, all);
}

fn orders_wanted(a: u32, b: u32, c: u32) -> u32 {
    let n = (c % 9 + 1) as usize;
    let mut all = 1u32;
    for i in (a..b).rev() {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a..=b).rev() {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a..b).rev().step_by(n) {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a..b).step_by(n).rev() {
        all = all.wrapping_mul(31).wrapping_add(i);
        if i == c {
            continue;
        }
        all ^= 5;
    }
    for i in (a..=b).rev().step_by(n) {
        if i == c {
            break;
        }
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (a as u8..=b as u8).step_by(n).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (a as i8..b as i8).step_by(n).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (-(a as i32)..=b as i32).rev().step_by(7) {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (a as u64..=b as u64).rev().rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (i32::MIN..i32::MIN + 3).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (250..=255u8).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    for i in (0..7u32).rev() {
        all = all.wrapping_mul(31).wrapping_add(i);
    }
    for i in (0..20u16).step_by(3).rev() {
        all = all.wrapping_mul(31).wrapping_add(i as u32);
    }
    let mut end = b;
    for mut i in (a..end).rev() {
        end = 0;
        i = i.wrapping_mul(3);
        all = all.wrapping_mul(31).wrapping_add(i ^ end);
    }
    all
}

/// Loops over register arrays.
#[tma_kernel(threads = 128)]
pub fn numbers_elements(bounds: Global<u32>, out: Global<u32>) {
    let t = block_idx().x * 128 + thread_idx().x;
    let a = bounds.get(t * 3);
    let b = bounds.get(t * 3 + 1);
    let c = bounds.get(t * 3 + 2);
    let values = [a, b, c, 7];
    let mut all = 0u32;
    for x in values {
        if x == c {
            continue;
        }
        all = all.wrapping_mul(31).wrapping_add(x);
    }
    let mut changed = values;
    for x in changed {
        changed[3] = changed[3].wrapping_add(x);
        all = all.wrapping_mul(31).wrapping_add(x);
        if x > 200 {
            break;
        }
    }
    for row in [[a, b], [c, changed[3]]] {
        for mut x in row {
            x ^= 3;
            all = all.wrapping_mul(31).wrapping_add(x);
        }
    }
    for x in [1.5f32, -2.0, 0.25] {
        all = all.wrapping_add(x.to_bits());
    }
    for _ in [true; 5] {
        all = all.wrapping_mul(3);
    }
    out.set(t, all);
}

fn elements_wanted(a: u32, b: u32, c: u32) -> u32 {
    let values = [a, b, c, 7];
    let mut all = 0u32;
    for x in values {
        if x == c {
            continue;
        }
        all = all.wrapping_mul(31).wrapping_add(x);
    }
    let mut changed = values;
    for x in changed {
        changed[3] = changed[3].wrapping_add(x);
        all = all.wrapping_mul(31).wrapping_add(x);
        if x > 200 {
            break;
        }
    }
    for row in [[a, b], [c, changed[3]]] {
        for mut x in row {
            x ^= 3;
            all = all.wrapping_mul(31).wrapping_add(x);
        }
    }
    for x in [1.5f32, -2.0, 0.25] {
        all = all.wrapping_add(x.to_bits());
    }
    for _ in [true; 5] {
        all = all.wrapping_mul(3);
    }
    all
}

/// `break` with a value, from loops and labelled blocks.
#[allow(clippy::never_loop, reason = "a `break` with a label leaves it from within")]
#[tma_kernel(threads = 128)]
pub fn numbers_breaks(bounds: Global<u32>, out: Global<u32>) {
    let t = block_idx().x * 128 + thread_idx().x;
    let a = bounds.get(t * 3);
    let b = bounds.get(t * 3 + 1);
    let c = bounds.get(t * 3 + 2);
    let mut n = a;
    let halvings = loop {
        if n % 2 == 1 || n == 0 {
            break n;
        }
        n /= 2;
        if n == c {
            break 1000;
        }
    };
    let pair = 'search: loop {
        for i in 0..b {
            for j in 0..4 {
                if i * 4 + j == c {
                    break 'search [i, j];
                }
            }
        }
        break [b, b];
    };
    let class = 'class: {
        if a == 0 {
            break 'class 1;
        }
        for i in 0..b {
            if i == a {
                break 'class 2;
            }
            if i > 90 {
                break;
            }
        }
        if c > 100 {
            break 'class 3;
        }
        4
    };
    let mut steps = 0;
    'steps: {
        steps += 1;
        if b > 60 {
            break 'steps;
        }
        steps += 10;
    }
    out.set(
        t,
        halvings.wrapping_mul(3)
            ^ pair[0].wrapping_mul(5)
            ^ pair[1].wrapping_mul(7)
            ^ (class * 1000)
            ^ (steps * 100_000),
    );
}

#[allow(clippy::never_loop, reason = "a `break` with a label leaves it from within")]
fn breaks_wanted(a: u32, b: u32, c: u32) -> u32 {
    let mut n = a;
    let halvings = loop {
        if n % 2 == 1 || n == 0 {
            break n;
        }
        n /= 2;
        if n == c {
            break 1000;
        }
    };
    let pair = 'search: loop {
        for i in 0..b {
            for j in 0..4 {
                if i * 4 + j == c {
                    break 'search [i, j];
                }
            }
        }
        break [b, b];
    };
    let class = 'class: {
        if a == 0 {
            break 'class 1;
        }
        for i in 0..b {
            if i == a {
                break 'class 2;
            }
            if i > 90 {
                break;
            }
        }
        if c > 100 {
            break 'class 3;
        }
        4
    };
    let mut steps = 0;
    'steps: {
        steps += 1;
        if b > 60 {
            break 'steps;
        }
        steps += 10;
    }
    halvings.wrapping_mul(3)
        ^ pair[0].wrapping_mul(5)
        ^ pair[1].wrapping_mul(7)
        ^ (class * 1000)
        ^ (steps * 100_000)
}

type Launch = fn(&Device, Grid, &DeviceTensor<u32, 1>, &mut DeviceTensor<u32, 1>) -> Result<(), Error>;

/// Compares a kernel with the function of three numbers that computes its results in Rust.
fn check(
    device: &Device,
    options: &Options,
    launch: Launch,
    wanted: fn(u32, u32, u32) -> u32,
) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let bounds: Vec<[u32; 3]> = (0..n as u64)
        .map(|i| {
            let start = (hash(57, i) % 100) as u32;
            [start, start + (hash(58, i) % 20) as u32, (hash(59, i) % 120) as u32]
        })
        .collect();
    let wanted: Vec<u32> = bounds.iter().map(|&[a, b, c]| wanted(a, b, c)).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    launch(device, blocks(n), &device.tensor(&bounds.concat(), [3 * n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

fn orders(device: &Device, options: &Options) -> anyhow::Result<()> {
    check(
        device,
        options,
        |device, grid, bounds, out| numbers_orders::launch(device, grid, bounds, out),
        orders_wanted,
    )
}

fn elements(device: &Device, options: &Options) -> anyhow::Result<()> {
    check(
        device,
        options,
        |device, grid, bounds, out| numbers_elements::launch(device, grid, bounds, out),
        elements_wanted,
    )
}

fn breaks(device: &Device, options: &Options) -> anyhow::Result<()> {
    check(
        device,
        options,
        |device, grid, bounds, out| numbers_breaks::launch(device, grid, bounds, out),
        breaks_wanted,
    )
}
