//! Generates text with a language model: in a terminal, or for clients of an HTTP server.

pub mod load;
pub mod server;
pub mod terminal;
