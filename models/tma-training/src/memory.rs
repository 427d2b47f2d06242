//! The memory of a step: all of it but what GEMMs and sums of columns need, which grows in the first
//! step.

use tma_kernels::attention::AttentionWorkspace;
use tma_kernels::gemm::Workspace;
use tma_kernels::model::{GradientWorkspace, rotary_tables};
use tma_models::config::{Config, Positions};
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::options::TrainingOptions;

/// Results within a layer that its backward pass reads, each rows × columns unless noted.
#[derive(Debug)]
pub(crate) struct Activations {
    pub(crate) normed: DeviceTensor<bf16, 2>,
    /// Queries, keys and values, the first two rotated.
    pub(crate) qkv: DeviceTensor<bf16, 2>,
    pub(crate) attended: DeviceTensor<bf16, 2>,
    /// Sequences × heads × length.
    pub(crate) lse: DeviceTensor<f32, 3>,
    /// The residual between attention and MLP.
    pub(crate) middle: DeviceTensor<bf16, 2>,
    pub(crate) normed_middle: DeviceTensor<bf16, 2>,
    pub(crate) up: DeviceTensor<bf16, 2>,
    pub(crate) activated: DeviceTensor<bf16, 2>,
}

/// Gradients of results, which all layers share.
#[derive(Debug)]
pub(crate) struct ResultGradients {
    pub(crate) residual: DeviceTensor<bf16, 2>,
    /// That of the input of a linear layer that follows a norm.
    pub(crate) normed: DeviceTensor<bf16, 2>,
    pub(crate) qkv: DeviceTensor<bf16, 2>,
    pub(crate) attended: DeviceTensor<bf16, 2>,
    pub(crate) up: DeviceTensor<bf16, 2>,
    pub(crate) activated: DeviceTensor<bf16, 2>,
}

/// Memory of kernels. Nothing of it is kept between calls.
#[derive(Debug)]
pub(crate) struct Workspaces {
    pub(crate) gemm: Workspace,
    pub(crate) attention: AttentionWorkspace,
    pub(crate) sums: GradientWorkspace,
}

/// All memory of a step but that of parameters.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The tokens of a micro-batch.
    pub(crate) tokens: DeviceTensor<u32, 1>,
    /// The tokens that follow these.
    pub(crate) labels: DeviceTensor<u32, 1>,
    /// The position of each row of a micro-batch in its sequence.
    pub(crate) positions: DeviceTensor<u32, 1>,
    /// Cosines and sines: positions × pairs of columns.
    pub(crate) angles: Option<[DeviceTensor<f32, 2>; 2]>,
    /// The input of each layer, and the result of the last one.
    pub(crate) residuals: Vec<DeviceTensor<bf16, 2>>,
    /// Those of each layer, or of one if they are computed again.
    pub(crate) activations: Vec<Activations>,
    pub(crate) last_normed: DeviceTensor<bf16, 2>,
    /// Some rows of logits, and then of their gradients.
    pub(crate) logits: DeviceTensor<bf16, 2>,
    /// The losses of a micro-batch.
    pub(crate) losses: DeviceTensor<f32, 1>,
    /// Their mean.
    pub(crate) mean: DeviceTensor<f32, 1>,
    /// The rows of a step, and of a micro-batch, which means are divided by.
    pub(crate) all_rows: DeviceTensor<u32, 1>,
    pub(crate) rows: DeviceTensor<u32, 1>,
    pub(crate) gradients: ResultGradients,
    /// A row of ones: what activations without a gate are multiplied by.
    pub(crate) ones: DeviceTensor<bf16, 1>,
    pub(crate) workspaces: Workspaces,
}

impl Memory {
    pub(crate) fn new(
        device: &Device,
        config: &Config,
        options: &TrainingOptions,
    ) -> Result<Self, TrainingError> {
        let (rows, all_rows, width) = (options.rows(), options.all_rows(), config.width);
        let layers = config.layers();
        let kept = if options.recompute { 1 } else { layers };
        let positions: Vec<u32> = (0..rows).map(|row| (row % options.length) as u32).collect();
        let queries = [options.sequences, config.heads, options.length, config.depth];
        let vocabulary = config.vocabulary.next_multiple_of(8); // rows begin at multiples of 16 bytes
        let residuals = (0..=layers).map(|_| device.zeros([rows, width])).collect::<Result<_, _>>()?;
        Ok(Self {
            tokens: device.zeros([rows])?,
            labels: device.zeros([rows])?,
            positions: device.tensor(&positions, [rows])?,
            angles: angles(device, config, options.length)?,
            residuals,
            activations: (0..kept)
                .map(|_| Activations::new(device, config, options))
                .collect::<Result<_, _>>()?,
            last_normed: device.zeros([rows, width])?,
            logits: device.zeros([options.rows_of_logits(vocabulary * size_of::<bf16>()), vocabulary])?,
            losses: device.zeros([rows])?,
            mean: device.zeros([1])?,
            all_rows: device.tensor(&[all_rows as u32], [1])?,
            rows: device.tensor(&[rows as u32], [1])?,
            gradients: ResultGradients::new(device, config, rows)?,
            ones: device.tensor(&vec![bf16::ONE; config.mlp_width], [config.mlp_width])?,
            workspaces: Workspaces {
                gemm: Workspace::new(device)?,
                attention: AttentionWorkspace::for_queries(device, queries)?,
                sums: GradientWorkspace::for_embedding(device, [rows, width])?,
            },
        })
    }

    /// Returns the index of a layer's activations.
    pub(crate) fn slot(&self, layer: usize) -> usize {
        layer % self.activations.len()
    }
}

impl Activations {
    fn new(device: &Device, config: &Config, options: &TrainingOptions) -> Result<Self, TrainingError> {
        let Config { width, heads, depth, mlp_width, .. } = *config;
        let rows = options.rows();
        Ok(Self {
            normed: device.zeros([rows, width])?,
            qkv: device.zeros([rows, config.qkv_columns()])?,
            attended: device.zeros([rows, heads * depth])?,
            lse: device.zeros([options.sequences, heads, options.length])?,
            middle: device.zeros([rows, width])?,
            normed_middle: device.zeros([rows, width])?,
            up: device.zeros([rows, config.up_columns()])?,
            activated: device.zeros([rows, mlp_width])?,
        })
    }
}

impl ResultGradients {
    fn new(device: &Device, config: &Config, rows: usize) -> Result<Self, TrainingError> {
        let Config { width, heads, depth, mlp_width, .. } = *config;
        Ok(Self {
            residual: device.zeros([rows, width])?,
            normed: device.zeros([rows, width])?,
            qkv: device.zeros([rows, config.qkv_columns()])?,
            attended: device.zeros([rows, heads * depth])?,
            up: device.zeros([rows, config.up_columns()])?,
            activated: device.zeros([rows, mlp_width])?,
        })
    }
}

/// Returns the cosines and sines of positions, if queries and keys are rotated.
fn angles(
    device: &Device,
    config: &Config,
    length: usize,
) -> Result<Option<[DeviceTensor<f32, 2>; 2]>, TrainingError> {
    let Positions::Rotary(settings) = &config.positions else { return Ok(None) };
    let (cos, sin) = rotary_tables(0..length as u32, config.depth, settings.base, settings.scaling);
    let shape = [length, config.depth / 2];
    Ok(Some([device.tensor(&cos, shape)?, device.tensor(&sin, shape)?]))
}
