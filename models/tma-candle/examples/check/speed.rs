//! Times of operations beside candle's on a GPU.

use std::time::Instant;

use candle_core::{D, DType, Device, Module, Result, Tensor};
use tma_candle::{Gate, KvCache, Linear, RmsNorm, flash_attn, ops, rotary_emb};

/// An operation, as this package and candle have it.
struct Timed<'a> {
    name: String,
    ours: Box<dyn Fn() -> Result<Tensor> + 'a>,
    of_candle: Box<dyn Fn() -> Result<Tensor> + 'a>,
}

/// Returns the microseconds of a call: the median of rounds, each of many calls in a row.
fn time(device: &Device, call: &dyn Fn() -> Result<Tensor>) -> Result<f64> {
    for _ in 0..5 {
        call()?;
    }
    device.synchronize()?;
    let begin = Instant::now();
    call()?;
    device.synchronize()?;
    // A round takes about 20 ms.
    let calls = (0.02 / begin.elapsed().as_secs_f64()).clamp(3.0, 500.0) as usize;
    let mut times = vec![];
    for _ in 0..7 {
        let begin = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        device.synchronize()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6 / calls as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Prints the times.
pub(crate) fn report(device: &Device) -> Result<()> {
    let noise = |shape: &[usize]| Tensor::randn(0_f32, 0.5, shape, device)?.to_dtype(DType::BF16);
    let weight = noise(&[4096, 4096])?;
    let wide = noise(&[14336, 4096])?;
    let scale = noise(&[4096])?;
    let (ours, of_candle) = (Linear::new(weight.clone(), None), candle_nn::Linear::new(weight, None));
    let constant = Linear::new(wide.clone(), None).with_constant_weight();
    let of_candle_wide = candle_nn::Linear::new(wide, None);
    let (norm, norm_of_candle) = (RmsNorm::new(scale.clone(), 1e-5), candle_nn::RmsNorm::new(scale, 1e-5));
    let angles = Tensor::randn(0_f32, 1.0, (4096, 64), device)?;
    let angles_bf16 = angles.to_dtype(DType::BF16)?;

    println!("\n{:<44}{:>12}{:>12}{:>8}", "bf16, microseconds", "tma-candle", "candle", "ratio");
    for rows in [1, 16, 256, 4096] {
        let x = noise(&[rows, 4096])?;
        let gate = noise(&[rows, 14336])?;
        let up = noise(&[rows, 14336])?;
        let logits = noise(&[rows.min(256), 128_256])?;
        let heads = noise(&[1, rows, 32, 128])?;
        let heads_first = heads.transpose(1, 2)?.contiguous()?;
        let (cos, sin) = (angles.narrow(0, 0, rows)?, angles.narrow(0, 0, rows)?);
        let (cos_bf16, sin_bf16) = (angles_bf16.narrow(0, 0, rows)?, angles_bf16.narrow(0, 0, rows)?);
        let named = |name: &str| format!("{name}, {rows} rows");
        print(
            device,
            vec![
                Timed {
                    name: named("linear 4096 -> 4096"),
                    ours: Box::new(|| ours.forward(&x)),
                    of_candle: Box::new(|| of_candle.forward(&x)),
                },
                Timed {
                    name: named("linear 4096 -> 14336, constant"),
                    ours: Box::new(|| constant.forward(&x)),
                    of_candle: Box::new(|| of_candle_wide.forward(&x)),
                },
                Timed {
                    name: named("rms_norm of 4096"),
                    ours: Box::new(|| norm.forward(&x)),
                    of_candle: Box::new(|| norm_of_candle.forward(&x)),
                },
                Timed {
                    name: named("silu · up of 14336"),
                    ours: Box::new(|| ops::gated(Gate::Silu, &gate, &up)),
                    of_candle: Box::new(|| gate.silu()? * &up),
                },
                Timed {
                    name: format!("softmax of 128256, {} rows", rows.min(256)),
                    ours: Box::new(|| ops::softmax_last_dim(&logits)),
                    of_candle: Box::new(|| candle_nn::ops::softmax_last_dim(&logits)),
                },
                Timed {
                    name: format!("arg-max of 128256, {} rows", rows.min(256)),
                    ours: Box::new(|| ops::argmax_last_dim(&logits)),
                    of_candle: Box::new(|| logits.argmax(D::Minus1)),
                },
                Timed {
                    name: named("rope of 32 heads"),
                    ours: Box::new(|| rotary_emb::rope(&heads_first, &cos, &sin)),
                    of_candle: Box::new(|| candle_nn::rotary_emb::rope(&heads_first, &cos_bf16, &sin_bf16)),
                },
                Timed {
                    name: named("rope_thd of 32 heads"),
                    ours: Box::new(|| rotary_emb::rope_thd(&heads, &cos, &sin)),
                    of_candle: Box::new(|| candle_nn::rotary_emb::rope_thd(&heads, &cos_bf16, &sin_bf16)),
                },
            ],
        )?;
    }
    let (k, v) = (noise(&[1, 4096, 8, 128])?, noise(&[1, 4096, 8, 128])?);
    let cache = KvCache::contiguous(k.clone(), v.clone());
    let lengths = Tensor::new(&[4096_u32], device)?;
    for queries in [1, 4096] {
        let q = noise(&[1, queries, 32, 128])?;
        print(
            device,
            vec![Timed {
                name: format!("causal attention, {queries} queries, 4096 keys"),
                ours: Box::new(|| flash_attn(&q, &k, &v, 0.088, true, false)),
                // Without a mask: candle's part of the time is the products and the softmax.
                of_candle: Box::new(|| {
                    let repeated = |x: &Tensor| {
                        let x = x.unsqueeze(3)?.expand((1, 4096, 8, 4, 128))?;
                        x.reshape((1, 4096, 32, 128))?.transpose(1, 2)?.contiguous()
                    };
                    let scores = (q.transpose(1, 2)?.contiguous()?.matmul(&repeated(&k)?.t()?)? * 0.088)?;
                    candle_nn::ops::softmax_last_dim(&scores)?
                        .matmul(&repeated(&v)?)?
                        .transpose(1, 2)?
                        .contiguous()
                }),
            }],
        )?;
    }
    let q = noise(&[1, 1, 32, 128])?;
    let attend = || cache.attend(&q, &lengths, 0.088, None, Some(0));
    println!("{:<44}{:>12.1}", "cached attention, 1 query, 4096 keys", time(device, &attend)?);
    Ok(())
}

fn print(device: &Device, all: Vec<Timed<'_>>) -> Result<()> {
    for Timed { name, ours, of_candle } in all {
        let ours = time(device, &*ours)?;
        // candle does not have every operation for BF16.
        match time(device, &*of_candle) {
            Ok(of_candle) => println!("{name:<44}{ours:>12.1}{of_candle:>12.1}{:>8.2}", of_candle / ours),
            Err(error) => println!("{name:<44}{ours:>12.1}  {error}"),
        }
    }
    Ok(())
}
