//! Steps of training.

use std::iter;

use tma_kernels::gemm::{GemmOptions, gemm};
use tma_kernels::optimizer::{self, AdamW, Parameter, ParameterLayout, StepOptions, sum_squares};
use tma_models::config::Config;
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::backward::backward;
use crate::context::Context;
use crate::forward::forward;
use crate::loss::{losses_and_gradients, plain_loss};
use crate::memory::Memory;
use crate::model::{Model, Tensor};
use crate::options::TrainingOptions;
use crate::state::{Gradient, State, Weights};
use crate::views::matrix_mut;
use crate::{TrainingError, initial};

/// The results of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// The mean loss of all positions before the step, with the additions that the options ask for.
    pub loss: f32,
    /// The norm of all gradients together, before it was limited.
    pub gradient_norm: f32,
    /// Whether the norm was not finite, so that nothing has changed.
    pub skipped: bool,
}

/// A decoder in training, with all that a step needs on a device.
///
/// [The package](crate) has an example.
#[derive(Debug)]
pub struct Trainer {
    device: Device,
    stream: Stream,
    config: Config,
    options: TrainingOptions,
    model: Model,
    layout: ParameterLayout,
    weights: Weights,
    memory: Memory,
    optimizer: AdamW,
    /// The launches of a step, recorded by the first one.
    step: Option<StepGraphs>,
    /// The launches of an evaluation.
    evaluation: Option<Graph>,
}

/// The graphs of a step. Tokens and labels of a micro-batch are copied before its graph.
#[derive(Debug)]
struct StepGraphs {
    /// The passes of the first micro-batch, which begins the gradients.
    first: Graph,
    /// The passes of each other one, if there are any.
    others: Option<Graph>,
    /// The update of parameters.
    update: Graph,
}

impl Trainer {
    /// Makes a model with the initial values that [the package](crate#initial-values) describes,
    /// and allocates parameters, moments, gradients, activations and the memory of attention's
    /// gradient. The first step may let the memory of GEMMs and of sums of columns grow.
    ///
    /// # Errors
    ///
    /// [`TrainingError::Config`] and [`TrainingError::Model`] for a model that cannot be trained,
    /// [`TrainingError::Option`] and [`TrainingError::Rows`] for options out of their range, and
    /// errors of the device.
    pub fn new(
        device: &Device,
        config: &Config,
        options: TrainingOptions,
        seed: u64,
    ) -> Result<Self, TrainingError> {
        Self::with_weights(device, config, options, 0, |tensors, layout| {
            Weights::new(device, layout, &initial::values(tensors, layout, seed))
        })
    }

    /// Makes a model that continues from a state, as [`Trainer::restore`] does, without computing
    /// initial values.
    ///
    /// # Errors
    ///
    /// Those of [`Trainer::new`] and [`Trainer::restore`].
    pub fn from_state(
        device: &Device,
        config: &Config,
        options: TrainingOptions,
        state: &State,
    ) -> Result<Self, TrainingError> {
        Self::with_weights(device, config, options, state.steps, |tensors, layout| {
            Weights::from_state(device, tensors, layout, state)
        })
    }

    /// Makes a model after some steps. The weights are made after all checks of options.
    fn with_weights(
        device: &Device,
        config: &Config,
        options: TrainingOptions,
        steps: u32,
        weights: impl FnOnce(&[Tensor], &ParameterLayout) -> Result<Weights, TrainingError>,
    ) -> Result<Self, TrainingError> {
        options.check(config)?;
        let optimizer = AdamW::resume(device, options.adamw, 0.0, steps)?;
        let model = Model::of(config);
        let layout = ParameterLayout::new(device, &parameters_of(&model, &options))?;
        Ok(Self {
            device: device.clone(),
            stream: device.stream()?,
            weights: weights(&model.tensors, &layout)?,
            memory: Memory::new(device, config, &options)?,
            optimizer,
            config: config.clone(),
            step: None,
            evaluation: None,
            options,
            model,
            layout,
        })
    }

    /// Runs a step: computes the gradients of the mean loss of all micro-batches, and updates the
    /// parameters.
    ///
    /// `tokens` are micro-batches × sequences × (length + 1) numbers, row by row. Each position but
    /// the last of a row predicts the token that follows. The call waits for the results.
    ///
    /// The same tokens, parameters and device produce the same bits, except that the gradients of
    /// queries are summed in the order in which blocks finish
    /// ([`attention_backward`](tma_kernels::attention::attention_backward)).
    ///
    /// # Errors
    ///
    /// [`TrainingError::Tokens`] and [`TrainingError::UnknownToken`], [`TrainingError::Rows`] for a
    /// learning rate that is negative or not finite, and errors of the device. After an invalid
    /// argument the parameters are unchanged.
    pub fn step(&mut self, tokens: &[u32], learning_rate: f32) -> Result<StepReport, TrainingError> {
        let of = "micro-batches × sequences × (length + 1)";
        self.check_tokens(tokens, self.options.micro_batches, of)?;
        self.optimizer.set_learning_rate(&self.stream, learning_rate)?;
        let graphs = match self.step.take() {
            Some(graphs) => graphs,
            None => self.record_step()?,
        };
        let losses = self.run_passes(&graphs, tokens)?;
        graphs.update.launch(&self.stream)?;
        self.step = Some(graphs);
        let gradient_norm = self.optimizer.norm()?;
        let loss = (losses + self.loss()?) / self.options.micro_batches as f32;
        Ok(StepReport { loss, gradient_norm, skipped: !gradient_norm.is_finite() })
    }

    /// Queues the passes of all micro-batches. Returns the sum of the losses of all but the last one,
    /// whose passes may still run.
    fn run_passes(&mut self, graphs: &StepGraphs, tokens: &[u32]) -> Result<f32, TrainingError> {
        let mut losses = 0.0;
        let micro_batches = tokens.chunks(self.options.sequences * (self.options.length + 1));
        let passes = iter::once(&graphs.first).chain(graphs.others.iter().cycle());
        for (index, (tokens, passes)) in micro_batches.zip(passes).enumerate() {
            if index > 0 {
                losses += self.loss()?;
            }
            self.set_tokens(tokens)?;
            passes.launch(&self.stream)?;
        }
        Ok(losses)
    }

    /// Returns the mean loss of sequences × (length + 1) tokens, and changes nothing. Label
    /// smoothing and the z-loss are left out, so that it compares with that of other options.
    ///
    /// # Errors
    ///
    /// [`TrainingError::Tokens`] and [`TrainingError::UnknownToken`], and errors of the device.
    pub fn evaluate(&mut self, tokens: &[u32]) -> Result<f32, TrainingError> {
        self.check_tokens(tokens, 1, "sequences × (length + 1)")?;
        self.set_tokens(tokens)?;
        let graph = match self.evaluation.take() {
            Some(graph) => graph,
            None => self.record_evaluation()?,
        };
        graph.launch(&self.stream)?;
        self.evaluation = Some(graph);
        self.loss()
    }

    /// Copies parameters, moments and the number of steps to the host.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn state(&self) -> Result<State, TrainingError> {
        let tensors = self.weights.tensors(&self.model.tensors, &self.layout)?;
        Ok(State { steps: self.optimizer.steps()?, tensors })
    }

    /// Continues from a state: one of [`Trainer::state`], or one with the weights of another
    /// program and moments of zeros.
    ///
    /// # Errors
    ///
    /// [`TrainingError::MissingTensor`], [`TrainingError::UnknownTensor`],
    /// [`TrainingError::DuplicateTensor`], [`TrainingError::TensorShape`] and
    /// [`TrainingError::TensorLength`] for a state that does not fit, after which nothing has
    /// changed; and errors of the device.
    pub fn restore(&mut self, state: &State) -> Result<(), TrainingError> {
        let optimizer = AdamW::resume(&self.device, self.options.adamw, 0.0, state.steps)?;
        self.weights.restore(&self.model.tensors, &self.layout, state)?;
        self.optimizer = optimizer;
        // It was recorded with the numbers of the old optimiser.
        self.step = None;
        Ok(())
    }

    /// Returns the gradients of the last step, of the mean loss of all micro-batches, before their
    /// norm was limited. They are zeros before the first step.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn gradients(&self) -> Result<Vec<Gradient>, TrainingError> {
        let all = self.weights.gradients.to_vec()?;
        let tensors = self.model.tensors.iter().zip(self.layout.ranges());
        let gradients = tensors.map(|(tensor, range)| Gradient {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            values: all[range.clone()].to_vec(),
        });
        Ok(gradients.collect())
    }

    /// Returns the configuration of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the options.
    pub fn options(&self) -> &TrainingOptions {
        &self.options
    }

    /// Returns the number of parameters. A table that is also the matrix of logits counts once.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// Returns the operations of a token in the forward and the backward pass: 6 for each parameter
    /// that it is multiplied by, which leaves out tables where rows are only looked up, and 12 ·
    /// layers · width of all heads · length for attention, of which a causal mask leaves half.
    /// Operations that are done again because of
    /// [`recompute`](TrainingOptions::recompute) do not count.
    pub fn flops_per_token(&self) -> f64 {
        let Config { heads, depth, .. } = self.config;
        let attention = 12 * self.config.layers() * heads * depth * self.options.length / 2;
        6.0 * self.model.multiplied() as f64 + attention as f64
    }

    /// Checks the number of tokens of some micro-batches, and that the vocabulary has them.
    fn check_tokens(
        &self,
        tokens: &[u32],
        micro_batches: usize,
        of: &'static str,
    ) -> Result<(), TrainingError> {
        let TrainingOptions { sequences, length, .. } = self.options;
        let (found, wanted) = (tokens.len(), micro_batches * sequences * (length + 1));
        if found != wanted {
            return Err(TrainingError::Tokens { found, wanted, of });
        }
        let vocabulary = self.config.vocabulary;
        if let Some(index) = tokens.iter().position(|token| *token as usize >= vocabulary) {
            return Err(TrainingError::UnknownToken { found: tokens[index], index, vocabulary });
        }
        Ok(())
    }

    /// Waits, and copies the tokens and labels of a micro-batch to the device.
    fn set_tokens(&mut self, tokens: &[u32]) -> Result<(), TrainingError> {
        let length = self.options.length;
        let part = |first: usize| {
            let rows = tokens.chunks(length + 1).flat_map(|row| &row[first..first + length]);
            rows.copied().collect::<Vec<u32>>()
        };
        self.memory.tokens.copy_from(&part(0))?;
        self.memory.labels.copy_from(&part(1))?;
        Ok(())
    }

    /// Waits, and returns the mean loss of the last micro-batch.
    fn loss(&self) -> Result<f32, TrainingError> {
        let mut loss = [0.0];
        self.memory.mean.copy_to(&mut loss)?;
        Ok(loss[0])
    }

    /// Records a step. The learning rate is queued before the graphs.
    fn record_step(&mut self) -> Result<StepGraphs, TrainingError> {
        let others = (self.options.micro_batches > 1).then(|| self.record_passes(true)).transpose()?;
        Ok(StepGraphs { first: self.record_passes(false)?, others, update: self.record_update()? })
    }

    /// Records the passes of a micro-batch: the first one of a step, or one that adds to the
    /// gradients of those before.
    fn record_passes(&mut self, accumulate: bool) -> Result<Graph, TrainingError> {
        let Self { device, stream, config, options, model, layout, weights, memory, .. } = self;
        let Weights { parameters, gradients, .. } = weights;
        let context = Context { config, options, model, layout, parameters, accumulate };
        record(device, stream, |on| {
            if !accumulate {
                clear_tables(on, &context, memory, gradients)?;
            }
            forward(on, &context, memory)?;
            losses_and_gradients(on, &context, memory, gradients)?;
            backward(on, &context, memory, gradients)
        })
    }

    /// Records the update of parameters.
    fn record_update(&mut self) -> Result<Graph, TrainingError> {
        let Self { device, stream, options, layout, weights, optimizer, .. } = self;
        record(device, stream, |on| {
            sum_squares(on, layout, &weights.gradients, &mut weights.squares)?;
            update(on, layout, options, weights, optimizer)
        })
    }

    /// Records an evaluation of a micro-batch.
    fn record_evaluation(&mut self) -> Result<Graph, TrainingError> {
        let Self { device, stream, config, options, model, layout, weights, memory, .. } = self;
        let parameters = &weights.parameters;
        let context = Context { config, options, model, layout, parameters, accumulate: false };
        record(device, stream, |on| {
            forward(on, &context, memory)?;
            plain_loss(on, &context, memory)
        })
    }
}

/// Returns the tensors of a model for the optimiser. Vectors have no weight decay.
fn parameters_of(model: &Model, options: &TrainingOptions) -> Vec<Parameter> {
    let of_tensor = |tensor: &Tensor| Parameter {
        weight_decay: if tensor.shape.len() > 1 { options.weight_decay } else { 0.0 },
        ..Parameter::new(tensor.len())
    };
    model.tensors.iter().map(of_tensor).collect()
}

/// Queues zeros for the gradients to which each micro-batch adds: those of the table of embeddings
/// and of the matrix of logits.
fn clear_tables(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    gradients: &mut DeviceTensor<f32, 1>,
) -> Result<(), TrainingError> {
    let Context { model, layout, .. } = *context;
    let head = (model.head != model.embedding).then_some(&model.head);
    for matrix in [&model.embedding].into_iter().chain(head) {
        // A graph records kernels only, and a GEMM with K = 0 is one that writes zeros.
        let [rows, columns] = matrix.shape;
        let none = memory.ones.view();
        let (a, b) = (none.with_strides([rows, 0], [1, 1])?, none.with_strides([0, columns], [1, 1])?);
        let options = GemmOptions { workspace: Some(&mut memory.workspaces.gemm), ..GemmOptions::default() };
        gemm(on, a, b, matrix_mut(gradients, layout, matrix)?, options)?;
    }
    Ok(())
}

/// Queues the update of parameters, from the sums of squares of their gradients.
fn update(
    on: &impl LaunchOn,
    layout: &ParameterLayout,
    options: &TrainingOptions,
    weights: &mut Weights,
    optimizer: &mut AdamW,
) -> Result<(), TrainingError> {
    let Weights { parameters, gradients, squares, masters, firsts, seconds } = weights;
    let (squares, max_norm) = (Some(squares.view()), options.max_norm);
    optimizer.begin_step(on, StepOptions { squares, max_norm, ..StepOptions::default() })?;
    let weights = optimizer::Weights {
        parameters: parameters.view_mut(),
        masters: Some(masters.view_mut()),
        firsts: firsts.view_mut(),
        seconds: seconds.view_mut(),
    };
    Ok(optimizer.update(on, layout, weights, &*gradients)?)
}

/// Records launches as a graph. Workspaces grow while launches are prepared: memory cannot be
/// allocated while the driver captures.
fn record(
    device: &Device,
    stream: &Stream,
    launches: impl FnOnce(&Capture) -> Result<(), TrainingError>,
) -> Result<Graph, TrainingError> {
    let prepared = device.prepare(launches)?;
    Ok(stream.capture(|capture| prepared.launch(capture))?)
}
