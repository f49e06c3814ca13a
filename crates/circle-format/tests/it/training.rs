//! Training information: what is written is what is read, and what is found in it.
//!
//! What onert makes of each was seen by running onert 0.1.0 on these models.

use circle_format::{
    Error, Reader,
    model::{
        BuiltinOperator, LossFn, LossOptions, LossReductionType, Metadata, Model, ModelBuilder,
        Operator, Optimizer, OptimizerOptions, Schema, Tensor, TensorType, TrainingInfo,
        options::AddOptions,
    },
    tensor_core::{Finding, Limits},
};

fn training() -> TrainingInfo {
    TrainingInfo {
        version: 1,
        optimizer: Optimizer::ADAM,
        optimizer_options: Some(OptimizerOptions::Adam {
            learning_rate: 0.5,
            beta_1: 0.25,
            beta_2: 0.125,
            epsilon: 0.0625,
        }),
        loss: LossFn::CATEGORICAL_CROSSENTROPY,
        loss_options: Some(LossOptions::CategoricalCrossentropy { from_logits: true }),
        epochs: 3,
        batch_size: 4,
        loss_reduction: LossReductionType::Sum,
        trainable_operators: vec![0],
    }
}

/// A model of one addition.
fn model() -> Model {
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x", TensorType::Float32, [1]));
    let sum = graph.output(Tensor::new("sum", TensorType::Float32, [1]));
    let add = Operator::new([x, x], [sum]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    graph.finish();
    model.finish()
}

/// Returns the model with this metadata.
fn with(bytes: Vec<u8>) -> Reader {
    let mut model = model();
    model.set_metadata(TrainingInfo::METADATA, bytes);
    Reader::from_bytes(model.to_bytes().unwrap()).unwrap()
}

/// Returns everything that is found, as severity, rule, sentence and what onert does.
fn found(reader: &Reader) -> Vec<String> {
    let report = reader.validate();
    let shown = |found: &Finding| format!("{} {} {}", found.severity, found.rule, found.message);
    report.findings().iter().map(shown).collect()
}

#[test]
fn what_is_written_is_read() {
    let every = [
        training(),
        TrainingInfo {
            version: 0,
            optimizer: Optimizer::SGD,
            optimizer_options: Some(OptimizerOptions::Sgd { learning_rate: 2.0 }),
            loss: LossFn::MEAN_SQUARED_ERROR,
            loss_options: Some(LossOptions::MeanSquaredError),
            loss_reduction: LossReductionType::SumOverBatchSize,
            trainable_operators: vec![],
            ..training()
        },
        TrainingInfo {
            optimizer: Optimizer::from_code(9),
            optimizer_options: None,
            loss: LossFn::SPARSE_CATEGORICAL_CROSSENTROPY,
            loss_options: Some(LossOptions::SparseCategoricalCrossentropy { from_logits: false }),
            epochs: -1,
            batch_size: i32::MIN,
            trainable_operators: vec![5, -3],
            ..training()
        },
    ];
    for training in every {
        let bytes = training.to_bytes().unwrap();
        assert_eq!(bytes, training.to_bytes().unwrap());
        assert_eq!(with(bytes).training_info().unwrap(), Some(training));
    }
    assert_eq!(with(vec![]).training_info().unwrap(), None);
}

#[test]
fn sound_information_has_no_findings() {
    assert_eq!(found(&with(training().to_bytes().unwrap())), [""; 0]);
}

#[test]
fn every_truncation() {
    let bytes = training().to_bytes().unwrap();
    for len in 0..bytes.len() {
        let error = TrainingInfo::parse(bytes[..len].to_vec(), &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::TrainingInfo { .. }), "{len}: {error}");
    }
}

/// onert verifies these bytes, unlike the model around them.
#[test]
fn what_is_no_training_information() {
    let good = training().to_bytes().unwrap();
    let mut other = good.clone();
    other[4] = b'X';
    let inaccessible = "(onert fails to load: \"TrainingInfo buffer is not accessible\")";
    let identifier = "error model/training-info training information is malformed: identifier at \
                      byte 4 is";
    for (bytes, reason) in [
        (other, format!("{identifier} \"XTR0\", expected \"CTR0\" {inaccessible}")),
        (good[..7].to_vec(), format!("{identifier} \"\", expected \"CTR0\" {inaccessible}")),
    ] {
        assert_eq!(found(&with(bytes)), [reason]);
    }
    let cut = found(&with(good[..12].to_vec()));
    assert_eq!(cut.len(), 1);
    assert!(cut[0].ends_with(inaccessible), "{cut:?}");
}

#[test]
fn what_does_not_fit() {
    let loads_not = |message: &str| format!("(onert fails to load: \"{message}\")");
    type Change = fn(&mut TrainingInfo);
    let cases: [(Change, String); 13] = [
        (
            |of| of.optimizer = Optimizer::from_code(5),
            format!(
                "error model/training-info has optimizer 5, which is not known {}",
                loads_not("unknown optimzer")
            ),
        ),
        (
            |of| of.optimizer = Optimizer::SGD,
            "error model/training-options has no options of its optimizer, SGD (onert crashes \
             while loading)"
                .to_owned(),
        ),
        (
            |of| of.optimizer_options = None,
            "error model/training-options has no options of its optimizer, ADAM (onert crashes \
             while loading)"
                .to_owned(),
        ),
        (
            |of| {
                of.optimizer = Optimizer::SGD;
                of.optimizer_options = Some(OptimizerOptions::Sgd { learning_rate: -1.0 });
            },
            "warning model/training-options has the learning rate -1, expected more than 0"
                .to_owned(),
        ),
        (
            |of| of.loss = LossFn::from_code(9),
            format!(
                "error model/training-info has loss 9, which is not known {}",
                loads_not("unknown loss function")
            ),
        ),
        (
            |of| {
                of.loss = LossFn::SPARSE_CATEGORICAL_CROSSENTROPY;
                of.loss_options =
                    Some(LossOptions::SparseCategoricalCrossentropy { from_logits: true });
            },
            format!(
                "warning model/onert-training has the loss SPARSE_CATEGORICAL_CROSSENTROPY, which \
                 onert 0.1.0 does not know yet {}",
                loads_not("'sparse_categorical_crossentropy' is not supported yet")
            ),
        ),
        (
            |of| of.loss = LossFn::MEAN_SQUARED_ERROR,
            "error model/training-options has the loss MEAN_SQUARED_ERROR, but options of \
             CATEGORICAL_CROSSENTROPY (onert takes no notice)"
                .to_owned(),
        ),
        (
            |of| of.loss_options = None,
            "warning model/training-options has no options of its loss, CATEGORICAL_CROSSENTROPY, \
             which means default values (onert takes no notice)"
                .to_owned(),
        ),
        (
            |of| of.loss_reduction = LossReductionType::from_code(7),
            format!(
                "error model/training-info has loss reduction 7, which is not known {}",
                loads_not("unknown loss reduction type")
            ),
        ),
        (
            |of| of.epochs = 0,
            "warning model/training-info has the epochs 0, expected 1 or more".to_owned(),
        ),
        (
            |of| of.batch_size = -2,
            "warning model/training-info has the batch size -2, expected 1 or more".to_owned(),
        ),
        (
            |of| of.trainable_operators = vec![0, 1],
            "error model/training-operator trains operator 1, but the first graph has 1".to_owned(),
        ),
        (
            |of| of.trainable_operators = vec![0, 0],
            "warning model/training-operator names operator 0, which it trains, twice (onert takes \
             no notice)"
                .to_owned(),
        ),
    ];
    for (change, expected) in cases {
        let mut training = training();
        change(&mut training);
        assert_eq!(found(&with(training.to_bytes().unwrap())), [expected]);
    }
}

/// onert reads the first entry of the name, and nothing of the others.
#[test]
fn first_entry_counts() {
    let mut model = model();
    model.set_metadata(TrainingInfo::METADATA, training().to_bytes().unwrap());
    let buffer = model.add_buffer(vec![1; 20]);
    model.metadata.push(Metadata { name: Some(TrainingInfo::METADATA.to_owned()), buffer });
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    assert_eq!(reader.training_info().unwrap(), Some(training()));
    assert_eq!(found(&reader), ["warning model/metadata-name has the name of an entry before"]);
}
