//! Mutation: every synchronisation step of every correct kernel, removed or weakened, for the
//! simulator to find.
//!
//! [`steps`] makes the mutants of a PTX text, instruction by instruction. [`subjects`] are the
//! kernels with the checks that launch them, [`trial`] runs the mutants, [`unreported`] has those
//! that are not found, and [`table`] shows what became of all.

pub mod ir;
#[cfg(feature = "llvm")]
pub mod judged;
pub mod line;
pub mod steps;
pub mod subjects;
pub mod table;
pub mod trial;
pub mod unreported;
