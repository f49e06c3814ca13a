//! What the fuzz target `carton_read` does with its input; a test of the crate replays the corpus.

use carton_format::{
    Description, Links, Manifest, Place, ReadOptions, Reader, Sha256, Writer,
    model_archive::{ArchiveWriter, EntryOptions},
    repack,
    tensor_core::{Limits, Profile},
};

/// Reads any bytes as a carton where they start like an archive, and as the documents of one, with
/// zero bytes between them, elsewhere: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    if bytes.starts_with(b"PK") {
        return archive(bytes);
    }
    let parts: Vec<&[u8]> = bytes.split(|&byte| byte == 0).collect();
    for part in &parts {
        document(part);
    }
    archive(&packed(&parts));
}

fn limits() -> Limits {
    Limits::default()
        .with_entries(1 << 10)
        .with_directory_bytes(1 << 20)
        .with_decoded_bytes(1 << 20)
        .with_manifest_bytes(1 << 20)
        .with_document_bytes(1 << 16)
        .with_metadata_bytes(1 << 16)
        .with_strings_bytes(1 << 16)
        .with_expansion(1)
        .with_zstd_window_log(20)
}

fn options(profile: Profile) -> ReadOptions {
    Reader::options().limits(limits()).profile(profile).threads(std::num::NonZeroUsize::MIN)
}

/// What is written of a document reads back as the same.
fn document(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes, &limits()) {
        let files = manifest.files().map(|(path, sha256)| (path.to_owned(), sha256));
        let sorted = Manifest::from_files(files, &limits()).expect("its paths were checked");
        assert_eq!(sorted.len(), manifest.len());
        assert!(manifest.files().all(|(path, sha256)| sorted.sha256(path) == Some(sha256)));
        assert!(sorted.files().is_sorted_by(|a, b| a.0 < b.0));
    }
    if let Ok(links) = Links::parse(bytes, &limits()) {
        let limits = limits().with_metadata_bytes(1 << 20);
        let again = Links::parse(&links.to_bytes(), &limits).expect("what is written is read");
        assert!(again.iter().eq(links.iter()));
    }
    if let Ok(parsed) = Description::parse(bytes, &limits()) {
        let _ = parsed.lint();
        let written = parsed.description.to_bytes().expect("what was read can be written");
        let limits = limits().with_document_bytes(1 << 20);
        let again = Description::parse(&written, &limits).expect("what is written is read");
        assert_eq!(again.description, parsed.description);
    }
}

/// Packs documents with the digests that they have: `carton.toml`, the index, texts, numbers,
/// `LINKS`, and lines of `MANIFEST` behind those that follow from the rest.
fn packed(parts: &[&[u8]]) -> Vec<u8> {
    let part = |index: usize| parts.get(index).copied().unwrap_or_default();
    let files = [
        ("carton.toml", part(0)),
        ("misc/p", b"p"),
        ("model/m", b"m"),
        ("tensor_data/a", part(3)),
        ("tensor_data/b", part(2)),
        ("tensor_data/index.toml", part(1)),
    ];
    let mut archive = ArchiveWriter::new(Vec::new());
    let mut manifest = Vec::new();
    let mut add = |path: &str, content: &[u8]| {
        archive.add(path, content, &EntryOptions::default()).expect("a vector takes all");
    };
    for (path, content) in files {
        add(path, content);
        manifest.extend(format!("{path}={}\n", Sha256::digest(content)).into_bytes());
    }
    manifest.extend(part(5));
    add("MANIFEST", &manifest);
    if !part(4).is_empty() {
        add("LINKS", part(4));
    }
    archive.finish().expect("a vector takes all")
}

fn archive(bytes: &[u8]) {
    let [strict, lenient] = [Profile::Strict, Profile::Lenient]
        .map(|profile| options(profile).from_bytes(bytes.to_vec()));
    for (reader, profile) in [(&strict, Profile::Strict), (&lenient, Profile::Lenient)] {
        if let Ok(reader) = reader {
            read(reader, profile);
        }
    }
    if let Ok(strict) = strict {
        let lenient = lenient.expect("what is strict is lenient");
        assert_eq!(strict.model_hash(), lenient.model_hash());
    }
}

fn read(reader: &Reader, profile: Profile) {
    let is_valid = reader.validate().is_valid();
    let fine = |rule: &str| {
        let allowed = ["carton/limit", "zip/limit", "carton/not-fetched"].contains(&rule);
        assert!(allowed || !is_valid, "reading finds {rule}, validation does not");
    };
    if let Err(error) = reader.description() {
        fine(error.rule());
    }
    match reader.tensors() {
        Ok(tensors) => {
            for tensor in tensors {
                assert!(reader.tensor(tensor.name()).is_ok_and(|found| found.is_some()));
                if let Err(error) = tensor.value() {
                    fine(error.rule());
                }
                let _ = tensor.verify();
            }
        }
        Err(error) => fine(error.rule()),
    }
    for file in reader.files().filter(|file| file.place() == Place::Here) {
        match file.bytes() {
            Ok(content) => {
                assert_eq!(Sha256::digest(&content), file.sha256());
                assert!(file.len().is_ok_and(|len| len == content.len() as u64));
            }
            Err(error) => fine(error.rule()),
        }
        let _ = file.media_type();
    }
    if is_valid
        && let Ok(finished) = repack(reader, Writer::new(Vec::new()), |_| ())
        && let Ok(again) = options(profile).from_bytes(finished.sink)
    {
        assert_eq!(again.model_hash(), reader.model_hash());
        let report = again.validate();
        assert!(report.is_valid(), "{report:?}");
    }
}
