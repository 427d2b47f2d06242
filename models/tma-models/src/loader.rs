//! Tensors from their source to a device.

use tma_runtime::Scalar;
use tma_runtime::prelude::*;

use crate::checkpoint::Checkpoint;
use crate::config::WeightFormat;
use crate::quantized::{BLOCK, Quantized};
use crate::{ModelError, noise};

/// The origin of weights.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The files of a model.
    Checkpoint(&'a Checkpoint),
    /// Noise, for measurements: the speed of a model does not depend on its weights.
    Noise,
}

/// The bytes of weights that were loaded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Those of tensors that were read from files, of [`Checkpoint::bytes`]. 0 for noise.
    pub read: u64,
    /// Those on the device, where elements may have another size.
    pub on_device: u64,
}

/// A matrix of weights, N × K.
#[derive(Debug)]
pub(crate) enum Matrix {
    Bf16(DeviceTensor<bf16, 2>),
    /// Elements, and a scale for each 128 × 128 of them.
    E4m3(DeviceTensor<e4m3, 2>, DeviceTensor<f32, 2>),
}

/// A matrix, N × K, and a bias of N elements.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) weight: Matrix,
    pub(crate) bias: Option<DeviceTensor<bf16, 1>>,
}

/// The weight and the bias of a norm.
#[derive(Debug)]
pub(crate) struct Norm {
    pub(crate) weight: DeviceTensor<bf16, 1>,
    pub(crate) bias: Option<DeviceTensor<bf16, 1>>,
}

/// Loads tensors to a device.
pub(crate) struct Loader<'a> {
    device: &'a Device,
    source: Source<'a>,
    format: WeightFormat,
    /// Called with the bytes that were loaded so far.
    loaded: &'a mut dyn FnMut(Loaded),
    bytes: Loaded,
}

impl<'a> Loader<'a> {
    /// Matrices of layers will have this format.
    pub(crate) fn new(
        device: &'a Device,
        source: Source<'a>,
        format: WeightFormat,
        loaded: &'a mut dyn FnMut(Loaded),
    ) -> Self {
        Self { device, source, format, loaded, bytes: Loaded::default() }
    }

    /// Returns whether the source has a tensor of this name, as noise has.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self.source {
            Source::Checkpoint(files) => files.has(name),
            Source::Noise => true,
        }
    }

    /// Loads `NAME.weight` and, if it has one, `NAME.bias`.
    pub(crate) fn norm(&mut self, name: &str, columns: usize, has_bias: bool) -> Result<Norm, ModelError> {
        let weight = self.row(&[(format!("{name}.weight"), columns)])?;
        let bias = if has_bias { Some(self.row(&[(format!("{name}.bias"), columns)])?) } else { None };
        Ok(Norm { weight, bias })
    }

    /// Loads matrices of so many rows each as one, one after the other.
    pub(crate) fn linear(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
        is_transposed: bool,
        has_bias: bool,
    ) -> Result<Linear, ModelError> {
        let named =
            |end: &str| parts.iter().map(|(name, rows)| (format!("{name}.{end}"), *rows)).collect::<Vec<_>>();
        let (parts, can_be_quantized) = (named("weight"), !has_bias && columns.is_multiple_of(16));
        let weight = match self.format {
            WeightFormat::Stored | WeightFormat::E4m3 if can_be_quantized && !is_transposed => {
                self.quantized(&parts, columns)?
            }
            WeightFormat::Bf16 | WeightFormat::Stored | WeightFormat::E4m3 => {
                Matrix::Bf16(match is_transposed {
                    true => self.transposed(&parts, columns)?,
                    false => self.matrix(&parts, columns)?,
                })
            }
        };
        let bias = if has_bias { Some(self.row(&named("bias"))?) } else { None };
        Ok(Linear { weight, bias })
    }

    /// Loads matrices as one of `e4m3`, if that is their format. Blocks that share a scale must
    /// begin where the matrices do; otherwise they are quantised again.
    fn quantized(&mut self, parts: &[(String, usize)], columns: usize) -> Result<Matrix, ModelError> {
        let rows: usize = parts.iter().map(|(_, rows)| rows).sum();
        let mut quantized = Quantized::default();
        match self.source {
            Source::Checkpoint(files) if parts.iter().all(|(name, _)| files.is_quantized(name)) => {
                let before_last = &parts[..parts.len().saturating_sub(1)];
                if before_last.iter().all(|(_, rows)| rows.is_multiple_of(BLOCK)) {
                    for (name, rows) in parts {
                        files.append_quantized(name, &[*rows, columns], &mut quantized)?;
                        self.bytes.read += files.bytes_of(name);
                    }
                } else {
                    quantized = Quantized::of(&self.gathered(parts, columns)?, columns);
                }
            }
            Source::Checkpoint(_) | Source::Noise if self.format == WeightFormat::E4m3 => {
                quantized = Quantized::of(&self.gathered(parts, columns)?, columns);
            }
            Source::Checkpoint(_) | Source::Noise => return Ok(Matrix::Bf16(self.matrix(parts, columns)?)),
        }
        let scales = [rows.div_ceil(BLOCK), columns.div_ceil(BLOCK)];
        let elements = self.upload(&quantized.elements, [rows, columns])?;
        Ok(Matrix::E4m3(elements, self.upload(&quantized.scales, scales)?))
    }

    pub(crate) fn matrix(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
    ) -> Result<DeviceTensor<bf16, 2>, ModelError> {
        let rows = parts.iter().map(|(_, rows)| rows).sum();
        let host = self.gathered(parts, columns)?;
        self.upload(&host, [rows, columns])
    }

    /// Returns the elements of matrices, one after the other.
    fn gathered(&mut self, parts: &[(String, usize)], columns: usize) -> Result<Vec<bf16>, ModelError> {
        let mut host = vec![];
        for (name, rows) in parts {
            self.append(name, &[*rows, columns], &mut host)?;
        }
        Ok(host)
    }

    /// Loads matrices that are stored columns × rows.
    fn transposed(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
    ) -> Result<DeviceTensor<bf16, 2>, ModelError> {
        let (mut stored, mut host) = (vec![], vec![]);
        for (name, rows) in parts {
            stored.clear();
            self.append(name, &[columns, *rows], &mut stored)?;
            host.extend((0..*rows).flat_map(|row| stored.iter().skip(row).step_by(*rows)));
        }
        let rows = parts.iter().map(|(_, rows)| rows).sum();
        self.upload(&host, [rows, columns])
    }

    fn row(&mut self, parts: &[(String, usize)]) -> Result<DeviceTensor<bf16, 1>, ModelError> {
        let mut host = vec![];
        for (name, columns) in parts {
            self.append(name, &[*columns], &mut host)?;
        }
        self.upload(&host, [host.len()])
    }

    pub(crate) fn append(
        &mut self,
        name: &str,
        shape: &[usize],
        to: &mut Vec<bf16>,
    ) -> Result<(), ModelError> {
        match self.source {
            Source::Checkpoint(files) => {
                files.append(name, shape, to)?;
                self.bytes.read += files.bytes_of(name);
                Ok(())
            }
            Source::Noise => {
                noise::append(name, shape, to);
                Ok(())
            }
        }
    }

    pub(crate) fn upload<T: Scalar, const N: usize>(
        &mut self,
        host: &[T],
        shape: [usize; N],
    ) -> Result<DeviceTensor<T, N>, ModelError> {
        let tensor = self.device.tensor(host, shape)?;
        self.bytes.on_device += tensor.bytes();
        (self.loaded)(self.bytes);
        Ok(tensor)
    }
}
