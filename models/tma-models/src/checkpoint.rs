//! The tensors of a model's safetensors files, which are mapped to memory.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorInfo};
use serde::Deserialize;
use tma_runtime::prelude::{bf16, e4m3, f16};

use crate::ModelError;
use crate::json::read_json;
use crate::quantized::{BLOCK, Quantized};

/// The name of the only file of weights.
const SINGLE: &str = "model.safetensors";
/// The name of the file that lists several.
const INDEX: &str = "model.safetensors.index.json";

/// The tensors of all safetensors files in a folder.
#[derive(Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    files: Vec<Mmap>,
    tensors: HashMap<String, Entry>,
}

/// A tensor in a file.
#[derive(Debug)]
struct Entry {
    file: usize,
    /// The offset of the file's data, after its header.
    start: usize,
    info: TensorInfo,
}

impl Entry {
    /// Returns the bytes in the file.
    fn bytes(&self) -> u64 {
        let (first, end) = self.info.data_offsets;
        (end - first) as u64
    }
}

/// A list of files, as Hugging Face writes it for large models.
#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

impl Checkpoint {
    /// Maps `model.safetensors`, or the files that `model.safetensors.index.json` lists. They must
    /// not be changed while the checkpoint exists.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`], [`ModelError::Json`] and [`ModelError::Safetensors`].
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let mut checkpoint = Self { folder: folder.into(), files: vec![], tensors: HashMap::new() };
        for path in paths(folder)? {
            checkpoint.add(&path)?;
        }
        Ok(checkpoint)
    }

    fn add(&mut self, path: &Path) -> Result<(), ModelError> {
        let unreadable = |source| ModelError::File { path: path.into(), source };
        let file = File::open(path).map_err(unreadable)?;
        // SAFETY: nobody changes the file while it is mapped, as `open` requires.
        let bytes = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
        let (header, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|source| ModelError::Safetensors { path: path.into(), source })?;
        let (file, start) = (self.files.len(), size_of::<u64>() + header);
        for (name, info) in metadata.tensors() {
            self.tensors.insert(name, Entry { file, start, info: info.clone() });
        }
        self.files.push(bytes);
        Ok(())
    }

    /// Returns the bytes of all tensors in the files.
    pub fn bytes(&self) -> u64 {
        self.tensors.values().map(Entry::bytes).sum()
    }

    /// Returns the bytes of a tensor and of its scales, if it has any.
    pub(crate) fn bytes_of(&self, name: &str) -> u64 {
        let scales = self.tensors.get(&scales_of(name));
        self.tensors.get(name).into_iter().chain(scales).map(Entry::bytes).sum()
    }

    /// Returns whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns whether a tensor has elements of `e4m3`.
    pub fn is_quantized(&self, name: &str) -> bool {
        self.tensors.get(name).is_some_and(|entry| entry.info.dtype == Dtype::F8_E4M3)
    }

    /// Appends the elements of a tensor, rounded to `bf16`. Those of `e4m3` are multiplied by their
    /// scales.
    ///
    /// # Errors
    ///
    /// [`ModelError::MissingTensor`], [`ModelError::TensorShape`] and [`ModelError::TensorType`].
    pub fn append(&self, name: &str, shape: &[usize], to: &mut Vec<bf16>) -> Result<(), ModelError> {
        if let (true, [_, columns]) = (self.is_quantized(name), shape) {
            let mut quantized = Quantized::default();
            self.append_quantized(name, shape, &mut quantized)?;
            quantized.append_to(*columns, to);
            return Ok(());
        }
        let (dtype, bytes) = self.elements(name, shape)?;
        match dtype {
            Dtype::BF16 => to.extend(bytes.chunks_exact(2).map(|x| bf16::from_le_bytes([x[0], x[1]]))),
            Dtype::F16 => to.extend(
                bytes.chunks_exact(2).map(|x| bf16::from_f32(f16::from_le_bytes([x[0], x[1]]).to_f32())),
            ),
            Dtype::F32 => to.extend(
                bytes.chunks_exact(4).map(|x| bf16::from_f32(f32::from_le_bytes([x[0], x[1], x[2], x[3]]))),
            ),
            other => return Err(ModelError::TensorType { name: name.into(), found: format!("{other:?}") }),
        }
        Ok(())
    }

    /// Appends rows of a matrix of `e4m3`, and their scales, which the tensor `NAME_scale_inv` has.
    pub(crate) fn append_quantized(
        &self,
        name: &str,
        shape: &[usize],
        to: &mut Quantized,
    ) -> Result<(), ModelError> {
        let (_, bytes) = self.elements(name, shape)?;
        to.elements.extend(bytes.iter().map(|&bits| e4m3::from_bits(bits)));
        let shape: Vec<usize> = shape.iter().map(|extent| extent.div_ceil(BLOCK)).collect();
        let name = scales_of(name);
        let (dtype, bytes) = self.elements(&name, &shape)?;
        match dtype {
            Dtype::F32 => {
                to.scales.extend(bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])))
            }
            Dtype::BF16 => {
                to.scales.extend(bytes.chunks_exact(2).map(|x| bf16::from_le_bytes([x[0], x[1]]).to_f32()));
            }
            other => return Err(ModelError::TensorType { name, found: format!("{other:?}") }),
        }
        Ok(())
    }

    /// Returns the type and the bytes of a tensor's elements.
    fn elements(&self, name: &str, shape: &[usize]) -> Result<(Dtype, &[u8]), ModelError> {
        let missing = || ModelError::MissingTensor { name: name.into(), folder: self.folder.clone() };
        let Entry { file, start, info } = self.tensors.get(name).ok_or_else(missing)?;
        if info.shape != shape {
            return Err(ModelError::TensorShape {
                name: name.into(),
                found: info.shape.clone(),
                wanted: shape.into(),
            });
        }
        let (first, end) = info.data_offsets;
        let bytes =
            self.files.get(*file).and_then(|all| all.get(start + first..start + end)).ok_or_else(missing)?;
        Ok((info.dtype, bytes))
    }
}

/// Returns the name of the scales of a matrix of `e4m3`.
fn scales_of(name: &str) -> String {
    format!("{name}_scale_inv")
}

/// Returns the files of weights in a folder, each once.
fn paths(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let index = folder.join(INDEX);
    if !index.exists() {
        return Ok(vec![folder.join(SINGLE)]);
    }
    let Index { weight_map } = read_json(index)?;
    let mut names: Vec<String> = weight_map.into_values().collect();
    names.sort_unstable();
    names.dedup();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}
