//! Manifests and packages read as what onert makes of them.

use nnpackage::{
    Connection, Content, Edit, Error, File, FileFault, IoRef, Manifest, ModelFile, ModelType,
    PackageVersion, Reader, Writer,
    model_archive::{ArchiveWriter, Compression, EntryOptions},
    tensor_core::{Limits, Source, Verify},
};

use crate::common::open;

fn manifest(text: &str) -> Manifest {
    Manifest::parse(text.as_bytes(), &Limits::default()).unwrap()
}

/// Packs files as they are.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ArchiveWriter::new(Vec::new());
    for (path, content) in files {
        archive.add(path, content, &EntryOptions::default()).unwrap();
    }
    archive.finish().unwrap()
}

#[test]
fn attributes_of_every_version() {
    let found = manifest(
        r#"{
            "major-version": "1", "minor-version": 3, "patch-version": "0",
            "configs": ["a.cfg"], "models": ["a", "b"], "model-types": ["circle", "tvn"],
            "pkg-inputs": ["0:0:0"], "pkg-outputs": ["1:0:1"],
            "model-connect": [{"from": "0:0:0", "to": ["1:0:0", "1:0:1"]}],
            "model-infos": ["", "b.json"], "connection": "c.json"
        }"#,
    );
    assert_eq!(found.version.numbers(), Some([1, 3, 0]));
    assert!(found.version.minor.as_ref().is_some_and(|part| part.is_number));
    assert_eq!(found.config(), Some("a.cfg"));
    assert_eq!(
        (&found.models[..], found.model_type(1)),
        (&["a".into(), "b".into()][..], Some("tvn"))
    );
    let to = vec![IoRef::new(1, 0, 0), IoRef::new(1, 0, 1)];
    assert_eq!(found.connections, [Connection { from: IoRef::new(0, 0, 0), to }]);
    assert_eq!(found.edges().count(), 2);
    assert_eq!(
        (found.pkg_inputs, found.pkg_outputs),
        (vec![IoRef::new(0, 0, 0)], vec![IoRef::new(1, 0, 1)])
    );
    assert_eq!(found.model_infos, ["", "b.json"]);
    assert_eq!(found.connection_file.as_deref(), Some("c.json"));
}

#[test]
fn values_are_converted_as_onert_does() {
    let found = manifest(r#"{"models": [5, true, "m"], "model-types": null, "configs": null}"#);
    assert_eq!(found.models, ["5", "true", "m"]);
    assert_eq!((found.model_types, found.configs), (None, vec![]));
    let found = manifest(r#"{"models": ["x"], "models": ["y"], "configs": [""]}"#);
    assert_eq!((&found.models[..], found.config()), (&["y".to_owned()][..], None));
}

#[test]
fn draft_of_2019() {
    let found = manifest(r#"{"main-model": "m.tflite"}"#);
    assert!(found.is_main_model);
    assert_eq!(found.models, ["m.tflite"]);
    let found = manifest(r#"{"main-model": "m.tflite", "models": ["n.tflite"]}"#);
    assert!(!found.is_main_model);
}

#[test]
fn lowest_versions() {
    for (text, version) in [
        (r#"{"models": ["m"], "model-types": ["circle"]}"#, "1.0.0"),
        (r#"{"models": ["m"], "model-types": ["circle"], "configs": ["c"]}"#, "1.1.0"),
        (r#"{"models": ["m"], "model-types": ["bin"]}"#, "1.2.0"),
        (r#"{"models": ["m"], "model-types": ["circle"], "pkg-inputs": ["0:0:0"]}"#, "1.3.0"),
        (r#"{"models": ["m.circle"]}"#, "1.3.1"),
    ] {
        assert_eq!(manifest(text).lowest_version().to_string(), version, "{text}");
    }
    assert_eq!(manifest(r#"{"models": ["m"], "patch-version": "x"}"#).version.to_string(), "?.?.x");
    assert_eq!(PackageVersion::new(1, 2, 3).numbers(), Some([1, 2, 3]));
}

#[test]
fn types_by_declaration_and_by_extension() {
    let model = br#"{"models": ["a.b/m", "m.tflite", "x.circle", "y.Circle"]}"#;
    let reader = Reader::from_bytes(zip(&[("metadata/MANIFEST", model)])).unwrap();
    let types: Vec<_> = reader.models().map(ModelFile::model_type).collect();
    let expected =
        [None, Some(ModelType::Tflite), Some(ModelType::Circle), Some(ModelType::Other("Circle"))];
    assert_eq!(types, expected);
    assert_eq!(ModelType::from_name("bin").name(), "bin");
}

#[test]
fn packages_in_a_folder_of_their_archive() {
    let reader = open("04");
    assert_eq!(reader.root(), "add/");
    let paths: Vec<_> = reader.files().unwrap().map(File::path).collect();
    assert_eq!(paths, ["add.circle", "metadata/MANIFEST", "sub/add.tflite"]);
}

#[test]
fn files_that_are_not_there() {
    let reader = open("02");
    assert!(reader.file("none").is_none() && reader.file("../x").is_none());
    let manifest = br#"{"models": ["none", "sub", "../x", ""]}"#;
    let reader =
        Reader::from_bytes(zip(&[("metadata/MANIFEST", manifest), ("sub/m", b"x")])).unwrap();
    let faults: Vec<FileFault> = reader
        .models()
        .map(|model| match model.file().bytes().unwrap_err() {
            Error::File { fault, .. } => fault,
            other => panic!("{other}"),
        })
        .collect();
    assert!(matches!(faults[0], FileFault::Missing), "{faults:?}");
    assert!(matches!(faults[1], FileFault::Folder), "{faults:?}");
    assert!(matches!(faults[2], FileFault::Path(_)), "{faults:?}");
    assert!(matches!(faults[3], FileFault::Path(_)), "{faults:?}");
}

#[test]
fn configuration_of_a_package() {
    let reader = open("02");
    assert_eq!(reader.config_path().as_deref(), Some("metadata/model.cfg"));
    let config = reader.config().unwrap().unwrap();
    assert_eq!(config.value("NUM_THREADS"), Some("2"));
    assert_eq!(config.value("CPU_MEMORY_PLANNER"), Some("WIC"));
    assert_eq!(config.entries()[1].line, 3);
    assert_eq!(open("01").config().unwrap(), None);
}

/// A model that is compressed is decoded in memory; one that is stored lies in the archive.
#[test]
fn models_of_either_method() {
    let model = open("01");
    let model = model.model(0).unwrap().file().bytes().unwrap();
    let manifest = br#"{"models": ["stored", "packed"], "model-types": ["circle", "circle"]}"#;
    let mut archive = ArchiveWriter::new(Vec::new());
    let stored = EntryOptions::default();
    let packed = stored.compression(Compression::Deflate { level: 6 });
    archive.add("metadata/MANIFEST", manifest, &stored).unwrap();
    archive.add("stored", &model, &stored.alignment(4096)).unwrap();
    archive.add("packed", &model, &packed).unwrap();
    let reader = Reader::from_source(Source::from_bytes(archive.finish().unwrap())).unwrap();
    let models: Vec<_> = reader.models().collect();
    assert!(models[0].file().extent().unwrap().unwrap().is_aligned(4096));
    assert_eq!(models[1].file().extent().unwrap(), None);
    for model in models {
        assert_eq!(model.content().unwrap(), Content::Circle);
        assert_eq!(model.open().unwrap().model().description.as_deref(), Some("tiny add"));
        assert_eq!(model.file().len().unwrap(), 368);
        model.file().verify().unwrap();
    }
}

#[test]
fn kernels() {
    let reader = open("05");
    let kernels: Vec<_> = reader.custom_ops().unwrap().collect();
    let [archive, shared] = &kernels[..] else { panic!("{kernels:?}") };
    let library = archive.library().unwrap();
    assert_eq!((library.is_shared, library.soname.as_deref()), (false, None));
    assert_eq!(library.arch.as_deref(), Some("x86_64"));
    let library = shared.library().unwrap();
    assert_eq!((library.is_shared, library.bits), (true, 64));
    assert_eq!(shared.name().map(|name| name.extension), Some("so"));
}

/// Readers can be shared and outlive what they were opened from.
#[test]
fn readers_are_handles() {
    fn assert_handle<T: Send + Sync + Clone + 'static>() {}
    assert_handle::<Reader>();
}

#[test]
fn digests_are_compared_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("package");
    let mut edit = Edit::new(&open("01"));
    edit.digests(true);
    Writer::options().create_folder(&path, &edit).unwrap();
    let open = |verify| Reader::options().verify(verify).open(&path);
    let model = path.join("add.circle");
    let sound = std::fs::read(&model).unwrap();
    let [once, always] = [Verify::Once, Verify::Always].map(|verify| open(verify).unwrap());
    for reader in [&once, &always] {
        reader.file("add.circle").unwrap().bytes().unwrap();
        drop(reader.tensors().unwrap());
    }
    let mut changed = sound.clone();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(&model, &changed).unwrap();
    let differs = |reader: &Reader| {
        let file = reader.file("add.circle").unwrap();
        [file.bytes().err(), file.reader().err(), file.source().err()].map(|error| {
            assert!(error.as_ref().is_none_or(|error| error.rule() == "nnp/digest"), "{error:?}");
            error.is_some()
        })
    };
    assert_eq!(differs(&open(Verify::Never).unwrap()), [false; 3]);
    assert_eq!(differs(&once), [false; 3]);
    assert_eq!(differs(&always), [true; 3]);
    let later = open(Verify::Once).unwrap();
    assert_eq!(differs(&later), [true; 3]);
    assert_eq!(later.model(0).unwrap().open().unwrap_err().rule(), "nnp/digest");
    let manifest = path.join("metadata/MANIFEST");
    let text = std::fs::read_to_string(&manifest).unwrap() + "\n";
    std::fs::write(&manifest, text).unwrap();
    assert_eq!(open(Verify::Once).unwrap_err().rule(), "nnp/digest");
    open(Verify::Never).unwrap();
}
