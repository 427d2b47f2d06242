//! Tests of simulated devices: callbacks that use the device that invokes them, allocations that
//! exceed the host's memory, and copies that fail.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::backend::Backend;
use crate::device::Device;
use crate::launch::{Grid, launch};
use crate::scalar::{Scalar, sealed};
use crate::spec::{self, KernelParts};

const fn spec(parts: KernelParts) -> KernelSpec {
    // SAFETY: the entries touch no memory.
    unsafe { KernelSpec::from_parts(parts) }
}

static FIRST: KernelSpec = spec(KernelParts { name: "first", ..KernelParts::NOTHING });
static SECOND: KernelSpec = spec(KernelParts {
    name: "second",
    ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { nanosleep.u32 1; ret; }",
    ..KernelParts::NOTHING
});

fn once(device: &Device, spec: &'static KernelSpec) -> Result<(), Error> {
    launch(device, spec, Grid::x(1), &[])
}

#[test]
fn a_rewrite_may_launch_on_its_device() {
    static REQUESTED: AtomicU32 = AtomicU32::new(0);
    let device = Device::simulator();
    let within = device.clone();
    let device = device.rewriting(move |kernel| {
        REQUESTED.fetch_add(1, Ordering::Relaxed);
        // The same kernel and another one, neither of them rewritten. A held lock would block them.
        once(&within, kernel).and_then(|()| once(&within, &SECOND)).expect("they do nothing wrong");
        Some(kernel.ptx.replace("ret;", "trap;"))
    });
    for _ in 0..2 {
        assert_eq!(once(&device, &FIRST).err().map(|error| error.code()), Some("TMA0616"), "rewritten");
    }
    assert_eq!(once(&device, &SECOND).err().map(|error| error.code()), Some("TMA0616"), "rewritten");
    assert_eq!(REQUESTED.load(Ordering::Relaxed), 2, "once a kernel");
}

#[test]
fn a_report_may_launch_on_its_device() {
    static WARNED: AtomicU32 = AtomicU32::new(0);
    let device = Device::simulator();
    let within = device.clone();
    let device = device.reporting(0, move |kernel, _| {
        WARNED.fetch_add(1, Ordering::Relaxed);
        once(&within, kernel).expect("it does nothing wrong");
    });
    once(&device, &FIRST).and_then(|()| once(&device, &SECOND)).expect("they do nothing wrong");
    assert_eq!(WARNED.load(Ordering::Relaxed), 2);
}

#[test]
fn functions_may_be_replaced_by_themselves() {
    let device = Device::simulator();
    let within = device.clone();
    let device = device.rewriting(move |_| {
        drop(within.clone().rewriting(|_| None).reporting(0, |_, _| ()));
        None
    });
    once(&device, &FIRST).and_then(|()| once(&device, &FIRST)).expect("it does nothing wrong");
}

#[test]
fn tma0630_a_grid_that_would_run_for_hours_is_refused() {
    let grid = |device: &Device, blocks| launch(device, &FIRST, Grid::x(blocks), &[]);
    let device = Device::simulator();
    let error = grid(&device, (1 << 31) - 1).expect_err("it would take hours");
    assert_eq!(error.code(), "TMA0630");
    assert!(error.to_string().contains("take 2 hours or more"), "{error}");
    assert!(grid(&device, 100).is_ok());
    let device = device.block_limit(99);
    assert_eq!(grid(&device, 100).err().map(|error| error.code()), Some("TMA0630"));
    assert!(grid(&device, 99).is_ok());
}

/// Runs this test again in a process with `kib` KiB of address space. Returns true in that process.
fn within(test: &str, kib: u32) -> bool {
    if std::env::var_os("TMA_TEST_ADDRESS_SPACE").is_some() {
        return true;
    }
    let exe = std::env::current_exe().expect("a test has a program");
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {kib} && exec \"$0\" \"$@\"")])
        .arg(exe)
        .args(["--exact", test, "--test-threads", "1"])
        .env("TMA_TEST_ADDRESS_SPACE", "small")
        .output()
        .expect("there is a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
    false
}

#[test]
fn tma0609_tma0629_allocations_beyond_host_memory_fail() {
    if within("backend::sim::tests::tma0609_tma0629_allocations_beyond_host_memory_fail", 700_000) {
        let device = Device::simulator();
        let huge = device.zeros::<u8, 1>([1 << 32]);
        assert_eq!(huge.err().map(|error| error.code()), Some("TMA0609"));
        let tensor = device.zeros::<u8, 1>([400_000_000]).expect("there is room for one");
        assert_eq!(tensor.to_vec().err().map(|error| error.code()), Some("TMA0629"));
    }
}

#[test]
fn large_tensors_are_filled_and_copied_in_parts() -> Result<(), Error> {
    let device = Device::simulator();
    let length = 3 * CHUNK + 7;
    let from = device.filled_bytes::<u8, 1>([length], 0xab)?;
    let mut to = device.zeros::<u8, 1>([length])?;
    to.copy_from_device(&from, &device.stream()?)?;
    assert_eq!(to.to_vec()?, vec![0xab; length]);
    Ok(())
}

#[test]
fn a_fill_is_queued_on_a_stream_of_the_device() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let mut tensor = device.zeros::<u32, 1>([3])?;
    tensor.fill_bytes_on(0x11, &stream)?;
    assert_eq!(tensor.to_vec()?, [0x1111_1111; 3]);
    device.zeros::<u32, 1>([0])?.fill_bytes_on(1, &stream)?;
    let refused = Device::simulator().zeros::<u32, 1>([3])?.fill_bytes_on(1, &stream);
    assert!(matches!(refused, Err(Error::OtherDevice { .. })), "{refused:?}");
    Ok(())
}

/// A byte that records whether it was made valid.
#[derive(Clone, Copy, Debug)]
struct Watched(u8);

thread_local! {
    static MADE_VALID: Cell<usize> = const { Cell::new(0) };
}

impl sealed::Sealed for Watched {}

// SAFETY: one byte, for which any bits are valid.
unsafe impl Scalar for Watched {
    const ELEMENT: spec::Scalar = spec::Scalar::U8;

    fn raw_bits(self) -> u64 {
        self.0.into()
    }

    fn make_valid(values: &mut [MaybeUninit<Self>]) {
        MADE_VALID.set(MADE_VALID.get() + values.len());
    }
}

#[test]
fn bytes_of_a_failed_copy_are_not_read() -> Result<(), Error> {
    let device = Device::simulator();
    let tensor = device.tensor(&[Watched(1), Watched(2), Watched(3)], [3])?;
    assert_eq!(tensor.to_vec()?.len(), 3);
    assert_eq!(MADE_VALID.take(), 3);
    // The copy fails because the memory has been freed.
    if let Backend::Sim(context) = device.backend() {
        context.free(tensor.as_ptr());
    }
    assert_eq!(tensor.to_vec().err().map(|error| error.code()), Some("TMA0618"));
    assert_eq!(MADE_VALID.take(), 0, "of a vector's room nothing is initialised");
    // The slice was already initialised, and the copy may have been partial.
    assert!(tensor.copy_to(&mut [Watched(0); 3]).is_err());
    assert_eq!(MADE_VALID.take(), 3);
    Ok(())
}
