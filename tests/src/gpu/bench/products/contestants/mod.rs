//! The contestants of the GEMM benchmarks: kernels, the functions of libraries, and PTX from
//! elsewhere.
//!
//! To add one, push it in [`kernels`]: a name, and a closure that queues C = A · Bᵀ.

pub mod choices;
pub mod tiled;
pub mod yardstick;

use std::cell::RefCell;

use tma_kernels::gemm::{Choice, GemmOptions, Workspace, gemm};
use tma_runtime::prelude::*;

use self::tiled::Blocks;
use super::precision::Precision;
use super::problem::Matrices;
use crate::gpu::bench::libraries::cublas::Cublas;
use crate::gpu::bench::libraries::cublaslt::Product;

/// The kind of a contestant, which decides what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A vendor's library, which every other contestant is compared with.
    Library,
    /// A kernel of this repository without specialised warps.
    Dense,
    /// Any other kernel of this repository.
    Kernel,
    /// PTX from elsewhere.
    Yardstick,
}

/// An implementation of a GEMM.
pub struct Contestant<'a, P: Precision> {
    /// The name in results.
    pub name: String,
    /// The kind of contestant.
    pub role: Role,
    multiply: Box<Multiply<'a, P>>,
}

/// Queues a GEMM.
type Multiply<'a, P> = dyn Fn(&Stream, &mut Matrices<P>) -> anyhow::Result<()> + 'a;

impl<'a, P: Precision> Contestant<'a, P> {
    /// Creates a contestant that queues GEMMs by this function.
    pub fn new(
        name: impl Into<String>,
        role: Role,
        multiply: impl Fn(&Stream, &mut Matrices<P>) -> anyhow::Result<()> + 'a,
    ) -> Self {
        Self { name: name.into(), role, multiply: Box::new(multiply) }
    }

    /// Queues C = A · Bᵀ.
    ///
    /// # Errors
    ///
    /// Errors of the launch, and of the library.
    pub fn multiply(&self, stream: &Stream, matrices: &mut Matrices<P>) -> anyhow::Result<()> {
        (self.multiply)(stream, matrices)
    }
}

/// Returns the kernels of this repository.
pub fn kernels<P: Precision>() -> Vec<Contestant<'static, P>> {
    let tiled = P::tiled().into_iter().map(|kernel| {
        let role = match kernel.blocks {
            Blocks::PerTile => Role::Dense,
            Blocks::Persistent => Role::Kernel,
        };
        Contestant::new(kernel.kernel.name, role, move |stream, matrices| {
            Ok(kernel.multiply(stream, matrices)?)
        })
    });
    tiled.chain([library(None)]).collect()
}

/// Returns `tma_kernels::gemm`, with the given choice or with its own.
pub fn library<P: Precision>(choice: Option<Choice>) -> Contestant<'static, P> {
    let name = match choice {
        None => "tma_kernels::gemm".to_owned(),
        Some(choice) => format!("tma_kernels::gemm {}", choices::word(choice)),
    };
    let workspace = RefCell::new(None);
    Contestant::new(name, Role::Kernel, move |stream, Matrices { a, b, c }| {
        let mut workspace = workspace.borrow_mut();
        if workspace.is_none() {
            *workspace = Some(Workspace::new(a.device())?);
        }
        let workspace = workspace.as_mut();
        let options = GemmOptions { transpose_b: true, choice, workspace, ..GemmOptions::default() };
        Ok(gemm(stream, &*a, &*b, c, options)?)
    })
}

/// Returns cuBLAS, with the algorithm that it chooses.
pub fn cublas<P: Precision>(library: &Cublas) -> Contestant<'_, P> {
    Contestant::new("cublas", Role::Library, |_, Matrices { a, b, c }| library.multiply(P::TYPES, a, b, c))
}

/// Returns cuBLASLt, with one of the algorithms that its heuristics propose.
pub fn cublaslt<'a, P: Precision>(
    name: &str,
    product: &'a Product<'_>,
    algorithm: usize,
) -> Contestant<'a, P> {
    Contestant::new(name, Role::Library, move |stream, Matrices { a, b, c }| {
        product.multiply(algorithm, a, b, c, stream)
    })
}
