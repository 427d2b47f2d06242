//! Rendezvous of threads: in warps, blocks, the cluster and the grid, and for registers that
//! warpgroups share.

mod named;
mod registers;
mod warp;

use std::rc::Rc;

use tma_front::ir::{ParamId, Stmt, StmtId, Sync};
use tma_model::limits::{WARP_THREADS, WARPGROUP_THREADS};
use tma_model::sync::Epoch;

use self::named::Named;
use super::finding::{Detail, Party, Rule, ThreadAct, UndecidedReason};
use super::memory::Site;
use super::run::{Run, StepFlow, StepResult};
use super::state::{Agent, Execution, Rendezvous, RendezvousKind, WarpArrival, WarpRendezvous};

/// Returns the warp of a group that lies within one warp.
fn warp_of(agent: &Agent) -> u32 {
    agent.threads.first().map_or(0, |thread| thread / WARP_THREADS)
}

impl Run<'_, '_> {
    pub(crate) fn sync(&mut self, stmt: &Stmt, sync: Sync) -> StepResult<StepFlow> {
        match sync {
            Sync::Threads => self.named(stmt.id, Named { id: 0, threads: None, aligned: true }, false),
            Sync::Warp => self.warp(stmt.id, WarpRendezvous::Sync, vec![]).map(|(flow, _)| flow),
            Sync::Warpgroup => {
                let all = self.input.kernel.barriers().of_warpgroups();
                let id = all.get(self.warpgroup() as usize).copied().unwrap_or(0);
                let named = Named { id, threads: Some(WARPGROUP_THREADS), aligned: false };
                self.named(stmt.id, named, false)
            }
            Sync::Cluster => {
                if self.agent().cluster_sync != Some(stmt.id) {
                    self.arrive_in_cluster(stmt.id, true)?;
                    self.agent_mut().cluster_sync = Some(stmt.id);
                }
                let flow = self.wait_in_cluster(stmt.id)?;
                if flow == StepFlow::Next {
                    self.agent_mut().cluster_sync = None;
                }
                Ok(flow)
            }
            Sync::ClusterArrive => self.arrive_in_cluster(stmt.id, false).map(|()| StepFlow::Next),
            Sync::ClusterWait => self.wait_in_cluster(stmt.id),
        }
    }

    /// Counts the threads that have not ended, of one block or of all.
    fn live(&self, block: Option<usize>) -> u32 {
        let is_live = |agent: &&Agent| !agent.is_done && block.is_none_or(|block| agent.block == block);
        self.state.agents.iter().filter(is_live).map(|agent| agent.threads.len() as u32).sum()
    }

    /// Returns the arrivals of warps of the current group at a statement. With `aligned`, all
    /// threads of a warp have to execute the statement together.
    fn arrivals(&self, stmt: StmtId, warps: &[u32], aligned: bool) -> Vec<WarpArrival> {
        let iterations: Rc<[_]> = self.agent().iterations.as_slice().into();
        let arrival = |&warp: &u32| WarpArrival {
            warp,
            site: self.site(stmt),
            iterations: Rc::clone(&iterations),
            aligned,
        };
        warps.iter().map(arrival).collect()
    }

    /// Reports that threads of the group's warp have arrived at a barrier at another site.
    fn reached_elsewhere<T>(&self, stmt: StmtId, other: Site) -> StepResult<T> {
        let other = Party { site: other, does: ThreadAct::ReachElsewhere };
        self.violation(Rule::Divergence, stmt, ThreadAct::Reach, vec![other], Detail::Nothing)
    }

    fn arrive_in_cluster(&mut self, stmt: StmtId, aligned: bool) -> StepResult {
        if self.agent().cluster_round.is_some() {
            let does = ThreadAct::ArriveTwice;
            return self.violation(Rule::Divergence, stmt, does, vec![], Detail::Nothing);
        }
        let site = self.site(stmt);
        let arrivals = self.arrivals(stmt, &numbered_warps(self.agent()), aligned);
        if let Some(other) = self.state.cluster.record_arrivals(arrivals) {
            return self.reached_elsewhere(stmt, other);
        }
        let Execution { agents, cluster, current, .. } = &mut self.state;
        let agent = &mut agents[*current];
        agent.cluster_round = Some(cluster.round);
        cluster.releases.release(&mut agent.view);
        cluster.first.get_or_insert(site);
        cluster.arrived += agent.threads.len() as u32;
        self.end_round_of_cluster();
        Ok(())
    }

    /// Completes the round of the cluster's barrier if no thread is missing.
    fn end_round_of_cluster(&mut self) {
        let arrived = self.state.cluster.arrived;
        if arrived > 0 && arrived >= self.live(None) {
            self.state.cluster.next_round();
            self.state.event_count += 1;
        }
    }

    fn wait_in_cluster(&mut self, stmt: StmtId) -> StepResult<StepFlow> {
        let Some(round) = self.agent().cluster_round else {
            let does = ThreadAct::WaitUnarrived;
            return self.violation(Rule::Divergence, stmt, does, vec![], Detail::Nothing);
        };
        if self.state.cluster.round <= round {
            return Ok(StepFlow::Blocked);
        }
        let agent = &mut self.state.agents[self.state.current];
        self.acquirer.acquire(&mut agent.view, &self.state.cluster.released);
        agent.cluster_round = None;
        Ok(StepFlow::Next)
    }

    /// Removes a group of threads that has ended from the cluster's barrier, which does not wait
    /// for it.
    pub(crate) fn leave_cluster(&mut self) {
        let threads = self.agent().threads.len() as u32;
        if self.agent().cluster_round == Some(self.state.cluster.round) {
            self.state.cluster.arrived = self.state.cluster.arrived.saturating_sub(threads);
        }
        self.end_round_of_cluster();
    }

    /// Executes `sync_grid`. The threads of the followed cluster represent those of the whole grid.
    pub(crate) fn sync_grid(&mut self, stmt: StmtId, counter: ParamId) -> StepResult<StepFlow> {
        let site = self.site(stmt);
        if let Some(span) = self.input.code.slice.by_block(stmt) {
            self.note_undecided(UndecidedReason::Grid, span);
        }
        if self.agent().arrived_round.is_none() {
            let arrivals = self.arrivals(stmt, &numbered_warps(self.agent()), true);
            if let Some(other) = self.state.grid.record_arrivals(arrivals) {
                return self.reached_elsewhere(stmt, other);
            }
        }
        let all: u32 = self.state.agents.iter().map(|agent| agent.threads.len() as u32).sum();
        let Execution { agents, grid, current, event_count, history, .. } = &mut self.state;
        let agent = &mut agents[*current];
        let round = match agent.arrived_round {
            Some(round) => round,
            None => {
                grid.releases.release(&mut agent.view);
                grid.first.get_or_insert(site);
                grid.arrived += agent.threads.len() as u32;
                let round = grid.round;
                (agent.arrived_round, agent.rendezvous) = (Some(round), RendezvousKind::Grid);
                if grid.arrived >= all {
                    // A proof repeats loops any number of times.
                    if !self.policy.forks {
                        history.grid_rounds.push((counter, site));
                    }
                    grid.next_round();
                    *event_count += 1;
                }
                round
            }
        };
        if grid.round <= round {
            return Ok(StepFlow::Blocked);
        }
        self.acquirer.acquire(&mut agent.view, &grid.released);
        agent.arrived_round = None;
        Ok(StepFlow::Next)
    }
}

fn warps_of(agent: &Agent) -> Vec<u32> {
    let mut warps: Vec<u32> = agent.threads.iter().map(|thread| thread / WARP_THREADS).collect();
    warps.dedup();
    warps
}

/// Returns the warps of a group, with numbers that are unique among all blocks.
fn numbered_warps(agent: &Agent) -> Vec<u32> {
    let of_block = agent.block as u32 * WARP_NUMBER_STRIDE;
    warps_of(agent).into_iter().map(|warp| of_block + warp).collect()
}

/// A number greater than that of the warps of a block.
pub(super) const WARP_NUMBER_STRIDE: u32 = 1 << 8;

impl Rendezvous {
    /// Records arrivals of warps. Returns another site at which one of the warps has arrived, or
    /// the same site in other iterations, if that is a mistake.
    fn record_arrivals(&mut self, arrivals: Vec<WarpArrival>) -> Option<Site> {
        let mut elsewhere = None;
        for new in arrivals {
            match self.arrivals.iter().find(|old| old.warp == new.warp) {
                Some(old) => {
                    let is_same = old.site.stmt == new.site.stmt && old.iterations == new.iterations;
                    if (old.aligned || new.aligned) && !is_same {
                        elsewhere = Some(old.site);
                    }
                }
                None => self.arrivals.push(new),
            }
        }
        elsewhere
    }

    /// Returns the number of threads in the warps that have arrived at a barrier of the block.
    fn of_warps(&self) -> u32 {
        WARP_THREADS * self.warps.len() as u32
    }

    /// Completes the round.
    fn next_round(&mut self) {
        self.round += 1;
        (self.arrived, self.expected, self.first) = (0, None, None);
        self.arrivals.clear();
        self.warps.clear();
        self.released = std::mem::take(&mut self.releases).join();
        if let Some(component) = self.component {
            self.released.learn(Epoch::new(component, self.round));
        }
        self.result = std::mem::take(&mut self.operands).into();
    }
}
