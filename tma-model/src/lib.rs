//! A description of the hardware: the types, numbers and rules that the compiler, the runtime and
//! the simulator share.
//!
//! | module | contents |
//! | --- | --- |
//! | [`scalar`] | the scalars of kernels, and the data types of tensor maps |
//! | [`swizzle`] | the layout of a tile's rows in shared memory |
//! | [`tile`] | the geometry of a tile, and the tiles that a tensor map can move |
//! | [`tensor_map`] | the parameters of a tensor map, and the driver's rules for them |
//! | [`operation`] | reductions and atomics, with the types that they support |
//! | [`rule`] | the rules of synchronisation, which compiler and simulator check |
//! | [`sync`] | vector clocks, mbarriers, groups of copies and conflicting accesses |
//! | [`mma`] | tensor cores: types, shapes, fragments, descriptors, layouts |
//! | [`banks`] | the wavefronts of an access to shared memory |
//! | [`assertion`] | reports of failed assertions, from kernels without calls |
//! | [`help`] | the changes that findings suggest, in the words of both languages |
//! | [`shared_name`] | the names of shared variables, which PTX has as comments |
//! | [`printf`] | the format strings of `printf` |
//! | [`span`] | spans of time that kernels name, which PTX has as comments |
//! | [`timeline`] | the rows of timelines, of the simulator and of GPUs |
//! | [`limits`] | all other numbers that the hardware fixes, with their sources |
//!
//! ```
//! use tma_model::{Scalar, TileSwizzle, TileType, limits};
//!
//! let tile = TileType { element: Scalar::F16, extents: vec![128, 64], swizzle: TileSwizzle::B128 };
//! assert_eq!((tile.row_bytes(), tile.bytes()), (128, 16 * 1024));
//! // A row is as long as the swizzle's span: the copy engine moves the tile at once.
//! assert_eq!(tile.panels(), 1);
//! assert!(tile.shared_bytes() <= limits::SHARED_BYTES);
//! ```
//!
//! The package is pure data and arithmetic. It has no dependencies, because it is compiled into a
//! procedural macro, into build scripts and into programs alike. The *semantics* of instructions
//! are not here: the simulator has its own, so that it can judge the compiler independently.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod assertion;
pub mod banks;
pub mod help;
pub mod limits;
pub mod mma;
pub mod operation;
pub mod own_ptx;
pub mod printf;
pub mod rule;
pub mod scalar;
pub mod shared_name;
pub mod span;
pub mod swizzle;
pub mod sync;
pub mod tensor_map;
pub mod tile;
pub mod timeline;

pub use operation::{AtomicOp, FetchOp, ReduceFamily, ReduceOp};
pub use scalar::{DataType, Scalar};
pub use swizzle::{Interleave, Swizzle, TileSwizzle};
pub use tensor_map::TensorMap;
pub use tile::TileType;
