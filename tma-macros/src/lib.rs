//! The attributes of TMA kernels. `tma-codegen` implements them. `tma-runtime` defines the
//! vocabulary and re-exports them:
//!
//! ```ignore
//! use tma_runtime::prelude::*;
//!
//! /// `dst = factor * src`, one block per tile of 32 rows and 64 columns.
//! #[tma_kernel(threads = 128)]
//! pub fn scale(
//!     factor: f32,
//!     src: TensorMap<Tile<f32, Shape2<32, 64>>>,
//!     dst: TensorMap<Tile<f32, Shape2<32, 64>>>,
//! ) {
//!     let tile: Tile<f32, Shape2<32, 64>> = shared();
//!     let full: Barrier = shared();
//!     let at = dst.block_tile();
//!     let thread = thread_idx().x;
//!
//!     // One thread sets the barrier up, and starts the load.
//!     if thread == 0 {
//!         full.init(1);
//!         fence_barrier_init();
//!     }
//!     sync_threads();
//!     if thread == 0 {
//!         full.arrive_expect_tx(tile.bytes());
//!         src.load(tile, at, full);
//!     }
//!     full.wait(0);
//!
//!     // Each thread has 16 elements, in one column.
//!     for i in 0..16u32 {
//!         let place = [i * 2 + thread / 64, thread % 64];
//!         tile.set(place, factor * tile.get(place));
//!     }
//!
//!     // The store must see what all threads have written.
//!     fence_proxy_async();
//!     sync_threads();
//!     if thread == 0 {
//!         dst.store(at, tile);
//!         bulk_commit_group();
//!         bulk_wait_group_read::<0>();
//!     }
//! }
//! ```
//!
//! `#[tma_module]` encloses kernels that share constants, type aliases and functions, and
//! `#[tma_device]` marks such a function. The package's build script compiles the kernels to PTX.

use proc_macro::TokenStream;

/// Turns a function into a kernel.
///
/// Options: `threads = 128` or `threads = [x, y, z]` (threads per block, required),
/// `min_blocks = n` (blocks that should fit on one multiprocessor at once), `max_registers = n`
/// (registers per thread), and `instances(name = <f16, 128>, ..)` or
/// `instances(T in [f16, bf16], N in [64, 128])` (the instances of a generic kernel to compile: one
/// by one, or all combinations of lists). The language reference lists all options.
///
/// The function becomes a module of the same name. It contains `launch`, `SPEC`, and a module for
/// each instance. Mistakes are reported with a code, `TMA0001` to `TMA0999`, which has a page in
/// the book.
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

/// Marks a function that kernels of the same `#[tma_module]` can call. It is inlined.
#[proc_macro_attribute]
pub fn tma_device(attr: TokenStream, item: TokenStream) -> TokenStream {
    tma_codegen::expand::device(attr.into(), item.into()).into()
}
