//! Host code of a kernel: its [`spec`](mod@spec), its typed [`launcher`], a [`generic`] launcher
//! for all instances, the [`table`] of these, [`added_params`] arguments of kernels made from
//! templates, and what differs for kernels of a [`team`].

#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod added_params;
pub(crate) mod generic;
pub(crate) mod launcher;
pub(crate) mod spec;
pub(crate) mod table;
mod team;
