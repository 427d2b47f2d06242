//! Global memory, element by element.

use std::marker::PhantomData;

use super::{AtomicInteger, AtomicNumber, AtomicWord, Scalar, device_only, sealed::Sealed};

/// A kernel's parameter: a contiguous slice of global memory that threads read and write.
///
/// On the device it is an address and a length. Every access is bounds-checked: an out-of-bounds
/// access stops the grid (`trap`), and the host sees a launch failure. The launcher takes `&` of a
/// tensor that the kernel only reads, and `&mut` of one that it writes. Only a parameter can be a
/// `Global`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn axpy(a: f32, x: Global<f32>, y: Global<f32>) {
/// let i = block_idx().x as u64 * 256 + thread_idx().x as u64;
/// if i < x.len() {
///     y.set(i, fma(a, x.get(i), y.get(i)));
/// }
/// # }
/// ```
pub struct Global<T: Scalar>(PhantomData<T>);

impl<T: Scalar> Clone for Global<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar> Copy for Global<T> {}

/// Rows of a [`Global`] with a stride between them, made by [`matrix`](Global::matrix). An
/// accumulator is [stored to](super::Accumulator::store_to) it.
pub struct GlobalMatrix<T: Scalar>(PhantomData<T>);

impl<T: Scalar> Clone for GlobalMatrix<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar> Copy for GlobalMatrix<T> {}

/// An index into [`Global`] memory, in elements: an integer of 32 or 64 bits. A negative index is
/// out of bounds.
#[diagnostic::on_unimplemented(
    message = "global memory must be indexed by an integer of 32 or 64 bits, not `{Self}`",
    label = "not an index",
    note = "convert it: `index as u64`"
)]
pub trait GlobalIndex: Sealed + Copy {}

impl GlobalIndex for u32 {}
impl GlobalIndex for i32 {}
impl GlobalIndex for u64 {}
impl GlobalIndex for i64 {}
impl GlobalIndex for usize {}

impl<T: Scalar> Global<T> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(self) -> u64 {
        device_only()
    }

    /// Returns the matrix that begins with element `first`. `extents` are its rows and columns, and
    /// `stride` is the number of elements from one row to the next. Traps if the slice does not
    /// contain the whole matrix.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(sum: Accumulator<f32, 64, 64>, c: Global<f32>, m: u32, n: u32) {
    /// // Matrix z of a batch, whose rows follow each other without gaps.
    /// let z = block_idx().z as u64;
    /// let out = c.matrix(z * m as u64 * n as u64, [m, n], n);
    /// sum.store_to(out, [block_idx().y * 64, block_idx().x * 64]);
    /// # }
    /// ```
    #[must_use]
    pub fn matrix<I: GlobalIndex>(self, first: I, extents: [u32; 2], stride: u32) -> GlobalMatrix<T> {
        device_only()
    }

    /// Reads element `i`. Traps if there is none.
    ///
    /// PTX: `ld.global`.
    #[must_use]
    pub fn get<I: GlobalIndex>(self, i: I) -> T {
        device_only()
    }

    /// Writes element `i`. Traps if there is none. Two threads that write the same element without
    /// synchronisation race.
    ///
    /// PTX: `st.global`.
    pub fn set<I: GlobalIndex>(self, i: I, value: T) {
        device_only()
    }

    /// Reads the `N` elements from `i` on by one instruction. Traps if not all of them exist.
    ///
    /// A vector has 2 or more elements, a power of two, and at most 16 bytes: 4 of `f32`, 8 of
    /// `f16`. `i`, in elements, must be a multiple of `N`. An `i` that provably is not is an error
    /// (docs/errors/TMA0244.md). At run time, a checked kernel tests `i`, and any other kernel
    /// stops with a hardware error. The launcher rejects tensors whose address is not a multiple of
    /// the vector's bytes.
    ///
    /// PTX: `ld.global.v2` or `.v4`, or one wider element (PTX ISA, "ld").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(x: Global<f32>, y: Global<f32>) {
    /// let i = (block_idx().x * 128 + thread_idx().x) * 4;
    /// let v = x.get_vec::<4>(i);
    /// y.set_vec(i, [v[3], v[2], v[1], v[0]]);
    /// # }
    /// ```
    #[must_use]
    pub fn get_vec<const N: usize>(self, i: impl GlobalIndex) -> [T; N] {
        device_only()
    }

    /// Writes the elements of `value` to those from `i` on by one instruction. Traps if not all of
    /// them exist. The rules for `i` and `N` are those of [`get_vec`](Global::get_vec).
    ///
    /// PTX: `st.global.v2` or `.v4`, or one wider element (PTX ISA, "st").
    pub fn set_vec<const N: usize>(self, i: impl GlobalIndex, value: [T; N]) {
        device_only()
    }

    /// Reads element `i` through the non-coherent path: a cache that writes of the same launch do
    /// not update. Traps if there is no such element.
    ///
    /// The slice must not change while the kernel runs. If the kernel writes it, or accesses it
    /// with an order, that is an error (docs/errors/TMA0246.md). The load keeps its place among
    /// other accesses, and after `grid_dependency_wait()`.
    ///
    /// PTX: `ld.global.nc` (PTX ISA, "ld.global.nc").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(table: Global<f32>, keys: Global<u32>, out: Global<f32>) {
    /// let i = block_idx().x * 128 + thread_idx().x;
    /// out.set(i, table.get_nc(keys.get(i)));
    /// # }
    /// ```
    #[doc(alias = "__ldg")]
    #[doc(alias = "ld.global.nc")]
    #[must_use]
    pub fn get_nc<I: GlobalIndex>(self, i: I) -> T {
        device_only()
    }

    /// Reads the `N` elements from `i` on by one instruction, through the non-coherent path. The
    /// rules for `i` and `N` are those of [`get_vec`](Global::get_vec), and those for the slice are
    /// those of [`get_nc`](Global::get_nc).
    ///
    /// PTX: `ld.global.nc.v2` or `.v4`, or one wider element (PTX ISA, "ld.global.nc").
    #[must_use]
    pub fn get_vec_nc<const N: usize>(self, i: impl GlobalIndex) -> [T; N] {
        device_only()
    }

    /// Atomically adds `value` to element `i` and returns the old value; integers wrap. Traps if
    /// there is no such element.
    ///
    /// Short for [`fetch_add`](Global::fetch_add) with [`Order::Relaxed`](super::Order::Relaxed)
    /// and [`Scope::Device`](super::Scope::Device), as every atomic without an order: it orders no
    /// other accesses.
    ///
    /// PTX: `atom.global.add`.
    pub fn atomic_add<I: GlobalIndex>(self, i: I, value: T) -> T
    where
        T: AtomicNumber,
    {
        device_only()
    }

    /// Atomically sets element `i` to the minimum of it and `value`, and returns the old value.
    ///
    /// PTX: `atom.global.min`.
    pub fn atomic_min<I: GlobalIndex>(self, i: I, value: T) -> T
    where
        T: AtomicInteger,
    {
        device_only()
    }

    /// Atomically sets element `i` to the maximum of it and `value`, and returns the old value.
    ///
    /// PTX: `atom.global.max`.
    pub fn atomic_max<I: GlobalIndex>(self, i: I, value: T) -> T
    where
        T: AtomicInteger,
    {
        device_only()
    }

    /// Atomically sets element `i` to the bitwise AND of it and `value`, and returns the old value.
    ///
    /// PTX: `atom.global.and`.
    pub fn atomic_and<I: GlobalIndex>(self, i: I, value: T) -> T
    where
        T: AtomicInteger,
    {
        device_only()
    }

    /// Atomically sets element `i` to the bitwise OR of it and `value`, and returns the old value.
    ///
    /// PTX: `atom.global.or`.
    pub fn atomic_or<I: GlobalIndex>(self, i: I, value: T) -> T
    where
        T: AtomicInteger,
    {
        device_only()
    }

    /// Atomically sets element `i` to the bitwise XOR of it and `value`, and returns the old value.
    ///
    /// PTX: `atom.global.xor`.
    pub fn atomic_xor<I: GlobalIndex>(self, i: I, value: T) -> T
    where
        T: AtomicInteger,
    {
        device_only()
    }

    /// Atomically replaces element `i` with `value`, and returns the old value.
    ///
    /// PTX: `atom.global.exch`.
    pub fn atomic_exchange<I: GlobalIndex>(self, i: I, value: T) -> T
    where
        T: AtomicWord,
    {
        device_only()
    }
}
