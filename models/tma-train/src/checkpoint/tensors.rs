//! The tensors of a checkpoint, as safetensors files have them.
//!
//! The library's own writer wants a path. Headers are therefore made here, with its types, and data
//! is passed on in pieces: what is written can be counted, and a sum of it computed, on the way.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use safetensors::{SafeTensorError, SafeTensors};
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

/// Returns the tensors of the optimiser's file, in the order in which they were written, or the
/// reason why they are not complete.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<StateTensor>, String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let all = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let names = metadata.offset_keys();
    let tensors = names.iter().filter_map(|name| name.strip_prefix(PARTS[0])).map(|name| {
        let part = |part: &str| numbers(&all, &format!("{part}{name}"));
        let [master, first, second] = PARTS.map(part);
        let (shape, master) = master?;
        Ok(StateTensor { name: name.to_owned(), shape, master, first: first?.1, second: second?.1 })
    });
    tensors.collect()
}

/// Returns the shape and the numbers of a tensor.
fn numbers(all: &SafeTensors<'_>, name: &str) -> Result<(Vec<usize>, Vec<f32>), String> {
    let tensor = all.tensor(name).map_err(|error| error.to_string())?;
    match tensor.dtype() {
        Dtype::F32 => {
            let numbers = tensor.data().chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
            Ok((tensor.shape().to_vec(), numbers.collect()))
        }
        other => Err(format!("tensor `{name}` has elements of {other:?}, wanted F32")),
    }
}
