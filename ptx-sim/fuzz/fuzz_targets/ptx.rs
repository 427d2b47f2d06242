//! The simulator's parser and loader; what loads is run for a while.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use ptx_sim_fuzz::{ptx, text};

fuzz_target!(|text: &[u8]| {
    ptx::run(text);
});

// libFuzzer's own changes find the way through the lexer, those of whole tokens and lines the way
// behind it.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 != 0
        && let Some(changed) = text::changed(&data[..size], seed.into()).filter(|text| text.len() <= max_size)
    {
        data[..changed.len()].copy_from_slice(changed.as_bytes());
        changed.len()
    } else {
        fuzzer_mutate(data, size, max_size)
    }
});
