//! What the command `ptx-sim` takes from outside: the forms of its options, and NumPy's files.

use ptx_sim::GlobalMemory;

use crate::arguments::{self, Argument, Buffer};
use crate::draw::Draw;
use crate::npy::{self, Array};
use crate::numbers::Type;
use crate::place::place;
use crate::text::Mutator;

/// Options that are understood.
const OPTIONS: [&str; 18] = [
    "u32:7",
    "i64:-1",
    "f16:1.5",
    "bf16:-3e30",
    "f64:1e-310",
    "zeros:f32:32x32",
    "zeros:u8:1",
    "random:f16:100x5:7",
    "random:i64:9",
    "npy:absent.npy",
    "address:0",
    "len:1",
    "map:0:f16:extents=100x52:box=12x8",
    "map:1:f32:extents=4x8x64:box=2x4x32:swizzle=128:steps=1x2x1:fill=nan:strides=512x64",
    "map:0:f16:extents=2x9x9x8:column=16x8:lower=-1x-1:upper=1x1",
    "map:1:u8:extents=2x4x5x6:box=1x4x5x2:interleave=16",
    "9,8,1",
    "0=copy.npy",
];

/// Pieces that break them.
const HOSTILE: [&str; 14] = [
    ":",
    "x",
    "=",
    ",",
    "-",
    "-1",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "1e999",
    "nan",
    "",
    "é",
    "map",
];

/// The most elements of a buffer that is really made.
const ELEMENTS: u64 = 1 << 20;

/// Options and files without end.
pub(crate) struct Commands {
    options: Mutator,
}

impl Commands {
    pub(crate) fn new() -> Self {
        Self { options: Mutator::new(OPTIONS.map(str::to_owned).into(), &HOSTILE) }
    }

    /// Some options, as a command line has them.
    pub(crate) fn options(&self, draw: &Draw) -> Vec<String> {
        let option =
            |_| if draw.once_in(2) { (*draw.one_of(&OPTIONS)).to_owned() } else { self.options.text(draw) };
        (0..1 + draw.below(4)).map(option).collect()
    }
}

/// Reads the options in every place that they may stand in, and makes buffers of those that are some.
pub(crate) fn are_understood(options: &[String]) -> bool {
    let (mut buffers, mut args) = (vec![], vec![]);
    let mut understood = true;
    for option in options {
        let buffer = arguments::buffer(option).ok().filter(is_small);
        let argument = arguments::argument(option).ok();
        let argument =
            argument.filter(|argument| !matches!(argument, Argument::Buffer(large) if !is_small(large)));
        let others = [
            arguments::extents(option).is_ok(),
            arguments::show(option).is_ok(),
            arguments::out(option).is_ok(),
        ];
        understood &= buffer.is_some() || argument.is_some() || others.contains(&true);
        buffers.extend(buffer);
        args.extend(argument);
    }
    let mut memory = GlobalMemory::default();
    let placed = place(&mut memory, &buffers, &args);
    if let Ok((placed, _)) = &placed {
        for buffer in placed {
            let array = buffer.read(&memory).expect("a buffer can be read back");
            assert_eq!(npy::read(&npy::write(&array)).map(|read| read.bytes), Ok(array.bytes));
        }
    }
    understood && placed.is_ok()
}

fn is_small(buffer: &Buffer) -> bool {
    match buffer {
        Buffer::Zeros { shape, .. } | Buffer::Random { shape, .. } => {
            let count = shape.iter().try_fold(1_u64, |count, extent| count.checked_mul(*extent));
            // What overflows is refused before any of it is made.
            count.is_none_or(|count| count <= ELEMENTS)
        }
        Buffer::Npy(_) => true,
    }
}

/// A file of NumPy's with a few bytes that are wrong.
pub(crate) fn file(draw: &Draw) -> Vec<u8> {
    let ty = *draw.one_of(&[Type::U8, Type::I16, Type::F16, Type::Bf16, Type::F32, Type::F64]);
    let shape: Vec<_> = (0..draw.below(4)).map(|_| draw.below(5) as u64).collect();
    let count = shape.iter().product();
    let mut file = npy::write(&Array { ty, shape, bytes: ty.random_bytes(count, draw.bits()) });
    for _ in 0..draw.below(4) {
        let at = draw.below(file.len());
        match draw.below(4) {
            0 => file.truncate(at),
            1 => file.insert(at, draw.bits() as u8),
            2 => drop(file.drain(at..(at + draw.below(8)).min(file.len()))),
            _ => file.iter_mut().skip(at).take(1).for_each(|byte| *byte = draw.bits() as u8),
        }
    }
    file
}

/// Whether the bytes are an array.
pub(crate) fn is_array(file: &[u8]) -> bool {
    npy::read(file).is_ok_and(|array| array.bytes.len() <= file.len())
}
