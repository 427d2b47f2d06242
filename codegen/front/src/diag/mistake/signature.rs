//! Signatures of kernels and device functions.

use std::fmt;

use crate::diag::lists::PARAMETERS;
use crate::diag::text::Text;
use crate::diag::{Code, PartialType};

/// A mistake in a signature, or a body that contradicts it.
#[derive(Clone, Debug)]
pub enum Signature {
    /// A kernel with a qualifier such as `async`.
    Qualified(Qualifier),
    /// A kernel with a return type.
    Result,
    /// A kernel whose body ends in a value.
    Tail,
    /// A lifetime among a kernel's generics.
    Lifetime,
    /// A type that a kernel's parameter cannot have.
    Parameter(PartialType),
    /// `self`.
    SelfParameter,
    /// A type that a device function cannot return.
    DeviceResult(PartialType),
    /// A recursive device function.
    Recursion { function: String },
}

/// A qualifier that a kernel cannot have.
#[derive(Clone, Copy, Debug)]
pub enum Qualifier {
    Async,
    Const,
    Extern,
    Unsafe,
    Variadic,
}

impl fmt::Display for Qualifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async => "`async`",
            Self::Const => "`const`",
            Self::Extern => "`extern`",
            Self::Unsafe => "`unsafe`",
            Self::Variadic => "variadic",
        })
    }
}

impl Signature {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Qualified(qualifier) => {
                Text::new(Code::Signature, format!("a kernel cannot be {qualifier}"))
                    .help("write `fn name(parameters) { .. }`")
            }
            Self::Result => Text::new(Code::Signature, "a kernel cannot return a value")
                .help("write results to global memory, or store a tile"),
            Self::Tail => Text::new(Code::Signature, "a kernel cannot return a value")
                .help("end the last expression with `;`, and write results to global memory"),
            Self::Lifetime => {
                Text::new(Code::Signature, "a kernel can be generic over types and constants only")
                    .help("remove the lifetime: parameters of kernels borrow nothing")
            }
            Self::Parameter(found) => {
                Text::new(Code::Signature, format!("a kernel parameter cannot be {found}"))
                    .help(format!("use one of {PARAMETERS}"))
            }
            Self::SelfParameter => {
                Text::new(Code::Signature, "`self` is supported only in methods of structs")
                    .help("write it in a `#[tma_device] impl`, or pass the value as a parameter")
            }
            Self::DeviceResult(found) => {
                Text::new(Code::Signature, format!("a device function cannot return {found}")).help(
                    "return scalars, register arrays, structs, tuples, cache policies, tiles, barriers, \
                     accumulators, rows or fragments",
                )
            }
            Self::Recursion { function } => Text::new(Code::Recursion, format!("`{function}` calls itself"))
                .help("write a loop: device functions are inlined"),
        }
    }
}
