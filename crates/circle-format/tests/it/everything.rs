//! Models with something of everything read as what was put into them, in both schemas.

use std::fs;

use circle_format::{
    Reader,
    model::{
        CompressionType, CustomOptionsFormat, DataFormat, DimensionType, ExternalBuffer, Model,
        Operator, OperatorCode, Quantization, QuantizationDetails, Schema, SparseIndices, Tensor,
        TensorType, options::OptionValue,
    },
    tensor_core::Limits,
};
use serde_json::{Value as Json, json};
use test_support::testdata;

fn open(schema: Schema) -> Reader {
    Reader::open(testdata("nnpackage/valid").join(format!("everything.{schema}"))).unwrap()
}

const SCHEMAS: [Schema; 2] = [Schema::Circle, Schema::Tflite];

/// Each operator has one member of a union, all fields set to something else than their default.
#[test]
fn options_are_what_was_stored() {
    for schema in SCHEMAS {
        let reader = open(schema);
        let path = testdata("nnpackage/valid").join(format!("everything.{schema}.options.json"));
        let facts: Vec<Json> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let operators = &reader.model().subgraphs[0].operators;
        let count = if schema == Schema::Circle { 134 + 23 } else { 126 + 23 };
        assert_eq!((operators.len(), facts.len()), (count, count));
        for (operator, facts) in operators.iter().zip(&facts) {
            let (union, tag, name, fields) = describe(operator);
            let at = format!("{schema} {name}");
            assert_eq!(json!(union), facts["union"], "{at}");
            assert_eq!(json!(tag), facts["tag"], "{at}");
            assert_eq!(json!(name), facts["name"], "{at}");
            let mut expected = facts["fields"].as_object().unwrap().clone();
            for (field, value) in fields {
                // TFLite has two names of its own, and one field.
                let key = match (schema, field) {
                    (Schema::Tflite, "adjoint_lhs") => "adj_x",
                    (Schema::Tflite, "adjoint_rhs") => "adj_y",
                    (Schema::Circle, "quant_spec") => continue,
                    _ => field,
                };
                let fact =
                    expected.remove(key).unwrap_or_else(|| panic!("{at} has {field} too much"));
                same(&value, &fact, &format!("{at}.{field}"));
            }
            assert!(expected.is_empty(), "{at} lacks {expected:?}");
        }
    }
}

type Described<'a> = (&'static str, u8, &'static str, Vec<(&'static str, OptionValue<'a>)>);

fn describe(operator: &Operator) -> Described<'_> {
    match (&operator.options, &operator.options_2) {
        (Some(options), None) => {
            ("BuiltinOptions", options.tag(), options.name().unwrap(), options.fields())
        }
        (None, Some(options)) => {
            ("BuiltinOptions2", options.tag(), options.name().unwrap(), options.fields())
        }
        _ => panic!("{operator:?}"),
    }
}

#[track_caller]
fn same(found: &OptionValue<'_>, expected: &Json, at: &str) {
    let found = match found {
        OptionValue::Bool(value) => json!(value),
        OptionValue::Int(value) => json!(value),
        OptionValue::Float(value) => json!(value),
        OptionValue::Number { name, .. } => json!(name),
        OptionValue::Bools(values) => json!(values),
        OptionValue::Ints(values) => json!(values),
        OptionValue::Floats(values) => json!(values),
        OptionValue::Numbers(values) => values.iter().map(|(name, _)| json!(name)).collect(),
        OptionValue::Text(text) => json!(text),
        OptionValue::Bytes(bytes) => json!(bytes.to_vec()),
        other => panic!("{at}: {other:?}"),
    };
    assert_eq!(&found, expected, "{at}");
}

fn tensor<'a>(model: &'a Model, name: &str) -> &'a Tensor {
    let tensors = &model.subgraphs[0].tensors;
    tensors.iter().find(|tensor| tensor.name.as_deref() == Some(name)).unwrap()
}

fn details(model: &Model, name: &str) -> QuantizationDetails {
    tensor(model, name).quantization.clone().unwrap().details.unwrap()
}

#[test]
fn quantization() {
    for schema in SCHEMAS {
        let reader = open(schema);
        let model = reader.model();
        let per_axis = tensor(model, "per axis").quantization.clone().unwrap();
        let expected = Quantization {
            min: vec![-1.5],
            max: vec![1.5],
            scale: vec![0.5, 0.25],
            zero_point: vec![0, -3],
            details: None,
            quantized_dimension: 0,
        };
        assert_eq!(*per_axis, expected);
        assert!(per_axis.is_per_axis() && per_axis.is_quantized());
        assert_eq!(details(model, "custom"), QuantizationDetails::Custom(vec![7, 8, 9].into()));
        let block_shape = if schema == Schema::Tflite { vec![1, 4] } else { vec![] };
        let (scales, zero_points, block_size) = (2, 3, 4);
        let expected =
            QuantizationDetails::Blockwise { scales, zero_points, block_size, block_shape };
        assert_eq!(details(model, "blockwise"), expected);
        let (name, expected) = match schema {
            Schema::Circle => ("mx", QuantizationDetails::Mx { axis: 1 }),
            Schema::Tflite => {
                let quantized_dimensions = vec![0, 1];
                let expected = QuantizationDetails::MultiAxis {
                    scales,
                    zero_points,
                    block_size,
                    quantized_dimensions,
                };
                ("multi axis", expected)
            }
        };
        assert_eq!(details(model, name), expected);
    }
}

#[test]
fn sparsity() {
    for schema in SCHEMAS {
        let reader = open(schema);
        let sparsity = tensor(reader.model(), "sparse").sparsity.as_ref().unwrap();
        assert_eq!(
            (&sparsity.traversal_order[..], &sparsity.block_map[..]),
            (&[0, 1][..], &[][..])
        );
        let [dense, sparse] = &sparsity.levels[..] else { panic!("{sparsity:?}") };
        assert_eq!((dense.format, dense.dense_size), (DimensionType::DENSE, 2));
        assert_eq!(sparse.format, DimensionType::SPARSE_CSR);
        assert_eq!(sparse.segments, Some(SparseIndices::I32(vec![0, 1, 3])));
        assert_eq!(sparse.indices, Some(SparseIndices::U16(vec![2, 0, 3])));
        let constant = reader.tensor("sparse").unwrap();
        assert_eq!(constant.stored_bytes().unwrap(), [1, 2, 3][..]);
        let error = constant.bytes().unwrap_err().to_string();
        let expected = "subgraph 0/tensor 5 \"sparse\" is sparse: its elements are not stored in the \
                        order of its shape";
        assert_eq!(error, expected);
    }
}

#[test]
fn tensors() {
    for schema in SCHEMAS {
        let reader = open(schema);
        let model = reader.model();
        let x = tensor(model, "x");
        assert_eq!(x.shape_signature.as_deref(), Some(&[-1, 4][..]));
        assert!(x.has_rank && x.is_dynamic() && !x.is_variable);
        let y = tensor(model, "y");
        assert!(y.is_variable && !y.is_dynamic());
        let [variant] = &y.variant_tensors[..] else { panic!("{y:?}") };
        assert_eq!((&variant.shape[..], variant.tensor_type), (&[2][..], TensorType::Int16));
        let four = reader.tensor("four bits").unwrap();
        assert_eq!(four.info().unwrap().to_string(), "u4 [8]");
        assert_eq!(four.bytes().unwrap(), [0x21, 0x43, 0x65, 0x87][..]);
    }
    let circle = open(Schema::Circle);
    let ggml = circle.tensor("ggml").unwrap();
    assert_eq!(ggml.tensor().unwrap().compression, CompressionType::HUFFMAN);
    assert_eq!(ggml.stored_bytes().unwrap().len(), 18);
    let error = ggml.info().unwrap_err().to_string();
    let expected = "subgraph 0/tensor 8 \"ggml\" has elements of GGML_Q4_0, which cannot be given out \
                    as numbers";
    assert_eq!(error, expected);
    let tflite = open(Schema::Tflite);
    assert_eq!(tensor(tflite.model(), "two bits").tensor_type, TensorType::Int2);
    let elsewhere = tflite.tensor("elsewhere").unwrap();
    assert!(elsewhere.is_external());
    let error = elsewhere.bytes().unwrap_err().to_string();
    let expected =
        "subgraph 0/tensor 8 \"elsewhere\" has its elements in another file, as external buffer 5";
    assert_eq!(error, expected);
    let expected =
        ExternalBuffer { id: 5, group: 0, offset: 16, len: 8, packing: Some("p".to_owned()) };
    assert_eq!(tflite.model().external_buffers, [expected]);
    assert_eq!(tflite.model().external_groups, [Some("w.bin".to_owned())]);
}

#[test]
fn the_rest_of_a_model() {
    for schema in SCHEMAS {
        let reader = open(schema);
        let model = reader.model();
        let version = if schema == Schema::Circle { 0 } else { 3 };
        assert_eq!((model.schema, model.version), (schema, version));
        assert_eq!(model.description.as_deref(), Some("everything"));
        let names: Vec<_> = model.operator_codes.iter().map(OperatorCode::name).collect();
        assert_eq!(names, ["GELU", "CUSTOM:MyOp"]);
        assert_eq!(model.operator_codes[0].version, 4);
        assert_eq!(model.metadata_buffer, [1, 2]);
        assert_eq!(model.metadata[0].name.as_deref(), Some("min_runtime_version"));
        let signature = &model.signatures[0];
        assert_eq!((signature.key.as_deref(), signature.tag.as_deref()), (Some("k"), Some("t")));
        assert_eq!(signature.outputs[0].tensor_index, 1);
        let [main, other] = &model.subgraphs[..] else { panic!("two graphs") };
        assert_eq!((main.debug_metadata_index, other.debug_metadata_index), (0, -1));
        let channels = match schema {
            Schema::Circle => DataFormat::CHANNELS_FIRST,
            Schema::Tflite => DataFormat::CHANNELS_LAST,
        };
        assert_eq!(main.data_format, channels);
        let operator = &other.operators[0];
        assert_eq!((operator.opcode_index, &operator.inputs[..]), (1, &[-1][..]));
        assert_eq!(operator.custom_options.as_deref(), Some(&[0, 0, 1][..]));
        assert_eq!(operator.custom_options_format, CustomOptionsFormat::FLEXBUFFERS);
        assert_eq!(operator.mutating_variable_inputs, [true]);
        assert_eq!((operator.large_custom_options_offset, operator.debug_metadata_index), (1, 0));
        assert_eq!(reader.tables_len(), Some(reader.source().len()));
    }
}

/// One schema read as the other: what onert does where a manifest declares the wrong type.
#[test]
fn the_other_schema() {
    let limits = Limits::default();
    let bytes = fs::read(testdata("nnpackage/invalid/model_trailing.circle")).unwrap();
    let circle = Model::parse_as(bytes.clone(), Schema::Circle, &limits).unwrap();
    let mut tflite = Model::parse_as(bytes, Schema::Tflite, &limits).unwrap();
    assert_eq!(tflite.schema, Schema::Tflite);
    tflite.schema = Schema::Circle;
    assert_eq!(tflite, circle);
}
