//! Training information, which is a FlatBuffer of its own.

use bytes::Bytes;
use flat_tables::Fault;
use flatbuffers::{UnionWIPOffset, WIPOffset};
use tensor_core::Limits;

use super::{
    bounds,
    encode::{Encoder, unknown},
    scan::Scan,
};
use crate::{
    Error, Result, WriteFault,
    generated::{self, training as stored},
    model::{LossOptions, OptimizerOptions, Schema, TrainingInfo},
};

impl TrainingInfo {
    /// Reads training information.
    ///
    /// # Errors
    ///
    /// [`Error::TrainingInfo`] without the identifier, or where it is not a FlatBuffer of the schema.
    pub fn parse(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Self> {
        let bytes = bytes.into();
        let found = bytes.get(4..8).unwrap_or_default();
        if found != Self::IDENTIFIER {
            let found = found.escape_ascii();
            let reason = format!("identifier at byte 4 is \"{found}\", expected \"CTR0\"");
            return Err(Error::TrainingInfo { reason });
        }
        let root = generated::model_training(&bytes, bounds(bytes.len(), limits));
        let root = root.map_err(malformed)?;
        let scan = Scan::new(&bytes, Schema::Circle, &[]);
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
        let mut encoder = Encoder::new(Schema::Circle);
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

impl OptimizerOptions {
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
            Self::Unknown(ref table) => return Err(unknown("options of an optimizer", table)),
        })
    }
}

impl LossOptions {
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
            Self::Unknown(ref table) => return Err(unknown("options of a loss", table)),
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as an argument of map_err")]
fn malformed(fault: Fault) -> Error {
    Error::TrainingInfo { reason: fault.to_string() }
}
