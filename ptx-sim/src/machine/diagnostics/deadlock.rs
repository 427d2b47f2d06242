//! Deadlocks. The finding lists everything that threads wait for.

use crate::machine::Machine;
use crate::machine::address::{Target, resolve};
use crate::machine::barrier::{BYTES, Mbarrier};
use crate::machine::index::{BlockRank, ThreadIndex};
use crate::machine::memory::SharedPlace;
use crate::machine::types::{Actor, Phase, Waiting, WaitingFor};
use crate::report::{Finding, FindingKind, Help, Stop, counted};

/// The help for a loop that waits for global memory to change.
const POLLS_GLOBAL: &str = "nothing that runs can change it any more: blocks that wait for each other have to run together, in a \
                            cooperative launch, and all come to where they meet[[ (as to `sync_grid(..)`)||]]";
/// The help for a loop that waits for shared memory to change.
const POLLS_SHARED: &str =
    "no thread that runs, and no copy, can change it any more: does the one that is to change it get there?";

impl Machine {
    /// Records a deadlock: no thread can go on, and no operation is in flight. `waiting` has all
    /// threads that have not exited.
    pub fn deadlocked(&mut self, waiting: &[Waiting]) -> Stop {
        let mut finding = self.deadlock(waiting);
        for actor in first_of_each(waiting) {
            finding.parties.push(self.diagnostics.party(actor.does("waits")));
        }
        self.diagnostics.stop(finding)
    }

    fn deadlock(&self, waiting: &[Waiting]) -> Finding {
        let mut message = String::from("no thread can go on");
        for group in groups(waiting) {
            message.push_str("\n  ");
            message.push_str(&self.describe_group(&group));
        }
        let mut awaited: Vec<SharedPlace> =
            waiting.iter().filter_map(|thread| self.awaited(thread)).collect();
        awaited.sort_unstable();
        awaited.dedup();
        let mut finding = Finding::new(FindingKind::Deadlock, "");
        for (place, mbarrier) in self.barriers.all_mbarriers() {
            let (at, state) = (self.diagnostics.place(place), mbarrier.describe());
            message.push_str(&format!("\n  mbarrier at {at}: {state}"));
            if awaited.contains(&place) {
                explain(mbarrier, &mut finding);
            }
        }
        finding.message = message;
        let polled = |thread: &Waiting| {
            let WaitingFor::Memory(pointer) = thread.what else { return None };
            Some(resolve(pointer, thread.who.block))
        };
        let polled = waiting.iter().find_map(polled).map(|target| match target {
            Target::Global(_) => POLLS_GLOBAL,
            Target::Shared(..) => POLLS_SHARED,
        });
        finding.help = finding.help.or(polled.map(Help::from));
        finding
    }

    /// Returns the mbarrier that a thread waits for.
    fn awaited(&self, thread: &Waiting) -> Option<SharedPlace> {
        let WaitingFor::Mbarrier { pointer, .. } = thread.what else { return None };
        match resolve(pointer, thread.who.block) {
            Target::Shared(rank, at) => {
                Some(SharedPlace { rank, at: u32::try_from(at).ok()? / BYTES * BYTES })
            }
            Target::Global(_) => None,
        }
    }

    fn describe_group(&self, group: &Alike) -> String {
        let Alike { block, first, last, count, what } = *group;
        let log = &self.diagnostics;
        let offset = |at: u64| log.offset(u32::try_from(at).unwrap_or(u32::MAX));
        let threads = match count {
            1 => format!("thread {first}"),
            _ if last.0 - first.0 + 1 == count => format!("threads {first} to {last}"),
            _ => format!("{count} threads from {first} to {last}"),
        };
        let waits = if count == 1 { "waits" } else { "wait" };
        let what = match what {
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
                        format!("for the phase of parity {} of the mbarrier at {at}", u8::from(parity))
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
                    "for all but {pending} groups of multiplications, which all warps of the warpgroup have to issue"
                )
            }
            WaitingFor::Registers(count) => {
                let free = self.registers.free(block);
                format!("for {count} registers each, of which the block has {free} to give")
            }
            WaitingFor::Warp(lanes) => format!("for lanes {lanes:#010x} of the warp"),
            WaitingFor::Memory(pointer) => match resolve(pointer, block) {
                Target::Global(address) => format!("in a loop for a change of global memory at {address:#x}"),
                Target::Shared(rank, at) => {
                    format!("in a loop for a change of shared memory at {}{}", offset(at), log.of_block(rank))
                }
            },
            WaitingFor::Nothing => "in a loop that nothing ends".to_owned(),
        };
        format!("{threads}{} {waits} {what}", log.of_block(block))
    }
}

/// Refines the finding if the state of an awaited mbarrier shows the cause of the deadlock.
fn explain(mbarrier: &Mbarrier, finding: &mut Finding) {
    let count = mbarrier.count();
    let (expected, copied) = (count.expected_bytes(), count.received_bytes());
    if count.tx() != 0 && (count.pending() == 0 || count.tx() < 0) {
        finding.kind = FindingKind::TransactionBytes;
        let help = format!(
            "the phase expects {expected} bytes, but {copied} were copied: let \
             [[`arrive_expect_tx(..)`||`mbarrier.arrive.expect_tx`]] and the copies agree"
        );
        finding.help = Some(help.into());
    } else if finding.help.is_none() && count.pending() > 0 {
        let (pending, all) = (count.pending(), count.expected());
        let (all, are) = (counted(all, "arrival"), if pending == 1 { "is" } else { "are" });
        let help = format!(
            "{pending} of {all} {are} missing: is a thread to arrive, is the count of \
             [[`init(..)`||`mbarrier.init`]] too great, or is the parity that of the other phase?"
        );
        finding.help = Some(help.into());
    }
}

/// Threads of a block that wait for the same event.
#[derive(Clone, Copy, Debug)]
struct Alike {
    block: BlockRank,
    first: ThreadIndex,
    last: ThreadIndex,
    count: u32,
    what: WaitingFor,
}

fn groups(waiting: &[Waiting]) -> Vec<Alike> {
    let mut groups: Vec<Alike> = Vec::new();
    for thread in waiting {
        let (block, number) = (thread.who.block, thread.who.thread);
        match groups.iter_mut().find(|group| group.block == block && group.what == thread.what) {
            Some(group) => {
                group.first = group.first.min(number);
                group.last = group.last.max(number);
                group.count += 1;
            }
            None => groups.push(Alike { block, first: number, last: number, count: 1, what: thread.what }),
        }
    }
    groups
}

/// Returns the first thread for each pair of a site and an awaited event.
fn first_of_each(waiting: &[Waiting]) -> Vec<Actor> {
    let mut firsts: Vec<&Waiting> = Vec::new();
    for thread in waiting {
        let known = |first: &&Waiting| first.what == thread.what && first.site == thread.site;
        if !firsts.iter().any(known) {
            firsts.push(thread);
        }
    }
    firsts.iter().map(|first| Actor { who: first.who, site: first.site }).collect()
}
