//! Small kernels by theme, each with its expected results.

pub mod atomics;
pub mod barriers;
pub mod bits;
pub mod bulk;
pub mod casts;
pub mod clusters;
pub mod control;
pub mod copies;
pub mod derived;
pub mod descriptors;
pub mod faults;
pub mod fences;
pub mod floats;
pub mod forms;
pub mod generics;
pub mod im2col;
pub mod integers;
pub mod launches;
pub mod map_options;
pub mod math;
pub mod mma;
pub mod multicast;
pub mod multicast_pipelines;
pub mod multicast_ranks;
pub mod numbers;
pub mod optional;
pub mod orders;
pub mod overflow;
pub mod packed;
pub mod phases;
pub mod pipelines;
pub mod places;
pub mod printing;
#[allow(
    clippy::undocumented_unsafe_blocks,
    clippy::semicolon_if_nothing_returned,
    reason = "every block is one `ptx!`, which declares what it accesses"
)]
pub mod ptx_macro;
pub mod reductions;
pub mod remote_barriers;
pub mod reused;
pub mod sharing;
pub mod spans;
pub mod structs;
pub mod swizzled;
pub mod tables;
pub mod teams;
pub mod tensors;
pub mod tiles;
pub mod values;
pub mod vectors;
pub mod warps;

use crate::case::Case;

/// Returns every case except the [`faults`], after which a process can no longer use its device.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    let themes = [
        integers::CASES,
        floats::CASES,
        forms::CASES,
        casts::CASES,
        control::CASES,
        values::CASES,
        structs::CASES,
        reused::CASES,
        sharing::CASES,
        generics::CASES,
        derived::CASES,
        tables::CASES,
        warps::CASES,
        math::CASES,
        bits::CASES,
        vectors::CASES,
        packed::CASES,
        ptx_macro::CASES,
        places::CASES,
        atomics::CASES,
        optional::CASES,
        orders::CASES,
        overflow::CASES,
        barriers::CASES,
        fences::CASES,
        clusters::CASES,
        remote_barriers::CASES,
        multicast::CASES,
        multicast_ranks::CASES,
        phases::CASES,
        pipelines::CASES,
        multicast_pipelines::CASES,
        launches::CASES,
        tensors::CASES,
        copies::CASES,
        im2col::CASES,
        descriptors::CASES,
        map_options::CASES,
        tiles::CASES,
        spans::CASES,
        swizzled::CASES,
        teams::CASES,
    ];
    themes
        .into_iter()
        .chain(numbers::CASES)
        .chain(reductions::CASES)
        .chain(bulk::CASES)
        .chain(mma::CASES)
        .flatten()
}
