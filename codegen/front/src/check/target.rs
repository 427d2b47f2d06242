//! Features that a kernel needs and the chip that it is compiled for lacks.

use super::CheckedKernel;
use crate::diag::Sink;
use crate::diag::mistake::Build;
use crate::ir::visit;
use crate::target::Target;

/// A kernel that broke no rule and needs nothing that the target lacks. Only `lower` needs the
/// target: everything else about a kernel is the same on all chips.
#[derive(Clone, Debug)]
pub struct TargetKernel {
    kernel: CheckedKernel,
    target: Target,
}

impl TargetKernel {
    /// Returns the kernel.
    pub fn kernel(&self) -> &CheckedKernel {
        &self.kernel
    }

    /// Returns the chip.
    pub fn target(&self) -> Target {
        self.target
    }
}

/// Checks that `target` has everything that the kernel needs, and reports everything that it lacks.
pub fn for_target(kernel: CheckedKernel, target: Target, sink: &mut Sink) -> Option<TargetKernel> {
    let before = sink.len();
    visit::for_each_stmt(&kernel.kernel().body, &mut |stmt| {
        if let Some((feature, word)) = stmt.facts().needs
            && !target.has(feature)
        {
            sink.error(Build::Feature { target, feature, word }, stmt.origin.span);
        }
    });
    (sink.len() == before).then_some(TargetKernel { kernel, target })
}
