//! Tensor cores: the matrix instructions of a warpgroup, `wgmma`, and of a warp, `mma.sync`, as
//! types, numbers and layouts.
//!
//! An instruction of a warpgroup computes D = A · B + D, where A has 64 rows, B has N columns and
//! both have K elements along the dimension that is summed. A *left* operand is A, a *right*
//! operand is B.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`element`] | the types of operands and accumulators, and which of them go together |
//! | [`shape`] | the forms of an instruction: N, K, registers, the PTX version |
//! | [`fragment`] | which element each register of each thread holds |
//! | [`descriptor`] | the 64 bits that name an operand in shared memory, and how they are read |
//! | [`metadata`] | which elements of a sparse A are there |
//! | [`layout`] | tiles in shared memory as operands: strides, advances, alignment |
//! | [`warp`] | the forms of `mma.sync`, and where B is |
//! | [`double`] | those in f64 |
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
pub use element::{Accumulated, Operand};
pub use fragment::Place;
pub use layout::{Major, OperandFault, OperandTile};
pub use metadata::{GROUP_BITS, MetadataPlace};
pub use shape::{Form, FormFault};
pub use warp::{WARP_COLUMNS, WARP_ROWS, WarpFault, WarpForm};

/// Rows of A and D in one instruction. Source: PTX ISA, "wgmma.mma_async".
pub const ROWS: u32 = 64;

/// Bytes that a row of a dense operand takes along K in one instruction, whatever its type.
/// Source: PTX ISA, "wgmma.mma_async", the shapes of each type.
pub const STEP_BYTES: u32 = 32;

/// Bytes of the chunks that operands are made of: a row of a core matrix.
/// Source: PTX ISA, "Core Matrices".
pub const CHUNK_BYTES: u32 = 16;

/// Rows of a core matrix. Source: PTX ISA, "Core Matrices".
pub const CORE_ROWS: u32 = 8;
