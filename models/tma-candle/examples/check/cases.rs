//! Each operation on small tensors, beside what candle computes in F32 on the CPU.

use candle_core::{D, DType, Device, Module, Result, Tensor};
use tma_candle::{
    Activation, Embedding, Gate, KvCache, Linear, RotaryLayout, Rotation, ScaledLinear, ops, rotary_emb,
};

use crate::reference::{self, Random};

/// The result of an operation, and what it should be.
type Pair = (Tensor, Tensor);

/// An operation with its arguments.
pub(crate) struct Case {
    /// The name of the operation.
    pub(crate) name: &'static str,
    /// Computes it, and the reference.
    pub(crate) run: fn(&mut Random) -> Result<Pair>,
    /// Whether its kernel has F32.
    pub(crate) has_f32: bool,
    /// Whether its tensors have gradients.
    pub(crate) has_gradient: bool,
}

/// The operations.
pub(crate) const CASES: &[Case] = &[
    Case { name: "rms_norm", run: rms_norm, has_f32: true, has_gradient: true },
    Case { name: "rms_norm_residual", run: rms_norm_residual, has_f32: true, has_gradient: false },
    Case { name: "layer_norm", run: layer_norm, has_f32: true, has_gradient: true },
    Case {
        name: "layer_norm, of a part of columns",
        run: layer_norm_of_part,
        has_f32: true,
        has_gradient: true,
    },
    Case { name: "softmax_last_dim", run: softmax, has_f32: true, has_gradient: true },
    Case { name: "log_softmax_last_dim", run: log_softmax, has_f32: true, has_gradient: true },
    Case { name: "argmax_last_dim", run: argmax, has_f32: true, has_gradient: false },
    Case { name: "gated", run: gated, has_f32: true, has_gradient: true },
    Case { name: "swiglu", run: swiglu, has_f32: true, has_gradient: true },
    Case { name: "silu", run: |r| activated(r, ops::silu, Tensor::silu), has_f32: true, has_gradient: true },
    Case { name: "gelu", run: |r| activated(r, ops::gelu, Tensor::gelu), has_f32: true, has_gradient: true },
    Case {
        name: "gelu_erf",
        run: |r| activated(r, ops::gelu_erf, Tensor::gelu_erf),
        has_f32: true,
        has_gradient: true,
    },
    Case { name: "embedding", run: embedding, has_f32: true, has_gradient: true },
    Case {
        name: "linear, GELU",
        run: |r| linear(r, Activation::Gelu, Tensor::gelu),
        has_f32: false,
        has_gradient: true,
    },
    Case {
        name: "linear, SiLU",
        run: |r| linear(r, Activation::Silu, Tensor::silu),
        has_f32: false,
        has_gradient: true,
    },
    Case {
        name: "linear, ReLU",
        run: |r| linear(r, Activation::Relu, Tensor::relu),
        has_f32: false,
        has_gradient: true,
    },
    Case { name: "linear, of a part of columns", run: linear_of_part, has_f32: false, has_gradient: true },
    Case {
        name: "rope",
        run: |r| rope(r, rotary_emb::rope, candle_nn::rotary_emb::rope_slow),
        has_f32: false,
        has_gradient: true,
    },
    Case {
        name: "rope_i",
        run: |r| rope(r, rotary_emb::rope_i, candle_nn::rotary_emb::rope_i_slow),
        has_f32: false,
        has_gradient: true,
    },
    Case { name: "rope_thd", run: rope_thd, has_f32: false, has_gradient: true },
    Case { name: "rope, of transposed heads", run: rope_of_transposed, has_f32: false, has_gradient: true },
    Case { name: "rope_thd, of sequences apart", run: rope_of_sequences, has_f32: false, has_gradient: true },
    Case {
        name: "rope_thd, part of angles",
        run: rope_of_part_of_angles,
        has_f32: false,
        has_gradient: true,
    },
    Case { name: "flash_attn", run: flash_attn, has_f32: false, has_gradient: true },
    Case { name: "flash_attn, one query", run: flash_attn_one_query, has_f32: false, has_gradient: true },
    Case { name: "flash_attn, depth 80", run: flash_attn_depth_80, has_f32: false, has_gradient: true },
    Case { name: "flash_attn, depth 136", run: flash_attn_depth_136, has_f32: false, has_gradient: false },
    Case { name: "flash_attn_windowed", run: flash_attn_windowed, has_f32: false, has_gradient: true },
    Case {
        name: "flash_attn_windowed, few queries",
        run: flash_attn_windowed_few_queries,
        has_f32: false,
        has_gradient: true,
    },
    Case { name: "flash_attn_alibi", run: flash_attn_alibi, has_f32: false, has_gradient: false },
    Case {
        name: "flash_attn_varlen",
        run: |r| flash_attn_varlen(r, [None, Some(0)]),
        has_f32: false,
        has_gradient: true,
    },
    Case {
        name: "flash_attn_varlen_windowed",
        run: |r| flash_attn_varlen(r, [Some(3), Some(1)]),
        has_f32: false,
        has_gradient: true,
    },
    Case { name: "cache", run: cache, has_f32: false, has_gradient: false },
    Case { name: "cache in pages", run: paged_cache, has_f32: false, has_gradient: false },
    Case { name: "cache, rotated", run: rotated_cache, has_f32: false, has_gradient: false },
];

fn rms_norm(random: &mut Random) -> Result<Pair> {
    let ([x, w], [of_x, of_w]) = random.pairs([&[2, 3, 96], &[96]])?;
    Ok((ops::rms_norm(&x, &w, 1e-5)?, candle_nn::ops::rms_norm_slow(&of_x, &of_w, 1e-5)?))
}

fn rms_norm_residual(random: &mut Random) -> Result<Pair> {
    let ([x, sum, w], [of_x, of_sum, of_w]) = random.pairs([&[5, 100], &[5, 100], &[100]])?;
    let y = ops::rms_norm_residual(&x, &sum, &w, 1e-5)?;
    // The norm is that of the rounded sum.
    let rounded = (of_x + of_sum)?.to_dtype(x.dtype())?.to_dtype(DType::F32)?;
    let of_y = candle_nn::ops::rms_norm_slow(&rounded, &of_w, 1e-5)?;
    Ok((Tensor::cat(&[y, sum], 0)?, Tensor::cat(&[of_y, rounded], 0)?))
}

fn layer_norm(random: &mut Random) -> Result<Pair> {
    let ([x, w, b], [of_x, of_w, of_b]) = random.pairs([&[7, 64], &[64], &[64]])?;
    Ok((ops::layer_norm(&x, &w, &b, 1e-5)?, candle_nn::ops::layer_norm_slow(&of_x, &of_w, &of_b, 1e-5)?))
}

fn layer_norm_of_part(random: &mut Random) -> Result<Pair> {
    let ([x, w, b], [of_x, of_w, of_b]) = random.pairs([&[3, 2, 128], &[64], &[64]])?;
    let (x, of_x) = (x.narrow(2, 40, 64)?.transpose(0, 1)?, of_x.narrow(2, 40, 64)?.transpose(0, 1)?);
    Ok((ops::layer_norm(&x, &w, &b, 1e-5)?, candle_nn::ops::layer_norm_slow(&of_x, &of_w, &of_b, 1e-5)?))
}

fn softmax(random: &mut Random) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[2, 5, 72]])?;
    Ok((ops::softmax_last_dim(&x)?, candle_nn::ops::softmax(&of_x, D::Minus1)?))
}

fn log_softmax(random: &mut Random) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[2, 5, 33]])?;
    Ok((ops::log_softmax_last_dim(&x)?, candle_nn::ops::log_softmax(&of_x, D::Minus1)?))
}

fn argmax(random: &mut Random) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[2, 4, 1000]])?;
    let found = ops::argmax_last_dim(&x)?.to_dtype(DType::F32)?;
    Ok((found, of_x.argmax(D::Minus1)?.to_dtype(DType::F32)?))
}

fn gated(random: &mut Random) -> Result<Pair> {
    let ([gate, up], [of_gate, of_up]) = random.pairs([&[3, 5, 48], &[3, 5, 48]])?;
    Ok((ops::gated(Gate::Silu, &gate, &up)?, (of_gate.silu()? * of_up)?))
}

fn swiglu(random: &mut Random) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[6, 80]])?;
    Ok((ops::swiglu(&x)?, candle_nn::ops::swiglu(&of_x)?))
}

fn activated(
    random: &mut Random,
    ours: fn(&Tensor) -> Result<Tensor>,
    of_candle: fn(&Tensor) -> Result<Tensor>,
) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[2, 3, 40]])?;
    Ok((ours(&x)?, of_candle(&of_x)?))
}

fn embedding(random: &mut Random) -> Result<Pair> {
    let ([table], [of_table]) = random.pairs([&[20, 24]])?;
    let tokens = Tensor::new(&[[3_u32, 0, 19], [7, 7, 1]], &Device::Cpu)?;
    let found = Embedding::new(table, 24).forward(&tokens.to_device(random.device())?)?;
    Ok((found, candle_nn::Embedding::new(of_table, 24).forward(&tokens)?))
}

fn linear(
    random: &mut Random,
    activation: Activation,
    of_candle: fn(&Tensor) -> Result<Tensor>,
) -> Result<Pair> {
    let ([x, w, b], [of_x, of_w, of_b]) = random.pairs([&[2, 3, 64], &[40, 64], &[40]])?;
    let layer = Linear::new(w, Some(b)).with_activation(activation);
    let of_y = candle_nn::Linear::new(of_w, Some(of_b)).forward(&of_x)?;
    Ok((layer.forward(&x)?, of_candle(&of_y)?))
}

fn linear_of_part(random: &mut Random) -> Result<Pair> {
    let ([x, w], [of_x, of_w]) = random.pairs([&[70, 192], &[36, 64]])?;
    let wanted = candle_nn::Linear::new(of_w, None).forward(&of_x.narrow(1, 64, 64)?)?;
    Ok((Linear::from(candle_nn::Linear::new(w, None)).forward(&x.narrow(1, 64, 64)?)?, wanted))
}

type Rope = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;

fn rope(random: &mut Random, ours: Rope, of_candle: Rope) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[2, 3, 7, 32]])?;
    let (cos, sin) = reference::angles(&[9, 16])?;
    let found = ours(&x, &cos.to_device(x.device())?, &sin.to_device(x.device())?)?;
    Ok((found, of_candle(&of_x, &cos, &sin)?))
}

fn rope_thd(random: &mut Random) -> Result<Pair> {
    rope(random, rotary_emb::rope_thd, reference::rope_thd)
}

fn rope_of_transposed(random: &mut Random) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[2, 5, 3, 32]])?;
    let (cos, sin) = reference::angles(&[5, 16])?;
    let wanted = candle_nn::rotary_emb::rope_slow(&of_x.transpose(1, 2)?.contiguous()?, &cos, &sin)?;
    let [cos, sin] = [cos, sin].map(|angles| angles.to_device(x.device()));
    Ok((rotary_emb::rope(&x.transpose(1, 2)?, &cos?, &sin?)?, wanted))
}

fn rope_of_sequences(random: &mut Random) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[3, 1, 4, 64]])?;
    let (cos, sin) = reference::angles(&[3, 1, 32])?;
    let wanted = reference::rope_thd(&of_x, &cos, &sin)?;
    let [cos, sin] = [cos, sin].map(|angles| angles.to_device(x.device()));
    Ok((rotary_emb::rope_thd(&x, &cos?, &sin?)?, wanted))
}

fn rope_of_part_of_angles(random: &mut Random) -> Result<Pair> {
    let ([x], [of_x]) = random.pairs([&[2, 3, 4, 32]])?;
    let (cos, sin) = reference::angles(&[2, 8, 16])?;
    let part = |angles: &Tensor| angles.narrow(1, 2, 3);
    let wanted = reference::rope_thd(&of_x, &part(&cos)?, &part(&sin)?)?;
    let [cos, sin] = [cos, sin].map(|angles| angles.to_device(x.device()));
    Ok((rotary_emb::rope_thd(&x, &part(&cos?)?, &part(&sin?)?)?, wanted))
}

fn flash_attn(random: &mut Random) -> Result<Pair> {
    let ([q, k, v], of) = random.pairs([&[1, 30, 4, 64], &[1, 40, 2, 64], &[1, 40, 2, 64]])?;
    let found = tma_candle::flash_attn(&q, &k, &v, 0.125, true, false)?;
    Ok((found, reference::attention(&of, 0.125, [None, Some(0)], None)?))
}

fn flash_attn_one_query(random: &mut Random) -> Result<Pair> {
    // Keys and values are a part of a longer cache, whose heads are apart.
    let ([q, k, v], [of_q, of_k, of_v]) =
        random.pairs([&[2, 1, 4, 128], &[2, 64, 2, 128], &[2, 64, 2, 128]])?;
    let part = |tensor: Tensor| tensor.narrow(1, 0, 37);
    let found = tma_candle::flash_attn(&q, &part(k)?, &part(v)?, 0.1, false, true)?;
    Ok((found, reference::attention(&[of_q, part(of_k)?, part(of_v)?], 0.1, [None; 2], None)?))
}

fn flash_attn_depth_80(random: &mut Random) -> Result<Pair> {
    let ([q, k, v], of) = random.pairs([&[1, 20, 2, 80], &[1, 20, 2, 80], &[1, 20, 2, 80]])?;
    let found = tma_candle::flash_attn(&q, &k, &v, 0.1, true, false)?;
    Ok((found, reference::attention(&of, 0.1, [None, Some(0)], None)?))
}

fn flash_attn_depth_136(random: &mut Random) -> Result<Pair> {
    let ([q, k, v], of) = random.pairs([&[1, 6, 2, 136], &[1, 20, 1, 136], &[1, 20, 1, 136]])?;
    let found = tma_candle::flash_attn_windowed(&q, &k, &v, 0.1, Some(9), None, false)?;
    Ok((found, reference::attention(&of, 0.1, [Some(9), None], None)?))
}

fn flash_attn_windowed(random: &mut Random) -> Result<Pair> {
    let ([q, k, v], of) = random.pairs([&[1, 24, 2, 64], &[1, 24, 2, 64], &[1, 24, 2, 64]])?;
    let found = tma_candle::flash_attn_windowed(&q, &k, &v, 0.125, Some(5), Some(2), false)?;
    Ok((found, reference::attention(&of, 0.125, [Some(5), Some(2)], None)?))
}

fn flash_attn_windowed_few_queries(random: &mut Random) -> Result<Pair> {
    let ([q, k, v], of) = random.pairs([&[1, 7, 2, 64], &[1, 24, 2, 64], &[1, 24, 2, 64]])?;
    let found = tma_candle::flash_attn_windowed(&q, &k, &v, 0.125, Some(5), Some(0), false)?;
    Ok((found, reference::attention(&of, 0.125, [Some(5), Some(0)], None)?))
}

fn flash_attn_alibi(random: &mut Random) -> Result<Pair> {
    let ([q, k, v], of) = random.pairs([&[1, 6, 2, 64], &[1, 20, 2, 64], &[1, 20, 2, 64]])?;
    let slopes = [0.5, 0.0625];
    let of_heads = Tensor::new(&slopes, q.device())?.to_dtype(DType::F32)?;
    let found = tma_candle::flash_attn_alibi(&q, &k, &v, &of_heads, 0.125, true, false)?;
    Ok((found, reference::attention(&of, 0.125, [None, Some(0)], Some(&slopes))?))
}

/// Computes attention of two packed sequences with a window.
fn flash_attn_varlen(random: &mut Random, window: [Option<usize>; 2]) -> Result<Pair> {
    let ([q, k, v], [of_q, of_k, of_v]) = random.pairs([&[25, 2, 64], &[31, 2, 64], &[31, 2, 64]])?;
    let (queries, keys) = ([0_u32, 9, 25], [0_u32, 11, 31]);
    let [of_queries, of_keys] = [Tensor::new(&queries, q.device())?, Tensor::new(&keys, q.device())?];
    let [left, right] = window;
    let found = match window {
        [None, Some(0)] => {
            tma_candle::flash_attn_varlen(&q, &k, &v, &of_queries, &of_keys, 16, 20, 0.125, true, false)
        }
        _ => tma_candle::flash_attn_varlen_windowed(
            &q,
            &k,
            &v,
            &of_queries,
            &of_keys,
            16,
            20,
            0.125,
            left,
            right,
            false,
        ),
    }?;
    let mut wanted = vec![];
    for i in 0..2 {
        let part = |tensor: &Tensor, starts: [u32; 3]| {
            tensor.narrow(0, starts[i] as usize, (starts[i + 1] - starts[i]) as usize)?.unsqueeze(0)
        };
        let of = [part(&of_q, queries)?, part(&of_k, keys)?, part(&of_v, keys)?];
        wanted.push(reference::attention(&of, 0.125, window, None)?.squeeze(0)?);
    }
    Ok((found, Tensor::cat(&wanted, 0)?))
}

/// Appends three tokens to sequences of 12 and 0 keys, and attends to them.
fn appended(random: &mut Random, cache: &KvCache, rows: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Pair> {
    let news: [&[usize]; 3] = [&[2, 3, 2, 64], &[2, 3, 1, 64], &[2, 3, 1, 64]];
    let ([q, k, v], [of_q, of_k, of_v]) = random.pairs(news)?;
    let lengths = Tensor::new(&[12_u32, 0], q.device())?;
    let before = [rows(cache.keys())?, rows(cache.values())?];
    let lengths = cache.append(&k, &v, &lengths)?;
    let found = cache.attend(&q, &lengths, 0.125, None, Some(0))?;
    let mut wanted = vec![];
    for (i, length) in [12, 0].into_iter().enumerate() {
        let all = |before: &Tensor, new: &Tensor| {
            Tensor::cat(&[before.narrow(0, i, 1)?.narrow(1, 0, length)?, new.narrow(0, i, 1)?], 1)
        };
        let of = [of_q.narrow(0, i, 1)?, all(&before[0], &of_k)?, all(&before[1], &of_v)?];
        wanted.push(reference::attention(&of, 0.125, [None, Some(0)], None)?);
    }
    let lengths = lengths.to_vec1::<u32>()?;
    if lengths != [15, 3] {
        candle_core::bail!("the lengths are {lengths:?}")
    }
    Ok((found, Tensor::cat(&wanted, 0)?))
}

fn cache(random: &mut Random) -> Result<Pair> {
    let ([keys, values], _) = random.pairs([&[2, 20, 1, 64], &[2, 20, 1, 64]])?;
    let cache = KvCache::contiguous(keys, values);
    appended(random, &cache, reference::on_cpu)
}

fn paged_cache(random: &mut Random) -> Result<Pair> {
    // Keys and values share one tensor, as in many engines.
    let ([pages], _) = random.pairs([&[2, 4, 16, 1, 64]])?;
    let table = Tensor::new(&[[3_u32, 1], [0, 2]], pages.device())?;
    let cache = KvCache::paged(pages.get(0)?, pages.get(1)?, table);
    appended(random, &cache, |pages| {
        let pages = reference::on_cpu(pages)?;
        let sequence = |of: [u32; 2]| pages.index_select(&Tensor::new(&of, &Device::Cpu)?, 0)?.flatten(0, 1);
        Tensor::stack(&[sequence([3, 1])?, sequence([0, 2])?], 0)
    })
}

fn rotated_cache(random: &mut Random) -> Result<Pair> {
    let news: [&[usize]; 3] = [&[1, 1, 2, 64], &[1, 1, 2, 64], &[1, 1, 2, 64]];
    let ([q, k, v], [of_q, of_k, of_v]) = random.pairs(news)?;
    let ([keys, values], _) = random.pairs([&[1, 8, 2, 64], &[1, 8, 2, 64]])?;
    let (cos, sin) = reference::angles(&[8, 32])?;
    let cache = KvCache::contiguous(keys, values);
    let lengths = Tensor::new(&[5_u32], q.device())?;
    let [on_cos, on_sin] = [cos.to_device(q.device())?, sin.to_device(q.device())?];
    let rotation = Rotation { cos: &on_cos, sin: &on_sin, layout: RotaryLayout::Halves };
    let (rotated, lengths) = cache.append_rotated(&q, &k, &v, &lengths, rotation)?;
    if lengths.to_vec1::<u32>()? != [6] {
        candle_core::bail!("the lengths are {lengths}")
    }
    let found = [rotated, cache.keys().narrow(1, 5, 1)?, cache.values().narrow(1, 5, 1)?];
    let turned =
        |x: &Tensor| candle_nn::rotary_emb::rope_thd(x, &cos.narrow(0, 5, 1)?, &sin.narrow(0, 5, 1)?);
    Ok((Tensor::cat(&found, 0)?, Tensor::cat(&[turned(&of_q)?, turned(&of_k)?, of_v], 0)?))
}

/// Returns a layer of weights in F8E4M3, and its product with inputs in BF16.
pub(crate) fn scaled_linear(random: &mut Random) -> Result<Pair> {
    let ([x, w], [of_x, of_w]) = random.pairs([&[3, 160], &[24, 160]])?;
    let weight = of_w.to_dtype(DType::F8E4M3)?;
    let scales = Tensor::new(&[[0.5_f32, 2.0]], &Device::Cpu)?;
    let of_w = weight.to_dtype(DType::F32)?;
    let of_w = Tensor::cat(&[(of_w.narrow(1, 0, 128)? * 0.5)?, (of_w.narrow(1, 128, 32)? * 2.0)?], 1)?;
    let layer = ScaledLinear::new(weight.to_device(w.device())?, Some(scales.to_device(w.device())?));
    Ok((layer.forward(&x)?, candle_nn::Linear::new(of_w, None).forward(&of_x)?))
}
