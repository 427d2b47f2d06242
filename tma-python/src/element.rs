//! Element types by the numbers and names of PyTorch and DLPack.

use tma_runtime::spec::Scalar;

/// An element type with its names elsewhere.
struct Element {
    scalar: Scalar,
    /// Name in Python.
    name: &'static str,
    /// `c10::ScalarType`, whose numbers PyTorch's stable interface keeps.
    torch: i32,
    /// `DLDataTypeCode` and bits.
    dlpack: (u8, u8),
}

const fn element(scalar: Scalar, name: &'static str, torch: i32, dlpack: (u8, u8)) -> Element {
    Element { scalar, name, torch, dlpack }
}

const ELEMENTS: [Element; 15] = [
    element(Scalar::U8, "uint8", 0, (1, 8)),
    element(Scalar::I8, "int8", 1, (0, 8)),
    element(Scalar::I16, "int16", 2, (0, 16)),
    element(Scalar::I32, "int32", 3, (0, 32)),
    element(Scalar::I64, "int64", 4, (0, 64)),
    element(Scalar::F16, "float16", 5, (2, 16)),
    element(Scalar::F32, "float32", 6, (2, 32)),
    element(Scalar::F64, "float64", 7, (2, 64)),
    element(Scalar::Bool, "bool", 11, (6, 8)),
    element(Scalar::Bf16, "bfloat16", 15, (4, 16)),
    element(Scalar::E5m2, "float8_e5m2", 23, (12, 8)),
    element(Scalar::E4m3, "float8_e4m3fn", 24, (10, 8)),
    element(Scalar::U16, "uint16", 27, (1, 16)),
    element(Scalar::U32, "uint32", 28, (1, 32)),
    element(Scalar::U64, "uint64", 29, (1, 64)),
];

/// Returns the element type with this number in PyTorch.
pub(crate) fn of_torch(number: i32) -> Option<Scalar> {
    ELEMENTS.iter().find(|element| element.torch == number).map(|element| element.scalar)
}

/// Returns the number of an element type in PyTorch.
pub(crate) fn to_torch(scalar: Scalar) -> Option<i32> {
    ELEMENTS.iter().find(|element| element.scalar == scalar).map(|element| element.torch)
}

/// Returns the element type with this code and number of bits in DLPack.
pub(crate) fn of_dlpack(code: u8, bits: u8) -> Option<Scalar> {
    ELEMENTS.iter().find(|element| element.dlpack == (code, bits)).map(|element| element.scalar)
}

/// Returns the element type with this name in Python.
pub(crate) fn of_name(name: &str) -> Option<Scalar> {
    ELEMENTS.iter().find(|element| element.name == name).map(|element| element.scalar)
}

/// Returns the name of an element type in Python. `tf32` is a `float32` there.
pub(crate) fn name(scalar: Scalar) -> &'static str {
    let stored = stored(scalar);
    ELEMENTS.iter().find(|element| element.scalar == stored).map_or("?", |element| element.name)
}

/// Returns the element type of tensors in Python that hold this one.
pub(crate) fn stored(scalar: Scalar) -> Scalar {
    if scalar == Scalar::Tf32 { Scalar::F32 } else { scalar }
}

/// Returns whether a tensor of elements `found` in Python can be viewed as one of `wanted`.
pub(crate) fn holds(found: Scalar, wanted: Scalar) -> bool {
    found == stored(wanted) || (found == Scalar::I32 && wanted == Scalar::U32)
}
