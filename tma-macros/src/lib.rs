//! The attributes of TMA kernels; `tma-codegen` has what is behind them, `tma-runtime` the vocabulary.

use proc_macro::TokenStream;

/// Makes a kernel of a function.
///
/// Options: `threads = 128` or `threads = [x, y, z]` (threads a block, needed), `min_blocks = n` (blocks that
/// should fit one multiprocessor at once), `max_registers = n` (registers of a thread), and
/// `instances(name = <f16, 128>, ..)` or `instances(T in [f16, bf16], N in [64, 128])` (what to compile of a
/// generic kernel: instances by name, or all combinations of lists).
///
/// The function becomes a module of its name, with `launch` and `SPEC`; each instance a module within it.
/// Mistakes are reported with a code, `TMA0001` to `TMA0999`, each of which has a page in the book.
#[proc_macro_attribute]
pub fn tma_kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    tma_codegen::expand::kernel(attr.into(), item.into()).into()
}

/// Lets the kernels of a module share its constants, type aliases and `#[tma_device]` functions.
///
/// An attribute sees only the item that it stands on, so what kernels share must stand in one module.
#[proc_macro_attribute]
pub fn tma_module(attr: TokenStream, item: TokenStream) -> TokenStream {
    tma_codegen::expand::module(attr.into(), item.into()).into()
}

/// A function that the kernels of the same `#[tma_module]` can call; it is inlined.
#[proc_macro_attribute]
pub fn tma_device(attr: TokenStream, item: TokenStream) -> TokenStream {
    tma_codegen::expand::device(attr.into(), item.into()).into()
}
