//! The forms of the options of the command `ptx-sim`, and NumPy's files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ptx_sim_fuzz::command;

fuzz_target!(|data: &[u8]| {
    command::run(data);
});
