//! Batches whose matrices are tensors of their own, in memory of their own.

use super::picked::queue_picked;
use super::{GemmError, GemmOptions, Indices, Product};
use tma_runtime::Scalar;
use tma_runtime::launch::LaunchOn;
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

/// Matrices of a batch may be at so many places of the memory that they span.
const PLACES: u64 = 1 << 31;

/// Tensor maps take addresses at multiples of so many bytes.
const UNIT: u64 = 16;

/// Matrices of the same shape and strides that are tensors of their own: A or B of [`gemm_array`].
///
/// Other libraries take an array of addresses here. This is a tensor from the first matrix to the
/// last, whose matrices begin at multiples of a distance that all addresses have in common, and
/// which of them are meant: numbers on the device. Nothing else of that memory is read.
#[derive(Debug)]
pub struct Matrices<'a, T> {
    span: TensorView<'a, T, 3>,
    places: DeviceTensor<u32, 1>,
}

impl<'a, T: Scalar> Matrices<'a, T> {
    /// Of these matrices.
    ///
    /// # Errors
    ///
    /// `TMA0565` if they differ in shape, strides or device, do not begin at multiples of 16 bytes,
    /// or are too far apart; [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device, matrices: &[TensorView<'a, T, 2>]) -> Result<Self, GemmError> {
        let matrices: Vec<_> = matrices.iter().map(Matrix::of).collect();
        let Span { address, shape, strides, places } = Span::of::<T>(device, &matrices)?;
        // SAFETY: of this view, launches below read the matrices at `places` alone, which are
        // tensors that are borrowed for 'a.
        let span = unsafe { TensorView::from_raw(device, address, shape, strides) };
        Ok(Self { span, places: device.tensor(&places, [places.len()])? })
    }

    /// How many matrices there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// As [`Matrices`]: C of [`gemm_array`].
#[derive(Debug)]
pub struct MatricesMut<'a, T> {
    span: TensorViewMut<'a, T, 3>,
    places: DeviceTensor<u32, 1>,
}

impl<'a, T: Scalar> MatricesMut<'a, T> {
    /// Of these matrices.
    ///
    /// # Errors
    ///
    /// Those of [`Matrices::new`].
    pub fn new(device: &Device, matrices: Vec<TensorViewMut<'a, T, 2>>) -> Result<Self, GemmError> {
        let matrices: Vec<_> = matrices.iter().map(|matrix| Matrix::of(&matrix.as_view())).collect();
        let Span { address, shape, strides, places } = Span::of::<T>(device, &matrices)?;
        // SAFETY: of this view, launches below write the matrices at `places` alone, which are
        // tensors that are borrowed mutably for 'a, and by nobody else.
        let span = unsafe { TensorViewMut::from_raw(device, address, shape, strides) };
        Ok(Self { span, places: device.tensor(&places, [places.len()])? })
    }

    /// How many matrices there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What is known of a matrix.
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

/// A tensor from the first matrix to the last, and which of its matrices they are.
#[derive(Debug, PartialEq, Eq)]
struct Span {
    address: u64,
    shape: [usize; 3],
    strides: [usize; 3],
    places: Vec<u32>,
}

impl Span {
    fn of<T: Scalar>(device: &Device, matrices: &[Matrix]) -> Result<Self, GemmError> {
        let Some(first) = matrices.first() else {
            return Ok(Self { address: 0, shape: [0; 3], strides: [1; 3], places: vec![] });
        };
        let alike = |matrix: &Matrix| matrix.shape == first.shape && matrix.strides == first.strides;
        let differs = |at: usize, what| GemmError::Array { matrix: at, what };
        if let Some(at) = matrices.iter().position(|matrix| matrix.device != device.id()) {
            return Err(differs(at, "is on another device"));
        }
        if let Some(at) = matrices.iter().position(|matrix| !alike(matrix)) {
            return Err(differs(at, "has another shape or other strides than the first"));
        }
        let [rows, columns] = first.shape;
        let [line, step] = first.strides;
        if rows == 0 || columns == 0 {
            // Without elements, they are all the same.
            let strides = [rows.saturating_mul(line).max(1), line, step];
            return Ok(Self {
                address: first.address,
                shape: [1, rows, columns],
                strides,
                places: vec![0; matrices.len()],
            });
        }
        if let Some(at) = matrices.iter().position(|matrix| !matrix.address.is_multiple_of(UNIT)) {
            return Err(differs(at, "does not begin at a multiple of 16 bytes"));
        }
        let address = matrices.iter().map(|matrix| matrix.address).min().unwrap_or(first.address);
        // What all distances are multiples of.
        let common = matrices.iter().fold(0, |common, matrix| divisor(common, matrix.address - address));
        let distance = if common == 0 { (rows * line * size_of::<T>()) as u64 } else { common };
        let place = |matrix: &Matrix| (matrix.address - address) / distance;
        if let Some(at) = matrices.iter().position(|matrix| place(matrix) >= PLACES) {
            return Err(differs(at, "is too far from another one"));
        }
        let places: Vec<_> = matrices.iter().map(|matrix| place(matrix) as u32).collect();
        let count = places.iter().max().map_or(1, |last| *last as usize + 1);
        let strides = [distance as usize / size_of::<T>(), line, step];
        Ok(Self { address, shape: [count, rows, columns], strides, places })
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Queues a batch of products by one launch, `C[i] = A[i] · B[i]`, of matrices that are tensors of
/// their own. What is done for each product is as in [`gemm`](super::gemm); a residual has a matrix
/// for each.
///
/// The arrays are made once, and may be used again: then nothing is allocated. A launch that is
/// captured for a graph is refused, since the graph could not keep the matrices.
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
/// `TMA0561` if there are not as many matrices of each, and those of
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
    let [of_a, of_b, of_c] = [&a.places, &b.places, &c.places].map(|places| Some(places.view()));
    let indices = Indices { a: of_a, b: of_b, c: of_c };
    queue_picked(on, [a.span, b.span], c.span.reborrow(), indices, options, true)
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
    fn places_are_multiples_of_what_distances_have_in_common() {
        let span = at(&[0x1_0000, 0x1_0400, 0x1_0100]).expect("a span");
        assert_eq!((span.address, span.shape, span.strides), (0x1_0000, [5, 4, 8], [128, 8, 1]));
        assert_eq!(span.places, [0, 4, 1]);
        let span = at(&[0x50, 0x20]).expect("a span");
        assert_eq!((span.address, span.strides[0], span.places), (0x20, 24, vec![1, 0]));
        let span = at(&[0x40, 0x40]).expect("a span");
        assert_eq!((span.shape, span.places), ([1, 4, 8], vec![0, 0]));
    }

    #[test]
    fn what_no_map_reaches_is_refused() {
        for (addresses, text) in [
            (&[0x100, 0x108][..], "matrix 1 does not begin at a multiple of 16 bytes"),
            (&[0x100, 0x110, 0x100 + (PLACES << 4)], "matrix 2 is too far from another one"),
        ] {
            let error = at(addresses).expect_err("no span");
            assert_eq!(error.code(), "TMA0565");
            assert!(error.to_string().contains(text), "{error}");
        }
        let far = at(&[0x100, 0x200, 0x100 + (PLACES << 4)]).expect("256 bytes in common");
        assert_eq!(far.places[2], 1 << 27);
    }
}
