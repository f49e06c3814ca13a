//! How a Circle model is to be trained.

use std::fmt;

use flat_tables::UnknownTable;

use super::{LossFn, LossReductionType, Optimizer};

/// How a Circle model is to be trained: a FlatBuffer of its own, which the metadata
/// [`METADATA`](Self::METADATA) holds.
///
/// Numbers are kept as they are stored; whether they make sense is for
/// [`Reader::validate`](crate::Reader::validate) to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingInfo {
    /// The version of the table.
    pub version: u32,
    /// How weights are changed after a batch.
    pub optimizer: Optimizer,
    /// The options of the optimizer.
    pub optimizer_options: Option<OptimizerOptions>,
    /// How far outputs are from what they should be.
    pub loss: LossFn,
    /// The options of the loss.
    pub loss_options: Option<LossOptions>,
    /// How often all data are gone through.
    pub epochs: i32,
    /// How many samples there are between two changes of weights.
    pub batch_size: i32,
    /// How the losses of a batch become one number.
    pub loss_reduction: LossReductionType,
    /// Positions of the operators of the first graph whose weights change.
    pub trainable_operators: Vec<i32>,
}

impl TrainingInfo {
    /// The name of the metadata.
    pub const METADATA: &'static str = "CIRCLE_TRAINING";

    /// The identifier at byte 4 of the buffer.
    pub const IDENTIFIER: [u8; 4] = *b"CTR0";
}

impl fmt::Display for TrainingInfo {
    /// Writes a line for people: optimizer, loss, how often and over what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { optimizer, loss, loss_reduction, epochs, batch_size, .. } = self;
        write!(f, "{optimizer}")?;
        if let Some(rate) =
            self.optimizer_options.as_ref().and_then(OptimizerOptions::learning_rate)
        {
            write!(f, ", learning rate {rate}")?;
        }
        let operators = self.trainable_operators.len();
        write!(
            f,
            "; {loss}, {loss_reduction}; {epochs} epochs in batches of {batch_size}; \
             {operators} trainable operators"
        )
    }
}

/// The options of an optimizer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptimizerOptions {
    /// Of stochastic gradient descent.
    Sgd {
        /// How far weights go against the gradient.
        learning_rate: f32,
    },
    /// Of Adam.
    Adam {
        /// How far weights go against the gradient.
        learning_rate: f32,
        /// How much of the mean of earlier gradients stays.
        beta_1: f32,
        /// How much of the mean of their squares stays.
        beta_2: f32,
        /// What keeps a divisor from being 0.
        epsilon: f32,
    },
    /// A table that this crate does not know.
    Unknown(UnknownTable),
}

impl OptimizerOptions {
    /// Returns the optimizer that they are for; `None` where that is not known.
    #[must_use]
    pub const fn optimizer(&self) -> Option<Optimizer> {
        match self {
            Self::Sgd { .. } => Some(Optimizer::SGD),
            Self::Adam { .. } => Some(Optimizer::ADAM),
            Self::Unknown(_) => None,
        }
    }

    /// Returns how far weights go against the gradient; `None` where that is not known.
    #[must_use]
    pub const fn learning_rate(&self) -> Option<f32> {
        match self {
            Self::Sgd { learning_rate } | Self::Adam { learning_rate, .. } => Some(*learning_rate),
            Self::Unknown(_) => None,
        }
    }
}

/// The options of a loss.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LossOptions {
    /// Of cross entropy with the position of the right class.
    SparseCategoricalCrossentropy {
        /// Tells whether outputs are logits, and not probabilities.
        from_logits: bool,
    },
    /// Of cross entropy with a probability for each class.
    CategoricalCrossentropy {
        /// Tells whether outputs are logits, and not probabilities.
        from_logits: bool,
    },
    /// Of the mean of squared differences, which has none.
    MeanSquaredError,
    /// A table that this crate does not know.
    Unknown(UnknownTable),
}

impl LossOptions {
    /// Returns the loss that they are for; `None` where that is not known.
    #[must_use]
    pub const fn loss(&self) -> Option<LossFn> {
        match self {
            Self::SparseCategoricalCrossentropy { .. } => {
                Some(LossFn::SPARSE_CATEGORICAL_CROSSENTROPY)
            }
            Self::CategoricalCrossentropy { .. } => Some(LossFn::CATEGORICAL_CROSSENTROPY),
            Self::MeanSquaredError => Some(LossFn::MEAN_SQUARED_ERROR),
            Self::Unknown(_) => None,
        }
    }
}
