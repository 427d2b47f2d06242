//! From syntax to programs: each kernel is linked with the functions that it calls, and registers
//! and labels become numbers.
//!
//! Functions come before those that call them. Lanes inside a call thus have the lower pc, and
//! reconverge before the caller goes on. Recursion is not supported, so the registers, parameters,
//! local variables and return address of each function have fixed locations.
#![warn(clippy::wildcard_enum_match_arm)]

mod decode;
mod lines;
mod link;
mod names;
mod uses;

pub(crate) use lines::mark_variables;
pub(crate) use link::link;
