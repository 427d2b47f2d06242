//! Loops that poll memory with plain reads.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Span;

/// A loop that only a plain read of memory can end.
#[derive(Clone, Debug)]
pub struct PlainPoll {
    /// Name of the variable that is read, if it has one.
    pub name: Option<String>,
    /// Whether the variable is in shared memory, as opposed to global memory.
    pub is_shared: bool,
    pub loop_span: Span,
}

impl PlainPoll {
    pub(in crate::diag::mistake) fn text(&self) -> Text {
        let Self { name, is_shared, loop_span } = self;
        let read = name.as_ref().map_or("shared memory".to_owned(), |name| format!("`{name}`"));
        let message = format!(
            "loop polls a plain read: the read of {read} may be moved out of the loop, which then never ends"
        );
        let help = if *is_shared {
            "wait for a `Barrier` that the writer arrives at, or read with `load(i, Order::Acquire, \
             Scope::Block)` and write with `store(i, value, Order::Release, Scope::Block)`"
        } else {
            "read with `load(i, Order::Acquire, Scope::Device)`, and write with `store(i, value, \
             Order::Release, Scope::Device)` in the other thread"
        };
        Text::new(Code::PlainPoll, message).label(*loop_span, "only the read can end this loop").help(help)
    }
}
