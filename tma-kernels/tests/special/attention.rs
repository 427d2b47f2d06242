//! Attention.

use std::error::Error;

use tma_kernels::{AttentionElement, AttentionOptions, attention};
use tma_runtime::prelude::*;

use super::super::{Table, number};
use super::gemm::Element;

const DEPTH: usize = 64;

/// The input of the first of two queries: its elements, and the elements and values of each key
/// that it sees.
struct Case<'a> {
    query: f32,
    keys: &'a [f32],
    values: &'a [f32],
    scale: Option<f32>,
    soft_cap: Option<f32>,
    sink: Option<f32>,
}

impl Case<'_> {
    /// Returns the first query's result, and the logarithm of its sum. The second query is zeros.
    fn run<T: AttentionElement + Element>(&self, device: &Device) -> Result<[f32; 2], Box<dyn Error>> {
        let row = |x: f32| vec![T::of(x); DEPTH];
        let rows = |all: &[f32]| all.iter().flat_map(|&x| row(x)).collect::<Vec<_>>();
        let q = device.tensor(&rows(&[self.query, 0.0]), [1, 1, 2, DEPTH])?;
        let shape = [1, 1, self.keys.len(), DEPTH];
        let (k, v) = (device.tensor(&rows(self.keys), shape)?, device.tensor(&rows(self.values), shape)?);
        let mut o = device.filled_bytes::<T, 4>(q.shape(), 0xff)?;
        let mut lse = device.filled_bytes::<f32, 3>([1, 1, 2], 0xff)?;
        let sink = match self.sink {
            Some(sink) => Some(device.tensor(&[sink], [1])?),
            None => None,
        };
        let options = AttentionOptions {
            scale: self.scale,
            soft_cap: self.soft_cap,
            sinks: sink.as_ref().map(DeviceTensor::view),
            lse: Some(lse.view_mut()),
            ..Default::default()
        };
        attention(device, &q, &k, &v, &mut o, options)?;
        let (o, lse) = (o.to_vec()?, lse.to_vec()?[0]);
        assert!(o[1..DEPTH].iter().all(|x| x.value().to_bits() == o[0].value().to_bits()), "columns differ");
        assert!(o[0].value().is_nan() == lse.is_nan() || !self.values.iter().all(|v| v.is_finite()), "{lse}");
        Ok([o[0].value(), lse])
    }
}

/// Adds the lines of an element type: the input of a query, and the result.
fn of_type<T: AttentionElement + Element>(
    device: &Device,
    table: &mut Table,
    name: &str,
    cases: &[(Case<'_>, f32)],
) -> Result<(), Box<dyn Error>> {
    for (case, wanted) in cases {
        let list = |all: &[f32]| all.iter().map(|&x| number(T::of(x).value())).collect::<Vec<_>>().join(", ");
        let option = |name: &str, value: Option<f32>| {
            value.map_or_else(String::new, |value| format!(", {name} {}", number(value)))
        };
        let options = [("scale", case.scale), ("soft cap", case.soft_cap), ("sink", case.sink)];
        let options = options.map(|(name, value)| option(name, value)).concat();
        let given = format!(
            "`{name}`: q {}, k {}, v {}{options}",
            list(&[case.query]),
            list(case.keys),
            list(case.values)
        );
        let [found, _] = case.run::<T>(device)?;
        table.line("attention", given, T::of(*wanted).value(), found);
    }
    Ok(())
}

pub(crate) fn lines(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let (inf, nan, max) = (f32::INFINITY, f32::NAN, bf16::MAX.to_f32());
    let case = |query, keys, values, scale| Case { query, keys, values, scale, soft_cap: None, sink: None };
    let capped =
        |query, keys, values, cap| Case { soft_cap: Some(cap), ..case(query, keys, values, Some(1.0)) };
    let with_sink = |query, keys, values, sink| Case { sink: Some(sink), ..case(query, keys, values, None) };
    of_type::<f16>(
        device,
        table,
        "f16",
        &[
            (case(2e4, &[2e4], &[3.0], None), 3.0),
            (case(1.3e4, &[1.3e4], &[3.0], None), 3.0),
            (case(65504.0, &[65504.0, -65504.0, 65504.0], &[1.0, 9.0, 3.0], None), 2.0),
            (case(65504.0, &[-65504.0, -65504.0], &[1.0, 3.0], None), 2.0),
            (case(65504.0, &[1.0, 65504.0], &[1.0, 65504.0], None), 65504.0),
            (case(5.97e-8, &[5.97e-8, 1.0], &[1.0, 3.0], None), 2.0),
            (case(0.0, &[1.0, 2.0], &[65504.0, 65504.0], None), 65504.0),
            (case(nan, &[1.0], &[1.0], None), nan),
            (case(inf, &[1.0, 1.0], &[1.0, 1.0], None), nan),
        ],
    )?;
    of_type::<bf16>(
        device,
        table,
        "bf16",
        &[
            (case(5e4, &[5e4], &[3.0], None), 3.0),
            (case(1e15, &[-1e15, -1e15], &[1.0, 3.0], None), 2.0),
            (case(1e15, &[-1e15, -2e15], &[1.0, 3.0], None), 1.0),
            (case(1e18, &[1e18, 1e18], &[1.0, 3.0], None), 2.0),
            (case(1.0, &[1.0, 1.0], &[1.0, 3.0], Some(1e38)), 2.0),
            (case(1.0, &[1.0, 2.0], &[1.0, 3.0], Some(1e38)), 3.0),
            (case(-1.0, &[1.0, 2.0], &[1.0, 3.0], Some(1e38)), 1.0),
            (case(max, &[0.0, -0.0], &[1.0, 3.0], Some(2e38)), 2.0),
            (case(1.0, &[1.0, 2.0], &[1.0, 3.0], Some(1e-45)), 2.0),
            (case(0.0, &[1.0, 2.0], &[max, max], None), max),
            (case(0.0, &[1.0, 2.0], &[max, -max], None), 0.0),
            (case(0.0, &[1.0, 2.0], &[1e-26, 3e-26], None), 2e-26),
            (case(0.0, &[1.0, 2.0], &[9.2e-41, 9.2e-41], None), 0.0),
            (case(1e20, &[1e20, 1e20], &[1.0, 3.0], None), nan),
            (case(1e20, &[-1e20, -1e20], &[1.0, 3.0], None), nan),
            (case(1e20, &[-1e20, 1.0], &[1.0, 3.0], None), 3.0),
            (case(nan, &[1.0], &[1.0], None), nan),
            (case(1.0, &[nan, 1.0], &[1.0, 1.0], None), nan),
            (case(0.0, &[inf], &[1.0], None), nan),
            (case(1.0, &[1.0, -inf], &[1.0, 3.0], None), 1.0),
            (case(1.0, &[1.0, 1.0], &[nan, 1.0], None), nan),
            (case(1.0, &[1.0, 1.0], &[inf, 1.0], None), inf),
            (case(1.0, &[1.0, 1.0], &[inf, -inf], None), nan),
            (case(1e15, &[1e15, 1.0], &[1.0, inf], None), nan),
            (capped(1e20, &[1e20, 1e20], &[1.0, 3.0], 5.0), 2.0),
            (capped(1e20, &[1e20, -1e20], &[1.0, 3.0], 50.0), 1.0),
            (capped(1e20, &[-1e20, -1e20], &[1.0, 3.0], 5.0), 2.0),
            (capped(1.0, &[1.0, 2.0], &[1.0, 3.0], 1e30), 3.0),
            (capped(1.0, &[nan, 1.0], &[1.0, 1.0], 5.0), nan),
            (with_sink(0.0, &[1.0, 2.0], &[3.0, 3.0], 0.0), 2.0),
            (with_sink(0.0, &[1.0, 2.0], &[3.0, 3.0], -inf), 3.0),
            (with_sink(0.0, &[1.0, 2.0], &[3.0, 3.0], inf), 0.0),
            (with_sink(0.0, &[1.0, 2.0], &[3.0, 3.0], nan), nan),
            (with_sink(0.0, &[1.0, 2.0], &[max, max], 1e38), 0.0),
            (with_sink(1e20, &[-1e20, -1e20], &[1.0, 3.0], 0.0), 0.0),
            (with_sink(1e20, &[1e20, 1.0], &[1.0, 3.0], 0.0), nan),
        ],
    )?;
    sums(device, table)
}

/// Adds the lines of logarithms of sums.
fn sums(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let cases = [
        (2e4, &[2e4][..], None, 3.2e9),
        (1e20, &[1e20], None, f32::NAN),
        (f32::NAN, &[1.0], None, f32::NAN),
        (1e15, &[-1e15], None, -8e30),
        (1e15, &[-1e15], Some(-2e30), -2e30),
        (1e20, &[-1e20], Some(40.0), 40.0),
        (1.0, &[1.0], Some(f32::INFINITY), f32::INFINITY),
    ];
    for (query, keys, sink, wanted) in cases {
        let case = Case { query, keys, values: keys, scale: None, soft_cap: None, sink };
        let [_, lse] = case.run::<bf16>(device)?;
        // The elements are rounded to `bf16`, with an error of some 2^-8 each.
        let is_close = lse == wanted || (lse - wanted).abs() <= wanted.abs() * 2f32.powi(-7);
        let found = if is_close { wanted } else { lse };
        let sink = sink.map_or_else(String::new, |sink| format!(", sink {}", number(sink)));
        let given = format!("`lse` of q {}, k {}{sink}", number(query), number(keys[0]));
        table.line("attention", given, wanted, found);
    }
    Ok(())
}
