//! Models of the test data.

use bytes::Bytes;
use circle_format::{Reader, Result, Writer};
use model_archive::Archive;
use test_support::files;

/// Returns the models in sound packages that are Circle or TFLite, with their paths.
pub(crate) fn packed_models() -> Vec<(String, Bytes)> {
    let mut models = Vec::new();
    for path in files("nnpackage/valid", "zip") {
        let archive = Archive::open(&path).unwrap();
        for entry in archive.entries() {
            let bytes = entry.bytes().unwrap_or_default();
            if Reader::from_bytes(bytes.clone()).is_ok() {
                models.push((format!("{} {}", path.display(), entry.name()), bytes));
            }
        }
    }
    assert!(models.len() >= 6, "{}", models.len());
    models
}

/// Returns the bytes of a file with the model of another one, which is not changed.
pub(crate) fn rewritten(reader: &Reader) -> Result<Vec<u8>> {
    Writer::new(Vec::new(), reader.model()).origin(reader).finish()
}
