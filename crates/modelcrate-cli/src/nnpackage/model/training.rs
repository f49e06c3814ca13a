//! Training information of a model, as JSON and for people.

use modelcrate::nnpackage::{
    Error, ModelReader,
    model::{LossOptions, OptimizerOptions, TrainingInfo},
};
use serde::Serialize;

use super::values::Single;

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Training {
    Read(Box<Info>),
    Unreadable { fault: String },
}

#[derive(Serialize)]
pub(super) struct Info {
    version: u32,
    optimizer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    optimizer_options: Option<Optimizer>,
    loss: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_options: Option<Loss>,
    epochs: i32,
    batch_size: i32,
    loss_reduction: String,
    trainable_operators: Vec<i32>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Optimizer {
    Sgd { learning_rate: Single },
    Adam { learning_rate: Single, beta_1: Single, beta_2: Single, epsilon: Single },
    Unknown { tag: Option<u8> },
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Loss {
    SparseCategoricalCrossentropy { from_logits: bool },
    CategoricalCrossentropy { from_logits: bool },
    MeanSquaredError,
    Unknown { tag: Option<u8> },
}

impl Training {
    /// Returns what a model says about its training; `None` where it says nothing.
    pub(super) fn of(reader: &ModelReader) -> Option<Self> {
        let found = reader.training_info().transpose()?;
        Some(found.map_or_else(|error| Self::unreadable(&error), |info| Self::Read(info.into())))
    }

    fn unreadable(error: &Error) -> Self {
        Self::Unreadable { fault: error.to_string() }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Read(info) => info.text(),
            Self::Unreadable { fault } => fault.clone(),
        }
    }
}

impl From<TrainingInfo> for Box<Info> {
    fn from(info: TrainingInfo) -> Self {
        Self::new(Info {
            version: info.version,
            optimizer: info.optimizer.to_string(),
            optimizer_options: info.optimizer_options.as_ref().map(Optimizer::of),
            loss: info.loss.to_string(),
            loss_options: info.loss_options.as_ref().map(Loss::of),
            epochs: info.epochs,
            batch_size: info.batch_size,
            loss_reduction: info.loss_reduction.to_string(),
            trainable_operators: info.trainable_operators,
        })
    }
}

impl Info {
    fn text(&self) -> String {
        let Self { optimizer, loss, epochs, batch_size, .. } = self;
        let rate = self.optimizer_options.as_ref().and_then(Optimizer::learning_rate);
        let rate = rate.map(|rate| format!(", learning rate {rate}")).unwrap_or_default();
        let operators = self.trainable_operators.len();
        format!(
            "{optimizer}{rate}; {loss}, {}; {epochs} epochs in batches of {batch_size}; \
             {operators} trainable operators",
            self.loss_reduction
        )
    }
}

impl Optimizer {
    fn of(options: &OptimizerOptions) -> Self {
        match *options {
            OptimizerOptions::Sgd { learning_rate } => {
                Self::Sgd { learning_rate: Single(learning_rate) }
            }
            OptimizerOptions::Adam { learning_rate, beta_1, beta_2, epsilon } => Self::Adam {
                learning_rate: Single(learning_rate),
                beta_1: Single(beta_1),
                beta_2: Single(beta_2),
                epsilon: Single(epsilon),
            },
            OptimizerOptions::Unknown(ref table) => Self::Unknown { tag: Some(table.tag()) },
            _ => Self::Unknown { tag: None },
        }
    }

    fn learning_rate(&self) -> Option<f32> {
        match self {
            Self::Sgd { learning_rate } | Self::Adam { learning_rate, .. } => Some(learning_rate.0),
            Self::Unknown { .. } => None,
        }
    }
}

impl Loss {
    fn of(options: &LossOptions) -> Self {
        match *options {
            LossOptions::SparseCategoricalCrossentropy { from_logits } => {
                Self::SparseCategoricalCrossentropy { from_logits }
            }
            LossOptions::CategoricalCrossentropy { from_logits } => {
                Self::CategoricalCrossentropy { from_logits }
            }
            LossOptions::MeanSquaredError => Self::MeanSquaredError,
            LossOptions::Unknown(ref table) => Self::Unknown { tag: Some(table.tag()) },
            _ => Self::Unknown { tag: None },
        }
    }
}
