//! GEMMs.

use tma_kernels::gemm::{Activation, GemmOptions, Product, Workspace, gemm};
use tma_python::{Call, Failure, Tensor, TensorMut, operator};
use tma_runtime::TensorView;
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

use crate::workspaces::Workspaces;

operator! {
    /// Returns activation(alpha · a · b + residual + bias).
    ///
    /// `a` is M × K and `b` is K × N, or both have a first dimension that counts the matrices of a
    /// batch. Either may be a transposed view. Elements are bfloat16, float16, float32 (multiplied
    /// as TF32), float8_e4m3fn, float8_e5m2 or int8; those that do not have 16 bits need a `b` that
    /// is a transposed view, such as `weight.t()`, and an `a` that is none. `bias` has N elements,
    /// `residual` has the shape of the result. The activation is `none`, `relu`, `gelu` (by tanh)
    /// or `silu`. `out_dtype` is that of `a` by default, or bfloat16 for elements of 8 bits and
    /// int32 for int8; it may be float32 for floats.
    ///
    /// `a`, `b`, `bias` and `residual` have gradients, unless elements have 8 bits. With an
    /// activation, they take one more GEMM, which computes the argument of the activation again. For
    /// that, PyTorch keeps all four until the backward pass, so none may be written before it.
    pub struct Gemm<'a>("gemm") {
        a: Tensor<'a>,
        b: Tensor<'a>,
        bias: Option<Tensor<'a>> = "None",
        residual: Option<Tensor<'a>> = "None",
        activation: &'a str = "\"none\"",
        alpha: f32 = "1.0",
        out_dtype: Option<Scalar> = "None",
    } -> {
        c: TensorMut<'a> = "empty(a.shape[:-1] + b.shape[-1:], \
            out_dtype if out_dtype is not None else int32 if a.dtype == int8 else \
            bfloat16 if a.dtype == float8_e4m3fn or a.dtype == float8_e5m2 else a.dtype)",
    }
    gradients {
        (a, b, bias, residual): "_gradients.gemm(needed, grad_c, (a, b, bias, residual, activation, alpha, out_dtype))",
    }
}

impl Gemm<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { a, b, bias, residual, activation, alpha, c, .. } = self;
        Problem { a, b, c, bias, residual, activation, alpha, beta: 0.0 }.queue(call)
    }
}

operator! {
    /// Replaces c by activation(alpha · a · b + beta · c + residual + bias).
    ///
    /// The arguments are those of `gemm`. With a `beta` of 0 the elements of `c` are not read. There
    /// are no gradients.
    pub struct GemmInPlace<'a>("gemm_") {
        c: TensorMut<'a>,
        a: Tensor<'a>,
        b: Tensor<'a>,
        bias: Option<Tensor<'a>> = "None",
        residual: Option<Tensor<'a>> = "None",
        activation: &'a str = "\"none\"",
        alpha: f32 = "1.0",
        beta: f32 = "0.0",
    }
}

impl GemmInPlace<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { c, a, b, bias, residual, activation, alpha, beta } = self;
        Problem { a, b, c, bias, residual, activation, alpha, beta }.queue(call)
    }
}

/// The arguments of both operators.
struct Problem<'a> {
    a: Tensor<'a>,
    b: Tensor<'a>,
    c: TensorMut<'a>,
    bias: Option<Tensor<'a>>,
    residual: Option<Tensor<'a>>,
    activation: &'a str,
    alpha: f32,
    beta: f32,
}

impl Problem<'_> {
    fn queue(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.a.rank() {
            2 => self.by_types::<2>(call),
            3 => self.by_types::<3>(call),
            rank => Err(self.a.refuse(format_args!("has {rank} dimensions; pass a matrix, or a batch of 3"))),
        }
    }

    fn by_types<const N: usize>(self, call: &Call<'_>) -> Result<(), Failure> {
        match (self.a.element(), self.c.element()) {
            (Scalar::Bf16, Scalar::Bf16) => self.of::<bf16, bf16, N>(call),
            (Scalar::Bf16, Scalar::F32) => self.of::<bf16, f32, N>(call),
            (Scalar::F16, Scalar::F16) => self.of::<f16, f16, N>(call),
            (Scalar::F16, Scalar::F32) => self.of::<f16, f32, N>(call),
            (Scalar::F32, Scalar::F32) => self.of::<tf32, f32, N>(call),
            (Scalar::E4m3, Scalar::Bf16) => self.of::<e4m3, bf16, N>(call),
            (Scalar::E4m3, Scalar::F32) => self.of::<e4m3, f32, N>(call),
            (Scalar::E5m2, Scalar::Bf16) => self.of::<e5m2, bf16, N>(call),
            (Scalar::E5m2, Scalar::F32) => self.of::<e5m2, f32, N>(call),
            (Scalar::I8, Scalar::I32) => self.of::<i8, i32, N>(call),
            (found, result) => Err(self.a.refuse(format_args!(
                "has elements of {found}, whose products are not stored as {result}; pass bfloat16 or float16 \
                 with a result of the same or float32, float32, float8 with a result of bfloat16 or float32, \
                 or int8 with int32"
            ))),
        }
    }

    fn of<AB: Product<C>, C: tma_runtime::Scalar, const N: usize>(
        self,
        call: &Call<'_>,
    ) -> Result<(), Failure> {
        let Self { a, b, c, bias, residual, activation, alpha, beta } = self;
        let (a, transpose_a) = stored(a.view::<AB, N>()?)?;
        let (b, transpose_b) = stored(b.view::<AB, N>()?)?;
        let c = c.view::<C, N>()?;
        let bias = bias.map(|bias| bias.view::<C, 1>()).transpose()?;
        let residual = residual.map(|residual| residual.view::<C, N>()).transpose()?;
        let activation = named(activation)?;
        let options = GemmOptions {
            transpose_a,
            transpose_b,
            alpha,
            beta,
            residual,
            bias,
            activation,
            ..GemmOptions::default()
        };
        with_workspace(call, |workspace| {
            Ok(gemm(call.stream(), a, b, c, GemmOptions { workspace, ..options })?)
        })
    }
}

/// Returns the matrices as they are stored, and whether they are passed transposed.
fn stored<T: tma_runtime::Scalar, const N: usize>(
    matrices: TensorView<'_, T, N>,
) -> Result<(TensorView<'_, T, N>, bool), Failure> {
    let strides = matrices.strides();
    if strides[N - 1] == 1 || strides[N - 2] != 1 {
        return Ok((matrices, false));
    }
    let mut order = std::array::from_fn(|i| i);
    order.swap(N - 1, N - 2);
    Ok((matrices.permute(order)?, true))
}

fn named(activation: &str) -> Result<Activation, Failure> {
    match activation {
        "none" => Ok(Activation::None),
        "relu" => Ok(Activation::Relu),
        "gelu" => Ok(Activation::Gelu),
        "silu" => Ok(Activation::Silu),
        other => {
            let why = format_args!("is `{other}`; pass `none`, `relu`, `gelu` or `silu`");
            Err(Failure::argument("activation", why))
        }
    }
}

/// Passes a workspace. A captured GEMM has none, and shares no sums.
fn with_workspace<R>(
    call: &Call<'_>,
    queue: impl FnOnce(Option<&mut Workspace>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    static WORKSPACES: Workspaces<Workspace> = Workspaces::new();
    if call.is_capturing()? {
        return queue(None);
    }
    WORKSPACES.with(call, || Ok(Workspace::empty(call.device())?), |workspace| queue(Some(workspace)))
}
