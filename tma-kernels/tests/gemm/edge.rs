//! Rows of C that do not begin or end at multiples of 16 bytes.

use tma_kernels::gemm::Division::{Even, Parts, Whole};
use tma_kernels::gemm::{Activation, GemmError, GemmOptions, Indices, Product, Tile, gemm, gemm_picked};
use tma_runtime::prelude::*;

use super::case::{by, device};
use super::exact::{Element, integers};

/// The elements of C before the launch, and those after its rows afterwards.
const BEFORE: f32 = 3.0;

/// A C of M × N whose rows are `line` elements apart and begin `skipped` elements into a tensor.
struct Case {
    mnk: [usize; 3],
    line: usize,
    skipped: usize,
    batches: usize,
}

impl Case {
    /// Multiplies with all options or none, and compares the whole tensor of which C is a part.
    fn check<AB: Element + Product<C>, C: Element>(
        &self,
        (tile, division): (Tile, tma_kernels::gemm::Division),
        is_more: bool,
    ) -> Result<(), GemmError> {
        let &Self { mnk: [m, n, k], line, skipped, batches } = self;
        let device = device();
        let a = integers::<AB>(1, batches * m * k);
        let b = integers::<AB>(2, batches * n * k);
        let residual = integers::<C>(3, batches * m * n);
        let bias = integers::<C>(4, n);
        let of_a = device.tensor(&a, [batches, m, k])?;
        let of_b = device.tensor(&b, [batches, n, k])?;
        let of_residual = device.tensor(&residual, [batches, m, n])?;
        let of_bias = device.tensor(&bias, [n])?;
        let mut all = device.tensor(&vec![C::of(BEFORE); batches * m * line], [batches, m, line])?;
        let mut options =
            GemmOptions { transpose_b: true, choice: Some(by(tile, division)), ..GemmOptions::default() };
        if is_more {
            options.alpha = 2.0;
            options.beta = -1.0;
            options.residual = Some(of_residual.view());
            options.bias = Some(of_bias.view());
            options.activation = Activation::Relu;
        }
        let c = all.view_mut().slice([0..batches, 0..m, skipped..skipped + n])?;
        gemm(&device, &of_a, &of_b, c, options)?;
        for (i, found) in all.to_vec()?.iter().enumerate() {
            let (row, column) = (i / line, (i % line).wrapping_sub(skipped));
            let wanted = if column < n {
                let (a, b) = (&a[row * k..][..k], &b[(row / m * n + column) * k..][..k]);
                let sum: f32 = a.iter().zip(b).map(|(a, b)| a.value() * b.value()).sum();
                let more = || {
                    let added = residual[row * n + column].value() + bias[column].value();
                    (2.0 * sum - BEFORE + added).max(0.0)
                };
                if is_more { more() } else { sum }
            } else {
                BEFORE
            };
            assert!(
                *found == C::of(wanted),
                "{tile:?} {:?}: row {row}, {column}: {found:?}, not {wanted}",
                self.mnk
            );
        }
        Ok(())
    }
}

/// The copy engine stores whole units of 16 bytes, and threads the rest of each row; or threads
/// store the whole row.
#[test]
fn rows_begin_and_end_anywhere() -> Result<(), GemmError> {
    for (mnk, line, skipped) in [
        ([72, 470, 72], 512, 0),
        ([200, 65, 136], 65, 0),
        ([8, 1, 16], 1, 0),
        ([66, 129, 24], 136, 0),
        ([70, 64, 24], 136, 3),
        ([1, 7, 8], 7, 0),
    ] {
        let case = Case { mnk, line, skipped, batches: 1 };
        for is_more in [false, true] {
            case.check::<bf16, bf16>((Tile::T64x64, Whole), is_more)?;
            case.check::<f16, f32>((Tile::T64x64, Whole), is_more)?;
        }
        case.check::<bf16, bf16>((Tile::T128x128Cluster2x1, Whole), true)?;
        case.check::<f16, f16>((Tile::T128x128Cluster2x1, Whole), false)?;
    }
    Ok(())
}

/// A cluster's second tile may load C into the buffer from which threads stored the first tile's
/// edge.
#[test]
fn clusters_continue_after_edge_tiles() -> Result<(), GemmError> {
    let case = Case { mnk: [64 * 80, 70, 8], line: 80, skipped: 0, batches: 1 };
    case.check::<bf16, bf16>((Tile::T64x64, Whole), true)
}

#[test]
fn rows_of_any_width_in_batches_and_with_shared_sums() -> Result<(), GemmError> {
    let case = Case { mnk: [72, 75, 272], line: 75, skipped: 0, batches: 3 };
    case.check::<bf16, bf16>((Tile::T64x64, Parts(2)), true)?;
    case.check::<bf16, f32>((Tile::T128x128Cluster2x1, Even), true)?;
    case.check::<e4m3, bf16>((Tile::T64x64, Whole), false)?;
    case.check::<tf32, f32>((Tile::T128x128Cluster2x1, Whole), true)
}

/// The library picks the kernel, also with indices.
#[test]
fn a_kernel_is_chosen_for_rows_of_any_width() -> Result<(), GemmError> {
    let device = device();
    let [m, n, k] = [66, 50_257 % 128, 40]; // the last columns of a vocabulary
    let (a, b) = (integers::<bf16>(1, m * k), integers::<bf16>(2, n * k));
    let (of_a, of_b) = (device.tensor(&a, [1, m, k])?, device.tensor(&b, [1, n, k])?);
    let options = || GemmOptions { transpose_b: true, ..GemmOptions::default() };
    let (mut c, mut picked) = (device.zeros::<f32, 3>([1, m, n])?, device.zeros::<f32, 3>([1, m, n])?);
    gemm(&device, &of_a, &of_b, &mut c, options())?;
    gemm_picked(&device, &of_a, &of_b, &mut picked, Indices::default(), options())?;
    let c = c.to_vec()?;
    for (i, found) in c.iter().enumerate() {
        let (a, b) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
        assert_eq!(*found, a.iter().zip(b).map(|(a, b)| a.to_f32() * b.to_f32()).sum::<f32>());
    }
    assert_eq!(picked.to_vec()?, c);

    // Indices, but no matrix of C: the launch rejects its map.
    let mut none = device.zeros::<f32, 3>([0, m, n])?;
    let at = device.tensor(&[0u32], [1])?;
    let indices = Indices { c: Some(at.view()), ..Indices::default() };
    assert!(gemm_picked(&device, &of_a, &of_b, &mut none, indices, options()).is_err());
    Ok(())
}

/// With a transposed A, only tiles of 256 columns exist, which threads do not store.
#[test]
fn a_transposed_a_needs_rows_of_whole_units() -> Result<(), GemmError> {
    let device = device();
    let (a, b) = (device.zeros::<bf16, 2>([32, 64])?, device.zeros::<bf16, 2>([15, 32])?);
    let mut c = device.zeros::<bf16, 2>([64, 15])?;
    let options = GemmOptions { transpose_a: true, transpose_b: true, ..GemmOptions::default() };
    let error = gemm(&device, &a, &b, &mut c, options).expect_err("rows of 30 bytes");
    assert_eq!(error.code(), "TMA0547");
    assert!(error.to_string().contains("have 30 bytes, 30 bytes apart"), "{error}");
    Ok(())
}

/// Integers, and sums in `f16`, have no kernel with options. Only these kernels store by threads.
#[test]
fn unsupported_edges_are_rejected() -> Result<(), GemmError> {
    let device = device();
    let (a, b) = (device.zeros::<i8, 2>([64, 32])?, device.zeros::<i8, 2>([15, 32])?);
    let mut c = device.zeros::<i32, 2>([64, 15])?;
    let options = || GemmOptions { transpose_b: true, ..GemmOptions::default() };
    let error = gemm(&device, &a, &b, &mut c, options()).expect_err("rows of 60 bytes");
    assert_eq!(error.code(), "TMA0503");
    // A report that follows the sources shows the message once.
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert!(source.is_none_or(|source| source != error.to_string()), "{error}");

    let (a, b) = (device.zeros::<i8, 3>([2, 64, 32])?, device.zeros::<i8, 3>([2, 16, 32])?);
    let mut c = device.zeros::<i32, 3>([2, 64, 16])?;
    let options = GemmOptions { transpose_b: true, ..GemmOptions::default() };
    let error = gemm_picked(&device, &a, &b, &mut c, Indices::default(), options).expect_err("integers");
    assert_eq!(error.code(), "TMA0547");
    let text = error.to_string();
    assert!(text.contains("one by one with `gemm`") && !text.contains("remove"), "{text}");
    Ok(())
}
