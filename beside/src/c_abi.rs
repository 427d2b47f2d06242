//! The C functions of this library: kernels for callers in any language, on GPUs.
//!
//! Each returns null, or a message that ends in NUL and is valid until the thread's next call.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::panic::catch_unwind;
use std::ptr;

use anyhow::{Context, Result};
use dlpark::ffi::DLManagedTensor;
use dlpark::tensor::TensorRef;
use tma_runtime::prelude::*;

use crate::{dlpack, scale};

/// A matrix of `f32` on a GPU, whose rows are contiguous.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Matrix {
    /// The address of its first element.
    pub address: u64,
    /// How many rows it has.
    pub rows: u64,
    /// How many columns it has.
    pub cols: u64,
    /// Elements from the start of a row to that of the next.
    pub stride: u64,
}

/// Queues `dst = src × factor` on a stream of the GPU; null is its default stream.
///
/// # Safety
///
/// `src` and `dst` point to matrices whose memory is allocated on the GPU until the kernel has run;
/// until then nothing writes that of `src`, and nothing else uses that of `dst`. The stream exists,
/// and is not capturing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tma_scale(
    gpu: u32,
    stream: *mut c_void,
    src: *const Matrix,
    dst: *const Matrix,
    factor: f32,
) -> *const c_char {
    reported(|| {
        let device = Device::cuda(gpu)?;
        // SAFETY: as the caller promises.
        unsafe {
            let (src, dst) = (*src, *dst);
            let stream = Stream::from_raw(&device, stream)?;
            let shape = |of: Matrix| [of.rows as usize, of.cols as usize];
            let strides = |of: Matrix| [of.stride as usize, 1];
            let from = TensorView::from_raw_checked(&device, src.address, shape(src), strides(src))?;
            let to = TensorViewMut::from_raw_checked(&device, dst.address, shape(dst), strides(dst))?;
            anyhow::ensure!(shape(src) == shape(dst), "the matrices have different shapes");
            Ok(scale::launch(&stream, scale::tiles_of_dst(shape(dst)), from, to, factor)?)
        }
    })
}

/// Queues `src × factor` on a stream of the tensor's GPU, and stores the product at `product`: a
/// new tensor, complete in the order of the stream, whose deleter the caller calls.
///
/// # Safety
///
/// `src` points to a tensor that stays as it is until the kernel has run, and `product` to room for
/// an address. The stream exists, and is not capturing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tma_dlpack_scale(
    stream: *mut c_void,
    src: *const DLManagedTensor,
    factor: f32,
    product: *mut *mut DLManagedTensor,
) -> *const c_char {
    reported(|| {
        // SAFETY: as the caller promises.
        unsafe {
            let src = TensorRef::from_raw(&(*src).dl_tensor)?;
            let device = Device::cuda(u32::try_from(src.device().device_id)?)?;
            let stream = Stream::from_raw(&device, stream)?;
            let src = dlpack::import::<f32, 2>(&device, &src)?;
            let mut dst = device.zeros(src.shape())?;
            scale::launch(&stream, scale::tiles_of_dst(dst.shape()), &src, &mut dst, factor)?;
            *product = dlpack::export(dst)?.into_raw();
            Ok(())
        }
    })
}

/// The message of what `work` returns; of a panic as well, which must not leave Rust.
fn reported(work: impl FnOnce() -> Result<()> + std::panic::UnwindSafe) -> *const c_char {
    thread_local! {
        static MESSAGE: RefCell<CString> = RefCell::default();
    }
    let result = catch_unwind(work).unwrap_or_else(|_| Err(anyhow::anyhow!("the library panicked")));
    let Err(error) = result.context("tma_beside") else { return ptr::null() };
    let text = format!("{error:#}").replace('\0', " ");
    MESSAGE.with_borrow_mut(|message| {
        *message = CString::new(text).unwrap_or_default();
        message.as_ptr()
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn failures_are_messages() {
        let matrix = Matrix { address: 0, rows: 1, cols: 4, stride: 4 };
        // SAFETY: the matrices are never used: no machine has so many GPUs, and many have none.
        let message = unsafe {
            let message = tma_scale(u32::MAX, ptr::null_mut(), &matrix, &matrix, 1.0);
            CStr::from_ptr(message).to_str()
        };
        let codes = ["TMA0601", "TMA0602", "TMA0603"];
        assert!(message.is_ok_and(|message| codes.iter().any(|code| message.contains(code))), "{message:?}");
    }

    #[test]
    fn panics_stay_in_the_library() {
        let message = reported(|| panic!("on purpose"));
        // SAFETY: a message of this thread.
        assert_eq!(unsafe { CStr::from_ptr(message) }, c"tma_beside: the library panicked");
        assert!(reported(|| Ok(())).is_null());
    }
}
