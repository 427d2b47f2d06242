//! The attributes of TMA kernels. `tma-codegen` implements them; `tma-runtime` has the vocabulary.

use proc_macro::TokenStream;

/// Turns a function into a kernel.
///
/// Options: `threads = 128` or `threads = [x, y, z]` (threads per block, required),
/// `min_blocks = n` (blocks that should fit one multiprocessor at the same time),
/// `max_registers = n` (registers per thread), and `instances(name = <f16, 128>, ..)` or
/// `instances(T in [f16, bf16], N in [64, 128])` (the instances of a generic kernel to compile: one
/// by one, or all combinations of lists). The language reference has them all.
///
/// The function becomes a module of its name, with `launch` and `SPEC`, and a module in it for each
/// instance. Mistakes are reported with a code, `TMA0001` to `TMA0999`, which has a page in the
/// book.
#[proc_macro_attribute]
pub fn tma_kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    tma_codegen::expand::kernel(attr.into(), item.into()).into()
}

/// Lets the kernels of a module share its constants, type aliases and `#[tma_device]` functions.
///
/// An attribute sees only its own item, so kernels and the items that they share must be in one
/// module.
#[proc_macro_attribute]
pub fn tma_module(attr: TokenStream, item: TokenStream) -> TokenStream {
    tma_codegen::expand::module(attr.into(), item.into()).into()
}

/// A function that the kernels of the same `#[tma_module]` can call; it is inlined.
#[proc_macro_attribute]
pub fn tma_device(attr: TokenStream, item: TokenStream) -> TokenStream {
    tma_codegen::expand::device(attr.into(), item.into()).into()
}
