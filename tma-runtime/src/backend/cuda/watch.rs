//! Kernels whose waits are limited, and what they report when a wait took too long: see
//! [`ptx_probe::watch`].

use super::context::Context;
use super::driver::{PageLocked, RelaxedCaptures};
use crate::error::{DeadlockReport, Error};
use crate::spec::{KernelParts, KernelSpec};
use ptx_probe::watch::{Report, WORDS, Watched, describe, shared_bytes_with_limits, watch};
use std::ptr;
use std::time::Duration;

/// A kernel whose waits are to be limited.
#[derive(Debug)]
pub(super) struct Watch {
    /// The kernel as the program knows it.
    original: &'static KernelSpec,
    limit: Duration,
    /// The kernel with limits, or why it cannot have any.
    made: Result<Limited, String>,
}

/// A kernel with limits.
#[derive(Debug)]
struct Limited {
    /// The kernel with other PTX.
    spec: &'static KernelSpec,
    /// Its waits. The text is in `spec`.
    watched: Watched,
    /// Host memory, which can be read after the kernel has stopped.
    reports: PageLocked<WORDS>,
}

impl Context {
    /// Returns the kernel whose waits take at most `limit`. It is made once and kept, as kernels
    /// are, and so is the reason why it cannot be made.
    pub(crate) fn watched(
        &self,
        original: &'static KernelSpec,
        limit: Duration,
    ) -> Result<&'static KernelSpec, Error> {
        if let Some(known) = self.known_watch(original, limit) {
            return known;
        }
        // A kernel without PTX, or for another device, is that error.
        self.properties().accept(original)?;
        let made = match self.refuses_limits(original) {
            Some(why) => Err(why),
            None => self.limited(original, limit)?,
        };
        let watch = Watch { original, limit, made };
        let spec = watch.spec();
        self.watches().push(watch);
        spec
    }

    /// Returns why a kernel has no room for limits, if it has none.
    fn refuses_limits(&self, original: &'static KernelSpec) -> Option<String> {
        let shared_bytes = shared_bytes_with_limits(original.shared_bytes);
        let with_limits = KernelParts { shared_bytes, ..*original.parts() };
        self.properties().lack_of_room(original, &with_limits, "limits of waits")
    }

    /// Makes a kernel with limits. The inner error says why its PTX cannot have any.
    fn limited(
        &self,
        original: &'static KernelSpec,
        limit: Duration,
    ) -> Result<Result<Limited, String>, Error> {
        let _current = self.make_current()?;
        // Another library may be capturing a stream.
        let _relaxed = RelaxedCaptures::new(self.driver);
        let reports = PageLocked::zeroed(self.driver)
            .map_err(|code| self.failure("allocate memory for reports of waits", code))?;
        let budget = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
        let watched = watch(original.ptx, original.entry, original.shared_bytes, reports.address(), budget);
        Ok(match watched {
            Ok(mut watched) => {
                let ptx = std::mem::take(&mut watched.ptx);
                // SAFETY: besides what `original` promises, the kernel writes to the reports.
                let spec = unsafe { original.rewritten(ptx, watched.shared_bytes) };
                Ok(Limited { spec, watched, reports })
            }
            Err(why) => Err(format!("{why}; compile it with this project's build script")),
        })
    }

    /// Returns the kernel if it has been made before. The lock is not held while one is made,
    /// because the error of a call that fails then looks at all reports.
    fn known_watch(
        &self,
        original: &'static KernelSpec,
        limit: Duration,
    ) -> Option<Result<&'static KernelSpec, Error>> {
        let watches = self.watches();
        let known = watches.iter().find(|watch| ptr::eq(watch.original, original) && watch.limit == limit);
        known.map(Watch::spec)
    }
}

impl Watch {
    /// Returns the kernel with limits.
    fn spec(&self) -> Result<&'static KernelSpec, Error> {
        let Self { original, made, .. } = self;
        let refused = |why: &String| Error::Unwatched { kernel: original.name, why: why.clone() };
        made.as_ref().map(|limited| limited.spec).map_err(refused)
    }

    /// Returns the error of a kernel that has reported waits.
    pub(super) fn reported(&self) -> Option<Error> {
        let Limited { watched, reports, .. } = self.made.as_ref().ok()?;
        let reports = Report::read(&reports.read_all());
        if reports.is_empty() {
            return None;
        }
        let waiting = describe(watched, &reports, |file, line| {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().nth((line as usize).checked_sub(1)?)?;
            Some(line.trim().to_owned())
        });
        let report = DeadlockReport::new(waiting, reports.len());
        Some(Error::Deadlock { kernel: self.original.name, limit: self.limit, report })
    }
}
