//! Quantised rows, bit for bit.

use tma_kernels::gemm::{Scales, gemm_scaled};
use tma_kernels::model::{ModelError, ScaleBlocks, ScalesMut, quantize};
use tma_runtime::prelude::*;

use crate::rows::{BATCHES, EMPTY, Element, LAYOUTS, Layout, numbers};

const BLOCKS: [ScaleBlocks; 2] = [ScaleBlocks::Row, ScaleBlocks::Columns128];

/// Quantises rows, and compares them with plain Rust. `turned` scales have contiguous columns.
#[track_caller]
fn compared<T: Element>(
    layout: Layout,
    blocks: ScaleBlocks,
    turned: bool,
    x: &[T],
) -> Result<(), ModelError> {
    let (rows, columns) = (layout.rows(), layout.columns());
    let device = Device::simulator();
    let of_x = layout.tensor(&device, x)?;
    let [_, stride, _] = layout.strides();
    let view = of_x.view().with_strides([rows, columns], [stride, 1])?;
    let length = if blocks == ScaleBlocks::Row { columns.max(1) } else { 128 };
    let count = if blocks == ScaleBlocks::Row { 1 } else { columns.div_ceil(length) };
    let mut scales =
        device.filled_bytes::<f32, 2>(if turned { [count, rows] } else { [rows, count] }, 0xff)?;
    let of_scales = scales.view_mut().permute(if turned { [1, 0] } else { [0, 1] })?;
    let mut out = device.zeros::<e4m3, 2>([rows, columns])?;
    quantize(&device, view, &mut out, ScalesMut { blocks, scales: of_scales })?;
    let (found, scales) = (out.to_vec()?, scales.to_vec()?);
    for row in 0..rows {
        for (block, x) in x[row * columns..][..columns].chunks(length).enumerate() {
            let greatest = x.iter().map(|x| x.value().abs() as f32).fold(0.0, f32::max);
            let scale = (greatest / 448.0).max(f32::MIN_POSITIVE);
            let of_block = scales[if turned { block * rows + row } else { row * count + block }];
            assert_eq!(of_block.to_bits(), scale.to_bits(), "row {row}, block {block}");
            for (i, x) in x.iter().enumerate() {
                let wanted = e4m3::from_f32(x.value() as f32 * (1.0 / scale));
                let found = found[row * columns + block * length + i];
                let is_same = found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan();
                assert!(is_same, "row {row}, block {block}, column {i}: {found:?}, not {wanted:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn every_layout_and_type() -> Result<(), ModelError> {
    for blocks in BLOCKS {
        for layout in LAYOUTS.into_iter().chain(EMPTY) {
            let elements = layout.rows() * layout.columns();
            compared(layout, blocks, true, &numbers::<bf16>(1, elements, 300.0))?;
            compared(layout, blocks, false, &numbers::<f16>(2, elements, 3.0))?;
            compared(layout, blocks, false, &numbers::<f32>(3, elements, 1e-3))?;
        }
    }
    Ok(())
}

#[test]
fn batches() -> Result<(), ModelError> {
    for blocks in BLOCKS {
        let [apart, heads, long] = BATCHES.map(|layout| (layout, layout.rows() * layout.columns()));
        compared(apart.0, blocks, true, &numbers::<f32>(1, apart.1, 1e-3))?;
        compared(heads.0, blocks, false, &numbers::<f16>(2, heads.1, 3.0))?;
        compared(long.0, blocks, true, &numbers::<bf16>(3, long.1, 300.0))?;
    }
    Ok(())
}

#[test]
fn rows_beyond_the_registers() -> Result<(), ModelError> {
    let layout = Layout { shape: [1, 2, 16384 + 200], apart: 0 };
    for blocks in BLOCKS {
        compared(layout, blocks, false, &numbers::<bf16>(4, 2 * layout.columns(), 5.0))?;
    }
    Ok(())
}

#[test]
fn special_values() -> Result<(), ModelError> {
    let row = |special: f32| [&[special][..], &[1.0; 255]].concat();
    let rows = [f32::NAN, f32::INFINITY, f32::MAX, 1e-45].map(row);
    let small = vec![1e-42_f32; 256];
    let x = [rows.concat(), small, vec![0.0; 256], vec![-0.0; 256], vec![f32::NAN; 256]].concat();
    for blocks in BLOCKS {
        compared(Layout { shape: [1, 8, 256], apart: 0 }, blocks, false, &x)?;
    }
    Ok(())
}

/// Scales of rows and of blocks are those that a scaled GEMM takes.
#[test]
fn operand_of_a_scaled_gemm() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::simulator();
    let (m, n, k) = (64, 16, 256);
    let x = numbers::<bf16>(5, m * k, 4.0);
    let of_x = device.tensor(&x, [m, k])?;
    let (mut a, mut of_a) = (device.zeros::<e4m3, 2>([m, k])?, device.zeros([m, 2])?);
    let blocks = ScaleBlocks::Columns128;
    quantize(&device, &of_x, &mut a, ScalesMut { blocks, scales: of_a.view_mut() })?;
    let b = device.tensor(&vec![e4m3::from_f32(1.0); n * k], [n, k])?;
    let of_b = device.tensor(&[1.0, 1.0], [1, 2])?;
    let mut c = device.zeros::<f32, 2>([m, n])?;
    gemm_scaled(&device, &a, &b, Some(Scales { a: of_a.view(), b: of_b.view() }), &mut c)?;
    for (row, found) in x.chunks(k).zip(c.to_vec()?.chunks(n)) {
        let wanted: f64 = row.iter().map(|x| x.to_f64()).sum();
        // Each element has an error of half a unit in the last of 4 bits.
        let bound: f64 = row.iter().map(|x| x.to_f64().abs() / 16.0 + 4.0 / 448.0).sum();
        assert!((f64::from(found[0]) - wanted).abs() <= bound, "{} is not {wanted}", found[0]);
    }
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.zeros::<bf16, 2>([4, 256])?;
    let code = |shape: [usize; 2], blocks: ScaleBlocks, of_scales: [usize; 2]| {
        let (mut out, mut scales) = (device.zeros::<e4m3, 2>(shape)?, device.zeros(of_scales)?);
        let scales = ScalesMut { blocks, scales: scales.view_mut() };
        Ok::<_, Error>(quantize(&device, &x, &mut out, scales).map_or_else(|error| error.code(), |()| "none"))
    };
    assert_eq!(code([4, 256], ScaleBlocks::Row, [4, 1])?, "none");
    assert_eq!(code([4, 256], ScaleBlocks::Columns128, [4, 2])?, "none");
    assert_eq!(code([4, 256], ScaleBlocks::Columns128, [4, 1])?, "TMA0575");
    assert_eq!(code([4, 128], ScaleBlocks::Row, [4, 1])?, "TMA0575");
    Ok(())
}
