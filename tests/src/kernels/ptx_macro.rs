//! `ptx!`: operands of every register, effects, and templates with registers of their own.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{noise, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "ptx_macro::pure", run: pure },
    Case { name: "ptx_macro::floats", run: floats },
    Case { name: "ptx_macro::global", run: global },
    Case { name: "ptx_macro::shared", run: shared_memory },
];

/// The number of results per input of [`ptx_pure`].
const RESULTS: usize = 9;

/// Instructions without effects: integers of each size, predicates, several results, and registers
/// of the template's own.
#[tma_kernel(threads = 128)]
pub fn ptx_pure(words: Global<u64>, out: Global<u64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let word = words.get(i);
    let (low, high) = (word as u32, (word >> 32) as u32);
    let first = i * 9;

    let mut picked = 0u32;
    unsafe {
        ptx!("prmt.b32 {picked}, {low}, {high}, {order};", out picked, in low, in high, order = in 0x5410u32)
    };
    out.set(first, picked as u64);

    let mut distance = 7u32;
    for k in 0..3u32 {
        unsafe {
            ptx!("sad.u32 {distance}, {low}, {to}, {distance};", inout distance, in low, to = in high + k)
        };
    }
    out.set(first + 1, distance as u64);

    let mut short = 0u16;
    unsafe { ptx!("mad.lo.u16 {short}, {a}, {a}, 5;", out short, a = in word as u16) };
    out.set(first + 2, short as u64);

    let mut upper = 0u64;
    unsafe { ptx!("mul.hi.u64 {upper}, {word}, {word};", out upper, in word) };
    out.set(first + 3, upper);

    let mut is_less = false;
    unsafe { ptx!("setp.lt.u32 {is_less}, {low}, {high};", out is_less, in low, in high) };
    let mut chosen = 0u32;
    unsafe { ptx!("selp.b32 {chosen}, {low}, {high}, {is_less};", out chosen, in low, in high, in is_less) };
    out.set(first + 4, if is_less { chosen as u64 } else { chosen as u64 + (1 << 32) });

    let mut halves = [0u32; 2];
    unsafe {
        ptx!(
            "{{ .reg .b64 wide;",
            "mul.wide.u32 wide, {low}, {high};",
            "mov.b64 {{{lower}, {upper}}}, wide; }}",
            lower = out halves[0], upper = out halves[1], in low, in high,
        );
    }
    out.set(first + 5, halves[0] as u64);
    out.set(first + 6, halves[1] as u64);

    let mut bits = high;
    for k in unroll(0..2u32) {
        unsafe {
            ptx!(
                "{{ .reg .pred p; .reg .b32 t;",
                "setp.gt.u32 p, {bits}, {low};",
                "mov.b32 t, {k};",
                "@p add.u32 {bits}, {bits}, t; }}",
                inout bits, in low, in k,
            );
        }
    }
    out.set(first + 7, bits as u64);

    // The first instruction writes the result before the second one reads the input.
    let mut state = low;
    for _ in 0..high % 5 {
        let mut next = 0u32;
        unsafe { ptx!("mov.b32 {next}, 7;", "mad.lo.u32 {next}, {next}, {state}, 1;", out next, in state) };
        state = next;
    }
    out.set(first + 8, state as u64);
}

fn pure(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 10);
    let words = noise::<u64>(401, n);
    let mut out = device.filled_bytes([n * RESULTS], 0)?;
    ptx_pure::launch(device, blocks(n), &device.tensor(&words, [n])?, &mut out)?;
    let results = |word: &u64| {
        let (low, high) = (*word as u32, (word >> 32) as u32);
        let distance = (0..3).map(|k| low.abs_diff(high.wrapping_add(k))).fold(7, u32::wrapping_add);
        let short = (*word as u16).wrapping_mul(*word as u16).wrapping_add(5);
        let product = u64::from(low) * u64::from(high);
        [
            u64::from((low & 0xffff) | high << 16),
            u64::from(distance),
            u64::from(short),
            (u128::from(*word).pow(2) >> 64) as u64,
            if low < high { u64::from(low) } else { u64::from(high) + (1 << 32) },
            product & 0xffff_ffff,
            product >> 32,
            u64::from(if high > low { high.wrapping_add(1) } else { high }),
            u64::from((0..high % 5).fold(low, |state, _| state.wrapping_mul(7).wrapping_add(1))),
        ]
    };
    same("results", &out.to_vec()?, &words.iter().flat_map(results).collect::<Vec<_>>())
}

/// Floats of each size.
#[tma_kernel(threads = 128)]
pub fn ptx_floats(halves: Global<f16>, singles: Global<f32>, doubles: Global<f64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let mut half = halves.get(i);
    unsafe { ptx!("neg.f16 {half}, {half};", inout half) };
    halves.set(i, half);
    let mut single = singles.get(i);
    unsafe { ptx!("max.NaN.f32 {single}, {single}, {other};", inout single, other = in 0.5f32) };
    singles.set(i, single);
    let mut double = doubles.get(i);
    unsafe { ptx!("copysign.f64 {double}, {sign}, {double};", inout double, sign = in -1.0f64) };
    doubles.set(i, double);
}

fn floats(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 10);
    let (halves, singles, doubles) = (samples::<f16>(402, n), samples::<f32>(403, n), samples::<f64>(404, n));
    let mut negated = device.tensor(&halves, [n])?;
    let mut greater = device.tensor(&singles, [n])?;
    let mut negative = device.tensor(&doubles, [n])?;
    ptx_floats::launch(device, blocks(n), &mut negated, &mut greater, &mut negative)?;
    same("negated", &negated.to_vec()?, &halves.iter().map(|x| -*x).collect::<Vec<_>>())?;
    let larger = |x: &f32| if x.is_nan() { *x } else { x.max(0.5) };
    same("greater", &greater.to_vec()?, &singles.iter().map(larger).collect::<Vec<_>>())?;
    same("negative", &negative.to_vec()?, &doubles.iter().map(|x| -x.abs()).collect::<Vec<_>>())
}

/// A load and a store of global memory.
#[tma_kernel(threads = 128)]
pub fn ptx_global(input: Global<u32>, out: Global<u32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let mut x = 0u32;
    unsafe {
        ptx!(
            "{{ .reg .b64 at;",
            "mad.wide.u32 at, {i}, 4, {input};",
            "ld.global.nc.L1::no_allocate.b32 {x}, [at]; }}",
            out x, in i, in input, reads(input),
        );
        ptx!(
            "{{ .reg .b64 at;",
            "mad.wide.u32 at, {i}, 4, {out};",
            "st.global.b32 [at], {y}; }}",
            in i, in out, y = in x * 3, writes(out),
        );
    }
}

fn global(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let input = noise::<u32>(405, n);
    let mut out = device.filled_bytes([n], 0)?;
    ptx_global::launch(device, blocks(n), &device.tensor(&input, [n])?, &mut out)?;
    same("values", &out.to_vec()?, &input.iter().map(|x| x.wrapping_mul(3)).collect::<Vec<_>>())
}

/// A store to shared memory, and a register that differs in each thread.
#[tma_kernel(threads = 128)]
pub fn ptx_shared(out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    let i = thread_idx().x;
    let mut lane = 0u32;
    unsafe {
        ptx!("mov.u32 {lane}, %laneid;", out lane, volatile);
        ptx!(
            "{{ .reg .b32 at;",
            "mad.lo.u32 at, {i}, 4, {row};",
            "st.shared.b32 [at], {x}; }}",
            in i, in row, x = in i * 100 + lane, writes(row),
        );
    }
    sync_threads();
    out.set(block_idx().x * 128 + i, row.get(127 - i));
}

fn shared_memory(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut out = device.filled_bytes([256], 0)?;
    ptx_shared::launch(device, 2, &mut out)?;
    let value = |i: u32| (127 - i % 128) * 100 + (127 - i % 128) % 32;
    same("values", &out.to_vec()?, &(0..256).map(value).collect::<Vec<_>>())
}
