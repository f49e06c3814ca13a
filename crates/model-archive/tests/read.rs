//! What archives of other writers hold.

use model_archive::{Archive, Kind, Symlinks};
use tensor_core::{
    Source,
    digest::{Algorithm, HashingReader},
};

#[test]
fn cartons_of_the_reference_read_whole() {
    let Some(folder) = test_support::shared("corpus/carton") else { return };
    let text = std::fs::read(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for (file, expected) in expected.as_object().unwrap() {
        let source = Source::open(folder.join(file)).unwrap();
        let archive = Archive::options().symlinks(Symlinks::Kept).from_source(source).unwrap();
        let report = archive.check();
        assert!(report.is_empty(), "{file}: {report:?}");
        let expected = expected["zip_entries"].as_array().unwrap();
        assert_eq!(archive.entries().len(), expected.len());
        for (entry, expected) in archive.entries().zip(expected) {
            assert_eq!(entry.name(), expected["name"]);
            assert_eq!(u64::from(entry.info().method.code()), expected["method"]);
            assert_eq!(entry.info().size, expected["size"]);
            if entry.info().kind == Kind::Symlink {
                assert_eq!(entry.target().unwrap(), expected["symlink_target"]);
                continue;
            }
            let mut content = HashingReader::new(entry.reader().unwrap(), Algorithm::Sha256);
            std::io::copy(&mut content, &mut std::io::sink()).unwrap();
            let digest = content.finish().1.to_string();
            assert_eq!(digest.strip_prefix("sha256:").unwrap(), expected["sha256"], "{file}");
        }
    }
}
