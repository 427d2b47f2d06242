//! The target `command`: what the command `ptx-sim` takes from outside, the forms of its options
//! and NumPy's files.

use ptx_sim::GlobalMemory;

use crate::arguments::{self, Argument, Buffer};
use crate::buffers;
use crate::npy;

/// The most elements of a buffer that is really made, and less than the command refuses to make:
/// what is between would only take memory.
const ELEMENTS: u64 = 1 << 12;
const HOPELESS: u64 = 1 << 32;

/// Reads a file of NumPy's, or else options, one a line; false if something was refused.
pub fn run(data: &[u8]) -> bool {
    if data.starts_with(b"\x93NUMPY") {
        is_array(data)
    } else {
        let text = String::from_utf8_lossy(data);
        are_understood(&text.lines().collect::<Vec<_>>())
    }
}

fn is_array(file: &[u8]) -> bool {
    npy::read(file).is_ok_and(|array| {
        assert!(array.bytes.len() <= file.len());
        assert_eq!(npy::read(&saved(&array)).map(|read| read.bytes), Ok(array.bytes));
        true
    })
}

/// Reads the options in every place that they may stand in, and makes buffers of those that are
/// some.
fn are_understood(options: &[&str]) -> bool {
    let (mut buffers, mut args) = (vec![], vec![]);
    let mut understood = true;
    for option in options {
        let buffer = arguments::buffer(option);
        let argument = arguments::argument(option);
        understood &= buffer.is_ok()
            || argument.is_ok()
            || arguments::extents(option).is_ok()
            || arguments::show(option).is_ok()
            || arguments::out(option).is_ok();
        buffers.extend(buffer.ok().filter(is_made));
        args.extend(argument.ok().filter(|argument| match argument {
            Argument::Buffer(buffer) => is_made(buffer),
            Argument::Scalar(_) | Argument::Address(_) | Argument::Length(_) | Argument::Map(_) => true,
        }));
    }
    let mut memory = GlobalMemory::default();
    match buffers::allocate(&mut memory, &buffers, &args) {
        Ok((placed, args)) => {
            for buffer in placed {
                let array = buffer.read(&memory).expect("a buffer can be read back");
                assert_eq!(npy::read(&saved(&array)).map(|read| read.bytes), Ok(array.bytes));
            }
            for arg in args {
                // The launch checks them; that must not fail either.
                if let ptx_sim::Arg::Map(map) = arg {
                    _ = map.check();
                }
            }
            understood
        }
        Err(_) => false,
    }
}

/// Files are left out: an option may name one that has no end.
fn is_made(buffer: &Buffer) -> bool {
    match buffer {
        Buffer::Zeros { shape, .. } | Buffer::Random { shape, .. } => {
            let count = shape.iter().try_fold(1_u64, |count, extent| count.checked_mul(*extent));
            count.is_none_or(|count| count <= ELEMENTS || count > HOPELESS)
        }
        Buffer::Npy(_) => false,
    }
}

/// The file of an array.
fn saved(array: &npy::Array) -> Vec<u8> {
    let mut file = Vec::new();
    npy::write(array, &mut file).expect("a vector takes everything");
    file
}
