//! The layers of a transformer between its GEMMs.

use tma_kernels::cached::{AttentionElement, RotaryLayout};
use tma_kernels::model::{ModelElement, NormOptions, RotaryAngles, rms_norm, rotary, rotary_backward};
use tma_python::{Call, Failure, Tensor, TensorMut, operator};
use tma_runtime::TensorView;
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

operator! {
    /// Returns x / √(mean(x²) + epsilon) · weight over the last dimension.
    ///
    /// `x` has two to four dimensions, of bfloat16, float16 or float32, and `weight` has as many
    /// elements as a row, or is None. With `one_plus_weight`, 1 is added to the weights. It has no
    /// gradient.
    pub struct RmsNorm<'a>("rms_norm") {
        x: Tensor<'a>,
        weight: Option<Tensor<'a>>,
        epsilon: f32 = "1e-06",
        one_plus_weight: bool = "False",
    } -> {
        y: TensorMut<'a> = "empty_like(x)",
    }
}

impl RmsNorm<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { x, weight, epsilon, one_plus_weight, y } = self;
        Norm { x, residual: None, weight, epsilon, one_plus_weight, y }.queue(call)
    }
}

operator! {
    /// Replaces `residual` by residual + x, and returns `rms_norm` of the sum.
    pub struct AddRmsNorm<'a>("add_rms_norm_") {
        residual: TensorMut<'a>,
        x: Tensor<'a>,
        weight: Option<Tensor<'a>>,
        epsilon: f32 = "1e-06",
        one_plus_weight: bool = "False",
    } -> {
        y: TensorMut<'a> = "empty_like(x)",
    }
}

impl AddRmsNorm<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { residual, x, weight, epsilon, one_plus_weight, y } = self;
        Norm { x, residual: Some(residual), weight, epsilon, one_plus_weight, y }.queue(call)
    }
}

/// The arguments and results of both operators.
struct Norm<'a> {
    x: Tensor<'a>,
    residual: Option<TensorMut<'a>>,
    weight: Option<Tensor<'a>>,
    epsilon: f32,
    one_plus_weight: bool,
    y: TensorMut<'a>,
}

impl Norm<'_> {
    fn queue(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.x.element() {
            Scalar::Bf16 => self.by_rank::<bf16>(call),
            Scalar::F16 => self.by_rank::<f16>(call),
            Scalar::F32 => self.by_rank::<f32>(call),
            found => {
                Err(self.x.refuse(format_args!("has elements of {found}; pass bfloat16, float16 or float32")))
            }
        }
    }

    fn by_rank<T: ModelElement>(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.x.rank() {
            2 => self.of::<T, 2>(call),
            3 => self.of::<T, 3>(call),
            4 => self.of::<T, 4>(call),
            rank => Err(self.x.refuse(format_args!("has {rank} dimensions; pass two to four"))),
        }
    }

    fn of<T: ModelElement, const N: usize>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { x, residual, weight, epsilon, one_plus_weight, y } = self;
        let options = NormOptions {
            weight: weight.map(|weight| weight.view::<T, 1>()).transpose()?,
            one_plus_weight,
            epsilon,
            residual: residual.map(TensorMut::view).transpose()?,
            ..NormOptions::default()
        };
        Ok(rms_norm(call.stream(), x.view::<T, N>()?, y.view::<T, N>()?, options)?)
    }
}

operator! {
    /// Returns the rotary embedding of heads: pairs of columns are rotated by the angle of the
    /// token's position.
    ///
    /// `x` is tokens × heads × depth, of bfloat16 or float16. `positions` has the position of each
    /// token, of int32. `cos` and `sin` are positions × half of the rotated columns, of float32.
    /// With the layout `halves`, column i and column i + rotated / 2 are a pair, as in Llama; with
    /// `pairs`, columns 2 · i and 2 · i + 1. Other columns are copied. A position beyond the angles
    /// leaves the token's result undefined. With `inverse`, the angles are negated. `x` has a gradient.
    pub struct RotaryEmbedding<'a>("rotary") {
        x: Tensor<'a>,
        positions: TensorView<'a, u32, 1>,
        cos: TensorView<'a, f32, 2>,
        sin: TensorView<'a, f32, 2>,
        layout: &'a str = "\"halves\"",
        inverse: bool = "False",
    } -> {
        y: TensorMut<'a> = "empty_like(x)",
    }
    gradients {
        x: "rotary(grad_y.contiguous(), positions, cos, sin, layout=layout, inverse=not inverse)",
    }
}

impl RotaryEmbedding<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.x.element() {
            Scalar::Bf16 => self.of::<bf16>(call),
            Scalar::F16 => self.of::<f16>(call),
            _ => Err(self.x.refuse("has neither bfloat16 nor float16; convert it")),
        }
    }

    fn of<T: AttentionElement>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { x, positions, cos, sin, layout, inverse, y } = self;
        let layout = match layout {
            "halves" => RotaryLayout::Halves,
            "pairs" => RotaryLayout::Pairs,
            other => {
                let why = format_args!("is `{other}`; pass `halves` or `pairs`");
                return Err(Failure::argument("layout", why));
            }
        };
        let angles = RotaryAngles { cos, sin, layout };
        let (x, y) = (x.view::<T, 3>()?, y.view::<T, 3>()?);
        match inverse {
            false => Ok(rotary(call.stream(), x, positions, y, angles)?),
            true => Ok(rotary_backward(call.stream(), x, positions, y, angles)?),
        }
    }
}
