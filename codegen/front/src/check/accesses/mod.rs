//! Accesses of threads to memory: vectors, and non-coherent loads.

pub(super) mod non_coherent;
pub(super) mod vectors;
