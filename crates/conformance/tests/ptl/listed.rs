//! What we list of a model is what PyTorch has in it.

use std::collections::BTreeMap;

use ptl_spec::{Place, Quantization, Reader, Tensor};
use serde_json::{Value as Json, json};

use crate::{Made, Model, digests, sha256};

/// Describes the elements of a tensor as the scripts do.
fn described(tensor: Tensor<'_>) -> Json {
    tensor.extent().unwrap();
    let dtype = match tensor.info().unwrap().dtype.name() {
        "bool" => "bool".to_owned(),
        "c64" => "complex64".to_owned(),
        "c128" => "complex128".to_owned(),
        "bf16" => "bfloat16".to_owned(),
        name => name.replace('f', "float").replace('u', "uint").replace('i', "int"),
    };
    let dtype = dtype.replace("uintnt", "uint");
    let bytes = tensor.bytes().unwrap();
    json!({ "dtype": dtype, "shape": tensor.shape().dims(), "sha256": sha256(&bytes) })
}

/// Describes a tensor of the state as the scripts do.
fn state(tensor: Tensor<'_>, is_part: bool) -> Json {
    let mut json = described(tensor);
    if is_part {
        return json;
    }
    json["stride"] = json!(tensor.strides());
    json["offset"] = json!(tensor.storage_offset());
    match tensor.quantization() {
        None => {}
        Some(Quantization::PerTensor { scheme, scale, zero_point }) => {
            assert_eq!(scheme.name(), "per_tensor_affine");
            json["quantized"] = json!({ "scale": scale, "zero_point": zero_point });
        }
        Some(Quantization::PerChannel { scheme, axis }) => {
            assert_eq!(scheme.name(), "per_channel_affine");
            let [scales, zero_points] =
                [tensor.scales(), tensor.zero_points()].map(|part| described(part.unwrap()));
            json["quantized"] =
                json!({ "scales": scales, "zero_points": zero_points, "axis": axis });
        }
        Some(other) => panic!("{other:?}"),
    }
    json
}

fn check(model: &Model) {
    let Model { file, described, bytes, .. } = model;
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    let report = reader.validate();
    // The spec that the script puts in is an object without members.
    let is_fine = |rule: &str| ["ptl/spec-field", "ptl/no-spec"].contains(&rule);
    let grave = report.findings().iter().filter(|f| f.severity > tensor_core::Severity::Note);
    assert!(grave.clone().all(|finding| is_fine(&finding.rule)), "{file}: {report:?}");
    assert_eq!(reader.bytecode().unwrap().version, model.version(), "{file}");
    if !model.is_flat() {
        assert_eq!(digests(&reader), described["records"], "{file}");
    }
    let extra: BTreeMap<String, String> = reader
        .extra_files()
        .map(|file| {
            let content = String::from_utf8(file.bytes().unwrap().into()).unwrap();
            (file.path().to_owned(), content)
        })
        .collect();
    assert_eq!(extra, model.extra(), "{file}");
    let is_sparse = model.model == "sparse";
    let tensors = reader.tensors().unwrap().filter(|tensor| tensor.place() == Place::State);
    let found: serde_json::Map<String, Json> =
        tensors.map(|tensor| (tensor.name().to_owned(), state(tensor, is_sparse))).collect();
    assert_eq!(Json::Object(found), described["state"], "{file}");
    for sparse in reader.sparse_tensors().unwrap() {
        sparse.verify().unwrap();
    }
}

#[test]
fn records_extra_files_and_tensors() {
    let Some(made) = Made::new() else { return };
    for model in &made.models {
        check(model);
    }
    let of = |file: &str| {
        let model = made.models.iter().find(|model| model.file == file).unwrap();
        Reader::from_bytes(model.bytes.clone()).unwrap()
    };
    assert_eq!(of("sparse.ptl").sparse_tensors().unwrap().len(), 3);
    // The weights of a model that was optimised are constants, which old versions hold twice.
    for name in ["frozen", "optimized"] {
        let count = |file: &str, place| {
            of(file).tensors().unwrap().filter(|tensor| tensor.place() == place).count()
        };
        let constants = count(&format!("{name}.ptl"), Place::Constants);
        assert!(constants > 2, "{constants}");
        assert_eq!(count(&format!("{name}.ptl"), Place::Bytecode), 0);
        assert_eq!(count(&format!("{name}_flat.ptl"), Place::Constants), constants);
        for version in 4..8 {
            let file = format!("{name}_{version}.ptl");
            assert_eq!(count(&file, Place::Bytecode), constants, "{file}");
        }
    }
}
