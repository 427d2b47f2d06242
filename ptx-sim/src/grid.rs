//! Runs all clusters of a launch on threads of the host, and merges their outcomes into one report.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exec::Context;
use crate::exec::cluster::{Cluster, ClusterOutcome, ClusterState};
use crate::exec::observe::Count;
use crate::launch::{LaunchConfig, Report};
use crate::machine::{ClusterGrid, Footprints, Grid, MachineConfig, Random, RankProgress};
use crate::printed::Printed;
use crate::profile::Profile;
use crate::report::Finding;
use crate::residents::Residents;

/// The most host threads that a launch can ask for.
const MOST_HOST_THREADS: usize = 256;
/// The most blocks that run interleaved in a launch that is not cooperative. This is fewer than the
/// multiprocessors of a GPU, so that they always fit, whatever resources they use. Each takes
/// memory of the host.
const MOST_BLOCKS: u32 = 32;
/// Separates the choice of the number of clusters from the other sequences of the seed.
const RESIDENTS: u64 = 0x6a09_e667_f3bc_c909;

/// Runs all clusters: each to its end, or several of them interleaved. `contexts` has one context
/// for each rank of the team, all of them with the same program.
pub(crate) fn run(contexts: &[Context<'_>], machine: &MachineConfig, config: &LaunchConfig) -> Report {
    let per_axis = std::array::from_fn(|axis| u64::from(config.grid[axis] / config.cluster[axis]));
    let cluster_grid = ClusterGrid { per_axis, cluster: config.cluster };
    // If some clusters may order the accesses of others, all accesses are recorded in one
    // structure.
    let is_strong = contexts.iter().any(|context| context.program.is_strong_in_global());
    let grid = is_strong.then(|| Arc::new(Grid::new(cluster_grid, machine)));
    let (clusters, ranks) = (cluster_grid.count() as u32, contexts.len() as u32);
    let machine = &MachineConfig { grid, clusters, ranks, ..machine.clone() };
    let clusters = Clusters { contexts, machine, config, cluster_grid };
    let resident =
        contexts.iter().zip(0..).map(|(context, rank)| residents(context, config, &clusters, rank));
    match (contexts, resident.collect::<Vec<_>>().as_slice()) {
        ([context], [None]) => run_in_order(context, &clusters),
        (_, resident) => run_interleaved(&clusters, resident),
    }
}

/// Returns how many clusters of a rank run interleaved, or `None` if they need no interleaving: each
/// runs to its end before the next, or at the same time as others that cannot observe it.
///
/// A cooperative launch interleaves all of its clusters. In other launches whose clusters observe
/// each other's accesses, odd seeds pick a number. Running one cluster at a time is certain to find
/// a wait for a later block. Running several finds errors that depend on the order of blocks.
fn residents(
    context: &Context<'_>,
    config: &LaunchConfig,
    clusters: &Clusters<'_>,
    rank: u64,
) -> Option<u64> {
    let count = clusters.count();
    if config.cooperative {
        return Some(count);
    }
    // Ranks of a team are interleaved on one thread of the host in any case.
    let is_interleaved = config.host_threads == 0 || clusters.contexts.len() > 1;
    let picks = config.seed % 2 == 1 && is_interleaved && context.program.shares_memory();
    let blocks = config.cluster.iter().product::<u32>().max(1);
    let most = u64::from(MOST_BLOCKS / blocks).min(count);
    let concurrent = || 2 + Random::new(config.seed.wrapping_add(rank) ^ RESIDENTS).below(most - 1);
    (picks && most > 1).then(concurrent)
}

/// The clusters of a launch, numbered through all ranks.
struct Clusters<'l> {
    /// The context of each rank.
    contexts: &'l [Context<'l>],
    machine: &'l MachineConfig,
    config: &'l LaunchConfig,
    cluster_grid: ClusterGrid,
}

impl Clusters<'_> {
    /// Returns the number of clusters of each rank.
    fn count(&self) -> u64 {
        self.cluster_grid.count()
    }

    /// Returns the machine of a cluster, whose random choices form a sequence of their own.
    fn machine(&self, number: u64) -> MachineConfig {
        let (blocks, cluster) = (self.cluster_grid.blocks(number % self.count().max(1)), number as u32);
        let seed = self.config.seed.wrapping_add(number.wrapping_mul(0xd134_2543_de82_ef95));
        MachineConfig { blocks, cluster, seed, ..self.machine.clone() }
    }
}

/// Runs all clusters in order. Once a cluster has been stopped, those after it are not reported, so
/// that the report does not depend on the number of host threads.
fn run_in_order(context: &Context<'_>, clusters: &Clusters<'_>) -> Report {
    let (config, count) = (clusters.config, clusters.count());
    let threads = host_threads(context, config).min(usize::try_from(count).unwrap_or(usize::MAX));
    let residents = Residents::new(threads);
    let merged = Mutex::new(MergedReport::new(config.trace_events));
    let work = || {
        while let Some(index) = residents.begin(count) {
            // An earlier cluster was stopped. The later ones are then skipped too.
            let Some(events) = lock(&merged).remaining_events(index) else { continue };
            let events = (config.trace_events > 0).then_some(events);
            let machine = clusters.machine(index);
            let outcome = residents.run(Cluster::new(context, machine, config.instruction_limit, events));
            lock(&merged).take(index, outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    merged.into_inner().unwrap_or_else(PoisonError::into_inner).report(clusters)
}

/// Interleaves clusters in an order that the seed picks, so that they can wait for each other.
/// `resident` has the number of clusters of each rank that are live at a time, 1 where it is
/// `None`; when one ends, the next of its rank begins. If one is stopped, all others are abandoned.
fn run_interleaved(clusters: &Clusters<'_>, resident: &[Option<u64>]) -> Report {
    let config = clusters.config;
    let mut merged = MergedReport::new(config.trace_events);
    let resident: Vec<u64> = resident.iter().map(|resident| resident.unwrap_or(1)).collect();
    let most = resident.iter().sum::<u64>().max(1);
    let events = (config.trace_events > 0).then(|| config.trace_events / most as usize);
    let mut queues: Vec<_> = clusters
        .contexts
        .iter()
        .zip(0..)
        .map(|(context, rank)| Queue::new(context, clusters, rank))
        .collect();
    let mut running = Vec::new();
    for (queue, resident) in queues.iter_mut().zip(resident) {
        running.extend((0..resident).map_while(|_| queue.begin(events)));
    }
    let (mut random, mut changes) = (Random::new(config.seed), 0);
    while !running.is_empty() {
        let chosen = random.below(running.len() as u64) as usize;
        let Interleaved { cluster, changes_seen, polls, .. } = &mut running[chosen];
        if *polls && *changes_seen == changes {
            if running.iter().all(|entry| entry.polls && entry.changes_seen == changes) {
                let progress = progress(&queues, &running);
                let deadlock = |entry: Interleaved<'_>| entry.deadlock(&progress);
                merged.take_last(running.into_iter().map(deadlock).collect());
                break;
            }
            continue;
        }
        if std::mem::take(polls) {
            *changes_seen = changes;
            cluster.notify_change();
        }
        let before = cluster.changes();
        let state = cluster.run_slice();
        changes += cluster.changes() - before;
        match state {
            Ok(ClusterState::Running) => {}
            Ok(ClusterState::Polling) => *polls = true,
            Ok(ClusterState::Ended) => {
                let Interleaved { number, rank, cluster, .. } = running.swap_remove(chosen);
                merged.take(number, cluster.outcome(Ok(())));
                running.extend(queues.get_mut(rank).and_then(|queue| queue.begin(events)));
            }
            Err(stop) => {
                // The abandoned clusters are not reported: their findings would only say that they
                // were stopped.
                let Interleaved { number, cluster, .. } = running.swap_remove(chosen);
                merged.take_last(vec![(number, cluster.outcome(Err(stop)))]);
                break;
            }
        }
    }
    merged.report(clusters)
}

/// The clusters of a rank that have not begun.
struct Queue<'c> {
    context: &'c Context<'c>,
    clusters: &'c Clusters<'c>,
    rank: usize,
    /// The number of the next cluster.
    next: u64,
    /// The number after that of the last cluster.
    end: u64,
}

impl<'c> Queue<'c> {
    fn new(context: &'c Context<'c>, clusters: &'c Clusters<'c>, rank: usize) -> Self {
        let next = rank as u64 * clusters.count();
        Self { context, clusters, rank, next, end: next + clusters.count() }
    }

    /// Begins the next cluster, which records up to `events` events. Returns `None` if all have
    /// begun.
    fn begin(&mut self, events: Option<usize>) -> Option<Interleaved<'c>> {
        let number = self.next;
        if number == self.end {
            return None;
        }
        self.next += 1;
        let (machine, limit) = (self.clusters.machine(number), self.clusters.config.instruction_limit);
        let cluster = Cluster::new(self.context, machine, limit, events);
        Some(Interleaved { number, rank: self.rank, cluster, changes_seen: 0, polls: false })
    }
}

/// Returns how far each rank of a team has come. Empty without a team.
fn progress(queues: &[Queue<'_>], running: &[Interleaved<'_>]) -> Vec<RankProgress> {
    let of_rank = |queue: &Queue<'_>| RankProgress {
        running: running.iter().filter(|entry| entry.rank == queue.rank).count() as u64,
        waiting: queue.end - queue.next,
    };
    if queues.len() > 1 { queues.iter().map(of_rank).collect() } else { Vec::new() }
}

/// A cluster that is interleaved with others.
struct Interleaved<'c> {
    number: u64,
    rank: usize,
    cluster: Cluster<'c>,
    /// The total of changes by all clusters when this one last began to poll.
    changes_seen: u64,
    /// Whether the cluster polls in a loop.
    polls: bool,
}

impl Interleaved<'_> {
    fn deadlock(mut self, team: &[RankProgress]) -> (u64, ClusterOutcome) {
        let stop = self.cluster.deadlock(team);
        (self.number, self.cluster.outcome(Err(stop)))
    }
}

/// Returns the number of host threads for clusters that may run one after the other.
fn host_threads(context: &Context<'_>, config: &LaunchConfig) -> usize {
    match config.host_threads {
        0 if context.program.shares_memory() => 1,
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        asked => asked.min(MOST_HOST_THREADS),
    }
}

fn lock<'s>(merged: &'s Mutex<MergedReport>) -> MutexGuard<'s, MergedReport> {
    merged.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The report over all clusters before `next`. Outcomes are merged in cluster order, whichever ends
/// first, and as early as possible: a grid has more clusters than there is room for outcomes.
struct MergedReport {
    next: u64,
    early: BTreeMap<u64, ClusterOutcome>,
    stopped: bool,
    trace_events: usize,
    report: Report,
    printed: Printed,
    counts: Vec<Count>,
    footprints: Footprints,
}

impl MergedReport {
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

    /// Returns how many events of cluster `index` may be kept, or `None` if an earlier cluster was
    /// stopped and this one is not to run.
    fn remaining_events(&self, index: u64) -> Option<usize> {
        let stopped = self.stopped || self.early.range(..index).any(|(_, outcome)| outcome.stopped);
        (!stopped).then(|| self.trace_events - self.report.trace.events.len())
    }

    fn take(&mut self, index: u64, outcome: ClusterOutcome) {
        self.early.insert(index, outcome);
        while let Some(outcome) = self.early.remove(&self.next) {
            self.next += 1;
            if !self.stopped {
                self.stopped = outcome.stopped;
                self.add(outcome);
            }
        }
    }

    /// Adds the final outcomes, after those of clusters that ended earlier and are still queued.
    fn take_last(&mut self, mut outcomes: Vec<(u64, ClusterOutcome)>) {
        outcomes.sort_by_key(|(index, _)| *index);
        let ended = std::mem::take(&mut self.early).into_values();
        for outcome in ended.chain(outcomes.into_iter().map(|(_, outcome)| outcome)) {
            self.stopped |= outcome.stopped;
            self.add(outcome);
        }
    }

    fn add(&mut self, outcome: ClusterOutcome) {
        let report = &mut self.report;
        report.findings.extend(outcome.findings);
        self.footprints.add(outcome.footprint, |finding| report.findings.add(finding));
        report.notes.extend(outcome.notes);
        self.printed.append(outcome.printed);
        report.thread_instructions += outcome.thread_instructions;
        report.warp_instructions += outcome.warp_instructions;
        report.counters.add(&outcome.counters);
        let mut trace = outcome.trace;
        let remaining_events = self.trace_events - report.trace.events.len();
        let kept = trace.events.len().min(remaining_events);
        report.trace.left_out += trace.left_out + (trace.events.len() - kept) as u64;
        report.trace.events.extend(trace.events.drain(..kept));
        self.counts.resize(outcome.counts.len(), Count::default());
        for (merged, count) in self.counts.iter_mut().zip(outcome.counts) {
            merged.add(count);
        }
    }

    /// Returns the report of the launch.
    fn report(mut self, clusters: &Clusters<'_>) -> Report {
        let Clusters { contexts, .. } = clusters;
        if !self.stopped && self.next < clusters.count() * contexts.len() as u64 {
            let lost = "a launch has ended before all of its clusters";
            self.report.findings.add(Finding::internal(lost));
        }
        let code = contexts.iter().take(1).flat_map(|context| &context.program.code);
        let lines = self.counts.into_iter().zip(code).map(|(count, inst)| count.of_line(inst));
        let (printed, printed_lost) = self.printed.finish();
        let profile = Profile::new(lines);
        Report { profile, printed, printed_lost, stopped: self.stopped, ..self.report }
    }
}
