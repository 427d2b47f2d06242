//! Tensors from their source to a device.

use tma_runtime::prelude::*;

use crate::checkpoint::Checkpoint;
use crate::{ModelError, noise};

/// The origin of weights.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The files of a model.
    Checkpoint(&'a Checkpoint),
    /// Noise, for measurements: the speed of a model does not depend on its weights.
    Noise,
}

/// A matrix, N × K, and a bias of N elements.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) weight: DeviceTensor<bf16, 2>,
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
    /// Called with the bytes that are on the device so far.
    loaded: &'a mut dyn FnMut(u64),
    bytes: u64,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(device: &'a Device, source: Source<'a>, loaded: &'a mut dyn FnMut(u64)) -> Self {
        Self { device, source, loaded, bytes: 0 }
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
        let weight = match is_transposed {
            true => self.transposed(&named("weight"), columns)?,
            false => self.matrix(&named("weight"), columns)?,
        };
        let bias = if has_bias { Some(self.row(&named("bias"))?) } else { None };
        Ok(Linear { weight, bias })
    }

    pub(crate) fn matrix(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
    ) -> Result<DeviceTensor<bf16, 2>, ModelError> {
        let mut host = vec![];
        for (name, rows) in parts {
            self.append(name, &[*rows, columns], &mut host)?;
        }
        let rows = parts.iter().map(|(_, rows)| rows).sum();
        self.upload(&host, [rows, columns])
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

    pub(crate) fn append(&self, name: &str, shape: &[usize], to: &mut Vec<bf16>) -> Result<(), ModelError> {
        match self.source {
            Source::Checkpoint(files) => files.append(name, shape, to),
            Source::Noise => {
                noise::append(name, shape, to);
                Ok(())
            }
        }
    }

    pub(crate) fn upload<const N: usize>(
        &mut self,
        host: &[bf16],
        shape: [usize; N],
    ) -> Result<DeviceTensor<bf16, N>, ModelError> {
        let tensor = self.device.tensor(host, shape)?;
        self.bytes += tensor.bytes();
        (self.loaded)(self.bytes);
        Ok(tensor)
    }
}
