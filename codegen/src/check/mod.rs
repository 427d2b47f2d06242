//! Judges a kernel: what it gives is a [`CheckedKernel`] and, for a chip, a [`TargetKernel`], the
//! only thing that `lower` accepts.
//!
//! The rules, one file each, with their codes in [`Code`](crate::diag::Code). `operations` says
//! which of them each statement and each expression has to keep:
//!
//! * `settled`: every type is known and every literal fits its type.
//! * `limits`: box extents, inner bytes, swizzle spans, thread counts, barrier counts, constant
//!   indices.
//! * `coordinates`: boxes that the copy engine refuses, as far as constants show; `low_bits` tells
//!   what they do.
//! * `clusters`: their size, words that need one, ranks and masks, sliced loads.
//! * `bulk`: copies without a tensor map that do not start or end at a multiple of 16 bytes,
//!   likewise.
//! * `descriptors`: fields of tensor maps that the copy engine does not take, likewise.
//! * `mma`: what tensor cores multiply, and what is done with accumulators.
//! * `unrolled`: indices once loops are unrolled: those of registers are known, and all that are
//!   known are within range.
//! * `barriers`: enough of a block's barriers for its warpgroups, beside those that are named.
//! * `flights`: multiplications that nobody waits for, and how many each wait leaves open.
//! * `registers`: what warpgroups ask for, against what a block has.
//! * `size`: what loops and functions are when they are written out.
//! * `target`: instructions that the chip lacks. Only the build script knows it, and reports these.
//! * `uniform`: what warpgroups do together, where all of their threads come.
//! * `protocol`: who waits for whom, and who may use which memory when. It follows the whole
//!   kernel, and is asked on its own.
//! * `global`: which accesses to global memory blocks may make to the same elements; `protocol` asks.
//! * `unused`: shared memory that nothing uses, which is a warning.
//! * `layout`: everything `shared()` has a place, aligned as the hardware asks, within the budget.
//!
//! Not checked here: what needs the tensor (the runtime does that when it encodes the descriptor).

#![warn(clippy::wildcard_enum_match_arm)]

pub mod barriers;
mod bulk;
mod clusters;
mod coordinates;
mod descriptors;
pub mod flights;
mod global;
pub mod layout;
mod limits;
mod low_bits;
pub(crate) mod mma;
mod one_element;
mod operations;
mod plain_polls;
pub mod protocol;
pub(crate) mod registers;
mod settled;
mod size;
mod target;
mod uniform;
mod unrolled;
mod unused;
mod vectors;
mod warp;

pub use target::{TargetKernel, for_target};
pub(crate) use unused::unused;

use crate::diag::Sink;
use crate::ir::Kernel;
use barriers::Barriers;
use flights::Flights;
use layout::SharedLayout;

/// A kernel that broke no rule, and where its shared variables lie.
#[derive(Clone, Debug)]
pub struct CheckedKernel {
    kernel: Kernel,
    layout: SharedLayout,
    flights: Flights,
    barriers: Barriers,
    operations: u64,
}

impl CheckedKernel {
    /// How many operations it has when its loops are unrolled.
    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel alone.
    pub(crate) fn into_kernel(self) -> Kernel {
        self.kernel
    }

    /// Where its shared variables lie.
    pub fn layout(&self) -> &SharedLayout {
        &self.layout
    }

    /// Which multiplications are under way where.
    pub fn flights(&self) -> &Flights {
        &self.flights
    }

    /// Which barriers its warpgroups meet at.
    pub fn barriers(&self) -> &Barriers {
        &self.barriers
    }
}

/// Checks every rule; reports all that are broken, and gives the kernel back if one is.
pub fn check(kernel: Kernel, sink: &mut Sink) -> Result<Box<CheckedKernel>, Box<Kernel>> {
    let before = sink.len();
    limits::check(&kernel, sink);
    operations::check(&kernel, sink);
    // What is too large to be unrolled is not followed through its turns either.
    let operations = size::check(&kernel, sink);
    if operations.is_some() {
        unrolled::check(&kernel, sink);
    }
    mma::check(&kernel, sink);
    let flights = flights::follow(&kernel, sink);
    uniform::check(&kernel, sink);
    plain_polls::check(&kernel, sink);
    registers::check(&kernel, sink);
    let barriers = barriers::assign(&kernel, sink);
    let layout = layout::lay_out(&kernel, sink);
    match operations {
        Some(operations) if sink.len() == before => {
            Ok(Box::new(CheckedKernel { kernel, layout, flights, barriers, operations }))
        }
        Some(_) | None => Err(Box::new(kernel)),
    }
}
