//! Gradients: candle's backward pass, by kernels.
//!
//! A result keeps the tensors of its operation, which candle hands back with the gradient of the
//! result. Gradients have the types of their tensors. Those of tensors that are neither variables
//! nor computed from some are not computed.

mod attention;
mod linear;
mod rows;

use std::sync::Mutex;

use candle_core::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp2, CustomOp3, Layout, Shape, Storage, Tensor, bail,
};
use tma_kernels::gemm::Activation;
use tma_kernels::model::Gate;

use crate::attention::{Mask, Packed};
use crate::error::Result;
use crate::operation::{Argument, Operation};
use crate::rotary_emb::{Axes, rotated_back};

/// The gradients of an operation, with its options.
#[derive(Clone, Debug)]
pub(crate) enum Backward {
    /// None, for this reason.
    Unsupported(&'static str),
    /// Those of `x`, `weight` and perhaps `bias`, before this activation.
    Linear(Activation),
    /// Those of `q`, `k` and `v`, batch × sequence × heads × depth, or without the batch if sequences
    /// are packed. `lse` has the logarithm of each row's sum of exponentials, batch × heads ×
    /// queries, if a gradient is wanted.
    Attention { mask: Mask, packed: Option<Packed>, lse: Option<Tensor> },
    /// Those of `x`, `weight` and perhaps `bias`.
    Norm { is_centred: bool, eps: f32 },
    /// That of `x`, from the result.
    Softmax { is_log: bool },
    /// That of `gate`, where `up` is 1.
    Activated(Gate),
    /// Those of `gate` and `up`.
    Gated(Gate),
    /// That of `embeddings`, which follow `indexes`.
    Embedding,
    /// That of `x`, which `cos` and `sin` follow.
    Rotary(Axes),
}

/// The gradients of up to three tensors.
type Gradients = [Option<Tensor>; 3];

/// An operation whose result has a gradient. No tensor is tracked.
struct Differentiated<'a> {
    name: &'static str,
    /// The inputs.
    tensors: &'a [Tensor],
    /// Whether the gradient of each is wanted.
    is_wanted: [bool; 3],
    result: Tensor,
    /// The gradient of the result, which is contiguous.
    dy: Tensor,
}

impl Differentiated<'_> {
    /// Returns a gradient if it is wanted.
    fn wanted(&self, i: usize, gradient: impl FnOnce() -> Result<Tensor>) -> Result<Option<Tensor>> {
        self.is_wanted[i].then(gradient).transpose()
    }

    /// Checks that no gradient of these inputs is wanted.
    fn refuse(&self, constant: &[(usize, &str)]) -> Result<()> {
        match constant.iter().find(|(i, _)| self.is_wanted[*i]) {
            Some((_, name)) => bail!("{}: `{name}` has no gradient; call `detach` on it", self.name),
            None => Ok(()),
        }
    }
}

/// Returns the gradients of an operation.
fn gradients(backward: &Backward, of: &Differentiated<'_>) -> Result<Gradients> {
    match *backward {
        Backward::Unsupported(reason) => bail!("{}: there is no gradient: {reason}", of.name),
        Backward::Linear(activation) => linear::gradients(of, activation),
        Backward::Attention { mask, ref packed, lse: Some(ref lse) } => {
            attention::gradients(of, lse, mask, packed.as_ref())
        }
        Backward::Attention { lse: None, .. } => bail!("{}: no input had a gradient", of.name),
        Backward::Norm { is_centred, eps } => rows::norm(of, is_centred, eps),
        Backward::Softmax { is_log } => Ok([Some(rows::softmax(of, is_log)?), None, None]),
        Backward::Activated(gate) => {
            Ok([Some(rows::activated(of.name, gate, &of.tensors[0], &of.dy)?), None, None])
        }
        Backward::Gated(gate) => rows::gated(of, gate),
        Backward::Embedding => Ok([None, Some(rows::embedding(of)?), None]),
        Backward::Rotary(axes) => {
            of.refuse(&[(1, "cos"), (2, "sin")])?;
            let dx = rotated_back(of.name, &of.dy, [&of.tensors[1], &of.tensors[2]], axes)?;
            Ok([Some(dx), None, None])
        }
    }
}

/// A result whose tensor knows from which others it was computed, and how.
pub(crate) struct Finished {
    name: &'static str,
    result: Mutex<Option<(Storage, Shape)>>,
    backward: Backward,
}

impl Finished {
    /// Makes a result of an operation.
    pub(crate) fn new(operation: &Operation<'_>, result: (Storage, Shape)) -> Self {
        let Operation { name, backward, .. } = operation;
        Self { name, result: Mutex::new(Some(result)), backward: backward.clone() }
    }

    /// Returns the tensor of the result. candle's operations have at most three inputs: of more, only
    /// the first three may have gradients. If another one is tracked, the operation has none: it
    /// keeps the input that tells of it.
    pub(crate) fn of(self, inputs: &[Argument<'_>], tracked: &Argument<'_>) -> Result<Tensor> {
        match *inputs {
            [(_, a)] => a.apply_op1(self),
            [(_, a), (_, b)] => a.apply_op2(b, self),
            [(_, a), (_, b), (_, c), ref rest @ ..] if rest.iter().all(|(_, x)| !x.track_op()) => {
                a.apply_op3(b, c, self)
            }
            _ => tracked.1.apply_op1(self),
        }
    }

    fn gradients(&self, tensors: &[&Tensor], result: &Tensor, dy: &Tensor) -> Result<Gradients> {
        let is_wanted = |i: usize| tensors.get(i).is_some_and(|tensor| tensor.track_op());
        let detached: Vec<Tensor> = tensors.iter().map(|tensor| tensor.detach()).collect();
        let of = Differentiated {
            name: self.name,
            tensors: &detached,
            is_wanted: [is_wanted(0), is_wanted(1), is_wanted(2)],
            result: result.detach(),
            dy: dy.detach().contiguous()?,
        };
        let mut all = gradients(&self.backward, &of)?;
        all.iter_mut().zip(of.is_wanted).filter(|(_, wanted)| !wanted).for_each(|(one, _)| *one = None);
        Ok(all)
    }

    fn take(&self) -> Result<(Storage, Shape)> {
        match self.result.lock().map(|mut result| result.take()) {
            Ok(Some(result)) => Ok(result),
            Ok(None) | Err(_) => bail!("{}: the result was taken before", self.name),
        }
    }

    fn take_cpu(&self) -> Result<(CpuStorage, Shape)> {
        match self.take()? {
            (Storage::Cpu(storage), shape) => Ok((storage, shape)),
            (Storage::Cuda(_) | Storage::Metal(_), _) => {
                bail!("{}: the result is on another device", self.name)
            }
        }
    }

    fn take_cuda(&self) -> Result<(CudaStorage, Shape)> {
        match self.take()? {
            (Storage::Cuda(storage), shape) => Ok((storage, shape)),
            (Storage::Cpu(_) | Storage::Metal(_), _) => {
                bail!("{}: the result is on another device", self.name)
            }
        }
    }
}

impl CustomOp1 for Finished {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.take_cpu()
    }

    fn cuda_fwd(&self, _: &CudaStorage, _: &Layout) -> Result<(CudaStorage, Shape)> {
        self.take_cuda()
    }

    fn bwd(&self, a: &Tensor, result: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let [of_a, _, _] = self.gradients(&[a], result, dy)?;
        Ok(of_a)
    }
}

impl CustomOp2 for Finished {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.take_cpu()
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        self.take_cuda()
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        result: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let [of_a, of_b, _] = self.gradients(&[a, b], result, dy)?;
        Ok((of_a, of_b))
    }
}

impl CustomOp3 for Finished {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.take_cpu()
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        self.take_cuda()
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        c: &Tensor,
        result: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let [of_a, of_b, of_c] = self.gradients(&[a, b, c], result, dy)?;
        Ok((of_a, of_b, of_c))
    }
}
