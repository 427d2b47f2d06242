//! GEMMs by cuBLAS.
//!
//! Source of types, values and rules: NVIDIA, "cuBLAS", sections "cublasCreate()",
//! "cublasSetStream()", "cublasSetWorkspace()" and "cublasGemmEx()".

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::ensure;
use libloading::Library;
use tma_runtime::prelude::*;

use super::open_versioned;
use super::types::Types;

/// `CUBLAS_STATUS_SUCCESS`.
pub(super) const SUCCESS: c_int = 0;
/// `CUBLAS_OP_N` and `CUBLAS_OP_T`.
const PLAIN: c_int = 0;
const TRANSPOSED: c_int = 1;
/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT_ALGORITHM: c_int = -1;
/// 32 MiB, the size that the documentation recommends for Hopper.
pub(super) const WORKSPACE_BYTES: usize = 32 << 20;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type GetVersion = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type SetWorkspace = unsafe extern "C" fn(Handle, u64, usize) -> c_int;
#[rustfmt::skip]
type GemmEx = unsafe extern "C" fn(
    Handle, c_int, c_int, c_int, c_int, c_int, *const c_void, u64, c_int, c_int, u64, c_int, c_int,
    *const c_void, u64, c_int, c_int, c_int, c_int,
) -> c_int;

/// A handle of the library, for one stream.
pub struct Cublas {
    handle: Handle,
    destroy: Destroy,
    gemm: GemmEx,
    /// The version: `130100` is 13.1.0.
    pub version: c_int,
    /// The workspace of the handle, which must outlive it.
    _workspace: DeviceTensor<u8, 1>,
    /// Unloaded last.
    _library: Library,
}

impl Cublas {
    /// Loads the library from the folder, or the newest that is found, for `stream`.
    ///
    /// # Errors
    ///
    /// A library that is not found, or a call that failed.
    pub fn load(folder: Option<&Path>, stream: &Stream) -> anyhow::Result<Self> {
        let library = open_versioned("libcublas.so", folder)?;
        // SAFETY: each symbol has its documented type.
        let (create, destroy, version_of, set_stream, set_workspace, gemm) = unsafe {
            (
                *library.get::<Create>(c"cublasCreate_v2")?,
                *library.get::<Destroy>(c"cublasDestroy_v2")?,
                *library.get::<GetVersion>(c"cublasGetVersion_v2")?,
                *library.get::<SetStream>(c"cublasSetStream_v2")?,
                *library.get::<SetWorkspace>(c"cublasSetWorkspace_v2")?,
                *library.get::<GemmEx>(c"cublasGemmEx")?,
            )
        };
        // Makes the device's context current on this thread, for the library to use.
        let workspace = stream.device().zeros([WORKSPACE_BYTES])?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the call writes a handle.
        succeeded("cublasCreate_v2", unsafe { create(&mut handle) })?;
        let mut cublas = Self { handle, destroy, gemm, version: 0, _workspace: workspace, _library: library };
        // SAFETY: the handle lives, and so do the variable for the version, the stream and the
        // workspace, which is aligned to 256 bytes as an allocation of its own. Setting the stream
        // resets the workspace, so it is set afterwards.
        unsafe {
            succeeded("cublasGetVersion_v2", version_of(handle, &mut cublas.version))?;
            succeeded("cublasSetStream_v2", set_stream(handle, stream.raw()))?;
            let workspace = cublas._workspace.as_ptr();
            succeeded("cublasSetWorkspace_v2", set_workspace(handle, workspace, WORKSPACE_BYTES))?;
        }
        Ok(cublas)
    }

    /// Queues C = A · Bᵀ, all row-major: A is M × K, B is N × K and C is M × N.
    ///
    /// # Errors
    ///
    /// Errors of the library.
    pub fn multiply<T: Scalar, C: Scalar>(
        &self,
        types: Types,
        a: &DeviceTensor<T, 2>,
        b: &DeviceTensor<T, 2>,
        c: &mut DeviceTensor<C, 2>,
    ) -> anyhow::Result<()> {
        let [m, n, k] = extents(a, b, c)?;
        let factors = types.compute.factors();
        // The library's matrices are column-major: a row-major C is its Cᵀ = B · Aᵀ, in which B and
        // A are K × N and K × M to it. SAFETY: the tensors have the extents and strides that are
        // passed, and the element types that `Types` describes; they live on the handle's device.
        // Alpha and beta are read during the call, on the host.
        let status = unsafe {
            (self.gemm)(
                self.handle,
                TRANSPOSED,
                PLAIN,
                n,
                m,
                k,
                factors.one(),
                b.as_ptr(),
                types.operand,
                k,
                a.as_ptr(),
                types.operand,
                k,
                factors.zero(),
                c.as_ptr(),
                types.result,
                n,
                types.compute.number(),
                DEFAULT_ALGORITHM,
            )
        };
        succeeded("cublasGemmEx", status)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle lives until here. An error of the call after a fault of a kernel can
        // be ignored.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// Returns M, N and K, if the extents of the matrices agree.
pub(super) fn extents<T: Scalar, C: Scalar>(
    a: &DeviceTensor<T, 2>,
    b: &DeviceTensor<T, 2>,
    c: &DeviceTensor<C, 2>,
) -> anyhow::Result<[c_int; 3]> {
    let ([m, k], [n, of_b], [rows, columns]) = (a.shape(), b.shape(), c.shape());
    ensure!(of_b == k && rows == m && columns == n, "the matrices do not fit");
    let [m, n, k] = [m, n, k].map(c_int::try_from);
    Ok([m?, n?, k?])
}

/// Checks that a call of cuBLAS or cuBLASLt succeeded.
pub(super) fn succeeded(call: &str, status: c_int) -> anyhow::Result<()> {
    ensure!(status == SUCCESS, "{call} failed with status {status}");
    Ok(())
}
