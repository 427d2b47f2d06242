//! Kernels that print while they multiply, with the text that a GPU runs: it has no call, so ptxas
//! does not serialise them, and it prints the same as `vprintf`.
#![cfg(feature = "llvm")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ptx_probe::print::{Form, Printing, Progress, Reader, Taken, is_needed, without_calls};
use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;
use tma_setup::{program::PTXAS, ptxas};
use tma_tests::kernels::mma::prints::mma_prints;

/// The size of the ring in words, less than the kernel prints in all launches.
const WORDS: usize = 1 << 12;

/// The lines that each warp printed, in their order. What does not begin with the number of a warp
/// is the first one's.
fn by_warp(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut lines = BTreeMap::<_, Vec<_>>::new();
    for line in text.lines() {
        let warp = if line.starts_with('w') { &line[..2] } else { "w0" };
        lines.entry(warp).or_default().push(line);
    }
    lines
}

/// Launches the kernel, and returns what `vprintf` printed.
fn called(device: Device) -> anyhow::Result<String> {
    let printed = Arc::new(Mutex::new(String::new()));
    let written = Arc::clone(&printed);
    let device = device.reporting(0, move |_, report| {
        written.lock().unwrap_or_else(PoisonError::into_inner).push_str(&report.printed);
    });
    mma_prints::launch(&device, 1, 0xbeef, -7)?;
    let printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(printed.clone())
}

/// Launches the kernel without its calls, and returns what is in the ring afterwards.
fn recorded(device: Device) -> anyhow::Result<String> {
    let ring = device.zeros::<u32, 1>([WORDS])?;
    let address = ring.as_ptr();
    let form = Arc::new(Mutex::new(None::<Form>));
    let made = Arc::clone(&form);
    let device = device.rewriting(move |spec| {
        let Printing { ptx, form } = without_calls(spec.ptx, address, WORDS).expect("the compiler's PTX");
        *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(form);
        Some(ptx)
    });
    mma_prints::launch(&device, 1, 0xbeef, -7)?;
    let form = form.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut reader = Reader::new(form.expect("the kernel was rewritten"));
    let words = ring.to_vec()?;
    let Taken { text, lost } = reader.take(|index| words[index], Progress::Running);
    anyhow::ensure!(lost == 0, "{lost} records are lost");
    let again = reader.take(|index| words[index], Progress::Ended);
    anyhow::ensure!(again == Taken::default(), "{again:?}");
    Ok(text)
}

#[test]
fn records_are_what_vprintf_prints() {
    under_seeds(8, |device| {
        let called = called(device.clone())?;
        let wanted = by_warp(&called);
        anyhow::ensure!(wanted.len() == 4 && wanted["w0"].len() == 2 + 3 * 2 + 1 + 1 + 8, "{wanted:#?}");
        let recorded = recorded(device.clone())?;
        let found = by_warp(&recorded);
        anyhow::ensure!(found == wanted, "{found:#?}\ninstead of\n{wanted:#?}");
        Ok::<_, anyhow::Error>(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn ptxas_serialises_no_kernel_that_prints() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools");
    let assembler = PTXAS.require(&tools, "cargo xtask setup").unwrap_or_else(|error| panic!("{error}")).path;
    let text = mma_prints::SPEC.ptx;
    assert!(is_needed(text));
    let warnings = |text: &str| ptxas::assemble(&assembler, "sm_90a", text).expect("it assembles").warnings;
    let called = warnings(text);
    assert!(called.iter().any(|line| line.contains("(C7510)")), "{called:?}");
    let printing = without_calls(text, 1 << 32, WORDS).expect("the compiler's PTX");
    assert_eq!(warnings(&printing.ptx), Vec::<String>::new());
    // Probes and limits are added before.
    let layout = ptx_probe::ring::Layout::of(132, 128).expect("a layout");
    let entry = mma_prints::SPEC.entry;
    let shared = mma_prints::SPEC.shared_bytes;
    let probed = ptx_probe::instrument(text, entry, shared, 1 << 33, layout).expect("the compiler's PTX").ptx;
    let watched = ptx_probe::watch::watch(text, entry, shared, 1 << 33, 1_000_000_000);
    for text in [probed, watched.expect("the compiler's PTX").ptx] {
        let printing = without_calls(&text, 1 << 32, WORDS).expect("the compiler's PTX");
        assert_eq!(warnings(&printing.ptx), Vec::<String>::new());
    }
}
