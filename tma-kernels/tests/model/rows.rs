//! Numbers, and tensors whose rows are apart.

use tma_kernels::model::ModelElement;
use tma_runtime::prelude::*;

/// An element type as numbers.
pub(crate) trait Element: ModelElement + Copy + PartialEq + std::fmt::Debug {
    /// Half of a unit in the last place, relative.
    const ROUNDING: f64;
    /// Half of the least number above zero.
    const LEAST: f64;

    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! element {
    ($T:ty, $rounding:expr, $least:expr, $of:expr, $value:expr) => {
        impl Element for $T {
            const ROUNDING: f64 = $rounding;
            const LEAST: f64 = $least;

            fn of(value: f64) -> Self {
                $of(value as f32)
            }

            fn value(self) -> f64 {
                $value(self)
            }
        }
    };
}

element!(bf16, 1.0 / 512.0, 0.0, bf16::from_f32, bf16::to_f64);
element!(f16, 1.0 / 4096.0, 1.0 / (1_u64 << 25) as f64, f16::from_f32, f16::to_f64);
element!(f32, 1.0 / (1_u64 << 25) as f64, 0.0, |x: f32| x, f64::from);

/// Returns reproducible pseudo-random numbers of up to this size (the finaliser of MurmurHash3).
pub(crate) fn numbers<T: Element>(seed: u64, len: usize, size: f64) -> Vec<T> {
    let number = |i: usize| {
        let mut x = (i as u64).wrapping_add(seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        T::of(((x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0) * size)
    };
    (0..len).map(number).collect()
}

/// Rows of a tensor of [outer, inner, columns], in memory with `apart` more columns each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: [usize; 3],
    pub(crate) apart: usize,
}

impl Layout {
    pub(crate) fn rows(self) -> usize {
        self.shape[0] * self.shape[1]
    }

    pub(crate) fn columns(self) -> usize {
        self.shape[2]
    }

    /// Returns the shape of the memory.
    pub(crate) fn stored(self) -> [usize; 3] {
        let [outer, inner, columns] = self.shape;
        [outer, inner, columns + self.apart]
    }

    /// Returns a tensor with these rows, one after the other, and NaNs between them.
    pub(crate) fn tensor<T: Element>(self, device: &Device, rows: &[T]) -> Result<DeviceTensor<T, 3>, Error> {
        let mut all = vec![T::of(f64::NAN); self.stored().iter().product()];
        for row in 0..self.rows() {
            let [columns, stored] = [self.columns(), self.columns() + self.apart];
            all[row * stored..][..columns].copy_from_slice(&rows[row * columns..][..columns]);
        }
        device.tensor(&all, self.stored())
    }

    /// Returns the strides of the rows.
    pub(crate) fn strides(self) -> [usize; 3] {
        let [_, inner, columns] = self.stored();
        [inner * columns, columns, 1]
    }

    pub(crate) fn view<'a, T: Element>(
        self,
        tensor: &'a DeviceTensor<T, 3>,
    ) -> Result<TensorView<'a, T, 3>, Error> {
        tensor.view().with_strides(self.shape, self.strides())
    }

    pub(crate) fn view_mut<'a, T: Element>(
        self,
        tensor: &'a mut DeviceTensor<T, 3>,
    ) -> Result<TensorViewMut<'a, T, 3>, Error> {
        tensor.view_mut().with_strides(self.shape, self.strides())
    }

    /// Returns the rows of a tensor, one after the other. Whatever is between them must be NaN.
    #[track_caller]
    pub(crate) fn rows_of<T: Element>(self, tensor: &DeviceTensor<T, 3>) -> Result<Vec<T>, Error> {
        let all = tensor.to_vec()?;
        let stored = (self.columns() + self.apart).max(1);
        let of_row = |row: &[T]| {
            assert!(row[self.columns()..].iter().all(|x| x.value().is_nan()), "written beyond a row");
            row[..self.columns()].to_vec()
        };
        Ok(all.chunks(stored).flat_map(of_row).collect())
    }
}

/// Checks a number that is rounded to `T` once, and may have a relative error of `relative` before.
#[track_caller]
pub(crate) fn check<T: Element>(found: T, wanted: f64, relative: f64, absolute: f64) {
    // The greatest finite number of `f16` is 65504: beyond it, numbers become infinite.
    let rounded = T::of(wanted).value();
    if wanted.is_nan() || !rounded.is_finite() {
        assert!(
            found.value() == rounded || wanted.is_nan() && found.value().is_nan(),
            "{found:?}, not {wanted}"
        );
        return;
    }
    let bound = wanted.abs() * (2.0 * T::ROUNDING + relative) + T::LEAST + absolute;
    let error = (found.value() - wanted).abs();
    assert!(error <= bound, "{found:?}, not {wanted}: wrong by {error:.1e} of {bound:.1e}");
}

/// Short rows, rows of several warps, odd rows that are and are not apart, a single column.
pub(crate) const LAYOUTS: [Layout; 8] = [
    Layout { shape: [1, 5, 128], apart: 0 },
    Layout { shape: [3, 2, 128], apart: 64 },
    Layout { shape: [1, 3, 1000], apart: 0 },
    Layout { shape: [2, 2, 101], apart: 0 },
    Layout { shape: [1, 3, 100], apart: 4 },
    Layout { shape: [1, 2, 5120], apart: 8 },
    Layout { shape: [1, 17, 1], apart: 3 },
    Layout { shape: [1, 9, 8], apart: 0 },
];

/// Enough rows to pass through shared memory: batches of several copies and of one, with a last one
/// that is shorter, and rows of 512 threads.
pub(crate) const BATCHES: [Layout; 3] = [
    Layout { shape: [3, 12, 1032], apart: 8 },
    Layout { shape: [130, 8, 64], apart: 0 },
    Layout { shape: [1, 9, 8200], apart: 0 },
];

/// Tensors without elements.
pub(crate) const EMPTY: [Layout; 3] = [
    Layout { shape: [1, 0, 128], apart: 0 },
    Layout { shape: [0, 4, 128], apart: 0 },
    Layout { shape: [1, 4, 0], apart: 0 },
];
