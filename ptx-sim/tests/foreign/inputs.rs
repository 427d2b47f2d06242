//! The contents of buffers before a launch, as `generate.py` creates them.

use super::manifest::{Buffer, Fill, bytes_of};

/// Returns a pseudorandom word.
fn mixed(i: u32) -> u32 {
    let x = (i ^ 0x9e37_79b9).wrapping_mul(0x85eb_ca6b);
    (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35) ^ (x >> 16)
}

/// Returns the bytes of the buffer with this index in its case.
pub(crate) fn contents(index: usize, buffer: &Buffer) -> Vec<u8> {
    let word = |i: u32| mixed(i.wrapping_add((index as u32) << 20));
    match &buffer.fill {
        None => vec![0; buffer.bytes()],
        Some(Fill::Bits(_)) => {
            let mut bytes: Vec<u8> =
                (0..=buffer.bytes() as u32 / 4).flat_map(|i| word(i).to_le_bytes()).collect();
            bytes.truncate(buffer.bytes());
            bytes
        }
        Some(Fill::Picked(numbers)) => {
            let number = |i| bytes_of(&numbers[word(i) as usize % numbers.len()]).into_iter().rev();
            (0..buffer.count).flat_map(number).collect()
        }
        Some(Fill::Range([start, end, step])) => {
            let steps = ((end - start) / step) as u64;
            let number = |i| start + (u64::from(word(i)) % steps) as f64 * step;
            (0..buffer.count).flat_map(|i| buffer.ty.number(number(i))).collect()
        }
    }
}
