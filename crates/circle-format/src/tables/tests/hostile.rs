//! Tables that are shared, cut or not as they should be.

use flatbuffers::FlatBufferBuilder;
use tensor_core::Limits;

use crate::{
    Error,
    generated::circle as stored,
    model::{Buffer, Model, Operator, OperatorCode, Tensor},
};

/// Builds a model whose graph holds one tensor many times.
fn shared(name_len: usize, times: usize) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let name = Some(builder.create_string(&"n".repeat(name_len)));
    let tensor = stored::TensorArgs { name, ..Default::default() };
    let tensor = stored::Tensor::create(&mut builder, &tensor);
    let tensors = Some(builder.create_vector(&vec![tensor; times]));
    let graph = stored::SubGraphArgs { tensors, ..Default::default() };
    let graph = stored::SubGraph::create(&mut builder, &graph);
    let subgraphs = Some(builder.create_vector(&[graph]));
    let model = stored::ModelArgs { subgraphs, ..Default::default() };
    let model = stored::Model::create(&mut builder, &model);
    builder.finish(model, Some("CIR0"));
    builder.finished_data().to_vec()
}

#[track_caller]
fn rejects(bytes: Vec<u8>, message: &str) {
    let error = Model::parse(bytes, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn tables_shared_too_often() {
    let bytes = shared(1, 1000);
    let limit = bytes.len() / 8;
    let message =
        format!("model has more than {limit} tables, expected one in 8 bytes, at most 10000000");
    rejects(bytes, &message);
}

#[test]
fn texts_shared_too_often() {
    rejects(
        shared(1 << 20, 17),
        "model is malformed: Tensor.name at byte 148 needs more bytes than the limit of 16779648 for all \
         parts, shared ones counted each time",
    );
    Model::parse(shared(1 << 20, 8), &Limits::default()).unwrap();
}

/// Builds a model whose only operator has a number for its options, but no options.
fn without_options(tag: stored::BuiltinOptions) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    // Else the number of NONE would be left out.
    builder.force_defaults(true);
    let args = stored::OperatorArgs { builtin_options_type: tag, ..Default::default() };
    let operator = stored::Operator::create(&mut builder, &args);
    let operators = Some(builder.create_vector(&[operator]));
    let args = stored::SubGraphArgs { operators, ..Default::default() };
    let graph = stored::SubGraph::create(&mut builder, &args);
    let subgraphs = Some(builder.create_vector(&[graph]));
    let args = stored::ModelArgs { subgraphs, ..Default::default() };
    let model = stored::Model::create(&mut builder, &args);
    builder.finish(model, Some("CIR0"));
    builder.finished_data().to_vec()
}

#[test]
fn unions_without_a_value() {
    for tag in [stored::BuiltinOptions::NONE, stored::BuiltinOptions::AddOptions] {
        let model = Model::parse(without_options(tag), &Limits::default()).unwrap();
        assert_eq!(model.subgraphs[0].operators, [Operator::default()]);
    }
}

/// What a tensor and an operator take is what bounds the memory for a file.
#[test]
fn values_are_small() {
    assert!(size_of::<Tensor>() <= 144, "{}", size_of::<Tensor>());
    assert!(size_of::<Operator>() <= 272, "{}", size_of::<Operator>());
    assert!(size_of::<Buffer>() <= 56 && size_of::<OperatorCode>() <= 40);
}

#[test]
fn text_that_is_no_utf8() {
    let mut bytes = shared(4, 1);
    let at = bytes.windows(4).position(|part| part == b"nnnn").unwrap();
    bytes[at] = 0xff;
    let error = Model::parse(bytes, &Limits::default()).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}
