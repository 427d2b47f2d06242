//! The steps that a run consists of.

pub use tma_training::{State, StateTensor, StepReport, Trainer, TrainingError};

/// A model that is trained step by step: [`Trainer`], or a small function in a test.
pub trait Trainable {
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
    /// Those of [`Trainable::step`].
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

impl Trainable for Trainer {
    fn step(&mut self, tokens: &[u32], learning_rate: f32) -> Result<StepReport, TrainingError> {
        self.step(tokens, learning_rate)
    }

    fn evaluate(&mut self, tokens: &[u32]) -> Result<f32, TrainingError> {
        self.evaluate(tokens)
    }

    fn state(&self) -> Result<State, TrainingError> {
        self.state()
    }

    fn restore(&mut self, state: &State) -> Result<(), TrainingError> {
        self.restore(state)
    }
}
