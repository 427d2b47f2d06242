//! What a state of synchronisation consists of.
//!
//! Whoever compares two states, such as the checker that looks for one that recurs, visits their
//! parts in order. Steps are told with their agents: only their order matters.

use super::clock::{Clock, Epoch};

/// A part of a state.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// What somebody knows.
    Clock(&'a Clock),
    /// A step of an agent, of which somebody may ask whether it is known.
    Step(Epoch),
    /// All steps of an agent up to this one, of which something is so.
    UpTo(Epoch),
    /// Anything else.
    Number(u64),
}
