//! Refused arguments, and each message.

use candle_core::{DType, Device, Error, Module, Result, Tensor, Var, bail};
use tma_candle::{
    Gate, KvCache, Linear, ScaledLinear, flash_attn, flash_attn_alibi, flash_attn_varlen_windowed, ops,
    rotary_emb,
};

/// Returns the message of an error.
fn message<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => "no error".to_owned(),
        // candle adds a backtrace if the environment asks for it.
        Err(Error::WithBacktrace { inner, .. }) => inner.to_string(),
        Err(error) => error.to_string(),
    }
}

/// Returns a message without the address of a tensor, which depends on what ran before.
fn without_address(message: &str) -> String {
    match message.split_once("0x") {
        Some((before, after)) => {
            before.to_owned() + "0x.." + after.trim_start_matches(|digit: char| digit.is_ascii_hexdigit())
        }
        None => message.to_owned(),
    }
}

fn ones(shape: &[usize], dtype: DType) -> Result<Tensor> {
    Tensor::ones(shape, dtype, &Device::Cpu)
}

#[test]
fn each_message_names_the_operation_the_tensor_and_the_remedy() -> Result<()> {
    let x = ones(&[4, 64], DType::BF16)?;
    let weight = ones(&[64], DType::BF16)?;
    let heads = ones(&[1, 4, 2, 64], DType::F16)?;
    let lengths = Tensor::new(&[0_u32, 4], &Device::Cpu)?;
    let linear = |weight: &Tensor| Linear::new(weight.clone(), None);
    let packed = heads.squeeze(0)?;
    let cache = KvCache::contiguous(heads.zeros_like()?, heads.zeros_like()?);
    let columns = ones(&[64, 4], DType::BF16)?.t()?;
    let angles = ones(&[3, 32], DType::F32)?;
    let messages = [
        message(ops::rms_norm(&x, &ones(&[32], DType::BF16)?, 1e-5)),
        message(ops::rms_norm(&x, &ones(&[64], DType::F32)?, 1e-5)),
        message(ops::rms_norm(&x, &weight, -1.0)),
        message(ops::rms_norm(&columns, &weight, 1e-5)),
        message(ops::rms_norm_residual(&x, &x, &weight, 1e-5)),
        message(ops::softmax_last_dim(&ones(&[4], DType::F64)?)),
        message(ops::softmax_last_dim(&ones(&[2, 3, 4, 8], DType::BF16)?.transpose(0, 1)?)),
        message(ops::swiglu(&ones(&[4, 3], DType::BF16)?)),
        message(ops::gated(Gate::Silu, &x, &ones(&[4, 32], DType::BF16)?)),
        message(linear(&ones(&[8, 32], DType::BF16)?).forward(&x)),
        message(linear(&ones(&[8, 64], DType::F32)?).forward(&ones(&[4, 64], DType::F32)?)),
        message(linear(&ones(&[8, 60], DType::BF16)?).forward(&ones(&[4, 60], DType::BF16)?)),
        message(
            linear(&ones(&[8, 64], DType::BF16)?).forward(&ones(&[4, 65], DType::BF16)?.narrow(1, 1, 64)?),
        ),
        message(ScaledLinear::new(ones(&[8, 64], DType::BF16)?, None).forward(&x)),
        message(flash_attn(&heads, &heads, &ones(&[1, 4, 1, 64], DType::F16)?, 1.0, true, false)),
        message(flash_attn(&ones(&[1, 4, 3, 64], DType::F16)?, &heads, &heads, 1.0, true, false)),
        message(flash_attn(&ones(&[1, 1, 1, 300], DType::F16)?, &heads, &heads, 1.0, true, false)),
        message(flash_attn(&heads, &heads, &heads, 0.0, true, false)),
        message(flash_attn(&packed, &packed, &packed, 1.0, true, false)),
        message(flash_attn_varlen_windowed(
            &packed,
            &packed,
            &packed,
            &lengths,
            &Tensor::new(&[0_u32, 2, 4], &Device::Cpu)?,
            4,
            4,
            1.0,
            Some(2),
            None,
            false,
        )),
        message(cache.append(&heads, &cache.keys().narrow(1, 0, 1)?, &Tensor::new(&[0_u32], &Device::Cpu)?)),
        message(cache.append(&heads, &heads, &Tensor::new(&[0_i64], &Device::Cpu)?)),
        message(rotary_emb::rope(&packed, &angles, &angles)),
        message(rotary_emb::rope_thd(&heads, &angles, &angles)),
        message(ops::argmax_last_dim(&ones(&[4, 0], DType::F32)?)),
    ];
    let found = messages.map(|message| without_address(&message)).join("\n\n") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &found)?;
    }
    assert_eq!(found, std::fs::read_to_string(path)?);
    Ok(())
}

/// The backward pass reports operations without gradients, and tensors that have none.
#[test]
fn operations_without_gradients_name_the_reason() -> Result<()> {
    let variable = |shape: &[usize]| Var::from_tensor(&ones(shape, DType::BF16)?);
    let backward = |y: Result<Tensor>| message(y.and_then(|y| y.sum_all()?.backward()));
    let x = variable(&[1, 4, 2, 64])?;
    let layer = ScaledLinear::new(ones(&[16, 64], DType::BF16)?.to_dtype(DType::F8E4M3)?, None);
    assert_eq!(
        backward(layer.forward(&x)),
        "scaled-linear: there is no gradient: its weights have 8 bits; use `Linear`"
    );
    let slopes = ones(&[2], DType::F32)?;
    assert_eq!(
        backward(flash_attn_alibi(&x, &x, &x, &slopes, 1.0, true, false)),
        "flash-attn: there is no gradient: it has slopes"
    );
    let deep = variable(&[1, 4, 2, 136])?;
    assert_eq!(
        backward(flash_attn(&deep, &deep, &deep, 1.0, true, false)),
        "flash-attn: there is no gradient: heads have more than 128 elements"
    );
    let cache = KvCache::contiguous(x.detach(), x.detach());
    assert_eq!(
        backward(cache.attend(&x, &Tensor::new(&[4_u32], &Device::Cpu)?, 1.0, None, Some(0))),
        "cached-attention: there is no gradient: it is for caches; use `flash_attn`"
    );
    let (cos, sin) = (Var::ones((4, 32), DType::F32, &Device::Cpu)?, ones(&[4, 32], DType::F32)?);
    assert_eq!(
        backward(rotary_emb::rope_thd(&x, &cos, &sin)),
        "rope-thd: `cos` has no gradient; call `detach` on it"
    );
    Ok(())
}

#[test]
fn tensors_without_elements_have_results() -> Result<()> {
    let none = ones(&[0, 64], DType::BF16)?;
    assert_eq!(Linear::new(ones(&[8, 64], DType::BF16)?, None).forward(&none)?.dims(), [0, 8]);
    assert_eq!(ops::softmax_last_dim(&none)?.dims(), [0, 64]);
    let heads = ones(&[2, 0, 4, 64], DType::F16)?;
    assert_eq!(flash_attn(&heads, &heads, &heads, 1.0, true, false)?.dims(), [2, 0, 4, 64]);
    let empty = ones(&[1, 64], DType::BF16)?.narrow(0, 1, 0)?;
    assert_eq!(ops::silu(&empty)?.dims(), [0, 64]);
    Ok(())
}

/// Weights that no row was multiplied by, and keys that no query saw, have gradients of 0.
#[test]
fn tensors_without_elements_have_gradients() -> Result<()> {
    let variable = |shape: &[usize]| Var::from_tensor(&ones(shape, DType::BF16)?);
    let (x, weight, bias, gain) =
        (variable(&[0, 64])?, variable(&[16, 64])?, variable(&[16])?, variable(&[64])?);
    let layer = Linear::new(weight.as_tensor().clone(), Some(bias.as_tensor().clone()));
    let y = layer.forward(&ops::rms_norm(&x, &gain, 1e-5)?)?;
    let gradients = y.sum_all()?.backward()?;
    let (q, keys) = (variable(&[1, 0, 2, 64])?, variable(&[1, 4, 2, 64])?);
    let of_attention = flash_attn(&q, &keys, &keys, 1.0, false, false)?.sum_all()?.backward()?;
    for (gradients, variable) in
        [(&gradients, &weight), (&gradients, &bias), (&gradients, &gain), (&of_attention, &keys)]
    {
        let Some(gradient) = gradients.get(variable) else { bail!("{:?} has no gradient", variable.dims()) };
        assert_eq!(gradient.dims(), variable.dims());
        assert_eq!(gradient.abs()?.sum_all()?.to_dtype(DType::F32)?.to_scalar::<f32>()?, 0.0);
    }
    assert_eq!(gradients.get(&x).map(|gradient| gradient.dims().to_vec()), Some(vec![0, 64]));
    Ok(())
}

#[test]
fn operations_in_place_refuse_tensors_with_gradients() -> Result<()> {
    let weight = ones(&[64], DType::F32)?;
    let x = Var::ones((4, 64), DType::F32, &Device::Cpu)?;
    let residual = ones(&[4, 64], DType::F32)?;
    let refused = message(ops::rms_norm_residual(&x, &residual, &weight, 1e-5));
    assert_eq!(refused, "rms-norm: `x` has a gradient, and the operation has none; call `detach`");
    ops::rms_norm_residual(&x.detach(), &residual, &weight, 1e-5)?;
    Ok(())
}
