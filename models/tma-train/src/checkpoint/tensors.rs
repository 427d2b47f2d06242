//! The tensors of a checkpoint, as safetensors files have them.
//!
//! The library's own writer wants a path. Headers are therefore made here, with its types, and data
//! is passed on in pieces: what is written can be counted, and a checksum of it computed, on the way.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use tma_runtime::prelude::bf16;

use crate::steps::{State, StateTensor};

/// The numbers that are converted at a time.
const PIECE: usize = 1 << 18;

/// The parts of the optimiser's file, as prefixes of the names of tensors.
const PARTS: [&str; 3] = ["master.", "first.", "second."];

/// A file of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorFile {
    /// The weights in `bf16`, by the names of Hugging Face.
    Model,
    /// Masters and moments in `f32`.
    Optimizer,
}

impl TensorFile {
    /// Returns the header, with its length, and the bytes of all data.
    pub(crate) fn header(self, state: &State) -> Result<(Vec<u8>, u64), SafeTensorError> {
        let mut end = 0;
        let mut entry = |name: String, tensor: &StateTensor, dtype: Dtype, bytes: usize| {
            let data_offsets = (end, end + bytes * tensor.master.len());
            end = data_offsets.1;
            (name, TensorInfo { dtype, shape: tensor.shape.clone(), data_offsets })
        };
        let mut entries = vec![];
        for tensor in &state.tensors {
            match self {
                Self::Model => entries.push(entry(tensor.name.clone(), tensor, Dtype::BF16, 2)),
                Self::Optimizer => entries
                    .extend(PARTS.map(|part| entry(format!("{part}{}", tensor.name), tensor, Dtype::F32, 4))),
            }
        }
        // Hugging Face transformers refuses files that do not name a format.
        let format = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let mut json = serde_json::to_vec(&Metadata::new(Some(format), entries)?)?;
        json.resize(json.len().next_multiple_of(size_of::<u64>()), b' ');
        let length = (json.len() as u64).to_le_bytes();
        Ok(([&length[..], &json].concat(), end as u64))
    }

    /// Passes the data on, in pieces.
    pub(crate) fn data<E>(
        self,
        state: &State,
        write: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut bytes = vec![];
        for tensor in &state.tensors {
            let parts: &[&Vec<f32>] = match self {
                Self::Model => &[&tensor.master],
                Self::Optimizer => &[&tensor.master, &tensor.first, &tensor.second],
            };
            for piece in parts.iter().flat_map(|numbers| numbers.chunks(PIECE)) {
                match self {
                    Self::Model => convert(piece, |x| bf16::from_f32(x).to_bits().to_le_bytes(), &mut bytes),
                    Self::Optimizer => convert(piece, f32::to_le_bytes, &mut bytes),
                }
                write(&bytes)?;
            }
        }
        Ok(())
    }
}

/// Replaces bytes by those of numbers.
fn convert<const N: usize>(numbers: &[f32], of: impl Fn(f32) -> [u8; N], bytes: &mut Vec<u8>) {
    bytes.resize(numbers.len() * N, 0);
    for (to, number) in bytes.chunks_exact_mut(N).zip(numbers) {
        to.copy_from_slice(&of(*number));
    }
}

/// The greatest length of a header: that of the format.
const LONGEST_HEADER: u64 = 100_000_000;

/// Returns the tensors of the optimiser's file, in the order in which they were written. Contents
/// that are not complete are errors of the kind [`io::ErrorKind::InvalidData`].
pub(crate) fn read(mut file: File) -> io::Result<Vec<StateTensor>> {
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER {
        return Err(invalid(format!("its header has {length} bytes")));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|error| invalid(error.to_string()))?;
    let names = metadata.offset_keys();
    let mut parts = PartsReader { file, data: length + 8, metadata };
    names.iter().filter_map(|name| name.strip_prefix(PARTS[0])).map(|name| parts.tensor(name)).collect()
}

/// A file of tensors whose header was read.
struct PartsReader {
    file: File,
    /// The bytes before those of the first tensor.
    data: u64,
    metadata: Metadata,
}

impl PartsReader {
    /// Reads the parts of a tensor.
    fn tensor(&mut self, name: &str) -> io::Result<StateTensor> {
        let [master, first, second] = PARTS.map(|part| self.numbers(&format!("{part}{name}")));
        let (shape, master) = master?;
        Ok(StateTensor { name: name.to_owned(), shape, master, first: first?.1, second: second?.1 })
    }

    /// Reads the shape and the numbers of a tensor.
    fn numbers(&mut self, name: &str) -> io::Result<(Vec<usize>, Vec<f32>)> {
        let info = self.metadata.info(name).ok_or_else(|| invalid(format!("tensor `{name}` is missing")))?;
        let (begin, end) = info.data_offsets;
        let count = info.shape.iter().product::<usize>();
        if info.dtype != Dtype::F32 || end.checked_sub(begin) != count.checked_mul(4) {
            let reason = format!("tensor `{name}` is {:?} in bytes {begin}..{end}, wanted F32", info.dtype);
            return Err(invalid(reason));
        }
        self.file.seek(SeekFrom::Start(self.data + begin as u64))?;
        let mut numbers = Vec::with_capacity(count);
        let mut bytes = vec![];
        while numbers.len() < count {
            bytes.resize(4 * PIECE.min(count - numbers.len()), 0);
            self.file.read_exact(&mut bytes)?;
            numbers.extend(bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])));
        }
        Ok((info.shape.clone(), numbers))
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
