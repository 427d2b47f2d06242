//! Errors and warnings: what they are made of, the sink that collects a stage's, their codes, and
//! how they are shown.
//!
//! A stage reports a mistake: data, such as a name, a type or a number. Its code and its words
//! are made of that here, and nowhere else.
//!
//! An error stops a kernel: the macro shows it where it is. A warning does not; a macro of stable
//! Rust has no way to show one, so the build script prints it.

mod codes;
mod diagnostic;
mod doubt;
mod lists;
mod located;
pub(crate) mod mistake;
mod partial;
mod render;
mod sink;
pub(crate) mod suggest;
mod suspect;
mod text;
mod wording;

pub use codes::{Code, Severity};
pub(crate) use diagnostic::Coded;
pub use diagnostic::Diagnostic;
pub use doubt::Why;
pub use located::Located;
pub use mistake::{Counterexample, Given};
pub(crate) use partial::{Decision, PartialType};
pub use render::render;
pub use sink::{Diagnostics, Sink};
pub use suspect::Suspect;
pub use text::Note;
