//! Accesses with an order and a scope, as in `core::sync::atomic`.

use super::{Global, GlobalIndex, Peer, Remote, Scalar, SharedArray, bf16, device_only, f16};

/// The ordering of the thread's other accesses around an access with a scope, as in
/// `core::sync::atomic::Ordering`.
///
/// A release, and an acquire that reads the value it wrote, order memory: accesses of the first
/// thread before the release are visible to the second thread after the acquire. The order is
/// transitive through barriers: it includes accesses of the block's other threads before a
/// [`sync_threads`](super::sync_threads). Source: PTX ISA, "Release and acquire patterns".
///
/// There is no sequentially consistent order.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(message: Global<f32>, flag: Global<u32>, sender: bool, x: f32) {
/// if sender {
///     message.set(0, x);
///     flag.store(0, 1, Order::Release, Scope::Device); // the message, before the flag
/// } else if flag.load(0, Order::Acquire, Scope::Device) == 1 {
///     let message = message.get(0); // the flag, before the message
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Ordering")]
pub enum Order {
    /// Does not order other accesses. PTX: `.relaxed`.
    Relaxed,
    /// Makes writes that were released together with the value read visible to later accesses of
    /// this thread. PTX: `.acquire`.
    Acquire,
    /// Makes earlier accesses of this thread visible to threads that acquire the value written.
    /// PTX: `.release`.
    Release,
    /// Combines `Acquire` and `Release`. PTX: `.acq_rel`.
    AcqRel,
}

/// The threads that an access synchronises with. Conflicting accesses of threads outside of the
/// scope are a data race, and are not ordered. Source: PTX ISA, "Scope".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block. PTX: `.cta`.
    Block,
    /// The threads of the cluster, or of the block in a kernel without clusters. PTX: `.cluster`.
    Cluster,
    /// All threads of the device. PTX: `.gpu`.
    Device,
    /// The threads of the host and of all devices. PTX: `.sys`.
    System,
}

/// Elements with atomic addition: integers of 32 and 64 bits, and floats of 16 to 64 bits. Source:
/// PTX ISA, "Parallel Synchronization and Communication Instructions: atom".
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added atomically",
    label = "not an integer or float with atomic addition",
    note = "atomic addition is for integers of 32 and 64 bits, and for f16, bf16, f32 and f64"
)]
pub trait AtomicNumber: Scalar {}

/// Elements with atomic exchange and compare-and-exchange: scalars of 32 and 64 bits. Floats are
/// compared by their bits. Source: the same as for [`AtomicNumber`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be exchanged atomically",
    label = "not a scalar of 32 or 64 bits"
)]
pub trait AtomicWord: AtomicNumber {}

/// Elements with the other atomic operations: integers of 32 and 64 bits. Source: the same as for
/// [`AtomicNumber`].
#[diagnostic::on_unimplemented(
    message = "this atomic operation does not support `{Self}`",
    label = "not an integer of 32 or 64 bits"
)]
pub trait AtomicInteger: AtomicWord {}

/// Elements of [`Global::add_vec`]. Source: PTX ISA, "red", the vector forms.
#[diagnostic::on_unimplemented(
    message = "vectors of `{Self}` cannot be added atomically",
    label = "not an element type of atomic vectors",
    note = "vectors of f16, bf16 and f32 can be added"
)]
pub trait AtomicLane: AtomicNumber {}

macro_rules! elements {
    ($($Trait:ident: $($ty:ty)+;)+) => { $($(impl $Trait for $ty {})+)+ };
}

elements! {
    AtomicNumber: i32 u32 i64 u64 usize f16 bf16 f32 f64;
    AtomicWord: i32 u32 i64 u64 usize f32 f64;
    AtomicInteger: i32 u32 i64 u64 usize;
    AtomicLane: f16 bf16 f32;
}

/// Generates the methods of each receiver. A row per read-modify-write operation gives the trait of
/// its elements, its description and its name in PTX.
macro_rules! accesses {
    ($($fetch:ident of $Element:ident: $does:literal, $ptx:literal;)+) => {
        receiver! {
            [T: Scalar] Global<T>, impl GlobalIndex, "global", $($fetch of $Element: $does, $ptx;)+
        }
        receiver! {
            [T: Scalar] Peer<Global<T>>, impl GlobalIndex, "global", $($fetch of $Element: $does, $ptx;)+
        }
        receiver! {
            [T: Scalar, const N: u32] SharedArray<T, N>, u32, "shared",
            $($fetch of $Element: $does, $ptx;)+
        }
        receiver! {
            [T: Scalar, const N: u32] Remote<SharedArray<T, N>>, u32, "shared::cluster",
            $($fetch of $Element: $does, $ptx;)+
        }
    };
}

macro_rules! receiver {
    (
        [$($generic:tt)*] $Receiver:ty, $index:ty, $space:literal,
        $($fetch:ident of $Element:ident: $does:literal, $ptx:literal;)+
    ) => {
        /// # Orders and scopes
        ///
        /// Accesses that do not race with each other, like those of `core::sync::atomic`: see
        /// [`Order`] and [`Scope`]. They trap if there is no element `i`. Shared memory has no
        /// scope beyond [`Scope::Cluster`], and memory of another rank none but [`Scope::System`].
        impl<$($generic)*> $Receiver {
            /// Reads element `i`. The order must be [`Relaxed`](Order::Relaxed) or
            /// [`Acquire`](Order::Acquire).
            ///
            #[doc = concat!("PTX: `ld.{order}.{scope}.", $space, "` (PTX ISA, \"ld\").")]
            #[must_use]
            pub fn load(self, i: $index, order: Order, scope: Scope) -> T {
                device_only()
            }

            /// Writes element `i`. The order must be [`Relaxed`](Order::Relaxed) or
            /// [`Release`](Order::Release).
            ///
            #[doc = concat!("PTX: `st.{order}.{scope}.", $space, "` (PTX ISA, \"st\").")]
            pub fn store(self, i: $index, value: T, order: Order, scope: Scope) {
                device_only()
            }

            /// Atomically replaces element `i` with `value`, and returns the old value.
            ///
            #[doc = concat!("PTX: `atom.{order}.{scope}.", $space, ".exch` (PTX ISA, \"atom\").")]
            #[doc(alias = "atomicExch")]
            pub fn swap(self, i: $index, value: T, order: Order, scope: Scope) -> T
            where
                T: AtomicWord,
            {
                device_only()
            }

            /// Atomically replaces element `i` with `new` if it equals `current` bitwise, and
            /// returns the old value. The element was replaced if the returned value equals
            /// `current`.
            ///
            /// Unlike Rust's method, this takes one order for success and failure, and returns only
            /// the value.
            ///
            #[doc = concat!("PTX: `atom.{order}.{scope}.", $space, ".cas` (PTX ISA, \"atom\").")]
            #[doc(alias = "atomicCAS")]
            pub fn compare_exchange(self, i: $index, current: T, new: T, order: Order, scope: Scope) -> T
            where
                T: AtomicWord,
            {
                device_only()
            }

            $(
                #[doc = concat!("Atomically ", $does, ", and returns the old value.")]
                ///
                #[doc = concat!(
                    "PTX: `atom.{order}.{scope}.", $space, ".", $ptx, "` (PTX ISA, \"atom\")."
                )]
                pub fn $fetch(self, i: $index, value: T, order: Order, scope: Scope) -> T
                where
                    T: $Element,
                {
                    device_only()
                }
            )+
        }
    };
}

accesses! {
    fetch_add of AtomicNumber: "adds `value` to element `i`; integers wrap", "add";
    fetch_min of AtomicInteger: "sets element `i` to the minimum of it and `value`", "min";
    fetch_max of AtomicInteger: "sets element `i` to the maximum of it and `value`", "max";
    fetch_and of AtomicInteger: "sets element `i` to the bitwise AND of it and `value`", "and";
    fetch_or of AtomicInteger: "sets element `i` to the bitwise OR of it and `value`", "or";
    fetch_xor of AtomicInteger: "sets element `i` to the bitwise XOR of it and `value`", "xor";
}

impl<T: Scalar> Global<T> {
    /// Adds the elements of `value` to those from `i` on, each atomically, by one instruction
    /// without a result. The rules for `i` and `N` are those of [`get_vec`](Global::get_vec). The
    /// order must be [`Relaxed`](Order::Relaxed) or [`Release`](Order::Release).
    ///
    /// PTX: `red.{order}.{scope}.global.add.v2`, `.v4` or `.v8` (PTX ISA, "red").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(sums: Global<f32>, part: [f32; 4]) {
    /// sums.add_vec(thread_idx().x * 4, part, Order::Relaxed, Scope::Device);
    /// # }
    /// ```
    pub fn add_vec<const N: usize>(self, i: impl GlobalIndex, value: [T; N], order: Order, scope: Scope)
    where
        T: AtomicLane,
    {
        device_only()
    }
}
