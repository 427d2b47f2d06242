//! Attention, and its gradients.

use tma_kernels::attention::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, attention_backward,
};
use tma_kernels::{AttentionElement, AttentionOptions, attention};
use tma_python::{Call, Failure, Tensor, TensorMut, operator};
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

/// Declares an operator whose tensors are followed by the options of scores, and by `more` options.
macro_rules! operator_of_scores {
    (
        $(#[doc = $line:literal])*
        pub struct $Name:ident<$a:lifetime>($name:literal) { $($tensors:tt)* }
        $(more { $($more:tt)* })?
        -> { $($results:tt)* }
        $($gradients:tt)*
    ) => {
        operator! {
            $(#[doc = $line])*
            pub struct $Name<$a>($name) {
                $($tensors)*
                causal: bool = "False",
                scale: Option<f64> = "None",
                window: Option<usize> = "None",
                window_after: Option<usize> = "None",
                soft_cap: Option<f64> = "None",
                $($($more)*)?
            } -> { $($results)* }
            $($gradients)*
        }

        impl $Name<'_> {
            fn scores(&self) -> Scores {
                Scores {
                    causal: self.causal,
                    scale: self.scale.map(|scale| scale as f32),
                    window: self.window,
                    window_after: self.window_after,
                    soft_cap: self.soft_cap.map(|cap| cap as f32),
                }
            }
        }
    };
}

pub(crate) use operator_of_scores;

operator_of_scores! {
    /// Returns softmax(q · kᵀ · scale) · v, without writing the scores to memory.
    ///
    /// `q` is batch × heads × queries × depth, `k` and `v` are batch × heads × keys × depth, of
    /// bfloat16 or float16, with a depth of at most 256, a multiple of 8. Values may have fewer
    /// columns than keys. There may be fewer heads of keys and values, each for as many adjacent
    /// heads of queries. With `causal`, query i sees the
    /// keys up to i + keys - queries, its position. `window` and `window_after` are the numbers of
    /// keys before its position and after it that a query sees. The default of `scale` is 1 / √depth.
    /// With `soft_cap`, a score x becomes soft_cap · tanh(x / soft_cap). It has no gradient;
    /// `attention_with_lse` has one.
    pub struct Attention<'a>("attention") {
        q: Tensor<'a>,
        k: Tensor<'a>,
        v: Tensor<'a>,
    } -> {
        o: TensorMut<'a> = "empty(q.shape[:-1] + v.shape[3:], q.dtype)",
    }
}

impl Attention<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let scores = self.scores();
        let Self { q, k, v, o, .. } = self;
        Forward { q, k, v, scores, o, lse: None }.queue(call)
    }
}

operator_of_scores! {
    /// Returns the same as `attention`, and the natural logarithm of each row's sum of exponentials.
    ///
    /// `q`, `k` and `v` have gradients if the depth is at most 128. They are the same in every run if
    /// `torch.use_deterministic_algorithms(True)` was called. The logarithms, batch × heads × queries
    /// of float32, have none.
    pub struct AttentionWithLse<'a>("attention_with_lse") {
        q: Tensor<'a>,
        k: Tensor<'a>,
        v: Tensor<'a>,
    } -> {
        o: TensorMut<'a> = "empty_like(q)",
        lse: TensorViewMut<'a, f32, 3> = "empty(q.shape[:-1], float32)",
    }
    gradients {
        (q, k, v): "attention_backward(q, k, v, o, lse, grad_o.contiguous(), causal=causal, scale=scale, \
            window=window, window_after=window_after, soft_cap=soft_cap, \
            deterministic=torch.are_deterministic_algorithms_enabled())[:3]",
    }
}

impl AttentionWithLse<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let scores = self.scores();
        let Self { q, k, v, o, lse, .. } = self;
        Forward { q, k, v, scores, o, lse: Some(lse) }.queue(call)
    }
}

operator_of_scores! {
    /// Returns the gradients of `q`, `k` and `v`, and the memory in which they were computed.
    ///
    /// `o` and `lse` are the results of `attention_with_lse` with the same options, and `grad_o` is
    /// the gradient of `o`. The depth is at most 128. With `deterministic`, the gradient of `q` has
    /// the same bits in every run.
    pub struct AttentionBackward<'a>("attention_backward") {
        q: Tensor<'a>,
        k: Tensor<'a>,
        v: Tensor<'a>,
        o: Tensor<'a>,
        lse: TensorView<'a, f32, 3>,
        grad_o: Tensor<'a>,
    }
    more {
        deterministic: bool = "False",
    }
    -> {
        grad_q: TensorMut<'a> = "empty_like(q)",
        grad_k: TensorMut<'a> = "empty_like(k)",
        grad_v: TensorMut<'a> = "empty_like(v)",
        // As many bytes as `AttentionWorkspace::bytes` says, for blocks of 64 queries.
        workspace: TensorViewMut<'a, i8, 1> =
            "empty([q.shape[0] * q.shape[1] * ((q.shape[2] + 63) // 64) * 33796], int8)",
    }
}

impl AttentionBackward<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.q.element() {
            Scalar::Bf16 => self.of::<bf16>(call),
            Scalar::F16 => self.of::<f16>(call),
            _ => Err(refused(&self.q)),
        }
    }

    fn of<T: AttentionElement>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Scores { causal, scale, window, window_after, soft_cap } = self.scores();
        let Self { q, k, v, o, lse, grad_o, deterministic, grad_q, grad_k, grad_v, workspace, .. } = self;
        let forward = AttentionForward {
            q: q.view::<T, 4>()?,
            k: k.view()?,
            v: v.view()?,
            o: o.view()?,
            d_o: grad_o.view()?,
            lse,
        };
        let gradients =
            AttentionGradients { dq: grad_q.view::<T, 4>()?, dk: grad_k.view()?, dv: grad_v.view()? };
        // SAFETY: the memory of a result of this call, which nothing else uses until the call has run.
        let mut workspace =
            unsafe { AttentionWorkspace::from_raw(call.device(), workspace.as_ptr(), workspace.shape()[0])? };
        let options = AttentionBackwardOptions {
            causal,
            scale,
            window,
            window_after,
            soft_cap,
            deterministic,
            workspace: Some(&mut workspace),
            ..AttentionBackwardOptions::default()
        };
        Ok(attention_backward(call.stream(), forward, gradients, options)?)
    }
}

/// The options of scores.
pub(crate) struct Scores {
    pub(crate) causal: bool,
    pub(crate) scale: Option<f32>,
    pub(crate) window: Option<usize>,
    pub(crate) window_after: Option<usize>,
    pub(crate) soft_cap: Option<f32>,
}

/// The arguments and results of a forward pass.
struct Forward<'a> {
    q: Tensor<'a>,
    k: Tensor<'a>,
    v: Tensor<'a>,
    scores: Scores,
    o: TensorMut<'a>,
    lse: Option<TensorViewMut<'a, f32, 3>>,
}

impl Forward<'_> {
    fn queue(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.q.element() {
            Scalar::Bf16 => self.of::<bf16>(call),
            Scalar::F16 => self.of::<f16>(call),
            _ => Err(refused(&self.q)),
        }
    }

    fn of<T: AttentionElement>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { q, k, v, scores, o, lse } = self;
        let Scores { causal, scale, window, window_after, soft_cap } = scores;
        let (q, k, v) = (q.view::<T, 4>()?, k.view::<T, 4>()?, v.view::<T, 4>()?);
        let options = AttentionOptions {
            causal,
            window,
            window_after,
            scale,
            soft_cap,
            lse,
            ..AttentionOptions::default()
        };
        Ok(attention(call.stream(), q, k, v, o.view::<T, 4>()?, options)?)
    }
}

pub(crate) fn refused(q: &Tensor<'_>) -> Failure {
    q.refuse("has neither bfloat16 nor float16; convert `q`, `k` and `v`")
}
