//! What is written is what is read, in both schemas and in every place that bytes can have.

use std::{collections::BTreeMap, fs, time::Instant};

use bytes::Bytes;
use circle_format::{
    BufferPlacement, Editor, ReadOptions, Reader, WriteOptions, Writer,
    model::{
        Buffer, BuiltinOperator, CompressionType, DataFormat, ExternalBuffer,
        FullyConnectedOptionsWeightsFormat, Metadata, Model, ModelBuilder, Operator, OperatorCode,
        Quantization, QuantizationDetails, Schema, Signature, SignatureTensor, Tensor, TensorType,
        options::{AddOptions, FullyConnectedOptions, RmsNormOptions},
    },
    tensor_core::{Extent, output::Edited},
};
use model_archive::{ArchiveWriter, EntryOptions};
use test_support::{CountingSource, files};

use crate::common::{packed_models, rewritten};

/// Every model of the test data that can be read, with its name.
fn models() -> Vec<(String, Reader)> {
    let mut models = Vec::new();
    for folder in ["nnpackage/valid", "nnpackage/invalid"] {
        for extension in ["circle", "tflite"] {
            for path in files(folder, extension) {
                if let Ok(reader) = Reader::open(&path) {
                    models.push((path.display().to_string(), reader));
                }
            }
        }
    }
    for (path, bytes) in packed_models() {
        models.push((path, Reader::from_bytes(bytes).unwrap()));
    }
    models
}

fn placed(placement: BufferPlacement) -> WriteOptions {
    WriteOptions::default().placement(placement)
}

/// Returns the bytes of a buffer, wherever they are.
fn content(reader: &Reader, buffer: &Buffer) -> Bytes {
    if !buffer.is_external() {
        return buffer.data.clone();
    }
    let extent = Extent::new(buffer.offset, buffer.size).unwrap();
    reader.source().read(extent, "buffer").unwrap()
}

/// Returns the model with all bytes in it.
fn whole(reader: &Reader) -> Model {
    let mut model = reader.model().clone();
    for buffer in &mut model.buffers {
        if buffer.is_external() {
            *buffer = Buffer { data: content(reader, buffer), ..Buffer::default() };
        }
    }
    model
}

#[test]
fn models_are_read_as_they_were_written() {
    let (mut written, mut refused) = (0, BTreeMap::new());
    for (name, reader) in models() {
        for placement in [BufferPlacement::Keep, BufferPlacement::Inline, BufferPlacement::Outside]
        {
            let bytes = match placed(placement)
                .write_to(Vec::new(), reader.model())
                .origin(&reader)
                .finish()
            {
                Ok(bytes) => bytes,
                Err(error) => {
                    refused.insert(name.clone(), error.to_string());
                    continue;
                }
            };
            let again = placed(placement)
                .write_to(Vec::new(), reader.model())
                .origin(&reader)
                .finish()
                .unwrap();
            assert_eq!(bytes, again, "{name}: the same model makes the same bytes");
            let schema = ReadOptions::default().schema(reader.model().schema);
            let found = schema.from_bytes(bytes).unwrap();
            assert_eq!(whole(&found), whole(&reader), "{name}, {placement:?}");
            written += 1;
        }
    }
    assert!(written > 200, "{written}");
    let file = |name: &str| name.rsplit('/').next().unwrap().to_owned();
    let refused: Vec<_> = refused.iter().map(|(name, why)| (file(name), why.as_str())).collect();
    let expected = [
        (
            "model_external_both.circle",
            "buffer 1 has bytes in the tables and outside of them, expected one of both",
        ),
        ("model_external_cut.circle", "buffer 1 needs 16 bytes at byte 512 of a file of 520 bytes"),
        (
            "model_external_overflow.circle",
            "buffer 1 needs 16 bytes at byte 18446744073709551608 of a file of 408 bytes",
        ),
    ];
    let files =
        "model has an archive of files behind it, which is kept with the feature `archive` only";
    let files = (!cfg!(feature = "archive")).then_some(("model_files.tflite", files));
    let expected = expected.into_iter().chain(files);
    let expected: Vec<_> = expected.map(|(name, why)| (name.to_owned(), why)).collect();
    assert_eq!(refused, expected);
}

/// Everything that validation finds in what was written, it finds in what was read.
#[test]
fn nothing_new_is_found() {
    for (name, reader) in models() {
        let Ok(bytes) = rewritten(&reader) else { continue };
        let found = Reader::options().schema(reader.model().schema).from_bytes(bytes).unwrap();
        let found_in = |reader: &Reader| -> Vec<(String, String)> {
            let found = reader.diagnoses().into_iter();
            found
                .map(|found| (found.finding.rule.to_string(), found.finding.message.clone()))
                .collect()
        };
        let before = found_in(&reader);
        for (rule, message) in found_in(&found) {
            assert!(before.contains(&(rule.clone(), message.clone())), "{name}: {rule}: {message}");
        }
    }
}

/// A small model of one operator: `sum = x + one`.
fn add(schema: Schema) -> ModelBuilder {
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x", TensorType::Float32, [1, 2]));
    let one = graph.constant(Tensor::new("one", TensorType::Float32, [1]), vec![0, 0, 128, 63]);
    let sum = graph.output(Tensor::new("sum", TensorType::Float32, [1, 2]));
    let options = AddOptions { pot_scale_int16: false, ..AddOptions::default() };
    graph.operator(BuiltinOperator::ADD, Operator::new([x, one], [sum]).options(options));
    graph.finish();
    model
}

#[test]
fn built_models_are_valid() {
    for schema in [Schema::Circle, Schema::Tflite] {
        let model = add(schema).finish();
        let bytes = model.to_bytes().unwrap();
        let reader = Reader::from_bytes(bytes).unwrap();
        assert_eq!(reader.model(), &model);
        assert_eq!(reader.identifier(), Some(schema));
        assert_eq!(reader.diagnoses(), []);
        assert_eq!(reader.tables_len(), Some(reader.source().len()));
        assert_eq!(reader.tensor("one").unwrap().bytes().unwrap(), [0, 0, 128, 63][..]);
    }
}

#[test]
fn codes_are_stored_in_both_fields() {
    for (operator, deprecated) in [
        (BuiltinOperator::ADD, 0),
        (BuiltinOperator::BATCH_MATMUL, 126),
        (BuiltinOperator::CUMSUM, 127),
        (BuiltinOperator::RMS_NORM, -6),
    ] {
        let code = OperatorCode::new(operator);
        assert_eq!(code.deprecated_builtin_code, deprecated, "{operator}");
        assert_eq!((code.operator(), code.operator_in_tflite()), (operator, operator));
    }
}

/// A model with buffers of several lengths, one of them metadata.
fn lengths() -> Model {
    let mut model = add(Schema::Circle).finish();
    for len in [1, 2, 15, 16, 17, 1000] {
        let data: Vec<u8> = (0..=255).cycle().take(len).collect();
        let buffer = model.add_buffer(data);
        let name = format!("{len} bytes");
        let tensor = Tensor::new(name, TensorType::Uint8, [i32::try_from(len).unwrap()]);
        model.subgraphs[0].tensors.push(Tensor { buffer, ..tensor });
    }
    model.set_metadata("license", "MIT");
    model
}

/// Tools for Circle write it so: padding between payloads, none behind the last one.
#[test]
fn bytes_outside_start_at_multiples_of_16() {
    let model = lengths();
    let options = placed(BufferPlacement::Outside);
    let bytes = options.write_to(Vec::new(), &model).finish().unwrap();
    let reader = Reader::from_bytes(bytes).unwrap();
    let found: Vec<_> = reader.model().buffers.iter().map(|b| (b.len(), b.is_external())).collect();
    let expected = [
        (0, false),
        (4, true),
        (1, false),
        (2, true),
        (15, true),
        (16, true),
        (17, true),
        (1000, true),
        (3, false),
    ];
    assert_eq!(found, expected);
    let mut end = reader.tables_len().unwrap();
    for buffer in reader.model().buffers.iter().filter(|buffer| buffer.is_external()) {
        assert_eq!(buffer.offset, end.next_multiple_of(16));
        end = buffer.offset + buffer.size;
    }
    assert_eq!(end, reader.source().len());
    assert_eq!(whole(&reader), model);
}

#[test]
fn bytes_in_tables_start_at_multiples_of_16() {
    let model = lengths();
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let constants: Vec<_> = reader.tensors().collect();
    assert_eq!(constants.len(), 7);
    for constant in constants {
        assert_eq!(constant.stored_extent().unwrap().offset() % 16, 0, "{}", constant.path());
    }
}

/// Returns a model with files behind it.
fn with_files() -> Reader {
    let model = add(Schema::Tflite).finish();
    let before = model.to_bytes().unwrap();
    let len = before.len() as u64;
    let mut archive = ArchiveWriter::behind(before, len);
    archive.add("labels.txt", b"cat\ndog\n", &EntryOptions::default()).unwrap();
    archive.add("empty", b"", &EntryOptions::default()).unwrap();
    Reader::from_bytes(archive.finish().unwrap()).unwrap()
}

#[cfg(not(feature = "archive"))]
#[test]
fn associated_files_are_not_lost() {
    let error = rewritten(&with_files()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model has an archive of files behind it, which is kept with the feature `archive` only"
    );
}

/// Offsets count from the start of the model, which has another length than before.
#[cfg(feature = "archive")]
#[test]
fn associated_files_survive() {
    use circle_format::tensor_core::{Profile, Source};
    use model_archive::Archive;

    let reader = with_files();
    for description in ["", "longer than before", &"x".repeat(5000)] {
        let changed = Model { description: Some(description.to_owned()), ..reader.model().clone() };
        let bytes = Writer::new(Vec::new(), &changed).origin(&reader).finish().unwrap();
        let found = Reader::from_bytes(bytes.clone()).unwrap();
        assert_eq!(found.model(), &changed);
        let rules: Vec<_> = found.diagnoses().into_iter().map(|found| found.finding.rule).collect();
        assert_eq!(rules, ["model/associated-files"]);
        // Whoever does not look at what stands before the archive finds it, too.
        let options = Archive::options().profile(Profile::Lenient);
        let archive = options.from_source(Source::from_bytes(bytes)).unwrap();
        let labels = archive.entry("labels.txt").unwrap();
        assert_eq!(labels.bytes().unwrap(), b"cat\ndog\n"[..]);
        assert_eq!(archive.entries().len(), 2);
    }
    let bytes = rewritten(&reader).unwrap();
    test_support::assert_bytes(&bytes, reader.source().as_slice().unwrap(), "the same model");
}

#[test]
fn bytes_that_nothing_refers_to_survive() {
    let mut bytes = add(Schema::Circle).finish().to_bytes().unwrap();
    bytes.extend_from_slice(&[0; 16]);
    bytes.extend_from_slice(b"a note of somebody");
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    let written = rewritten(&reader).unwrap();
    test_support::assert_bytes(&written, &bytes, "what was read");
}

/// Padding behind the tables is not among that.
#[test]
fn padding_is_not_copied() {
    let bytes = add(Schema::Circle).finish().to_bytes().unwrap();
    let reader = Reader::from_bytes([&bytes[..], &[0; 16]].concat()).unwrap();
    let written = rewritten(&reader).unwrap();
    test_support::assert_bytes(&written, &bytes, "without padding");
}

#[test]
fn large_custom_options_move_with_the_file() {
    let mut model = add(Schema::Circle).finish();
    model.operator_codes[0] = OperatorCode::custom("Own");
    model.subgraphs[0].operators[0].options = None;
    let operator = &mut model.subgraphs[0].operators[0];
    operator.large_custom_options_offset = 8;
    operator.large_custom_options_size = 12;
    let error = model.to_bytes().unwrap_err().to_string();
    let expected = "subgraph 0/operator 0 has bytes at byte 8 of a file, and there is none to read \
                    them from";
    assert_eq!(error, expected);

    let tables = add(Schema::Circle).finish().to_bytes().unwrap();
    let origin = Reader::from_bytes(tables.clone()).unwrap();
    let bytes = Writer::new(Vec::new(), &model).origin(&origin).finish().unwrap();
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    let operator = &reader.model().subgraphs[0].operators[0];
    let start = usize::try_from(operator.large_custom_options_offset).unwrap();
    assert_eq!((start % 16, operator.large_custom_options_size), (0, 12));
    test_support::assert_bytes(&bytes[start..], &tables[8..20], "options");
}

/// A sink that keeps nothing but the start.
#[derive(Default)]
struct Start {
    bytes: Vec<u8>,
    len: u64,
}

impl std::io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = (1_usize << 16).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// 2 GiB of constants, of which 64 MiB are in memory.
#[test]
fn constants_beyond_the_tables_go_outside() {
    const LEN: usize = 64 << 20;
    let mut model = add(Schema::Circle).finish();
    let zeros = Bytes::from(vec![0; LEN]);
    for at in 0..32 {
        let buffer = model.add_buffer(zeros.clone());
        let tensor = Tensor::new(format!("w{at}"), TensorType::Int8, [i32::try_from(LEN).unwrap()]);
        model.subgraphs[0].tensors.push(Tensor { buffer, ..tensor });
    }
    let inline = placed(BufferPlacement::Inline).write_to(Start::default(), &model);
    let error = inline.finish().err().unwrap().to_string();
    assert!(error.starts_with("model needs 2147"), "{error}");
    assert!(error.ends_with("bytes in its tables, which reach 2147483647"), "{error}");

    let written = Writer::new(Start::default(), &model).finish().unwrap();
    let mut bytes = written.bytes;
    let tables = bytes.len();
    // All that is behind the first of them would be zeros.
    bytes.resize(tables.next_multiple_of(16), 0);
    let reader = Reader::from_bytes(bytes).unwrap();
    let buffers = &reader.model().buffers;
    assert_eq!((buffers.len(), buffers[0].is_external()), (34, false));
    assert!(buffers[1..].iter().all(Buffer::is_external));
    let last = buffers.last().unwrap();
    assert_eq!((last.offset + last.size, last.size), (written.len, LEN as u64));
}

/// Only bytes that are written are read, in pieces.
#[test]
fn nothing_is_read_twice() {
    let model = lengths();
    let options = placed(BufferPlacement::Outside);
    let bytes = options.write_to(Vec::new(), &model).finish().unwrap();
    let store = CountingSource::new(&bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    let before = store.total();
    let written = rewritten(&reader).unwrap();
    test_support::assert_bytes(&written, &bytes, "what was read");
    let outside: u64 = reader.model().buffers.iter().map(|buffer| buffer.size).sum();
    assert!(store.total() - before <= outside + 64, "{} of {outside}", store.total() - before);
}

#[track_caller]
fn refused(model: &Model, message: &str) {
    let error = model.to_bytes().unwrap_err();
    assert_eq!(error.to_string(), message);
}

/// Returns a model with one thing changed.
fn changed(schema: Schema, change: impl FnOnce(&mut Model)) -> Model {
    let mut model = add(schema).finish();
    change(&mut model);
    model
}

fn quantized(details: QuantizationDetails) -> impl FnOnce(&mut Model) {
    let quantization = Quantization { details: Some(details), ..Quantization::default() };
    |model| model.subgraphs[0].tensors[1].quantization = Some(Box::new(quantization))
}

#[test]
fn what_circle_has_not() {
    let circle = |change: &dyn Fn(&mut Model), message| {
        refused(&changed(Schema::Circle, change), message);
        // The same in TFLite can be written, and not be converted.
        let tflite = changed(Schema::Tflite, change);
        tflite.to_bytes().unwrap();
        assert_eq!(tflite.to_schema(Schema::Circle).unwrap_err().to_string(), message);
    };
    circle(
        &|model| model.subgraphs[0].tensors[2].tensor_type = TensorType::Int2,
        "subgraph 0/tensor 2 has the element type INT2, which circle has not",
    );
    circle(
        &|model| model.subgraphs[0].tensors[2].tensor_type = TensorType::Float8E4m3fn,
        "subgraph 0/tensor 2 has the element type FLOAT8_E4M3FN, which circle has not",
    );
    circle(
        &|model| model.subgraphs[0].tensors[1].external_buffer = 3,
        "subgraph 0/tensor 1 has a buffer in another file, which circle has not",
    );
    circle(
        &|model| model.external_buffers = vec![ExternalBuffer::default()],
        "model has buffers in other files, which circle has not",
    );
    circle(
        &|model| {
            let (scales, zero_points, block_size) = (0, 0, 4);
            let block_shape = vec![1, 4];
            quantized(QuantizationDetails::Blockwise {
                scales,
                zero_points,
                block_size,
                block_shape,
            })(model);
        },
        "subgraph 0/tensor 1 has a shape of blocks, which circle has not",
    );
    circle(
        &|model| {
            let (scales, zero_points, block_size) = (0, 0, 4);
            let quantized_dimensions = vec![0];
            quantized(QuantizationDetails::MultiAxis {
                scales,
                zero_points,
                block_size,
                quantized_dimensions,
            })(model);
        },
        "subgraph 0/tensor 1 has quantization over several dimensions, which circle has not",
    );
    circle(
        &|model| {
            let options =
                FullyConnectedOptions { quant_spec: vec![1].into(), ..Default::default() };
            model.subgraphs[0].operators[0].options = Some(options.into());
        },
        "subgraph 0/operator 0 has the option quant_spec, which circle has not",
    );
}

#[test]
fn what_tflite_has_not() {
    let tflite = |change: &dyn Fn(&mut Model), message| {
        refused(&changed(Schema::Tflite, change), message);
        let circle = changed(Schema::Circle, change);
        circle.to_bytes().unwrap();
        assert_eq!(circle.to_schema(Schema::Tflite).unwrap_err().to_string(), message);
    };
    tflite(
        &|model| {
            let weights_format = FullyConnectedOptionsWeightsFormat::SHUFFLED16x1FLOAT32;
            let options = FullyConnectedOptions { weights_format, ..Default::default() };
            model.subgraphs[0].operators[0].options = Some(options.into());
        },
        "subgraph 0/operator 0 has the weights format SHUFFLED16x1FLOAT32, which tflite has not",
    );
    tflite(
        &|model| model.subgraphs[0].tensors[2].tensor_type = TensorType::GgmlQ4_0,
        "subgraph 0/tensor 2 has the element type GGML_Q4_0, which tflite has not",
    );
    tflite(
        &|model| model.subgraphs[0].tensors[2].compression = CompressionType::HUFFMAN,
        "subgraph 0/tensor 2 has compressed elements, which tflite has not",
    );
    tflite(
        &|model| model.subgraphs[0].data_format = DataFormat::CHANNELS_FIRST,
        "subgraph 0 has a place of the channels, which tflite has not",
    );
    tflite(
        &|model| quantized(QuantizationDetails::Mx { axis: 1 })(model),
        "subgraph 0/tensor 1 has quantization by MX blocks, which tflite has not",
    );
    tflite(
        &|model| {
            model.subgraphs[0].operators[0].options = Some(RmsNormOptions::default().into());
        },
        "subgraph 0/operator 0 has the table RmsNormOptions, which tflite has not",
    );
}

/// What a later release of the schema adds is read past, and never lost silently.
#[test]
fn what_is_not_known_is_not_lost() {
    let mut bytes = add(Schema::Circle).finish().to_bytes().unwrap();
    // The list of fields of the root: two more bytes of it, which lie in what follows.
    let root = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let distance = i32::from_le_bytes(bytes[root..root + 4].try_into().unwrap());
    let list = root.checked_add_signed(-distance as isize).unwrap();
    let moved = bytes.len();
    let len = u16::from_le_bytes(bytes[list..list + 2].try_into().unwrap());
    let fields = bytes[list + 2..list + usize::from(len)].to_vec();
    bytes.extend_from_slice(&22_u16.to_le_bytes());
    bytes.extend_from_slice(&fields);
    bytes.resize(moved + 20, 0);
    bytes.extend_from_slice(&4_u16.to_le_bytes());
    let distance = i32::try_from(root).unwrap() - i32::try_from(moved).unwrap();
    bytes[root..root + 4].copy_from_slice(&distance.to_le_bytes());
    let reader = Reader::from_bytes(bytes).unwrap();
    assert_eq!(reader.unknown_field(), Some(root as u64));
    let error = rewritten(&reader).unwrap_err().to_string();
    let expected =
        format!("model has unknown fields in the table at byte {root}, which would be lost");
    assert_eq!(error, expected);
    let rules: Vec<_> = reader.diagnoses().into_iter().map(|found| found.finding.rule).collect();
    assert!(rules.contains(&"model/unknown-field".into()), "{rules:?}");
}

#[test]
fn tflite_becomes_circle() {
    let mut model = lengths();
    model.schema = Schema::Tflite;
    model.version = 3;
    model.operator_codes.push(OperatorCode {
        // What old files and TFLite agree on is not what onert reads in Circle.
        deprecated_builtin_code: 0,
        builtin_code: BuiltinOperator::SUB,
        version: 2,
        custom_code: None,
    });
    model.operator_codes.push(OperatorCode::custom("Own"));
    model.subgraphs[0].tensors[2].tensor_type = TensorType::Uint4;
    let tflite = model.to_bytes().unwrap();
    let tflite = Reader::from_bytes(tflite).unwrap();
    let circle = tflite.model().to_schema(Schema::Circle).unwrap();
    let bytes = Writer::new(Vec::new(), &circle).origin(&tflite).finish().unwrap();
    assert_eq!(bytes[4..8], *b"CIR0");
    let read = Reader::from_bytes(bytes).unwrap();
    let mut expected = model.clone();
    (expected.schema, expected.version) = (Schema::Circle, 0);
    expected.operator_codes[1] =
        OperatorCode { version: 2, ..OperatorCode::new(BuiltinOperator::SUB) };
    assert_eq!(read.model(), &expected);
    assert_eq!(read.model().to_schema(Schema::Circle).unwrap(), expected);
    // And back: what old files say in the other field is in both.
    model.operator_codes[1] = expected.operator_codes[1].clone();
    assert_eq!(expected.to_schema(Schema::Tflite).unwrap(), model);
}

#[test]
fn numbers_without_a_meaning_are_not_converted() {
    let model =
        changed(Schema::Tflite, |model| model.operator_codes[0] = BuiltinOperator::RMS_NORM.into());
    let error = model.to_schema(Schema::Circle).unwrap_err().to_string();
    assert_eq!(error, "operator code 0 has the code -6, of which nothing is known");
    let model = Model { schema: Schema::Circle, ..model };
    let error = model.to_schema(Schema::Tflite).unwrap_err().to_string();
    assert_eq!(error, "operator code 0 has the operator RMS_NORM, which tflite has not");
    let model = changed(Schema::Circle, |model| {
        model.operator_codes[0] = BuiltinOperator::from_code(-99).into();
    });
    let error = model.to_schema(Schema::Tflite).unwrap_err().to_string();
    assert_eq!(error, "operator code 0 has the code -99, of which nothing is known");
    let model = changed(Schema::Tflite, |model| {
        model.subgraphs[0].tensors[0].tensor_type = TensorType::Unknown(77);
    });
    let error = model.to_schema(Schema::Circle).unwrap_err().to_string();
    assert_eq!(error, "subgraph 0/tensor 0 has the element type 77, of which nothing is known");
}

#[test]
fn metadata_comes_and_goes() {
    let mut model = add(Schema::Circle).finish();
    let (buffers, first) = (model.buffers.len(), model.clone());
    model.set_metadata("a", "one");
    model.set_metadata("b", "two");
    model.set_metadata("a", "three");
    assert_eq!(model.buffers.len(), buffers + 2);
    assert_eq!(model.metadata("a").unwrap(), &b"three"[..]);
    // A buffer of a tensor keeps its bytes.
    model.metadata[1].buffer = 1;
    model.set_metadata("b", "four");
    assert_eq!(model.buffers[1].data, [0, 0, 128, 63][..]);
    assert_eq!(model.metadata("b").unwrap(), &b"four"[..]);
    model.subgraphs[0].debug_metadata_index = 1;
    model.subgraphs[0].operators[0].debug_metadata_index = 0;
    assert!(model.remove_metadata("a") && !model.remove_metadata("a"));
    let graph = &model.subgraphs[0];
    assert_eq!((graph.debug_metadata_index, graph.operators[0].debug_metadata_index), (0, -1));
    assert!(model.remove_metadata("b"));
    assert_eq!(model.drop_unused_buffers(), 3);
    assert_eq!(model, {
        let mut first = first;
        first.subgraphs[0].debug_metadata_index = -1;
        first
    });
}

#[test]
fn unused_buffers_are_dropped() {
    let mut model = lengths();
    model.metadata.push(Metadata { name: Some("past".to_owned()), buffer: 99 });
    model.metadata_buffer = vec![3, -1];
    // The tensors of 1 and 15 bytes.
    model.subgraphs[0].tensors.remove(5);
    model.subgraphs[0].tensors.remove(3);
    assert_eq!(model.drop_unused_buffers(), 2);
    let lens: Vec<_> = model.buffers.iter().map(Buffer::len).collect();
    assert_eq!(lens, [0, 4, 2, 16, 17, 1000, 3]);
    let buffers: Vec<_> = model.subgraphs[0].tensors.iter().map(|tensor| tensor.buffer).collect();
    assert_eq!(buffers, [0, 1, 0, 2, 3, 4, 5]);
    assert_eq!((model.metadata[0].buffer, model.metadata[1].buffer), (6, 99));
    assert_eq!(model.metadata_buffer, [2, -1]);
    assert_eq!(model.drop_unused_buffers(), 0);
}

#[test]
fn names_are_exchanged_at_once() {
    let mut model = add(Schema::Circle).finish();
    assert_eq!(model.rename_tensors([("x", "sum"), ("sum", "x"), ("none", "any")]), 2);
    let names: Vec<_> =
        model.subgraphs[0].tensors.iter().map(|tensor| tensor.name.clone().unwrap()).collect();
    assert_eq!(names, ["sum", "one", "x"]);
}

#[test]
fn signatures_come_and_go() {
    let mut model = add(Schema::Tflite).finish();
    let named =
        |name: &str, tensor_index| SignatureTensor { name: Some(name.to_owned()), tensor_index };
    let signature = |input: &str| Signature {
        inputs: vec![named(input, 0)],
        outputs: vec![named("y", 2)],
        key: Some("serve".to_owned()),
        ..Signature::default()
    };
    model.set_signature(signature("a"));
    model.set_signature(signature("b"));
    assert_eq!(model.signatures, [signature("b")]);
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    assert_eq!((reader.model(), reader.diagnoses()), (&model, vec![]));
    assert_eq!(reader.model().signature("serve"), Some(&signature("b")));
    assert!(model.remove_signature("serve") && !model.remove_signature("serve"));
}

#[test]
fn files_are_edited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.circle");
    let options = placed(BufferPlacement::Outside);
    options.create(&path, &lengths()).unwrap().finish().unwrap();
    let before = fs::read(&path).unwrap();

    let editor = Editor::open(&path).unwrap();
    for editor in [Editor::open(&path), Editor::dry_run(&path, options)] {
        let error = editor.unwrap_err().to_string();
        assert!(error.contains("is locked"), "{error}");
    }
    assert_eq!(editor.commit().unwrap(), Edited::Unchanged);
    assert_eq!(fs::read(&path).unwrap(), before);

    // A dry run says what would be, and does nothing.
    let mut editor = Editor::dry_run(&path, WriteOptions::default()).unwrap();
    editor.model_mut().set_metadata("license", "Apache-2.0");
    editor.model_mut().rename_tensors([("x", "input")]);
    let said = editor.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);

    let mut editor = Editor::open(&path).unwrap();
    editor.model_mut().set_metadata("license", "Apache-2.0");
    editor.model_mut().rename_tensors([("x", "input")]);
    let expected = editor.model().clone();
    let done = editor.commit().unwrap();
    let after = fs::metadata(&path).unwrap().len();
    assert_eq!(done, Edited::Replaced { before: before.len() as u64, after });
    assert_eq!(said, done);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.model().metadata, expected.metadata);
    assert_eq!(reader.model().subgraphs, expected.subgraphs);
    assert_eq!(reader.model().metadata("license").unwrap(), &b"Apache-2.0"[..]);
    for (name, len) in [("15 bytes", 15), ("1000 bytes", 1000)] {
        let expected: Vec<u8> = (0..=255).cycle().take(len).collect();
        assert_eq!(reader.tensor(name).unwrap().bytes().unwrap(), expected);
    }
    drop(reader);

    let editor = Editor::open_with(&path, placed(BufferPlacement::Inline)).unwrap();
    assert!(editor.commit().unwrap().has_changed());
    let reader = Reader::open(&path).unwrap();
    assert!(!reader.model().buffers.iter().any(Buffer::is_external));
}

#[test]
fn refused_edits_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.circle");
    Writer::create(&path, &add(Schema::Circle).finish()).unwrap().finish().unwrap();
    let before = fs::read(&path).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.model_mut().subgraphs[0].tensors[0].tensor_type = TensorType::Int2;
    let error = editor.commit().unwrap_err().to_string();
    assert_eq!(error, "subgraph 0/tensor 0 has the element type INT2, which circle has not");
    assert_eq!(fs::read(&path).unwrap(), before);

    let checked = WriteOptions::default();
    for (options, is_refused) in [(checked, true), (checked.unchecked(), false)] {
        for editor in [Editor::dry_run(&path, options), Editor::open_with(&path, options)] {
            assert_eq!(fs::read(&path).unwrap(), before);
            let mut editor = editor.unwrap();
            editor.model_mut().subgraphs[0].operators[0].inputs[0] = 9;
            let refused = editor.commit().map_err(|error| error.to_string()).err();
            assert_eq!(refused.is_some(), is_refused, "{refused:?}");
        }
    }
    fs::write(&path, &before).unwrap();

    let mut editor = Editor::open(&path).unwrap();
    editor.model_mut().description = Some("new".to_owned());
    fs::rename(&path, folder.path().join("old.circle")).unwrap();
    fs::write(&path, b"of somebody else").unwrap();
    let error = editor.commit().unwrap_err().to_string();
    assert!(error.contains("replaced"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"of somebody else");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// Whatever can be read can be written or is refused, and what was written is as it was.
#[test]
fn changed_bytes_are_written_as_they_are_read() {
    let bytes = lengths().to_bytes().unwrap();
    let mut written = 0;
    test_support::mutations(&bytes, |changed| {
        let Ok(reader) = Reader::from_bytes(changed.to_vec()) else { return };
        let Ok(bytes) = rewritten(&reader) else { return };
        let found = Reader::from_bytes(bytes.clone()).unwrap();
        let again = rewritten(&found).unwrap();
        test_support::assert_bytes(&again, &bytes, "written again");
        written += 1;
    });
    assert!(written > 1000, "{written}");
}

/// Returns a file with 64 KiB behind its tables, and its model.
fn with_bytes_outside() -> (Reader, Model) {
    let mut model = add(Schema::Circle).finish();
    model.add_buffer((0..=u8::MAX).cycle().take(1 << 16).collect::<Vec<_>>());
    let options = placed(BufferPlacement::Outside);
    let bytes = options.write_to(Vec::new(), &model).finish().unwrap();
    let reader = Reader::from_bytes(bytes).unwrap();
    let model = reader.model().clone();
    (reader, model)
}

#[test]
fn shared_bytes_stay_shared() {
    let (reader, mut model) = with_bytes_outside();
    let shared = model.buffers.last().unwrap().clone();
    model.buffers.extend(vec![shared.clone(); 99]);
    for (placement, copies) in
        [(BufferPlacement::Keep, 1), (BufferPlacement::Inline, 100), (BufferPlacement::Outside, 1)]
    {
        let writer = placed(placement).write_to(Vec::new(), &model).origin(&reader);
        let written = Reader::from_bytes(writer.finish().unwrap()).unwrap();
        let len = written.source().len();
        assert!((copies << 16..(copies << 16) + 20_000).contains(&len), "{placement:?}: {len}");
        let first = model.buffers.len() - 100;
        for buffer in &written.model().buffers[first..] {
            assert_eq!(content(&written, buffer), content(&reader, &shared), "{placement:?}");
        }
    }
}

/// A file could ask for any amount of bytes otherwise.
#[test]
fn bytes_shared_in_part_are_bounded() {
    let (reader, mut model) = with_bytes_outside();
    let shared = model.buffers.last().unwrap().clone();
    model.buffers.extend((0..300).map(|skip| {
        let (offset, size) = (shared.offset + skip, shared.size - skip);
        Buffer { offset, size, ..Buffer::default() }
    }));
    let error = Writer::new(Vec::new(), &model).origin(&reader).finish().unwrap_err();
    let limit = reader.source().len() * 200;
    let message = format!("over the limit of {limit} (Limits::expansion)");
    assert!(error.to_string().ends_with(&message), "{error}");
    model.buffers.truncate(model.buffers.len() - 150);
    Writer::new(Vec::new(), &model).origin(&reader).finish().unwrap();
}

/// Many entries of one name, in a model of many operators, go at once.
#[test]
fn metadata_of_one_name_go_at_once() {
    let mut model = add(Schema::Circle).finish();
    let entry = Metadata { name: Some("x".to_owned()), buffer: 1 };
    model.metadata = vec![entry; 100_000];
    model.metadata[50_000].name = Some("y".to_owned());
    let operator = Operator { debug_metadata_index: 50_000, ..Operator::default() };
    model.subgraphs[0].operators = vec![operator; 100_000];
    model.subgraphs[0].operators[7].debug_metadata_index = 7;
    model.subgraphs[0].operators[8].debug_metadata_index = 100_000;
    let start = Instant::now();
    assert!(model.remove_metadata("x"));
    // Going through all operators for each entry would take minutes.
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    assert_eq!(model.metadata, [Metadata { name: Some("y".to_owned()), buffer: 1 }]);
    let operators = &model.subgraphs[0].operators;
    let indices: Vec<_> = operators[6..10].iter().map(|of| of.debug_metadata_index).collect();
    assert_eq!(indices, [0, -1, 100_000, 0]);
    assert!(!model.remove_metadata("x"));
}
