//! The operator for Python, which `cargo tma wheel` packs.

use tma_python::{Call, Failure, operator};
use tma_runtime::prelude::*;

use crate::scale;

operator! {
    /// Multiplies each element of a matrix by `factor`.
    pub struct Scale<'a>("scale") {
        x: TensorView<'a, f32, 2>,
        factor: f32,
    } -> {
        y: TensorViewMut<'a, f32, 2> = "empty_like(x)",
    }
    gradients { x: "scale(grad_y.contiguous(), factor)" }
}

impl Scale<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { x, factor, y } = self;
        scale::launch(call.stream(), scale::tiles_of_dst(y.shape()), factor, x, y)?;
        Ok(())
    }
}

tma_python::library!(Scale);
