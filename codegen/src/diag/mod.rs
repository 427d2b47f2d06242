//! Errors: what they are made of, the sink that collects a stage's, their codes, and how they are shown.

mod codes;
mod render;
mod sink;

pub use codes::Code;
pub use render::render;
pub use sink::{Diagnostic, Sink};
