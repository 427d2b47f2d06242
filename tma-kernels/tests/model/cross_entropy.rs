//! Cross-entropy and its gradient.

use tma_kernels::model::{
    CrossEntropyOptions, ModelError, count_labels, cross_entropy, cross_entropy_gradient,
    cross_entropy_in_place, mean_loss,
};
use tma_runtime::prelude::*;

use crate::rows::{Element, check, numbers};

pub(crate) const IGNORED: u32 = u32::MAX;

/// Rows of logits, in memory with `apart` more columns each.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    columns: usize,
    apart: usize,
}

const fn shape(rows: usize, columns: usize, apart: usize) -> Shape {
    Shape { rows, columns, apart }
}

/// One column, less than a vector, rows that begin anywhere, rows of one block and of several, whose
/// last blocks have few elements or none.
const SHAPES: [Shape; 10] = [
    shape(5, 1, 0),
    shape(4, 3, 0),
    shape(9, 101, 0),
    shape(3, 101, 3),
    shape(3, 128, 8),
    shape(2, 1000, 0),
    shape(3, 16384, 0),
    shape(2, 16385, 0),
    shape(2, 50257, 0),
    shape(1, 131_072, 0),
];

#[derive(Clone, Copy)]
pub(crate) struct Constants {
    pub(crate) smoothing: f32,
    pub(crate) z_loss: f32,
    pub(crate) factor: f32,
    pub(crate) is_mean: bool,
}

pub(crate) const PLAIN: Constants = Constants { smoothing: 0.0, z_loss: 0.0, factor: 1.0, is_mean: false };

impl Constants {
    fn options<'a>(
        self,
        log_sums: &'a mut DeviceTensor<f32, 1>,
        count: &'a DeviceTensor<u32, 1>,
    ) -> CrossEntropyOptions<'a> {
        CrossEntropyOptions {
            label_smoothing: self.smoothing,
            z_loss: self.z_loss,
            log_sums: Some(log_sums.view_mut()),
            count: self.is_mean.then(|| count.view()),
            gradient_factor: self.factor,
            ..CrossEntropyOptions::default()
        }
    }
}

/// The formula of a row in f64.
pub(crate) struct Wanted {
    pub(crate) loss: f64,
    pub(crate) log_sum: f64,
    pub(crate) gradient: Vec<f64>,
}

pub(crate) fn wanted(x: &[f64], label: u32, constants: Constants, divisor: f64) -> Wanted {
    if label == IGNORED {
        return Wanted { loss: 0.0, log_sum: 0.0, gradient: vec![0.0; x.len()] };
    }
    let [smoothing, z_loss, factor] =
        [constants.smoothing, constants.z_loss, constants.factor].map(f64::from);
    let greatest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log_sum = greatest + x.iter().map(|x| (x - greatest).exp()).sum::<f64>().ln();
    let columns = x.len() as f64;
    let mut loss = log_sum - (1.0 - smoothing) * x[label as usize] + z_loss * log_sum * log_sum;
    if smoothing > 0.0 {
        loss -= smoothing * x.iter().sum::<f64>() / columns;
    }
    let of_column = |(column, x): (usize, &f64)| {
        let target = smoothing / columns + if column == label as usize { 1.0 - smoothing } else { 0.0 };
        factor / divisor * ((x - log_sum).exp() * (1.0 + 2.0 * z_loss * log_sum) - target)
    };
    Wanted { loss, log_sum, gradient: x.iter().enumerate().map(of_column).collect() }
}

/// Rows of logits and labels, on the host and on the device.
struct Case<T> {
    device: Device,
    shape: Shape,
    x: Vec<T>,
    labels: Vec<u32>,
    on_device: DeviceTensor<u32, 1>,
    count: DeviceTensor<u32, 1>,
}

impl<T: Element> Case<T> {
    fn new(shape: Shape, size: f64) -> Result<Self, ModelError> {
        let x = numbers::<T>(50, shape.rows * shape.columns, size);
        // The first and the last column, some others, and rows that do not count.
        let label = |row: usize| match row {
            0 => shape.columns as u32 - 1,
            1 => IGNORED,
            2 => 0,
            _ => (row * 7919 % shape.columns) as u32,
        };
        Self::with(shape, x, (0..shape.rows).map(label).collect())
    }

    fn with(shape: Shape, x: Vec<T>, labels: Vec<u32>) -> Result<Self, ModelError> {
        let device = Device::simulator();
        let on_device = device.tensor(&labels, [shape.rows])?;
        let mut count = device.filled_bytes::<u32, 1>([1], 0xff)?;
        count_labels(&device, &on_device, IGNORED, &mut count)?;
        let of_host = labels.iter().filter(|label| **label != IGNORED).count();
        assert_eq!(count.to_vec()?, [of_host as u32]);
        Ok(Self { device, shape, x, labels, on_device, count })
    }

    fn stored(&self) -> Result<DeviceTensor<T, 2>, Error> {
        let Shape { rows, columns, apart } = self.shape;
        let mut all = vec![T::of(f64::NAN); rows * (columns + apart)];
        for row in 0..rows {
            all[row * (columns + apart)..][..columns].copy_from_slice(&self.x[row * columns..][..columns]);
        }
        self.device.tensor(&all, [rows, columns + apart])
    }

    /// Returns the rows of a tensor. Whatever is between them must be NaN.
    fn rows_of(&self, tensor: &DeviceTensor<T, 2>) -> Result<Vec<T>, Error> {
        let Shape { columns, .. } = self.shape;
        let all = tensor.to_vec()?;
        let of_row = |row: &[T]| {
            assert!(row[columns..].iter().all(|x| x.value().is_nan()), "written beyond a row");
            row[..columns].to_vec()
        };
        Ok(all.chunks(tensor.shape()[1]).flat_map(of_row).collect())
    }

    /// Checks losses, and gradients where there are any.
    #[track_caller]
    fn check(&self, constants: Constants, losses: &[f32], log_sums: &[f32], gradients: Option<&[T]>) {
        let columns = self.shape.columns;
        let valid = self.labels.iter().filter(|label| **label != IGNORED).count() as f64;
        let divisor = if constants.is_mean { valid } else { 1.0 };
        for (row, label) in self.labels.iter().enumerate() {
            let x: Vec<f64> = self.x[row * columns..][..columns].iter().map(|x| x.value()).collect();
            let size = x.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
            let wanted = wanted(&x, *label, constants, divisor);
            // Terms as great as the greatest logit are rounded, and so is the logarithm of their sum.
            let rounding = (2.0 * size + 16.0) * 2f64.powi(-22);
            let of_square = f64::from(constants.z_loss) * (2.0 * wanted.log_sum.abs() + 1.0) * rounding;
            check(losses[row], wanted.loss, 2f64.powi(-20), rounding + of_square);
            check(log_sums[row], wanted.log_sum, 0.0, rounding);
            let Some(gradients) = gradients else { continue };
            let scale = f64::from(constants.factor).abs() / divisor;
            let z = 2.0 * f64::from(constants.z_loss) * wanted.log_sum.abs();
            for (column, gradient) in wanted.gradient.iter().enumerate() {
                // Of a probability, the exponent is rounded, and the sum.
                let probability = (x[column] - wanted.log_sum).exp() * (1.0 + z);
                let target = if column == *label as usize { 1.0 } else { 0.0 };
                let terms = probability * (2.0 * size + 16.0) + target;
                let bound = scale * (terms * 2f64.powi(-21) + 2f64.powi(-126));
                check(gradients[row * columns + column], *gradient, 2f64.powi(-20), bound);
            }
        }
    }
}

/// Checks the losses alone, with gradients in another tensor, and with gradients in place.
#[track_caller]
fn all_forms<T: Element>(case: &Case<T>, constants: Constants) -> Result<(), ModelError> {
    let Shape { rows, columns, .. } = case.shape;
    let (device, labels) = (&case.device, &case.on_device);
    let poisoned = || device.filled_bytes::<f32, 1>([rows], 0xff);
    let x = case.stored()?;
    let (mut losses, mut log_sums) = (poisoned()?, poisoned()?);
    let view = x.view().slice([0..rows, 0..columns])?;
    cross_entropy(device, view, labels, &mut losses, constants.options(&mut log_sums, &case.count))?;
    let alone = (losses.to_vec()?, log_sums.to_vec()?);
    case.check(constants, &alone.0, &alone.1, None);

    let mut out = device.filled_bytes::<T, 2>(x.shape(), 0xff)?;
    let (mut losses, mut log_sums) = (poisoned()?, poisoned()?);
    let to = out.view_mut().slice([0..rows, 0..columns])?;
    let options = constants.options(&mut log_sums, &case.count);
    cross_entropy_gradient(device, view, labels, &mut losses, to, options)?;
    let gradients = case.rows_of(&out)?;
    case.check(constants, &losses.to_vec()?, &log_sums.to_vec()?, Some(&gradients));
    assert_eq!((losses.to_vec()?, log_sums.to_vec()?), alone, "the same bits with a gradient");

    let mut x = x;
    let (mut losses, mut log_sums) = (poisoned()?, poisoned()?);
    let from = x.view_mut().slice([0..rows, 0..columns])?;
    let options = constants.options(&mut log_sums, &case.count);
    cross_entropy_in_place(device, from, labels, &mut losses, options)?;
    assert!(case.rows_of(&x)? == gradients, "the same bits in place");
    assert_eq!((losses.to_vec()?, log_sums.to_vec()?), alone, "the same bits in place");
    Ok(())
}

#[test]
fn every_shape_and_type() -> Result<(), ModelError> {
    let mean = Constants { is_mean: true, ..PLAIN };
    for shape in SHAPES {
        all_forms(&Case::<bf16>::new(shape, 8.0)?, mean)?;
        all_forms(&Case::<f32>::new(shape, 20.0)?, PLAIN)?;
    }
    for shape in &SHAPES[..8] {
        all_forms(&Case::<f16>::new(*shape, 8.0)?, Constants { factor: 1024.0, ..mean })?;
    }
    Ok(())
}

/// Enough rows to stay in shared memory: those of one block, of two and of four, aligned and not,
/// some of which are ignored.
#[test]
fn rows_in_shared_memory() -> Result<(), ModelError> {
    let all = Constants { smoothing: 0.1, z_loss: 1e-3, factor: 0.5, is_mean: true };
    for shape in [shape(18, 2048, 0), shape(17, 2501, 0), shape(16, 9000, 8), shape(8, 50_257, 0)] {
        all_forms(&Case::<bf16>::new(shape, 8.0)?, PLAIN)?;
        all_forms(&Case::<f16>::new(shape, 8.0)?, Constants { factor: 1024.0, ..all })?;
        all_forms(&Case::<f32>::new(shape, 20.0)?, all)?;
    }
    // Four whole pieces in each of two blocks, a fifth one, and the longest rows of four blocks.
    all_forms(&Case::<f32>::new(shape(8, 32_768, 4), 8.0)?, PLAIN)?;
    all_forms(&Case::<bf16>::new(shape(8, 65_601, 0), 8.0)?, all)?;
    all_forms(&Case::<f32>::new(shape(4, 81_920, 4), 8.0)?, PLAIN)?;
    // Longer ones stay in registers.
    all_forms(&Case::<bf16>::new(shape(4, 163_849, 0), 8.0)?, all)
}

/// Special values in rows that stay in shared memory.
#[test]
fn special_values_in_shared_memory() -> Result<(), ModelError> {
    let device = Device::simulator();
    let columns = 2056;
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0, 1e30];
    let mut x = vec![0.0_f32; 20 * columns];
    for (row, special) in special.into_iter().enumerate() {
        x[row * columns + 300] = special;
    }
    x[5 * columns..6 * columns].fill(f32::NEG_INFINITY);
    x[6 * columns..7 * columns].fill(f32::NAN);
    let labels = [vec![0, 0, 300, columns as u32, 0, 0, IGNORED], vec![1; 13]].concat();
    let (mut x, labels) = (device.tensor(&x, [20, columns])?, device.tensor(&labels, [20])?);
    let mut losses = device.zeros([20])?;
    cross_entropy_in_place(&device, &mut x, &labels, &mut losses, CrossEntropyOptions::default())?;
    let (losses, gradients) = (losses.to_vec()?, x.to_vec()?);
    for row in [0, 1, 3, 5] {
        assert!(losses[row].is_nan(), "{losses:?}");
        assert!(gradients[row * columns..][..columns].iter().all(|x| x.is_nan()), "row {row}");
    }
    assert_eq!([losses[2], losses[6]], [f32::INFINITY, 0.0]);
    check(losses[4], 1e30, 1e-6, 0.0);
    assert!(gradients[6 * columns..7 * columns].iter().all(|x| *x == 0.0));
    assert_eq!(gradients[2 * columns + 300], -1.0);
    assert_eq!([gradients[4 * columns], gradients[4 * columns + 300]], [-1.0, 1.0]);
    let even = (columns as f64).ln();
    losses[7..].iter().for_each(|loss| check(*loss, even, 1e-6, 0.0));
    Ok(())
}

/// Rows that eight blocks cannot keep, of which a part is loaded again.
#[test]
fn rows_of_several_parts() -> Result<(), ModelError> {
    all_forms(&Case::<bf16>::new(shape(2, 151_936, 0), 8.0)?, Constants { factor: -3.0, ..PLAIN })?;
    all_forms(&Case::<f32>::new(shape(2, 262_144 + 3, 1), 8.0)?, PLAIN)
}

#[test]
fn smoothing_and_z_loss() -> Result<(), ModelError> {
    let all = [
        Constants { smoothing: 0.1, ..PLAIN },
        Constants { z_loss: 1e-3, ..PLAIN },
        Constants { smoothing: 0.3, z_loss: 1e-2, factor: 0.5, is_mean: true },
        Constants { smoothing: 1.0, ..PLAIN },
    ];
    for constants in all {
        for shape in [shape(5, 1, 0), shape(5, 101, 0), shape(3, 1024, 0), shape(2, 33_000, 0)] {
            all_forms(&Case::<f32>::new(shape, 5.0)?, constants)?;
            all_forms(&Case::<bf16>::new(shape, 100.0)?, constants)?;
        }
    }
    Ok(())
}

#[test]
fn rows_that_are_all_ignored() -> Result<(), ModelError> {
    let case = Case::<bf16>::with(shape(3, 100, 0), numbers::<bf16>(60, 300, 5.0), vec![IGNORED; 3])?;
    all_forms(&case, Constants { smoothing: 0.1, z_loss: 0.1, factor: 1.0, is_mean: true })?;
    let losses = case.device.tensor(&[0.0_f32; 3], [3])?;
    let mut mean = case.device.filled_bytes([1], 0xff)?;
    mean_loss(&case.device, &losses, &case.count, &mut mean)?;
    assert_eq!(mean.to_vec()?, [0.0]);
    Ok(())
}

/// Rows that are ignored may have any logits, and other labels may be ignored.
#[test]
fn ignored_rows_are_not_read() -> Result<(), ModelError> {
    let device = Device::simulator();
    let x = device.tensor(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1.0, 1.0, 1.0, 1.0], [2, 4])?;
    let labels = device.tensor(&[7, 1], [2])?;
    let (mut losses, mut gradients) = (device.zeros([2])?, device.filled_bytes::<f32, 2>([2, 4], 0xff)?);
    let options = CrossEntropyOptions { ignored: 7, ..CrossEntropyOptions::default() };
    cross_entropy_gradient(&device, &x, &labels, &mut losses, &mut gradients, options)?;
    assert_eq!(gradients.to_vec()?[..4], [0.0; 4]);
    let found = losses.to_vec()?;
    assert!(found[0] == 0.0 && (found[1] - 4_f32.ln()).abs() < 1e-6, "{found:?}");
    Ok(())
}

#[test]
fn special_values() -> Result<(), ModelError> {
    const MINUS: f32 = f32::NEG_INFINITY;
    let device = Device::simulator();
    let rows = [
        ([f32::NAN, 1.0, 2.0, 3.0, 0.0], 1),
        ([f32::INFINITY, 1.0, 2.0, 3.0, 0.0], 1),
        ([MINUS; 5], 1),
        ([1.0; 5], 5), // no such column
        ([MINUS, 0.0, MINUS, 0.0, MINUS], 1),
        ([MINUS, 0.0, MINUS, 0.0, MINUS], 0),
        ([-3e38, 3e38, -3e38, 3e38, 0.0], 3),
        ([1e30, -1e30, 0.0, 5.0, 1e29], 0),
        ([1e30, -1e30, 0.0, 5.0, 1e29], 1),
        ([-1000.0, MINUS, MINUS, MINUS, -1000.0], 4),
    ];
    let x: Vec<f32> = rows.iter().flat_map(|(row, _)| *row).collect();
    let labels: Vec<u32> = rows.iter().map(|(_, label)| *label).collect();
    let (x, labels) = (device.tensor(&x, [10, 5])?, device.tensor(&labels, [10])?);
    let (mut losses, mut gradients) = (device.zeros([10])?, device.zeros::<f32, 2>([10, 5])?);
    for smoothing in [0.0, 0.2] {
        let options = CrossEntropyOptions { label_smoothing: smoothing, ..CrossEntropyOptions::default() };
        cross_entropy_gradient(&device, &x, &labels, &mut losses, &mut gradients, options)?;
        let (found, gradients) = (losses.to_vec()?, gradients.to_vec()?);
        assert!(found[..4].iter().all(|x| x.is_nan()), "{found:?}");
        assert!(gradients[..20].iter().all(|x| x.is_nan()), "{gradients:?}");
        let finite = if smoothing > 0.0 { f32::INFINITY } else { 2_f32.ln() };
        check(found[4], f64::from(finite), 1e-6, 0.0);
        assert_eq!(found[5], f32::INFINITY);
        let target = |x: f32, p: f32| p - smoothing / 5.0 - x * (1.0 - smoothing);
        for (row, label, probabilities) in [
            (4, 1, [0.0, 0.5, 0.0, 0.5, 0.0]),
            (5, 0, [0.0, 0.5, 0.0, 0.5, 0.0]),
            (6, 3, [0.0, 0.5, 0.0, 0.5, 0.0]),
            (7, 0, [1.0, 0.0, 0.0, 0.0, 0.0]),
            (8, 1, [1.0, 0.0, 0.0, 0.0, 0.0]),
            (9, 4, [0.5, 0.0, 0.0, 0.0, 0.5]),
        ] {
            for (column, probability) in probabilities.into_iter().enumerate() {
                let wanted = target(if column == label { 1.0 } else { 0.0 }, probability);
                check(gradients[row * 5 + column], f64::from(wanted), 1e-6, 1e-7);
            }
        }
    }
    // Without smoothing: the first of them with the sum of distances would overflow in f32.
    cross_entropy(&device, &x, &labels, &mut losses, CrossEntropyOptions::default())?;
    let found = losses.to_vec()?;
    check(found[6], 2f64.ln(), 1e-6, 0.0);
    check(found[7], 0.0, 0.0, 1e-6);
    check(found[8], 2e30, 1e-6, 0.0);
    check(found[9], 2f64.ln(), 1e-6, 0.0);
    let options = CrossEntropyOptions { label_smoothing: 0.5, ..CrossEntropyOptions::default() };
    cross_entropy(&device, &x, &labels, &mut losses, options)?;
    check(losses.to_vec()?[6], 1.5e38, 1e-6, 0.0); // half of the distance from the mean, 0
    Ok(())
}

/// Elements that are -∞ for whole threads, and far below the maximum for others.
#[test]
fn threads_without_finite_elements() -> Result<(), ModelError> {
    let columns = 4096;
    let mut x = vec![f32::NEG_INFINITY; 2 * columns];
    x[100] = -1000.0;
    x[101] = -1001.0;
    x[3000] = -2000.0;
    x[columns] = 1e30;
    let case = Case::with(shape(2, columns, 0), x, vec![101, 0])?;
    let device = &case.device;
    let (mut losses, mut x) = (device.zeros([2])?, case.stored()?);
    cross_entropy_in_place(device, &mut x, &case.on_device, &mut losses, CrossEntropyOptions::default())?;
    let (found, gradients) = (losses.to_vec()?, x.to_vec()?);
    let share = 1.0 / (1.0 + (-1f64).exp());
    check(found[0], -(1.0 - share).ln(), 1e-5, 0.0);
    check(gradients[100], share, 1e-5, 0.0);
    check(gradients[101], -share, 1e-5, 0.0);
    let others = gradients.iter().enumerate().filter(|(i, _)| ![100, 101, columns].contains(i));
    assert!(others.into_iter().all(|(_, x)| *x == 0.0));
    assert_eq!((found[1], gradients[columns]), (0.0, 0.0));
    Ok(())
}

/// Logits and gradients whose rows are not equally far apart.
#[test]
fn gradients_with_other_distances() -> Result<(), ModelError> {
    let case = Case::<bf16>::new(shape(5, 1001, 0), 8.0)?;
    let (device, x) = (&case.device, case.stored()?);
    let (mut losses, mut log_sums) = (device.zeros([5])?, device.zeros([5])?);
    for apart in [8, 5] {
        let mut out = device.filled_bytes::<bf16, 2>([5, 1001 + apart], 0xff)?;
        let to = out.view_mut().slice([0..5, 0..1001])?;
        let options = PLAIN.options(&mut log_sums, &case.count);
        let result = cross_entropy_gradient(device, &x, &case.on_device, &mut losses, to, options);
        if apart == 8 {
            result?;
            case.check(PLAIN, &losses.to_vec()?, &log_sums.to_vec()?, Some(&case.rows_of(&out)?));
        } else {
            assert_eq!(result.expect_err("no multiple of 16 bytes").code(), "TMA0576");
            assert!(out.to_vec()?.iter().all(|x| x.is_nan()));
        }
    }
    Ok(())
}

#[test]
fn the_mean_of_losses() -> Result<(), ModelError> {
    let device = Device::simulator();
    let losses = numbers::<f32>(70, 5000, 3.0);
    let labels: Vec<u32> = (0..5000).map(|i| if i % 3 == 0 { IGNORED } else { i }).collect();
    let (on_device, labels) = (device.tensor(&losses, [5000])?, device.tensor(&labels, [5000])?);
    let (mut count, mut mean) = (device.zeros([1])?, device.zeros([1])?);
    count_labels(&device, &labels, IGNORED, &mut count)?;
    mean_loss(&device, &on_device, &count, &mut mean)?;
    assert_eq!(count.to_vec()?, [3333]);
    let wanted = losses.iter().copied().map(f64::from).sum::<f64>() / 3333.0;
    check(mean.to_vec()?[0], wanted, 2f64.powi(-23), 0.0);
    Ok(())
}

#[test]
fn errors() -> Result<(), ModelError> {
    let device = Device::simulator();
    let code = |result: Result<(), ModelError>| result.expect_err("an error").code();
    let x = device.zeros::<f32, 2>([2, 8])?;
    let labels = device.zeros::<u32, 1>([2])?;
    let (mut losses, mut few) = (device.zeros::<f32, 1>([2])?, device.zeros::<f32, 1>([1])?);
    let mut call = |options| cross_entropy(&device, &x, &labels, &mut losses, options);
    for number in [-0.5, f32::NAN, f32::INFINITY, 1.5] {
        let options = CrossEntropyOptions { label_smoothing: number, ..Default::default() };
        assert_eq!(code(call(options)), "TMA0578");
    }
    for number in [-0.5, f32::NAN, f32::INFINITY] {
        assert_eq!(code(call(CrossEntropyOptions { z_loss: number, ..Default::default() })), "TMA0578");
    }
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let options = CrossEntropyOptions { gradient_factor: number, ..Default::default() };
        assert_eq!(code(call(options)), "TMA0578");
    }
    let options = CrossEntropyOptions { log_sums: Some(few.view_mut()), ..Default::default() };
    assert_eq!(code(call(options)), "TMA0575");
    let options = CrossEntropyOptions { count: Some(labels.view()), ..Default::default() };
    assert_eq!(code(call(options)), "TMA0575");
    let options = CrossEntropyOptions::default;
    let first = 0..1;
    let short = labels.view().slice([first])?;
    assert_eq!(code(cross_entropy(&device, &x, short, &mut losses, options())), "TMA0575");
    assert_eq!(code(cross_entropy(&device, &x, &labels, &mut few, options())), "TMA0575");
    let mut narrow = device.zeros::<f32, 2>([2, 7])?;
    let result = cross_entropy_gradient(&device, &x, &labels, &mut losses, &mut narrow, options());
    assert_eq!(code(result), "TMA0575");
    let turned = x.view().permute([1, 0])?;
    let (eight, mut of_eight) = (device.zeros::<u32, 1>([8])?, device.zeros::<f32, 1>([8])?);
    assert_eq!(code(cross_entropy(&device, turned, &eight, &mut of_eight, options())), "TMA0576");
    let beside = x.view().slice([0..2, 1..8])?;
    assert_eq!(code(cross_entropy(&device, beside, &labels, &mut losses, options())), "TMA0531");
    let none = device.zeros::<f32, 2>([2, 0])?;
    assert_eq!(code(cross_entropy(&device, &none, &labels, &mut losses, options())), "TMA0577");
    let no_rows = device.zeros::<f32, 2>([0, 8])?;
    let (no_labels, mut no_losses) = (device.zeros::<u32, 1>([0])?, device.zeros::<f32, 1>([0])?);
    cross_entropy(&device, &no_rows, &no_labels, &mut no_losses, options())
}
