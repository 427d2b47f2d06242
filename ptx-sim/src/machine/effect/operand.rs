//! Checks on the operands of `wgmma` in shared memory, and on their descriptors.

use tma_model::Swizzle;
use tma_model::mma::{CHUNK_BYTES, Descriptor};

use crate::machine::Machine;
use crate::machine::diagnostics::RESERVED;
use crate::machine::memory::SharedMemory;
use crate::machine::mma::{Matrix, Side};
use crate::machine::types::Action;
use crate::report::{Finding, FindingKind, Stop};

const TILE_START: &str = "start the tile where the swizzle's pattern starts, and advance from there by whole \
                          steps of K, groups of 8 rows or panels; the base offset is 0, or states where else \
                          the pattern starts, in units of 128 bytes";
const OFFSETS: &str =
    "use the LBO and SBO of the tile's layout: the bytes between panels, and between groups of 8 rows";
const ORDER: &str = "use the LBO and SBO of the tile's layout, the bytes between panels and between groups \
                     of 8 rows; to put rows into another order, load them with several copies";
const SWIZZLES: &str = "use one swizzle in the tensor map and the descriptor: bits 62 and 63 of a descriptor \
                        are 1 for 128 bytes, 2 for 64, 3 for 32, and 0 for none";

const fn in_words(swizzle: Swizzle) -> &'static str {
    match swizzle {
        Swizzle::None => "no swizzle",
        Swizzle::B32 => "a swizzle of 32 bytes",
        Swizzle::B64 => "a swizzle of 64 bytes",
        Swizzle::B128 => "a swizzle of 128 bytes",
    }
}

/// An operand that is read differently from how tensor copies wrote it.
enum Misread {
    /// The chunk at this address was loaded with another swizzle.
    Swizzle { at: u32, loaded: Swizzle },
    /// The second chunk follows the first one in the operand, but not in their tile. Each has an
    /// address, a row and a chunk of the row.
    Order([(u32, [u32; 2]); 2]),
}

impl Machine {
    /// Decodes a descriptor.
    ///
    /// # Errors
    ///
    /// If bits outside of all fields are set.
    pub(super) fn descriptor(&mut self, action: Action, side: Side, bits: u64) -> Result<Descriptor, Stop> {
        let kind = FindingKind::IllegalMultiplication;
        let Ok(descriptor) = Descriptor::decode(bits) else {
            let message = format!(
                "the descriptor {bits:#018x} of {side} has bits set that belong to no \
                field"
            );
            let help = "advance descriptors in units of 16 bytes, without a carry out of a field";
            return self.refuse_with_help(action, kind, message, help);
        };
        let into = descriptor.into_pattern();
        if into != 0 {
            let (location, base) = (self.diagnostics.offset(descriptor.start), descriptor.base_offset);
            let message = format!(
                "the operand {side} at {location} starts {into} bytes into the swizzle's pattern, and its \
                 descriptor has the base offset {base}"
            );
            let party = self.diagnostics.party(action);
            self.report(Finding::new(FindingKind::Misaligned, message).with(party).help(TILE_START));
        }
        Ok(descriptor)
    }

    /// Checks that everything a descriptor addresses is shared memory, that it lies within one
    /// variable if the start does, and that no chunk is addressed twice.
    pub(super) fn check_bounds(&mut self, action: Action, matrix: Matrix) -> Result<(), Stop> {
        let (start, side) = (matrix.descriptor.start, matrix.side);
        let window = &self.memory.window;
        if let Some(at) = matrix.chunks().find(|at| *at < window.start || at + CHUNK_BYTES > window.end) {
            let message = format!(
                "the descriptor of {side} leads from {start:#x} to {at:#x} of shared memory, but a block has \
                 only {:#x} to {:#x}",
                window.start, window.end
            );
            if at < window.start {
                return self.refuse_with_help(action, FindingKind::OutOfBounds, message, RESERVED);
            }
            return self.refuse(action, FindingKind::OutOfBounds, message);
        }
        if let Some(at) = matrix.repeated() {
            let Descriptor { leading, stride, .. } = matrix.descriptor;
            let location = self.diagnostics.offset(at);
            let message = format!(
                "the descriptor of {side} leads to {location} more than once, with an LBO of {leading} bytes \
                 and an SBO of {stride}"
            );
            let party = self.diagnostics.party(action);
            let finding = Finding::new(FindingKind::IllegalMultiplication, message).with(party);
            self.report(finding.help(OFFSETS));
        }
        let Some(named) = self.diagnostics.variable(start) else { return Ok(()) };
        let range = named.from..named.to;
        if let Some(at) = matrix.chunks().find(|at| !range.contains(at) || at + CHUNK_BYTES > range.end) {
            let (location, to) = (self.diagnostics.offset(start), self.diagnostics.offset(at));
            let message = format!("the descriptor of {side} leads from {location} to {to}");
            let party = self.diagnostics.party(action);
            self.report(Finding::new(FindingKind::OutOfBounds, message).with(party).help(OFFSETS));
        }
        Ok(())
    }

    /// Checks that data of a tensor copy is read in the layout in which it was written: in the same
    /// order, and with the same swizzle (or without one, for a chunk that the pattern does not
    /// move). Data that threads or other copies have written since may have any layout.
    pub(super) fn check_tile(&mut self, action: Action, matrix: Matrix) {
        if !self.order.is_checked() || matrix.descriptor.base_offset != 0 {
            return;
        }
        let shared = &self.memory.shared[action.thread.block];
        let (finding, help) = match other_swizzle(shared, matrix).or_else(|| other_order(shared, matrix)) {
            None => return,
            Some(Misread::Swizzle { at, loaded }) => {
                let location = self.diagnostics.offset(at);
                let message = format!(
                    "the descriptor of {} has {}, but the tile that it reads at {location} was loaded with {}",
                    matrix.side,
                    in_words(matrix.descriptor.swizzle),
                    in_words(loaded)
                );
                (Finding::new(FindingKind::SwizzleMismatch, message), SWIZZLES)
            }
            Some(Misread::Order([(at, [row, chunk]), (next, [next_row, next_chunk])])) => {
                let Descriptor { leading, stride, .. } = matrix.descriptor;
                let (from, to) = (self.diagnostics.offset(at), self.diagnostics.offset(next));
                let message = format!(
                    "the descriptor of {}, with an LBO of {leading} bytes and an SBO of {stride}, leads from \
                     {from} to {to}: from row {row}, chunk {chunk} of a loaded tile to row {next_row}, chunk \
                     {next_chunk}, which is not adjacent",
                    matrix.side
                );
                (Finding::new(FindingKind::LayoutMismatch, message), ORDER)
            }
        };
        let party = self.diagnostics.party(action);
        self.report(finding.with(party).help(help));
    }
}

/// Finds a chunk that was loaded with another swizzle than it is read with.
fn other_swizzle(shared: &SharedMemory, matrix: Matrix) -> Option<Misread> {
    let swizzle = matrix.descriptor.swizzle;
    matrix.chunks().find_map(|at| {
        let loaded = shared.tile_chunk(at)?.swizzle();
        let are_patterns = loaded.span().is_some() && swizzle.span().is_some();
        let differs = loaded != swizzle && (are_patterns || loaded.permute(at) != swizzle.permute(at));
        differs.then_some(Misread::Swizzle { at, loaded })
    })
}

/// Finds chunks that are adjacent in an operand and belong to one tile, but are not adjacent there.
/// A stride of 0 bytes repeats rows on purpose.
fn other_order(shared: &SharedMemory, matrix: Matrix) -> Option<Misread> {
    let (width, [between_lines, between_panels]) = (matrix.width() as usize, matrix.steps());
    let chunks: Vec<_> = matrix.chunks().map(|at| (at, shared.tile_chunk(at))).collect();
    chunks.iter().enumerate().find_map(|(i, &(at, chunk))| {
        let chunk = chunk?;
        let next = |i: usize| chunks.get(i).and_then(|&(at, chunk)| Some((at, chunk?)));
        let below = next(i + width).filter(|(_, next)| between_lines > 0 && !chunk.is_above(next));
        let is_last = (i + 1).is_multiple_of(width) || between_panels == 0;
        let beside = || next(i + 1).filter(|(_, next)| !is_last && !chunk.is_beside(next));
        let (to, next) = below.or_else(beside)?;
        Some(Misread::Order([(at, chunk.position()), (to, next.position())]))
    })
}
