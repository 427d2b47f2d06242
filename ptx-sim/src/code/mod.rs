//! From syntax to programs: every kernel with the functions that it calls, registers and labels as
//! numbers.
//!
//! Functions lie before those that call them, so that lanes inside a call have the lower pc and
//! reconverge before the caller goes on. Nothing recursive is supported, so that registers,
//! parameters, local variables and the return address of each function have fixed places.
#![warn(clippy::wildcard_enum_match_arm)]

mod comments;
mod decode;
mod lines;
mod link;
mod names;
mod uses;

pub(crate) use comments::shared_names;
pub(crate) use lines::mark_variables;
pub(crate) use link::link;
