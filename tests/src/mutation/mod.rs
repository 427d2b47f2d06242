//! Mutation: every synchronisation step of every correct kernel, removed or weakened, for the
//! simulator to find.
//!
//! [`steps`] makes the mutants of a PTX text, instruction by instruction. [`subjects`] are the
//! kernels with the checks that launch them, [`trial`] runs the mutants, [`unreported`] has those
//! that are not found, and [`table`] shows what became of all.
//!
//! [`ir`] makes mutants of the compiler's IR instead, [`judged`] has them judged by the protocol
//! checker and run by the simulator, and [`judged_table`] shows what both said.

pub mod ir;
#[cfg(feature = "llvm")]
pub mod judged;
#[cfg(feature = "llvm")]
pub mod judged_table;
pub mod line;
pub mod steps;
pub mod subjects;
pub mod table;
pub mod trial;
pub mod unreported;
