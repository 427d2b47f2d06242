//! Device functions of GEMMs on teams.

use tma_runtime::tma_module;

/// Flags that count launches, by which a rank waits for another.
#[tma_module]
pub mod flags {
    use tma_runtime::prelude::*;

    /// Returns whether a flag is still that of a launch before this one. The difference decides,
    /// since numbers of launches wrap.
    #[tma_device]
    pub fn is_before(flag: u32, launch: u32) -> bool {
        (flag.wrapping_sub(launch) as i32) < 0
    }

    /// Waits until another rank has set flag `i` of this one in this launch. What it did before is
    /// visible then.
    #[tma_device]
    pub fn wait_for_peer(flags: Peers<Global<u32>>, i: u32, launch: u32) {
        while is_before(flags.own().load(i, Order::Acquire, Scope::System), launch) {}
    }
}
