//! Host code of a kernel: its [`spec`](mod@spec), its typed [`launcher`], a [`generic`] launcher
//! for all instances, and [`further`] arguments of kernels made from templates.

#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod further;
pub(crate) mod generic;
pub(crate) mod launcher;
pub(crate) mod spec;
