//! Packages hold what `expected.json` says: keys that it has not are not part of the check.

use std::fs;

use circle_format::{
    flex,
    model::{Model, Subgraph, Tensor},
};
use nnpackage::{Content, GoldenData, IoRef, Library, ModelFile, ModelType, Reader};
use serde_json::{Map, Value as Json, json};
use tensor_core::digest::Algorithm;
use test_support::testdata;

/// What stands in the file for people.
const COMMENTS: [&str; 2] = ["note", "run"];

#[test]
fn packages_are_as_expected() {
    let text = fs::read(testdata("nnpackage/valid/expected.json")).unwrap();
    let expected: Map<String, Json> = serde_json::from_slice(&text).unwrap();
    assert_eq!(expected.len(), 6);
    for (name, expected) in expected {
        let bytes = fs::read(testdata("nnpackage/valid").join(&name)).unwrap();
        let reader = Reader::from_bytes(bytes).unwrap();
        for (key, expected) in expected.as_object().unwrap() {
            if !COMMENTS.contains(&key.as_str()) {
                same(&package(&reader, key), expected, &format!("{name}: {key}"));
            }
        }
    }
}

/// Asserts that everything of `expected` is in `found`.
#[track_caller]
fn same(found: &Json, expected: &Json, at: &str) {
    match (found, expected) {
        (Json::Object(found), Json::Object(expected)) => {
            for (key, expected) in expected {
                let found = found.get(key).unwrap_or_else(|| panic!("{at}.{key} is missing"));
                same(found, expected, &format!("{at}.{key}"));
            }
        }
        (Json::Array(found), Json::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{at}: {found:?}");
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                same(found, expected, &format!("{at}[{index}]"));
            }
        }
        (Json::Number(found), Json::Number(expected)) => {
            assert_eq!(found.as_f64(), expected.as_f64(), "{at}");
        }
        _ => assert_eq!(found, expected, "{at}"),
    }
}

/// Returns one thing of a package.
fn package(reader: &Reader, key: &str) -> Json {
    let manifest = reader.manifest();
    let triple = |io: &IoRef| json!([io.model, io.subgraph, io.io]);
    match key {
        "root" => json!(reader.root()),
        "version" => json!(manifest.version.numbers()),
        "version_encoding" => {
            let version = &manifest.version;
            let mut parts = [&version.major, &version.minor, &version.patch].into_iter().flatten();
            json!(if parts.all(|part| part.is_number) { "number" } else { "text" })
        }
        "models" => reader.models().map(model_file).collect(),
        "configs" => reader.config_path().into_iter().map(|path| config(reader, &path)).collect(),
        "pkg_inputs" => manifest.pkg_inputs.iter().map(triple).collect(),
        "pkg_outputs" => manifest.pkg_outputs.iter().map(triple).collect(),
        "edges" => manifest.edges().map(|(from, to)| json!([triple(&from), triple(&to)])).collect(),
        "custom_ops" => custom_ops(reader),
        "model_infos" => {
            let infos =
                reader.model_infos().unwrap().map(|(file, info)| (file.path(), info.unwrap()));
            infos.map(|(path, _)| json!(path)).collect()
        }
        "test_case" => {
            let (input, expected) =
                (reader.golden_input().unwrap(), reader.golden_expected().unwrap());
            json!({
                "input": input.file().path(),
                "expected": expected.file().path(),
                "input_values": values(input),
                "expected_values": values(expected),
            })
        }
        "unconnected_models" => {
            json!(reader.models().len() > 1 && manifest.connections.is_empty())
        }
        other => panic!("{other} is not compared"),
    }
}

fn config(reader: &Reader, path: &str) -> Json {
    let config = reader.config().unwrap().unwrap();
    let entries = config.entries().iter();
    let entries: Map<_, _> = entries.map(|entry| (entry.key.clone(), json!(entry.value))).collect();
    json!({"path": path, "entries": entries})
}

/// Returns golden data of rank 2 as lists of lists.
fn values(golden: GoldenData<'_>) -> Json {
    let list = |tensor: tensor_core::TensorBuf| -> Json {
        let columns = *tensor.info().shape.dims().last().unwrap() as usize;
        assert_eq!(tensor.info().shape.rank(), 2);
        let numbers = tensor.view().to_vec::<f32>().unwrap();
        numbers.chunks(columns).map(|row| json!(row)).collect()
    };
    golden.values().unwrap().into_iter().map(list).collect()
}

fn custom_ops(reader: &Reader) -> Json {
    let describe = |op: nnpackage::CustomOp<'_>| {
        let (name, library) = (op.name().unwrap(), op.library().unwrap());
        json!({
            "path": op.file().path(),
            "op": name.op,
            "arch": name.arch,
            "os": name.os,
            "build": name.build,
            "format": library.format.name(),
            "members": library.members,
            "exports": library.exports,
            "defines": library.exports,
        })
    };
    reader.custom_ops().unwrap().map(describe).collect()
}

fn model_file(file: ModelFile<'_>) -> Json {
    let bytes = file.file().bytes().unwrap();
    let digest = Algorithm::Sha256.digest(&bytes).to_string();
    let content = file.content().unwrap();
    let mut found = json!({
        "path": file.path(),
        "type": file.declared_type(),
        "effective_type": file.model_type().map(ModelType::name),
        "size": file.file().len().unwrap(),
        "sha256": digest.strip_prefix("sha256:"),
        "format": content.name(),
    });
    let more = match content {
        Content::Elf => json!({"elf": library(&Library::parse(&bytes).unwrap())}),
        _ => model(file),
    };
    found.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    found
}

fn library(library: &Library) -> Json {
    json!({
        "class_": library.bits,
        "machine": library.arch,
        "type": if library.is_shared { "DYN" } else { "REL" },
        "soname": library.soname,
        "exports": library.exports,
    })
}

fn model(file: ModelFile<'_>) -> Json {
    let reader = file.open().unwrap();
    let model = reader.model();
    let main = &model.subgraphs[0];
    let identifier = model.schema.identifier();
    let signatures: Json = model
        .signatures
        .iter()
        .map(|signature| {
            let graph = &model.subgraphs[signature.subgraph_index as usize];
            let names = |list: &[circle_format::model::SignatureTensor]| -> Json {
                let name = |index: u32| graph.tensors[index as usize].name.clone();
                let pairs = list.iter();
                let pairs = pairs
                    .map(|entry| (entry.name.clone().unwrap(), json!(name(entry.tensor_index))));
                Json::Object(pairs.collect())
            };
            json!({
                "key": signature.key,
                "subgraph": signature.subgraph_index,
                "inputs": names(&signature.inputs),
                "outputs": names(&signature.outputs),
            })
        })
        .collect();
    let metadata: Json = model
        .metadata
        .iter()
        .map(|entry| {
            let buffer = model.buffer(entry.buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer.data);
            json!({
                "name": entry.name,
                "buffer": entry.buffer,
                "size": buffer.len(),
                "text": text.trim_end_matches('\0'),
            })
        })
        .collect();
    let external: Json =
        reader.tensors().filter(|constant| constant.is_external()).map(external).collect();
    json!({
        "magic": String::from_utf8_lossy(&identifier),
        "schema_version": model.version,
        "flatbuffer_size": reader.tables_len(),
        "description": model.description,
        "operators": operators(model),
        "inputs": tensors(main.input_tensors()),
        "outputs": tensors(main.output_tensors()),
        "subgraphs": model.subgraphs.iter().map(subgraph).collect::<Json>(),
        "signatures": signatures,
        "metadata": metadata,
        "external_buffers": external,
        "custom_options": custom_options(model),
    })
}

fn operators(model: &Model) -> Json {
    let mut counts = Map::new();
    for operator in model.subgraphs.iter().flat_map(|graph| &graph.operators) {
        let name = model.operator_code(operator).unwrap().name();
        let count = counts.get(&*name).and_then(Json::as_u64).unwrap_or_default();
        counts.insert(name.into_owned(), json!(count + 1));
    }
    Json::Object(counts)
}

fn custom_options(model: &Model) -> Json {
    let operators = model.subgraphs.iter().flat_map(|graph| &graph.operators);
    let mut options = operators.filter_map(|operator| operator.custom_options.as_ref());
    let Some(bytes) = options.next() else { return Json::Null };
    let flex::Value::Map(members) = flex::Value::parse(bytes).unwrap() else {
        panic!("options are no map")
    };
    let members = members.into_iter().map(|(key, value)| {
        let value = match value {
            flex::Value::Int(value) => json!(value),
            flex::Value::Uint(value) => json!(value),
            flex::Value::Float(value) => json!(value),
            other => panic!("{key}: {other:?}"),
        };
        (key, value)
    });
    Json::Object(members.collect())
}

fn subgraph(graph: &Subgraph) -> Json {
    let left_out = graph.operators.iter().flat_map(|operator| &operator.inputs);
    let per_axis = graph.tensors.iter().find_map(|tensor| {
        let quantization = tensor.quantization.as_ref().filter(|found| found.is_per_axis())?;
        Some(json!({
            "tensor": tensor.name,
            "scale": quantization.scale,
            "zero_point": quantization.zero_point,
            "dimension": quantization.quantized_dimension,
        }))
    });
    json!({
        "name": graph.name,
        "tensors": graph.tensors.len(),
        "operators": graph.operators.len(),
        "inputs": tensors(graph.input_tensors()),
        "outputs": tensors(graph.output_tensors()),
        "optional_inputs": left_out.filter(|&&input| input == -1).count(),
        "quant": per_axis,
    })
}

fn tensors<'a>(tensors: impl Iterator<Item = Option<&'a Tensor>>) -> Json {
    let describe = |tensor: Option<&Tensor>| {
        let tensor = tensor.unwrap();
        json!({
            "name": tensor.name,
            "shape": tensor.shape,
            "type": tensor.tensor_type.name(),
            "shape_signature": tensor.shape_signature,
        })
    };
    tensors.map(describe).collect()
}

fn external(constant: circle_format::Tensor<'_>) -> Json {
    let extent = constant.extent().unwrap().unwrap();
    let values = constant.read().unwrap().to_vec::<f32>().unwrap();
    json!({
        "index": constant.tensor().unwrap().buffer,
        "offset": extent.offset(),
        "size": extent.len(),
        "f32": values,
    })
}
