//! Accesses with a memory order and a scope.

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::listed;
use crate::ir::{MemoryScope, Order, Scalar, order_name, scope_name};

/// A strong access that does not exist.
#[derive(Clone, Debug)]
pub(crate) enum Atomic {
    /// Elements that the access does not support. It supports `takes`.
    Element { word: Word, element: Scalar, takes: Vec<Scalar> },
    /// A memory order that the access does not support. It supports `takes`.
    Order { word: Word, found: Order, takes: &'static [Order] },
    /// A scope that includes threads without access to the shared memory.
    SharedScope { word: Word, found: MemoryScope },
}

/// Returns what to write instead of an access to elements of an unsupported type.
fn instead(word: &Word, element: Scalar) -> &'static str {
    if word == "add_vec" {
        return "add each element with `fetch_add`";
    }
    match element {
        Scalar::F32 | Scalar::F64 if matches!(word.as_ref(), "fetch_min" | "fetch_max") => {
            "write a loop that tries `compare_exchange` until it returns what was read; or, where all numbers are \
             +0.0 or greater, apply it to their bits: `to_bits()` keeps the order"
        }
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::Usize | Scalar::F32 | Scalar::F64 => {
            "write a loop that tries `compare_exchange` until it returns what was read"
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
            "use 32-bit elements; if it is not for these either, write a loop that tries `compare_exchange` until \
             it returns what was read"
        }
    }
}

impl Atomic {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Element { word, element, takes } => {
                let takes: Vec<_> = takes.iter().map(|scalar| scalar.name()).collect();
                Text::new(Code::ElementType, format!("there is no `{word}` on `{element}`")).help(format!(
                    "it is for {}: {}",
                    takes.join(", "),
                    instead(word, *element)
                ))
            }
            Self::Order { word, found, takes } => {
                let rule = if takes.contains(&Order::Acquire) {
                    "only a write can release"
                } else {
                    "only an access that gives a value can acquire"
                };
                let takes = listed(takes.iter().map(|&order| format!("Order::{}", order_name(order))));
                let message = format!("{rule}: `{word}` with `Order::{}`", order_name(*found));
                Text::new(Code::AccessOrder, message).help(format!("`{word}` takes {takes}"))
            }
            Self::SharedScope { word, found } => {
                let message = format!(
                    "only its cluster sees shared memory: `{word}` with `Scope::{}`",
                    scope_name(*found)
                );
                Text::new(Code::AccessOrder, message).help(
                    "write `Scope::Block`, or `Scope::Cluster` if other blocks of the cluster access the array",
                )
            }
        }
    }
}
