//! What the fuzz target `circle_read` does with its input; a test of the crate replays the corpus.

use circle_format::{
    Reader, Writer, flex,
    model::{BuiltinOptions, BuiltinOptions2, Model, Schema},
    tensor_core::{DType, Limits},
};

/// Reads any bytes as a model where they have the identifier of one, and as custom options
/// elsewhere: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    match bytes.get(4..8) {
        Some(b"CIR0" | b"TFL3") => model(bytes),
        _ => drop(flex::Value::parse(bytes)),
    }
}

fn limits() -> Limits {
    Limits::default().with_decoded_bytes(1 << 20).with_expansion(1).with_tensors(1 << 16)
}

fn model(bytes: &[u8]) {
    for schema in [Schema::Circle, Schema::Tflite] {
        let _ = Model::parse_as(bytes.to_vec(), schema, &limits());
    }
    if let Ok(reader) = Reader::options().limits(limits()).from_bytes(bytes.to_vec()) {
        constants(&reader);
        written(&reader);
    }
}

/// What was written is read as the same.
fn written(reader: &Reader) {
    let _ = [Schema::Circle, Schema::Tflite].map(|schema| reader.model().to_schema(schema));
    let Ok(bytes) = Writer::new(Vec::new(), reader.model()).origin(reader).finish() else { return };
    let options = Reader::options().schema(reader.model().schema);
    let found = options.from_bytes(bytes.clone()).expect("what was written can be read");
    let again =
        Writer::new(Vec::new(), found.model()).origin(&found).finish().expect("and written again");
    assert_eq!(again, bytes);
    let mut model = found.model().clone();
    model.drop_unused_buffers();
    model.set_metadata("name", "value");
    model.remove_metadata("name");
    let _ = Writer::new(Vec::new(), &model).origin(&found).finish();
}

/// What validation lets through can be read.
fn constants(reader: &Reader) {
    let is_valid = reader.validate().is_valid();
    for constant in reader.tensors() {
        assert!(constant.name().is_none_or(|name| reader.tensor(name).is_some()));
        if let Ok(bytes) = constant.bytes() {
            let info = constant.info().expect("what can be read has a type");
            let needed = info.byte_len().ok();
            assert!(info.dtype == DType::Str || needed == Some(bytes.len() as u64), "{info:?}");
        }
        let is_here = constant.tensor().is_some_and(|tensor| tensor.external_buffer == 0);
        let read = constant.stored_bytes();
        assert!(!is_valid || !is_here || read.is_ok(), "{read:?}");
    }
    for operator in reader.model().subgraphs.iter().flat_map(|graph| &graph.operators) {
        let _ = operator.options.as_ref().map(BuiltinOptions::fields);
        let _ = operator.options_2.as_deref().map(BuiltinOptions2::fields);
    }
}
