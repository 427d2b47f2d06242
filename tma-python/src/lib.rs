//! Kernels as operators of PyTorch, and for arrays of other Python libraries.
//!
//! A package that is a C library (`crate-type = ["cdylib"]`) declares operators by [`operator!`],
//! and lists them in [`library!`]. `cargo tma wheel` builds it, and packs it into a wheel together
//! with a Python module that registers the operators.
//!
//! ```
//! use tma_python::{Call, Failure, Tensor, TensorMut, operator};
//! use tma_runtime::{TensorView, TensorViewMut};
//!
//! operator! {
//!     /// Adds a row to each row of a matrix of any floats.
//!     pub struct AddRow<'a>("add_row") {
//!         x: Tensor<'a>,
//!         row: Tensor<'a>,
//!         factor: f64 = "1.0",
//!     } -> {
//!         y: TensorMut<'a> = "empty_like(x)",
//!     }
//! }
//!
//! impl AddRow<'_> {
//!     fn run(self, call: &Call<'_>) -> Result<(), Failure> {
//!         let x: TensorView<'_, f32, 2> = self.x.view()?;
//!         let row: TensorView<'_, f32, 1> = self.row.view()?;
//!         let y: TensorViewMut<'_, f32, 2> = self.y.view()?;
//!         if row.shape() != [x.shape()[1]] {
//!             return Err(self.row.refuse("has not as many elements as a row of `x`; pass as many"));
//!         }
//!         // .. launches a kernel with `self.factor` on `call.stream()`
//!         # let _ = (x, row, y, self.factor, call.stream());
//!         Ok(())
//!     }
//! }
//! # use tma_python::Declared;
//! # let schema = AddRow::operator().schema();
//! # assert_eq!(schema, "add_row(Tensor x, Tensor row, *, float factor=1.0) -> Tensor");
//! ```
//!
//! At the root of the library, `tma_python::library!(AddRow)` makes its C interface.
//!
//! # Results
//!
//! The results of an operator are allocated by the caller, so their shapes are described by a text
//! in a part of Python. `torch.compile` evaluates the same text with symbolic extents.
//!
//! | form | value |
//! | --- | --- |
//! | `empty(SHAPE, DTYPE)` | a new tensor in row-major order |
//! | `empty_like(x)` | the same with the shape and the element type of `x` |
//! | `x.shape`, `x.dtype` | those of an argument |
//! | `[m, n]`, `s[0]`, `s[-1]`, `s[1:]`, `s[:-1]`, `s + t`, `len(s)` | shapes, which are lists |
//! | `+`, `-`, `*`, `//`, `%` | arithmetic |
//! | `a if c else b`, `not`, `and`, `or`, comparisons, `is None` | conditions |
//! | `float32`, `bfloat16`, `int8` and so on | element types |

mod argument;
mod call;
mod element;
mod expression;
mod failure;
mod ffi;
mod operator;
mod stub;
mod value;

pub use argument::{Argument, At, Base, Kind, Tensor, TensorMut};
pub use failure::Failure;
#[doc(hidden)]
pub use ffi::{Boxed, CValue, Library, Memory, allocate, boxed, free, synchronize};
pub use operator::{Call, Declared, Field, Gradients, Operator, Parts, Read, Values};
pub use value::{Place, RawTensor, Value};
