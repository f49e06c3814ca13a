//! The generated readers of the two schemas see in what we write what they see in what we read.

use std::path::{Path, PathBuf};

use conformance::python::Client;
use nnpackage::{
    circle_format::{
        BufferPlacement, Reader as ModelReader, Schema, WriteOptions as ModelWriteOptions,
        Writer as ModelWriter,
    },
    tensor_core::Extent,
};
use serde_json::{Value as Json, json};

use crate::models;

const PLACEMENTS: [BufferPlacement; 3] =
    [BufferPlacement::Keep, BufferPlacement::Inline, BufferPlacement::Outside];

/// Dumps models by the readers of a schema; `None` where these are not installed.
#[track_caller]
fn dumps(schema: Schema, paths: &[PathBuf]) -> Option<Vec<Json>> {
    let client = match schema {
        Schema::Circle => Client::CIRCLE_SCHEMA,
        Schema::Tflite => Client::TFLITE,
    };
    let paths = paths.iter().map(PathBuf::as_path);
    let args: Vec<&Path> = std::iter::once(Path::new(schema.name())).chain(paths).collect();
    Some(serde_json::from_value(client.run("model_dump.py", &args)?).unwrap())
}

fn write(reader: &ModelReader, placement: BufferPlacement, path: &Path) -> bool {
    let options = ModelWriteOptions::default().placement(placement);
    let writer = options.create(path, reader.model()).unwrap();
    writer.origin(reader).finish().is_ok()
}

/// Every table of options and every field of both schemas are among them.
#[test]
fn models_are_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    for schema in [Schema::Circle, Schema::Tflite] {
        let (mut names, mut paths) = (Vec::new(), Vec::new());
        for (at, (name, reader)) in models::all().into_iter().enumerate() {
            if reader.identifier() != Some(schema) {
                continue;
            }
            let before = folder.path().join(format!("{at}.{schema}"));
            let bytes = reader.source().as_slice().map(<[u8]>::to_vec);
            let bytes = bytes.unwrap_or_else(|| {
                let all = Extent::first(reader.source().len());
                reader.source().read(all, "model").unwrap().to_vec()
            });
            std::fs::write(&before, bytes).unwrap();
            let mut after = Vec::new();
            for (number, placement) in PLACEMENTS.into_iter().enumerate() {
                let path = folder.path().join(format!("{at}-{number}.{schema}"));
                if write(&reader, placement, &path) {
                    after.push(path);
                }
            }
            if !after.is_empty() {
                names.push((name, after.len()));
                paths.push(before);
                paths.extend(after);
            }
        }
        assert!(names.len() > 5, "{names:?}");
        let Some(dumps) = dumps(schema, &paths) else { return };
        let mut dumps = dumps.into_iter();
        for (name, count) in names {
            let before = dumps.next().unwrap();
            for after in dumps.by_ref().take(count) {
                assert_eq!(after, before, "{name}");
            }
        }
    }
}

#[test]
fn built_models() {
    let folder = tempfile::tempdir().unwrap();
    for schema in [Schema::Circle, Schema::Tflite] {
        let path = folder.path().join("dense");
        ModelWriter::create(&path, &models::dense(schema)).unwrap().finish().unwrap();
        let Some(dumps) = dumps(schema, &[path]) else { return };
        let graph = &dumps[0]["Subgraphs"][0];
        assert_eq!(dumps[0]["Version"], json!(schema.version()));
        assert_eq!((&graph["Inputs"], &graph["Outputs"]), (&json!([0]), &json!([3])));
        let names: Vec<_> =
            graph["Tensors"].as_array().unwrap().iter().map(|tensor| &tensor["Name"]).collect();
        assert_eq!(names, ["x", "w", "b", "y"]);
        let options = &graph["Operators"][0]["BuiltinOptions"]["FullyConnectedOptions"];
        assert_eq!(options["FusedActivationFunction"], json!(1));
        let code = &dumps[0]["OperatorCodes"][0];
        assert_eq!((&code["BuiltinCode"], &code["DeprecatedBuiltinCode"]), (&json!(9), &json!(9)));
        let lens: Vec<_> =
            dumps[0]["Buffers"].as_array().unwrap().iter().map(|buffer| &buffer[0]).collect();
        assert_eq!(lens, [0, 32, 8]);
    }
}

/// But for the schema, a converted model is the same to the readers of both.
#[test]
fn converted_models() {
    let folder = tempfile::tempdir().unwrap();
    let (tflite, circle) = (folder.path().join("m.tflite"), folder.path().join("m.circle"));
    let model = models::dense(Schema::Tflite);
    ModelWriter::create(&tflite, &model).unwrap().finish().unwrap();
    let converted = model.to_schema(Schema::Circle).unwrap();
    ModelWriter::create(&circle, &converted).unwrap().finish().unwrap();
    let Some(before) = dumps(Schema::Tflite, &[tflite]) else { return };
    let Some(after) = dumps(Schema::Circle, &[circle]) else { return };
    let (mut before, mut after) = (before[0].clone(), after[0].clone());
    assert_eq!((&before["Version"], &after["Version"]), (&json!(3), &json!(0)));
    // What only the newer of the two packages knows.
    let own = ["DebugMetadataIndex", "DataFormat", "CompressionType"];
    for dump in [&mut before, &mut after] {
        dump["Version"] = Json::Null;
        for graph in dump["Subgraphs"].as_array_mut().unwrap() {
            own.iter().for_each(|name| drop(graph.as_object_mut().unwrap().remove(*name)));
            for list in ["Tensors", "Operators"] {
                for table in graph[list].as_array_mut().unwrap() {
                    own.iter().for_each(|name| drop(table.as_object_mut().unwrap().remove(*name)));
                }
            }
        }
    }
    assert_eq!(after, before);
}

/// The readers see every option that the fixtures set, and not their defaults only.
#[test]
fn fixtures_have_everything() {
    let folder = tempfile::tempdir().unwrap();
    // The package has not `StablehloCaseOptions`, which came later.
    for (schema, tables) in [(Schema::Circle, 157), (Schema::Tflite, 148)] {
        let path = folder.path().join("everything");
        assert!(write(&models::everything(schema), BufferPlacement::Keep, &path));
        let Some(dumps) = dumps(schema, &[path]) else { return };
        let operators = dumps[0]["Subgraphs"][0]["Operators"].as_array().unwrap();
        let has_options = |operator: &&Json| {
            !operator["BuiltinOptions"].is_null() || !operator["BuiltinOptions2"].is_null()
        };
        assert_eq!(operators.iter().filter(has_options).count(), tables);
    }
}
