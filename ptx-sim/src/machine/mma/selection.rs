//! The positions along K of the elements of a sparse A, decoded from its metadata.

use tma_model::mma::metadata::GROUP_BITS;
use tma_model::mma::{Form, ROWS};

use super::multiply::Register;

/// The position along K of each stored element of each row of A.
#[derive(Debug)]
pub(super) struct Selection {
    positions: Vec<u8>,
    /// The number of stored elements of a row.
    stored: usize,
}

impl Selection {
    /// Decodes the metadata of a warpgroup, which must be valid.
    pub(super) fn new(form: Form, selector: u32, metadata: &Register) -> Self {
        let (a, stored) = (form.a, form.stored_k());
        let each = stored * a.group() / form.k();
        let position = |row: u32, element: u32| {
            let (group, slot) = (element / each, element % each);
            let at = a.metadata(selector, row, group);
            let bits = metadata[at.thread as usize] >> at.bit & ((1 << GROUP_BITS) - 1);
            (group * a.group() + a.position(bits, slot).unwrap_or_default()) as u8
        };
        let positions =
            (0..ROWS).flat_map(|row| (0..stored).map(move |element| position(row, element))).collect();
        Self { positions, stored: stored as usize }
    }

    /// Returns the positions in a row.
    pub(super) fn row(&self, row: u32) -> &[u8] {
        &self.positions[row as usize * self.stored..][..self.stored]
    }
}
