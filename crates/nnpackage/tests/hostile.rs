//! Cuts, changes, names and sizes that lie: nothing but errors comes of them.

use std::{fs, path::Path, time::Instant};

use nnpackage::{
    ExtractOptions, ModelReader, ModelWriter, Reader, extract,
    model::{ExternalBuffer, Model, ModelBuilder, Operator, OperatorCode, Schema, Signature},
    tensor_core::{Limits, Severity, Source},
};
use test_support::{files, mutations, testdata, truncations, zip::Zip};

#[path = "../../../fuzz/src/nnpackage_read.rs"]
mod nnpackage_read;

/// The models of sound packages that are Circle or TFLite.
fn models() -> Vec<Vec<u8>> {
    let mut models = Vec::new();
    for path in files("nnpackage/valid", "zip") {
        let reader = Reader::open(&path).unwrap();
        for model in reader.models().filter(|model| model.open().is_ok()) {
            models.push(model.file().bytes().unwrap().to_vec());
        }
    }
    models
}

#[test]
fn every_truncation_of_a_model() {
    for model in models() {
        truncations(&model, |cut| {
            nnpackage_read::run(cut);
            let is_sound = ModelReader::from_bytes(cut.to_vec())
                .is_ok_and(|reader| reader.validate().is_valid());
            // The last bytes of the tables may be padding.
            assert!(!is_sound || model.len() - cut.len() < 16, "{} of {}", cut.len(), model.len());
        });
    }
}

#[test]
fn changed_models_break_nothing() {
    for model in models() {
        some_mutations(&model, nnpackage_read::run);
    }
    mutations(&models()[0], nnpackage_read::run);
}

#[test]
fn every_truncation_of_a_package() {
    for path in files("nnpackage/valid", "zip") {
        let bytes = fs::read(&path).unwrap();
        truncations(&bytes, |cut| {
            nnpackage_read::run(cut);
            Reader::from_bytes(cut.to_vec()).expect_err("an archive without its end must not open");
        });
    }
}

#[test]
fn changed_packages_break_nothing() {
    let path = testdata("nnpackage/valid/01_minimal_circle_stored.zip");
    some_mutations(&fs::read(path).unwrap(), nnpackage_read::run);
}

#[test]
fn changed_documents_break_nothing() {
    for path in ["config_writes/metadata/model.cfg", "wiring_loop/metadata/MANIFEST"] {
        let bytes = fs::read(testdata("nnpackage/invalid").join(path)).unwrap();
        some_mutations(&bytes, nnpackage_read::run);
    }
}

/// Changes a few thousand places: the files are long, and most of them zeros.
fn some_mutations(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    let mut changed = bytes.to_vec();
    for at in (0..bytes.len()).step_by(bytes.len().div_ceil(1000)) {
        check(&bytes[..at]);
        for new in [bytes[at] ^ 1, 0xff] {
            changed[at] = new;
            check(&changed);
        }
        changed[at] = bytes[at];
    }
}

#[test]
fn changed_kernels_break_nothing() {
    let reader = Reader::open(testdata("nnpackage/valid/05_three_types_custom_op.zip")).unwrap();
    for kernel in reader.custom_ops().unwrap() {
        let bytes = kernel.file().bytes().unwrap();
        some_mutations(&bytes, |changed| drop(nnpackage::Library::parse(changed)));
    }
}

/// Golden data of one package, changed.
#[test]
fn changed_golden_data_break_nothing() {
    let reader = Reader::open(testdata("nnpackage/valid/03_two_models_connected.zip")).unwrap();
    let bytes = reader.golden_input().unwrap().file().bytes().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("metadata/tc")).unwrap();
    fs::write(folder.path().join("metadata/MANIFEST"), "{\"models\": [\"m\"]}").unwrap();
    let reader = Reader::open(folder.path()).unwrap();
    some_mutations(&bytes, |changed| {
        fs::write(folder.path().join("metadata/tc/input.h5"), changed).unwrap();
        drop(reader.golden_input().unwrap().values());
    });
}

/// A package that is nothing but its manifest and a model.
fn package() -> Zip {
    let reader = Reader::open(testdata("nnpackage/valid/01_minimal_circle_stored.zip")).unwrap();
    let read = |path| reader.file(path).unwrap().bytes().unwrap();
    Zip::of(&[
        ("metadata/MANIFEST", &read("metadata/MANIFEST")),
        ("add.circle", &read("add.circle")),
        ("note.txt", b"x"),
    ])
}

#[test]
fn names_that_lead_out() {
    for name in [
        "../evil",
        "/evil",
        "a/../../evil",
        "C:\\evil",
        "\\\\h\\s",
        "a\\..\\b",
        "./evil",
        "a//b",
        "a/..",
        "evil\0.txt",
        "c:evil",
    ] {
        let mut zip = package();
        zip.entries[2].local.name = name.into();
        zip.entries[2].central.name = name.into();
        let error = Reader::from_bytes(zip.to_bytes()).unwrap_err();
        assert_eq!(error.rule(), "zip/name", "{name:?}: {error}");
    }
}

/// Returns the paths of everything in a folder, sorted.
fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn extracted_packages_are_what_was_packed() {
    for path in files("nnpackage/valid", "zip") {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("package");
        let reader = Reader::open(&path).unwrap();
        extract(&reader, &to, &ExtractOptions::default().spare(0)).unwrap();
        let again = Reader::open(&to).unwrap();
        let paths = |reader: &Reader| -> Vec<String> {
            reader.files().unwrap().map(|file| file.path().to_owned()).collect()
        };
        assert_eq!(paths(&again), paths(&reader));
        for file in reader.files().unwrap() {
            let found = again.file(file.path()).unwrap().bytes().unwrap();
            assert_eq!(found, file.bytes().unwrap(), "{}", file.path());
        }
        assert_eq!(again.forecast(), reader.forecast());
        assert_eq!(
            walk(folder.path()).iter().filter(|path| !path.starts_with("package")).count(),
            0
        );
    }
}

#[test]
fn empty_folders_are_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("package");
    let path = testdata("nnpackage/valid/02_tflite_deflate_config.zip");
    extract(&Reader::open(path).unwrap(), &to, &ExtractOptions::default().spare(0)).unwrap();
    assert!(to.join("custom_op").is_dir());
}

#[test]
fn broken_packages_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("package");
    let reader = Reader::open(testdata("nnpackage/invalid/zip_crc.zip")).unwrap();
    let error = extract(&reader, &to, &ExtractOptions::default().spare(0)).unwrap_err();
    assert_eq!(error.rule(), "zip/crc", "{error}");
    assert_eq!(walk(folder.path()), [""; 0]);
}

#[test]
fn full_folders_are_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine"), "x").unwrap();
    let reader = Reader::from_bytes(package().to_bytes()).unwrap();
    let error = extract(&reader, folder.path(), &ExtractOptions::default().spare(0)).unwrap_err();
    assert_eq!(error.rule(), "zip/write", "{error}");
    assert_eq!(walk(folder.path()), ["mine"]);
}

#[test]
fn documents_over_the_limit() {
    let mut zip = package();
    let long = format!("{{\"models\": [\"add.circle\"]}}{}", " ".repeat(1 << 20));
    zip.entries[0] = Zip::of(&[("metadata/MANIFEST", long.as_bytes())]).entries[0].clone();
    assert_eq!(
        Reader::from_bytes(zip.to_bytes()).unwrap_err().to_string(),
        "MANIFEST in bytes is 1048602, over the limit of 1048576 (Limits::document_bytes)"
    );
    let limits = Limits::default().with_document_bytes(2 << 20);
    Reader::options().limits(limits).from_bytes(zip.to_bytes()).unwrap();
}

#[test]
fn models_over_the_limit() {
    let model = models().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.circle");
    fs::write(&path, &model).unwrap();
    let open = |limits| ModelReader::options().limits(limits).open(&path).unwrap_err().to_string();
    assert_eq!(
        open(Limits::default().with_decoded_bytes(100)),
        "bytes of a model is 368, over the limit of 100 (Limits::decoded_bytes)"
    );
    assert_eq!(
        open(Limits::default().with_tensors(2)),
        "tensors of the model is 3, over the limit of 2 (Limits::tensors)"
    );
    assert_eq!(
        open(Limits::default().with_depth(2)),
        "model has tables nested deeper than the limit of 2 (Limits::depth)"
    );
}

/// A file that has no bytes where it says so takes no memory for them.
#[test]
fn sparse_files_are_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.circle");
    fs::write(&path, &models()[0]).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    if file.set_len(1 << 40).is_err() {
        return;
    }
    let reader = ModelReader::open(&path).unwrap();
    assert_eq!(reader.source().len(), 1 << 40);
    assert_eq!(reader.model().subgraphs.len(), 1);
    drop(Source::open(&path).unwrap());
}

/// One model named very often is opened and checked once.
#[test]
fn one_model_named_very_often() {
    let model = fs::read(testdata("nnpackage/valid/everything.circle")).unwrap();
    let names = vec!["\"m\""; 65_535].join(",");
    let types = vec!["\"circle\""; 65_535].join(",");
    let manifest = format!("{{\"models\": [{names}], \"model-types\": [{types}]}}");
    let zip = Zip::of(&[("metadata/MANIFEST", manifest.as_bytes()), ("m", &model)]);
    let reader = Reader::from_bytes(zip.to_bytes()).unwrap();
    assert!(std::ptr::eq(
        reader.model(0).unwrap().open().unwrap(),
        reader.model(65_534).unwrap().open().unwrap()
    ));
    let rules = reader.check().into_iter().filter(|found| found.rule == "nnp/model-name");
    assert_eq!(rules.count(), 65);
    let manifest = manifest.replacen("\"m\"", "\"m\",\"m\"", 1);
    let zip = Zip::of(&[("metadata/MANIFEST", manifest.as_bytes()), ("m", &model)]);
    assert_eq!(
        Reader::from_bytes(zip.to_bytes()).unwrap_err().to_string(),
        "MANIFEST line 1 column 1: models is 65536 paths, expected at most 65535"
    );
}

/// Returns the model of a file with what is set in it.
fn written(set: impl FnOnce(&mut Model)) -> ModelReader {
    let mut model = ModelBuilder::new(Schema::Circle);
    model.subgraph("main").finish();
    let mut model = model.finish();
    set(&mut model);
    ModelReader::from_bytes(ModelWriter::new(&model).to_bytes().unwrap()).unwrap()
}

/// Makes sure that a check takes no more than seconds; each of these took minutes once.
#[track_caller]
fn checks_soon(reader: &ModelReader) {
    let start = Instant::now();
    assert!(!reader.check().is_empty());
    assert!(start.elapsed().as_secs() < 15, "{:?}", start.elapsed());
}

#[test]
fn many_signatures_of_many_inputs() {
    checks_soon(&written(|model| {
        model.subgraphs[0].inputs = (0..50_000).collect();
        model.signatures = vec![Signature::default(); 50_000];
    }));
}

#[test]
fn many_graphs_and_buffers_in_other_files() {
    checks_soon(&written(|model| {
        model.schema = Schema::Tflite;
        model.external_buffers = vec![ExternalBuffer::default(); 30_000];
        model.subgraphs = vec![model.subgraphs[0].clone(); 30_000];
    }));
}

#[test]
fn many_operators_of_a_long_name() {
    checks_soon(&written(|model| {
        model.operator_codes.push(OperatorCode::custom("n".repeat(32 << 20)));
        model.subgraphs[0].operators = vec![Operator::default(); 20_000];
    }));
}

#[test]
fn large_options_past_the_end() {
    let reader = written(|model| {
        model.operator_codes.push(OperatorCode::custom("x"));
        model.subgraphs[0].operators.push(Operator::default());
    });
    let mut model = reader.model().clone();
    let operator = &mut model.subgraphs[0].operators[0];
    (operator.large_custom_options_offset, operator.large_custom_options_size) = (8, 32);
    let bytes = ModelWriter::of(&reader).model(&model).to_bytes().unwrap();
    let (len, start) = (bytes.len() - 1, bytes.len() - 32);
    let found = |bytes: &[u8]| {
        let found = ModelReader::from_bytes(bytes.to_vec()).unwrap().check();
        let of = found.into_iter().find(|found| found.rule == "model/large-custom-options");
        of.map(|found| (found.severity, found.message)).unwrap()
    };
    let message = "has custom options outside of the tables, where onert does not look";
    assert_eq!(found(&bytes), (Severity::Warning, message.to_owned()));
    let message = format!("needs 32 bytes of options at byte {start} of a file of {len} bytes");
    assert_eq!(found(&bytes[..len]), (Severity::Error, message));
}

#[test]
fn metadata_of_graphs_that_there_are_not() {
    let reader = written(|model| model.subgraphs[0].debug_metadata_index = 7);
    let message = "has metadata 7, but the model has 0";
    assert!(reader.check().iter().any(|found| found.message == message));
}
