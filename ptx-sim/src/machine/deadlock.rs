//! When nobody can go on: time passes for the engines, or it is a deadlock, which is shown with all that is waited for.

use super::Machine;
use super::mbarrier::{BYTES, Mbarrier};
use super::types::{Phase, Progress, Waiting, WaitingFor};
use crate::report::{Finding, FindingKind, Party};

/// An mbarrier in words.
pub(super) fn describe(mbarrier: &Mbarrier) -> String {
    let Mbarrier { phase, pending, expected, tx, expected_bytes, received_bytes, .. } = mbarrier;
    let parity = phase & 1;
    format!(
        "phase {phase} (parity {parity}), {pending} of {expected} arrivals pending, {tx} bytes pending: \
         {expected_bytes} expected, {received_bytes} copied"
    )
}

impl Machine {
    /// No thread can go on: `waiting` has those that have not exited. Lets the next piece of a copy take effect, or records
    /// the deadlock.
    pub fn all_blocked(&mut self, waiting: &[Waiting]) -> Progress {
        if self.engine.skip() {
            self.record_skip();
            self.run_due();
            return Progress::Advanced;
        }
        let mut finding = self.deadlock(waiting);
        for &(who, site) in &first_of_each(waiting) {
            finding.parties.push(Party { does: "waits", ..self.party(who, site, "waits") });
        }
        self.findings.add(finding);
        Progress::Deadlock
    }

    fn deadlock(&mut self, waiting: &[Waiting]) -> Finding {
        let mut message = String::from("no thread can go on");
        for group in groups(waiting) {
            message.push_str("\n  ");
            message.push_str(&self.describe_group(&group));
        }
        let mut awaited: Vec<(usize, u32)> =
            waiting.iter().filter_map(|thread| self.awaited(thread)).collect();
        awaited.sort_unstable();
        awaited.dedup();
        let mut finding = Finding::new(FindingKind::Deadlock, "");
        for (rank, block) in self.blocks.iter().enumerate() {
            for (at, mbarrier) in block.mbarriers.iter() {
                let state = describe(mbarrier);
                message.push_str(&format!("\n  mbarrier at {at:#x} of block {rank}: {state}"));
                if awaited.contains(&(rank, at)) {
                    explain(mbarrier, &mut finding);
                }
            }
        }
        finding.message = message;
        finding
    }

    /// The mbarrier that a thread waits for.
    fn awaited(&self, thread: &Waiting) -> Option<(usize, u32)> {
        let WaitingFor::Mbarrier { space, address, .. } = thread.what else { return None };
        match super::address::resolve(space, address, thread.who.block) {
            super::address::Target::Shared(rank, at) => {
                Some((rank as usize, u32::try_from(at).ok()? / BYTES * BYTES))
            }
            super::address::Target::Global(_) => None,
        }
    }

    fn describe_group(&self, group: &Group) -> String {
        let Group { block, first, last, count, what } = *group;
        let threads = match count {
            1 => format!("thread {first}"),
            _ if last - first + 1 == count => format!("threads {first} to {last}"),
            _ => format!("{count} threads from {first} to {last}"),
        };
        let waits = if count == 1 { "waits" } else { "wait" };
        let what = match what {
            WaitingFor::Barrier(id) => {
                let barrier = self.blocks.get(block as usize).and_then(|block| block.named.get(id as usize));
                let arrived = barrier.map_or(0, |barrier| barrier.arrived);
                format!("at barrier {id}, where {arrived} have arrived")
            }
            WaitingFor::Cluster => {
                format!("at the cluster's barrier, where {} have arrived", self.cluster.arrived)
            }
            WaitingFor::Mbarrier { address, phase, .. } => match phase {
                Phase::Parity(parity) => {
                    format!("for the phase of parity {} of the mbarrier at {address:#x}", u8::from(parity))
                }
                Phase::State(state) => format!("for phase {} of the mbarrier at {address:#x}", state >> 32),
            },
            WaitingFor::BulkGroups { pending, read } => {
                let read = if read { " to be read" } else { "" };
                format!("for all but {pending} bulk groups{read}")
            }
            WaitingFor::AsyncGroups(None) => "for all its `cp.async`".to_owned(),
            WaitingFor::AsyncGroups(Some(pending)) => format!("for all but {pending} groups of `cp.async`"),
            WaitingFor::Warp(lanes) => format!("for lanes {lanes:#010x} of the warp"),
        };
        format!("{threads} of block {block} {waits} {what}")
    }
}

/// Says more of the deadlock where an mbarrier that is waited for shows it.
fn explain(mbarrier: &Mbarrier, finding: &mut Finding) {
    let (expected, copied) = (mbarrier.expected_bytes, mbarrier.received_bytes);
    if mbarrier.tx != 0 && (mbarrier.pending == 0 || mbarrier.tx < 0) {
        finding.kind = FindingKind::TransactionBytes;
        finding.help = Some(format!(
            "the phase expects {expected} bytes, but {copied} were copied: let `expect_tx` and the copies agree"
        ));
    } else if finding.help.is_none() && mbarrier.pending > 0 {
        let (pending, all) = (mbarrier.pending, mbarrier.expected);
        finding.help = Some(format!(
            "{pending} of {all} arrivals are missing: is a thread to arrive, is the count of `mbarrier.init` too great, or is \
             the parity that of the other phase?"
        ));
    }
}

/// Threads of a block that wait for the same.
#[derive(Clone, Copy, Debug)]
struct Group {
    block: u32,
    first: u32,
    last: u32,
    count: u32,
    what: WaitingFor,
}

fn groups(waiting: &[Waiting]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for thread in waiting {
        let (block, number) = (thread.who.block, thread.who.thread);
        match groups.iter_mut().find(|group| group.block == block && group.what == thread.what) {
            Some(group) => {
                group.first = group.first.min(number);
                group.last = group.last.max(number);
                group.count += 1;
            }
            None => groups.push(Group { block, first: number, last: number, count: 1, what: thread.what }),
        }
    }
    groups
}

/// The first thread that waits at each place for each thing.
fn first_of_each(waiting: &[Waiting]) -> Vec<(super::ThreadId, super::Site)> {
    let mut firsts: Vec<&Waiting> = Vec::new();
    for thread in waiting {
        let known = |first: &&Waiting| first.what == thread.what && first.site == thread.site;
        if !firsts.iter().any(known) {
            firsts.push(thread);
        }
    }
    firsts.iter().map(|first| (first.who, first.site)).collect()
}
