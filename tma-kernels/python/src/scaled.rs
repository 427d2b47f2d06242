//! GEMMs of `e4m3` with scales of blocks.

use tma_kernels::gemm::{Promoted, Scales, gemm_scaled};
use tma_python::{Call, Failure, TensorMut, operator};
use tma_runtime::TensorView;
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

operator! {
    /// Returns a · bᵀ of matrices of float8_e4m3fn, with scales as in DeepSeek's models.
    ///
    /// `a` is M × K and `b` is N × K. `scale_a` is M × K / 128 and `scale_b` is N / 128 × K / 128,
    /// both rounded up. `out_dtype` is bfloat16, the default, or float32.
    pub struct GemmScaled<'a>("gemm_scaled") {
        a: TensorView<'a, e4m3, 2>,
        b: TensorView<'a, e4m3, 2>,
        scale_a: Option<TensorView<'a, f32, 2>>,
        scale_b: Option<TensorView<'a, f32, 2>>,
        out_dtype: Option<Scalar> = "None",
    } -> {
        c: TensorMut<'a> = "empty([a.shape[0], b.shape[0]], bfloat16 if out_dtype is None else out_dtype)",
    }
}

impl GemmScaled<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.out_dtype {
            None | Some(Scalar::Bf16) => self.into::<bf16>(call),
            Some(Scalar::F32) => self.into::<f32>(call),
            Some(_) => {
                Err(Failure::argument("out_dtype", "is neither bfloat16 nor float32; pass one of these"))
            }
        }
    }

    fn into<C: Promoted>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { a, b, scale_a, scale_b, c, .. } = self;
        let scales = match (scale_a, scale_b) {
            (Some(a), Some(b)) => Some(Scales { a, b }),
            (None, None) => None,
            (Some(_), None) => return Err(Failure::argument("scale_b", "is None; pass both scales or none")),
            (None, Some(_)) => return Err(Failure::argument("scale_a", "is None; pass both scales or none")),
        };
        Ok(gemm_scaled(call.stream(), a, b, scales, c.view::<C, 2>()?)?)
    }
}
