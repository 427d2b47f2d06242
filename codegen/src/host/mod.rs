//! The host's side of a kernel: its [`spec`](mod@spec) and its typed [`launcher`].

pub(crate) mod launcher;
pub(crate) mod spec;
