//! Kernels that print and kernels that stop with an error.
//!
//! A fault ends the process's use of its device, and a kernel prints to the standard output of its
//! process. So each of these runs in its own process, which the parent starts and judges.

use super::{overflow, printing};
use anyhow::ensure;
use tma_runtime::prelude::*;

use super::mma::{prints, stops};
use crate::gpu::teams;

/// A kernel that runs in its own process.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The name, unique among all faults.
    pub name: &'static str,
    /// Launches the kernel and waits. Returns the result that a program would see.
    pub run: fn(&Device) -> Result<(), Error>,
    /// The code of the error that it must end with.
    pub code: Option<&'static str>,
    /// The texts that it must print, on either stream.
    pub printed: &'static [&'static str],
}

/// Returns every fault, including those of other modules.
pub fn all() -> impl Iterator<Item = &'static Fault> {
    let others = [overflow::FAULTS, stops::FAULTS, prints::FAULTS, teams::FAULTS];
    FAULTS.iter().chain(others.into_iter().flatten())
}

/// The faults of this module.
const FAULTS: &[Fault] = &[
    Fault {
        name: "faults::printf",
        run: |device| {
            fault_printf::launch(device, 1, -7, 0xbeef, 1.5)?;
            device.synchronize()
        },
        code: None,
        printed: &[
            "thread 3: -7 beef 1.5 |       3| 1.500 100% {} true\n",
            "wide -7 18446744073709551609 fffffffffffffff9 f9\n",
            "halves -2.5 0.75 65535\n",
        ],
    },
    Fault { name: "printing::tiles", run: printing::run, code: None, printed: &[printing::PRINTED] },
    Fault {
        name: "faults::assert",
        run: |device| {
            fault_assert::launch(device, 1, 7)?;
            device.synchronize()
        },
        code: Some("TMA0608"),
        printed: &["the number is even", "faults.rs"],
    },
    Fault {
        name: "faults::assert_that_holds",
        run: |device| {
            fault_assert::launch(device, 1, 8)?;
            device.synchronize()
        },
        code: None,
        printed: &[],
    },
    Fault {
        name: "faults::assume",
        run: |device| {
            fault_assume::launch(device, 1, 7)?;
            device.synchronize()
        },
        code: Some("TMA0608"),
        printed: &["an assumption does not hold", "faults.rs"],
    },
    Fault {
        name: "faults::assume_unchecked",
        run: |device| {
            fault_assume_unchecked::launch(device, 1, 7)?;
            device.synchronize()
        },
        code: None,
        printed: &[],
    },
    Fault {
        name: "faults::trap",
        run: |device| {
            fault_trap::launch(device, 1, 3)?;
            device.synchronize()
        },
        code: Some("TMA0608"),
        printed: &[],
    },
    Fault {
        name: "faults::read_past_the_end",
        run: |device| read(device, 100),
        code: Some("TMA0608"),
        printed: &["index out of bounds of `from`"],
    },
    Fault {
        name: "faults::read_before_the_start",
        run: |device| read(device, -1),
        code: Some("TMA0608"),
        printed: &["index out of bounds of `from`"],
    },
    Fault { name: "faults::read_of_the_last", run: |device| read(device, 99), code: None, printed: &[] },
    Fault {
        name: "faults::write_past_the_end",
        run: |device| {
            let mut to = device.zeros([100])?;
            fault_write::launch(device, 1, &mut to, 1 << 40)?;
            device.synchronize()
        },
        code: Some("TMA0608"),
        printed: &["index out of bounds of `to`"],
    },
    Fault {
        name: "faults::load_between_units",
        run: |device| copy(device, [0, 4], [0, 0]),
        code: Some("TMA0608"),
        printed: &["the innermost coordinate of a copy by `src` is no multiple of 8 (16 bytes)", "faults.rs"],
    },
    Fault {
        name: "faults::store_between_units",
        run: |device| copy(device, [0, 8], [0, 1]),
        code: Some("TMA0608"),
        printed: &["the innermost coordinate of a copy by `dst` is no multiple of 8 (16 bytes)", "faults.rs"],
    },
    Fault {
        name: "faults::store_before_the_tensor",
        run: |device| copy(device, [-8, -8], [-1, 0]),
        code: Some("TMA0608"),
        printed: &["a copy into `dst` starts before the tensor", "faults.rs"],
    },
    Fault {
        name: "faults::launch_after_a_fault",
        run: |device| {
            fault_trap::launch(device, 1, 3)?;
            // The first call to notice the fault reports it, and so does every later call.
            match device.synchronize() {
                Err(Error::KernelFault { .. }) => {
                    fault_trap::launch(device, 1, 0).and_then(|()| device.synchronize())
                }
                other => other,
            }
        },
        code: Some("TMA0608"),
        printed: &[],
    },
    Fault {
        name: "faults::bulk_past_the_end",
        run: |device| bulk(device, 97, 0, 4),
        code: Some("TMA0608"),
        printed: &["bulk copy out of bounds of `src`", "faults.rs"],
    },
    Fault {
        name: "faults::bulk_misaligned",
        run: |device| bulk(device, 2, 0, 4),
        code: Some("TMA0608"),
        printed: &["the index of a bulk copy of `src` is not a multiple of 4, 16 bytes", "faults.rs"],
    },
    Fault {
        name: "faults::indices_of_the_last",
        run: |device| index(device, [3, 31], [1, 31, 2, 15]),
        code: None,
        printed: &[],
    },
    Fault {
        name: "faults::column_past_the_tile",
        run: |device| index(device, [0, 32], [0, 0, 0, 1]),
        code: Some("TMA0608"),
        printed: &["index out of bounds of `tile`, 32 columns", "faults.rs"],
    },
    Fault {
        name: "faults::row_before_the_tile",
        run: |device| index(device, [-1, 0], [0, 0, 0, 1]),
        code: Some("TMA0608"),
        printed: &["index out of bounds of `tile`, 4 rows", "faults.rs"],
    },
    Fault {
        name: "faults::stage_past_the_last",
        run: |device| index(device, [0, 0], [2, 0, 0, 1]),
        code: Some("TMA0608"),
        printed: &["index out of bounds of `lines`, 2 stages", "faults.rs"],
    },
    Fault {
        name: "faults::element_past_the_array",
        run: |device| index(device, [0, 0], [0, 32, 0, 1]),
        code: Some("TMA0608"),
        printed: &["index out of bounds of a stage of `lines`, 32 elements", "faults.rs"],
    },
    Fault {
        name: "faults::element_past_the_registers",
        run: |device| index(device, [0, 0], [0, 0, 3, 1]),
        code: Some("TMA0608"),
        printed: &["index out of bounds of `parts`, 3 elements", "faults.rs"],
    },
    Fault {
        name: "faults::named_barrier_of_the_block",
        run: |device| index(device, [0, 0], [0, 0, 0, 0]),
        code: Some("TMA0608"),
        printed: &["named barriers are 1 to 15", "faults.rs"],
    },
];

/// Launches [`fault_index`] with the indices into its tile, and those of a stage, of an element of
/// it, of an array in registers, and of a barrier.
///
/// # Errors
///
/// Errors of the launch, and the error that the kernel stops with.
pub fn index(device: &Device, at: [i32; 2], others: [u32; 4]) -> Result<(), Error> {
    let [stage, element, part, barrier] = others;
    let mut out = device.zeros([32])?;
    fault_index::launch(device, 1, &mut out, at[0], at[1], stage, element, part, barrier)?;
    device.synchronize()
}

fn copy(device: &Device, from: [i32; 2], to: [i32; 2]) -> Result<(), Error> {
    let src = device.zeros([16, 64])?;
    let mut dst = device.zeros([16, 64])?;
    fault_copy::launch(device, 1, &src, &mut dst, from[0], from[1], to[0], to[1])?;
    device.synchronize()
}

fn bulk(device: &Device, from: i64, at: u32, count: u32) -> Result<(), Error> {
    fault_bulk::launch(device, 1, &device.zeros([100])?, from, at, count)?;
    device.synchronize()
}

fn read(device: &Device, index: i64) -> Result<(), Error> {
    let from = device.zeros([100])?;
    let mut to = device.zeros([1])?;
    fault_read::launch(device, 1, &from, &mut to, index)?;
    device.synchronize()
}

/// Prints by every conversion and every kind of scalar.
#[tma_kernel(threads = 32)]
pub fn fault_printf(n: i32, bits: u32, x: f32) {
    let lane = lane_idx();
    if lane == 3 {
        printf!("thread {}: {n} {:x} {2} |{0:8}| {2:.3} 100% {{}} {3}\n", lane, bits, x, n < 0);
    }
    if lane == 4 {
        printf!("wide {} {} {:x} {:x}\n", n as i64, n as u64, n as i64, n as i8);
        printf!("halves {} {} {}\n", f16::from_f32(-2.5), e4m3::from_f32(0.75), u16::MAX);
    }
}

/// Asserts that `n` is even.
#[tma_kernel(threads = 32)]
pub fn fault_assert(n: u32) {
    assert!(n % 2 == 0, "the number is even");
}

/// Traps for any number but 0 to 2.
#[tma_kernel(threads = 32)]
pub fn fault_trap(n: u32) {
    match n {
        0..=2 => {}
        _ => trap(),
    }
}

/// Reads one element.
#[tma_kernel(threads = 32)]
pub fn fault_read(from: Global<f32>, to: Global<f32>, index: i64) {
    if thread_idx().x == 0 {
        to.set(0, from.get(index));
    }
}

/// Writes one element.
#[tma_kernel(threads = 32)]
pub fn fault_write(to: Global<f32>, index: u64) {
    if thread_idx().x == 0 {
        to.set(index, 1.0);
    }
}

/// Copies one tile between any coordinates.
#[tma_kernel(threads = 32, checked)]
pub fn fault_copy(
    src: TensorMap<Tile<f16, Shape2<8, 32>>>,
    dst: TensorMap<Tile<f16, Shape2<8, 32>>>,
    from_row: i32,
    from_col: i32,
    to_row: i32,
    to_col: i32,
) {
    let tile: Tile<f16, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [from_row, from_col], full);
        full.wait(0);
        dst.store([to_row, to_col], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Copies `count` elements between any indices, without a tensor map.
#[tma_kernel(threads = 32, checked)]
pub fn fault_bulk(src: Global<f32>, from: i64, at: u32, count: u32) {
    let part: SharedArray<f32, 64> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(count * 4);
        src.bulk_load(part, at, count, from, full);
        full.wait(0);
    }
}

/// Reads at indices that may be out of range, and waits at a barrier number that may be.
#[tma_kernel(threads = 32, checked, local_arrays)]
pub fn fault_index(
    out: Global<u32>,
    row: i32,
    column: i32,
    stage: u32,
    element: u32,
    part: u32,
    barrier: u32,
) {
    let tile: Tile<u32, Shape2<4, 32>> = shared();
    let lines: Stages<SharedArray<u32, 32>, 2> = shared();
    let parts = [10u32, 20, 30];
    let lane = lane_idx();
    for i in 0..4u32 {
        tile.set([i, lane], i);
    }
    for i in 0..2u32 {
        lines[i].set(lane, i);
    }
    named_barrier_sync(barrier, 32);
    let of_tile = tile.get([row, column]);
    let of_line = lines[stage].get(element);
    let of_registers = parts[part as usize];
    out.set(lane, of_tile + of_line + of_registers);
}

/// Runs the fault called `name` in this process, and reports how it ended on the standard error.
///
/// # Errors
///
/// An unknown name, or a missing device.
pub fn run_here(name: &str) -> anyhow::Result<()> {
    let fault = all().find(|fault| fault.name == name);
    let fault = fault.ok_or_else(|| anyhow::anyhow!("no fault is called `{name}`"))?;
    match (fault.run)(&Device::open()?) {
        Ok(()) => eprintln!("ended well"),
        Err(error) => eprintln!("ended with {error}"),
    }
    Ok(())
}

/// Judges the output of a process that ran `fault`, on both streams.
///
/// # Errors
///
/// The text that is missing.
pub fn judge(fault: &Fault, written: &str) -> anyhow::Result<()> {
    let ending = fault.code.map_or("ended well".to_owned(), |code| format!("ended with {code}: "));
    for wanted in fault.printed.iter().copied().chain([ending.as_str()]) {
        ensure!(written.contains(wanted), "{wanted:?} was not written, but:\n{written}");
    }
    Ok(())
}

/// Assumes that `n` is even, and checks it.
#[tma_kernel(threads = 32, checked)]
pub fn fault_assume(n: u32) {
    assume(n % 2 == 0);
}

/// Assumes that `n` is even, and does not check it.
#[tma_kernel(threads = 32, unchecked)]
pub fn fault_assume_unchecked(n: u32) {
    assume(n % 2 == 0);
}
