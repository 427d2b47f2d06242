//! Attention on a device, compared with the simulator.

use tma_kernels::attention::general::kernel::attention::INSTANCES as GENERAL;
use tma_kernels::attention::kernel::forward::attention::INSTANCES;
use tma_kernels::{AttentionElement, AttentionError, AttentionOptions, Lengths, attention};
use tma_runtime::prelude::*;

use super::{Element, expect_all, numbers, recording};

/// An instance of the kernel.
#[derive(Clone, Copy, Debug)]
struct Instance {
    depth: usize,
    mask: Mask,
    ragged: bool,
}

/// The mask of scores, and what else happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mask {
    Full,
    Causal,
    /// A window, a soft cap and sinks.
    General,
}

/// The starts of sequences of several lengths, and the end of the last one. The second has no keys.
const STARTS: [[u32; 5]; 2] = [[0, 70, 75, 139, 150], [0, 100, 100, 130, 200]];

const HEADS: usize = 2;

/// The results of a device.
struct Results<T> {
    o: Vec<T>,
    lse: Vec<f32>,
}

impl Instance {
    /// Returns every instance of an element type.
    fn all() -> impl Iterator<Item = Self> {
        let masks = |depth| [Mask::Full, Mask::Causal, Mask::General].map(|mask| (depth, mask));
        let both = [64, 128, 256].into_iter().flat_map(masks);
        both.flat_map(|(depth, mask)| [false, true].map(|ragged| Self { depth, mask, ragged }))
    }

    fn run<T: AttentionElement + Element>(self, device: &Device) -> Result<Results<T>, AttentionError> {
        let Self { depth, mask, ragged } = self;
        let [queries, keys] = STARTS.map(|starts| starts[4] as usize);
        // The scores vary widely, so that maxima rise in later blocks too.
        let far: Vec<_> = numbers::<f32>(1, HEADS * queries * depth).iter().map(|x| T::of(8.0 * x)).collect();
        let q = device.tensor(&far, [1, HEADS, queries, depth])?;
        let k = device.tensor(&numbers::<T>(2, keys * depth), [1, 1, keys, depth])?;
        let v = device.tensor(&numbers::<T>(3, keys * depth), [1, 1, keys, depth])?;
        let mut o = device.filled_bytes::<T, 4>(q.shape(), 0xff)?;
        let mut lse = device.filled_bytes([1, HEADS, queries], 0xff)?;
        let [of_queries, of_keys] = STARTS.map(|starts| device.tensor(&starts, [starts.len()]));
        let (of_queries, of_keys) = (of_queries?, of_keys?);
        let lengths =
            Lengths { queries: of_queries.view(), keys: of_keys.view(), longest: 70, longest_keys: 90 };
        let lengths = ragged.then_some(lengths);
        let sinks = device.tensor(&[0.5, -1.0], [HEADS])?;
        let is_general = mask == Mask::General;
        // Two blocks, each of which processes several tiles.
        let options = AttentionOptions {
            causal: mask == Mask::Causal,
            window: is_general.then_some(60),
            window_after: is_general.then_some(10),
            soft_cap: is_general.then_some(6.0),
            sinks: is_general.then_some(sinks.view()),
            lengths,
            lse: Some(lse.view_mut()),
            blocks: Some(2),
            ..Default::default()
        };
        attention(device, &q, &k, &v, &mut o, options)?;
        Ok(Results { o: o.to_vec()?, lse: lse.to_vec()? })
    }
}

/// The value of an element, and the distance from 1 to the next number.
trait Value: AttentionElement + Element {
    const STEP: f64;

    fn value(self) -> f64;
}

impl Value for bf16 {
    const STEP: f64 = 1.0 / 128.0;

    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Value for f16 {
    const STEP: f64 = 1.0 / 1024.0;

    fn value(self) -> f64 {
        self.to_f64()
    }
}

/// The tolerance of a score with a soft cap of 6: `tanh.approx` has a relative error of 2^-11 (PTX
/// ISA, "tanh").
const CAPPED: f64 = 6.0 / 2048.0;

/// Compares the results of two devices. The simulator rounds powers correctly, but `ex2.approx` has
/// an error of up to two units of 2^-22 (PTX ISA, "ex2"). Few weights are close enough to the
/// middle of two numbers of `T` to be rounded differently. Each of these differs by one step. All
/// weights of a row together change the result by no more than that fraction of the greatest value,
/// which is 1, and the rounded result may differ by another step. With a soft cap, all weights may
/// differ by the tolerance of scores.
fn compare<T: Value>(about: Instance, found: &Results<T>, simulated: &Results<T>, is_same: bool) {
    let differing = found.o.iter().zip(&simulated.o).filter(|(a, b)| a.bits() != b.bits());
    let count = differing.clone().count();
    let capped = if about.mask == Mask::General { CAPPED } else { 0.0 };
    let most = match about.mask {
        _ if is_same => 0,
        Mask::Full | Mask::Causal => found.o.len() / 50,
        Mask::General => found.o.len(),
    };
    assert!(count <= most, "{about:?}: {count} of {} results differ", found.o.len());
    for (a, b) in differing {
        let error = (a.value() - b.value()).abs();
        assert!(error <= 2.0 * T::STEP + 4.0 * capped, "{about:?}: {} and {}", a.value(), b.value());
    }
    for (a, b) in found.lse.iter().zip(&simulated.lse) {
        // `lg2.approx` has an error of up to 2^-22, and so does a sum of powers relative to itself.
        let bound = (a.abs() + 1.0) * 2f32.powi(-20) + 2.0 * capped as f32;
        let is_close = a == b || (a - b).abs() <= bound;
        assert!(if is_same { a.to_bits() == b.to_bits() } else { is_close }, "{about:?}: {a} and {b}");
    }
    println!("{about:?}: {count} of {} results differ", found.o.len());
}

fn compare_all<T: Value>(device: &Device, simulator: &Device) {
    for instance in Instance::all() {
        let run = |device| instance.run::<T>(device).unwrap_or_else(|error| panic!("{instance:?}: {error}"));
        compare(instance, &run(device), &run(simulator), device.name() == simulator.name());
    }
}

#[test]
fn every_instance_of_attention_matches_the_simulator() {
    let device = Device::open().expect("a device");
    let (simulator, launched) = recording(7);
    compare_all::<bf16>(&device, &simulator);
    compare_all::<f16>(&device, &simulator);
    expect_all(&launched, INSTANCES.iter().chain(&GENERAL));
}
