//! Texts and prompts as kernels read them.

use tma_kernels::model::{SampleOptions, sample};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use super::Sampling;
use crate::ModelError;
use crate::activations::Activations;
use crate::cache::Cache;
use crate::decoder::{Batch, Decoder, Wanted};
use crate::views::{first, first_mut};

/// The texts that are being generated, as kernels read them: a row each. Idle rows have a count of
/// 0.
#[derive(Debug)]
pub(super) struct RowsOnDevice {
    pub(super) tokens: DeviceTensor<u32, 1>,
    pub(super) lengths: DeviceTensor<u32, 1>,
    pub(super) counts: DeviceTensor<u32, 1>,
    pub(super) table: DeviceTensor<u32, 2>,
    pub(super) choices: Choices,
    /// Whether rows were added, removed or moved since they were copied to the device.
    pub(super) is_stale: bool,
    /// Whether results must not depend on other rows.
    pub(super) is_reproducible: bool,
}

impl RowsOnDevice {
    /// Queues a step of so many rows, some of which may be idle.
    pub(super) fn queue_step(
        &mut self,
        on: &impl LaunchOn,
        rows: usize,
        decoder: &Decoder,
        cache: &mut Cache,
        activations: &mut Activations,
    ) -> Result<(), ModelError> {
        let Self { tokens, lengths, counts, table, choices, is_reproducible, .. } = self;
        let of_sequence = table.shape()[1];
        let lengths = first(lengths, rows)?;
        let batch = Batch {
            tokens: first(tokens, rows)?,
            positions: lengths,
            lengths,
            counts: first(counts, rows)?,
            table: table.view().slice([0..rows, 0..of_sequence])?,
            is_first: false,
            wanted: Wanted::Last,
            is_reproducible: *is_reproducible,
        };
        decoder.forward(on, &batch, cache, activations)?;
        let logits = activations.logits(rows, decoder.config().vocabulary)?;
        let options = choices.options(rows, lengths)?;
        Ok(sample(on, logits, first_mut(tokens, rows)?, options)?)
    }
}

/// The part of a prompt that is being read, as kernels read it.
#[derive(Debug)]
pub(super) struct PromptOnDevice {
    pub(super) tokens: DeviceTensor<u32, 1>,
    pub(super) positions: DeviceTensor<u32, 1>,
    pub(super) length: DeviceTensor<u32, 1>,
    pub(super) count: DeviceTensor<u32, 1>,
    pub(super) table: DeviceTensor<u32, 2>,
    pub(super) choices: Choices,
    pub(super) chosen: DeviceTensor<u32, 1>,
}

/// How the tokens of rows are chosen.
#[derive(Debug)]
pub(super) struct Choices {
    seeds: DeviceTensor<u64, 1>,
    temperatures: DeviceTensor<f32, 1>,
    top_k: DeviceTensor<u32, 1>,
    top_p: DeviceTensor<f32, 1>,
}

impl Choices {
    pub(super) fn new(device: &Device, rows: usize) -> Result<Self, ModelError> {
        Ok(Self {
            seeds: device.zeros([rows])?,
            temperatures: device.zeros([rows])?,
            top_k: device.zeros([rows])?,
            top_p: device.zeros([rows])?,
        })
    }

    /// Copies the options of sampling to the device; idle rows have the default.
    pub(super) fn set(
        &mut self,
        samplings: impl Iterator<Item = Sampling>,
        vocabulary: usize,
    ) -> Result<(), ModelError> {
        let mut all: Vec<Sampling> = samplings.collect();
        all.resize(self.seeds.len(), Sampling::default());
        let all_tokens = u32::try_from(vocabulary).unwrap_or(u32::MAX);
        let top_k = |sampling: &Sampling| if sampling.top_k == 0 { all_tokens } else { sampling.top_k };
        self.seeds.copy_from(&all.iter().map(|sampling| sampling.seed).collect::<Vec<_>>())?;
        self.temperatures.copy_from(&all.iter().map(|sampling| sampling.temperature).collect::<Vec<_>>())?;
        self.top_k.copy_from(&all.iter().map(top_k).collect::<Vec<_>>())?;
        self.top_p.copy_from(&all.iter().map(|sampling| sampling.top_p).collect::<Vec<_>>())?;
        Ok(())
    }

    /// Returns the options for the first rows, whose tokens get these positions.
    pub(super) fn options<'a>(
        &'a self,
        rows: usize,
        positions: TensorView<'a, u32, 1>,
    ) -> Result<SampleOptions<'a>, ModelError> {
        Ok(SampleOptions {
            temperatures: Some(first(&self.temperatures, rows)?),
            top_k: Some(first(&self.top_k, rows)?),
            top_p: Some(first(&self.top_p, rows)?),
            ..SampleOptions::new(first(&self.seeds, rows)?, positions)
        })
    }
}
