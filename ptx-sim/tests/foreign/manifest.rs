//! The cases of the corpus, read from JSON files: see `corpus/README.md`.

use half::{bf16, f16};
use ptx_sim::tensor_map::DataType;
use serde::Deserialize;

/// A launch of a kernel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    name: Option<String>,
    pub(crate) kernel: String,
    #[serde(default)]
    pub(crate) grid: Vec<u32>,
    pub(crate) block: Vec<u32>,
    #[serde(default)]
    pub(crate) cluster: Vec<u32>,
    /// Whether blocks wait for each other.
    #[serde(default)]
    pub(crate) cooperative: bool,
    #[serde(default)]
    pub(crate) shared: u32,
    #[serde(default)]
    pub(crate) prints: bool,
    /// The kinds of mistakes in the kernel, as the simulator names them.
    #[serde(default)]
    pub(crate) finds: Vec<String>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) args: Vec<Value>,
    /// The signature and constants for which Triton compiles the kernel.
    #[serde(rename = "triton")]
    _triton: Option<serde_json::Value>,
}

impl Case {
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kernel)
    }

    /// Returns the index of the buffer with this name.
    pub(crate) fn buffer(&self, name: &str) -> usize {
        let found = self.buffers.iter().position(|buffer| buffer.name == name);
        found.unwrap_or_else(|| panic!("{} has no buffer `{name}`", self.name()))
    }
}

/// A buffer in global memory.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: Type,
    pub(crate) count: u32,
    pub(crate) fill: Option<Fill>,
    pub(crate) compare: Option<Compare>,
}

impl Buffer {
    pub(crate) fn bytes(&self) -> usize {
        self.count as usize * self.ty.element().bytes() as usize
    }
}

/// The contents of a buffer before the launch; zeros by default.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Fill {
    /// Arbitrary bits.
    Bits(Bits),
    /// The first value, the exclusive end, and the step.
    Range([f64; 3]),
    /// Any of these, in hexadecimal digits.
    Picked(Vec<String>),
}

/// The comparison of a buffer with the GPU's.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Compare {
    Exactly(Bits),
    Within {
        #[serde(default)]
        relative: f64,
        #[serde(default)]
        absolute: f64,
        because: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Bits {
    Bits,
}

/// The type of a buffer's elements.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Type {
    U8,
    U16,
    U32,
    U64,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Type {
    /// Returns the type with which tensor maps name it.
    pub(crate) fn element(self) -> DataType {
        match self {
            Type::U8 => DataType::U8,
            Type::U16 => DataType::U16,
            Type::U32 => DataType::U32,
            Type::U64 => DataType::U64,
            Type::I32 => DataType::I32,
            Type::I64 => DataType::I64,
            Type::F16 => DataType::F16,
            Type::Bf16 => DataType::Bf16,
            Type::F32 => DataType::F32,
            Type::F64 => DataType::F64,
        }
    }

    /// Returns the little-endian bytes of a number.
    pub(crate) fn number(self, value: f64) -> Vec<u8> {
        match self {
            Type::U8 => (value as u8).to_le_bytes().into(),
            Type::U16 => (value as u16).to_le_bytes().into(),
            Type::U32 => (value as u32).to_le_bytes().into(),
            Type::U64 => (value as u64).to_le_bytes().into(),
            Type::I32 => (value as i32).to_le_bytes().into(),
            Type::I64 => (value as i64).to_le_bytes().into(),
            Type::F16 => f16::from_f64(value).to_le_bytes().into(),
            Type::Bf16 => bf16::from_f64(value).to_le_bytes().into(),
            Type::F32 => (value as f32).to_le_bytes().into(),
            Type::F64 => value.to_le_bytes().into(),
        }
    }
}

/// An argument.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    /// The address of a buffer, by its name.
    Buffer(String),
    Map(Map),
    Scalar(Scalar),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scalar {
    I32(i32),
    U64(u64),
    F32(f32),
    /// The bytes of a structure.
    Hex(String),
}

impl Scalar {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Scalar::I32(value) => value.to_le_bytes().into(),
            Scalar::U64(value) => value.to_le_bytes().into(),
            Scalar::F32(value) => value.to_le_bytes().into(),
            Scalar::Hex(digits) => bytes_of(digits),
        }
    }
}

/// Decodes pairs of hexadecimal digits.
pub(crate) fn bytes_of(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// A tensor map of a buffer, outermost dimension first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Map {
    pub(crate) map: String,
    /// The type of the elements, if it differs from the buffer's.
    #[serde(default, rename = "as", deserialize_with = "element")]
    pub(crate) element: Option<DataType>,
    pub(crate) extents: Vec<u64>,
    /// Elements from one index to the next; dense by default.
    #[serde(default)]
    pub(crate) strides: Vec<u64>,
    #[serde(rename = "box")]
    pub(crate) tile: Vec<u32>,
    pub(crate) steps: Option<Vec<u32>>,
    pub(crate) swizzle: Option<u32>,
    pub(crate) outside: Option<Nan>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Nan {
    Nan,
}

fn element<'d, D: serde::Deserializer<'d>>(from: D) -> Result<Option<DataType>, D::Error> {
    match String::deserialize(from)?.as_str() {
        "tf32" => Ok(Some(DataType::Tf32)),
        other => Err(serde::de::Error::custom(format!("`{other}` is no element type"))),
    }
}

/// Returns three extents. Missing ones are 1.
pub(crate) fn extents(of: &[u32]) -> [u32; 3] {
    std::array::from_fn(|axis| of.get(axis).copied().unwrap_or(1))
}

pub(crate) fn read(json: &str) -> Vec<Case> {
    serde_json::from_str(json).expect("the manifest is as it should be")
}
