//! Conformance tests of tensor cores, instruction by instruction.
//!
//! A [`Case`] is an instruction with its operands: types, shape, layouts, negations, and the kind
//! of numbers that go in. It runs as PTX made here, without the compiler, on a GPU and on the
//! simulator, which must agree in every bit. It also runs as [plain Rust](mod@reference) in `f64`,
//! which must agree within the bounds of the hardware's arithmetic.
//!
//! | module | contents |
//! | --- | --- |
//! | [`instruction`] | instructions as text |
//! | [`kernel`] | the kernel that runs cases, one per block |
//! | [`case`] | cases and their names |
//! | [`list`] | the lists of cases |
//! | [`forms`] | all forms of `wgmma`, for the assembler |
//! | [`number`] | the types of elements, as bits and as `f64` |
//! | [`draw`] | random numbers of many kinds |
//! | [`operand`] | matrices, and their layouts in shared memory and registers |
//! | [`mod@reference`] | sums in `f64`, with error bounds |
//! | [`batch`] | several cases in one kernel |
//! | [`layout`] | the elements that descriptors address, as tested on the hardware |
//! | [`metadata`] | the meaning of a sparse A's metadata, as tested on the hardware |
//! | [`warp`] | cases of `mma.sync` |
//! | [`double`] | cases of `mma.sync` in `f64` |
//! | `warp_kernel` | the kernel that runs cases of `mma.sync` |
//! | [`corpus`] | the recorded results of an H200 |
//! | [`run`] | runs lists of cases, and compares results |

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
pub mod reference;
pub mod run;
pub mod warp;
mod warp_kernel;

pub use case::Case;
