//! The commands, with one module each, and modules that several commands share.

mod assembled;
pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod layout;
pub(crate) mod new;
mod parameters;
pub(crate) mod profile;
pub(crate) mod ptx;
pub(crate) mod run;
pub(crate) mod sass;
pub(crate) mod setup;
pub(crate) mod timeline;
pub(crate) mod trace;
pub(crate) mod wheel;
