//! Attention.

use tma_kernels::{AttentionElement, AttentionOptions, attention};
use tma_python::{Call, Failure, Tensor, TensorMut, operator};
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

operator! {
    /// Returns softmax(q · kᵀ · scale) · v, without writing the scores to memory.
    ///
    /// `q` is batch × heads × queries × depth, `k` and `v` are batch × heads × keys × depth, of
    /// bfloat16 or float16, with a depth of at most 256, a multiple of 8. There may be fewer heads of
    /// keys and values, each for as many adjacent heads of queries. With `causal`, query i sees the
    /// keys up to i + keys - queries. The default of `scale` is 1 / √depth. It has no gradient.
    pub struct Attention<'a>("attention") {
        q: Tensor<'a>,
        k: Tensor<'a>,
        v: Tensor<'a>,
        causal: bool = "False",
        scale: Option<f64> = "None",
    } -> {
        o: TensorMut<'a> = "empty_like(q)",
    }
}

impl Attention<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.q.element() {
            Scalar::Bf16 => self.of::<bf16>(call),
            Scalar::F16 => self.of::<f16>(call),
            _ => Err(self.q.refuse("has neither bfloat16 nor float16; convert `q`, `k` and `v`")),
        }
    }

    fn of<T: AttentionElement>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { q, k, v, causal, scale, o } = self;
        let (q, k, v) = (q.view::<T, 4>()?, k.view::<T, 4>()?, v.view::<T, 4>()?);
        let scale = scale.map(|scale| scale as f32);
        let options = AttentionOptions { causal, scale, ..AttentionOptions::default() };
        Ok(attention(call.stream(), q, k, v, o.view::<T, 4>()?, options)?)
    }
}
