//! Errors of the compiler itself.

/// Stops the compiler, because one of its invariants is broken. No input may lead here: a mistake
/// of the user is reported to a [`Sink`](crate::diag::Sink).
#[macro_export]
macro_rules! bug {
    ($($message:tt)+) => {
        panic!("internal error of tma-codegen, please report it: {}", format_args!($($message)+))
    };
}
