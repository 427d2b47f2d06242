//! Casts from every scalar type to every other.

mod narrow;
mod pairs;

use tma_runtime::prelude::*;
use tma_runtime::spec;

use pairs::{casts, casts_bool, casts_tf32};

use crate::case::{Case, Options, blocks};
use crate::random::{Sample, samples};
use crate::rounding::{Format, integer_to_odd};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "casts::bool", run: bools },
    Case { name: "casts::i8", run: numbers::<i8> },
    Case { name: "casts::u8", run: numbers::<u8> },
    Case { name: "casts::i16", run: numbers::<i16> },
    Case { name: "casts::u16", run: numbers::<u16> },
    Case { name: "casts::i32", run: numbers::<i32> },
    Case { name: "casts::u32", run: numbers::<u32> },
    Case { name: "casts::i64", run: numbers::<i64> },
    Case { name: "casts::u64", run: numbers::<u64> },
    Case { name: "casts::usize", run: numbers::<usize> },
    Case { name: "casts::f16", run: numbers::<f16> },
    Case { name: "casts::bf16", run: numbers::<bf16> },
    Case { name: "casts::f32", run: numbers::<f32> },
    Case { name: "casts::f64", run: numbers::<f64> },
    Case { name: "casts::e4m3", run: numbers::<e4m3> },
    Case { name: "casts::e5m2", run: numbers::<e5m2> },
    Case { name: "casts::tf32", run: tf32s },
    Case { name: "casts::narrow", run: narrow::check },
];

/// The target types, in the order of the kernels' results.
const TO: [&str; 15] = [
    "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "usize", "f32", "f64", "f16", "bf16", "e4m3",
    "e5m2",
];

fn bools(device: &Device, options: &Options) -> anyhow::Result<()> {
    check::<bool>(device, options, |grid, from, to| casts_bool::launch(device, grid, from, to))
}

fn numbers<T: Sample + Exact>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    casts::Instance<T>: casts::Compiled,
{
    check::<T>(device, options, |grid, from, to| casts::launch::<T>(device, grid, from, to))
}

/// Launches a kernel on inputs, and compares the bits of each of them in every type.
fn check<T: Sample + Exact>(
    device: &Device,
    options: &Options,
    launch: impl Fn(Grid, &DeviceTensor<T, 1>, &mut DeviceTensor<u64, 1>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let from = samples::<T>(3, n);
    let wanted: Vec<_> = from.iter().map(|&from| wanted(from)).collect();
    let width = wanted[0].len();

    let mut to = device.filled_bytes([n * width], 0xab)?;
    launch(blocks(n), &device.tensor(&from, [n])?, &mut to)?;
    for (i, found) in to.to_vec()?.chunks(width).enumerate() {
        for (k, (&found, &wanted)) in found.iter().zip(&wanted[i]).enumerate() {
            let (found, wanted) = (canonical(k, found), canonical(k, wanted));
            let (from, to) = (from[i], TO[k]);
            anyhow::ensure!(found == wanted, "{from:?} to {to} gives {found:#x}, wanted {wanted:#x}");
        }
    }
    Ok(())
}

/// `tf32` has its own rounding, and no arithmetic.
fn tf32s(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let (single, double) = (samples::<f32>(4, n), samples::<f64>(5, n));
    let (mut bits, mut back) = (device.filled_bytes([2 * n], 0xab)?, device.filled_bytes([n], 0xab)?);
    let (on_single, on_double) = (device.tensor(&single, [n])?, device.tensor(&double, [n])?);
    casts_tf32::launch(device, blocks(n), &on_single, &on_double, &mut bits, &mut back)?;

    let (bits, back) = (bits.to_vec()?, back.to_vec()?);
    for i in 0..n {
        let wanted = [tf32::from_f32(single[i]), tf32::from_f64(double[i])];
        let found = [bits[2 * i], bits[2 * i + 1]].map(tf32::from_bits);
        let same =
            |a: tf32, b: tf32| a.to_bits() == b.to_bits() || (a.to_f32().is_nan() && b.to_f32().is_nan());
        anyhow::ensure!(
            same(found[0], wanted[0]) && same(found[1], wanted[1]),
            "{} and {} give {found:?}, wanted {wanted:?}",
            single[i],
            double[i]
        );
        let exact = found[0].to_f64();
        anyhow::ensure!(back[i] == exact || (back[i].is_nan() && exact.is_nan()), "{} from {exact}", back[i]);
    }
    Ok(())
}

/// Returns the bits of a scalar in every type. An infinity becomes the largest number of an 8-bit
/// float, except in a cast to its own type, which changes nothing.
fn wanted<T: Sample + Exact>(from: T) -> Vec<u64> {
    let mut to = in_every_type(from.exact());
    if let (spec::Scalar::E5m2, Number::Float(x), Some(own)) = (T::ELEMENT, from.exact(), to.last_mut())
        && x.is_infinite()
    {
        *own = if x > 0.0 { 0x7c } else { 0xfc };
    }
    to
}

/// Returns the bits of a result of type `TO[to]`, with one bit pattern for all NaNs.
fn canonical(to: usize, bits: u64) -> u64 {
    match TO[to] {
        "f32" if f32::from_bits(bits as u32).is_nan() => u64::from(f32::NAN.to_bits()),
        "f64" if f64::from_bits(bits).is_nan() => f64::NAN.to_bits(),
        "f16" => Format::F16.canonical(bits),
        "bf16" => Format::BF16.canonical(bits),
        "e4m3" => Format::E4M3.canonical(bits),
        "e5m2" => Format::E5M2.canonical(bits),
        _ => bits,
    }
}

/// A number of any type.
enum Number {
    Bool(bool),
    Integer(i128),
    Float(f64),
}

/// The exact value of a scalar.
trait Exact: Copy {
    fn exact(self) -> Number;
}

macro_rules! exact {
    ($($($ty:ty)+ => |$x:ident| $number:expr;)+) => { $($(
        impl Exact for $ty {
            fn exact(self) -> Number {
                let $x = self;
                $number
            }
        }
    )+)+ };
}

exact! {
    bool => |x| Number::Bool(x);
    i8 u8 i16 u16 i32 u32 i64 u64 usize => |x| Number::Integer(x as i128);
    f16 bf16 e4m3 e5m2 => |x| Number::Float(x.to_f64());
    f32 => |x| Number::Float(f64::from(x));
    f64 => |x| Number::Float(x);
}

/// Returns the bits of a number in every type.
fn in_every_type(number: Number) -> Vec<u64> {
    macro_rules! integers {
        ($x:expr) => {
            [
                $x as i8 as u64,
                $x as u8 as u64,
                $x as i16 as u64,
                $x as u16 as u64,
                $x as i32 as u64,
                $x as u32 as u64,
                $x as i64 as u64,
                $x as u64,
                $x as usize as u64,
            ]
        };
    }
    let narrow = |x| [Format::F16, Format::BF16, Format::E4M3, Format::E5M2].map(|format| format.round(x));
    let (integers, wide, narrow) = match number {
        Number::Bool(x) => return integers!(x).into(),
        Number::Integer(x) => (integers!(x), (x as f32, x as f64), narrow(integer_to_odd(x))),
        Number::Float(x) => (integers!(x), (x as f32, x), narrow(x)),
    };
    let wide = [u64::from(wide.0.to_bits()), wide.1.to_bits()];
    integers.into_iter().chain(wide).chain(narrow).collect()
}
