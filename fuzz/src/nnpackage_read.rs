//! What the fuzz target `nnpackage_read` does with its input; a test of the crate replays the corpus.

use nnpackage::{
    Config, Library, Manifest, Partition, Reader,
    model_archive::{ArchiveWriter, EntryOptions},
    tensor_core::{Limits, Profile},
};

/// Reads any bytes as a package where they start like an archive, and as all documents of a package
/// elsewhere: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    if bytes.starts_with(b"PK") {
        return archive(bytes);
    }
    documents(bytes);
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
    let _ = reader.validate();
    let _ = reader.forecast();
    for file in reader.files().into_iter().flatten() {
        let _ = file.bytes();
        let _ = file.content();
    }
    for file in reader.models() {
        let _ = (file.model_type(), file.content(), file.file().extent());
        if let Ok(model) = file.open() {
            for tensor in model.tensors() {
                let _ = tensor.bytes();
            }
        }
    }
    for golden in [reader.golden_input(), reader.golden_expected()].into_iter().flatten() {
        let _ = golden.values();
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
