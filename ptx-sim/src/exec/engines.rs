//! Barriers and asynchronous copies: operands are read here, the machine does the rest.

use super::lanes_of;
use super::step::{Flow, Turn};
use super::warp::Warp;
use crate::isa::{
    Address, BlockBarrier, BlockVote, BulkCode, CopyCode, Guard, Mbarrier, RemoteCode, Row, TensorCode,
    TensorCodeAction,
};
use crate::machine::{
    Arrive, BarrierId, BarrierUse, BulkAction, BulkCopy, Combination, CopyAsync, Order, Phase, PhaseWait,
    Pointer, Poll, RemoteStore, Site, Space, Stop, TensorAction, TensorCopy, TryWait, WaitingFor,
};
use tma_model::sync::Arrival;

impl Turn<'_, '_> {
    pub(super) fn lane(&self, warp: &Warp, row: Row, lane: u32) -> u64 {
        warp.get(self.context, row, lane)
    }

    pub(super) fn address(&self, warp: &Warp, address: Address, lane: u32) -> u64 {
        super::memory::effective(self.lane(warp, address.base, lane), address.offset)
    }

    /// Asks for each lane, and once more for those that had to wait: the last to come may have freed them.
    fn poll(
        &mut self,
        active: u32,
        mut ask: impl FnMut(&mut Self, u32) -> Result<Poll, Stop>,
    ) -> Result<u32, Stop> {
        let mut stay = 0;
        for lane in lanes_of(active) {
            if ask(self, lane)? == Poll::Blocked {
                stay |= 1 << lane;
            }
        }
        if stay != active {
            for lane in lanes_of(stay) {
                if ask(self, lane)? == Poll::Ready {
                    stay &= !(1 << lane);
                }
            }
        }
        Ok(stay)
    }

    pub(super) fn block_barrier(
        &mut self,
        warp: &mut Warp,
        active: u32,
        barrier: &BlockBarrier,
        site: Site,
    ) -> Result<Flow, Stop> {
        let mut ids = BarrierId(0);
        let stay = self.poll(active, |turn, lane| {
            let id = BarrierId(turn.lane(warp, barrier.id, lane) as u32);
            ids = id;
            let vote = barrier
                .vote
                .is_some_and(|(row, negated, ..)| turn.holds(warp, Guard { row, negated }) >> lane & 1 != 0);
            let with = BarrierUse {
                id,
                threads: barrier.threads.map(|row| turn.lane(warp, row, lane) as u32),
                arrive_only: barrier.arrive_only,
                aligned: barrier.aligned,
                vote,
            };
            turn.machine.barrier(warp.actor(lane, site), with)
        })?;
        if let Some((_, _, what, d)) = barrier.vote {
            for lane in lanes_of(active & !stay) {
                let votes = self.machine.barrier_votes(warp.thread(lane));
                let answer = match what {
                    BlockVote::Count => votes.yes,
                    BlockVote::All => u32::from(votes.yes == votes.all),
                    BlockVote::Any => u32::from(votes.yes > 0),
                };
                warp.set(d, lane, u64::from(answer));
            }
        }
        Ok(waiting(stay, WaitingFor::Barrier(ids)))
    }

    pub(super) fn cluster_wait(
        &mut self,
        warp: &Warp,
        active: u32,
        order: Order,
        site: Site,
    ) -> Result<Flow, Stop> {
        let stay =
            self.poll(active, |turn, lane| turn.machine.cluster_wait(warp.actor(lane, site), order))?;
        Ok(waiting(stay, WaitingFor::Cluster))
    }

    pub(super) fn bulk_wait(
        &mut self,
        warp: &Warp,
        active: u32,
        pending: u32,
        read: bool,
    ) -> Result<Flow, Stop> {
        let stay =
            self.poll(active, |turn, lane| Ok(turn.machine.bulk_wait(warp.thread(lane), pending, read)))?;
        Ok(waiting(stay, WaitingFor::BulkGroups { pending, read }))
    }

    pub(super) fn copy_async(
        &mut self,
        warp: &Warp,
        active: u32,
        code: &CopyCode,
        site: Site,
    ) -> Result<(), Stop> {
        let ignored = code.ignore.map_or(0, |guard| self.holds(warp, guard));
        let copies: Vec<CopyAsync> = lanes_of(active)
            .map(|lane| CopyAsync {
                who: warp.thread(lane),
                to: self.address(warp, code.to, lane),
                from: self.address(warp, code.from, lane),
                bytes: code.bytes,
                read: match code.read {
                    _ if ignored >> lane & 1 == 1 => 0,
                    Some(row) => self.lane(warp, row, lane) as u32,
                    None => code.bytes,
                },
            })
            .collect();
        self.machine.copy_async(&copies, site)
    }

    pub(super) fn copy_async_wait(
        &mut self,
        warp: &Warp,
        active: u32,
        pending: Option<u32>,
    ) -> Result<Flow, Stop> {
        let stay =
            self.poll(active, |turn, lane| Ok(turn.machine.copy_async_wait(warp.thread(lane), pending)))?;
        Ok(waiting(stay, WaitingFor::AsyncGroups(pending)))
    }

    pub(super) fn copy_async_arrive(
        &mut self,
        warp: &Warp,
        active: u32,
        (space, address): (Space, Address),
        no_increment: bool,
        site: Site,
    ) -> Result<(), Stop> {
        for lane in lanes_of(active) {
            let at = Pointer::new(space, self.address(warp, address, lane));
            self.machine.copy_async_arrive(warp.actor(lane, site), at, no_increment)?;
        }
        Ok(())
    }

    pub(super) fn mbarrier(
        &mut self,
        warp: &mut Warp,
        active: u32,
        space: Space,
        address: Address,
        op: &Mbarrier,
        site: Site,
    ) -> Result<Flow, Stop> {
        let mut stay = 0;
        let mut what = WaitingFor::Cluster;
        for lane in lanes_of(active) {
            let actor = warp.actor(lane, site);
            let at = Pointer::new(space, self.address(warp, address, lane));
            match *op {
                Mbarrier::Init { count } => {
                    let count = self.lane(warp, count, lane) as u32;
                    self.machine.mbarrier_init(actor, at, count)?;
                }
                Mbarrier::Invalidate => self.machine.mbarrier_inval(actor, at)?,
                Mbarrier::Arrive { count, expect_tx, drop, no_complete, semantics, state } => {
                    let count = self.lane(warp, count, lane) as u32;
                    let expect_tx = expect_tx.map(|row| self.lane(warp, row, lane) as u32);
                    let arrival = Arrival { count, expect_tx, drop, no_complete };
                    let before = self.machine.mbarrier_arrive(actor, at, Arrive { arrival, semantics })?;
                    warp.set(state, lane, before);
                }
                Mbarrier::ExpectTx { bytes } => {
                    let bytes = self.lane(warp, bytes, lane) as u32;
                    self.machine.mbarrier_expect_tx(actor, at, bytes)?;
                }
                Mbarrier::CompleteTx { bytes } => {
                    let bytes = self.lane(warp, bytes, lane) as u32;
                    self.machine.mbarrier_complete_tx(actor, at, bytes)?;
                }
                Mbarrier::TestWait { phase, parity, semantics, done, may_block } => {
                    let phase = Phase::of(self.lane(warp, phase, lane), parity);
                    let wait = PhaseWait { phase, semantics };
                    let answer = if may_block {
                        self.machine.mbarrier_try_wait(actor, at, wait)?
                    } else if self.machine.mbarrier_poll(actor, at, wait)? {
                        TryWait::Complete
                    } else {
                        TryWait::TimedOut
                    };
                    match answer {
                        TryWait::Complete => warp.set(done, lane, 1),
                        TryWait::TimedOut => warp.set(done, lane, 0),
                        TryWait::Blocked => {
                            stay |= 1 << lane;
                            what = WaitingFor::Mbarrier { pointer: at, phase };
                        }
                    }
                }
            }
        }
        Ok(waiting(stay, what))
    }

    pub(super) fn tensor(
        &mut self,
        warp: &Warp,
        active: u32,
        code: &TensorCode,
        site: Site,
    ) -> Result<(), Stop> {
        for lane in lanes_of(active) {
            let (map, descriptor) = self.map_of(warp, lane, code.map, site)?;
            let mut at = [0; 5];
            for (place, row) in at.iter_mut().zip(&code.at) {
                *place = self.lane(warp, *row, lane) as i32;
            }
            let action = match code.action {
                TensorCodeAction::Load { space, tile, barrier, multicast } => TensorAction::Load {
                    space,
                    tile: self.address(warp, tile, lane),
                    barrier: self.address(warp, barrier, lane),
                    multicast: multicast.map(|row| self.lane(warp, row, lane) as u16),
                },
                TensorCodeAction::Store { tile } => {
                    TensorAction::Store { tile: self.address(warp, tile, lane) }
                }
                TensorCodeAction::Reduce { tile, with } => {
                    TensorAction::Reduce { tile: self.address(warp, tile, lane), with }
                }
                TensorCodeAction::Prefetch => TensorAction::Prefetch,
            };
            let mut offsets = [0; 3];
            for (place, row) in offsets.iter_mut().zip(&code.offsets) {
                *place = self.lane(warp, *row, lane) as u16;
            }
            let (rank, im2col) = (code.at.len() as u32, code.im2col);
            let copy = TensorCopy { map, descriptor, at, rank, im2col, offsets, action };
            self.machine.tensor_copy(warp.actor(lane, site), &copy)?;
        }
        Ok(())
    }

    pub(super) fn bulk(&mut self, warp: &Warp, active: u32, code: &BulkCode, site: Site) -> Result<(), Stop> {
        for lane in lanes_of(active) {
            let at = |address| self.address(warp, address, lane);
            let size = |row| self.lane(warp, row, lane) as u32;
            let copy = match *code {
                BulkCode::Load { space, to, from, bytes, barrier, multicast } => BulkCopy {
                    bytes: size(bytes),
                    action: BulkAction::Load {
                        global: at(from),
                        space,
                        to: at(to),
                        barrier: at(barrier),
                        multicast: multicast.map(|row| size(row) as u16),
                    },
                },
                BulkCode::Store { to, from, bytes, reduce } => BulkCopy {
                    bytes: size(bytes),
                    action: BulkAction::Store {
                        from: at(from),
                        global: at(to),
                        reduce: reduce.map(Combination::from),
                    },
                },
                BulkCode::ToCluster { to, from, bytes, barrier, reduce } => BulkCopy {
                    bytes: size(bytes),
                    action: BulkAction::ToCluster {
                        from: at(from),
                        to: at(to),
                        barrier: at(barrier),
                        reduce: reduce.map(Combination::from),
                    },
                },
                BulkCode::Prefetch { from, bytes } => {
                    BulkCopy { bytes: size(bytes), action: BulkAction::Prefetch { global: at(from) } }
                }
            };
            self.machine.bulk_copy(warp.actor(lane, site), &copy)?;
        }
        Ok(())
    }
}

impl Turn<'_, '_> {
    /// `st.async` and `red.async`.
    pub(super) fn remote(
        &mut self,
        warp: &Warp,
        active: u32,
        code: &RemoteCode,
        site: Site,
    ) -> Result<(), Stop> {
        let size = code.bytes as usize;
        for lane in lanes_of(active) {
            let mut bytes = [0; 16];
            for (place, row) in bytes.chunks_exact_mut(size).zip(&code.values) {
                place.copy_from_slice(&self.lane(warp, *row, lane).to_le_bytes()[..size]);
            }
            let store = RemoteStore {
                space: code.space,
                to: self.address(warp, code.to, lane),
                value: bytes,
                bytes: (size * code.values.len()) as u32,
                barrier: self.address(warp, code.barrier, lane),
                reduce: code.reduce.map(Combination::from),
            };
            self.machine.remote_store(warp.actor(lane, site), &store)?;
        }
        Ok(())
    }
}

fn waiting(stay: u32, what: WaitingFor) -> Flow {
    if stay == 0 { Flow::Next } else { Flow::Wait { stay, what } }
}
