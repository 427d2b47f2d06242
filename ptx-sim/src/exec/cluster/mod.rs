//! The execution of one cluster: schedules its warps until all have exited or none can go on.

use super::observe::Count;
use super::step::Turn;
use super::warp::Warp;
use super::{Context, lanes_of};
use crate::machine::{
    BlockRank, Counters, Footprint, Machine, MachineConfig, Random, Stop, ThreadId, ThreadIndex, Waiting,
    WarpIndex,
};
use crate::printed::Printed;
use crate::report::{Finding, FindingKind, Findings};
use crate::trace::Trace;

#[cfg(test)]
mod tests;

/// The results of a cluster's execution.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
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
const LONGEST_TURN: u64 = 256;
/// The cost of a warp's instruction towards the limit, however many of its threads take part.
/// Simulating it costs the same, and a thread that runs alone is stopped as soon as a warp would
/// be.
const LANES: u64 = 32;
/// The number of turns after which waiting warps try again, although others can go on.
const TURNS_TO_WAKE: u32 = 16;

/// The state of a cluster after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    More,
    Ended,
    /// All threads wait, some of them in polling loops. Only another cluster can change what those
    /// read.
    Polls,
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
    /// Turns since waiting warps were last woken.
    since_wake: u32,
    /// Whether any lane has made progress since then.
    moved: bool,
    /// Whether all waiting lanes have tried since then, not only those whose wait might have ended.
    all_tried: bool,
    /// A count of changes that may matter to lanes in polling loops.
    changes: u64,
    /// The number of those changes that other clusters made.
    told: u64,
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
            moved: true,
            all_tried: false,
            changes: 0,
            told: 0,
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

    /// Runs a turn of one warp, which the seed picks.
    pub(crate) fn turn(&mut self) -> Result<Turned, Stop> {
        if self.ready.is_empty() && self.waiting.is_empty() {
            return Ok(Turned::Ended);
        }
        self.since_wake += 1;
        if self.ready.is_empty() || self.since_wake > TURNS_TO_WAKE && self.moved {
            self.wake()?;
        }
        if self.ready.is_empty() {
            return Ok(Turned::Polls);
        }
        // A piece that lands after a warp has tried may be what the warp waits for.
        let landed = self.machine.advance();
        self.landed(landed);
        let place = self.random.below(self.ready.len() as u64) as usize;
        let warp = &mut self.warps[self.ready[place]];
        let before = warp.warp_instructions;
        let observed = self.context.profile || self.machine.recorder().is_some();
        let (printed, counts) = (&mut self.printed, self.counts.as_mut_slice());
        let mut turn = Turn {
            context: self.context,
            machine: &mut self.machine,
            printed,
            counts,
            observed,
            changes: &mut self.changes,
        };
        self.moved |= turn.run(warp, 1 + self.random.below(LONGEST_TURN) as u32)?;
        self.left = self.left.saturating_sub((warp.warp_instructions - before) * LANES);
        if self.left == 0 {
            let finding = too_long(self.limit);
            let split = warp.splits.iter().min_by_key(|split| split.pc);
            let place = split.and_then(|split| Some((split, self.context.program.inst(split.pc)?)));
            let finding = match place {
                Some((split, inst)) => {
                    let who = warp.thread(split.mask.trailing_zeros());
                    finding.with(self.machine.party(who, inst.site, "was here"))
                }
                None => finding,
            };
            return self.machine.stop(finding);
        }
        if warp.splits.is_empty() {
            self.ready.swap_remove(place);
            self.moved = true;
        } else if warp.splits.iter().all(|split| split.waits.is_some()) {
            self.waiting.push(self.ready.swap_remove(place));
        }
        Ok(Turned::More)
    }

    /// Lets waiting lanes try again, if that may help. If all have tried and none has made
    /// progress, they wait for ever or in polling loops. In the latter case no warp is ready after
    /// this call.
    fn wake(&mut self) -> Result<(), Stop> {
        self.since_wake = 0;
        loop {
            let mut all = false;
            if self.ready.is_empty() && !self.moved {
                let landed = self.machine.let_time_pass();
                self.landed(landed);
                if !landed && self.all_tried {
                    return if self.polls() { Ok(()) } else { Err(self.deadlock()) };
                }
                all = !landed;
            }
            // Warps that are ready or woken try before the next call that finds none ready.
            (self.all_tried, self.moved) = (all, false);
            let (warps, machine, changes) = (&mut self.warps, &self.machine, self.changes);
            self.ready.extend(self.waiting.extract_if(.., |index| {
                let warp = &mut warps[*index];
                let (block, first) = (warp.block, warp.index.0 * 32);
                let who = |lane| ThreadId { block, thread: ThreadIndex(first + lane) };
                warp.splits.wake(changes, |lane, what| all || machine.may_end(who(lane), what))
            }));
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
    }

    fn landed(&mut self, any: bool) {
        self.moved |= any;
        self.changes += u64::from(any);
    }

    /// Returns whether lanes wait in polling loops.
    fn polls(&self) -> bool {
        self.warps.iter().flat_map(|warp| warp.splits.iter()).any(|split| split.spins_since.is_some())
    }

    /// Returns the number of changes that the cluster itself has made.
    pub(crate) fn changes(&self) -> u64 {
        self.changes - self.told
    }

    /// Notes that another cluster may have changed what lanes poll.
    pub(crate) fn tell(&mut self) {
        (self.changes, self.told, self.moved) = (self.changes + 1, self.told + 1, true);
    }

    /// Records a deadlock: nothing will change any more. The finding lists all waiting threads.
    pub(crate) fn deadlock(&mut self) -> Stop {
        self.machine.deadlocked(&all_waiting(&self.warps))
    }

    /// Returns the results, whether the cluster ended or was stopped.
    pub(crate) fn outcome(mut self, end: Result<(), Stop>) -> Outcome {
        if end.is_ok() && self.warps.iter().any(|warp| warp.live != 0) {
            self.machine.report(Finding::internal("a cluster is at its end, and threads of it are not"));
        }
        self.machine.drain();
        Outcome {
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
        format!("a cluster has run {limit} instructions of threads, its `instruction_limit`, and has not ended"),
    )
    .help("raise the limit, [[`Device::instruction_limit`||`LaunchConfig::instruction_limit`]], if the kernel is only long")
}

fn all_waiting(warps: &[Warp]) -> Vec<Waiting> {
    let mut list = Vec::new();
    for warp in warps {
        for split in warp.splits.iter() {
            let Some((what, site)) = split.waits else { continue };
            for lane in lanes_of(split.mask) {
                let who = warp.thread(lane);
                list.push(Waiting { who, what, site });
            }
        }
    }
    list
}
