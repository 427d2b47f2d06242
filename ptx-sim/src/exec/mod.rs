//! Warps that run decoded code on a [`Machine`](crate::machine::Machine).
//!
//! A warp runs groups of lanes that have the same pc. The group with the lowest pc goes first, so that lanes that part
//! at a branch meet again where their ways join; a group that was passed over too often goes first all the same, so
//! that a lane that spins cannot starve the one it waits for.

pub(crate) mod alu;
mod atomic;
mod banks;
mod calls;
pub(crate) mod cluster;
mod collective;
mod engines;
pub(crate) mod float;
mod format;
mod groups;
mod matrix;
mod memory;
mod numbers;
pub(crate) mod observe;
mod spin;
mod step;
mod tensor_maps;
mod warp;

use std::ops::Range;

use alu::Lanes;

use crate::isa::{Program, Row};

/// What all warps of a launch share.
#[derive(Debug)]
pub(crate) struct Context<'p> {
    pub(crate) program: &'p Program,
    /// The program's constants, in every lane.
    pub(crate) constants: Vec<Lanes>,
    /// Where in global memory the module's `.const` variables are.
    pub(crate) const_ranges: Vec<Range<u64>>,
    /// The parameters' bytes.
    pub(crate) params: Vec<u8>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
    /// Whether instructions are counted.
    pub(crate) profile: bool,
}

impl Context<'_> {
    /// A row of the constants or of a warp's registers.
    #[inline(always)]
    pub(crate) fn lanes<'r>(&'r self, registers: &'r [Lanes], row: Row) -> &'r Lanes {
        if row.0 & Row::CONSTANT != 0 {
            &self.constants[(row.0 & !Row::CONSTANT) as usize]
        } else {
            &registers[row.0 as usize]
        }
    }

    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// The lanes of a mask, lowest first.
#[inline]
pub(crate) fn lanes_of(mask: u32) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}
