//! Clusters that run at the same time on threads of the host.
//!
//! Like blocks that are resident on a GPU together, they may wait for each other in global memory.
//! A cluster that polls in a loop is deadlocked once all running clusters poll and have looked
//! again since the last change. Clusters that have not begun by then never will: there is no room
//! for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::exec::cluster::{Cluster, ClusterOutcome, ClusterState};

/// How long a cluster that polls sleeps before it looks again, while others still run.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The clusters that run.
#[derive(Debug)]
pub(crate) struct Residents {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The next cluster to begin.
    next: u64,
    /// Threads that still run clusters. Each runs one cluster at a time.
    threads: usize,
    /// The number of threads whose cluster polls in loops and has changed nothing since it began
    /// to.
    polling: usize,
    /// The number of threads whose cluster has looked in the current generation.
    rechecked: usize,
    /// Incremented when a cluster ends, or polls after it has changed something.
    generation: u64,
    /// Whether all running clusters wait for ever.
    deadlock: bool,
}

/// The bookkeeping of one running cluster.
#[derive(Debug)]
struct Resident {
    polling: bool,
    /// The cluster's own count of changes when it last waited.
    changes: u64,
    /// The value of `State::generation` when the cluster last began to look.
    seen_generation: u64,
}

impl Residents {
    /// Starts with this many host threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self { state: Mutex::new(State { threads, ..State::default() }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the next cluster below `count`, or `None` if there is none or after a
    /// deadlock. A thread that receives `None` is done.
    pub(crate) fn begin(&self, count: u64) -> Option<u64> {
        let mut state = self.state();
        if state.deadlock || state.next >= count {
            state.threads -= 1;
            self.notify(&mut state);
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    /// Announces that something others may wait for has happened.
    fn notify(&self, state: &mut State) {
        state.generation += 1;
        state.rechecked = 0;
        self.changed.notify_all();
    }

    /// Runs a cluster to its end.
    pub(crate) fn run(&self, mut cluster: Cluster<'_>) -> ClusterOutcome {
        let mut own = Resident { polling: false, changes: 0, seen_generation: self.state().generation };
        let end = loop {
            let state = cluster.run_slice();
            if own.polling && cluster.changes() != own.changes {
                own.polling = false;
                self.state().polling -= 1;
            }
            match state {
                Ok(ClusterState::Running) => {}
                Ok(ClusterState::Polling) if self.wait_for_change(&mut own, cluster.changes()) => {
                    cluster.notify_change();
                }
                Ok(ClusterState::Polling) => {
                    break Err(cluster.deadlock(&[]));
                }
                Ok(ClusterState::Ended) => break Ok(()),
                Err(stop) => break Err(stop),
            }
        };
        let mut state = self.state();
        state.polling -= usize::from(own.polling);
        self.notify(&mut state);
        drop(state);
        cluster.outcome(end)
    }

    /// Called when a cluster polls in loops. Sleeps until others may have changed what the cluster
    /// reads. Returns false if none ever will.
    fn wait_for_change(&self, own: &mut Resident, changes: u64) -> bool {
        let mut state = self.state();
        let missed = state.generation != own.seen_generation;
        state.polling += usize::from(!own.polling);
        own.polling = true;
        if own.changes != changes {
            own.changes = changes;
            self.notify(&mut state);
        }
        own.seen_generation = state.generation;
        if missed {
            return true;
        }
        state.rechecked += 1;
        loop {
            if state.rechecked == state.threads {
                state.deadlock = true;
                self.changed.notify_all();
            }
            if state.deadlock || state.generation != own.seen_generation {
                own.seen_generation = state.generation;
                return !state.deadlock;
            }
            // If all threads poll, the last one to look detects the deadlock. Otherwise some
            // cluster is still running and may change memory without announcing it.
            if state.polling == state.threads {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (woken, timeout) =
                self.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() && state.generation == own.seen_generation && !state.deadlock {
                state.rechecked -= 1;
                return true;
            }
        }
    }
}
