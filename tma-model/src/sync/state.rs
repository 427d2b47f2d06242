//! The parts of a synchronisation state.
//!
//! Code that compares two states visits their parts in order. The checker, for example, looks for a
//! state that recurs. A step is visited together with its agent: only the order of an agent's steps
//! matters, not their numbers.

use super::clock::{Clock, Epoch};

/// A part of a state.
#[derive(Clone, Copy, Debug)]
pub enum StatePart<'a> {
    /// The steps that an agent knows.
    Clock(&'a Clock),
    /// A step of an agent that may later be looked up in a clock.
    Step(Epoch),
    /// All steps of an agent up to this one, which share a property such as being fenced.
    UpTo(Epoch),
    /// Any other value.
    Number(u64),
}
