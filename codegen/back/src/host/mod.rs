//! Host code of a kernel: its [`spec`](mod@spec), its typed [`launcher`], a [`generic`] launcher
//! for all instances, the [`table`] of these, and [`added_params`] arguments of kernels made from
//! templates.

#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod added_params;
pub(crate) mod generic;
pub(crate) mod launcher;
pub(crate) mod spec;
pub(crate) mod table;
