//! When nobody can go on: time passes for the engines, or it is a deadlock, which is shown with all that is waited for.

use super::Machine;
use super::address::{Target, resolve};
use super::mbarrier::{BYTES, Mbarrier};
use super::types::{Phase, Waiting, WaitingFor};
use crate::report::{Finding, FindingKind, Help, Party, Stop, counted};

/// What may be wrong with a loop that waits for global memory to change.
const POLLS_GLOBAL: &str = "nothing that runs can change it any more: blocks that wait for each other have to run together, in a \
                            cooperative launch, and all come to where they meet[[ (as to `sync_grid(..)`)||]]";
/// The same of shared memory.
const POLLS_SHARED: &str =
    "no thread that runs, and no copy, can change it any more: does the one that is to change it get there?";

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
    /// No thread can go on: lets the next piece of a copy take effect. False if none is under way.
    pub fn let_time_pass(&mut self) -> bool {
        let any = self.engine.skip();
        if any {
            self.record_skip();
            self.run_due();
        }
        any
    }

    /// No thread can go on, and nothing is under way: records the deadlock. `waiting` has the threads that have not exited.
    pub fn deadlocked(&mut self, waiting: &[Waiting]) -> Stop {
        let mut finding = self.deadlock(waiting);
        for &(who, site) in &first_of_each(waiting) {
            finding.parties.push(Party { does: "waits", ..self.party(who, site, "waits") });
        }
        self.findings.stop(finding)
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
                let (spot, of_block) = (self.spot(at), self.of_block(rank));
                message.push_str(&format!("\n  mbarrier at {spot}{of_block}: {state}"));
                if awaited.contains(&(rank, at)) {
                    explain(mbarrier, &mut finding);
                }
            }
        }
        finding.message = message;
        let polled = |thread: &Waiting| {
            let WaitingFor::Memory { space, address } = thread.what else { return None };
            Some(resolve(space, address, thread.who.block))
        };
        let polled = waiting.iter().find_map(polled).map(|target| match target {
            Target::Global(_) => POLLS_GLOBAL,
            Target::Shared(..) => POLLS_SHARED,
        });
        finding.help = finding.help.or(polled.map(Help::from));
        finding
    }

    /// The mbarrier that a thread waits for.
    fn awaited(&self, thread: &Waiting) -> Option<(usize, u32)> {
        let WaitingFor::Mbarrier { space, address, .. } = thread.what else { return None };
        match resolve(space, address, thread.who.block) {
            Target::Shared(rank, at) => Some((rank as usize, u32::try_from(at).ok()? / BYTES * BYTES)),
            Target::Global(_) => None,
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
            WaitingFor::Mbarrier { space, address, phase } => {
                let spot = match resolve(space, address, block) {
                    Target::Shared(_, at) => self.spot(u32::try_from(at).unwrap_or(u32::MAX)),
                    Target::Global(address) => format!("{address:#x}"),
                };
                match phase {
                    Phase::Parity(parity) => {
                        format!("for the phase of parity {} of the mbarrier at {spot}", u8::from(parity))
                    }
                    Phase::State(state) => format!("for phase {} of the mbarrier at {spot}", state >> 32),
                }
            }
            WaitingFor::BulkGroups { pending, read } => {
                let read = if read { " to be read" } else { "" };
                format!("for all but {pending} bulk groups{read}")
            }
            WaitingFor::AsyncGroups(None) => "for all its `cp.async`".to_owned(),
            WaitingFor::AsyncGroups(Some(pending)) => format!("for all but {pending} groups of `cp.async`"),
            WaitingFor::Warp(lanes) => format!("for lanes {lanes:#010x} of the warp"),
            WaitingFor::Memory { space, address } => match resolve(space, address, block) {
                Target::Global(address) => format!("in a loop for a change of global memory at {address:#x}"),
                Target::Shared(rank, at) => {
                    let spot = self.spot(u32::try_from(at).unwrap_or(u32::MAX));
                    format!(
                        "in a loop for a change of shared memory at {spot}{}",
                        self.of_block(rank as usize)
                    )
                }
            },
            WaitingFor::Nothing => "in a loop that nothing ends".to_owned(),
        };
        format!("{threads}{} {waits} {what}", self.of_block(block as usize))
    }
}

/// Says more of the deadlock where an mbarrier that is waited for shows it.
fn explain(mbarrier: &Mbarrier, finding: &mut Finding) {
    let (expected, copied) = (mbarrier.expected_bytes, mbarrier.received_bytes);
    if mbarrier.tx != 0 && (mbarrier.pending == 0 || mbarrier.tx < 0) {
        finding.kind = FindingKind::TransactionBytes;
        let help = format!(
            "the phase expects {expected} bytes, but {copied} were copied: let \
             [[`arrive_expect_tx(..)`||`mbarrier.arrive.expect_tx`]] and the copies agree"
        );
        finding.help = Some(help.into());
    } else if finding.help.is_none() && mbarrier.pending > 0 {
        let (pending, all) = (mbarrier.pending, mbarrier.expected);
        let (all, are) = (counted(all, "arrival"), if pending == 1 { "is" } else { "are" });
        let help = format!(
            "{pending} of {all} {are} missing: is a thread to arrive, is the count of \
             [[`init(..)`||`mbarrier.init`]] too great, or is the parity that of the other phase?"
        );
        finding.help = Some(help.into());
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
