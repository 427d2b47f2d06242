//! Notes about copies whose box lies wholly outside the tensor.
//!
//! Boxes that lie partly outside are normal at ragged edges. A box wholly outside usually means
//! that coordinates are swapped, or count tiles instead of elements. Still, it is only a note,
//! because the copy engine fills or skips such a box as specified. Pipelines may load past the end
//! on purpose, grids are rounded up to whole clusters, and a tile that is moved in several boxes
//! may have some beyond the edge.

use tma_model::help::Help;

use super::Diagnostics;
use crate::machine::types::{Action, TensorAction, TensorCopy};
use crate::report::{Finding, FindingKind};
use crate::tensor_map::{TensorMap, Walk};

/// Formats numbers as the kernel language writes them, outermost dimension first.
fn list<N: ToString>(numbers: impl DoubleEndedIterator<Item = N>) -> String {
    let numbers: Vec<_> = numbers.rev().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(", "))
}

impl Diagnostics {
    /// Notes a load or store that moves nothing of the tensor.
    #[inline]
    pub(in crate::machine) fn note_outside(&mut self, action: Action, copy: &TensorCopy, map: &TensorMap) {
        if Walk::new(map, copy.at, copy.offsets).is_outside() {
            self.outside_of_tensor(action, copy, map);
        }
    }

    #[cold]
    fn outside_of_tensor(&mut self, action: Action, copy: &TensorCopy, map: &TensorMap) {
        let effect = match copy.action {
            TensorAction::Load { .. } => "the load brings only fill values",
            TensorAction::Store { .. } => "the store writes nothing",
            TensorAction::Reduce { .. } => "the reduction changes nothing",
            TensorAction::Prefetch => return,
        };
        let (at, extents) = (list(copy.at[..map.rank()].iter()), list(map.extents.iter()));
        let message = format!(
            "a box at {at} is entirely outside of a tensor of {extents} (outermost dimension first), so \
             {effect}"
        );
        let note = Finding::new(FindingKind::BoxOutside, message)
            .with(self.party(action))
            .help(Help::SwapCoordinates);
        self.note(note);
    }
}
