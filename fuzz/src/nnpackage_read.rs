//! What the fuzz target `nnpackage_read` does with its input; a test of the crate replays the corpus.

use nnpackage::{
    Config, Constant, Library, Manifest, ModelReader, ModelWriter, Partition, Reader, flex,
    model::{BuiltinOptions, BuiltinOptions2, Model, Schema},
    model_archive::{ArchiveWriter, EntryOptions, Profile},
    tensor_core::Limits,
};

/// Reads any bytes as a package where they start like an archive, as a model where they have the
/// identifier of one, and as all documents of a package elsewhere: nothing but errors may come of
/// it.
pub(crate) fn run(bytes: &[u8]) {
    if bytes.starts_with(b"PK") {
        return archive(bytes);
    }
    match bytes.get(4..8) {
        Some(b"CIR0" | b"TFL3") => model(bytes),
        _ => documents(bytes),
    }
}

fn limits() -> Limits {
    Limits::default()
        .with_entries(1 << 10)
        .with_directory_bytes(1 << 20)
        .with_decoded_bytes(1 << 20)
        .with_document_bytes(1 << 16)
        .with_expansion(1)
        .with_tensors(1 << 16)
}

fn archive(bytes: &[u8]) {
    for profile in [Profile::Strict, Profile::Lenient] {
        let options = Reader::options().limits(limits()).profile(profile);
        if let Ok(reader) = options.from_bytes(bytes.to_vec()) {
            package(&reader);
        }
    }
}

fn package(reader: &Reader) {
    let _ = reader.verify();
    let _ = reader.forecast();
    for file in reader.files().into_iter().flatten() {
        let _ = file.bytes();
        let _ = file.content();
    }
    for file in reader.models() {
        let _ = (file.model_type(), file.content(), file.file().extent());
        if let Ok(model) = file.open() {
            constants(model);
        }
    }
    for golden in [reader.golden_input(), reader.golden_expected()].into_iter().flatten() {
        let _ = golden.values();
    }
}

fn model(bytes: &[u8]) {
    for schema in [Schema::Circle, Schema::Tflite] {
        let _ = Model::parse_as(bytes.to_vec(), schema, &limits());
    }
    if let Ok(reader) = ModelReader::options().limits(limits()).from_bytes(bytes.to_vec()) {
        constants(&reader);
        written(&reader);
    }
}

/// What was written is read as the same.
fn written(reader: &ModelReader) {
    let _ = reader.model().to_circle();
    let Ok(bytes) = ModelWriter::of(reader).to_bytes() else { return };
    let options = ModelReader::options().schema(reader.model().schema);
    let found = options.from_bytes(bytes.clone()).expect("what was written can be read");
    let again = ModelWriter::of(&found).to_bytes().expect("and written again");
    assert_eq!(again, bytes);
    let mut model = found.model().clone();
    model.drop_unused_buffers();
    model.set_metadata("name", "value");
    model.remove_metadata("name");
    let _ = ModelWriter::of(&found).model(&model).to_bytes();
}

/// What validation lets through can be read.
fn constants(reader: &ModelReader) {
    let is_valid = reader.validate().is_valid();
    for constant in reader.tensors() {
        assert!(constant.name().is_none_or(|name| reader.tensor(name).is_some()));
        if let Ok(bytes) = constant.bytes() {
            let needed = constant.info().and_then(|info| Ok(info.byte_len()?));
            assert_eq!(needed.ok(), Some(bytes.len() as u64));
        }
        let is_here = constant.tensor().is_some_and(|tensor| tensor.external_buffer == 0);
        let read: Result<_, _> = Constant::stored_bytes(constant);
        assert!(!is_valid || !is_here || read.is_ok(), "{read:?}");
    }
    for operator in reader.model().subgraphs.iter().flat_map(|graph| &graph.operators) {
        let _ = operator.options.as_ref().map(BuiltinOptions::fields);
        let _ = operator.options_2.as_deref().map(BuiltinOptions2::fields);
    }
}

fn documents(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes, &limits()) {
        assert!(!manifest.models.is_empty());
        let _ = (manifest.edges().count(), manifest.lowest_version());
    }
    let config = Config::parse(bytes);
    for entry in config.entries() {
        assert!(!entry.value.contains('\n') && !entry.key.contains(['=', '#']));
    }
    if let Ok(partition) = Partition::parse(bytes, &limits()) {
        let _ = partition.wiring();
    }
    let _ = flex::Value::parse(bytes);
    let _ = Library::parse(bytes);
    let mut archive = ArchiveWriter::new(Vec::new());
    let files: [(&str, &[u8]); 4] = [
        ("custom_op/libX.x86_64-linux.release.a", bytes),
        ("metadata/MANIFEST", bytes),
        ("metadata/model.cfg", bytes),
        ("metadata/tc/input.h5", bytes),
    ];
    for (path, content) in files {
        archive.add(path, content, &EntryOptions::default()).expect("a vector takes all");
    }
    self::archive(&archive.finish().expect("a vector takes all"));
    // The same with a manifest that names the rest.
    let manifest = br#"{"models": ["m"], "model-types": ["circle"], "configs": ["model.cfg"]}"#;
    let mut archive = ArchiveWriter::new(Vec::new());
    for (path, content) in files {
        let content = if path == "metadata/MANIFEST" { manifest } else { content };
        archive.add(path, content, &EntryOptions::default()).expect("a vector takes all");
    }
    archive.add("m", bytes, &EntryOptions::default()).expect("a vector takes all");
    self::archive(&archive.finish().expect("a vector takes all"));
}
