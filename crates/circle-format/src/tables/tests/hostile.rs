//! Tables that are shared, cut or not as they should be.

use flat_tables::{Bounds, Problem};
use flatbuffers::{FlatBufferBuilder, VOffsetT, VerifierOptions, root_with_opts};
use tensor_core::Limits;

use crate::{
    Error, Reader,
    generated::circle as stored,
    model::{
        Buffer, BuiltinOptions, Model, Operator, OperatorCode, Tensor,
        options::FullyConnectedOptions,
    },
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

/// Builds a model whose only operator has a number for its options, and a table of one byte in a
/// field, or no table.
fn with_options(
    identifier: &str,
    builtin_options_type: stored::BuiltinOptions,
    field: Option<VOffsetT>,
) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    // Else the number of NONE would be left out.
    builder.force_defaults(field.is_none());
    let builtin_options = field.map(|field| {
        let table = builder.start_table();
        builder.push_slot_always(field, 1_u8);
        builder.end_table(table).as_union_value()
    });
    let args = stored::OperatorArgs { builtin_options_type, builtin_options, ..Default::default() };
    let operator = stored::Operator::create(&mut builder, &args);
    let operators = Some(builder.create_vector(&[operator]));
    let args = stored::SubGraphArgs { operators, ..Default::default() };
    let graph = stored::SubGraph::create(&mut builder, &args);
    let subgraphs = Some(builder.create_vector(&[graph]));
    let args = stored::ModelArgs { subgraphs, ..Default::default() };
    let model = stored::Model::create(&mut builder, &args);
    builder.finish(model, Some(identifier));
    builder.finished_data().to_vec()
}

#[test]
fn unions_without_a_value() {
    for tag in [stored::BuiltinOptions::NONE, stored::BuiltinOptions::AddOptions] {
        let bytes = with_options("CIR0", tag, None);
        let model = Model::parse(bytes, &Limits::default()).unwrap();
        assert_eq!(model.subgraphs[0].operators, [Operator::default()]);
    }
}

/// Where a schema has nothing its next release may have anything, whatever the other one has there:
/// bytes behind the last field of Circle, and a table with a text behind the last one of TFLite.
#[test]
fn what_later_releases_add() {
    let bytes = (stored::BuiltinOptions::FullyConnectedOptions, 14);
    let text = (stored::BuiltinOptions::RunModelOptions, 4);
    let open =
        |identifier, (tag, field)| Reader::from_bytes(with_options(identifier, tag, Some(field)));
    let options = |reader: &Reader| reader.model().subgraphs[0].operators[0].options.clone();
    let circle = open("CIR0", bytes).unwrap();
    assert_eq!(options(&circle), Some(FullyConnectedOptions::default().into()));
    assert!(circle.unknown_field().is_some());
    let tflite = open("TFL3", text).unwrap();
    assert!(matches!(options(&tflite), Some(BuiltinOptions::Unknown(table)) if table.tag() == 248));
    for (identifier, options) in [("TFL3", bytes), ("CIR0", text)] {
        let error = open(identifier, options).unwrap_err();
        assert!(matches!(error, Error::Malformed(_)), "{error}");
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

/// What is proved is what the verifier of the crate `flatbuffers` lets through, and no more.
#[test]
fn the_verifier_agrees_with_what_is_proved() {
    let bounds = Bounds { tables: 1000, ..Bounds::default() };
    let options = VerifierOptions {
        max_tables: bounds.tables,
        max_depth: bounds.depth,
        max_apparent_size: bounds.apparent_size,
        ignore_missing_null_terminator: false,
    };
    let (mut proved, mut refused) = (0, 0);
    for bytes in [shared(3, 2), with_options("CIR0", stored::BuiltinOptions::AddOptions, None)] {
        test_support::mutations(&bytes, |changed| {
            let ours = crate::generated::circle_model(changed, bounds);
            let theirs = root_with_opts::<stored::Model<'_>>(&options, changed);
            match &ours {
                Ok(_) => assert!(theirs.is_ok(), "{theirs:?}"),
                // What it lets through all the same are tables that end in their first four bytes.
                Err(fault) if theirs.is_ok() => assert!(
                    matches!(
                        fault.problem(),
                        Problem::VtableLength { .. }
                            | Problem::TableLength { .. }
                            | Problem::VtableOutside { .. }
                            | Problem::NoOffset
                            | Problem::OutOfBounds { .. }
                            | Problem::Misaligned { .. }
                    ),
                    "{fault}"
                ),
                Err(_) => refused += 1,
            }
            proved += usize::from(ours.is_ok());
        });
    }
    assert!(proved > 100 && refused > 100, "{proved} {refused}");
}
