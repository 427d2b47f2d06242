//! The steps that a run consists of.

/// The reason why a step has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// More or fewer tokens than a step takes.
    #[error("wrong number of tokens: found {found}, wanted {wanted}, {of}")]
    Tokens {
        /// The number found.
        found: usize,
        /// The number wanted.
        wanted: usize,
        /// The product that the number is.
        of: &'static str,
    },
}

/// The results of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// The mean loss before the step.
    pub loss: f32,
    /// The norm of all gradients before it was limited.
    pub gradient_norm: f32,
    /// Whether the norm was not finite, and nothing has changed.
    pub skipped: bool,
}

/// All that a model has learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The steps taken, without those that were skipped.
    pub steps: u32,
    /// The tensors, in any order.
    pub tensors: Vec<StateTensor>,
}

/// A tensor of parameters and its moments, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct StateTensor {
    /// The name.
    pub name: String,
    /// The extents.
    pub shape: Vec<usize>,
    /// The parameters.
    pub master: Vec<f32>,
    /// The first moments.
    pub first: Vec<f32>,
    /// The second moments.
    pub second: Vec<f32>,
}

/// A model that is trained step by step.
pub trait Steps {
    /// Computes gradients, and updates all parameters. `tokens` are the windows of all
    /// micro-batches, one after the other.
    ///
    /// # Errors
    ///
    /// Tokens that are too many, too few or unknown, and errors of the device.
    fn step(&mut self, tokens: &[u32], learning_rate: f32) -> Result<StepReport, TrainingError>;

    /// Returns the mean loss of the windows of a micro-batch.
    ///
    /// # Errors
    ///
    /// Those of [`Steps::step`].
    fn evaluate(&mut self, tokens: &[u32]) -> Result<f32, TrainingError>;

    /// Returns all that the next step depends on.
    ///
    /// # Errors
    ///
    /// Those of the device.
    fn state(&self) -> Result<State, TrainingError>;

    /// Continues from a state.
    ///
    /// # Errors
    ///
    /// A state of another model, and errors of the device.
    fn restore(&mut self, state: &State) -> Result<(), TrainingError>;
}
