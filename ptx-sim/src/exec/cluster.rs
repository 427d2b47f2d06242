//! The run of one cluster: which warp goes next, until all have ended or none can go on.

use super::observe::Count;
use super::step::Turn;
use super::warp::Warp;
use super::{Context, lanes_of};
use crate::machine::{Counters, Machine, MachineConfig, Progress, Stop, ThreadId, Waiting};
use crate::report::{Finding, FindingKind, Findings};
use crate::trace::Trace;

/// What a cluster's run gives.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) findings: Findings,
    pub(crate) printed: String,
    pub(crate) thread_instructions: u64,
    pub(crate) warp_instructions: u64,
    pub(crate) counters: Counters,
    /// Of each instruction of the program, if the launch counts.
    pub(crate) counts: Vec<Count>,
    pub(crate) trace: Trace,
    /// Whether the cluster could not go on to its end.
    pub(crate) stopped: bool,
}

/// A small generator of numbers (xorshift64*), for the order of warps.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as usize;
        high % limit.max(1)
    }
}

/// The most instructions that a warp runs before another may.
const LONGEST_TURN: usize = 256;
/// Turns after which those that wait try again, though others can go on.
const TURNS_TO_WAKE: u32 = 16;

/// Runs the blocks of a cluster to their end. `limit` is the most thread-instructions, `events` the most events of a timeline,
/// if one is wanted.
pub(crate) fn run(
    context: &Context<'_>,
    config: MachineConfig,
    limit: u64,
    events: Option<usize>,
) -> Outcome {
    let mut cluster = Cluster::new(context, config, limit, events);
    loop {
        match cluster.turn() {
            Ok(Turned::More) => {}
            Ok(Turned::Ended) => return cluster.outcome(false),
            Err(Stop) => return cluster.outcome(true),
        }
    }
}

/// Whether a cluster has more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    More,
    Ended,
}

/// A cluster on its way.
pub(crate) struct Cluster<'c> {
    context: &'c Context<'c>,
    machine: Machine,
    warps: Vec<Warp>,
    /// Warps that can go on.
    ready: Vec<usize>,
    /// Warps in which all lanes wait.
    waiting: Vec<usize>,
    /// Turns since all that wait were last woken.
    since_wake: u32,
    /// Whether anything went on since then.
    moved: bool,
    /// Thread-instructions that are left of the limit.
    left: u64,
    limit: u64,
    random: Random,
    printed: String,
    /// Of each instruction of the program, if the launch counts.
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
        for (rank, block) in config.blocks.iter().enumerate() {
            for index in 0..context.threads().div_ceil(32) {
                warps.push(Warp::new(context, rank as u32, *block, index));
            }
        }
        let random = Random::new(config.seed);
        let mut machine = Machine::new(config);
        if let Some(events) = events {
            machine.record(events);
        }
        Self {
            ready: (0..warps.len()).collect(),
            waiting: Vec::new(),
            since_wake: 0,
            moved: true,
            left: limit,
            limit,
            random,
            printed: String::new(),
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

    /// Lets one warp go on a little, which the seed picks.
    pub(crate) fn turn(&mut self) -> Result<Turned, Stop> {
        if self.ready.is_empty() && self.waiting.is_empty() {
            return Ok(Turned::Ended);
        }
        self.since_wake += 1;
        if self.ready.is_empty() || self.since_wake > TURNS_TO_WAKE && !self.waiting.is_empty() {
            self.wake()?;
        }
        // What lands after a warp has tried may be what it waits for.
        self.moved |= self.machine.advance();
        let place = self.random.below(self.ready.len());
        let warp = &mut self.warps[self.ready[place]];
        let before = warp.thread_instructions;
        let observed = self.context.profile || self.machine.recorder().is_some();
        let (printed, counts) = (&mut self.printed, self.counts.as_mut_slice());
        let mut turn = Turn { context: self.context, machine: &mut self.machine, printed, counts, observed };
        self.moved |= turn.run(warp, 1 + self.random.below(LONGEST_TURN) as u32)?;
        self.left = self.left.saturating_sub(warp.thread_instructions - before);
        if self.left == 0 {
            self.machine.report(too_long(self.limit));
            return Err(Stop);
        }
        if warp.groups.is_empty() {
            self.ready.swap_remove(place);
            self.moved = true;
        } else if warp.groups.iter().all(|group| group.waits.is_some()) {
            self.waiting.push(self.ready.swap_remove(place));
        }
        Ok(Turned::More)
    }

    /// Lets those that wait try again. When none has got anywhere since they last did, they wait for ever.
    fn wake(&mut self) -> Result<(), Stop> {
        let stuck = self.ready.is_empty() && !self.moved;
        if stuck && self.machine.all_blocked(&all_waiting(&self.warps)) == Progress::Deadlock {
            return Err(Stop);
        }
        for &index in &self.waiting {
            self.warps[index].groups.wake();
        }
        (self.moved, self.since_wake) = (!self.ready.is_empty(), 0);
        self.ready.append(&mut self.waiting);
        Ok(())
    }

    /// What it has given, whether it ended or was stopped.
    pub(crate) fn outcome(mut self, stopped: bool) -> Outcome {
        self.machine.drain();
        Outcome {
            printed: self.printed,
            counts: self.counts,
            trace: self.machine.take_trace(),
            thread_instructions: self.warps.iter().map(|warp| warp.thread_instructions).sum(),
            warp_instructions: self.warps.iter().map(|warp| warp.warp_instructions).sum(),
            counters: self.machine.counters(),
            findings: self.machine.finish(),
            stopped,
        }
    }
}

fn too_long(limit: u64) -> Finding {
    Finding::new(
        FindingKind::Deadlock,
        format!("a cluster has run {limit} instructions and does not end: it may wait for another cluster, or for ever"),
    )
    .help("raise the launch's `instruction_limit` if the kernel is only long")
}

fn all_waiting(warps: &[Warp]) -> Vec<Waiting> {
    let mut list = Vec::new();
    for warp in warps {
        for group in warp.groups.iter() {
            let Some((what, site)) = group.waits else { continue };
            for lane in lanes_of(group.mask) {
                let who = ThreadId { block: warp.block, thread: warp.index * 32 + lane };
                list.push(Waiting { who, what, site });
            }
        }
    }
    list
}
