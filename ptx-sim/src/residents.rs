//! Clusters that run at a time on threads of the host. They may wait for each other in global
//! memory, as blocks do that are on a GPU together; one that waits in a loop is at a deadlock when
//! all that run wait, and have looked again after the last change. Those that have not begun by
//! then never will: there is no room for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::exec::cluster::{Cluster, Outcome, Turned};

/// How long a cluster that waits in a loop sleeps before it looks again, while others go on.
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
    /// Threads that run clusters, one at a time each.
    threads: usize,
    /// Those of them of which the cluster waits in loops, and has changed nothing since.
    polling: usize,
    /// Those of them of which the cluster has looked since the last news.
    settled: usize,
    /// Counts when clusters end, or wait after they have changed something.
    news: u64,
    /// Whether all that run wait for ever.
    deadlock: bool,
}

/// What is kept of a cluster that runs.
#[derive(Debug)]
struct Resident {
    polling: bool,
    /// Its own changes when it last waited.
    changes: u64,
    /// The news when it last began to look.
    seen: u64,
}

impl Residents {
    /// For so many threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self { state: Mutex::new(State { threads, ..State::default() }), news: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next cluster below `count`; none after a deadlock. A thread that gets none
    /// is done.
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

    /// What others may have waited for has happened.
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

    /// A cluster waits in loops: sleeps until others may have changed what it reads. False if none
    /// ever will.
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
            // If all of them wait, the last to look finds it out; or else some change memory
            // without a word.
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
