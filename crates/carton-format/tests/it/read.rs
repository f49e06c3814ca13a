//! Cartons of the reference read as the reference read them.

use std::{io::Read as _, path::Path, sync::Arc};

use carton_format::{
    Error, File, FileReader, Named, OptionValue, Place, Platform, Reader, Reference, Sha256,
    TensorSpec, Value, dtype,
    fetch::{Fetch, FetchError, Fetched, Link},
};
use serde_json::{Value as Json, json};
use tensor_core::symbolic::{Dim, SymbolicShape};
use test_support::{CountingSource, files, hex, shared, testdata};

fn expected(path: &Path) -> Json {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_valid_file_reads_as_expected() {
    let expected = expected(&testdata("carton/valid/expected.json"));
    for path in files("carton/valid", "carton") {
        let name = path.file_name().unwrap().to_str().unwrap();
        reads_as_expected(&Reader::open(&path).unwrap(), &expected[name], name);
        let bytes = std::fs::read(&path).unwrap();
        reads_as_expected(&Reader::from_bytes(bytes).unwrap(), &expected[name], name);
    }
}

#[test]
fn the_carton_of_an_older_writer_reads_as_expected() {
    let Some(folder) = shared("corpus/carton") else { return };
    let name = "upstream_test.carton";
    let reader = Reader::open(folder.join(name)).unwrap();
    reads_as_expected(&reader, &expected(&folder.join("expected.json"))[name], name);
}

#[track_caller]
fn reads_as_expected(reader: &Reader, expected: &Json, name: &str) {
    assert_eq!(reader.model_hash().to_string(), expected["manifest_sha256"], "{name}");
    let lines: Vec<String> =
        reader.manifest().files().map(|(path, sha256)| format!("{path}={sha256}")).collect();
    assert_eq!(json!(lines), expected["manifest_lines"], "{name}");
    if let Some(links) = expected.get("links").and_then(Json::as_str) {
        assert_eq!(reader.links().unwrap().to_bytes(), links.as_bytes(), "{name}");
    }
    if reader.file("carton.toml").unwrap().place() == Place::Here {
        assert_eq!(info(reader), expected["info"], "{name}");
    }
    for file in reader.files().filter(|file| file.place() == Place::Here) {
        // The conformance tests stream the one that is too large to hold in memory.
        if file.len().unwrap() < 1 << 30 {
            assert_eq!(Sha256::digest(&file.bytes().unwrap()), file.sha256(), "{name}");
        }
    }
}

fn info(reader: &Reader) -> Json {
    let description = reader.description().unwrap();
    let specs = |specs: &Option<Vec<TensorSpec>>| {
        json!(specs.as_ref().map(|specs| specs.iter().map(spec).collect::<Vec<_>>()))
    };
    let runner = &description.runner;
    let tests = description.self_tests.as_ref().map(|tests| {
        let test = tests.iter().map(|test| {
            json!({
                "name": test.name,
                "description": test.description,
                "inputs": tensors(reader, &test.inputs),
                "expected_out": test.expected_out.as_ref().map(|named| tensors(reader, named)),
            })
        });
        test.collect::<Vec<_>>()
    });
    let examples = description.examples.as_ref().map(|examples| {
        let example = examples.iter().map(|example| {
            json!({
                "name": example.name,
                "description": example.description,
                "inputs": references(reader, example.inputs.as_ref().unwrap()),
                "sample_out": references(reader, example.sample_out.as_ref().unwrap()),
            })
        });
        example.collect::<Vec<_>>()
    });
    let misc: Vec<&str> =
        reader.misc().map(|file| file.path().strip_prefix("misc/").unwrap()).collect();
    let mut info = json!({
        "model_name": description.model_name,
        "short_description": description.short_description,
        "model_description": description.model_description,
        "license": description.license,
        "repository": description.repository,
        "homepage": description.homepage,
        "required_platforms": description.required_platforms.as_ref().map(|platforms| {
            platforms.iter().map(Platform::normalized).collect::<Vec<_>>()
        }),
        "runner": {
            "name": runner.name,
            "required_framework_version": runner.required_framework_version.as_str(),
            "compat": runner.compat_version,
            "opts": runner.options.as_ref().map(options),
        },
        "inputs": specs(&description.inputs),
        "outputs": specs(&description.outputs),
        "self_tests": tests,
        "examples": examples,
    });
    info["misc_files"] = if misc.is_empty() { Json::Null } else { json!(misc) };
    info
}

fn options(options: &Named<OptionValue>) -> Json {
    let option = |value: &OptionValue| match value {
        OptionValue::Integer(value) => json!(value),
        OptionValue::Float(value) => json!(value),
        OptionValue::String(value) => json!(value),
        OptionValue::Boolean(value) => json!(value),
    };
    options.iter().map(|(name, value)| (name.to_owned(), option(value))).collect()
}

fn spec(spec: &TensorSpec) -> Json {
    let shape = match &spec.shape {
        SymbolicShape::Any => json!("*"),
        SymbolicShape::Symbol(symbol) => json!(symbol),
        SymbolicShape::Dims(dims) => dims
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(elements) => json!(elements),
                Dim::Symbol(symbol) => json!(symbol),
                Dim::Any => json!("*"),
            })
            .collect(),
    };
    json!({
        "name": spec.name,
        "dtype": dtype::name(spec.dtype),
        "shape": shape,
        "description": spec.description,
        "internal_name": spec.internal_name,
    })
}

fn tensors(reader: &Reader, named: &Named<String>) -> Json {
    named.iter().map(|(name, tensor)| (name.to_owned(), tensor_json(reader, tensor))).collect()
}

fn references(reader: &Reader, named: &Named<Reference>) -> Json {
    let one = |reference: &Reference| match reference {
        Reference::Tensor(name) => tensor_json(reader, name),
        Reference::Misc(path) => {
            let file = reader.file(&format!("misc/{path}")).unwrap();
            json!({ "misc_sha256": file.sha256().to_string(), "size": file.len().unwrap() })
        }
    };
    named.iter().map(|(name, reference)| (name.to_owned(), one(reference))).collect()
}

fn tensor_json(reader: &Reader, name: &str) -> Json {
    let tensor = reader.tensor(name).unwrap().unwrap();
    let value = tensor.value().unwrap();
    let mut json = json!({
        "dtype": dtype::name(value.dtype().unwrap()),
        "shape": value.shape().unwrap().dims(),
    });
    match value {
        Value::Numeric(tensor) => json["le_bytes_hex"] = json!(hex(tensor.bytes())),
        Value::Strings { strings, .. } => json["strings"] = json!(strings),
        Value::Nested(_) => panic!("the reference cannot write nested tensors"),
    }
    assert_eq!(tensor.dtype(), Some(tensor.info().unwrap().dtype));
    json
}

#[test]
fn valid_files_have_few_findings() {
    let found: Vec<(String, Vec<String>)> = files("carton/valid", "carton")
        .iter()
        .map(|path| {
            let reader = Reader::open(path).unwrap();
            // The conformance tests hash the 4 GiB: that takes half a minute without optimisation.
            let is_long = path.ends_with("ref_zip64_4gib.carton");
            let report = if is_long { reader.lint() } else { reader.validate() };
            let findings = report.findings().iter();
            let findings = findings.map(|finding| format!("{} {}", finding.severity, finding.rule));
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), findings.collect())
        })
        .collect();
    // Inputs and outputs, neither of which is declared.
    let undeclared = &["warning carton/call-without-declarations"; 2];
    let expected: [(&str, &[&str]); 10] = [
        ("ref_all_dtypes", undeclared),
        ("ref_empty_lists", &[]),
        ("ref_full", &["warning carton/duplicate-platform"]),
        ("ref_linked", &["note carton/linked"]),
        ("ref_minimal", &[]),
        ("ref_noncontiguous", undeclared),
        ("ref_shrunk", &["note carton/linked"]),
        ("ref_strings", undeclared),
        ("ref_symlinks", &[]),
        ("ref_zip64_4gib", &[]),
    ];
    for ((name, found), (expected_name, expected)) in found.iter().zip(expected) {
        assert_eq!(
            (&**name, found.iter().map(|f| &**f).collect::<Vec<_>>()),
            (expected_name, expected.to_vec())
        );
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn opening_reads_the_end_and_the_manifest_only() {
    let bytes = std::fs::read(testdata("carton/valid/ref_zip64_4gib.carton")).unwrap();
    let store = CountingSource::new(&bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    reader.description().unwrap();
    let ends: u64 = store.take_reads().iter().map(|extent| extent.len()).sum();
    // What the search for the end record looks at, and a block of the directory.
    assert!(ends < 2 * 65_557 + 8192, "{ends} bytes were read");
}

#[test]
fn links_lead_to_their_targets() {
    let reader = Reader::open(testdata("carton/valid/ref_symlinks.carton")).unwrap();
    let target = reader.file("model/f").unwrap().bytes().unwrap();
    for path in ["model/l1", "model/l2", "model/s/abs", "model/dirlink/rel"] {
        let mut content = Vec::new();
        reader.file(path).unwrap().reader().unwrap().read_to_end(&mut content).unwrap();
        assert_eq!(content, target, "{path}");
    }
}

#[test]
fn linked_files_are_not_fetched_unasked() {
    let reader = Reader::open(testdata("carton/valid/ref_linked.carton")).unwrap();
    let file = reader.file("model/f.bin").unwrap();
    assert_eq!(file.place(), Place::Linked);
    assert!(matches!(file.len(), Err(Error::NotFetched { .. })));
    assert_eq!(
        file.bytes().unwrap_err().to_string(),
        r#""model/f.bin" is not in the carton, but linked to "https://models.example.com/f.bin", "https://mirror.example.com/f.bin""#
    );
}

#[test]
fn streams_end_well_only_with_the_right_digest() {
    let reader = Reader::open(testdata("carton/valid/ref_full.carton")).unwrap();
    let mut file: FileReader =
        reader.files().find(|file| file.len().unwrap() > 0).map(File::reader).unwrap().unwrap();
    let mut content = Vec::new();
    file.read_to_end(&mut content).unwrap();
    assert!(!content.is_empty());
}

/// A fetcher that must not be asked.
struct Never;

impl Fetch for Never {
    fn fetch(&self, link: &Link<'_>) -> Result<Fetched, FetchError> {
        panic!("{:?} is fetched", link.urls)
    }
}

#[test]
fn validation_fetches_nothing() {
    for name in ["missing_linked", "spec_linked_documents", "tensor_linked_wraps"] {
        let path = testdata(&format!("carton/invalid/{name}.carton"));
        let reader = Reader::options().fetch(Arc::new(Never)).open(path).unwrap();
        assert!(reader.validate().findings().iter().any(|finding| finding.rule == "carton/linked"));
    }
}
