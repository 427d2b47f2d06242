//! Unordered accesses of several blocks to the same global memory.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Span;

/// A block that reads what another block writes, without order.
#[derive(Clone, Debug)]
pub(crate) struct Unordered {
    /// Name of the parameter whose memory it is.
    pub(crate) name: String,
    pub(crate) written: Span,
    pub(crate) lacks: Lack,
    /// An access that could order the two, if there is one.
    pub(crate) flag: Option<Span>,
}

/// The ordering that is missing between a write of one block and a read of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The writing block does not release.
    Release,
    /// The reading block does not acquire.
    Acquire,
    /// Neither block does.
    Both,
    /// Both do, but only at the scope of their own block or cluster.
    Scope,
}

impl Unordered {
    pub(in crate::diag::mistake) fn text(&self) -> Text {
        let Self { name, written, lacks, flag } = self;
        let (why, at_flag, help) = match lacks {
            Lack::Release => (
                "that block releases nothing",
                "this orders nothing that came before it",
                "after the write, store the flag or count with `Order::Release` or `Order::AcqRel` and \
                 `Scope::Device`, or call `fence()` before it",
            ),
            Lack::Acquire => (
                "this block acquires nothing",
                "this orders nothing that comes after it",
                "before the read, load the flag or count with `Order::Acquire` or `Order::AcqRel` and \
                 `Scope::Device`, or call `fence()` after it",
            ),
            Lack::Both => (
                "nothing orders the two",
                "this orders nothing else",
                "after the write, store a flag with `Order::Release`; before the read, load it with \
                 `Order::Acquire` until it is set, both with `Scope::Device`",
            ),
            Lack::Scope => (
                "what orders the two does so within one block or cluster alone",
                "this orders threads of one block or cluster",
                "write `Scope::Device` where blocks of different clusters communicate",
            ),
        };
        let message = format!("a block reads `{name}`, which another one writes, and {why}");
        let text = Text::new(Code::UnorderedBlocks, message).label(*written, "another block writes here");
        let text = match flag {
            Some(flag) => text.label(*flag, at_flag),
            None => text,
        };
        text.help(help)
    }
}
