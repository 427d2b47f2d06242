//! The host's side of a kernel: its [`spec`](mod@spec), its typed [`launcher`], for all
//! instances of one the [`generic`] one, and [`further`] arguments of kernels that were made from
//! others.

#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod further;
pub(crate) mod generic;
pub(crate) mod launcher;
pub(crate) mod spec;
