//! Parallel jobs on all cores.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Returns the results of `work` for all jobs, in the order of the jobs.
pub fn on_all_cores<J: Send, T: Send>(jobs: Vec<J>, work: impl Fn(J) -> T + Sync) -> Vec<T> {
    on_threads(thread::available_parallelism().map_or(1, usize::from), jobs, work)
}

/// Does the same on a number of threads, for jobs that wait for others.
pub fn on_threads<J: Send, T: Send>(threads: usize, jobs: Vec<J>, work: impl Fn(J) -> T + Sync) -> Vec<T> {
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let done = Mutex::new(vec![]);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((index, job)) = next else { break };
                    let result = work(job);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        let squares = on_all_cores(jobs.clone(), |job| {
            // Lets some jobs end before others that began earlier.
            (0..job % 7).for_each(|_| thread::yield_now());
            job * job
        });
        assert!(squares.into_iter().eq(jobs.into_iter().map(|job| job * job)));
    }
}
