//! Errors and warnings: what they are made of, the sink that collects a stage's, their codes, and
//! how they are shown.
//!
//! An error stops a kernel: the macro shows it where it is. A warning does not; a macro of stable
//! Rust has no way to show one, so the build script prints it.

mod codes;
mod diagnostic;
mod located;
mod render;
pub(crate) mod rules;
mod sink;

pub use codes::{Code, Severity};
pub(crate) use diagnostic::Coded;
pub use diagnostic::{Diagnostic, Note};
pub use located::Located;
pub use render::render;
pub use sink::{Diagnostics, Sink};
