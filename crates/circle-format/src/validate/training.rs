//! Training information, as onert reads it when it loads a model, trained or not.

use std::collections::BTreeSet;

use crate::{
    Diagnoses, Diagnosis, Error, Reader, Stage,
    model::{LossFn, Model, OptimizerOptions, TrainingInfo},
};

/// Checks the training information of the metadata at `path`, the first of their name.
pub(super) fn check(reader: &Reader, path: &str, findings: &mut Diagnoses) {
    let mut push = |diagnosis: Diagnosis| findings.push(diagnosis.path(path));
    let training = match reader.training_info() {
        Ok(Some(training)) => training,
        Ok(None) => return,
        Err(error) => {
            let diagnosis = Diagnosis::error(error.rule(), error.to_string());
            push(match error {
                Error::TrainingInfo { .. } => {
                    diagnosis.load_fails("TrainingInfo buffer is not accessible")
                }
                _ => diagnosis,
            });
            return;
        }
    };
    numbers(&training, &mut push);
    optimizer(&training, &mut push);
    loss(&training, &mut push);
    operators(reader.model(), &training, &mut push);
}

fn numbers(training: &TrainingInfo, push: &mut impl FnMut(Diagnosis)) {
    let reduction = training.loss_reduction;
    if reduction.name().is_none() {
        let message = format!("has loss reduction {}, which is not known", reduction.code());
        let diagnosis = Diagnosis::error("model/training-info", message);
        push(diagnosis.load_fails("unknown loss reduction type"));
    }
    for (what, number) in [("epochs", training.epochs), ("batch size", training.batch_size)] {
        if number < 1 {
            let message = format!("has the {what} {number}, expected 1 or more");
            push(Diagnosis::warning("model/training-info", message));
        }
    }
}

fn optimizer(training: &TrainingInfo, push: &mut impl FnMut(Diagnosis)) {
    let optimizer = training.optimizer;
    if optimizer.name().is_none() {
        let message = format!("has optimizer {}, which is not known", optimizer.code());
        let diagnosis = Diagnosis::error("model/training-info", message);
        push(diagnosis.load_fails("unknown optimzer"));
        return;
    }
    let options = training.optimizer_options.as_ref();
    if options.and_then(OptimizerOptions::optimizer) != Some(optimizer) {
        let message = format!("has no options of its optimizer, {optimizer}");
        push(Diagnosis::error("model/training-options", message).crashes(Stage::Load));
        return;
    }
    let Some(
        OptimizerOptions::Sgd { learning_rate } | OptimizerOptions::Adam { learning_rate, .. },
    ) = options
    else {
        return;
    };
    if !learning_rate.is_finite() || *learning_rate <= 0.0 {
        let message = format!("has the learning rate {learning_rate}, expected more than 0");
        push(Diagnosis::warning("model/training-options", message));
    }
}

fn loss(training: &TrainingInfo, push: &mut impl FnMut(Diagnosis)) {
    let loss = training.loss;
    if loss.name().is_none() {
        let message = format!("has loss {}, which is not known", loss.code());
        let diagnosis = Diagnosis::error("model/training-info", message);
        push(diagnosis.load_fails("unknown loss function"));
        return;
    }
    if loss == LossFn::SPARSE_CATEGORICAL_CROSSENTROPY {
        let message = format!("has the loss {loss}, which onert 0.1.0 does not know yet");
        let failed = "'sparse_categorical_crossentropy' is not supported yet";
        push(Diagnosis::warning("model/onert-training", message).load_fails(failed));
    }
    match training.loss_options.as_ref() {
        None if loss == LossFn::MEAN_SQUARED_ERROR => {}
        None => {
            let message = format!("has no options of its loss, {loss}, which means default values");
            push(Diagnosis::warning("model/training-options", message).ignored());
        }
        Some(options) if options.loss() != Some(loss) => {
            let found = options.loss().map(|found| found.to_string());
            let found = found.unwrap_or_else(|| "an unknown one".to_owned());
            let message = format!("has the loss {loss}, but options of {found}");
            push(Diagnosis::error("model/training-options", message).ignored());
        }
        Some(_) => {}
    }
}

fn operators(model: &Model, training: &TrainingInfo, push: &mut impl FnMut(Diagnosis)) {
    let count = model.subgraphs.first().map_or(0, |graph| graph.operators.len());
    let mut seen = BTreeSet::new();
    for &index in &training.trainable_operators {
        if !usize::try_from(index).is_ok_and(|index| index < count) {
            let message = format!("trains operator {index}, but the first graph has {count}");
            push(Diagnosis::error("model/training-operator", message));
        } else if !seen.insert(index) {
            let message = format!("names operator {index}, which it trains, twice");
            push(Diagnosis::warning("model/training-operator", message).ignored());
        }
    }
}
