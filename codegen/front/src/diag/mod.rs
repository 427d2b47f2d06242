//! Errors and warnings: their data, the sink that collects those of a stage, their codes, and their
//! rendering.
//!
//! A stage reports a mistake, which is data such as a name, a type or a number. Only this module
//! turns it into a code and words.
//!
//! An error stops the compilation of a kernel, and the macro shows it at its location. A warning
//! does not stop compilation. A macro on stable Rust cannot show warnings, so the build script
//! prints them.

mod codes;
mod diagnostic;
mod lists;
mod located;
pub mod mistake;
mod partial;
mod render;
mod sink;
pub(crate) mod suggest;
mod suspect;
mod text;
mod undecided;
mod wording;

pub use codes::{Code, Severity};
pub use diagnostic::Coded;
pub use diagnostic::Diagnostic;
pub use located::Located;
pub use mistake::{Counterexample, LaunchInput};
pub(crate) use partial::{Decision, PartialType};
pub use render::render;
pub use sink::{Diagnostics, Sink};
pub use suspect::Suspect;
pub use text::Note;
pub use undecided::UndecidedReason;
