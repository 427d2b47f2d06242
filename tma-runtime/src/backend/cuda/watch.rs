//! Kernels whose waits are limited, and what they report when a wait took too long: see
//! [`ptx_probe::watch`].

use super::context::Context;
use super::driver::{PageLocked, RelaxedCaptures};
use crate::error::{DeadlockReport, Error};
use crate::spec::KernelSpec;
use ptx_probe::watch::{Report, WORDS, Watched, describe, watch};
use std::ptr;
use std::time::Duration;

/// A kernel whose waits are limited.
#[derive(Debug)]
pub(super) struct Watch {
    /// The kernel as the program knows it.
    original: &'static KernelSpec,
    /// The kernel with other PTX.
    spec: &'static KernelSpec,
    /// Its waits. The text is in `spec`.
    watched: Watched,
    limit: Duration,
    /// Host memory, which can be read after the kernel has stopped.
    reports: PageLocked<WORDS>,
}

impl Context {
    /// Returns the kernel whose waits take at most `limit`. It is made once and kept, as kernels
    /// are.
    pub(crate) fn watched(
        &self,
        original: &'static KernelSpec,
        limit: Duration,
    ) -> Result<&'static KernelSpec, Error> {
        if let Some(spec) = self.known_watch(original, limit) {
            return Ok(spec);
        }
        // A kernel without PTX, or for another device, is that error.
        self.properties().accept(original)?;
        let refused = |why| Error::Unwatched { kernel: original.name, why };
        let _current = self.make_current()?;
        // Another library may be capturing a stream.
        let _relaxed = RelaxedCaptures::new(self.driver);
        let reports = PageLocked::zeroed(self.driver)
            .map_err(|code| self.failure("allocate memory for reports of waits", code))?;
        let budget = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
        let mut watched =
            watch(original.ptx, original.entry, original.shared_bytes, reports.address(), budget)
                .map_err(|why| refused(format!("{why}; compile it with this project's build script")))?;
        // SAFETY: besides what `original` promises, the kernel writes to the reports.
        let spec = unsafe { original.rewritten(std::mem::take(&mut watched.ptx), watched.shared_bytes) };
        if let Some(why) = self.properties().lack_of_room(original, spec, "limits of waits") {
            return Err(refused(why));
        }
        self.watches().push(Watch { original, spec, watched, limit, reports });
        Ok(spec)
    }

    /// Returns the kernel if it has been made before. The lock is not held while one is made,
    /// because the error of a call that fails then looks at all reports.
    fn known_watch(&self, original: &'static KernelSpec, limit: Duration) -> Option<&'static KernelSpec> {
        let watches = self.watches();
        let known = watches.iter().find(|watch| ptr::eq(watch.original, original) && watch.limit == limit);
        known.map(|watch| watch.spec)
    }
}

impl Watch {
    /// Returns the error of a kernel that has reported waits.
    pub(super) fn reported(&self) -> Option<Error> {
        let reports = Report::read(&self.reports.read_all());
        if reports.is_empty() {
            return None;
        }
        let waiting = describe(&self.watched, &reports, |file, line| {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().nth((line as usize).checked_sub(1)?)?;
            Some(line.trim().to_owned())
        });
        let report = DeadlockReport::new(waiting, reports.len());
        Some(Error::Deadlock { kernel: self.original.name, limit: self.limit, report })
    }
}
