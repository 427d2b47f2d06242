//! Accesses with an order and a scope, as in `core::sync::atomic`.

use super::{Global, GlobalIndex, Remote, Scalar, SharedArray, bf16, device_only, f16};

/// How an access with a scope orders the thread's other accesses: as `core::sync::atomic::Ordering`.
///
/// A release and an acquire that reads what it wrote order memory: what the first thread did before
/// the release is visible to the second after the acquire. The order is transitive through
/// barriers: it includes what the block's other threads did before a
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
    /// Orders no other accesses. PTX: `.relaxed`.
    Relaxed,
    /// Later accesses of this thread see what was released to what it reads. PTX: `.acquire`.
    Acquire,
    /// Earlier accesses of this thread are seen by those who acquire what it writes. PTX:
    /// `.release`.
    Release,
    /// Both. PTX: `.acq_rel`.
    AcqRel,
}

/// The threads that an access with an order is made for: among others it is a data race, and orders
/// nothing. Source: PTX ISA, "Scope".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the block. PTX: `.cta`.
    Block,
    /// Those of the cluster; in a kernel without clusters, of the block. PTX: `.cluster`.
    Cluster,
    /// All of the device. PTX: `.gpu`.
    Device,
    /// Those of the host and of all devices. PTX: `.sys`.
    System,
}

/// Elements that are added atomically: integers of 32 and 64 bits and floats of 16 to 64. Source:
/// PTX ISA, "Parallel Synchronization and Communication Instructions: atom".
#[diagnostic::on_unimplemented(
    message = "the device adds no `{Self}` atomically",
    label = "not an atomic number"
)]
pub trait AtomicNumber: Scalar {}

/// Elements that are exchanged, and compared and exchanged, atomically: scalars of 32 and 64 bits.
/// Floats are compared by their bits. Source: as for [`AtomicNumber`].
#[diagnostic::on_unimplemented(
    message = "the device does not exchange `{Self}` atomically",
    label = "not 32 or 64 bits"
)]
pub trait AtomicWord: AtomicNumber {}

/// Elements of the other atomics: integers of 32 and 64 bits. Source: as for [`AtomicNumber`].
#[diagnostic::on_unimplemented(
    message = "the device has no atomics on `{Self}` but, maybe, additions and exchanges",
    label = "not an atomic integer"
)]
pub trait AtomicInteger: AtomicWord {}

/// Elements of [`Global::add_vec`]. Source: PTX ISA, "red", the vector forms.
#[diagnostic::on_unimplemented(
    message = "the device adds no vectors of `{Self}` atomically",
    label = "not an element of atomic vectors",
    note = "it adds vectors of f16, bf16 and f32"
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

/// The methods of each receiver, from a row for each operation that fetches: the traits of its
/// elements, what it does, and its name in PTX.
macro_rules! accesses {
    ($($fetch:ident of $Element:ident: $does:literal, $ptx:literal;)+) => {
        receiver! {
            [T: Scalar] Global<T>, impl GlobalIndex, "global", $($fetch of $Element: $does, $ptx;)+
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
        /// Accesses that do not race with each other, as those of `core::sync::atomic`: see
        /// [`Order`] and [`Scope`]. Traps if there is no element `i`. Shared memory has no scope
        /// beyond [`Scope::Cluster`].
        impl<$($generic)*> $Receiver {
            /// Reads element `i`. The order is [`Relaxed`](Order::Relaxed) or
            /// [`Acquire`](Order::Acquire).
            ///
            #[doc = concat!("PTX: `ld.{order}.{scope}.", $space, "` (PTX ISA, \"ld\").")]
            #[must_use]
            pub fn load(self, i: $index, order: Order, scope: Scope) -> T {
                device_only()
            }

            /// Writes element `i`. The order is [`Relaxed`](Order::Relaxed) or
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

            /// Atomically replaces element `i` with `new` if it is `current`, bit by bit, and
            /// returns the old value: it was replaced if that equals `current`.
            ///
            /// Unlike Rust's it has one order, for success and failure, and gives the value alone.
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
    /// without a result. `i` and `N` as for [`get_vec`](Global::get_vec). The order is
    /// [`Relaxed`](Order::Relaxed) or [`Release`](Order::Release).
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
