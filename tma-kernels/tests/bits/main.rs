//! Every instance of every kernel, on small matrices of numbers that are not small integers: the
//! simulator and a GPU produce the same bits. `TMA_DEVICE` names the device.
//!
//! For GEMMs the bits are kept as hashes, which both must match. Powers of two differ between the
//! two, so attention on the device is compared with attention on the simulator.
#![cfg(feature = "llvm")]

mod attention;
mod products;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tma_runtime::Scalar;
use tma_runtime::launch::KernelSpec;
use tma_runtime::prelude::*;

/// An element type of a test.
pub(crate) trait Element: Scalar {
    /// Returns the number closest to `x`, which is between -1 and 1. Integers are 100 times as
    /// large.
    fn of(x: f32) -> Self;
    fn bits(self) -> u32;
}

macro_rules! elements {
    ($($ty:ty: $of:expr, $bits:expr;)+) => { $(
        impl Element for $ty {
            fn of(x: f32) -> Self {
                $of(x)
            }

            fn bits(self) -> u32 {
                $bits(self)
            }
        }
    )+ };
}

elements! {
    bf16: bf16::from_f32, |x: bf16| x.to_bits().into();
    f16: f16::from_f32, |x: f16| x.to_bits().into();
    f32: |x| x, f32::to_bits;
    tf32: tf32::from_f32, |x: tf32| x.to_f32().to_bits();
    e4m3: e4m3::from_f32, |x: e4m3| x.to_f32().to_bits();
    e5m2: e5m2::from_f32, |x: e5m2| x.to_f32().to_bits();
    i8: |x| (100.0 * x) as i8, |x| i32::from(x) as u32;
    i32: |x| (100.0 * x) as i32, |x| x as u32;
}

/// Returns reproducible pseudo-random numbers (the finaliser of MurmurHash3).
pub(crate) fn numbers<T: Element>(seed: u64, len: usize) -> Vec<T> {
    let number = |i: usize| {
        let mut x = (i as u64).wrapping_add(seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        T::of(((x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0) as f32)
    };
    (0..len).map(number).collect()
}

/// Computes FNV-1a of the elements' bits.
pub(crate) fn hash<T: Element>(elements: &[T]) -> u64 {
    let bytes = elements.iter().flat_map(|element| element.bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns a simulator under `seed`, and the PTX of the kernels that it runs from now on. Kernels of
/// modules that are made from others have the names of those.
pub(crate) fn recording(seed: u64) -> (Device, Arc<Mutex<BTreeSet<&'static str>>>) {
    let launched = Arc::new(Mutex::new(BTreeSet::new()));
    let record = Arc::clone(&launched);
    let device = Device::simulator().seed(seed).rewriting(move |kernel| {
        record.lock().unwrap_or_else(PoisonError::into_inner).insert(kernel.ptx);
        None
    });
    (device, launched)
}

/// Asserts that each of these instances was launched.
#[track_caller]
pub(crate) fn expect_all<'k>(
    launched: &Mutex<BTreeSet<&'static str>>,
    instances: impl IntoIterator<Item = &'k KernelSpec>,
) {
    let launched = launched.lock().unwrap_or_else(PoisonError::into_inner);
    let missing = instances.into_iter().filter(|kernel| !launched.contains(kernel.ptx));
    let missing: Vec<_> = missing.map(|kernel| kernel.name).collect();
    assert!(missing.is_empty(), "not launched: {missing:?}");
}
