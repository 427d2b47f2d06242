//! GEMMs by cuBLASLt, with each of the algorithms that its heuristics propose.
//!
//! Source of types, values and rules: NVIDIA, "cuBLAS", section "Using the cuBLASLt API":
//! "cublasLtMatmul()", "cublasLtMatmulAlgoGetHeuristic()", "cublasLtMatmulDescAttributes_t" and
//! "cublasLtMatmulPreferenceAttributes_t"; `cublasLt.h` for values and structures.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr;

use anyhow::ensure;
use libloading::Library;
use tma_runtime::prelude::*;

use super::cublas::{SUCCESS, WORKSPACE_BYTES, extents, succeeded};
use super::open_versioned;
use super::types::{Compute, Types};

/// `CUBLAS_OP_T`.
const TRANSPOSED: c_int = 1;
/// `CUBLASLT_MATMUL_DESC_TRANSA` and `CUBLASLT_MATMUL_DESC_FAST_ACCUM`.
const TRANSPOSE_A: c_int = 3;
const FAST_ACCUMULATION: c_int = 25;
/// `CUBLASLT_MATMUL_PREF_SEARCH_MODE` and `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`.
const SEARCH_MODE: c_int = 0;
const MAX_WORKSPACE_BYTES: c_int = 1;
/// `CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID`.
const LIMITED_BY_ID: u32 = 1;
/// The largest number of kinds of algorithms.
const IDS: usize = 128;
/// The number of algorithms of a kind that are requested first.
const PER_ID: usize = 4;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type GetVersion = unsafe extern "C" fn() -> usize;
type CreateOperation = unsafe extern "C" fn(*mut Handle, c_int, c_int) -> c_int;
type CreateLayout = unsafe extern "C" fn(*mut Handle, c_int, u64, u64, i64) -> c_int;
type SetAttribute = unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> c_int;
#[rustfmt::skip]
type GetIds = unsafe extern "C" fn(
    Handle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, *mut c_int, *mut c_int,
) -> c_int;
#[rustfmt::skip]
type InitAlgorithm = unsafe extern "C" fn(
    Handle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, *mut [u64; 8],
) -> c_int;
#[rustfmt::skip]
type GetHeuristic = unsafe extern "C" fn(
    Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Heuristic, *mut c_int,
) -> c_int;
#[rustfmt::skip]
type Matmul = unsafe extern "C" fn(
    Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64, Handle,
    *const [u64; 8], u64, usize, *mut c_void,
) -> c_int;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// The functions of the library that are used.
struct Functions {
    destroy: Destroy,
    create_operation: CreateOperation,
    set_of_operation: SetAttribute,
    destroy_operation: Destroy,
    create_layout: CreateLayout,
    destroy_layout: Destroy,
    create_preference: Create,
    set_of_preference: SetAttribute,
    destroy_preference: Destroy,
    ids: GetIds,
    init_algorithm: InitAlgorithm,
    heuristic: GetHeuristic,
    matmul: Matmul,
}

/// A handle of the library, with a workspace.
pub struct CublasLt {
    handle: Handle,
    functions: Functions,
    workspace: DeviceTensor<u8, 1>,
    /// The version: `130100` is 13.1.0.
    pub version: usize,
    /// Unloaded last.
    _library: Library,
}

impl CublasLt {
    /// Loads the library from the folder, or the newest that is found, for a device.
    ///
    /// # Errors
    ///
    /// A library that is not found, or a call that failed.
    pub fn load(folder: Option<&Path>, device: &Device) -> anyhow::Result<Self> {
        let library = open_versioned("libcublasLt.so", folder)?;
        // SAFETY: each symbol has its type in `cublasLt.h`.
        let (create, version_of, functions) = unsafe {
            let functions = Functions {
                destroy: *library.get::<Destroy>(c"cublasLtDestroy")?,
                create_operation: *library.get::<CreateOperation>(c"cublasLtMatmulDescCreate")?,
                set_of_operation: *library.get::<SetAttribute>(c"cublasLtMatmulDescSetAttribute")?,
                destroy_operation: *library.get::<Destroy>(c"cublasLtMatmulDescDestroy")?,
                create_layout: *library.get::<CreateLayout>(c"cublasLtMatrixLayoutCreate")?,
                destroy_layout: *library.get::<Destroy>(c"cublasLtMatrixLayoutDestroy")?,
                create_preference: *library.get::<Create>(c"cublasLtMatmulPreferenceCreate")?,
                set_of_preference: *library.get::<SetAttribute>(c"cublasLtMatmulPreferenceSetAttribute")?,
                destroy_preference: *library.get::<Destroy>(c"cublasLtMatmulPreferenceDestroy")?,
                ids: *library.get::<GetIds>(c"cublasLtMatmulAlgoGetIds")?,
                init_algorithm: *library.get::<InitAlgorithm>(c"cublasLtMatmulAlgoInit")?,
                heuristic: *library.get::<GetHeuristic>(c"cublasLtMatmulAlgoGetHeuristic")?,
                matmul: *library.get::<Matmul>(c"cublasLtMatmul")?,
            };
            let create = *library.get::<Create>(c"cublasLtCreate")?;
            (create, *library.get::<GetVersion>(c"cublasLtGetVersion")?, functions)
        };
        // Makes the device's context current on this thread, for the library to use.
        let workspace = device.zeros([WORKSPACE_BYTES])?;
        let mut handle = ptr::null_mut();
        // SAFETY: the call writes a handle.
        succeeded("cublasLtCreate", unsafe { create(&mut handle) })?;
        // SAFETY: the call has no requirements.
        let version = unsafe { version_of() };
        Ok(Self { handle, functions, workspace, version, _library: library })
    }

    /// Asks the heuristics for up to `most` algorithms for C = A · Bᵀ, all row-major: A is M × K, B
    /// is N × K and C is M × N. The algorithm that they expect to be fastest comes first. For some
    /// types they propose only one; the remaining ones are their proposals for each kind of
    /// algorithm.
    ///
    /// # Errors
    ///
    /// Errors of the library, and a shape without any algorithm.
    pub fn product(&self, types: Types, shape: [usize; 3], most: usize) -> anyhow::Result<Product<'_>> {
        let Functions { destroy_operation, destroy_layout, destroy_preference, .. } = self.functions;
        let [m, n, k] = shape.map(|extent| extent as u64);
        // The column-major matmul is Cᵀ = B · Aᵀ, as for cuBLAS.
        let layout = |cuda_type, rows: u64, columns| {
            made("cublasLtMatrixLayoutCreate", destroy_layout, |layout| {
                // SAFETY: the call writes a layout.
                unsafe { (self.functions.create_layout)(layout, cuda_type, rows, columns, rows as i64) }
            })
        };
        let [left, right] = [layout(types.operand, k, n)?, layout(types.operand, k, m)?];
        let result = layout(types.result, n, m)?;
        let operation = made("cublasLtMatmulDescCreate", destroy_operation, |operation| {
            let (compute, scale) = (types.compute.number(), types.compute.scale());
            // SAFETY: the call writes a description.
            unsafe { (self.functions.create_operation)(operation, compute, scale) }
        })?;
        let set = self.functions.set_of_operation;
        operation.set(set, TRANSPOSE_A, &TRANSPOSED)?;
        if types.compute == Compute::F32Fast {
            operation.set(set, FAST_ACCUMULATION, &1_i8)?;
        }
        let preference = made("cublasLtMatmulPreferenceCreate", destroy_preference, |preference| {
            // SAFETY: the call writes a preference.
            unsafe { (self.functions.create_preference)(preference) }
        })?;
        preference.set(self.functions.set_of_preference, MAX_WORKSPACE_BYTES, &(WORKSPACE_BYTES as u64))?;

        let mut product =
            Product { library: self, types, shape, operation, left, right, result, algorithms: vec![] };
        product.propose(&preference, vec![Heuristic::default(); most])?;
        preference.set(self.functions.set_of_preference, SEARCH_MODE, &LIMITED_BY_ID)?;
        let ids = self.ids(types)?;
        // First a few of each kind, then as many as are missing.
        for of_each in [PER_ID, most] {
            for &id in &ids {
                if product.algorithms.len() < most {
                    // A kind that does not fit the shape is an error of the library, and is
                    // skipped.
                    let _ = product.propose(&preference, vec![self.algorithm(types, id)?; of_each]);
                    product.algorithms.truncate(most);
                }
            }
        }
        ensure!(!product.algorithms.is_empty(), "cuBLASLt has no algorithm for {shape:?}");
        Ok(product)
    }

    /// Returns the kinds of algorithms that the library has for these types.
    fn ids(&self, types: Types) -> anyhow::Result<Vec<c_int>> {
        let Types { operand, result, compute } = types;
        let (mut ids, mut count) = (vec![0; IDS], 0);
        // SAFETY: `ids` has room for the number that is requested.
        let status = unsafe {
            (self.functions.ids)(
                self.handle,
                compute.number(),
                compute.scale(),
                operand,
                operand,
                result,
                result,
                IDS as c_int,
                ids.as_mut_ptr(),
                &mut count,
            )
        };
        succeeded("cublasLtMatmulAlgoGetIds", status)?;
        ids.truncate(usize::try_from(count)?);
        Ok(ids)
    }

    /// Returns the request to the heuristics for algorithms of this kind.
    fn algorithm(&self, types: Types, id: c_int) -> anyhow::Result<Heuristic> {
        let Types { operand, result, compute } = types;
        let mut request = Heuristic::default();
        // SAFETY: the call writes an algorithm.
        let status = unsafe {
            (self.functions.init_algorithm)(
                self.handle,
                compute.number(),
                compute.scale(),
                operand,
                operand,
                result,
                result,
                id,
                &raw mut request.algorithm,
            )
        };
        succeeded("cublasLtMatmulAlgoInit", status)?;
        Ok(request)
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: the handle lives until here, and no product outlives it.
        unsafe { (self.functions.destroy)(self.handle) };
    }
}

/// A GEMM of one shape, with its algorithms.
pub struct Product<'a> {
    library: &'a CublasLt,
    types: Types,
    shape: [usize; 3],
    operation: Owned,
    left: Owned,
    right: Owned,
    result: Owned,
    algorithms: Vec<[u64; 8]>,
}

impl Product<'_> {
    /// Adds the proposals of the heuristics, at most as many as `found` has room for, without those
    /// that are already known.
    fn propose(&mut self, preference: &Owned, mut found: Vec<Heuristic>) -> anyhow::Result<()> {
        let mut count = 0;
        // SAFETY: all descriptions live, and `found` has room for the number that is requested.
        let status = unsafe {
            (self.library.functions.heuristic)(
                self.library.handle,
                self.operation.handle,
                self.left.handle,
                self.right.handle,
                self.result.handle,
                self.result.handle,
                preference.handle,
                c_int::try_from(found.len())?,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        succeeded("cublasLtMatmulAlgoGetHeuristic", status)?;
        found.truncate(usize::try_from(count)?);
        for found in found {
            let is_new = !self.algorithms.contains(&found.algorithm);
            if is_new && found.state == SUCCESS && found.workspace_bytes <= WORKSPACE_BYTES {
                self.algorithms.push(found.algorithm);
            }
        }
        Ok(())
    }

    /// Returns the number of algorithms.
    pub fn algorithms(&self) -> usize {
        self.algorithms.len()
    }

    /// Queues C = A · Bᵀ by the algorithm of this index.
    ///
    /// # Errors
    ///
    /// Matrices of other extents or types, and errors of the library.
    pub fn multiply<T: Scalar, C: Scalar>(
        &self,
        algorithm: usize,
        a: &DeviceTensor<T, 2>,
        b: &DeviceTensor<T, 2>,
        c: &mut DeviceTensor<C, 2>,
        stream: &Stream,
    ) -> anyhow::Result<()> {
        let fits = extents(a, b, c)?.map(i64::from) == self.shape.map(|extent| extent as i64);
        ensure!(fits && algorithm < self.algorithms.len(), "the matrices do not fit");
        let factors = self.types.compute.factors();
        // SAFETY: the tensors have the extents of the layouts, and the element types that `Types`
        // describes; they live on the handle's device. Alpha and beta are read during the call, on
        // the host. C is not read, since beta is zero.
        let status = unsafe {
            (self.library.functions.matmul)(
                self.library.handle,
                self.operation.handle,
                factors.one(),
                b.as_ptr(),
                self.left.handle,
                a.as_ptr(),
                self.right.handle,
                factors.zero(),
                c.as_ptr(),
                self.result.handle,
                c.as_ptr(),
                self.result.handle,
                &raw const self.algorithms[algorithm],
                self.library.workspace.as_ptr(),
                WORKSPACE_BYTES,
                stream.raw(),
            )
        };
        succeeded("cublasLtMatmul", status)
    }
}

/// A description of the library that its user has to destroy.
struct Owned {
    handle: Handle,
    destroy: Destroy,
}

/// Calls `create`, and returns the description that it made.
fn made(
    call: &'static str,
    destroy: Destroy,
    create: impl FnOnce(&mut Handle) -> c_int,
) -> anyhow::Result<Owned> {
    let mut handle = ptr::null_mut();
    succeeded(call, create(&mut handle))?;
    Ok(Owned { handle, destroy })
}

impl Owned {
    /// Sets an attribute, whose type must be the one in `cublasLt.h`.
    fn set<T>(&self, set: SetAttribute, attribute: c_int, value: &T) -> anyhow::Result<()> {
        let value = ptr::from_ref(value).cast();
        // SAFETY: the description lives, and so does the value, during the call.
        succeeded("to set an attribute", unsafe { set(self.handle, attribute, value, size_of::<T>()) })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the description was created by the call that `destroy` undoes.
        unsafe { (self.destroy)(self.handle) };
    }
}
