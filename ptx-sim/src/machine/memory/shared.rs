//! The shared memory of a block, and the record of other blocks' accesses to it.

use tma_model::mma::CHUNK_BYTES;
use tma_model::sync::{Component, Epoch, View};

use super::{Shadow, TileChunk};
use crate::machine::index::{Shape, ThreadId};
use crate::machine::types::Actor;

/// The initial contents of memory, and those of a copy's destination until it lands: a NaN in every
/// floating-point type.
pub(in crate::machine) const POISON: u8 = 0xff;

/// The shared memory of a block. It exists until the block's last thread exits.
#[derive(Debug)]
pub(in crate::machine) struct SharedMemory {
    data: Vec<u8>,
    pub(in crate::machine) shadow: Shadow,
    /// For each chunk of 16 bytes, the part of a tile that a tensor copy wrote there; `None` if
    /// another asynchronous operation has. Empty before the first tensor copy.
    tiles: Vec<Option<TileChunk>>,
    /// The last step in which each thread of another block accessed this memory, by clock
    /// component, and its PTX line; 0 if there is none.
    remote_accesses: Vec<(u32, u32)>,
    /// Copies from here into other blocks that no exited thread knew to be complete.
    pub(in crate::machine) outgoing: Vec<OutgoingCopy>,
}

/// A copy out of a block's shared memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct OutgoingCopy {
    /// The step of its completion.
    pub(in crate::machine) done: Epoch,
    pub(in crate::machine) issuer: Actor,
}

impl SharedMemory {
    pub(super) fn new(bytes: u32, shape: Shape) -> Self {
        // The size is rounded up, so that the cells and mbarriers of the last bytes are whole.
        let whole = bytes.next_multiple_of(8);
        Self {
            data: vec![POISON; whole as usize],
            shadow: Shadow::new(whole, Component::new(shape.all())),
            tiles: Vec::new(),
            remote_accesses: Vec::new(),
            outgoing: Vec::new(),
        }
    }

    /// Returns the bytes from `at` on.
    #[inline]
    pub(in crate::machine) fn from(&self, at: u32) -> &[u8] {
        &self.data[at as usize..]
    }

    /// Returns the `bytes` bytes at `at`.
    #[inline]
    pub(in crate::machine) fn bytes(&self, at: u32, bytes: usize) -> &[u8] {
        &self.data[at as usize..][..bytes]
    }

    /// Returns the `bytes` bytes at `at`, mutably.
    #[inline]
    pub(in crate::machine) fn bytes_mut(&mut self, at: u32, bytes: usize) -> &mut [u8] {
        &mut self.data[at as usize..][..bytes]
    }

    /// Notes that an asynchronous operation writes to the chunk at `at`. `chunk` is the part of a
    /// tile that it writes, if any.
    pub(in crate::machine) fn set_tile_chunk(&mut self, at: u32, chunk: Option<TileChunk>) {
        if self.tiles.is_empty() {
            if chunk.is_none() {
                return;
            }
            self.tiles.resize(self.data.len().div_ceil(CHUNK_BYTES as usize), None);
        }
        if let Some(slot) = self.tiles.get_mut((at / CHUNK_BYTES) as usize) {
            *slot = chunk;
        }
    }

    /// Returns the part of a tile that a tensor copy wrote to the chunk at `at`, or `None` if
    /// something else has written there since.
    pub(in crate::machine) fn tile_chunk(&self, at: u32) -> Option<&TileChunk> {
        let chunk = self.tiles.get((at / CHUNK_BYTES) as usize)?.as_ref()?;
        self.shadow.is_copied_in(at, CHUNK_BYTES).then_some(chunk)
    }

    /// Notes that a thread of another block accesses this memory, in a step of its own.
    pub(in crate::machine) fn note_remote_access(&mut self, step: Epoch, line: u32, shape: Shape) {
        self.remote_accesses.resize(shape.all() as usize, (0, 0));
        self.remote_accesses[step.component().number() as usize] = (step.count(), line);
    }

    /// Forgets those accesses by other blocks that are over as far as the exiting thread of `view`
    /// knows.
    pub(in crate::machine) fn forget_remote_accesses(&mut self, view: &View) {
        for (number, access) in (0..).zip(&mut self.remote_accesses) {
            if view.knows_complete(Epoch::new(Component::new(number), access.0)) {
                access.0 = 0;
            }
        }
    }

    /// Returns an access that has not been forgotten, with its PTX line.
    pub(in crate::machine) fn pending_remote_access(&self, shape: Shape) -> Option<(ThreadId, u32)> {
        let number = self.remote_accesses.iter().position(|access| access.0 > 0)?;
        let (step, line) = self.remote_accesses[number];
        Some((shape.thread(Epoch::new(Component::new(number as u32), step))?, line))
    }
}
