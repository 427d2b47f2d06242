//! What a program has asked to be told of, or to decide, at the launches of a simulated device.
//!
//! No lock is held while its functions run, so that they may use the device as well. The launches that they make there
//! themselves are run as they are, untold: else each would bring about the next without end.

use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use super::locked;
use crate::spec::KernelSpec;

/// Gives the PTX that is run in place of a kernel's own, if any.
pub(crate) type Rewrite = Arc<dyn Fn(&'static KernelSpec) -> Option<String> + Send + Sync>;

/// Gets what each launch gave.
pub(crate) type Watch = Arc<dyn Fn(&'static KernelSpec, &ptx_sim::Report) + Send + Sync>;

/// The functions of a device.
#[derive(Default)]
pub(super) struct Hooks {
    rewrite: Mutex<Option<Rewrite>>,
    /// With how many events of the timeline are wanted.
    watch: Mutex<Option<(usize, Watch)>>,
    /// The threads in which one of them runs.
    running: Mutex<Vec<ThreadId>>,
}

impl Hooks {
    pub(super) fn set_rewrite(&self, rewrite: Rewrite) {
        *locked(&self.rewrite) = Some(rewrite);
    }

    pub(super) fn set_watch(&self, trace_events: usize, watch: Watch) {
        *locked(&self.watch) = Some((trace_events, watch));
    }

    /// What decides a kernel's PTX; none if nothing does, or this thread is within a function of the device.
    pub(super) fn rewrite(&self) -> Option<Rewrite> {
        let rewrite = locked(&self.rewrite).clone();
        rewrite.filter(|_| !self.within())
    }

    /// What is told of a launch; none if nothing is, or this thread is within a function of the device.
    pub(super) fn watch(&self) -> Option<(usize, Watch)> {
        let watch = locked(&self.watch).clone();
        watch.filter(|_| !self.within())
    }

    fn within(&self) -> bool {
        locked(&self.running).contains(&thread::current().id())
    }

    /// Runs `f`, one of the functions.
    pub(super) fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        locked(&self.running).push(thread::current().id());
        // Also when `f` panics.
        let _running = Running(&self.running);
        f()
    }
}

struct Running<'h>(&'h Mutex<Vec<ThreadId>>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut running = locked(self.0);
        let this = thread::current().id();
        if let Some(place) = running.iter().position(|thread| *thread == this) {
            running.swap_remove(place);
        }
    }
}
