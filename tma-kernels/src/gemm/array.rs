//! Batches whose matrices are separate tensors, each in its own memory.

use super::launch::Operands;
use super::picked::queue_picked;
use super::{GemmError, GemmOptions, Indices, Product};
use tma_runtime::Scalar;
use tma_runtime::launch::LaunchOn;
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

/// The number of positions in the spanned memory at which matrices of a batch may begin.
const MAX_POSITIONS: u64 = 1 << 31;

/// The alignment of addresses in tensor maps, in bytes.
const UNIT: u64 = 16;

/// Matrices of the same shape and strides that are separate tensors: A or B of [`gemm_array`].
///
/// Other libraries take an array of addresses instead. This is a tensor that spans all matrices,
/// whose own matrices begin at multiples of a distance that divides all differences of addresses,
/// together with indices of the wanted ones on the device. No other part of that memory is read.
#[derive(Debug)]
pub struct Matrices<'a, T> {
    span: TensorView<'a, T, 3>,
    indices: DeviceTensor<u32, 1>,
}

impl<'a, T: Scalar> Matrices<'a, T> {
    /// Makes an array of these matrices.
    ///
    /// # Errors
    ///
    /// `TMA0565` if they differ in shape, strides or device, do not begin at multiples of 16 bytes,
    /// or are too far apart; [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device, matrices: &[TensorView<'a, T, 2>]) -> Result<Self, GemmError> {
        let matrices: Vec<_> = matrices.iter().map(Matrix::of).collect();
        let Span { address, shape, strides, indices } = Span::of::<T>(device, &matrices)?;
        // SAFETY: the launches below read only the matrices at `indices` of this view, which are
        // tensors that are borrowed for 'a.
        let span = unsafe { TensorView::from_raw(device, address, shape, strides) };
        Ok(Self { span, indices: device.tensor(&indices, [indices.len()])? })
    }

    /// Returns the number of matrices.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns whether there are no matrices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Matrices like [`Matrices`], but mutable: C of [`gemm_array`].
#[derive(Debug)]
pub struct MatricesMut<'a, T> {
    span: TensorViewMut<'a, T, 3>,
    indices: DeviceTensor<u32, 1>,
}

impl<'a, T: Scalar> MatricesMut<'a, T> {
    /// Makes an array of these matrices.
    ///
    /// # Errors
    ///
    /// The errors of [`Matrices::new`].
    pub fn new(device: &Device, matrices: Vec<TensorViewMut<'a, T, 2>>) -> Result<Self, GemmError> {
        let matrices: Vec<_> = matrices.iter().map(|matrix| Matrix::of(&matrix.as_view())).collect();
        let Span { address, shape, strides, indices } = Span::of::<T>(device, &matrices)?;
        // SAFETY: the launches below write only the matrices at `indices` of this view, which are
        // tensors that are borrowed mutably for 'a, and by nothing else.
        let span = unsafe { TensorViewMut::from_raw(device, address, shape, strides) };
        Ok(Self { span, indices: device.tensor(&indices, [indices.len()])? })
    }

    /// Returns the number of matrices.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns whether there are no matrices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The properties of a matrix that must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Matrix {
    device: DeviceId,
    address: u64,
    shape: [usize; 2],
    strides: [usize; 2],
}

impl Matrix {
    fn of<T: Scalar>(view: &TensorView<'_, T, 2>) -> Self {
        let (shape, strides) = (view.shape(), view.strides());
        Self { device: view.layout().device(), address: view.as_ptr(), shape, strides }
    }
}

/// A tensor that spans all matrices, and the indices of these within it.
#[derive(Debug, PartialEq, Eq)]
struct Span {
    address: u64,
    shape: [usize; 3],
    strides: [usize; 3],
    indices: Vec<u32>,
}

impl Span {
    fn of<T: Scalar>(device: &Device, matrices: &[Matrix]) -> Result<Self, GemmError> {
        let Some(first) = matrices.first() else {
            return Ok(Self { address: 0, shape: [0; 3], strides: [1; 3], indices: vec![] });
        };
        let same_layout = |matrix: &Matrix| matrix.shape == first.shape && matrix.strides == first.strides;
        let differs = |at: usize, what| GemmError::Array { matrix: at, what };
        if let Some(at) = matrices.iter().position(|matrix| matrix.device != device.id()) {
            return Err(differs(at, "is on another device"));
        }
        if let Some(at) = matrices.iter().position(|matrix| !same_layout(matrix)) {
            return Err(differs(at, "differs from matrix 0 in shape or strides"));
        }
        let [rows, columns] = first.shape;
        let [line, step] = first.strides;
        if rows == 0 || columns == 0 {
            // Matrices without elements are all the same.
            let strides = [rows.saturating_mul(line).max(1), line, step];
            return Ok(Self {
                address: first.address,
                shape: [1, rows, columns],
                strides,
                indices: vec![0; matrices.len()],
            });
        }
        if let Some(at) = matrices.iter().position(|matrix| !matrix.address.is_multiple_of(UNIT)) {
            return Err(differs(at, "does not start at a multiple of 16 bytes"));
        }
        let address = matrices.iter().map(|matrix| matrix.address).min().unwrap_or(first.address);
        // The greatest common divisor of all distances.
        let common = matrices.iter().fold(0, |common, matrix| divisor(common, matrix.address - address));
        let distance = if common == 0 { (rows * line * size_of::<T>()) as u64 } else { common };
        let index = |matrix: &Matrix| (matrix.address - address) / distance;
        if let Some(at) = matrices.iter().position(|matrix| index(matrix) >= MAX_POSITIONS) {
            return Err(differs(at, "is too far from another matrix"));
        }
        let indices: Vec<_> = matrices.iter().map(|matrix| index(matrix) as u32).collect();
        let count = indices.iter().max().map_or(1, |last| *last as usize + 1);
        let strides = [distance as usize / size_of::<T>(), line, step];
        Ok(Self { address, shape: [count, rows, columns], strides, indices })
    }
}

/// Returns the greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Queues a batch of GEMMs in one launch, `C[i] = A[i] · B[i]`, of matrices that are separate
/// tensors. Options apply to each GEMM as in [`gemm`](super::gemm); a residual has one matrix per
/// GEMM.
///
/// The arrays are made once, and may be used again without any allocation. A launch in a capture is
/// rejected, since the graph could not keep the matrices alive.
///
/// ```
/// use tma_kernels::gemm::{GemmOptions, Matrices, MatricesMut, gemm_array};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let weights = [1.0, 2.0].map(|x| device.tensor(&[bf16::from_f32(x); 32 * 8], [32, 8]));
/// let [first, second] = weights;
/// let (first, second) = (first?, second?);
/// let x = device.tensor(&[bf16::from_f32(0.5); 16 * 32], [16, 32])?;
/// let mut y = [device.zeros::<bf16, 2>([16, 8])?, device.zeros([16, 8])?];
///
/// let a = Matrices::new(&device, &[x.view(), x.view()])?;
/// let b = Matrices::new(&device, &[first.view(), second.view()])?;
/// let mut c = MatricesMut::new(&device, y.iter_mut().map(|y| y.view_mut()).collect())?;
/// gemm_array(&device, &a, &b, &mut c, GemmOptions::default())?;
/// drop(c);
/// assert_eq!(y[1].to_vec()?, [bf16::from_f32(32.0); 16 * 8]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0561` if the numbers of matrices differ, and the errors of
/// [`gemm_picked`](super::gemm_picked).
pub fn gemm_array<AB: Product<C>, C: Scalar>(
    on: &impl LaunchOn,
    a: &Matrices<'_, AB>,
    b: &Matrices<'_, AB>,
    c: &mut MatricesMut<'_, C>,
    options: GemmOptions<'_, C, 3>,
) -> Result<(), GemmError> {
    let counts = [a.len(), b.len(), c.len()];
    if counts == [0; 3] {
        return Ok(());
    }
    if counts.iter().any(|count| *count != counts[0]) {
        return Err(GemmError::Indices { found: counts.to_vec() });
    }
    let [of_a, of_b, of_c] = [&a.indices, &b.indices, &c.indices].map(|indices| Some(indices.view()));
    let indices = Indices { a: of_a, b: of_b, c: of_c };
    let operands = Operands { a: a.span, b: b.span, c: c.span.reborrow() };
    queue_picked(on, operands, indices, options, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(addresses: &[u64]) -> Result<Span, GemmError> {
        let device = Device::simulator();
        let matrix = |address| Matrix { device: device.id(), address, shape: [4, 8], strides: [8, 1] };
        Span::of::<bf16>(&device, &addresses.iter().copied().map(matrix).collect::<Vec<_>>())
    }

    #[test]
    fn positions_are_multiples_of_the_common_divisor() {
        let span = at(&[0x1_0000, 0x1_0400, 0x1_0100]).expect("a span");
        assert_eq!((span.address, span.shape, span.strides), (0x1_0000, [5, 4, 8], [128, 8, 1]));
        assert_eq!(span.indices, [0, 4, 1]);
        let span = at(&[0x50, 0x20]).expect("a span");
        assert_eq!((span.address, span.strides[0], span.indices), (0x20, 24, vec![1, 0]));
        let span = at(&[0x40, 0x40]).expect("a span");
        assert_eq!((span.shape, span.indices), ([1, 4, 8], vec![0, 0]));
    }

    #[test]
    fn matrices_too_far_apart_are_rejected() {
        for (addresses, text) in [
            (&[0x100, 0x108][..], "matrix 1 does not start at a multiple of 16 bytes"),
            (&[0x100, 0x110, 0x100 + (MAX_POSITIONS << 4)], "matrix 2 is too far from another matrix"),
        ] {
            let error = at(addresses).expect_err("no span");
            assert_eq!(error.code(), "TMA0565");
            assert!(error.to_string().contains(text), "{error}");
        }
        let far = at(&[0x100, 0x200, 0x100 + (MAX_POSITIONS << 4)]).expect("256 bytes in common");
        assert_eq!(far.indices[2], 1 << 27);
    }
}
