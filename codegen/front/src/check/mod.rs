//! Checks a kernel. The result is a [`CheckedKernel`] and, for a chip, a [`TargetKernel`], the only
//! thing that `lower` accepts.
//!
//! The rules are in one file each, and have codes in [`Code`](crate::diag::Code). `operations`
//! lists which of them each statement and each expression has to keep, in the context that `rules`
//! describes:
//!
//! * `inferred`: every type is known, and every operand has a value.
//! * `limits`: box extents, inner bytes, swizzle spans, thread counts, barrier counts, constant
//!   indices.
//! * `coordinates`: boxes that the copy engine refuses, as far as constants show (`low_bits`).
//! * `clusters`: cluster sizes, operations that need a cluster, ranks and masks, sliced loads.
//! * `bulk`: copies without a tensor map that do not start or end at a multiple of 16 bytes, as far
//!   as constants show.
//! * `descriptors`: fields of tensor maps that the copy engine does not accept, as far as constants
//!   show.
//! * `accesses::vectors`: misaligned vectors of elements in memory, as far as constants show.
//! * `warp`: lanes that do not exist, and reductions over incomplete warps.
//! * `mma`: operands of the tensor cores, and uses of accumulators.
//! * `unrolled`: indices after unrolling. Those of registers are known, and all known ones are in
//!   bounds.
//! * `barriers`: a block has enough barriers for its warpgroups, beside the named ones.
//! * `flights`: every multiplication is waited for. Also computes how many each wait leaves open.
//! * `registers`: warpgroups do not claim more registers than a block has.
//! * `size`: kernels and loops are not too large once they are unrolled.
//! * `target`: instructions that the chip lacks. Only the build script knows the chip, and reports
//!   these.
//! * `uniform`: all threads of a warp or warpgroup reach the operations that they execute together,
//!   with the same arguments.
//! * `plain_polls`: loops that only a plain read of memory can end.
//! * `accesses::non_coherent`: non-coherent loads of memory that the kernel writes.
//! * `protocol`: synchronisation. It explores the executions of the whole kernel, and is called
//!   separately.
//! * `global`: conflicts of accesses to global memory by different blocks. `protocol` calls it.
//! * `unused`: shared memory that nothing uses, as a warning.
//! * `layout`: all shared variables fit the shared memory of a block, with the alignment that the
//!   hardware needs.
//!
//! `dataflow` is the engine of analyses along the control flow. Most analyses read
//! [`Stmt::facts`](crate::ir::Stmt::facts) instead of listing statements.
//!
//! Not checked here: rules that depend on the tensor, which the runtime checks when it encodes the
//! descriptor, and values that are only known at run time.

#![warn(clippy::wildcard_enum_match_arm)]

mod accesses;
pub mod barriers;
mod bulk;
mod clusters;
mod coordinates;
mod dataflow;
mod descriptors;
pub mod flights;
mod inferred;
pub mod layout;
mod limits;
mod low_bits;
pub mod mma;
mod operations;
pub mod plain_polls;
pub mod registers;
mod rules;
mod size;
mod target;
pub mod uniform;
mod unrolled;
mod unused;
mod warp;

pub use target::{TargetKernel, for_target};

use std::ops::Range;

use crate::diag::Sink;
use crate::ir::{Kernel, SharedId};
use barriers::Barriers;
use flights::Flights;
use layout::SharedLayout;

/// A kernel that broke no rule, and the layout of its shared variables.
#[derive(Clone, Debug)]
pub struct CheckedKernel {
    kernel: Kernel,
    layout: SharedLayout,
    flights: Flights,
    barriers: Barriers,
    operations: u64,
}

impl CheckedKernel {
    /// Returns the number of operations in the kernel once its loops are unrolled.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the kernel alone.
    pub fn into_kernel(self) -> Kernel {
        self.kernel
    }

    /// Returns the layout of its shared variables.
    pub fn layout(&self) -> &SharedLayout {
        &self.layout
    }

    /// Returns the bytes of a shared variable.
    pub fn shared_range(&self, id: SharedId) -> Range<u32> {
        let start = self.layout.offset(id);
        start..start.saturating_add(layout::to_u32(layout::size(&self.kernel.shared_var(id).ty)))
    }

    /// Returns its multiplications in flight.
    pub fn flights(&self) -> &Flights {
        &self.flights
    }

    /// Returns the barriers that its warpgroups synchronise at.
    pub fn barriers(&self) -> &Barriers {
        &self.barriers
    }
}

/// Warns of what is right and may not be intended. `instances` are all instances of a kernel.
pub fn warn(instances: &[&CheckedKernel], sink: &mut Sink) {
    unused::unused(instances, sink);
    unrolled::local_arrays(instances, sink);
}

/// Checks every rule, and reports all violations. Fails with the kernel if there are any.
pub fn check(kernel: Kernel, sink: &mut Sink) -> Result<Box<CheckedKernel>, Box<Kernel>> {
    let before = sink.len();
    limits::check(&kernel, sink);
    operations::check(&kernel, sink);
    // A kernel that is too large to be unrolled is not followed through its iterations either.
    let operations = size::check(&kernel, sink);
    if operations.is_some() {
        unrolled::check(&kernel, sink);
    }
    mma::check(&kernel, sink);
    let flights = flights::follow(&kernel, sink);
    let before_uniform = sink.len();
    uniform::check(&kernel, sink);
    let is_uniform = sink.len() == before_uniform;
    plain_polls::check(&kernel, sink);
    accesses::non_coherent::check(&kernel, sink);
    // One thread of each warpgroup is followed, so none may take another path than the others.
    if is_uniform {
        registers::check(&kernel, sink);
    }
    if is_uniform && operations.is_some() {
        mma::incomplete::check(&kernel, sink);
    }
    let barriers = barriers::assign(&kernel, sink);
    let layout = layout::lay_out(&kernel, sink);
    match operations {
        Some(operations) if sink.len() == before => {
            Ok(Box::new(CheckedKernel { kernel, layout, flights, barriers, operations }))
        }
        Some(_) | None => Err(Box::new(kernel)),
    }
}
