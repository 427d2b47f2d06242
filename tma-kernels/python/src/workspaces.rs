//! Memory that calls share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};

use tma_python::{Call, Failure};
use tma_runtime::layout::DeviceId;

/// Workspaces of one kind: one for each stream, in which calls run one after the other. A graph may
/// run beside the stream that it was captured in, so a call that is captured must not use them.
pub(crate) struct Workspaces<W>(Mutex<Option<HashMap<(DeviceId, usize), W>>>);

impl<W> Workspaces<W> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Passes the workspace of the call's stream, which `make` makes if there is none yet.
    pub(crate) fn with<R>(
        &self,
        call: &Call<'_>,
        make: impl FnOnce() -> Result<W, Failure>,
        queue: impl FnOnce(&mut W) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut workspaces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (call.device().id(), call.stream().raw().addr());
        queue(match workspaces.get_or_insert_default().entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(make()?),
        })
    }
}
