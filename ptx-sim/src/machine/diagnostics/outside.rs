//! A note of copies whose box lies wholly outside of the tensor.
//!
//! A box that is partly outside is what ragged edges bring. Wholly outside it mostly is because
//! coordinates are swapped, or count tiles in the place of elements. It is no finding all the same:
//! the copy engine fills or skips it as it should. Pipelines may load past the end on purpose,
//! grids are rounded up to whole clusters, and of a tile that is moved in several boxes some may
//! lie beyond the edge that it crosses.

use super::Diagnostics;
use crate::machine::types::{Action, TensorAction, TensorCopy};
use crate::report::{Finding, FindingKind};
use crate::tensor_map::{TensorMap, Walk};

/// Numbers as the language has them, outermost dimension first.
fn list<N: ToString>(numbers: impl DoubleEndedIterator<Item = N>) -> String {
    let numbers: Vec<_> = numbers.rev().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(", "))
}

impl Diagnostics {
    /// Notes a load or a store that moves nothing of the tensor.
    #[inline]
    pub(in crate::machine) fn note_outside(&mut self, action: Action, copy: &TensorCopy, map: &TensorMap) {
        if Walk::new(map, copy.at, copy.offsets).is_outside() {
            self.outside_of_tensor(action, copy, map);
        }
    }

    #[cold]
    fn outside_of_tensor(&mut self, action: Action, copy: &TensorCopy, map: &TensorMap) {
        let what = match copy.action {
            TensorAction::Load { .. } => "the load brings nothing but its fill",
            TensorAction::Store { .. } => "the store writes nothing",
            TensorAction::Reduce { .. } => "the reduction changes nothing",
            TensorAction::Prefetch => return,
        };
        let (at, extents) = (list(copy.at[..map.rank()].iter()), list(map.extents.iter()));
        let message = format!(
            "a box at {at} lies wholly outside of a tensor of {extents} (outermost dimension first): {what}"
        );
        let note = Finding::new(FindingKind::BoxOutside, message)
            .with(self.party(action))
            .help(
                "coordinates count elements, [[outermost dimension first, as `[row, column]`||innermost dimension first]]: are two \
                 of them swapped? Where it is meant, as in a pipeline that loads past the end, there is nothing to do",
            );
        self.note(note);
    }
}
