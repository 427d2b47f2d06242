//! Matrices of `e4m3` with a scale for each 128 × 128 elements, on the host.

use rayon::prelude::*;
use tma_runtime::prelude::{bf16, e4m3};

/// The rows, and the columns, of the elements that share a scale.
pub(crate) const BLOCK: usize = 128;

/// The greatest number of `e4m3`.
const GREATEST: f32 = 448.0;

/// The least scale, 2^-126, whose reciprocal is finite.
const LEAST: f32 = f32::MIN_POSITIVE;

/// A matrix, in row-major order.
#[derive(Debug, Default)]
pub(crate) struct Quantized {
    pub(crate) elements: Vec<e4m3>,
    /// Rows / 128 × columns / 128, both rounded up.
    pub(crate) scales: Vec<f32>,
}

impl Quantized {
    /// Quantises a matrix: the element of each block with the greatest absolute value becomes ±448.
    pub(crate) fn of(matrix: &[bf16], columns: usize) -> Self {
        let band = BLOCK * columns;
        let of_band = columns.div_ceil(BLOCK);
        let mut elements = vec![e4m3::ZERO; matrix.len()];
        let mut scales = vec![0.0; matrix.len().div_ceil(band.max(1)) * of_band];
        let to = elements.par_chunks_mut(band.max(1)).zip(scales.par_chunks_mut(of_band.max(1)));
        matrix.par_chunks(band.max(1)).zip(to).for_each(|(from, (elements, scales))| {
            for (block, scale) in scales.iter_mut().enumerate() {
                let (first, end) = (block * BLOCK, (block * BLOCK + BLOCK).min(columns));
                let rows = || (0..from.len() / columns).map(|row| row * columns + first..row * columns + end);
                let all = rows().flat_map(|row| &from[row]);
                let greatest = all.fold(0.0_f32, |most, x| most.max(x.to_f32().abs()));
                *scale = (greatest / GREATEST).max(LEAST);
                for row in rows() {
                    for (to, x) in elements[row.clone()].iter_mut().zip(&from[row]) {
                        *to = e4m3::from_f32(x.to_f32() / *scale);
                    }
                }
            }
        });
        Self { elements, scales }
    }

    /// Appends the matrix to `to`, rounded to `bf16`.
    pub(crate) fn append_to(&self, columns: usize, to: &mut Vec<bf16>) {
        let of_band = columns.div_ceil(BLOCK);
        to.extend(self.elements.iter().enumerate().map(|(i, x)| {
            let (row, column) = (i / columns, i % columns);
            bf16::from_f32(x.to_f32() * self.scales[row / BLOCK * of_band + column / BLOCK])
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix whose blocks have different greatest elements.
    fn matrix(rows: usize, columns: usize) -> Vec<bf16> {
        let element = |i: usize| {
            let (row, column) = (i / columns, i % columns);
            let of_block = (1 + row / BLOCK + 10 * (column / BLOCK)) as f32;
            bf16::from_f32(((i * 7919) % 513) as f32 / 256.0 * of_block - of_block)
        };
        (0..rows * columns).map(element).collect()
    }

    #[test]
    fn each_block_has_its_scale() {
        let (rows, columns) = (200, 272);
        let from = matrix(rows, columns);
        let quantized = Quantized::of(&from, columns);
        let greatest = [1.0, 11.0, 21.0, 2.0, 12.0, 22.0];
        assert_eq!(quantized.scales.len(), greatest.len());
        for (scale, greatest) in quantized.scales.iter().zip(greatest) {
            assert!((scale * 448.0 / greatest - 1.0).abs() < 0.02, "{scale} for {greatest}");
        }
        let mut back = vec![];
        quantized.append_to(columns, &mut back);
        assert_eq!(back.len(), from.len());
        for (i, (found, wanted)) in back.iter().zip(&from).enumerate() {
            let (row, column) = (i / columns, i % columns);
            let scale = quantized.scales[row / BLOCK * 3 + column / BLOCK];
            // 3 bits after the point, or steps of 2^-9 below 2^-6; and the roundings to bf16 and
            // f32.
            let bound = (wanted.to_f32().abs() / 16.0).max(scale / 1024.0) * 1.1;
            let error = (found.to_f32() - wanted.to_f32()).abs();
            assert!(error <= bound, "{found} for {wanted} with a scale of {scale}");
        }
    }

    #[test]
    fn zeros_and_nothing_stay() {
        assert!(Quantized::of(&[bf16::ZERO; 256], 128).elements.iter().all(|x| x.to_f32() == 0.0));
        let nothing = Quantized::of(&[], 0);
        assert_eq!((nothing.elements.len(), nothing.scales.len()), (0, 0));
    }
}
