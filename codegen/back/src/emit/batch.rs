//! Compiles several kernels in parallel.
//!
//! LLVM takes nearly all of the time of a build script, and its contexts are independent of each
//! other. The thread that parses, checks and lowers kernels therefore passes them as text to worker
//! threads that generate assembly. It joins them once it has nothing more to lower.

use std::panic;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tma_front::check::TargetKernel;

use super::llvm::{Module, assembly};
use super::{finished, lowered};
use crate::Checks;
use crate::backend::{BackendError, Source};
use crate::lower::ptxas::Workarounds;

/// Kernels being compiled.
pub(crate) struct Batch {
    checks: Checks,
    jobs: usize,
    kernels: Vec<(TargetKernel, String)>,
    queue: Sender<Job>,
    waiting: Arc<Mutex<Receiver<Job>>>,
    workers: Vec<JoinHandle<Vec<Done>>>,
    /// The results of this thread.
    done: Vec<Done>,
}

/// The usual size of a main thread's stack: LLVM's passes recurse.
const STACK_BYTES: usize = 8 << 20;

/// The index of a kernel, and its module.
type Job = (usize, Module);

/// The index of a kernel, and its assembly.
type Done = (usize, Result<String, BackendError>);

impl Batch {
    /// Creates a batch for `jobs` threads, including this one.
    pub(crate) fn new(checks: Checks, jobs: usize) -> Self {
        let (queue, waiting) = channel();
        Self {
            checks,
            jobs,
            kernels: vec![],
            queue,
            waiting: Arc::new(Mutex::new(waiting)),
            workers: vec![],
            done: vec![],
        }
    }

    /// Adds a kernel of the file `path`.
    pub(crate) fn add(&mut self, kernel: TargetKernel, path: &str) {
        let number = self.kernels.len();
        match lowered(&kernel, &Source { path }, self.checks, Workarounds::ALL) {
            Ok(module) if self.jobs <= 1 => self.done.push((number, assembly(&module))),
            Ok(module) => {
                if self.workers.len() + 1 < self.jobs {
                    let waiting = Arc::clone(&self.waiting);
                    let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || work(&waiting));
                    // If no thread can be created, this one does the work.
                    self.workers.extend(worker.ok());
                }
                // The receiver is alive, as it is in `self`.
                let _ = self.queue.send((number, module));
            }
            Err(error) => self.done.push((number, Err(error))),
        }
        self.kernels.push((kernel, path.to_owned()));
    }

    /// Returns the PTX of each kernel, in the order of addition.
    pub(crate) fn finish(self) -> Vec<Result<String, BackendError>> {
        let Self { kernels, queue, waiting, workers, mut done, .. } = self;
        drop(queue); // closes the queue
        done.extend(work(&waiting));
        for worker in workers {
            done.extend(worker.join().unwrap_or_else(|cause| panic::resume_unwind(cause)));
        }
        done.sort_by_key(|(number, _)| *number);
        let all = done.into_iter().zip(&kernels);
        all.map(|((_, text), (kernel, path))| {
            Ok(finished(kernel, &Source { path }, &text?, Workarounds::ALL))
        })
        .collect()
    }
}

/// Generates assembly of modules until the queue is closed.
fn work(waiting: &Mutex<Receiver<Job>>) -> Vec<Done> {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    std::iter::from_fn(next).map(|(number, module)| (number, assembly(&module))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, compile};

    #[test]
    fn threads_change_neither_text_nor_order() {
        let kernel = |i| {
            let body = format!("let i = thread_idx().x; x.set(i, x.get(i) * {i}.0 + {i}.5);");
            format!("#[tma_kernel(threads = 32)] fn k{i}(x: Global<f32>) {{ {body} }}")
        };
        let source: String = (1..9).map(kernel).collect();
        let kernels = compile::check_for("a.rs", &source, Target::default()).unwrap().kernels;
        let alone = |kernel| {
            super::super::ptx(kernel, &Source { path: "a.rs" }, Checks::Off, Workarounds::ALL).unwrap()
        };
        let wanted: Vec<_> = kernels.iter().map(alone).collect();
        for jobs in [0, 1, 2, 5] {
            let mut batch = Batch::new(Checks::Off, jobs);
            kernels.iter().for_each(|kernel| batch.add(kernel.clone(), "a.rs"));
            let found: Vec<_> = batch.finish().into_iter().map(Result::unwrap).collect();
            assert_eq!(found, wanted, "by {jobs} threads");
        }
        assert!(Batch::new(Checks::Off, 4).finish().is_empty());
    }
}
