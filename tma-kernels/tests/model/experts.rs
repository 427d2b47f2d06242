//! Experts of tokens, and rows on the way to them and back.

use tma_kernels::gemm::{GroupedOptions, gemm_grouped};
use tma_kernels::model::{ModelError, RouteOptions, RouteWorkspace, RoutesMut, combine, gather, route};
use tma_runtime::prelude::*;

use crate::rows::{Element, numbers};

/// The extents of a router.
#[derive(Clone, Copy, Debug)]
struct Router {
    tokens: usize,
    experts: usize,
    choices: usize,
    normalise: bool,
}

/// The results of a router.
#[derive(Debug, PartialEq)]
struct Routes {
    experts: Vec<u32>,
    weights: Vec<f32>,
    rows: Vec<u32>,
    ends: Vec<u32>,
}

/// Tensors for a router's results, in rows of `apart` more elements, filled with ones.
struct Results {
    choices: usize,
    experts: DeviceTensor<u32, 2>,
    weights: DeviceTensor<f32, 2>,
    rows: DeviceTensor<u32, 2>,
    ends: DeviceTensor<u32, 1>,
}

impl Results {
    fn new(device: &Device, router: Router, apart: usize) -> Result<Self, Error> {
        let Router { tokens, experts, choices, .. } = router;
        let stored = [tokens, choices + apart];
        Ok(Self {
            choices,
            experts: device.filled_bytes(stored, 0xff)?,
            weights: device.filled_bytes(stored, 0xff)?,
            rows: device.filled_bytes(stored, 0xff)?,
            ends: device.filled_bytes([experts], 0xff)?,
        })
    }

    fn view_mut(&mut self) -> Result<RoutesMut<'_>, Error> {
        let [tokens, stored] = self.experts.shape();
        let (shape, strides) = ([tokens, self.choices], [stored, 1]);
        Ok(RoutesMut {
            experts: self.experts.view_mut().with_strides(shape, strides)?,
            weights: self.weights.view_mut().with_strides(shape, strides)?,
            rows: self.rows.view_mut().with_strides(shape, strides)?,
            ends: self.ends.view_mut(),
        })
    }

    /// Returns the results. Whatever is between rows must be as it was.
    fn read(&self) -> Result<Routes, Error> {
        let (experts, rows) = (self.rows_of(&self.experts)?, self.rows_of(&self.rows)?);
        let bits = self.weights.to_vec()?.iter().map(|x| x.to_bits()).collect();
        let weights = self.within(bits).into_iter().map(f32::from_bits).collect();
        Ok(Routes { experts, weights, rows, ends: self.ends.to_vec()? })
    }

    fn rows_of(&self, tensor: &DeviceTensor<u32, 2>) -> Result<Vec<u32>, Error> {
        Ok(self.within(tensor.to_vec()?))
    }

    fn within(&self, all: Vec<u32>) -> Vec<u32> {
        let [_, stored] = self.experts.shape();
        let of_row = |row: &[u32]| {
            assert!(row[self.choices..].iter().all(|x| *x == u32::MAX), "written beyond a row");
            row[..self.choices].to_vec()
        };
        all.chunks(stored).flat_map(of_row).collect()
    }
}

/// Returns the experts of a token in plain Rust: a stable order by logits, NaN first.
fn chosen(logits: &[f64], choices: usize) -> Vec<u32> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| {
        let [a, b] = [logits[*a], logits[*b]];
        b.is_nan().cmp(&a.is_nan()).then(b.partial_cmp(&a).unwrap_or(std::cmp::Ordering::Equal))
    });
    order.into_iter().take(choices).map(|expert| expert as u32).collect()
}

/// Returns rows and ends of choices in plain Rust.
fn order(experts: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<usize> = (0..experts.len()).collect();
    order.sort_by_key(|choice| experts[*choice]);
    let mut rows = vec![0; experts.len()];
    order.iter().enumerate().for_each(|(row, choice)| rows[*choice] = row as u32);
    let ends =
        (0..count as u32).map(|expert| experts.iter().filter(|other| **other <= expert).count() as u32);
    (rows, ends.collect())
}

#[track_caller]
fn routes<T: Element>(router: Router, logits: &[T], apart: usize) -> Result<(), ModelError> {
    let Router { tokens, experts, choices, normalise } = router;
    let device = Device::simulator();
    let stored = experts + apart;
    let mut all = vec![T::of(f64::NAN); tokens * stored];
    for (token, row) in logits.chunks(experts).enumerate() {
        all[token * stored..][..experts].copy_from_slice(row);
    }
    let all = device.tensor(&all, [tokens, stored])?;
    let view = all.view().with_strides([tokens, experts], [stored, 1])?;
    let mut results = Results::new(&device, router, apart)?;
    route(&device, view, results.view_mut()?, RouteOptions { normalise, workspace: None })?;
    let found = results.read()?;

    let values: Vec<f64> = logits.iter().map(|x| x.value()).collect();
    let wanted: Vec<u32> = values.chunks(experts).flat_map(|row| chosen(row, choices)).collect();
    assert_eq!(found.experts, wanted, "{router:?}");
    let (rows, ends) = order(&wanted, experts);
    assert_eq!((&found.rows, &found.ends), (&rows, &ends), "{router:?}");
    for (token, row) in values.chunks(experts).enumerate() {
        let of_token = token * choices..(token + 1) * choices;
        let greatest = row[wanted[of_token.start] as usize];
        let powers = |x: f64| (x - greatest).exp();
        let sum: f64 = match normalise {
            true => wanted[of_token.clone()].iter().map(|expert| powers(row[*expert as usize])).sum(),
            false => row.iter().copied().map(powers).sum(),
        };
        for i in of_token {
            let wanted = powers(row[wanted[i] as usize]) / sum;
            let error = (f64::from(found.weights[i]) - wanted).abs();
            assert!(error <= wanted * 2f64.powi(-17) + 2f64.powi(-120), "{}, not {wanted}", found.weights[i]);
        }
    }
    // The same with memory that has to grow, and again in the same memory.
    let mut workspace = RouteWorkspace::new(&device, 0, 0)?;
    for _ in 0..2 {
        let mut again = Results::new(&device, router, 0)?;
        let options = RouteOptions { normalise, workspace: Some(&mut workspace) };
        route(&device, view, again.view_mut()?, options)?;
        assert_eq!(again.read()?, found, "{router:?}");
    }
    Ok(())
}

/// One token, a chunk of tokens, two chunks and many; experts of one lane, of all lanes, and more
/// than have a lane; a single expert.
const ROUTERS: [Router; 9] = [
    Router { tokens: 1, experts: 8, choices: 2, normalise: true },
    Router { tokens: 3, experts: 1, choices: 1, normalise: false },
    Router { tokens: 64, experts: 128, choices: 8, normalise: true },
    Router { tokens: 65, experts: 60, choices: 4, normalise: false },
    Router { tokens: 33, experts: 16, choices: 16, normalise: true },
    Router { tokens: 9, experts: 512, choices: 10, normalise: false },
    Router { tokens: 130, experts: 512, choices: 16, normalise: true },
    Router { tokens: 700, experts: 5, choices: 3, normalise: true },
    Router { tokens: 391, experts: 129, choices: 1, normalise: false },
];

#[test]
fn routers_of_every_extent() -> Result<(), ModelError> {
    for (i, router) in ROUTERS.into_iter().enumerate() {
        let count = router.tokens * router.experts;
        routes::<bf16>(router, &numbers(i as u64, count, 6.0), i % 3)?;
    }
    for router in [ROUTERS[2], ROUTERS[3], ROUTERS[5]] {
        let count = router.tokens * router.experts;
        routes::<f16>(router, &numbers(20, count, 4.0), 0)?;
        routes::<f32>(router, &numbers(21, count, 40.0), 5)?;
    }
    Ok(())
}

/// Few different logits: the first of equal experts are chosen. Some experts have no token.
#[test]
fn the_first_of_equal_experts_is_chosen() -> Result<(), ModelError> {
    for router in [ROUTERS[2], ROUTERS[3], ROUTERS[7]] {
        let values = numbers::<f32>(30, router.tokens * router.experts, 2.0);
        let steps: Vec<f32> = values.iter().map(|x| x.trunc()).collect(); // -0 among them
        assert!(steps.iter().any(|x| *x == 0.0 && x.is_sign_negative()));
        routes(router, &steps, 0)?;
        routes(router, &vec![-3.5_f32; values.len()], 1)?;
    }
    let device = Device::simulator();
    let router = Router { tokens: 80, experts: 20, choices: 3, normalise: true };
    let logits: Vec<f32> =
        (0..80 * 20).map(|i| if [4, 7, 19].contains(&(i % 20)) { 1.0 } else { 0.0 }).collect();
    let mut results = Results::new(&device, router, 0)?;
    route(&device, &device.tensor(&logits, [80, 20])?, results.view_mut()?, RouteOptions::default())?;
    let found = results.read()?;
    assert_eq!(found.experts, [4, 7, 19].repeat(80));
    let ends: Vec<u32> = (0..20)
        .map(|expert| [4, 7, 19].iter().filter(|other| **other <= expert).count() as u32 * 80)
        .collect();
    assert_eq!(found.ends, ends);
    Ok(())
}

#[test]
fn special_logits_still_have_different_experts() -> Result<(), ModelError> {
    let (nan, minus) = (f32::NAN, f32::NEG_INFINITY);
    let rows = [
        [1.0, nan, 3.0, -nan],
        [f32::INFINITY, 0.0, 1.0, f32::INFINITY],
        [minus; 4],
        [minus, 2.0, minus, minus],
        [f32::MAX, -f32::MAX, 0.0, f32::MAX],
    ];
    let device = Device::simulator();
    let logits = device.tensor(&rows.concat(), [5, 4])?;
    let router = Router { tokens: 5, experts: 4, choices: 3, normalise: true };
    for normalise in [true, false] {
        let mut results = Results::new(&device, router, 0)?;
        route(&device, &logits, results.view_mut()?, RouteOptions { normalise, workspace: None })?;
        let found = results.read()?;
        assert_eq!(found.experts, [1, 3, 2, 0, 3, 2, 0, 1, 2, 1, 0, 2, 0, 3, 2]);
        let (rows, ends) = order(&found.experts, 4);
        assert_eq!((found.rows, found.ends), (rows, ends));
        assert!(found.weights[..9].iter().all(|weight| weight.is_nan()), "{:?}", found.weights);
        assert_eq!(found.weights[9..], [1.0, 0.0, 0.0, 0.5, 0.5, 0.0]);
    }
    Ok(())
}

#[test]
fn no_tokens_have_no_rows() -> Result<(), ModelError> {
    let device = Device::simulator();
    let router = Router { tokens: 0, experts: 70, choices: 2, normalise: true };
    let mut results = Results::new(&device, router, 0)?;
    let logits = device.zeros::<bf16, 2>([0, 70])?;
    route(&device, &logits, results.view_mut()?, RouteOptions::default())?;
    assert_eq!(results.read()?.ends, [0; 70]);
    for [tokens, choices, columns] in [[0, 2, 64], [3, 2, 0], [3, 0, 64]] {
        let (x, rows) = (device.zeros::<bf16, 2>([tokens, columns])?, device.zeros([tokens, choices])?);
        let weights = device.zeros([tokens, choices])?;
        let mut grouped = device.zeros::<bf16, 2>([tokens * choices, columns])?;
        gather(&device, &x, &rows, &mut grouped)?;
        let mut out = device.filled_bytes::<bf16, 2>([tokens, columns], 0xff)?;
        combine(&device, &grouped, &rows, &weights, &mut out)?;
        assert!(out.to_vec()?.iter().all(|x| *x == bf16::ZERO));
    }
    Ok(())
}

/// A single row is left alone, too, by a number that is not its own.
#[test]
fn a_single_row_is_not_that_of_another_number() -> Result<(), ModelError> {
    let device = Device::simulator();
    let (x, rows) = (device.tensor(&[1.0f32; 64], [1, 64])?, device.tensor(&[7], [1, 1])?);
    let mut out = device.tensor(&[3.0f32; 64], [1, 64])?;
    gather(&device, &x, &rows, &mut out)?;
    assert_eq!(out.to_vec()?, [3.0; 64]);
    let weights = device.tensor(&[1.0], [1, 1])?;
    combine(&device, &x, &rows, &weights, &mut out)?;
    assert_eq!(out.to_vec()?, [0.0; 64]);
    Ok(())
}

/// Columns and the distance between rows; choices.
const MOVES: [[usize; 3]; 6] =
    [[128, 0, 8], [64, 64, 2], [1000, 0, 3], [101, 3, 5], [5120, 8, 1], [1, 0, 16]];

#[test]
fn rows_move_and_are_added_up() -> Result<(), ModelError> {
    fn moves<T: Element>([columns, apart, choices]: [usize; 3], tokens: usize) -> Result<(), ModelError> {
        let device = Device::simulator();
        let grouped = tokens * choices;
        let strided = |values: &[T]| -> Vec<T> {
            let pad = vec![T::of(f64::NAN); apart];
            values.chunks(columns).flat_map(|row| [row, &pad].concat()).collect()
        };
        let strides = [columns + apart, 1];
        // A permutation, and the last choice beyond all rows.
        let mut rows: Vec<u32> = (0..grouped as u32).map(|i| i * 7 % grouped as u32).collect();
        if grouped.is_multiple_of(7) {
            rows = (0..grouped as u32).rev().collect();
        }
        let lost = rows[grouped - 1];
        rows[grouped - 1] = u32::MAX;
        let of_rows = device.tensor(&rows, [tokens, choices])?;

        let x = numbers::<T>(40, tokens * columns, 4.0);
        let of_x = device.tensor(&strided(&x), [tokens, columns + apart])?;
        let mut out = device.filled_bytes::<T, 2>([grouped, columns + apart], 0xff)?;
        let to = out.view_mut().with_strides([grouped, columns], strides)?;
        gather(&device, of_x.view().with_strides([tokens, columns], strides)?, &of_rows, to)?;
        let found = out.to_vec()?;
        for (choice, row) in rows.iter().enumerate() {
            let wanted = &x[choice / choices * columns..][..columns];
            let row = if *row == u32::MAX { lost } else { *row } as usize;
            let (found, between) = found[row * strides[0]..][..strides[0]].split_at(columns);
            let is_left_out = found.iter().all(|x| x.value().is_nan());
            assert!(if row == lost as usize { is_left_out } else { found == wanted });
            assert!(between.iter().all(|x| x.value().is_nan()), "written beyond a row");
        }

        let y = numbers::<T>(41, grouped * columns, 4.0);
        let of_y = device.tensor(&strided(&y), [grouped, columns + apart])?;
        let weights = numbers::<f32>(42, grouped, 1.0);
        let of_weights = device.tensor(&weights, [tokens, choices])?;
        let mut out = device.filled_bytes::<T, 2>([tokens, columns + apart], 0xff)?;
        let to = out.view_mut().with_strides([tokens, columns], strides)?;
        let from = of_y.view().with_strides([grouped, columns], strides)?;
        combine(&device, from, &of_rows, &of_weights, to)?;
        let found = out.to_vec()?;
        for token in 0..tokens {
            for column in 0..columns {
                let mut sum = 0.0_f32;
                for choice in token * choices..(token + 1) * choices {
                    let y = y.get(rows[choice] as usize * columns + column).map_or(0.0, |y| y.value() as f32);
                    sum = weights[choice].mul_add(y, sum);
                }
                assert_eq!(found[token * strides[0] + column], T::of(f64::from(sum)));
            }
        }
        Ok(())
    }
    for shape in MOVES {
        moves::<bf16>(shape, 9)?;
        moves::<f32>(shape, 3)?;
    }
    moves::<f16>(MOVES[1], 40)
}

/// A whole mixture: rows of each expert by its own matrix.
#[test]
fn a_mixture_of_experts() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::simulator();
    let router = Router { tokens: 70, experts: 6, choices: 2, normalise: true };
    let Router { tokens, experts, choices, normalise } = router;
    let width = 64;
    let logits = device.tensor(&numbers::<f32>(50, tokens * experts, 3.0), [tokens, experts])?;
    let mut results = Results::new(&device, router, 0)?;
    route(&device, &logits, results.view_mut()?, RouteOptions { normalise, workspace: None })?;
    // The matrix of an expert multiplies by a power of two.
    let scale = |expert: usize| 0.5_f32.powi(expert as i32);
    let matrix = |expert| {
        (0..width * width)
            .map(move |i| if i % (width + 1) == 0 { scale(expert) } else { 0.0 })
            .map(bf16::from_f32)
    };
    let matrices: Vec<bf16> = (0..experts).flat_map(matrix).collect();
    let matrices = device.tensor(&matrices, [experts, width, width])?;
    let x = numbers::<bf16>(51, tokens * width, 2.0);
    let of_x = device.tensor(&x, [tokens, width])?;
    let shape = [tokens * choices, width];
    let (mut grouped, mut y) = (device.zeros::<bf16, 2>(shape)?, device.zeros::<bf16, 2>(shape)?);
    gather(&device, &of_x, &results.rows, &mut grouped)?;
    let options = GroupedOptions { transpose_b: true, ..GroupedOptions::default() };
    gemm_grouped(&device, &grouped, &matrices, &results.ends, &mut y, options)?;
    let mut out = device.zeros::<bf16, 2>([tokens, width])?;
    combine(&device, &y, &results.rows, &results.weights, &mut out)?;
    let Routes { experts, weights, .. } = results.read()?;
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        let token = i / width;
        let sum = (token * choices..(token + 1) * choices)
            .fold(0.0_f32, |sum, c| weights[c].mul_add(x[i].to_f32() * scale(experts[c] as usize), sum));
        assert_eq!(found, bf16::from_f32(sum));
    }
    Ok(())
}

#[test]
fn tensors_that_do_not_match() -> Result<(), ModelError> {
    let device = Device::simulator();
    let refused = |router: Router, shape: [usize; 2]| -> Result<&'static str, ModelError> {
        let logits = device.zeros::<bf16, 2>(shape)?;
        let mut results = Results::new(&device, router, 0)?;
        let error = route(&device, &logits, results.view_mut()?, RouteOptions::default());
        Ok(error.expect_err("a refusal").code())
    };
    let router = Router { tokens: 4, experts: 8, choices: 2, normalise: false };
    assert_eq!(refused(router, [5, 8])?, "TMA0575");
    assert_eq!(refused(router, [4, 9])?, "TMA0575");
    assert_eq!(refused(Router { experts: 513, ..router }, [4, 513])?, "TMA0577");
    assert_eq!(refused(Router { choices: 17, experts: 32, ..router }, [4, 32])?, "TMA0577");
    assert_eq!(refused(Router { choices: 9, ..router }, [4, 8])?, "TMA0577");
    assert_eq!(refused(Router { choices: 0, ..router }, [4, 8])?, "TMA0577");

    let transposed = device.zeros::<bf16, 2>([8, 4])?;
    let mut results = Results::new(&device, router, 0)?;
    let error = route(
        &device,
        transposed.view().with_strides([4, 8], [1, 4])?,
        results.view_mut()?,
        RouteOptions::default(),
    );
    assert_eq!(error.expect_err("columns that are apart").code(), "TMA0576");

    let (x, rows) = (device.zeros::<bf16, 2>([4, 64])?, device.zeros([4, 2])?);
    let mut out = device.zeros::<bf16, 2>([7, 64])?;
    let error = gather(&device, &x, &rows, &mut out);
    assert_eq!(error.expect_err("a row is missing").code(), "TMA0575");
    let (weights, mut sums) = (device.zeros([4, 3])?, device.zeros::<bf16, 2>([4, 64])?);
    let error = combine(&device, &device.zeros::<bf16, 2>([8, 64])?, &rows, &weights, &mut sums);
    assert_eq!(error.expect_err("weights that have no rows").code(), "TMA0575");
    Ok(())
}
