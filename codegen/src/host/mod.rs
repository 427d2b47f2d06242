//! The host's side of a kernel: its [`spec`](mod@spec), its typed [`launcher`], and for all
//! instances of one the [`generic`] one.

#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod generic;
pub(crate) mod launcher;
pub(crate) mod spec;
