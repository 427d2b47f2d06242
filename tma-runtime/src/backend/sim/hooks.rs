//! Callbacks of the program that a simulated device invokes at launches.
//!
//! No lock is held while they run, so they may use the device. The launches that they make run
//! unchanged and unreported, since each would otherwise trigger the next without end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::spec::KernelSpec;

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the PTX to run in place of a kernel's own, if any.
pub(crate) type Rewrite = Arc<dyn Fn(&'static KernelSpec) -> Option<String> + Send + Sync>;

/// Receives the report of each launch.
pub(crate) type Watch = Arc<dyn Fn(&'static KernelSpec, &ptx_sim::Report) + Send + Sync>;

/// The callbacks of a device.
#[derive(Default)]
pub(super) struct Hooks {
    rewrite: Mutex<Option<Rewrite>>,
    /// The callback, with the number of timeline events to record.
    watch: Mutex<Option<(usize, Watch)>>,
    /// The threads that are running one of the callbacks.
    running: Mutex<Vec<ThreadId>>,
}

impl Hooks {
    /// Returns the same callbacks for another device.
    pub(super) fn copied(&self) -> Self {
        Self {
            rewrite: Mutex::new(locked(&self.rewrite).clone()),
            watch: Mutex::new(locked(&self.watch).clone()),
            running: Mutex::default(),
        }
    }

    pub(super) fn set_rewrite(&self, rewrite: Rewrite) {
        *locked(&self.rewrite) = Some(rewrite);
    }

    pub(super) fn set_watch(&self, trace_events: usize, watch: Watch) {
        *locked(&self.watch) = Some((trace_events, watch));
    }

    /// Returns the callback that replaces PTX, or `None` if there is none or this thread is running
    /// one of the device's callbacks.
    pub(super) fn rewrite(&self) -> Option<Rewrite> {
        let rewrite = locked(&self.rewrite).clone();
        rewrite.filter(|_| !self.within())
    }

    /// Returns the callback that receives reports, or `None` if there is none or this thread is
    /// running one of the device's callbacks.
    pub(super) fn watch(&self) -> Option<(usize, Watch)> {
        let watch = locked(&self.watch).clone();
        watch.filter(|_| !self.within())
    }

    fn within(&self) -> bool {
        locked(&self.running).contains(&thread::current().id())
    }

    /// Runs `f`, one of the callbacks.
    pub(super) fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        locked(&self.running).push(thread::current().id());
        // Dropped even if `f` panics.
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
