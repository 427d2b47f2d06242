//! Tensor cores: the matrix instructions of a warpgroup, `wgmma`, and of a warp, `mma.sync`, as
//! types, numbers and layouts.
//!
//! A warpgroup's instruction computes D = A · B + D, where A has 64 rows, B has N columns and both
//! have K elements along the reduction dimension. The *left* operand is A, and the *right* operand
//! is B.
//!
//! | module | contents |
//! | --- | --- |
//! | [`element`] | the types of operands and accumulators, and their valid combinations |
//! | [`shape`] | the forms of an instruction: N, K, registers, the PTX version |
//! | [`fragment`] | the element that each register of each thread holds |
//! | [`descriptor`] | the 64-bit descriptors of operands in shared memory, and how they are read |
//! | [`metadata`] | the elements of a sparse A that are stored |
//! | [`layout`] | tiles in shared memory as operands: strides, advances, alignment |
//! | [`warp`] | the forms of `mma.sync`, and the layout of B |
//! | [`double`] | the f64 forms of `mma.sync` |
//!
//! Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"; for
//! canonical layouts CUTLASS, `cute/atom/mma_traits_sm90_gmma.hpp`.

pub mod descriptor;
pub mod double;
pub mod element;
pub mod fragment;
pub mod layout;
pub mod metadata;
pub mod shape;
pub mod warp;

pub use descriptor::{Descriptor, DescriptorFault};
pub use double::DoubleForm;
pub use element::{Accumulator, Operand};
pub use fragment::FragmentSlot;
pub use layout::{Major, OperandFault, OperandTile};
pub use metadata::{GROUP_BITS, MetadataLocation};
pub use shape::{Form, FormFault};
pub use warp::{WARP_COLUMNS, WARP_ROWS, WarpFault, WarpForm};

/// Rows of A and D in one instruction. Source: PTX ISA, "wgmma.mma_async".
pub const ROWS: u32 = 64;

/// Bytes of a dense operand's row along K in one instruction, for every type. Source: PTX ISA,
/// "wgmma.mma_async", the shapes of each type.
pub const STEP_BYTES: u32 = 32;

/// Bytes of the chunks that operands consist of: a row of a core matrix. Source: PTX ISA, "Core
/// Matrices".
pub const CHUNK_BYTES: u32 = 16;

/// Rows of a core matrix. Source: PTX ISA, "Core Matrices".
pub const CORE_ROWS: u32 = 8;
