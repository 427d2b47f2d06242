//! Texts, checkpoints and the loop, with a small function in the place of a model.

mod checkpoints;
mod data;
mod fixture;
mod folder;
mod models;
mod picture;
mod resume;
mod schedule;
mod settings;
mod storage;
mod unstable;
