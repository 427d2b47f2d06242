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
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
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
    let mut warps = Vec::new();
    for (rank, block) in config.blocks.iter().enumerate() {
        for index in 0..context.threads().div_ceil(32) {
            warps.push(Warp::new(context, rank as u32, *block, index));
        }
    }
    let mut random = Random(config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut machine = Machine::new(config);
    if let Some(events) = events {
        machine.record(events);
    }
    let mut made = Made {
        printed: String::new(),
        counts: if context.profile { vec![Count::default(); context.program.code.len()] } else { Vec::new() },
    };
    let stopped = schedule(context, &mut machine, &mut warps, &mut made, &mut random, limit).is_err();
    machine.drain();
    Outcome {
        printed: made.printed,
        counts: made.counts,
        trace: machine.take_trace(),
        thread_instructions: warps.iter().map(|warp| warp.thread_instructions).sum(),
        warp_instructions: warps.iter().map(|warp| warp.warp_instructions).sum(),
        counters: machine.counters(),
        findings: machine.finish(),
        stopped,
    }
}

/// What a cluster's threads make beside their effects on the machine.
struct Made {
    printed: String,
    counts: Vec<Count>,
}

fn schedule(
    context: &Context<'_>,
    machine: &mut Machine,
    warps: &mut [Warp],
    made: &mut Made,
    random: &mut Random,
    limit: u64,
) -> Result<(), Stop> {
    // Warps that can go on, and warps in which all lanes wait.
    let mut ready: Vec<usize> = (0..warps.len()).collect();
    let mut waiting: Vec<usize> = Vec::new();
    let mut since_wake = 0;
    let mut left = limit;
    let observed = context.profile || machine.recorder().is_some();
    // Whether anything went on since all that wait were last woken.
    let mut moved = true;
    while !ready.is_empty() || !waiting.is_empty() {
        since_wake += 1;
        if ready.is_empty() || since_wake > TURNS_TO_WAKE && !waiting.is_empty() {
            let stuck = ready.is_empty() && !moved;
            if stuck && machine.all_blocked(&all_waiting(warps)) == Progress::Deadlock {
                return Err(Stop);
            }
            for &index in &waiting {
                warps[index].groups.wake();
            }
            (moved, since_wake) = (!ready.is_empty(), 0);
            ready.append(&mut waiting);
        }
        // What lands after a warp has tried may be what it waits for.
        moved |= machine.advance();
        let place = random.below(ready.len());
        let warp = &mut warps[ready[place]];
        let before = warp.thread_instructions;
        let (printed, counts) = (&mut made.printed, made.counts.as_mut_slice());
        let mut turn = Turn { context, machine, printed, counts, observed };
        let turn = turn.run(warp, 1 + random.below(LONGEST_TURN) as u32)?;
        moved |= turn;
        left = left.saturating_sub(warp.thread_instructions - before);
        if left == 0 {
            machine.report(too_long(limit));
            return Err(Stop);
        }
        if warp.groups.is_empty() {
            ready.swap_remove(place);
            moved = true;
        } else if warp.groups.iter().all(|group| group.waits.is_some()) {
            waiting.push(ready.swap_remove(place));
        }
    }
    Ok(())
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
