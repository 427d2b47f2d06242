//! Functions of the caller between the sums and C.

use super::GemmError;
use super::instances::{Key, key};
use tma_runtime::launch::{Arg, KernelSpec};

/// Kernels made from [`with_options`](super::full::with_options) with other functions between the
/// sums and C, and the arguments of these functions besides an element and its position.
///
/// ```
/// use tma_kernels::gemm::{Epilogue, GemmOptions, gemm};
/// use tma_runtime::prelude::*;
///
/// // With `#[tma_module(from = .., only = ["bf16_t64x64_nt"])]`, what is left is `bf16_t64x64_nt`.
/// # use tma_kernels::gemm::full::with_options as softcap;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[bf16::from_f32(0.5); 64 * 32], [64, 32])?;
/// let b = device.tensor(&[bf16::from_f32(2.0); 16 * 32], [16, 32])?;
/// let mut c = device.zeros::<bf16, 2>([64, 16])?;
/// let epilogue = Some(Epilogue::of(&softcap::full::INSTANCES));
/// gemm(&device, &a, &b, &mut c, GemmOptions { transpose_b: true, epilogue, ..GemmOptions::default() })?;
/// # assert_eq!(c.to_vec()?, [bf16::from_f32(32.0); 64 * 16]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Epilogue<'a> {
    kernels: &'static [KernelSpec],
    further: Vec<Arg<'a>>,
    /// Whether they are this package's kernels that pick matrices by indices.
    picks: bool,
}

impl<'a> Epilogue<'a> {
    /// Makes an epilogue of all instances of `full` in a module made from `with_options`.
    pub const fn of(kernels: &'static [KernelSpec]) -> Self {
        Self { kernels, further: vec![], picks: false }
    }

    /// Makes an epilogue of all instances of `full` in this package's module that picks matrices.
    pub(super) const fn of_indices(kernels: &'static [KernelSpec]) -> Self {
        Self { kernels, further: vec![], picks: true }
    }

    /// Adds the arguments that the module's functions take beyond those that they replace: the
    /// result of its `full::further`. A launch checks them like all arguments.
    #[must_use]
    pub fn with(mut self, further: impl Into<Vec<Arg<'a>>>) -> Self {
        self.further = further.into();
        self
    }

    /// Returns the instance for `wanted`, if it is among these.
    pub(super) fn find(&self, wanted: Key) -> Option<&'static KernelSpec> {
        self.kernels.iter().find(|kernel| key(true, kernel.name) == Some(wanted))
    }

    /// Returns the error of a missing instance for elements and a layout, or for a chosen tile.
    pub(super) fn missing(&self, types: &'static str, layout: &str, is_chosen: bool) -> GemmError {
        let mut known = self.kernels.iter().filter_map(|kernel| key(true, kernel.name));
        if !self.picks {
            GemmError::missing_epilogue(types, is_chosen)
        } else if !known.any(|key| key.types == types) {
            GemmError::no_indices(types)
        } else if is_chosen {
            GemmError::no_choice_of_indices(types)
        } else {
            GemmError::missing(types, layout, true)
        }
    }

    /// Returns the last arguments of a launch.
    pub(super) fn into_arguments(self) -> Vec<Arg<'a>> {
        self.further
    }
}
