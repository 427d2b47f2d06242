//! Features that a kernel needs and the chip that it is compiled for lacks.

use super::CheckedKernel;
use crate::diag::Sink;
use crate::diag::mistake::Build;
use crate::ir::{MapEdit, Stmt, StmtKind, visit};
use crate::target::{Feature, Target};

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
        if let Some(needed) = needs(stmt).filter(|needed| !target.has(needed.feature)) {
            let Needed { feature, word } = needed;
            sink.error(Build::Feature { target, feature, word }, stmt.origin.span);
        }
    });
    (sink.len() == before).then_some(TargetKernel { kernel, target })
}

/// A feature that a statement needs, and that not every chip has.
struct Needed {
    feature: Feature,
    /// The operation of the kernel language that needs it.
    word: &'static str,
}

fn needs(stmt: &Stmt) -> Option<Needed> {
    use Feature::{ReplaceTensorMap, SetMaxRegisters, Wgmma};
    let (feature, word) = match &stmt.kind {
        StmtKind::EditMap { edit, .. } => match edit {
            MapEdit::Address { .. } => (ReplaceTensorMap, "set_address"),
            MapEdit::Extent { .. } => (ReplaceTensorMap, "set_extent"),
            MapEdit::Stride { .. } => (ReplaceTensorMap, "set_stride"),
            MapEdit::CopyFrom { .. } | MapEdit::Publish { .. } => return None,
        },
        StmtKind::Mma(_) => (Wgmma, "mma"),
        StmtKind::SetMaxRegisters { increase: true, .. } => (SetMaxRegisters, "setmaxnreg_inc"),
        StmtKind::SetMaxRegisters { increase: false, .. } => (SetMaxRegisters, "setmaxnreg_dec"),
        // The multiplication that is waited for needs the feature itself.
        StmtKind::MmaWait { .. }
        | StmtKind::Assign { .. }
        | StmtKind::If { .. }
        | StmtKind::Match { .. }
        | StmtKind::Loop { .. }
        | StmtKind::While { .. }
        | StmtKind::For(_)
        | StmtKind::Labelled { .. }
        | StmtKind::Break(_)
        | StmtKind::Continue(_)
        | StmtKind::Leave(_)
        | StmtKind::Return
        | StmtKind::TileGet { .. }
        | StmtKind::TileSet { .. }
        | StmtKind::SharedGet { .. }
        | StmtKind::SharedSet { .. }
        | StmtKind::GlobalGet { .. }
        | StmtKind::GlobalSet { .. }
        | StmtKind::Atomic(_)
        | StmtKind::TileCopy(_)
        | StmtKind::BulkCopy(_)
        | StmtKind::RemoteCopy(_)
        | StmtKind::PrefetchMap(_)
        | StmtKind::Barrier { .. }
        | StmtKind::AcquireMap { .. }
        | StmtKind::BulkCommitGroup
        | StmtKind::BulkWaitGroup { .. }
        | StmtKind::Pack { .. }
        | StmtKind::StoreAccumulator { .. }
        | StmtKind::CheckMatrix(_)
        | StmtKind::StoreMatrix(_)
        | StmtKind::ReduceRows { .. }
        // Every chip has `ldmatrix` and `mma.sync`.
        | StmtKind::LoadFragment(_)
        | StmtKind::MmaSync(_)
        | StmtKind::StoreWarp(_)
        | StmtKind::Fence(_)
        | StmtKind::Sync(_)
        | StmtKind::NamedBarrierSync { .. }
        | StmtKind::NamedBarrierArrive { .. }
        | StmtKind::SyncGrid { .. }
        | StmtKind::GridDependency(_)
        | StmtKind::ElectOne { .. }
        | StmtKind::Warp { .. }
        | StmtKind::Trap
        | StmtKind::Assert { .. }
        | StmtKind::Printf { .. }
        | StmtKind::PrintTile { .. } => return None,
    };
    Some(Needed { feature, word })
}
