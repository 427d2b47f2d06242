//! Accesses with a memory order and a scope, and non-coherent loads.

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::{either, one_of};
use crate::ir::{MemoryScope, Order, Scalar, Span, order_name, scope_name};

/// A strong access that does not exist, or a non-coherent load of memory that changes.
#[derive(Clone, Debug)]
pub enum Atomic {
    /// Elements that the access does not support. It supports `takes`.
    Element { word: Word, element: Scalar, takes: Vec<Scalar> },
    /// A memory order that the access does not support. It supports `takes`.
    Order { word: Word, found: Order, takes: &'static [Order] },
    /// A scope that includes threads without access to the shared memory.
    SharedScope { word: Word, found: MemoryScope },
    /// A scope that leaves out the rank whose memory is accessed, or this one.
    PeerScope { word: Word, found: MemoryScope },
    /// A non-coherent load from a slice that the kernel writes, or accesses with an order.
    NonCoherent {
        slice: String,
        /// Whether it loads a vector.
        is_vector: bool,
        /// The first such write or access, unless the write is part of another operation.
        change: Option<Span>,
    },
}

/// Returns what to write instead of an access to elements of an unsupported type.
fn instead(word: &Word, element: Scalar) -> &'static str {
    if word == "add_vec" {
        return "add each element with `fetch_add`";
    }
    match element {
        Scalar::F32 | Scalar::F64 if matches!(word.as_ref(), "fetch_min" | "fetch_max") => {
            "retry `compare_exchange` in a loop until it returns the value that was read; if all values are \
             +0.0 or greater, apply it to their bits instead: `to_bits()` preserves the order"
        }
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::Usize | Scalar::F32 | Scalar::F64 => {
            "retry `compare_exchange` in a loop until it returns the value that was read"
        }
        Scalar::Bool
        | Scalar::I8
        | Scalar::U8
        | Scalar::I16
        | Scalar::U16
        | Scalar::F16
        | Scalar::Bf16
        | Scalar::Tf32
        | Scalar::E4m3
        | Scalar::E5m2 => {
            "use 32-bit elements; if they are not supported either, retry `compare_exchange` in a loop until \
             it returns the value that was read"
        }
    }
}

impl Atomic {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Element { word, element, takes } => {
                let takes = one_of(takes.iter().map(|scalar| scalar.name()));
                Text::new(Code::ElementType, format!("`{word}` does not support `{element}` elements"))
                    .note(format!("the elements of `{word}` can be {takes}"))
                    .help(instead(word, *element))
            }
            Self::Order { word, found, takes } => {
                let rule = if takes.contains(&Order::Acquire) {
                    "only a write can release"
                } else {
                    "only an access that returns a value can acquire"
                };
                let takes = either(takes.iter().map(|&order| format!("Order::{}", order_name(order))));
                let message = format!("{rule}, but `{word}` has `Order::{}`", order_name(*found));
                Text::new(Code::AccessOrder, message).help(format!("use {takes}"))
            }
            Self::SharedScope { word, found } => {
                let message = format!(
                    "shared memory is visible to its cluster only, but `{word}` has `Scope::{}`",
                    scope_name(*found)
                );
                Text::new(Code::AccessOrder, message).help(
                    "use `Scope::Block`, or `Scope::Cluster` if other blocks of the cluster access the array",
                )
            }
            Self::PeerScope { word, found } => {
                let message = format!(
                    "the memory of a rank is accessed by several GPUs, but `{word}` has `Scope::{}`",
                    scope_name(*found)
                );
                Text::new(Code::PeerScope, message).help("use `Scope::System`")
            }
            Self::NonCoherent { slice, is_vector, change } => {
                let (word, plain) = if *is_vector { ("get_vec_nc", "get_vec") } else { ("get_nc", "get") };
                let message = format!(
                    "non-coherent load of memory that changes: `{word}` need not see what the kernel writes \
                     to `{slice}`"
                );
                let text = Text::new(Code::NonCoherentLoad, message);
                let text = match change {
                    Some(change) => {
                        text.label(*change, "the kernel writes it, or orders accesses to it, here")
                    }
                    None => text,
                };
                text.help(format!("read `{slice}` with `{plain}`"))
            }
        }
    }
}
