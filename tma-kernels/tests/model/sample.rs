//! Tokens of logits: the greatest, their probabilities, and samples.

use tma_kernels::model::{ModelError, SampleOptions, arg_max, log_probability, sample};
use tma_runtime::prelude::*;

use crate::rows::{Element, numbers};

/// Rows × columns, with `apart` more columns between rows.
fn view<T: Element>(tensor: &DeviceTensor<T, 2>, columns: usize) -> Result<TensorView<'_, T, 2>, Error> {
    let [rows, stored] = tensor.shape();
    tensor.view().with_strides([rows, columns], [stored, 1])
}

/// Few columns, one part, several parts of a cluster's, odd rows.
const COLUMNS: [[usize; 2]; 5] = [[1, 0], [128, 8], [1000, 0], [70_000, 0], [3_333, 0]];

#[test]
fn greatest_elements() -> Result<(), ModelError> {
    fn finds<T: Element>(columns: usize, apart: usize) -> Result<(), ModelError> {
        let device = Device::simulator();
        let x = numbers::<T>(1, 3 * (columns + apart), 8.0);
        let of_x = device.tensor(&x, [3, columns + apart])?;
        let mut out = device.filled_bytes::<u32, 1>([3], 0xff)?;
        arg_max(&device, view(&of_x, columns)?, &mut out)?;
        for (row, found) in x.chunks(columns + apart).zip(out.to_vec()?) {
            let greatest = row[..columns].iter().map(|x| x.value()).fold(f64::NEG_INFINITY, f64::max);
            let first = row.iter().position(|x| x.value() == greatest);
            assert_eq!(Some(found as usize), first, "{columns} columns");
        }
        Ok(())
    }
    for [columns, apart] in COLUMNS {
        finds::<bf16>(columns, apart)?;
        finds::<f32>(columns, apart)?;
    }
    finds::<f16>(5000, 8)
}

#[test]
fn greatest_of_special_values() -> Result<(), ModelError> {
    let device = Device::simulator();
    let row = |specials: &[(usize, f32)], filling: f32| {
        let mut row = vec![filling; 20_000];
        specials.iter().for_each(|(i, x)| row[*i] = *x);
        row
    };
    const MINUS: f32 = f32::NEG_INFINITY;
    let rows = [
        row(&[(7, f32::INFINITY), (19_999, f32::NAN), (12_000, -f32::NAN)], 1.0),
        row(&[], MINUS),
        row(&[(3, -0.0), (9, 0.0)], -1.0),
        row(&[(16_000, 5.0), (15_999, 5.0), (16_001, 5.0)], 0.0),
        row(&[(19_999, -1.0)], -2.0),
    ];
    let x = device.tensor(&rows.concat(), [5, 20_000])?;
    let mut out = device.zeros([5])?;
    arg_max(&device, &x, &mut out)?;
    assert_eq!(out.to_vec()?, [12_000, 0, 3, 15_999, 19_999]);
    Ok(())
}

#[test]
fn probabilities_of_tokens() -> Result<(), ModelError> {
    fn checks<T: Element>(columns: usize, apart: usize, size: f64) -> Result<(), ModelError> {
        let device = Device::simulator();
        let x = numbers::<T>(2, 4 * (columns + apart), size);
        let of_x = device.tensor(&x, [4, columns + apart])?;
        let tokens = [0, columns as u32 - 1, columns as u32 / 2, columns as u32];
        let of_tokens = device.tensor(&tokens, [4])?;
        let mut out = device.zeros([4])?;
        log_probability(&device, view(&of_x, columns)?, &of_tokens, &mut out)?;
        for ((row, token), found) in x.chunks(columns + apart).zip(tokens).zip(out.to_vec()?) {
            let values: Vec<f64> = row[..columns].iter().map(|x| x.value()).collect();
            let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = values.iter().map(|x| (x - greatest).exp()).sum();
            let Some(x) = values.get(token as usize) else {
                assert_eq!(found, f32::NEG_INFINITY);
                continue;
            };
            let wanted = x - greatest - sum.ln();
            let error = (f64::from(found) - wanted).abs();
            assert!(error <= (wanted.abs() + 1.0) * 2f64.powi(-18), "{found}, not {wanted}");
        }
        Ok(())
    }
    for [columns, apart] in COLUMNS {
        checks::<bf16>(columns, apart, 8.0)?;
        checks::<f32>(columns, apart, 90.0)?;
    }
    let device = Device::simulator();
    const MINUS: f32 = f32::NEG_INFINITY;
    let rows =
        [[f32::NAN, 0.0, 1.0, 2.0], [f32::INFINITY, 0.0, 1.0, 2.0], [MINUS; 4], [MINUS, 0.0, MINUS, MINUS]];
    let x = device.tensor(&rows.concat(), [4, 4])?;
    let mut out = device.zeros([4])?;
    log_probability(&device, &x, &device.tensor(&[1; 4], [4])?, &mut out)?;
    let found = out.to_vec()?;
    assert!(found[..3].iter().all(|x| x.is_nan()) && found[3] == 0.0, "{found:?}");
    Ok(())
}

/// Philox4x32-10 in plain Rust.
fn philox(mut x: [u32; 4], seed: u64) -> [u32; 4] {
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let first = u64::from(x[0]) * 0xd251_1f53;
        let second = u64::from(x[2]) * 0xcd9e_8d57;
        x = [
            (second >> 32) as u32 ^ x[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ x[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    x
}

/// The known answers of the authors' library, Random123: `kat_vectors`.
#[test]
fn known_random_numbers() {
    assert_eq!(philox([0; 4], 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(philox([u32::MAX; 4], u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
}

/// How a row is sampled in plain Rust.
#[derive(Clone, Copy, Debug)]
struct Draw {
    seed: u64,
    position: u32,
    temperature: f32,
    top_k: u32,
    top_p: f32,
}

impl Draw {
    /// Returns the tokens that are left.
    fn left(self, x: &[f64]) -> Vec<usize> {
        let greatest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let power = |x: f64| ((x - greatest) / f64::from(self.temperature)).exp();
        let total: f64 = x.iter().map(|x| power(*x)).sum();
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|a, b| x[*b].total_cmp(&x[*a]));
        let is_left = |i: &usize| {
            let above: Vec<f64> = order.iter().map(|i| x[*i]).take_while(|other| *other > x[*i]).collect();
            let is_counted = self.top_k == 0 || above.len() < self.top_k as usize;
            let sum: f64 = above.iter().map(|x| power(*x)).sum();
            is_counted && (self.top_p >= 1.0 || sum < f64::from(self.top_p) * total) || above.is_empty()
        };
        (0..x.len()).filter(is_left).collect()
    }

    fn score(self, i: usize, x: f64) -> f64 {
        let word = philox([i as u32 / 4, self.position, 0, 0], self.seed)[i % 4];
        let u = (f64::from(word) + 0.5) / 2f64.powi(32);
        x / f64::from(self.temperature) - (-(-u).ln_1p()).ln()
    }

    /// Checks the token: its score is the greatest of the tokens that are left, or next to it.
    #[track_caller]
    fn check(self, x: &[f64], token: u32) {
        let left = self.left(x);
        assert!(left.contains(&(token as usize)), "{self:?}: token {token} is not left");
        let greatest = left.iter().map(|i| self.score(*i, x[*i])).fold(f64::NEG_INFINITY, f64::max);
        let score = self.score(token as usize, x[token as usize]);
        assert!(
            score >= greatest - (greatest.abs() + 1.0) * 2f64.powi(-17),
            "{self:?}: {score}, not {greatest}"
        );
    }
}

#[track_caller]
fn samples<T: Element>(x: &[T], columns: usize, draws: &[Draw]) -> Result<Vec<u32>, ModelError> {
    let device = Device::simulator();
    let rows = draws.len();
    let of_x = device.tensor(&x.repeat(rows), [rows, columns])?;
    let seeds = device.tensor(&draws.iter().map(|draw| draw.seed).collect::<Vec<_>>(), [rows])?;
    let positions = device.tensor(&draws.iter().map(|draw| draw.position).collect::<Vec<_>>(), [rows])?;
    let temperatures =
        device.tensor(&draws.iter().map(|draw| draw.temperature).collect::<Vec<_>>(), [rows])?;
    let top_k = device.tensor(&draws.iter().map(|draw| draw.top_k).collect::<Vec<_>>(), [rows])?;
    let top_p = device.tensor(&draws.iter().map(|draw| draw.top_p).collect::<Vec<_>>(), [rows])?;
    let mut options = SampleOptions::new(seeds.view(), positions.view());
    options.temperatures = Some(temperatures.view());
    options.top_k = Some(top_k.view());
    options.top_p = Some(top_p.view());
    let mut out = device.filled_bytes::<u32, 1>([rows], 0xff)?;
    sample(&device, &of_x, &mut out, options)?;
    Ok(out.to_vec()?)
}

const ALL: Draw = Draw { seed: 0x1234_5678_9abc_def0, position: 5, temperature: 1.0, top_k: 0, top_p: 1.0 };

#[test]
fn sampled_tokens() -> Result<(), ModelError> {
    fn checks<T: Element>(columns: usize) -> Result<(), ModelError> {
        let x = numbers::<T>(3, columns, 6.0);
        let values: Vec<f64> = x.iter().map(|x| x.value()).collect();
        let draws = [
            ALL,
            Draw { temperature: 0.5, position: 6, ..ALL },
            Draw { top_k: 1, ..ALL },
            Draw { top_k: 20, seed: 9, ..ALL },
            Draw { top_p: 0.5, seed: 10, ..ALL },
            Draw { top_p: 0.0, seed: 11, ..ALL },
            Draw { top_k: 7, top_p: 0.2, temperature: 3.0, ..ALL },
        ];
        for (draw, token) in draws.iter().zip(samples(&x, columns, &draws)?) {
            draw.check(&values, token);
        }
        Ok(())
    }
    checks::<bf16>(1000)?;
    checks::<f16>(333)?;
    checks::<f32>(9000)?;
    checks::<f32>(2)?;
    checks::<bf16>(1)
}

#[test]
fn a_temperature_of_zero_is_the_greatest() -> Result<(), ModelError> {
    let x = numbers::<f32>(4, 5000, 6.0);
    let greatest = (0..5000).max_by(|a, b| x[*a].total_cmp(&x[*b])).expect("there are some");
    let draws = [0.0, -1.0, f32::NAN].map(|temperature| Draw { temperature, top_k: 5, top_p: 0.5, ..ALL });
    assert_eq!(samples(&x, 5000, &draws)?, [greatest as u32; 3]);
    Ok(())
}

/// Frequencies of 4 tokens in 150 rows: within five standard deviations.
#[test]
fn frequencies() -> Result<(), ModelError> {
    let probabilities = [0.5, 0.25, 0.15, 0.1];
    let x = probabilities.map(|p: f32| p.ln());
    let draws: Vec<Draw> = (0..150).map(|position| Draw { position, ..ALL }).collect();
    let tokens = samples(&x, 4, &draws)?;
    for (i, p) in probabilities.iter().enumerate() {
        let found = tokens.iter().filter(|token| **token == i as u32).count() as f32;
        let deviation = (150.0 * p * (1.0 - p)).sqrt();
        assert!((found - 150.0 * p).abs() < 5.0 * deviation, "{found} times token {i}");
    }
    Ok(())
}

#[test]
fn special_logits() -> Result<(), ModelError> {
    let mut x = vec![1.0_f32; 300];
    x[17] = f32::NEG_INFINITY;
    x[200] = f32::INFINITY;
    let limited = Draw { top_k: 3, top_p: 0.9, ..ALL };
    assert_eq!(samples(&x, 300, &[ALL, limited])?, [200; 2]);
    x[250] = f32::NAN;
    assert_eq!(samples(&x, 300, &[ALL, limited])?, [250; 2]);
    assert_eq!(samples(&[f32::NEG_INFINITY; 300], 300, &[ALL, limited])?, [0; 2]);
    // A token of -∞ is never chosen beside another: not by the word 0xffff_ffa9, which these draw for
    // token 3, and not at any temperature.
    let x = [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0];
    let rare = Draw { seed: 42, position: 1_170_805, ..ALL };
    let hot = Draw { temperature: f32::INFINITY, ..ALL };
    assert_eq!(samples(&x, 4, &[rare, hot])?, [3; 2]);
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), Error> {
    let device = Device::simulator();
    let mut out = device.zeros([4])?;
    let mut code = |shape: [usize; 2]| {
        let x = device.zeros::<f32, 2>(shape)?;
        Ok::<_, Error>(arg_max(&device, &x, &mut out).map_or_else(|error| error.code(), |()| "none"))
    };
    assert_eq!(code([4, 100])?, "none");
    assert_eq!(code([3, 100])?, "TMA0575");
    assert_eq!(code([4, 0])?, "TMA0577");
    let (x, mut none) = (device.zeros::<bf16, 2>([0, 100])?, device.zeros([0])?);
    assert!(arg_max(&device, &x, &mut none).is_ok());
    let (x, seeds, positions) = (device.zeros::<bf16, 2>([4, 8])?, device.zeros([3])?, device.zeros([4])?);
    let error = sample(&device, &x, &mut out, SampleOptions::new(seeds.view(), positions.view()));
    assert_eq!(error.expect_err("a seed is missing").code(), "TMA0575");
    Ok(())
}
