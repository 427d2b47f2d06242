//! NumPy's file format for a single array. Source: NumPy, "numpy.lib.format", versions 1.0 to 3.0.

use std::io;

use super::buffers::zeroed;
use super::numbers::Type;

/// An array, C-ordered and little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    pub(crate) ty: Type,
    /// Extents, outermost first; empty for a single number.
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Alignment of the array's data in a file.
const ALIGNMENT: usize = 64;

/// The types, with NumPy's names for them. NumPy has no bfloat16, so such buffers are written as
/// their bits.
const TYPES: [(&str, Type); 12] = [
    ("|u1", Type::U8),
    ("<u2", Type::U16),
    ("<u4", Type::U32),
    ("<u8", Type::U64),
    ("|i1", Type::I8),
    ("<i2", Type::I16),
    ("<i4", Type::I32),
    ("<i8", Type::I64),
    ("<f2", Type::F16),
    ("<f4", Type::F32),
    ("<f8", Type::F64),
    ("<u2", Type::Bf16),
];

/// Parses the bytes of a file.
///
/// # Errors
///
/// If the file is malformed or not supported: another order, another element type, or fewer bytes
/// than the shape says.
pub(crate) fn read(file: &[u8]) -> Result<Array, String> {
    let cut = || "the file ends within its header".to_owned();
    let rest = file.strip_prefix(MAGIC).ok_or("not an .npy file")?;
    let ([major, _minor], rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk().map(|(length, rest)| (u32::from(u16::from_le_bytes(*length)), rest)),
        2 | 3 => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length), rest)),
        _ => return Err(format!("version {major} of the format is not supported")),
    }
    .ok_or_else(cut)?;
    let (header, data) = rest.split_at_checked(length as usize).ok_or_else(cut)?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is not UTF-8")?;

    let descr = field(header, "descr")?.trim_matches(['\'', '"']);
    let found = TYPES.iter().find(|(name, _)| *name == descr);
    let ty = found.map(|(_, ty)| *ty).ok_or_else(|| format!("elements of type {descr} are not supported"))?;
    let shape = shape(field(header, "shape")?)?;
    if field(header, "fortran_order")? != "False" && shape.len() > 1 {
        return Err("arrays in Fortran order are not supported; save the array in C order".to_owned());
    }
    let size = shape.iter().try_fold(ty.bytes() as u64, |size, extent| size.checked_mul(*extent));
    let bytes = size.and_then(|size| data.get(..usize::try_from(size).ok()?));
    let bytes = bytes
        .ok_or_else(|| format!("the data has {} bytes, fewer than the shape {shape:?} needs", data.len()))?;
    let mut own = zeroed(bytes.len() as u64)?;
    own.copy_from_slice(bytes);
    Ok(Array { ty, shape, bytes: own })
}

/// Returns a field of the header, which is a Python dictionary literal.
fn field<'t>(header: &'t str, name: &str) -> Result<&'t str, String> {
    let found = [format!("'{name}':"), format!("\"{name}\":")]
        .iter()
        .find_map(|key| header.split_once(key.as_str()))
        .ok_or_else(|| format!("the header has no `{name}`"))?;
    let value = found.1.trim_start();
    let end = match value.strip_prefix('(') {
        Some(tuple) => tuple.find(')').map(|end| end + 2),
        None => value.find([',', '}']),
    };
    let value = end.and_then(|end| value.get(..end)).ok_or("the header is truncated")?;
    Ok(value.trim())
}

fn shape(tuple: &str) -> Result<Vec<u64>, String> {
    let inner = tuple.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let extents = inner.map(|inner| inner.split(',').map(str::trim).filter(|extent| !extent.is_empty()));
    let shape = extents.and_then(|extents| extents.map(|extent| extent.parse().ok()).collect());
    shape.ok_or_else(|| format!("`{tuple}` is not a shape"))
}

/// Writes a file, in version 1.0 of the format.
///
/// # Errors
///
/// The errors of writing to `file`.
pub(crate) fn write(array: &Array, file: &mut impl io::Write) -> io::Result<()> {
    let descr = TYPES.iter().find(|(_, ty)| *ty == array.ty).map_or("", |(name, _)| name);
    // A tuple of one element has a comma too.
    let shape: String = array.shape.iter().map(|extent| format!("{extent},")).collect();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let fixed = MAGIC.len() + 4;
    // One more byte for the newline.
    let end = (fixed + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.push_str(&" ".repeat(end - fixed - header.len() - 1));
    header.push('\n');
    // An extent has 20 digits at most, and buffers have few extents.
    let length = u16::try_from(header.len()).unwrap_or(u16::MAX).to_le_bytes();
    file.write_all(&[MAGIC, &[1, 0], &length, header.as_bytes()].concat())?;
    file.write_all(&array.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn written_values_are_read_back() {
        for shape in [vec![], vec![6], vec![2, 3]] {
            let count = shape.iter().product::<u64>() as usize;
            let array = Array { ty: Type::I16, shape, bytes: (0..count as u8 * 2).collect() };
            let mut file = Vec::new();
            write(&array, &mut file).expect("a vector takes everything");
            assert_eq!((file.len() - array.bytes.len()) % ALIGNMENT, 0);
            assert_eq!(read(&file), Ok(array));
        }
    }

    #[test]
    fn the_header_of_numpy() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }   \n";
        let array = read(&file(header, &[1; 8])).expect("it is a file");
        assert_eq!((array.ty, array.shape.as_slice(), array.bytes.len()), (Type::F32, [2, 1].as_slice(), 8));
    }

    #[test]
    fn invalid_arrays_are_rejected() {
        let with = |from: &str, to: &str| {
            file(&"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }".replace(from, to), &[1; 8])
        };
        for (bytes, wanted) in [
            (b"PK".to_vec(), "not an .npy file"),
            (MAGIC.to_vec(), "ends within"),
            ([MAGIC, &[9, 0]].concat(), "version 9"),
            (with("<f4", ">f4"), ">f4"),
            (with("False", "True"), "Fortran"),
            (with("(2, 1)", "(2, 2)"), "fewer"),
            (with("(2, 1)", "(9999999999999, 9999999999999)"), "fewer"),
            (with("(2, 1)", "(-1,)"), "not a shape"),
            (with("(2, 1), }", "(2,"), "truncated"),
            (with("'shape'", "'form'"), "no `shape`"),
        ] {
            let error = read(&bytes).expect_err(wanted);
            assert!(error.contains(wanted), "{error}");
        }
    }
}
