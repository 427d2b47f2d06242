//! Execution of decoded code by warps, on a [`Machine`](crate::machine::Machine).
//!
//! A warp consists of splits: groups of lanes with the same pc. The split with the lowest pc runs
//! first, so that lanes that diverge at a branch reconverge at the join. A split that was passed
//! over too often runs first regardless, so that a polling lane cannot starve the one it waits for.
//!
//! `executor` dispatches each operation to the module of its family: `alu`, `addresses`, `memory`
//! (with `atomic` and `variables`), `collective` (with `matrix`), `warpgroup`, `engines` (with
//! `tensor_maps`) and `control`.
#![warn(clippy::wildcard_enum_match_arm)]

mod addresses;
pub(crate) mod alu;
mod atomic;
pub(crate) mod cluster;
mod collective;
mod control;
mod engines;
mod executor;
pub(crate) mod float;
mod matrix;
mod memory;
mod mma;
pub(crate) mod observe;
mod spin;
mod splits;
mod tensor_maps;
mod values;
mod variables;
mod warp;
mod warpgroup;

use std::ops::Range;

use alu::Lanes;
use tma_model::limits::SHARED_UNIT_BYTES;

use crate::isa::{Pc, Program, Reg, Site};

/// The state that all warps of a launch share.
#[derive(Debug)]
pub(crate) struct Context<'p> {
    pub(crate) program: &'p Program,
    /// The program's constants, replicated in every lane.
    pub(crate) constants: Vec<Lanes>,
    /// The address ranges of the module's `.const` variables in global memory.
    pub(crate) const_ranges: Vec<Range<u64>>,
    /// The bytes of the parameters.
    pub(crate) params: Vec<u8>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
    /// Whether instructions are counted.
    pub(crate) profile: bool,
}

impl Context<'_> {
    /// Returns the lanes of a register of a warp, or of a constant.
    #[inline(always)]
    pub(crate) fn lanes<'r>(&'r self, registers: &'r [Lanes], reg: Reg) -> &'r Lanes {
        match reg.as_constant() {
            Some(constant) => &self.constants[constant],
            None => &registers[reg.index()],
        }
    }

    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// `%total_smem_size`: static and dynamic shared memory of a block, rounded up to the
    /// allocation unit, without the reserved part.
    pub(crate) fn total_shared_bytes(&self) -> u32 {
        let bytes = self.program.static_shared_bytes() + self.dynamic_shared_bytes;
        bytes.next_multiple_of(SHARED_UNIT_BYTES)
    }
}

/// An instruction, and the lanes of a warp that run it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issue {
    /// The lanes that take part.
    pub(crate) active: u32,
    pub(crate) pc: Pc,
    pub(crate) site: Site,
}

impl Issue {
    /// Returns the lanes that take part, lowest first.
    #[inline]
    pub(crate) fn lanes(self) -> impl Iterator<Item = Lane> {
        lanes_of(self.active).map(move |index| Lane { index, site: self.site })
    }

    /// Returns the first lane that takes part.
    pub(crate) fn first_lane(self) -> Lane {
        debug_assert!(self.active != 0, "an instruction is run by some lane");
        Lane { index: self.active.trailing_zeros(), site: self.site }
    }
}

/// A lane at an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) index: u32,
    pub(crate) site: Site,
}

/// Returns the lanes of a mask, lowest first.
#[inline]
pub(crate) fn lanes_of(mask: u32) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}
