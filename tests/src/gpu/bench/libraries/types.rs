//! The types of a GEMM as NVIDIA's libraries name them.
//!
//! Source: `library_types.h` of the CUDA toolkit for `cudaDataType`, and `cublas_api.h` for
//! `cublasComputeType_t`.

use std::ffi::{c_int, c_void};

/// `CUDA_R_32F`, as the following constants are those of their types.
pub const F32: c_int = 0;
/// See [`F32`].
pub const F16: c_int = 2;
/// See [`F32`].
pub const S8: c_int = 3;
/// See [`F32`].
pub const S32: c_int = 10;
/// See [`F32`].
pub const BF16: c_int = 14;
/// See [`F32`].
pub const E4M3: c_int = 28;

/// The types of C = A · Bᵀ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// `cudaDataType` of A and B.
    pub operand: c_int,
    /// `cudaDataType` of C.
    pub result: c_int,
    /// How C is computed.
    pub compute: Compute,
}

/// How a GEMM is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Sums are `f32`.
    F32,
    /// Sums are `f32`, but 8-bit floats may be summed with fewer bits.
    F32Fast,
    /// Operands are `f32`, rounded to `tf32`.
    Tf32,
    /// Sums are `i32`.
    I32,
}

impl Compute {
    /// Returns the number in `cublasComputeType_t`.
    pub const fn number(self) -> c_int {
        match self {
            Self::F32 | Self::F32Fast => 68,
            Self::Tf32 => 77,
            Self::I32 => 72,
        }
    }

    /// Returns the `cudaDataType` of the factors alpha and beta.
    pub const fn scale(self) -> c_int {
        match self {
            Self::F32 | Self::F32Fast | Self::Tf32 => F32,
            Self::I32 => S32,
        }
    }

    /// Returns one and zero of the type [`scale`](Self::scale), for alpha and beta.
    pub fn factors(self) -> Factors {
        match self {
            Self::F32 | Self::F32Fast | Self::Tf32 => Factors([1f32.to_bits(), 0]),
            Self::I32 => Factors([1, 0]),
        }
    }
}

/// One and zero, as the host passes them to a library.
pub struct Factors([u32; 2]);

impl Factors {
    /// Returns the address of the one.
    pub fn one(&self) -> *const c_void {
        (&raw const self.0[0]).cast()
    }

    /// Returns the address of the zero.
    pub fn zero(&self) -> *const c_void {
        (&raw const self.0[1]).cast()
    }
}
