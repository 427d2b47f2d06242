//! What tensor cores compute, instruction by instruction.
//!
//! A [`Case`] is an instruction with its operands: types, shape, layouts, what is negated, and the
//! kind of numbers that go in. It runs as PTX made here, without the compiler, on a GPU and on the
//! simulator, which have to agree in every bit, and as [plain Rust](plain) in `f64`, which has to
//! agree within the bounds of the hardware's arithmetic.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`instruction`] | instructions as text |
//! | [`kernel`] | the kernel that runs cases, a block each |
//! | [`case`] | cases and their names |
//! | [`list`] | the cases that there are |
//! | [`forms`] | every form of `wgmma`, for the assembler |
//! | [`number`] | the elements' types, as bits and as `f64` |
//! | [`draw`] | random numbers of many kinds |
//! | [`operand`] | matrices, and how they lie in shared memory and registers |
//! | [`plain`] | the sums in `f64`, with bounds |
//! | [`batch`] | cases of one kernel, run together |
//! | [`layout`] | which elements descriptors lead to, asked of the hardware |
//! | [`metadata`] | what the metadata of a sparse A mean, asked likewise |
//! | [`warp`] | the same of `mma.sync` |
//! | [`double`] | the same of its shapes for `f64` |
//! | `warp_kernel` | the kernel that runs cases of `mma.sync` |
//! | [`corpus`] | what an H200 gave, kept |
//! | [`run`] | runs lists of cases, and compares |

pub mod batch;
pub mod case;
pub mod corpus;
pub mod double;
pub mod draw;
pub mod forms;
pub mod instruction;
pub mod kernel;
pub mod layout;
pub mod list;
pub mod metadata;
pub mod number;
pub mod operand;
pub mod plain;
pub mod run;
pub mod warp;
mod warp_kernel;

pub use case::Case;
