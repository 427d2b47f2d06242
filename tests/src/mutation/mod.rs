//! Mutation: every synchronisation step of every correct kernel is removed or weakened, and the
//! simulator must report it.
//!
//! [`steps`] makes the mutants of a PTX text, instruction by instruction. [`subjects`] are the
//! kernels with the checks that launch them, [`trial`] runs the mutants, [`unreported`] lists those
//! that are not found, and [`table`] shows the results.
//!
//! [`ir`] makes mutants of the compiler's IR instead. [`judgement`] has them judged by the
//! protocol checker and run by the simulator, and [`judgement_table`] shows the verdicts of both.

pub mod ir;
#[cfg(feature = "llvm")]
pub mod judgement;
#[cfg(feature = "llvm")]
pub mod judgement_table;
pub mod line;
pub mod steps;
pub mod subjects;
pub mod table;
pub mod trial;
pub mod unreported;
