//! Unordered accesses of several blocks to the same global memory.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Span;

/// A block that reads what another block writes, without order.
#[derive(Clone, Debug)]
pub struct Unordered {
    /// Name of the parameter whose memory it is.
    pub name: String,
    pub written: Span,
    pub lacks: Lack,
    /// An access that could order the two, if there is one.
    pub flag: Option<Span>,
}

/// The ordering that is missing between a write of one block and a read of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
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
                "the writing block releases nothing",
                "this access does not order what comes before it",
                "store the flag or count with `Order::Release` or `Order::AcqRel` and `Scope::Device` after \
                 the write, or call `fence()` before that store",
            ),
            Lack::Acquire => (
                "the reading block acquires nothing",
                "this access does not order what comes after it",
                "load the flag or count with `Order::Acquire` or `Order::AcqRel` and `Scope::Device` before \
                 the read, or call `fence()` after that load",
            ),
            Lack::Both => (
                "nothing orders the read after the write",
                "this access orders no other access",
                "store a flag with `Order::Release` after the write, and load it with `Order::Acquire` until \
                 it is set before the read, both with `Scope::Device`",
            ),
            Lack::Scope => (
                "the scope of the release or the acquire is only a block or cluster",
                "this access orders only threads of one block or cluster",
                "use `Scope::Device` to communicate between blocks of different clusters",
            ),
        };
        let message = format!("race on `{name}`: a block reads what another block writes, but {why}");
        let text = Text::new(Code::UnorderedBlocks, message).label(*written, "another block writes here");
        let text = match flag {
            Some(flag) => text.label(*flag, at_flag),
            None => text,
        };
        text.help(help)
    }
}
