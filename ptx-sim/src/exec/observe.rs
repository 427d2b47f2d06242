//! Counts and the timeline of what warps run, where a launch asks for them.

use super::alu::Lanes;
use super::step::{Flow, Turn};
use super::warp::Warp;
use super::{banks, lanes_of};
use crate::isa::{Collective, Compared, Inst, Manner, MapCode, Mbarrier, Memory, Op, Touch};
use crate::machine::address::{Target, resolve};
use crate::machine::{BarrierId, BlockRank, Phase, Pointer, Position, Space, WaitingFor};
use crate::profile::{Class, Executed, LineCounts, Named, SharedAccesses};
use crate::trace::Awaited;

/// What was counted of one instruction of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    executed: Executed,
    shared: SharedAccesses,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self) {
        self.executed += other.executed;
        self.shared += other.shared;
    }

    pub(crate) fn of_line(self, inst: &Inst) -> LineCounts {
        let Self { executed, shared } = self;
        LineCounts { site: inst.site, class: class(&inst.op), executed, shared }
    }
}

impl Turn<'_, '_> {
    /// Counts the instruction at `pc`, which `active` lanes are about to run.
    pub(super) fn count(&mut self, warp: &Warp, inst: &Inst, pc: u32, active: u32) {
        if self.counts.is_empty() {
            return;
        }
        let shared =
            inst.op.touches().map(|touch| self.shared_access(warp, active, touch)).unwrap_or_default();
        let executed = Executed { warps: 1, threads: active.count_ones().into() };
        if let Some(count) = self.counts.get_mut(pc as usize) {
            count.add(Count { executed, shared });
        }
    }

    /// The part of an access that goes to the shared memory of the warp's own block.
    fn shared_access(&self, warp: &Warp, active: u32, touch: Touch) -> SharedAccesses {
        let Touch { manner, memory, address, bytes, .. } = touch;
        let Memory::Machine(space) = memory else { return SharedAccesses::default() };
        if space == Space::Global {
            return SharedAccesses::default();
        }
        let mut offsets: Lanes = self.addresses(warp, address);
        let mut lanes = active;
        if space != Space::Shared {
            for lane in lanes_of(active) {
                match resolve(Pointer::new(space, offsets[lane as usize]), warp.block) {
                    Target::Shared(rank, at) if rank == warp.block => offsets[lane as usize] = at,
                    Target::Shared(..) | Target::Global(_) => lanes &= !(1 << lane),
                }
            }
        }
        banks::count(&offsets, lanes, bytes, manner == Manner::Atomic)
    }

    /// Puts the instruction at `pc`, which `active` lanes have run, on the timeline.
    pub(super) fn record(&mut self, warp: &Warp, inst: &Inst, pc: u32, active: u32, flow: &Flow) {
        if self.machine.recorder().is_none() {
            return;
        }
        let place = Position { block: warp.block, warp: warp.index, pc, site: inst.site };
        let part = self.part_in_synchronisation(warp, &inst.op, active);
        let Some(recorder) = self.machine.recorder() else { return };
        match (flow, part) {
            (Flow::Wait { stay, what }, _) => {
                if let Some(what) = awaited(what, warp.block) {
                    recorder.waits(place, *stay, what);
                }
            }
            (_, Part::Waits { what, gave_up }) => recorder.waited(place, active, what, gave_up),
            (_, Part::Signals) => recorder.signalled(place, active),
            (_, Part::None) => recorder.ran(place, matches!(inst.op, Op::Branch(_))),
        }
        if let Op::Collective { what: Collective::Barrier, .. } = inst.op {
            // Lanes that stay here are not among the warp's groups yet.
            let stays = matches!(flow, Flow::Wait { .. });
            recorder.released(warp.block, warp.index, |at| stays && at == pc || warp.groups.any_at(at));
        }
    }

    fn part_in_synchronisation(&self, warp: &Warp, op: &Op, active: u32) -> Part {
        let Some(lane) = lanes_of(active).next() else { return Part::None };
        let get = |row| warp.get(self.context, row, lane);
        let what = match op {
            Op::BlockBarrier(barrier) if !barrier.arrive_only => {
                WaitingFor::Barrier(BarrierId(get(barrier.id) as u32))
            }
            Op::ClusterWait(_) => WaitingFor::Cluster,
            Op::BulkWait { pending, read } => WaitingFor::BulkGroups { pending: *pending, read: *read },
            Op::CopyAsyncWait(pending) => WaitingFor::AsyncGroups(*pending),
            Op::Collective { mask, what: Collective::Barrier } => WaitingFor::Warp(get(*mask) as u32),
            Op::Map(code) => match **code {
                MapCode::Copy { .. } => WaitingFor::Warp(warp.live),
                MapCode::Acquire { .. } => return Part::Signals,
                MapCode::Replace { .. } => return Part::None,
            },
            Op::Mbarrier {
                space,
                address,
                op: Mbarrier::TestWait { phase, parity, done, may_block, .. },
            } => {
                let complete = lanes_of(active).all(|lane| warp.get(self.context, *done, lane) != 0);
                if !complete && !may_block {
                    return Part::None;
                }
                let phase = Phase::of(get(*phase), *parity);
                let address = super::memory::effective(get(address.base), address.offset);
                let what = WaitingFor::Mbarrier { pointer: Pointer::new(*space, address), phase };
                return awaited(&what, warp.block)
                    .map_or(Part::None, |what| Part::Waits { what, gave_up: !complete });
            }
            Op::BlockBarrier(_)
            | Op::ClusterArrive { .. }
            | Op::Mbarrier { .. }
            | Op::Fence(_)
            | Op::Tensor(_)
            | Op::Bulk(_)
            | Op::Remote(_)
            | Op::CopyAsync(_)
            | Op::CopyAsyncCommit
            | Op::CopyAsyncArrive { .. }
            | Op::BulkCommit => return Part::Signals,
            Op::One(..)
            | Op::Two(..)
            | Op::Three(..)
            | Op::Lop3(..)
            | Op::Insert(..)
            | Op::Float { .. }
            | Op::Carry(..)
            | Op::Compare { .. }
            | Op::ComparePair { .. }
            | Op::Convert(..)
            | Op::ConvertPair(..)
            | Op::Pack(..)
            | Op::Unpack(..)
            | Op::Window { .. }
            | Op::IsSpace { .. }
            | Op::MapToRank { .. }
            | Op::RankOf { .. }
            | Op::Clock { .. }
            | Op::CacheLine { .. }
            | Op::Load(_)
            | Op::Store(_)
            | Op::Atomic { .. }
            | Op::AtomicVector(_)
            | Op::WideAtomic(_)
            | Op::Branch(_)
            | Op::BranchIndexed(..)
            | Op::Call(..)
            | Op::Return(_)
            | Op::Exit
            | Op::Trap
            | Op::Nothing
            | Op::CopyLocal { .. }
            | Op::Printf { .. }
            | Op::AssertFail { .. }
            | Op::Collective { .. }
            | Op::ActiveMask(_)
            | Op::PendingCount { .. }
            | Op::Yield => return Part::None,
        };
        awaited(&what, warp.block).map_or(Part::None, |what| Part::Waits { what, gave_up: false })
    }
}

/// What an instruction that was run has to do with others.
enum Part {
    None,
    Signals,
    Waits { what: Awaited, gave_up: bool },
}

/// What lanes of block `own` wait for, with the mbarrier's address as a place.
fn awaited(what: &WaitingFor, own: BlockRank) -> Option<Awaited> {
    Some(match *what {
        WaitingFor::Barrier(id) => Awaited::Barrier(id.0),
        WaitingFor::Cluster => Awaited::Cluster,
        WaitingFor::Mbarrier { pointer, phase } => match resolve(pointer, own) {
            Target::Shared(rank, at) => Awaited::Mbarrier { rank: rank.0, at: at as u32, phase },
            // The machine has refused it.
            Target::Global(_) => Awaited::Mbarrier { rank: own.0, at: u32::MAX, phase },
        },
        WaitingFor::BulkGroups { pending, read } => Awaited::BulkGroups { pending, read },
        WaitingFor::AsyncGroups(pending) => Awaited::AsyncGroups(pending),
        WaitingFor::Warp(lanes) => Awaited::Lanes(lanes),
        // Loops are shown as what they run.
        WaitingFor::Memory(_) | WaitingFor::Nothing => return None,
    })
}

fn class(op: &Op) -> Class {
    match op {
        Op::One(..)
        | Op::Two(..)
        | Op::Three(..)
        | Op::Lop3(..)
        | Op::Insert(..)
        | Op::Carry(..)
        | Op::Compare { compared: Compared::Integer(_), .. }
        | Op::Pack(..)
        | Op::Unpack(..)
        | Op::Window { .. }
        | Op::IsSpace { .. }
        | Op::MapToRank { .. }
        | Op::RankOf { .. }
        | Op::Clock { .. }
        | Op::ActiveMask(_) => Class::Integer,
        Op::Float { .. } | Op::Compare { compared: Compared::Float(..), .. } | Op::ComparePair { .. } => {
            Class::Float
        }
        Op::Convert(..) | Op::ConvertPair(..) => Class::Convert,
        Op::Load(access) => Class::Load(named(access.memory)),
        Op::Store(access) => Class::Store(named(access.memory)),
        Op::Atomic { memory, .. } => Class::Atomic(named(*memory)),
        Op::AtomicVector(vector) => Class::Atomic(named(Memory::Machine(vector.space))),
        Op::WideAtomic(wide) => Class::Atomic(named(Memory::Machine(wide.space))),
        Op::CopyAsync(_) | Op::Tensor(_) | Op::Bulk(_) | Op::Remote(_) => Class::Copy,
        Op::BulkCommit | Op::BulkWait { .. } | Op::CopyAsyncCommit | Op::CopyAsyncWait(_) => Class::BulkGroup,
        Op::Mbarrier { .. } | Op::PendingCount { .. } | Op::CopyAsyncArrive { .. } => Class::Mbarrier,
        Op::Map(code) => match **code {
            MapCode::Replace { space, .. } => Class::Store(named(Memory::Machine(space))),
            MapCode::Copy { .. } => Class::Copy,
            MapCode::Acquire { .. } => Class::Fence,
        },
        Op::BlockBarrier(_) | Op::ClusterArrive { .. } | Op::ClusterWait(_) => Class::Barrier,
        Op::Fence(_) => Class::Fence,
        Op::Collective { .. } => Class::Warp,
        Op::Branch(_)
        | Op::BranchIndexed(..)
        | Op::Call(..)
        | Op::Return(_)
        | Op::Exit
        | Op::Trap
        | Op::Nothing
        | Op::CacheLine { .. }
        | Op::CopyLocal { .. }
        | Op::Printf { .. }
        | Op::AssertFail { .. }
        | Op::Yield => Class::Control,
    }
}

fn named(memory: Memory) -> Named {
    match memory {
        Memory::Machine(Space::Global) => Named::Global,
        Memory::Machine(Space::Shared) => Named::Shared,
        Memory::Machine(Space::SharedCluster) => Named::Cluster,
        Memory::Machine(Space::Generic) => Named::Generic,
        Memory::Local => Named::Local,
        Memory::Param => Named::Param,
    }
}
