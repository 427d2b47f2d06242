// A small Llama in the style of candle_nn. The module that includes it has the operations.

/// Attention with grouped heads.
struct Attention {
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    cache: KvCache,
    config: Config,
}

impl Attention {
    fn new(config: Config, vb: VarBuilder<'_>) -> Result<Self> {
        let Config { hidden, heads, key_heads, depth, positions, .. } = config;
        Ok(Self {
            q: linear_no_bias(hidden, heads * depth, vb.pp("q_proj"))?,
            k: linear_no_bias(hidden, key_heads * depth, vb.pp("k_proj"))?,
            v: linear_no_bias(hidden, key_heads * depth, vb.pp("v_proj"))?,
            o: linear_no_bias(heads * depth, hidden, vb.pp("o_proj"))?,
            cache: KvCache::new(1, positions),
            config,
        })
    }

    fn forward(&mut self, x: &Tensor, angles: &[Tensor; 2]) -> Result<Tensor> {
        let (batch, tokens, _) = x.dims3()?;
        let Config { heads, key_heads, depth, .. } = self.config;
        let q = self.q.forward(x)?.reshape((batch, tokens, heads, depth))?;
        let k = self.k.forward(x)?.reshape((batch, tokens, key_heads, depth))?;
        let v = self.v.forward(x)?.reshape((batch, tokens, key_heads, depth))?;
        let [cos, sin] = angles;
        let (q, k) = (rope_thd(&q, cos, sin)?, rope_thd(&k, cos, sin)?);
        let (k, v) = self.cache.append(&k, &v)?;
        let y = attention(&q, &k, &v)?;
        self.o.forward(&y.reshape((batch, tokens, heads * depth))?)
    }
}

/// A layer: attention and SwiGLU, each after a norm.
struct Layer {
    attention_norm: RmsNorm,
    attention: Attention,
    mlp_norm: RmsNorm,
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl Layer {
    fn new(config: Config, vb: VarBuilder<'_>) -> Result<Self> {
        let Config { hidden, intermediate, .. } = config;
        let mlp = vb.pp("mlp");
        Ok(Self {
            attention_norm: rms_norm(hidden, 1e-5, vb.pp("input_layernorm"))?,
            attention: Attention::new(config, vb.pp("self_attn"))?,
            mlp_norm: rms_norm(hidden, 1e-5, vb.pp("post_attention_layernorm"))?,
            gate: linear_no_bias(hidden, intermediate, mlp.pp("gate_proj"))?,
            up: linear_no_bias(hidden, intermediate, mlp.pp("up_proj"))?,
            down: linear_no_bias(intermediate, hidden, mlp.pp("down_proj"))?,
        })
    }

    fn forward(&mut self, x: &Tensor, angles: &[Tensor; 2]) -> Result<Tensor> {
        let x = (x + self.attention.forward(&self.attention_norm.forward(x)?, angles)?)?;
        let y = self.mlp_norm.forward(&x)?;
        x + self.down.forward(&gated(&self.gate.forward(&y)?, &self.up.forward(&y)?)?)?
    }
}

/// A Llama with a cache of one batch of sequences.
pub(crate) struct Llama {
    tokens: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    head: Linear,
    /// Cosines and sines of all positions.
    angles: [Tensor; 2],
    /// The number of tokens in the cache.
    position: usize,
}

impl Llama {
    pub(crate) fn new(config: Config, vb: VarBuilder<'_>) -> Result<Self> {
        let Config { vocabulary, hidden, depth, positions, .. } = config;
        let model = vb.pp("model");
        let layer = |i: usize| Layer::new(config, model.pp(format!("layers.{i}")));
        let frequency = |i: usize| 10_000_f32.powf(-((2 * i) as f32) / depth as f32);
        let frequencies: Vec<f32> = (0..depth / 2).map(frequency).collect();
        let frequencies = Tensor::new(frequencies, vb.device())?.reshape((1, ()))?;
        let numbers = Tensor::arange(0, positions as u32, vb.device())?.to_dtype(DType::F32)?;
        let angles = numbers.reshape((positions, 1))?.matmul(&frequencies)?;
        Ok(Self {
            tokens: embedding(vocabulary, hidden, model.pp("embed_tokens"))?,
            layers: (0..config.layers).map(layer).collect::<Result<_>>()?,
            norm: rms_norm(hidden, 1e-5, model.pp("norm"))?,
            head: linear_no_bias(hidden, vocabulary, vb.pp("lm_head"))?,
            angles: [angles.cos()?.to_dtype(vb.dtype())?, angles.sin()?.to_dtype(vb.dtype())?],
            position: 0,
        })
    }

    /// Returns the logits of the last token of each sequence, batch × vocabulary, after new tokens,
    /// batch × tokens.
    pub(crate) fn forward(&mut self, tokens: &Tensor) -> Result<Tensor> {
        let (_, count) = tokens.dims2()?;
        let [cos, sin] = &self.angles;
        let angles = [cos.narrow(0, self.position, count)?, sin.narrow(0, self.position, count)?];
        let mut x = self.tokens.forward(tokens)?;
        for layer in &mut self.layers {
            x = layer.forward(&x, &angles)?;
        }
        self.position += count;
        let last = x.narrow(1, count - 1, 1)?.squeeze(1)?;
        self.head.forward(&self.norm.forward(&last)?)
    }
}
