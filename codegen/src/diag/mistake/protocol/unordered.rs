//! Blocks that access the same global memory, and nothing orders them.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Span;

/// A block reads what another one writes.
#[derive(Clone, Debug)]
pub(crate) struct Unordered {
    /// The parameter whose memory it is.
    pub(crate) name: String,
    pub(crate) written: Span,
    pub(crate) lacks: Lack,
    /// The access, if there is one, that could order the two.
    pub(crate) flag: Option<Span>,
}

/// What is missing between a write of one block and a read of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The block that writes releases nothing.
    Release,
    /// The block that reads acquires nothing.
    Acquire,
    /// Neither of them does.
    Both,
    /// Both do, for threads of their own block or cluster alone.
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
