//! The effect of each instruction on the components of a machine, and the errors reported for it:
//! the methods that the executing side calls.

mod access;
mod async_op;
mod atomic;
mod barrier;
mod copy;
mod copy_async;
mod exit;
mod fence;
mod groups;
mod landing;
mod locate;
mod maps;
mod mbarrier;
mod multiply;
mod operand;
mod variables;
