//! How a Circle model is to be trained.

use bytes::Bytes;
use flatbuffers::{InvalidFlatbuffer, UnionWIPOffset, WIPOffset};
use tensor_core::Limits;

use super::{
    LossFn, LossReductionType, Optimizer, UnknownTable, encode::Encoder, parse::Scan, reason,
    verifier_options,
};
use crate::{Error, Result, WriteFault, generated::training as stored};

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

    /// Reads training information.
    ///
    /// # Errors
    ///
    /// [`Error::TrainingInfo`] without the identifier, or where it is no FlatBuffer of the schema.
    pub fn parse(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Self> {
        let bytes = bytes.into();
        let found = bytes.get(4..8).unwrap_or_default();
        if found != Self::IDENTIFIER {
            let found = found.escape_ascii();
            let reason = format!("identifier at byte 4 is \"{found}\", expected \"CTR0\"");
            return Err(Error::TrainingInfo { reason });
        }
        let options = verifier_options(bytes.len(), limits);
        let root = stored::root_as_model_training_with_opts(&options, &bytes);
        let root = root.map_err(malformed)?;
        let scan = Scan::new(&bytes, &[]);
        Ok(Self {
            version: root.version(),
            optimizer: scan.read(root.optimizer()),
            optimizer_options: OptimizerOptions::of(&root, &scan)?,
            loss: scan.read(root.lossfn()),
            loss_options: LossOptions::of(&root, &scan)?,
            epochs: root.epochs(),
            batch_size: root.batch_size(),
            loss_reduction: scan.read(root.loss_reduction_type()),
            trainable_operators: scan.read(root.trainable_ops()),
        })
    }

    /// Returns the bytes of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] with options that are not known.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut encoder = Encoder::new();
        let root = self.encode(&mut encoder);
        let root = root.map_err(|fault| encoder.failed(fault))?;
        Ok(encoder.finish(root, "CTR0"))
    }

    fn encode(
        &self,
        out: &mut Encoder,
    ) -> Result<WIPOffset<stored::ModelTraining<'static>>, WriteFault> {
        let mut args = stored::ModelTrainingArgs {
            version: self.version,
            optimizer: out.write(&self.optimizer)?,
            lossfn: out.write(&self.loss)?,
            epochs: self.epochs,
            batch_size: self.batch_size,
            loss_reduction_type: out.write(&self.loss_reduction)?,
            trainable_ops: out.write_some(&self.trainable_operators)?,
            ..Default::default()
        };
        if let Some(options) = &self.optimizer_options {
            let (tag, table) = options.encode(out)?;
            (args.optimizer_opt_type, args.optimizer_opt) = (tag, Some(table));
        }
        if let Some(options) = &self.loss_options {
            let (tag, table) = options.encode(out)?;
            (args.lossfn_opt_type, args.lossfn_opt) = (tag, Some(table));
        }
        Ok(stored::ModelTraining::create(out.table()?, &args))
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

    fn of(root: &stored::ModelTraining<'_>, scan: &Scan<'_>) -> Result<Option<Self>> {
        Ok(match root.optimizer_opt_type().0 {
            0 => None,
            1 => root
                .optimizer_opt_as_sgdoptions()
                .map(|table| Self::Sgd { learning_rate: table.learning_rate() }),
            2 => root.optimizer_opt_as_adam_options().map(|table| Self::Adam {
                learning_rate: table.learning_rate(),
                beta_1: table.beta_1(),
                beta_2: table.beta_2(),
                epsilon: table.epsilon(),
            }),
            tag => {
                let field = stored::ModelTraining::VT_OPTIMIZER_OPT;
                scan.unknown("options of an optimizer", tag, root._tab, field)?.map(Self::Unknown)
            }
        })
    }

    fn encode(
        &self,
        out: &mut Encoder,
    ) -> Result<(stored::OptimizerOptions, WIPOffset<UnionWIPOffset>), WriteFault> {
        Ok(match *self {
            Self::Sgd { learning_rate } => {
                let table = stored::SGDOptions::create(
                    out.table()?,
                    &stored::SGDOptionsArgs { learning_rate },
                );
                (stored::OptimizerOptions::SGDOptions, table.as_union_value())
            }
            Self::Adam { learning_rate, beta_1, beta_2, epsilon } => {
                let args = stored::AdamOptionsArgs { learning_rate, beta_1, beta_2, epsilon };
                let table = stored::AdamOptions::create(out.table()?, &args);
                (stored::OptimizerOptions::AdamOptions, table.as_union_value())
            }
            Self::Unknown(ref table) => return Err(table.fault("options of an optimizer")),
        })
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

    fn of(root: &stored::ModelTraining<'_>, scan: &Scan<'_>) -> Result<Option<Self>> {
        Ok(match root.lossfn_opt_type().0 {
            0 => None,
            1 => root.lossfn_opt_as_sparse_categorical_crossentropy_options().map(|table| {
                Self::SparseCategoricalCrossentropy { from_logits: table.from_logits() }
            }),
            2 => root
                .lossfn_opt_as_categorical_crossentropy_options()
                .map(|table| Self::CategoricalCrossentropy { from_logits: table.from_logits() }),
            3 => root.lossfn_opt_as_mean_squared_error_options().map(|_| Self::MeanSquaredError),
            tag => {
                let field = stored::ModelTraining::VT_LOSSFN_OPT;
                scan.unknown("options of a loss", tag, root._tab, field)?.map(Self::Unknown)
            }
        })
    }

    fn encode(
        &self,
        out: &mut Encoder,
    ) -> Result<(stored::LossFnOptions, WIPOffset<UnionWIPOffset>), WriteFault> {
        Ok(match *self {
            Self::SparseCategoricalCrossentropy { from_logits } => {
                let args = stored::SparseCategoricalCrossentropyOptionsArgs { from_logits };
                let table =
                    stored::SparseCategoricalCrossentropyOptions::create(out.table()?, &args);
                let tag = stored::LossFnOptions::SparseCategoricalCrossentropyOptions;
                (tag, table.as_union_value())
            }
            Self::CategoricalCrossentropy { from_logits } => {
                let args = stored::CategoricalCrossentropyOptionsArgs { from_logits };
                let table = stored::CategoricalCrossentropyOptions::create(out.table()?, &args);
                (stored::LossFnOptions::CategoricalCrossentropyOptions, table.as_union_value())
            }
            Self::MeanSquaredError => {
                let args = stored::MeanSquaredErrorOptionsArgs {};
                let table = stored::MeanSquaredErrorOptions::create(out.table()?, &args);
                (stored::LossFnOptions::MeanSquaredErrorOptions, table.as_union_value())
            }
            Self::Unknown(ref table) => return Err(table.fault("options of a loss")),
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as an argument of map_err")]
fn malformed(error: InvalidFlatbuffer) -> Error {
    Error::TrainingInfo { reason: reason(&error) }
}
