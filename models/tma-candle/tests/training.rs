//! Steps of candle's optimisers on layers of both, from the same variables.

use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_nn::loss::mse;
use candle_nn::{AdamW, Optimizer, ParamsAdamW, SGD};
use tma_candle::{Activation, Linear, RmsNorm};

/// Returns the loss of two layers with a norm before them, by the kernels. The variables are F32.
fn loss_of_kernels(variables: &[Var], x: &Tensor, wanted: &Tensor) -> Result<Tensor> {
    let rounded = |i: usize| variables[i].to_dtype(DType::BF16);
    let norm = RmsNorm::new(rounded(0)?, 1e-5);
    let hidden = Linear::new(rounded(1)?, Some(rounded(2)?)).with_activation(Activation::Silu);
    let output = Linear::new(rounded(3)?, None);
    let y = output.forward(&hidden.forward(&norm.forward(&x.to_dtype(DType::BF16)?)?)?)?;
    mse(&y.to_dtype(DType::F32)?, wanted)
}

/// Returns the same by candle's operations in F32.
fn loss_of_candle(variables: &[Var], x: &Tensor, wanted: &Tensor) -> Result<Tensor> {
    let [gain, of_hidden, bias, of_output] = [0, 1, 2, 3].map(|i: usize| variables[i].as_tensor());
    let x = candle_nn::ops::rms_norm_slow(x, gain, 1e-5)?;
    let hidden = candle_nn::Linear::new(of_hidden.clone(), Some(bias.clone())).forward(&x)?.silu()?;
    mse(&candle_nn::Linear::new(of_output.clone(), None).forward(&hidden)?, wanted)
}

/// Returns numbers from -1 to 1, which have a BF16.
fn numbers(shape: &[usize], first: usize) -> Result<Tensor> {
    let numbers: Vec<f32> =
        (first..first + shape.iter().product::<usize>()).map(|i| (i * 37 % 65) as f32 / 32.0 - 1.0).collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu)
}

/// Returns new variables, always the same.
fn variables() -> Result<Vec<Var>> {
    let shapes: [&[usize]; 4] = [&[32], &[24, 32], &[24], &[8, 24]];
    let made =
        shapes.iter().enumerate().map(|(i, shape)| Var::from_tensor(&(numbers(shape, 11 * i)? * 0.5)?));
    made.collect()
}

type Loss = fn(&[Var], &Tensor, &Tensor) -> Result<Tensor>;

/// Returns the losses before two steps and after them, and the variables after them.
fn train(loss: Loss, optimizer: impl Fn(Vec<Var>) -> Result<Step>) -> Result<(Vec<f32>, Vec<Var>)> {
    let (x, wanted) = (numbers(&[2, 5, 32], 3)?, numbers(&[2, 5, 8], 5)?);
    let variables = variables()?;
    let mut step = optimizer(variables.clone())?;
    let mut losses = vec![];
    for _ in 0..2 {
        let loss = loss(&variables, &x, &wanted)?;
        step(&loss)?;
        losses.push(loss.to_scalar()?);
    }
    losses.push(loss(&variables, &x, &wanted)?.to_scalar()?);
    Ok((losses, variables))
}

/// A step of an optimiser from a loss.
type Step = Box<dyn FnMut(&Tensor) -> Result<()>>;

/// Trains both, and checks that losses fall, and that each element changes as candle's does: the
/// mean distance of the changes relative to their mean size.
fn check(optimizer: impl Fn(Vec<Var>) -> Result<Step>, bound: f32) -> Result<()> {
    let (losses, ours) = train(loss_of_kernels, &optimizer)?;
    let (of_losses, references) = train(loss_of_candle, &optimizer)?;
    println!("{losses:?} {of_losses:?}");
    assert!(losses.is_sorted_by(|before, after| after < before), "{losses:?}");
    for (loss, of_loss) in losses.iter().zip(of_losses) {
        assert!((loss - of_loss).abs() < 0.01 * of_loss, "{loss} instead of {of_loss}");
    }
    for (i, (before, (ours, reference))) in variables()?.iter().zip(ours.iter().zip(&references)).enumerate()
    {
        let mean = |x: Tensor| x.abs()?.mean_all()?.to_scalar::<f32>();
        let (apart, change) = (
            mean((ours.as_tensor() - reference.as_tensor())?)?,
            mean((before.as_tensor() - reference.as_tensor())?)?,
        );
        println!("variable {i}: {}", apart / change);
        assert!(change > 0.0 && apart <= bound * change, "variable {i}: {apart} of {change}");
    }
    Ok(())
}

/// A change is a gradient, which is a sum of products of numbers with a few roundings of 2^-9 each.
#[test]
fn steps_of_sgd_are_those_of_candle() -> Result<()> {
    let optimizer = |variables: Vec<Var>| {
        let mut sgd = SGD::new(variables, 0.05)?;
        Ok(Box::new(move |loss: &Tensor| sgd.backward_step(loss)) as Step)
    };
    check(optimizer, 0.01)
}

/// AdamW divides gradients by their sizes, so that small ones, with the same roundings, change
/// variables as much as great ones.
#[test]
fn steps_of_adamw_are_those_of_candle() -> Result<()> {
    let optimizer = |variables: Vec<Var>| {
        let mut adamw = AdamW::new(variables, ParamsAdamW { lr: 0.01, ..ParamsAdamW::default() })?;
        Ok(Box::new(move |loss: &Tensor| adamw.backward_step(loss)) as Step)
    };
    check(optimizer, 0.01)
}

/// The example of the book.
#[test]
fn a_variable_in_f32_trains_a_layer_in_bf16() -> Result<()> {
    let device = Device::Cpu;
    let (x, wanted) =
        (Tensor::ones((4, 64), DType::BF16, &device)?, Tensor::ones((4, 16), DType::F32, &device)?);
    let mut losses = vec![];
    let weight = Var::zeros((16, 64), DType::F32, &device)?;
    let mut optimizer = SGD::new(vec![weight.clone()], 0.125)?;
    for _ in 0..2 {
        let layer = Linear::new(weight.to_dtype(DType::BF16)?, None);
        let loss = mse(&layer.forward(&x)?.to_dtype(DType::F32)?, &wanted)?;
        optimizer.backward_step(&loss)?;
        losses.push(loss.to_scalar::<f32>()?);
    }
    // All slopes are 4 rows · 2 · (0 - 1) / 64 elements, so that weights become 1/64.
    assert_eq!(losses, [1.0, 0.0]);
    Ok(())
}
