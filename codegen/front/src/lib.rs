//! The front end of the compiler of TMA kernels: the intermediate representation, the parser and
//! the checks of single statements. `tma-codegen` is the package to depend on.
//!
//! ```
//! use tma_front::check::check;
//! use tma_front::diag::Sink;
//! use tma_front::parse::item::template::Elsewhere;
//! use tma_front::parse::{item::file, parse};
//!
//! let text = "#[tma_kernel(threads = 32)] fn k(out: Global<u32>) { out.set(thread_idx().x, 7); }";
//! let found = file::kernels_in(text, &Elsewhere::UNKNOWN);
//! let (item, shared) = &found[0];
//! let mut sink = Sink::default();
//! let kernel = parse(item, shared, &mut sink).kernels.remove(0);
//! let checked = check(kernel, &mut sink).expect("it breaks no rule");
//! assert_eq!(checked.kernel().params.len(), 1);
//! ```
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
