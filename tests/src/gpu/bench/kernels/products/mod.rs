//! Products of matrices, C = A · Bᵀ, by the tensor cores. A is M × K, B is N × K, both row-major.
//!
//! All kernels take the same parameters: the three maps, the tiles of C along M and N, and the
//! steps of 64 along K. Where two blocks share what they load of B, the tiles along M are counted
//! in pairs. Blocks take tiles in bands of `GROUP` rows, so that blocks that run at the same time
//! read the same parts of A and B, which the L2 cache then holds.
//!
//! * [`dense`]: no specialised warps, and each block loads for itself;
//! * [`paired`]: the same, but clusters of two blocks, one below the other, multicast B;
//! * [`persistent`]: a warpgroup loads, two multiply, and blocks stay; of `f16` and of `bf16`.

pub mod dense;
pub mod paired;
pub mod persistent;
