//! The kernel's arguments and buffers, as given on the command line.

use std::path::PathBuf;

use ptx_sim::tensor_map::{DataType, Fill, Interleave, Swizzle};

use super::numbers::Type;

/// An argument of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// The little-endian bytes of a number.
    Scalar(Vec<u8>),
    /// A new buffer, passed as its address.
    Buffer(Buffer),
    /// The address of the buffer with this index.
    Address(usize),
    /// The length of the buffer with this index, in elements.
    Length(usize),
    /// A tensor map.
    Map(Map),
}

/// The initial contents of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Buffer {
    Zeros { ty: Type, shape: Vec<u64> },
    Random { ty: Type, shape: Vec<u64>, seed: u64 },
    Npy(PathBuf),
}

/// A tensor map, outermost dimension first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map {
    /// Index of the buffer that holds the tensor.
    pub(crate) buffer: usize,
    pub(crate) element: DataType,
    /// With an interleaved layout, the innermost extent counts pixels of one slice each.
    pub(crate) extents: Vec<u64>,
    pub(crate) mode: MapMode,
    /// The strides of all dimensions but the innermost, in elements (in slices, if interleaved).
    /// `None` means those of a dense tensor.
    pub(crate) strides: Option<Vec<u64>>,
    /// The element strides. `None` means all ones.
    pub(crate) steps: Option<Vec<u32>>,
    pub(crate) interleave: Interleave,
    pub(crate) swizzle: Swizzle,
    pub(crate) fill: Fill,
}

/// The part of a tensor that one copy moves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MapMode {
    /// A box with these extents.
    Box(Vec<u32>),
    /// This many channels of this many pixels, from a bounding box with these corners (im2col).
    Column { pixels: u32, channels: u32, lower: Vec<i32>, upper: Vec<i32> },
}

/// Parses the value of `--arg`.
///
/// # Errors
///
/// If the text is no argument. The message describes the accepted forms.
pub(crate) fn argument(text: &str) -> Result<Argument, String> {
    let (kind, rest) = text.split_once(':').ok_or_else(|| {
        "expected a number such as `u32:7`, a buffer such as `zeros:f32:1024`, `random:f32:1024` or `npy:FILE`, \
         or `address:INDEX`, `len:INDEX` or `map:INDEX:..`"
            .to_owned()
    })?;
    match kind {
        "zeros" | "random" | "npy" => buffer(text).map(Argument::Buffer),
        "address" => index(rest).map(Argument::Address),
        "len" => index(rest).map(Argument::Length),
        "map" => map(rest).map(Argument::Map),
        _ => {
            let ty = Type::from_name(kind)?;
            let bytes = ty.parse(rest).ok_or_else(|| format!("`{rest}` is not a number of type {kind}"))?;
            Ok(Argument::Scalar(bytes))
        }
    }
}

/// Parses the value of `--buffer`.
///
/// # Errors
///
/// If the text is no buffer. The message describes the accepted forms.
pub(crate) fn buffer(text: &str) -> Result<Buffer, String> {
    if let Some(file) = text.strip_prefix("npy:") {
        return Ok(Buffer::Npy(file.into()));
    }
    let parts: Vec<_> = text.split(':').collect();
    match parts[..] {
        ["zeros", ty, shape] => Ok(Buffer::Zeros { ty: Type::from_name(ty)?, shape: list(shape)? }),
        ["random", ty, shape] => {
            Ok(Buffer::Random { ty: Type::from_name(ty)?, shape: list(shape)?, seed: 0 })
        }
        ["random", ty, shape, seed] => {
            let seed = seed.parse().map_err(|_| format!("`{seed}` is not a seed; use a number from 0"))?;
            Ok(Buffer::Random { ty: Type::from_name(ty)?, shape: list(shape)?, seed })
        }
        _ => {
            Err("expected a buffer: `zeros:TYPE:SHAPE`, `random:TYPE:SHAPE[:SEED]` or `npy:FILE`".to_owned())
        }
    }
}

/// Parses `X`, `X,Y` or `X,Y,Z`.
///
/// # Errors
///
/// If the text has another form.
pub(crate) fn extents(text: &str) -> Result<[u32; 3], String> {
    let given: Option<Vec<u32>> = text.split(',').map(|extent| extent.parse().ok()).collect();
    match given.as_deref() {
        Some(&[x]) => Ok([x, 1, 1]),
        Some(&[x, y]) => Ok([x, y, 1]),
        Some(&[x, y, z]) => Ok([x, y, z]),
        _ => Err(format!("expected numbers X,Y,Z, found `{text}`")),
    }
}

/// Parses `INDEX` or `INDEX:N`: a buffer, and the number of its elements to show.
///
/// # Errors
///
/// If the text has another form.
pub(crate) fn show(text: &str) -> Result<(usize, Option<usize>), String> {
    let Some((at, count)) = text.split_once(':') else { return Ok((index(text)?, None)) };
    let count = count.parse().map_err(|_| format!("`{count}` is not a number of elements"))?;
    Ok((index(at)?, Some(count)))
}

/// Parses `INDEX=FILE`: a buffer, and the file to write it to.
///
/// # Errors
///
/// If the text has another form.
pub(crate) fn out(text: &str) -> Result<(usize, PathBuf), String> {
    let (at, file) = text.split_once('=').ok_or("expected INDEX=FILE.npy")?;
    Ok((index(at)?, file.into()))
}

fn index(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is not the index of a buffer; indices start at 0"))
}

/// Parses numbers separated by `x`, such as `128x64`.
fn list<T: std::str::FromStr>(text: &str) -> Result<Vec<T>, String> {
    let numbers: Option<Vec<T>> = text.split('x').map(|number| number.parse().ok()).collect();
    numbers.ok_or_else(|| format!("expected numbers such as 128x64, found `{text}`"))
}

/// Parses the text after `map:`.
fn map(text: &str) -> Result<Map, String> {
    let mut parts = text.split(':');
    let buffer = index(parts.next().unwrap_or_default())?;
    let element = element(parts.next().unwrap_or_default())?;
    let (mut tensor, mut tile, mut strides, mut steps) = (None, None, None, None);
    let (mut column, mut lower, mut upper) = (None, None, None);
    let (mut interleave, mut swizzle, mut fill) = (Interleave::None, Swizzle::None, Fill::Zeros);
    for part in parts {
        match part.split_once('=').unwrap_or((part, "")) {
            ("extents", value) => tensor = Some(list(value)?),
            ("box", value) => tile = Some(list(value)?),
            ("column", value) => column = Some(list(value)?),
            ("lower", value) => lower = Some(list(value)?),
            ("upper", value) => upper = Some(list(value)?),
            ("strides", value) => strides = Some(list(value)?),
            ("steps", value) => steps = Some(list(value)?),
            ("interleave", "none") => interleave = Interleave::None,
            ("interleave", "16") => interleave = Interleave::B16,
            ("interleave", "32") => interleave = Interleave::B32,
            ("interleave", value) => {
                return Err(format!("unknown interleaved layout `{value}`; use none, 16 or 32"));
            }
            ("swizzle", "none") => swizzle = Swizzle::None,
            ("swizzle", "32") => swizzle = Swizzle::B32,
            ("swizzle", "64") => swizzle = Swizzle::B64,
            ("swizzle", "128") => swizzle = Swizzle::B128,
            ("swizzle", value) => return Err(format!("unknown swizzle `{value}`; use none, 32, 64 or 128")),
            ("fill", "zeros") => fill = Fill::Zeros,
            ("fill", "nan") => fill = Fill::Nan,
            ("fill", value) => return Err(format!("unknown fill `{value}`; use zeros or nan")),
            (key, _) => {
                return Err(format!(
                    "unknown field `{key}` of a map; use extents, box or column, lower, upper, strides, steps, \
                     interleave, swizzle or fill"
                ));
            }
        }
    }
    let extents: Vec<u64> = tensor.ok_or("a map needs extents=.., such as extents=1000x520")?;
    let corner = |given: Option<Vec<i32>>| given.unwrap_or_else(|| vec![0; extents.len().saturating_sub(2)]);
    let mode = match (tile, column.as_deref()) {
        (Some(tile), None) => MapMode::Box(tile),
        (None, Some(&[pixels, channels])) => {
            MapMode::Column { pixels, channels, lower: corner(lower), upper: corner(upper) }
        }
        (None, Some(_)) => return Err("a column needs pixels and channels, such as column=64x32".to_owned()),
        (None, None) => {
            return Err("a map needs box=.., such as box=128x64, or for im2col column=64x32".to_owned());
        }
        (Some(_), Some(_)) => return Err("a map cannot have both a box and a column".to_owned()),
    };
    Ok(Map { buffer, element, extents, mode, strides, steps, interleave, swizzle, fill })
}

fn element(name: &str) -> Result<DataType, String> {
    Ok(match name {
        "u8" => DataType::U8,
        "u16" => DataType::U16,
        "u32" => DataType::U32,
        "i32" => DataType::I32,
        "u64" => DataType::U64,
        "i64" => DataType::I64,
        "f16" => DataType::F16,
        "bf16" => DataType::Bf16,
        "f32" => DataType::F32,
        "f32ftz" => DataType::F32Ftz,
        "f64" => DataType::F64,
        "tf32" => DataType::Tf32,
        "tf32ftz" => DataType::Tf32Ftz,
        _ => {
            return Err(format!(
                "unknown element type `{name}` of a map; use u8, u16, u32, i32, u64, i64, f16, bf16, f32, f32ftz, \
                 f64, tf32 or tf32ftz"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        assert_eq!(argument("i32:-1"), Ok(Argument::Scalar(vec![0xff; 4])));
        assert_eq!(argument("f16:1.5"), Ok(Argument::Scalar(vec![0, 0x3e])));
        let shape = vec![2, 3];
        assert_eq!(
            argument("random:f32:2x3:7"),
            Ok(Argument::Buffer(Buffer::Random { ty: Type::F32, shape, seed: 7 }))
        );
        let Ok(Argument::Map(map)) =
            argument("map:1:f16:extents=8x64:box=4x32:swizzle=64:steps=2x1:fill=nan")
        else {
            panic!("it is a map");
        };
        assert_eq!((map.buffer, map.swizzle, map.fill), (1, Swizzle::B64, Fill::Nan));
        assert_eq!((map.strides, map.steps), (None, Some(vec![2, 1])));
        let Ok(Argument::Map(map)) =
            argument("map:0:f16:extents=2x9x9x64:column=32x16:lower=-1x-2:interleave=16")
        else {
            panic!("it is a map");
        };
        let mode = MapMode::Column { pixels: 32, channels: 16, lower: vec![-1, -2], upper: vec![0, 0] };
        assert_eq!((map.mode, map.interleave), (mode, Interleave::B16));
        assert_eq!(extents("7,2"), Ok([7, 2, 1]));
        assert_eq!(show("3:9"), Ok((3, Some(9))));
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, wanted) in [
            ("7", "u32:7"),
            ("u31:7", "unknown type `u31`"),
            ("u8:256", "`256` is not a number of type u8"),
            ("zeros:f32", "zeros:TYPE:SHAPE"),
            ("zeros:f32:-1", "128x64"),
            ("random:f32:4:x", "`x` is not a seed"),
            ("len:a", "`a` is not the index"),
            ("map:0:i8:extents=8", "unknown element type `i8`"),
            ("map:0:f16:box=8", "needs extents"),
            ("map:0:f16:extents=8:box=8:swizzle=7", "unknown swizzle `7`"),
            ("map:0:f16:extents=8:box=8:boxes", "unknown field `boxes`"),
            ("map:0:f16:extents=8:box=8:interleave=8", "unknown interleaved layout `8`"),
            ("map:0:f16:extents=8", "needs box"),
            ("map:0:f16:extents=8:column=8", "pixels and channels"),
            ("map:0:f16:extents=8:column=8x8:box=8", "both a box"),
        ] {
            let error = argument(text).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
