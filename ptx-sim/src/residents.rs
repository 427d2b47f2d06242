//! Clusters that run at the same time on threads of the host.
//!
//! Like blocks that are resident on a GPU together, they may wait for each other in global memory.
//! A cluster that polls in a loop is deadlocked once all running clusters poll and have looked
//! again since the last change. Clusters that have not begun by then never will: there is no room
//! for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::exec::cluster::{Cluster, Outcome, Turned};

/// How long a cluster that polls sleeps before it looks again, while others still run.
const NAP: Duration = Duration::from_millis(5);

/// The clusters that run.
#[derive(Debug)]
pub(crate) struct Residents {
    state: Mutex<State>,
    news: Condvar,
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
    /// The number of threads whose cluster has looked since the last news.
    settled: usize,
    /// Incremented when a cluster ends, or polls after it has changed something.
    news: u64,
    /// Whether all running clusters wait for ever.
    deadlock: bool,
}

/// The bookkeeping of one running cluster.
#[derive(Debug)]
struct Resident {
    polling: bool,
    /// The cluster's own count of changes when it last waited.
    changes: u64,
    /// The value of `State::news` when the cluster last began to look.
    seen: u64,
}

impl Residents {
    /// Starts with this many host threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self { state: Mutex::new(State { threads, ..State::default() }), news: Condvar::new() }
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
            self.tell(&mut state);
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    /// Announces that something others may wait for has happened.
    fn tell(&self, state: &mut State) {
        state.news += 1;
        state.settled = 0;
        self.news.notify_all();
    }

    /// Runs a cluster to its end.
    pub(crate) fn run(&self, mut cluster: Cluster<'_>) -> Outcome {
        let mut own = Resident { polling: false, changes: 0, seen: self.state().news };
        let end = loop {
            let turned = cluster.turn();
            if own.polling && cluster.changes() != own.changes {
                own.polling = false;
                self.state().polling -= 1;
            }
            match turned {
                Ok(Turned::More) => {}
                Ok(Turned::Polls) if self.may_go_on(&mut own, cluster.changes()) => cluster.tell(),
                Ok(Turned::Polls) => {
                    break Err(cluster.deadlock());
                }
                Ok(Turned::Ended) => break Ok(()),
                Err(stop) => break Err(stop),
            }
        };
        let mut state = self.state();
        state.polling -= usize::from(own.polling);
        self.tell(&mut state);
        drop(state);
        cluster.outcome(end)
    }

    /// Called when a cluster polls in loops. Sleeps until others may have changed what the cluster
    /// reads. Returns false if none ever will.
    fn may_go_on(&self, own: &mut Resident, changes: u64) -> bool {
        let mut state = self.state();
        let missed = state.news != own.seen;
        state.polling += usize::from(!own.polling);
        own.polling = true;
        if own.changes != changes {
            own.changes = changes;
            self.tell(&mut state);
        }
        own.seen = state.news;
        if missed {
            return true;
        }
        state.settled += 1;
        loop {
            if state.settled == state.threads {
                state.deadlock = true;
                self.news.notify_all();
            }
            if state.deadlock || state.news != own.seen {
                own.seen = state.news;
                return !state.deadlock;
            }
            // If all threads poll, the last one to look detects the deadlock. Otherwise some
            // cluster is still running and may change memory without announcing it.
            if state.polling == state.threads {
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (woken, timeout) = self.news.wait_timeout(state, NAP).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() && state.news == own.seen && !state.deadlock {
                state.settled -= 1;
                return true;
            }
        }
    }
}
