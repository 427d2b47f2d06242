//! DLPack's tensor, by which libraries of Python exchange arrays.
//! Source: DLPack 1.0, `dlpack.h`.

use std::slice;

use crate::element;
use crate::value::{Place, RawTensor, row_major};

/// `kDLCPU`.
const CPU: i32 = 1;
/// `kDLCUDA`.
const CUDA: i32 = 2;
/// `kDLCUDAHost`: memory of the host.
const CUDA_HOST: i32 = 3;

/// `DLTensor`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct DlTensor {
    data: *mut u8,
    device_type: i32,
    device_id: i32,
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    /// Null for row-major order.
    strides: *const i64,
    byte_offset: u64,
}

impl DlTensor {
    fn shape(&self) -> &[i64] {
        // SAFETY: `rank` extents are at `shape`, which may be null if there are none.
        if self.rank > 0 { unsafe { slice::from_raw_parts(self.shape, self.rank as usize) } } else { &[] }
    }

    /// Returns row-major strides if the tensor has none of its own.
    pub(super) fn compact_strides(&self) -> Vec<i64> {
        if self.strides.is_null() { row_major(self.shape()) } else { vec![] }
    }

    /// # Safety
    ///
    /// The tensor, its shape and its strides are valid for `'a`.
    pub(super) unsafe fn read<'a>(&self, compact: &'a [i64]) -> Result<RawTensor<'a>, String> {
        let place = match self.device_type {
            CPU | CUDA_HOST => Place::Host,
            CUDA => Place::Cuda(self.device_id.try_into().unwrap_or(0)),
            other => return Err(format!("is on a device of type {other}; move it to a GPU or the CPU")),
        };
        let element = if self.lanes == 1 { element::of_dlpack(self.code, self.bits) } else { None };
        let element = element.ok_or_else(|| {
            format!(
                "has elements of type {} with {} bits, for which there are no kernels",
                self.code, self.bits
            )
        })?;
        let rank = usize::try_from(self.rank).unwrap_or(0);
        // SAFETY: as the caller promises; a null pointer is not read.
        let numbers =
            |at: *const i64| unsafe { if rank == 0 { &[][..] } else { slice::from_raw_parts(at, rank) } };
        let strides = if self.strides.is_null() { compact } else { numbers(self.strides) };
        let data = self.data.map_addr(|address| address.wrapping_add(self.byte_offset as usize));
        let data = if data.is_null() { 0 } else { data.expose_provenance() as u64 };
        Ok(RawTensor { data, element, place, shape: numbers(self.shape), strides })
    }
}

const _: () = assert!(size_of::<DlTensor>() == 48 && align_of::<DlTensor>() == align_of::<*const u8>());
