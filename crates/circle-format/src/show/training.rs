//! Training information of a model as data.

use serde::Serialize;

use crate::{
    Error, Reader,
    model::{LossOptions, OptimizerOptions, TrainingInfo},
};

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
    Unknown { tag: u8 },
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Loss {
    SparseCategoricalCrossentropy { from_logits: bool },
    CategoricalCrossentropy { from_logits: bool },
    MeanSquaredError,
    Unknown { tag: u8 },
}

impl Training {
    /// Returns what a model says about its training; `None` where it says nothing.
    pub(super) fn of(reader: &Reader) -> Option<Self> {
        let found = reader.training_info().transpose()?;
        Some(found.map_or_else(|error| Self::unreadable(&error), |info| Self::Read(info.into())))
    }

    fn unreadable(error: &Error) -> Self {
        Self::Unreadable { fault: error.to_string() }
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
            OptimizerOptions::Unknown(ref table) => Self::Unknown { tag: table.tag() },
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
            LossOptions::Unknown(ref table) => Self::Unknown { tag: table.tag() },
        }
    }
}
