//! Compares outputs of the simulator with those of the GPU.

use half::{bf16, f16};

use super::manifest::{Buffer, Compare, Type};

/// Returns the elements of a buffer of floating-point numbers.
fn floats(ty: Type, bytes: &[u8]) -> Vec<f64> {
    let parts = bytes.chunks_exact(ty.element().bytes() as usize);
    let read = |part: &[u8]| match *part {
        [a, b] if matches!(ty, Type::Bf16) => f64::from(bf16::from_le_bytes([a, b])),
        [a, b] => f64::from(f16::from_le_bytes([a, b])),
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => f64::from_le_bytes(part.try_into().expect("eight bytes")),
    };
    parts.map(read).collect()
}

/// Reports where `found` differs from the GPU's output, or is not close enough to it.
pub(crate) fn check(buffer: &Buffer, wanted: &[u8], found: &[u8]) -> Result<(), String> {
    let name = &buffer.name;
    match buffer.compare.as_ref() {
        None => Ok(()),
        Some(Compare::Exactly(_)) => {
            let size = buffer.ty.element().bytes() as usize;
            let pairs = wanted.chunks(size).zip(found.chunks(size)).enumerate();
            let differ: Vec<_> = pairs.filter(|(_, (wanted, found))| wanted != found).collect();
            let Some((first, (wanted, found))) = differ.first() else { return Ok(()) };
            let (wanted, found) = (hexadecimal(wanted), hexadecimal(found));
            let indices: Vec<usize> = differ.iter().map(|(index, _)| *index).take(20).collect();
            let count = differ.len();
            Err(format!(
                "{count} elements of `{name}` differ, at {indices:?}: {first} is {found}, the GPU has {wanted}"
            ))
        }
        Some(Compare::Within { relative, absolute, because }) => {
            let pairs = floats(buffer.ty, wanted).into_iter().zip(floats(buffer.ty, found)).enumerate();
            let close = |wanted: f64, found: f64| {
                (found - wanted).abs() <= (relative * wanted.abs()).max(*absolute)
                    || found.is_nan() && wanted.is_nan()
            };
            match pairs.into_iter().find(|(_, (wanted, found))| wanted != found && !close(*wanted, *found)) {
                None => Ok(()),
                Some((index, (wanted, found))) => {
                    Err(format!("`{name}[{index}]` is {found}, the GPU has {wanted}; {because}"))
                }
            }
        }
    }
}

/// Returns the hexadecimal digits of a little-endian number.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}
