//! A loaded kernel text.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use ptx_sim::Module;

/// A module that launches share.
///
/// The module is behind `dyn` to keep compile times of users low: wherever a
/// [`Device`](crate::Device) is dropped, rustc visits the fields of every type in it, and would
/// visit every instruction type of the simulator.
#[derive(Clone)]
pub(super) struct Loaded(Arc<dyn Borrow<Module> + Send + Sync>);

impl Loaded {
    pub(super) fn new(module: Module) -> Self {
        Self(Arc::new(module))
    }
}

impl Deref for Loaded {
    type Target = Module;

    fn deref(&self) -> &Module {
        (*self.0).borrow()
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
