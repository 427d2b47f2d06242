//! A warp: registers, local memory, and the control flow of its lanes.

use tma_model::limits::RESERVED_SHARED_BYTES;

use super::alu::Lanes;
use super::spin::LoopTracker;
use super::splits::Splits;
use super::values::UnusedLanes;
use super::warpgroup::TensorRegisters;
use super::{Context, lanes_of};
use crate::isa::{Guard, Reg, Site, Special};
use crate::machine::address::map_to_rank;
use crate::machine::{Actor, BlockRank, ThreadId, ThreadIndex, WarpIndex};

/// Thirty-two threads of a block.
#[derive(Debug)]
pub(crate) struct Warp {
    /// The block's rank in the cluster.
    pub(crate) block: BlockRank,
    /// The warp's number in its block.
    pub(crate) index: WarpIndex,
    pub(crate) registers: Vec<Lanes>,
    /// Local memory, lane by lane.
    pub(crate) local: Vec<u8>,
    pub(crate) splits: Splits,
    /// The lanes that have not exited.
    pub(crate) live: u32,
    pub(super) loop_tracker: LoopTracker,
    pub(super) tensor: TensorRegisters,
    /// Unused values, by the number of the load from global memory.
    pub(super) unused: Vec<UnusedLanes>,
    /// Executed instructions, counted once for the warp.
    pub(crate) warp_instructions: u64,
    /// Executed instructions, counted for each thread that took part.
    pub(crate) thread_instructions: u64,
}

impl Warp {
    pub(crate) fn new(context: &Context<'_>, rank: BlockRank, block: [u32; 3], index: WarpIndex) -> Warp {
        let program = context.program;
        let threads = context.threads().saturating_sub(index.0 * 32).min(32);
        let live = if threads == 32 { u32::MAX } else { (1 << threads) - 1 };
        let mut registers = vec![[0; 32]; program.registers as usize];
        for &(reg, special) in &program.specials {
            let lanes = &mut registers[reg.index()];
            for lane in lanes_of(live) {
                lanes[lane as usize] = u64::from(value(context, rank.0, block, index.0, lane, special));
            }
        }
        Warp {
            block: rank,
            index,
            registers,
            local: vec![0; program.local_bytes as usize * 32],
            splits: Splits::new(program.entry, live),
            live,
            loop_tracker: LoopTracker::default(),
            tensor: TensorRegisters::new(if program.multiplies { program.registers } else { 0 }),
            unused: vec![
                UnusedLanes::default();
                program.loads.as_ref().map_or(0, |loads| loads.count as usize)
            ],
            warp_instructions: 0,
            thread_instructions: 0,
        }
    }

    #[inline]
    pub(crate) fn thread(&self, lane: u32) -> ThreadId {
        ThreadId { block: self.block, index: ThreadIndex(self.index.0 * 32 + lane) }
    }

    /// Returns the thread of a lane, at an instruction.
    #[inline]
    pub(crate) fn actor(&self, lane: u32, site: Site) -> Actor {
        Actor { thread: self.thread(lane), site }
    }

    #[inline]
    pub(crate) fn set(&mut self, reg: Reg, lane: u32, value: u64) {
        debug_assert!(reg.as_constant().is_none(), "constants are not written");
        self.registers[reg.index()][lane as usize] = value;
    }

    #[inline]
    pub(crate) fn get(&self, context: &Context<'_>, reg: Reg, lane: u32) -> u64 {
        context.lanes(&self.registers, reg)[lane as usize]
    }

    /// Returns the lanes in which a predicate holds.
    #[inline]
    pub(crate) fn holds(&self, context: &Context<'_>, guard: Guard) -> u32 {
        let lanes = context.lanes(&self.registers, guard.reg);
        let mut mask = 0;
        for (lane, value) in lanes.iter().enumerate() {
            mask |= ((value & 1) as u32) << lane;
        }
        if guard.negated { !mask } else { mask }
    }
}

/// Returns the value of a special register.
fn value(context: &Context<'_>, rank: u32, block: [u32; 3], warp: u32, lane: u32, special: Special) -> u32 {
    let thread = warp * 32 + lane;
    let [x, y, _] = context.block;
    let (grid, cluster) = (context.grid, context.cluster);
    let bit = 1_u32 << lane;
    let per_cluster: u32 = cluster.iter().product();
    match special {
        Special::Tid(0) => thread % x,
        Special::Tid(1) => thread / x % y,
        Special::Tid(_) => thread / (x * y),
        Special::Ntid(axis) => context.block[axis],
        Special::Ctaid(axis) => block[axis],
        Special::Nctaid(axis) => grid[axis],
        Special::ClusterId(axis) => block[axis] / cluster[axis],
        Special::NclusterId(axis) => grid[axis] / cluster[axis],
        Special::ClusterCtaid(axis) => block[axis] % cluster[axis],
        Special::ClusterNctaid(axis) => cluster[axis],
        Special::ClusterCtarank => rank,
        Special::ClusterNctarank => per_cluster,
        Special::IsExplicitCluster => u32::from(per_cluster > 1),
        Special::Laneid => lane,
        Special::Warpid => warp,
        Special::Nwarpid => context.threads().div_ceil(32),
        Special::LanemaskEq => bit,
        Special::LanemaskLt => bit - 1,
        Special::LanemaskLe => (bit - 1) | bit,
        Special::LanemaskGt => !((bit - 1) | bit),
        Special::LanemaskGe => !(bit - 1),
        // Each block has a multiprocessor of its own, out of the 132 of an H200.
        Special::Smid => (block[0] + grid[0].wrapping_mul(block[1] + grid[1].wrapping_mul(block[2]))) % 132,
        Special::Nsmid => 132,
        Special::DynamicSharedBytes => context.dynamic_shared_bytes,
        Special::TotalSharedBytes => context.total_shared_bytes(),
        Special::AggregatedSharedBytes => context.total_shared_bytes() + RESERVED_SHARED_BYTES,
        Special::ReservedSharedBytes => RESERVED_SHARED_BYTES,
        Special::Shared(offset) => map_to_rank(0, rank).wrapping_add(offset),
        // Linking turns these into `Shared`, after the static part.
        Special::DynamicShared(offset) => map_to_rank(0, rank).wrapping_add(offset as u32),
        Special::Gridid | Special::Zero => 0,
    }
}
