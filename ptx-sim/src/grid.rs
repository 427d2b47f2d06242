//! All clusters of a launch on the host's threads, and their outcomes as one report.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exec::Context;
use crate::exec::cluster::{Cluster, Outcome, Turned};
use crate::exec::observe::Count;
use crate::launch::{LaunchConfig, Report};
use crate::machine::{ClusterGrid, Footprints, Grid, MachineConfig, Random};
use crate::printed::Printed;
use crate::profile::Profile;
use crate::report::Finding;
use crate::residents::Residents;

/// The most threads of the host that a launch can ask for.
const MOST_HOST_THREADS: usize = 256;
/// The most blocks of a launch that is not cooperative that run in turns: fewer than a GPU has
/// multiprocessors, so that there is room for them whatever they use. They all take memory.
const MOST_BLOCKS: u32 = 32;
/// Another sequence of the seed's numbers than that of the turns.
const RESIDENTS: u64 = 0x6a09_e667_f3bc_c909;

/// Runs all clusters: each to its end, or several of them in turns.
pub(crate) fn run(context: &Context<'_>, machine: &MachineConfig, config: &LaunchConfig) -> Report {
    let per_axis = std::array::from_fn(|axis| u64::from(config.grid[axis] / config.cluster[axis]));
    let places = ClusterGrid { per_axis, cluster: config.cluster };
    // The accesses of all clusters are kept together where some of them may order others.
    let grid = context.program.is_strong_in_global().then(|| Arc::new(Grid::new(places, machine)));
    let machine = &MachineConfig { grid, ..machine.clone() };
    let clusters = Clusters { machine, config, places };
    match residents(context, config, places.count()) {
        Some(several) => in_turns(context, &clusters, several),
        None => one_by_one(context, &clusters),
    }
}

/// How many clusters run in turns; none where each runs to its end before the next, or at the same
/// time as others that see nothing of it. All do of a cooperative launch. Of another whose clusters
/// see each other's accesses, every other seed picks a number: with one at a time a wait for a
/// later block is found for certain, and with several what depends on the order of blocks.
fn residents(context: &Context<'_>, config: &LaunchConfig, count: u64) -> Option<u64> {
    if config.cooperative {
        return Some(count);
    }
    let picks = config.seed % 2 == 1 && config.host_threads == 0 && context.program.shares_memory();
    let blocks = config.cluster.iter().product::<u32>().max(1);
    let most = u64::from(MOST_BLOCKS / blocks).min(count);
    let several = || 2 + Random::new(config.seed ^ RESIDENTS).below(most - 1);
    (picks && most > 1).then(several)
}

/// The clusters of a launch.
struct Clusters<'l> {
    machine: &'l MachineConfig,
    config: &'l LaunchConfig,
    places: ClusterGrid,
}

impl Clusters<'_> {
    fn count(&self) -> u64 {
        self.places.count()
    }

    /// The machine of cluster `index`, which has a sequence of choices of its own.
    fn machine(&self, index: u64) -> MachineConfig {
        let (blocks, cluster) = (self.places.blocks(index), index as u32);
        let seed = self.config.seed.wrapping_add(index.wrapping_mul(0xd134_2543_de82_ef95));
        MachineConfig { blocks, cluster, seed, ..self.machine.clone() }
    }
}

/// All clusters, the first ones first. When one cannot go on, those after it are not reported, so
/// that the report is the same however many threads the host has.
fn one_by_one(context: &Context<'_>, clusters: &Clusters<'_>) -> Report {
    let (config, count) = (clusters.config, clusters.count());
    let threads = host_threads(context, config).min(usize::try_from(count).unwrap_or(usize::MAX));
    let residents = Residents::new(threads);
    let sum = Mutex::new(Sum::new(config.trace_events));
    let work = || {
        while let Some(index) = residents.begin(count) {
            // None if one before it could not go on, and then there is none for those after it.
            let Some(events) = locked(&sum).room(index) else { continue };
            let events = (config.trace_events > 0).then_some(events);
            let machine = clusters.machine(index);
            let outcome = residents.run(Cluster::new(context, machine, config.instruction_limit, events));
            locked(&sum).take(index, outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    sum.into_inner().unwrap_or_else(PoisonError::into_inner).report(context, count)
}

/// Clusters in turns, which the seed picks, so that they can wait for each other: `several` at a
/// time, and when one ends the next begins. When one cannot go on, the others are stopped where
/// they are.
fn in_turns(context: &Context<'_>, clusters: &Clusters<'_>, several: u64) -> Report {
    let config = clusters.config;
    let mut sum = Sum::new(config.trace_events);
    let events = (config.trace_events > 0).then(|| config.trace_events / several.max(1) as usize);
    let mut waiting = (0..clusters.count()).map(|index| {
        let machine = clusters.machine(index);
        let cluster = Cluster::new(context, machine, config.instruction_limit, events);
        Member { index, cluster, looked: 0, polls: false }
    });
    let mut running: Vec<Member<'_>> = waiting.by_ref().take(several as usize).collect();
    let (mut random, mut changes) = (Random::new(config.seed), 0);
    while !running.is_empty() {
        let place = random.below(running.len() as u64) as usize;
        let Member { cluster, looked, polls, .. } = &mut running[place];
        if *polls && *looked == changes {
            if running.iter().all(|member| member.polls && member.looked == changes) {
                sum.take_last(running.into_iter().map(Member::deadlock).collect());
                break;
            }
            continue;
        }
        if std::mem::take(polls) {
            *looked = changes;
            cluster.tell();
        }
        let before = cluster.changes();
        let turned = cluster.turn();
        changes += cluster.changes() - before;
        match turned {
            Ok(Turned::More) => {}
            Ok(Turned::Polls) => *polls = true,
            Ok(Turned::Ended) => {
                let Member { index, cluster, .. } = running.swap_remove(place);
                sum.take(index, cluster.outcome(Ok(())));
                running.extend(waiting.next());
            }
            Err(stop) => {
                // The findings of those that are stopped with it would only say so.
                let Member { index, cluster, .. } = running.swap_remove(place);
                sum.take_last(vec![(index, cluster.outcome(Err(stop)))]);
                break;
            }
        }
    }
    sum.report(context, clusters.count())
}

/// A cluster that runs in turns with others.
struct Member<'c> {
    index: u64,
    cluster: Cluster<'c>,
    /// The changes of all clusters when it last began to look.
    looked: u64,
    /// Whether it waits in loops.
    polls: bool,
}

impl Member<'_> {
    fn deadlock(mut self) -> (u64, Outcome) {
        let stop = self.cluster.deadlock();
        (self.index, self.cluster.outcome(Err(stop)))
    }
}

/// On how many threads of the host clusters run that may run one after the other.
fn host_threads(context: &Context<'_>, config: &LaunchConfig) -> usize {
    match config.host_threads {
        0 if context.program.shares_memory() => 1,
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        asked => asked.min(MOST_HOST_THREADS),
    }
}

fn locked<'s>(sum: &'s Mutex<Sum>) -> MutexGuard<'s, Sum> {
    sum.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The report as far as all clusters before `next` have ended. Outcomes are taken in their order,
/// whichever ends first, and as soon as may be: a grid has more clusters than there is room for
/// outcomes.
struct Sum {
    next: u64,
    early: BTreeMap<u64, Outcome>,
    stopped: bool,
    trace_events: usize,
    report: Report,
    printed: Printed,
    counts: Vec<Count>,
    footprints: Footprints,
}

impl Sum {
    fn new(trace_events: usize) -> Self {
        Self {
            next: 0,
            early: BTreeMap::new(),
            stopped: false,
            trace_events,
            report: Report::default(),
            printed: Printed::default(),
            counts: Vec::new(),
            footprints: Footprints::default(),
        }
    }

    /// How many events of cluster `index` may be kept; none if one before it could not go on, so
    /// that it is not to run.
    fn room(&self, index: u64) -> Option<usize> {
        let stopped = self.stopped || self.early.range(..index).any(|(_, outcome)| outcome.stopped);
        (!stopped).then(|| self.trace_events - self.report.trace.events.len())
    }

    fn take(&mut self, index: u64, outcome: Outcome) {
        self.early.insert(index, outcome);
        while let Some(outcome) = self.early.remove(&self.next) {
            self.next += 1;
            if !self.stopped {
                self.stopped = outcome.stopped;
                self.add(outcome);
            }
        }
    }

    /// The outcomes after which there is none, with those that ended before.
    fn take_last(&mut self, mut outcomes: Vec<(u64, Outcome)>) {
        outcomes.sort_by_key(|(index, _)| *index);
        let ended = std::mem::take(&mut self.early).into_values();
        for outcome in ended.chain(outcomes.into_iter().map(|(_, outcome)| outcome)) {
            self.stopped |= outcome.stopped;
            self.add(outcome);
        }
    }

    fn add(&mut self, outcome: Outcome) {
        let report = &mut self.report;
        report.findings.extend(outcome.findings);
        self.footprints.add(outcome.footprint, |finding| report.findings.add(finding));
        report.notes.extend(outcome.notes);
        self.printed.append(outcome.printed);
        report.thread_instructions += outcome.thread_instructions;
        report.warp_instructions += outcome.warp_instructions;
        report.counters.add(&outcome.counters);
        let mut trace = outcome.trace;
        let room = self.trace_events - report.trace.events.len();
        let kept = trace.events.len().min(room);
        report.trace.left_out += trace.left_out + (trace.events.len() - kept) as u64;
        report.trace.events.extend(trace.events.drain(..kept));
        self.counts.resize(outcome.counts.len(), Count::default());
        for (sum, count) in self.counts.iter_mut().zip(outcome.counts) {
            sum.add(count);
        }
    }

    /// The report of a launch of so many clusters.
    fn report(mut self, context: &Context<'_>, clusters: u64) -> Report {
        if !self.stopped && self.next < clusters {
            let lost = "a launch is at its end, and clusters of it are not";
            self.report.findings.add(Finding::internal(lost));
        }
        let lines =
            self.counts.into_iter().zip(&context.program.code).map(|(count, inst)| count.of_line(inst));
        let (printed, printed_lost) = self.printed.finish();
        let profile = Profile::new(lines);
        Report { profile, printed, printed_lost, stopped: self.stopped, ..self.report }
    }
}
