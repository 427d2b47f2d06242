//! What callers do with sums on their way to C, by functions of their own.

use super::instances::{Key, key};
use tma_runtime::launch::{Arg, KernelSpec};

/// Kernels that were made from [`with_options`](super::full::with_options) with other functions
/// between the sums and C, and what these functions take besides an element and its place.
///
/// ```
/// use tma_kernels::gemm::{Epilogue, GemmOptions, gemm};
/// use tma_runtime::prelude::*;
///
/// // With `#[tma_module(from = .., only = ["bf16_low64_nt"])]`, what is left is `bf16_low64_nt`.
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
}

impl<'a> Epilogue<'a> {
    /// Of all instances of `full` in a module that was made from `with_options`.
    pub const fn of(kernels: &'static [KernelSpec]) -> Self {
        Self { kernels, further: vec![] }
    }

    /// With what the module's functions take beyond those that they replace: the result of its
    /// `full::further`. A launch checks it as it checks all arguments.
    #[must_use]
    pub fn with(mut self, further: impl Into<Vec<Arg<'a>>>) -> Self {
        self.further = further.into();
        self
    }

    /// The instance for `wanted`, if it is among these.
    pub(super) fn find(&self, wanted: Key) -> Option<&'static KernelSpec> {
        self.kernels.iter().find(|kernel| key(true, kernel.name) == Some(wanted))
    }

    /// The last arguments of a launch.
    pub(super) fn into_arguments(self) -> Vec<Arg<'a>> {
        self.further
    }
}
