//! The code of the page on training.

use tma_runtime::prelude::*;

#[test]
fn a_step_updates_all_parameters() -> anyhow::Result<()> {
    let device = Device::simulator();
    use tma_kernels::optimizer::{
        AdamW, AdamWOptions, Parameter, ParameterLayout, StepOptions, Weights, sum_squares,
    };

    // A matrix with weight decay, and a bias without.
    let matrix = Parameter { weight_decay: 0.1, ..Parameter::new(256 * 64) };
    let layout = ParameterLayout::new(&device, &[matrix, Parameter::new(256)])?;
    let mut parameters = device.zeros::<bf16, 1>([layout.len()])?;
    let mut gradients = device.zeros::<bf16, 1>([layout.len()])?;
    let mut masters = device.zeros::<f32, 1>([layout.len()])?;
    let mut firsts = device.zeros::<f32, 1>([layout.len()])?;
    let mut seconds = device.zeros::<f32, 1>([layout.len()])?;
    let mut sums = device.zeros::<f64, 1>([layout.sums()])?;
    let mut optimizer = AdamW::new(&device, AdamWOptions::default(), 3e-4)?;

    // The matrix, as a GEMM takes it.
    let of_matrix = layout.ranges()[0].clone();
    let weight = parameters.view().slice([of_matrix])?.with_strides([256, 64], [64, 1])?;
    assert_eq!(weight.shape(), [256, 64]);
    gradients.copy_from(&vec![bf16::ONE; layout.len()])?;

    // After the backward pass has written the gradients:
    sum_squares(&device, &layout, &gradients, &mut sums)?;
    let step = StepOptions { squares: Some(sums.view()), max_norm: 1.0, ..Default::default() };
    optimizer.begin_step(&device, step)?;
    let weights = Weights {
        parameters: parameters.view_mut(),
        masters: Some(masters.view_mut()),
        firsts: firsts.view_mut(),
        seconds: seconds.view_mut(),
    };
    optimizer.update(&device, &layout, weights, &gradients)?;
    assert!(masters.to_vec()?[..256 * 64].iter().all(|x| (x + 3e-4).abs() < 1e-8));
    assert!((optimizer.norm()? - (257.0_f32 * 64.0 + 192.0).sqrt()).abs() < 1e-3);
    Ok(())
}

#[test]
fn the_loss_of_logits_and_its_gradient() -> anyhow::Result<()> {
    let device = Device::simulator();
    let mut logits = device.zeros::<bf16, 2>([4, 1000])?;
    let labels = device.tensor(&[7, u32::MAX, 999, 0], [4])?;
    use tma_kernels::model::{CrossEntropyOptions, count_labels, cross_entropy_in_place, mean_loss};

    let mut losses = device.zeros::<f32, 1>([4])?;
    let (mut count, mut mean) = (device.zeros([1])?, device.zeros([1])?);
    count_labels(&device, &labels, u32::MAX, &mut count)?;
    let options = CrossEntropyOptions { count: Some(count.view()), ..Default::default() };
    cross_entropy_in_place(&device, &mut logits, &labels, &mut losses, options)?;
    mean_loss(&device, &losses, &count, &mut mean)?;
    assert!((mean.to_vec()?[0] - 1000_f32.ln()).abs() < 1e-5);
    assert_eq!(logits.to_vec()?[7], bf16::from_f32((0.001 - 1.0) / 3.0));

    let (tokens, depth, vocabulary) = (4, 64, 1000);
    let x = device.zeros::<bf16, 2>([tokens, depth])?;
    let weight = device.zeros::<bf16, 2>([vocabulary, depth])?;
    let mut of_x = device.zeros::<bf16, 2>([tokens, depth])?;
    let mut of_weight = device.zeros::<f32, 2>([vocabulary, depth])?;
    use tma_kernels::gemm::Workspace;
    use tma_kernels::model::{LinearGradients, LinearMemory, LinearOperands, linear_cross_entropy};

    // Two rows at a time, whose logits are in this memory.
    let mut logits = device.zeros::<bf16, 2>([2, vocabulary])?;
    let mut workspace = Workspace::new(&device)?;
    let operands = LinearOperands { x: x.view(), weight: weight.view(), labels: labels.view() };
    let gradients = LinearGradients { x: of_x.view_mut(), weight: of_weight.view_mut() };
    let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspace };
    let options = CrossEntropyOptions { count: Some(count.view()), ..Default::default() };
    linear_cross_entropy(&device, operands, &mut losses, Some(gradients), memory, options)?;
    assert!((losses.to_vec()?[0] - 1000_f32.ln()).abs() < 1e-5);
    Ok(())
}

#[test]
fn the_gradient_of_a_matrix_is_added_up_in_f32() -> anyhow::Result<()> {
    let device = Device::simulator();
    let (tokens, outputs, inputs) = (40, 24, 16);
    let d_y = device.tensor(&vec![bf16::from_f32(0.5); tokens * outputs], [tokens, outputs])?;
    let x = device.tensor(&vec![bf16::from_f32(3.0); tokens * inputs], [tokens, inputs])?;
    let mut d_weight = device.tensor(&vec![0.25_f32; outputs * inputs], [outputs, inputs])?;
    use tma_kernels::gemm::{GemmOptions, gemm};

    // dW += dYᵀ · X, with dY of tokens × outputs, and X of tokens × inputs.
    let options = GemmOptions { transpose_a: true, beta: 1.0, ..GemmOptions::default() };
    gemm(&device, &d_y, &x, &mut d_weight, options)?;
    assert_eq!(d_weight.to_vec()?, vec![60.25; outputs * inputs]);
    Ok(())
}
