//! Launches of fixed kernels with shapes, arguments and tensor maps that nobody would ask for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ptx_sim_fuzz::launch::Launch;

fuzz_target!(|launch: Launch| {
    launch.run();
});
