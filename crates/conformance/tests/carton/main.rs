//! Cartons, read and written by their reference implementation, `cartonml-nightly`
//! 0.0.1.dev20231020, and by tools that know nothing but ZIP and TOML.
//!
//! `cargo xtask oracles` installs what these tests run; where something is missing a test says so
//! and passes, except in continuous integration.

mod archives;
#[cfg(unix)]
mod both_ways;
mod documents;
mod reads_ours;

use std::path::PathBuf;

use carton_format::{Reader, WriteOptions, model_archive::Compression};
use conformance::python::Client;
use serde_json::Value as Json;
use tempfile::TempDir;
use tensor_core::{Finding, Severity};

/// A folder for files that are exchanged, and for what the reference implementation leaves behind.
struct Exchange(TempDir);

impl Exchange {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the reference implementation; `None` where it is not installed.
    #[track_caller]
    fn run(
        &self,
        script: &str,
        args: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Option<Json> {
        let home = self.path("home");
        std::fs::create_dir_all(&home).unwrap();
        let args: Vec<PathBuf> =
            [home].into_iter().chain(args.into_iter().map(Into::into)).collect();
        Client::CARTON.run(script, &args)
    }
}

/// Returns every way in which we compress.
fn compressions() -> [Compression; 5] {
    [
        Compression::Stored,
        Compression::Deflate { level: 6 },
        Compression::DeflateIfSmaller { level: 1 },
        Compression::Zstd { level: 3 },
        Compression::ZstdIfSmaller { level: 19 },
    ]
}

fn options(compression: Compression) -> WriteOptions {
    WriteOptions::default().compression(compression)
}

/// Asserts that two values are the same, and says where they are not.
#[track_caller]
fn assert_json(found: &Json, expected: &Json, path: &str) {
    match (found, expected) {
        (Json::Object(left), Json::Object(right)) => {
            for key in left.keys().chain(right.keys()) {
                let of = |table: &serde_json::Map<String, Json>| {
                    table.get(key).cloned().unwrap_or_else(|| "absent".into())
                };
                assert_json(&of(left), &of(right), &format!("{path}.{key:?}"));
            }
        }
        (Json::Array(left), Json::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                assert_json(left, right, &format!("{path}[{at}]"));
            }
        }
        _ => assert_eq!(found, expected, "{path}"),
    }
}

/// Asserts that our own reader finds no error in a carton; names that only tests would use it may
/// warn of.
#[track_caller]
fn is_sound(bytes: &[u8]) -> Reader {
    let reader = Reader::from_bytes(bytes.to_vec()).unwrap();
    let report = reader.validate();
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let errors: Vec<&Finding> = report.findings().iter().filter(is_error).collect();
    assert!(errors.is_empty(), "{errors:?}");
    reader
}
