//! All tests that need no program of their own, in a single one: each program would take seconds to
//! optimise and link.

mod arithmetic;
mod book;
mod bounds;
mod bulk;
mod clusters;
mod collectives;
mod command;
mod common;
mod cooperative;
mod copy_async;
mod counts;
mod examples;
mod execution;
mod findings;
mod foreign;
mod limits;
mod litmus;
mod loading;
mod mbarriers;
mod pairs;
mod probe;
mod shared_window;
mod spins;
mod stops;
mod swizzle;
mod team;
mod tensor_maps;
mod timeline;
mod warps;
mod wgmma;
