//! Cross-entropy of a linear layer, in pieces.

use tma_kernels::gemm::{GemmError, Product, Workspace};
use tma_kernels::model::{
    CrossEntropyOptions, LinearGradients, LinearMemory, LinearOperands, ModelElement, count_labels,
    linear_cross_entropy,
};
use tma_runtime::prelude::*;

use crate::cross_entropy::{Constants, IGNORED, PLAIN, wanted};
use crate::rows::{Element, check, numbers};

#[test]
fn a_linear_layer_in_pieces() -> Result<(), GemmError> {
    // A difference of a gradient's last place, and the sum's rounding after each of three pieces.
    in_pieces::<bf16, bf16>(2f64.powi(-7))?;
    in_pieces::<bf16, f32>(2f64.powi(-8))?;
    in_pieces::<f16, f32>(2f64.powi(-10))
}

/// Pieces of rows, of which the last one has fewer, and a vocabulary that is no multiple of 8.
/// `bound` is the error of the matrix's gradient, relative to the sum of its terms' sizes.
fn in_pieces<T, G>(bound: f64) -> Result<(), GemmError>
where
    T: Element + ModelElement + Product<T> + Product<G>,
    G: Element,
{
    const TOKENS: usize = 70;
    const DEPTH: usize = 64;
    const COLUMNS: usize = 301;
    let device = Device::simulator();
    let x = numbers::<T>(80, TOKENS * DEPTH, 1.0);
    let weight = numbers::<T>(81, COLUMNS * DEPTH, 0.5);
    let label = |row: usize| if row % 10 == 3 { IGNORED } else { (row * 7919 % COLUMNS) as u32 };
    let labels: Vec<u32> = (0..TOKENS).map(label).collect();
    let before = numbers::<G>(82, COLUMNS * DEPTH, 0.01);
    let of_x = device.tensor(&x, [TOKENS, DEPTH])?;
    let of_weight = device.tensor(&weight, [COLUMNS, DEPTH])?;
    let of_labels = device.tensor(&labels, [TOKENS])?;
    let mut count = device.zeros([1])?;
    count_labels(&device, &of_labels, IGNORED, &mut count)?;
    let (mut losses, mut log_sums) = (device.zeros([TOKENS])?, device.zeros::<f32, 1>([TOKENS])?);
    let mut dx = device.filled_bytes::<T, 2>([TOKENS, DEPTH], 0xff)?;
    let mut dw = device.tensor(&before, [COLUMNS, DEPTH])?;
    let mut logits = device.filled_bytes::<T, 2>([32, 304], 0xff)?;
    let mut workspace = Workspace::new(&device)?;
    let operands = LinearOperands { x: of_x.view(), weight: of_weight.view(), labels: of_labels.view() };
    let options = CrossEntropyOptions {
        label_smoothing: 0.1,
        log_sums: Some(log_sums.view_mut()),
        count: Some(count.view()),
        ..CrossEntropyOptions::default()
    };
    let gradients = LinearGradients { x: dx.view_mut(), weight: dw.view_mut() };
    let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspace };
    linear_cross_entropy(&device, operands, &mut losses, Some(gradients), memory, options)?;

    let constants = Constants { smoothing: 0.1, ..PLAIN };
    let valid = labels.iter().filter(|label| **label != IGNORED).count() as f64;
    let mut wanted_dw: Vec<f64> = before.iter().map(|x| x.value()).collect();
    let mut sizes: Vec<f64> = wanted_dw.iter().map(|x| x.abs()).collect();
    let (found, found_sums, found_dx) = (losses.to_vec()?, log_sums.to_vec()?, dx.to_vec()?);
    for (row, label) in labels.iter().enumerate() {
        let of_row = &x[row * DEPTH..][..DEPTH];
        let dot = |column: usize| -> f64 {
            let columns = &weight[column * DEPTH..][..DEPTH];
            of_row.iter().zip(columns).map(|(x, w)| x.value() * w.value()).sum()
        };
        // Rounded as the logits in memory are.
        let logits: Vec<f64> = (0..COLUMNS).map(|column| T::of(dot(column)).value()).collect();
        let wanted = wanted(&logits, *label, constants, valid);
        check(found[row], wanted.loss, 1e-3, 1e-3);
        check(found_sums[row], wanted.log_sum, 1e-3, 1e-3);
        let gradient: Vec<f64> = wanted.gradient.iter().map(|g| T::of(*g).value()).collect();
        for i in 0..DEPTH {
            let terms: Vec<f64> = (0..COLUMNS).map(|c| gradient[c] * weight[c * DEPTH + i].value()).collect();
            let size: f64 = terms.iter().map(|term| term.abs()).sum();
            check(found_dx[row * DEPTH + i], terms.iter().sum(), 0.0, size * 2f64.powi(-8));
        }
        for c in 0..COLUMNS {
            for i in 0..DEPTH {
                let term = gradient[c] * of_row[i].value();
                wanted_dw[c * DEPTH + i] += term;
                sizes[c * DEPTH + i] += term.abs();
            }
        }
    }
    for ((found, wanted), size) in dw.to_vec()?.into_iter().zip(wanted_dw).zip(sizes) {
        check(found, wanted, 0.0, size * bound);
    }
    Ok(())
}

/// With it only losses are computed.
const NO_GRADIENTS: Option<LinearGradients<'static, bf16>> = None;

#[test]
fn errors_of_a_linear_layer() -> Result<(), GemmError> {
    let device = Device::simulator();
    let (x, weight) = (device.zeros::<bf16, 2>([4, 64])?, device.zeros::<bf16, 2>([24, 64])?);
    let labels = device.zeros::<u32, 1>([4])?;
    let mut workspace = Workspace::empty(&device)?;
    let mut losses = device.zeros::<f32, 1>([4])?;
    let operands = LinearOperands { x: x.view(), weight: weight.view(), labels: labels.view() };
    for shape in [[0, 24], [4, 16]] {
        let mut logits = device.zeros::<bf16, 2>(shape)?;
        let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspace };
        let options = CrossEntropyOptions::default();
        let result = linear_cross_entropy(&device, operands, &mut losses, NO_GRADIENTS, memory, options);
        assert_eq!(result.expect_err("no memory").code(), "TMA0575");
    }
    let mut logits = device.zeros::<bf16, 2>([3, 24])?;
    let narrow = device.zeros::<bf16, 2>([24, 56])?;
    let operands_of = |weight, labels| LinearOperands { weight, labels, ..operands };
    let three = 0..3;
    let few = labels.view().slice([three])?;
    for operands in [operands_of(narrow.view(), labels.view()), operands_of(weight.view(), few)] {
        let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspace };
        let options = CrossEntropyOptions::default();
        let result = linear_cross_entropy(&device, operands, &mut losses, NO_GRADIENTS, memory, options);
        assert_eq!(result.expect_err("another shape").code(), "TMA0575");
    }
    // Options are checked before anything is launched.
    let mut untouched = device.filled_bytes::<bf16, 2>([3, 24], 0xff)?;
    let memory = LinearMemory { logits: untouched.view_mut(), workspace: &mut workspace };
    let options = CrossEntropyOptions { label_smoothing: 1.5, ..CrossEntropyOptions::default() };
    let result = linear_cross_entropy(&device, operands, &mut losses, NO_GRADIENTS, memory, options);
    assert_eq!(result.expect_err("more than 1").code(), "TMA0578");
    assert!(untouched.to_vec()?.iter().all(|logit| logit.is_nan()));
    // Losses alone.
    let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspace };
    linear_cross_entropy(
        &device,
        operands,
        &mut losses,
        NO_GRADIENTS,
        memory,
        CrossEntropyOptions::default(),
    )?;
    for loss in losses.to_vec()? {
        check(loss, 24f64.ln(), 1e-6, 0.0);
    }
    Ok(())
}
