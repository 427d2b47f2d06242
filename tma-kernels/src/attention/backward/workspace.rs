//! Memory of the gradients' kernels.

use tma_runtime::prelude::*;

use super::problem::QueryBlocks;
use crate::attention::AttentionError;
use crate::workspace::GivenMemory;

/// The sums of a block of queries: 64 × 128 or 128 × 64.
const SUMS: usize = 64 * 128;

/// The rows of a block, of which there are 64 or 128.
const ROWS: usize = 128;

/// The bytes of a block's sums, exponents and deltas, each of them a multiple of 128, and of its
/// count, which comes last.
const BYTES_OF_BLOCK: usize = 4 * (SUMS + 2 * ROWS + 1);

/// Memory in which [`attention_backward`](super::attention_backward) prepares and adds up: about 4 ·
/// depth bytes for each query of each head. Only one call may use it at a time: give each stream its
/// own.
#[derive(Debug)]
pub struct AttentionWorkspace {
    /// Exponents of rows.
    pub(super) exponents: DeviceTensor<f32, 1>,
    /// Inner products of results and their gradients, of rows.
    pub(super) deltas: DeviceTensor<f32, 1>,
    /// Sums of the gradients of queries.
    pub(super) sums: DeviceTensor<f32, 1>,
    /// The number of blocks of keys that have added to each block of sums.
    pub(super) turns: DeviceTensor<u32, 1>,
    /// The bytes of the caller's memory, which cannot grow.
    given: Option<usize>,
}

impl AttentionWorkspace {
    /// Makes a workspace that allocates its memory when the first call needs it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](tma_runtime::Error::OutOfMemory),
    /// [`Error::KernelFault`](tma_runtime::Error::KernelFault) and
    /// [`Error::Driver`](tma_runtime::Error::Driver).
    pub fn new(device: &Device) -> Result<Self, AttentionError> {
        Self::with_blocks(device, 0)
    }

    /// Makes a workspace for calls with queries of this shape, batch × heads × queries × depth, which
    /// then allocate nothing. It grows if a call needs more.
    ///
    /// # Errors
    ///
    /// [`AttentionError::BackwardDepth`], and the errors of [`new`](Self::new).
    pub fn for_queries(device: &Device, queries: [usize; 4]) -> Result<Self, AttentionError> {
        Self::with_blocks(device, QueryBlocks::of(queries, None)?.count())
    }

    /// Makes a workspace like [`for_queries`](Self::for_queries), for queries of so many packed
    /// sequences ([`Lengths`](crate::attention::Lengths)).
    ///
    /// # Errors
    ///
    /// [`AttentionError::BackwardDepth`], and the errors of [`new`](Self::new).
    pub fn for_packed(
        device: &Device,
        queries: [usize; 4],
        sequences: usize,
    ) -> Result<Self, AttentionError> {
        Self::with_blocks(device, QueryBlocks::of(queries, Some(sequences))?.count())
    }

    fn with_blocks(device: &Device, blocks: usize) -> Result<Self, AttentionError> {
        let rows = blocks.saturating_mul(ROWS);
        Ok(Self {
            exponents: device.zeros([rows])?,
            deltas: device.zeros([rows])?,
            sums: device.zeros([blocks.saturating_mul(SUMS)])?,
            turns: device.zeros([blocks])?,
            given: None,
        })
    }

    /// Returns how many bytes a call with queries of this shape needs, batch × heads × queries ×
    /// depth. They also suffice for fewer queries or heads of the same depth.
    ///
    /// # Errors
    ///
    /// [`AttentionError::BackwardDepth`].
    pub fn bytes(queries: [usize; 4]) -> Result<usize, AttentionError> {
        Ok(QueryBlocks::of(queries, None)?.count().saturating_mul(BYTES_OF_BLOCK))
    }

    /// Returns how many bytes a call with queries of so many packed sequences needs.
    ///
    /// # Errors
    ///
    /// [`AttentionError::BackwardDepth`].
    pub fn bytes_of_packed(queries: [usize; 4], sequences: usize) -> Result<usize, AttentionError> {
        Ok(QueryBlocks::of(queries, Some(sequences))?.count().saturating_mul(BYTES_OF_BLOCK))
    }

    /// Makes a workspace of [`bytes`](Self::bytes) that another library has allocated: the greatest
    /// number that any of the calls needs. It never grows. The address is a multiple of 128.
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for `bytes` bytes from `address` on. They are
    /// used by nothing else as long as the workspace is.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::from_raw`]. A call for which there are too few bytes returns
    /// [`AttentionError::Workspace`].
    pub unsafe fn from_raw(device: &Device, address: u64, bytes: usize) -> Result<Self, AttentionError> {
        let blocks = bytes / BYTES_OF_BLOCK;
        let mut memory = GivenMemory::new(device, address);
        // SAFETY: as the caller promises, for no more bytes than are given.
        unsafe {
            Ok(Self {
                exponents: memory.take(blocks * ROWS)?,
                deltas: memory.take(blocks * ROWS)?,
                sums: memory.take(blocks * SUMS)?,
                turns: memory.take(blocks)?,
                given: Some(bytes),
            })
        }
    }

    /// Grows until the memory suffices. What it had before is freed once every launch that uses it
    /// has run.
    pub(super) fn grow(&mut self, blocks: &QueryBlocks) -> Result<(), AttentionError> {
        let wanted = blocks.count();
        match self.given {
            _ if self.sums.len() / SUMS >= wanted => {}
            Some(found) => {
                let wanted = wanted.saturating_mul(BYTES_OF_BLOCK);
                return Err(AttentionError::Workspace { found, wanted });
            }
            None => *self = Self::with_blocks(self.sums.device(), wanted)?,
        }
        Ok(())
    }
}
