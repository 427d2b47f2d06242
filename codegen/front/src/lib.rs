//! The front end of the compiler of TMA kernels: the intermediate representation, the parser and
//! the checks of single statements. `tma-codegen` is the package to depend on.
//!
//! A stage uses only those before it:
//!
//! | module | contents |
//! | --- | --- |
//! | `limits`, `target`, `quick`, `escape`, `bug` | numbers of the hardware, chips, and helpers |
//! | `ir` | kernels as the later stages see them |
//! | `abi` | the interface between host and device |
//! | `diag` | mistakes, their codes, texts and helps |
//! | `infer` | types that are left out |
//! | `words` | the vocabulary of kernels |
//! | `parse` | Rust to `ir` |
//! | `check` | rules for statements, the result of which is a [`CheckedKernel`](check::CheckedKernel) |

#[macro_use]
mod bug;

pub mod abi;
pub mod check;
mod checks;
pub mod diag;
pub mod escape;
mod infer;
pub mod ir;
pub mod limits;
pub mod parse;
pub mod quick;
pub mod target;
pub mod words;

pub use checks::Checks;
