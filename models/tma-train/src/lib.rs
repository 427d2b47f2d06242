//! Trains a language model from a text file, with checkpoints from which it resumes.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`arguments`], [`settings`] | the command line; the options that decide each number |
//! | [`model`], [`tokenizer`] | the model's configuration; tokens of texts |
//! | [`stream`], [`windows`] | the tokens of a text in a file; the windows that steps read |
//! | [`schedule`] | learning rates |
//! | [`steps`] | the interface of a model that is trained |
//! | [`mod@train`] | the loop |
//! | [`checkpoint`], [`resume`] | the state of a run in a folder; the one to continue from |
//! | [`losses`], [`curve`] | losses as lines of JSON, and as a picture |
//! | [`command`], [`output`], [`device`] | a run by its arguments; its folder; its device |
//! | [`progress`], [`interrupt`] | a bar; signals |

pub mod arguments;
pub mod checkpoint;
pub mod command;
pub mod curve;
pub mod device;
mod error;
pub mod interrupt;
pub mod losses;
pub mod model;
pub mod output;
pub mod progress;
pub mod resume;
pub mod schedule;
pub mod settings;
pub mod steps;
pub mod stream;
pub mod tokenizer;
pub mod train;
pub mod windows;

pub use self::error::TrainError;
