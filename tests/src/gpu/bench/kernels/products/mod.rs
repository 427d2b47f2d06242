//! GEMMs by the tensor cores, C = A · Bᵀ. A is M × K, B is N × K, both row-major.
//!
//! All kernels take the same parameters: the three maps, the number of tiles of C along M and along
//! N, and the number of steps of 64 along K. Where two blocks share their loads of B, the tiles
//! along M are counted in pairs. Blocks take tiles in bands of `GROUP` rows, so that blocks that
//! run at the same time read the same parts of A and B, which the L2 cache then holds.
//!
//! * [`dense`]: no specialised warps, and each block loads for itself;
//! * [`paired`]: the same, but clusters of two stacked blocks multicast B;
//! * [`persistent`]: one warpgroup loads, two multiply, and blocks are persistent; for `f16` and
//!   `bf16`.

pub mod dense;
pub mod paired;
pub mod persistent;
