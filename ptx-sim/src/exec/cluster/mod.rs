//! The execution of one cluster: schedules its warps until all have exited or none can go on.

use tma_model::help::Help;

use super::executor::Executor;
use super::observe::Count;
use super::warp::Warp;
use super::{Context, lanes_of};
use crate::machine::{
    BlockRank, Counters, Footprint, Machine, MachineConfig, Random, RankProgress, Stop, ThreadId,
    ThreadIndex, Waiting, WarpIndex,
};
use crate::printed::Printed;
use crate::report::{Finding, FindingKind, Findings};
use crate::trace::Trace;

#[cfg(test)]
mod tests;

/// The results of a cluster's execution.
#[derive(Debug, Default)]
pub(crate) struct ClusterOutcome {
    pub(crate) findings: Findings,
    pub(crate) notes: Findings,
    pub(crate) printed: Printed,
    pub(crate) thread_instructions: u64,
    pub(crate) warp_instructions: u64,
    pub(crate) counters: Counters,
    /// The counts of each instruction of the program, if the launch counts.
    pub(crate) counts: Vec<Count>,
    pub(crate) trace: Trace,
    pub(crate) footprint: Footprint,
    /// Whether the cluster was stopped before its end.
    pub(crate) stopped: bool,
}

/// Separates the order of warps from the machine's sequence of the seed.
const ORDER_OF_WARPS: u64 = 0x2545_f491_4f6c_dd1d;
/// The most instructions that a warp runs before another one may.
const LONGEST_SLICE: u64 = 256;
/// The cost of a warp's instruction towards the limit, however many of its threads take part.
/// Simulating it costs the same, and a thread that runs alone is stopped as soon as a warp would
/// be.
const LANES: u64 = 32;
/// The number of time slices after which waiting warps try again, although others can go on.
const SLICES_TO_WAKE: u32 = 16;

/// The state of a cluster after a time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterState {
    Running,
    Ended,
    /// All threads wait, some of them in polling loops. Only another cluster can change what those
    /// read.
    Polling,
}

/// A cluster during its execution.
pub(crate) struct Cluster<'c> {
    context: &'c Context<'c>,
    machine: Machine,
    warps: Vec<Warp>,
    /// Warps that can go on.
    ready: Vec<usize>,
    /// Warps in which all lanes wait.
    waiting: Vec<usize>,
    /// Time slices since waiting warps were last woken.
    since_wake: u32,
    /// Whether any lane has made progress since then.
    progressed: bool,
    /// Whether all waiting lanes have tried since then, not only those whose wait might have ended.
    all_tried: bool,
    /// A count of changes that may matter to lanes in polling loops.
    changes: u64,
    /// The number of those changes that other clusters made.
    external_changes: u64,
    /// Instructions that remain of the limit.
    left: u64,
    limit: u64,
    random: Random,
    printed: Printed,
    /// The counts of each instruction of the program, if the launch counts.
    counts: Vec<Count>,
}

impl<'c> Cluster<'c> {
    pub(crate) fn new(
        context: &'c Context<'c>,
        config: MachineConfig,
        limit: u64,
        events: Option<usize>,
    ) -> Self {
        let mut warps = Vec::new();
        for (rank, block) in (0..).map(BlockRank).zip(&config.blocks) {
            for index in (0..context.threads().div_ceil(32)).map(WarpIndex) {
                warps.push(Warp::new(context, rank, *block, index));
            }
        }
        let random = Random::new(config.seed ^ ORDER_OF_WARPS);
        let mut machine = Machine::new(&config);
        if let Some(events) = events {
            machine.record(events);
        }
        Self {
            ready: (0..warps.len()).collect(),
            waiting: Vec::new(),
            since_wake: 0,
            progressed: true,
            all_tried: false,
            changes: 0,
            external_changes: 0,
            left: limit,
            limit,
            random,
            printed: Printed::default(),
            counts: if context.profile {
                vec![Count::default(); context.program.code.len()]
            } else {
                Vec::new()
            },
            context,
            machine,
            warps,
        }
    }

    /// Runs a time slice of one warp, which the seed picks.
    pub(crate) fn run_slice(&mut self) -> Result<ClusterState, Stop> {
        if self.ready.is_empty() && self.waiting.is_empty() {
            return Ok(ClusterState::Ended);
        }
        self.since_wake += 1;
        if self.ready.is_empty() || self.since_wake > SLICES_TO_WAKE && self.progressed {
            self.wake()?;
        }
        if self.ready.is_empty() {
            return Ok(ClusterState::Polling);
        }
        // A piece that lands after a warp has tried may be what the warp waits for.
        let landed = self.machine.advance();
        self.landed(landed);
        let chosen = self.random.below(self.ready.len() as u64) as usize;
        let warp = &mut self.warps[self.ready[chosen]];
        let before = warp.warp_instructions;
        let observed = self.context.profile || self.machine.recorder().is_some();
        let (printed, counts) = (&mut self.printed, self.counts.as_mut_slice());
        let mut executor = Executor {
            context: self.context,
            machine: &mut self.machine,
            printed,
            counts,
            observed,
            changes: &mut self.changes,
        };
        self.progressed |= executor.run(warp, 1 + self.random.below(LONGEST_SLICE) as u32)?;
        self.left = self.left.saturating_sub((warp.warp_instructions - before) * LANES);
        if self.left == 0 {
            let finding = too_long(self.limit);
            let split = warp.splits.iter().min_by_key(|split| split.pc);
            let position = split.and_then(|split| Some((split, self.context.program.inst(split.pc)?)));
            let finding = match position {
                Some((split, inst)) => {
                    let thread = warp.thread(split.mask.trailing_zeros());
                    finding.with(self.machine.party(thread, inst.site, "was here"))
                }
                None => finding,
            };
            return self.machine.stop(finding);
        }
        if warp.splits.is_empty() {
            self.ready.swap_remove(chosen);
            self.progressed = true;
        } else if warp.splits.iter().all(|split| split.waits.is_some()) {
            self.waiting.push(self.ready.swap_remove(chosen));
        }
        Ok(ClusterState::Running)
    }

    /// Lets waiting lanes try again, if that may help. If all have tried and none has made
    /// progress, they wait for ever or in polling loops. In the latter case no warp is ready after
    /// this call.
    fn wake(&mut self) -> Result<(), Stop> {
        self.since_wake = 0;
        loop {
            let mut all = false;
            if self.ready.is_empty() && !self.progressed {
                let landed = self.machine.let_time_pass();
                self.landed(landed);
                if !landed && self.all_tried {
                    return if self.polls() { Ok(()) } else { Err(self.deadlock(&[])) };
                }
                all = !landed;
            }
            // Warps that are ready or woken try before the next call that finds none ready.
            (self.all_tried, self.progressed) = (all, false);
            let (warps, machine, changes) = (&mut self.warps, &self.machine, self.changes);
            self.ready.extend(self.waiting.extract_if(.., |index| {
                let warp = &mut warps[*index];
                let (block, first) = (warp.block, warp.index.0 * 32);
                let thread = |lane| ThreadId { block, index: ThreadIndex(first + lane) };
                warp.splits.wake(changes, |lane, event| all || machine.may_end(thread(lane), event))
            }));
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
    }

    fn landed(&mut self, any: bool) {
        self.progressed |= any;
        self.changes += u64::from(any);
    }

    /// Returns whether lanes wait in polling loops.
    fn polls(&self) -> bool {
        self.warps.iter().flat_map(|warp| warp.splits.iter()).any(|split| split.spins_since.is_some())
    }

    /// Returns the number of changes that the cluster itself has made.
    pub(crate) fn changes(&self) -> u64 {
        self.changes - self.external_changes
    }

    /// Notes that another cluster may have changed what lanes poll.
    pub(crate) fn notify_change(&mut self) {
        (self.changes, self.external_changes, self.progressed) =
            (self.changes + 1, self.external_changes + 1, true);
    }

    /// Records a deadlock: nothing will change any more. The finding lists all waiting threads, and
    /// the ranks of `team` that have ended. `team` is empty if a single device runs the kernel.
    pub(crate) fn deadlock(&mut self, team: &[RankProgress]) -> Stop {
        self.machine.deadlocked(&all_waiting(&self.warps), team)
    }

    /// Returns the results, whether the cluster ended or was stopped.
    pub(crate) fn outcome(mut self, end: Result<(), Stop>) -> ClusterOutcome {
        if end.is_ok() && self.warps.iter().any(|warp| warp.live != 0) {
            self.machine.report(Finding::internal("a cluster has ended before all of its threads"));
        }
        self.machine.drain();
        ClusterOutcome {
            printed: self.printed,
            counts: self.counts,
            trace: self.machine.take_trace(),
            footprint: self.machine.take_footprint(),
            thread_instructions: self.warps.iter().map(|warp| warp.thread_instructions).sum(),
            warp_instructions: self.warps.iter().map(|warp| warp.warp_instructions).sum(),
            counters: self.machine.counters(),
            notes: self.machine.take_notes(),
            findings: self.machine.finish(),
            stopped: end.is_err(),
        }
    }
}

fn too_long(limit: u64) -> Finding {
    Finding::new(
        FindingKind::InstructionLimit,
        format!("a cluster has not ended after {limit} thread instructions, its `instruction_limit`"),
    )
    .help(Help::RaiseLimit)
}

fn all_waiting(warps: &[Warp]) -> Vec<Waiting> {
    let mut list = Vec::new();
    for warp in warps {
        for split in warp.splits.iter() {
            let Some((event, site)) = split.waits else { continue };
            for lane in lanes_of(split.mask) {
                let thread = warp.thread(lane);
                list.push(Waiting { thread, event, site });
            }
        }
    }
    list
}
