//! Deadlocks. The finding lists everything that threads wait for.

use tma_model::help::Help;

use crate::machine::Machine;
use crate::machine::address::{Target, resolve};
use crate::machine::barrier::{BYTES, Mbarrier};
use crate::machine::index::{BlockRank, ThreadIndex};
use crate::machine::memory::SharedLocation;
use crate::machine::types::{Actor, Phase, RankProgress, Waiting, WaitingFor};
use crate::report::{Finding, FindingKind, Stop, counted};

/// The help for a loop that waits for shared memory to change.
const POLLS_SHARED: &str = "check that the thread that must change this memory reaches its write: no running thread or copy can change it";
/// The help for a loop that waits for a change by another rank of a team.
const POLLS_RANK: &str = "check that the rank that must change this memory does so before it waits itself, and before its blocks end: no running thread can change it any more";

impl Machine {
    /// Records a deadlock: no thread can go on, and no operation is in flight. `waiting` has all
    /// threads that have not exited, and `team` how far each rank has come, if a team runs the
    /// kernel.
    pub fn deadlocked(&mut self, waiting: &[Waiting], team: &[RankProgress]) -> Stop {
        let mut finding = self.deadlock(waiting, team);
        for actor in first_of_each(waiting) {
            finding.parties.push(self.diagnostics.party(actor.does("waits")));
        }
        self.diagnostics.stop(finding)
    }

    fn deadlock(&self, waiting: &[Waiting], team: &[RankProgress]) -> Finding {
        let mut message = String::from("no thread can continue");
        for group in groups(waiting) {
            message.push_str("\n  ");
            message.push_str(&self.describe_group(&group));
        }
        let mut awaited: Vec<SharedLocation> =
            waiting.iter().filter_map(|waiter| self.awaited(waiter)).collect();
        awaited.sort_unstable();
        awaited.dedup();
        let mut finding = Finding::new(FindingKind::Deadlock, "");
        for (location, mbarrier) in self.barriers.all_mbarriers() {
            let (at, state) = (self.diagnostics.location_text(location), mbarrier.describe());
            message.push_str(&format!("\n  mbarrier at {at}: {state}"));
            if awaited.contains(&location) {
                explain(mbarrier, &mut finding);
            }
        }
        for (rank, progress) in team.iter().enumerate() {
            match progress {
                RankProgress { running: 0, waiting: 0 } => {
                    message.push_str(&format!("\n  all blocks of rank {rank} have ended"));
                }
                RankProgress { waiting: 0, .. } => {}
                RankProgress { waiting, .. } => {
                    let waiting = counted(*waiting, "cluster");
                    message
                        .push_str(&format!("\n  {waiting} of rank {rank} cannot begin before another ends"));
                }
            }
        }
        finding.message = message;
        let has_begun = !team.is_empty() && team.iter().all(|progress| progress.waiting == 0);
        let polled = |waiter: &Waiting| {
            let WaitingFor::Memory(pointer) = waiter.event else { return None };
            Some(resolve(pointer, waiter.thread.block))
        };
        let polled = waiting.iter().find_map(polled).map(|target| match target {
            Target::Global(_) if has_begun => POLLS_RANK.into(),
            Target::Global(_) => Help::LaunchTogether,
            Target::Shared(..) => POLLS_SHARED.into(),
        });
        finding.help = finding.help.or(polled);
        finding
    }

    /// Returns the mbarrier that a thread waits for.
    fn awaited(&self, waiter: &Waiting) -> Option<SharedLocation> {
        let WaitingFor::Mbarrier { pointer, .. } = waiter.event else { return None };
        match resolve(pointer, waiter.thread.block) {
            Target::Shared(rank, at) => {
                Some(SharedLocation { rank, at: u32::try_from(at).ok()? / BYTES * BYTES })
            }
            Target::Global(_) => None,
        }
    }

    fn describe_group(&self, group: &WaitingGroup) -> String {
        let WaitingGroup { block, first, last, count, event } = *group;
        let log = &self.diagnostics;
        let offset = |at: u64| match u32::try_from(at) {
            Ok(at) => log.offset(at),
            Err(_) => format!("{at:#x}"),
        };
        let threads = match count {
            1 => format!("thread {first}"),
            _ if last.0 - first.0 + 1 == count => format!("threads {first} to {last}"),
            _ => format!("{count} threads between {first} and {last}"),
        };
        let waits = if count == 1 { "waits" } else { "wait" };
        let waits_for = match event {
            WaitingFor::Barrier(id) => {
                format!("at barrier {id}, where {} have arrived", self.barriers.arrived(block, id))
            }
            WaitingFor::Cluster => {
                format!("at the cluster's barrier, where {} have arrived", self.barriers.cluster.arrived)
            }
            WaitingFor::Mbarrier { pointer, phase } => {
                let at = match resolve(pointer, block) {
                    Target::Shared(_, at) => offset(at),
                    Target::Global(address) => format!("{address:#x}"),
                };
                match phase {
                    Phase::Parity(parity) => {
                        format!("for the phase with parity {} of the mbarrier at {at}", u8::from(parity))
                    }
                    Phase::State(state) => format!("for phase {} of the mbarrier at {at}", state >> 32),
                }
            }
            WaitingFor::BulkGroups { pending, read } => {
                let read = if read { " to be read" } else { "" };
                format!("for all but {pending} bulk groups{read}")
            }
            WaitingFor::AsyncGroups(None) => "for all its `cp.async`".to_owned(),
            WaitingFor::AsyncGroups(Some(pending)) => format!("for all but {pending} groups of `cp.async`"),
            WaitingFor::MultiplyGroups(pending) => {
                format!(
                    "for all but {pending} groups of multiplications, which all warps of the warpgroup must \
                     issue"
                )
            }
            WaitingFor::Registers(count) => {
                let free = self.registers.free(block);
                format!("for {count} registers each, while the block has {free} free")
            }
            WaitingFor::Warp(lanes) => format!("for lanes {lanes:#010x} of the warp"),
            WaitingFor::Memory(pointer) => match resolve(pointer, block) {
                Target::Global(address) => format!("in a loop until global memory at {address:#x} changes"),
                Target::Shared(rank, at) => {
                    format!("in a loop until shared memory at {}{} changes", offset(at), log.of_block(rank))
                }
            },
            WaitingFor::Nothing => "in an endless loop".to_owned(),
        };
        format!("{threads}{} {waits} {waits_for}", log.of_block(block))
    }
}

/// Refines the finding if the state of an awaited mbarrier shows the cause of the deadlock.
fn explain(mbarrier: &Mbarrier, finding: &mut Finding) {
    let count = mbarrier.count();
    let (expected, copied) = (count.expected_bytes(), count.received_bytes());
    if count.tx() != 0 && (count.pending() == 0 || count.tx() < 0) {
        finding.kind = FindingKind::TransactionBytes;
        finding.help = Some(Help::AnnounceBytes { expected, copied });
    } else if finding.help.is_none() && count.pending() > 0 {
        finding.help = Some(Help::FindArrivals { pending: count.pending(), expected: count.expected() });
    }
}

/// Threads of a block that wait for the same event.
#[derive(Clone, Copy, Debug)]
struct WaitingGroup {
    block: BlockRank,
    first: ThreadIndex,
    last: ThreadIndex,
    count: u32,
    event: WaitingFor,
}

fn groups(waiting: &[Waiting]) -> Vec<WaitingGroup> {
    let mut groups: Vec<WaitingGroup> = Vec::new();
    for waiter in waiting {
        let (block, number) = (waiter.thread.block, waiter.thread.index);
        match groups.iter_mut().find(|group| group.block == block && group.event == waiter.event) {
            Some(group) => {
                group.first = group.first.min(number);
                group.last = group.last.max(number);
                group.count += 1;
            }
            None => groups.push(WaitingGroup {
                block,
                first: number,
                last: number,
                count: 1,
                event: waiter.event,
            }),
        }
    }
    groups
}

/// Returns the first thread for each pair of a site and an awaited event.
fn first_of_each(waiting: &[Waiting]) -> Vec<Actor> {
    let mut firsts: Vec<&Waiting> = Vec::new();
    for waiter in waiting {
        let known = |first: &&Waiting| first.event == waiter.event && first.site == waiter.site;
        if !firsts.iter().any(known) {
            firsts.push(waiter);
        }
    }
    firsts.iter().map(|first| Actor { thread: first.thread, site: first.site }).collect()
}
