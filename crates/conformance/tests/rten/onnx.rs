//! Exports pass ONNX's checker, and ONNX Runtime and RTen compute with them what RTen computes with
//! the files that they were made from.

mod changed;
mod corpus;
mod made;
#[cfg(feature = "peers")]
mod operators;

use std::path::PathBuf;

use conformance::python::Client;
use rten_format::{
    Reader,
    onnx::{Export, Exported},
    tensor_core::output::Durability,
};
use serde_json::Value as Json;
use tempfile::TempDir;

#[cfg(feature = "peers")]
use crate::runtime::exported::computes_the_same;

/// A folder of exported models.
struct Exports {
    folder: TempDir,
    /// Arguments of the script: model, runs, outputs that are left away.
    arguments: Vec<PathBuf>,
    /// Outputs that RTen gave of files and of their exports alike.
    compared: usize,
}

impl Exports {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), arguments: Vec::new(), compared: 0 }
    }

    /// Exports a model under a name, which is to be run with the inputs of a file.
    #[track_caller]
    fn add(&mut self, name: &str, reader: &Reader, runs: Option<PathBuf>) -> Exported {
        self.add_with(name, reader, runs, "-", Export::new(reader))
    }

    /// Exports a model as it is told to, and leaves outputs away for ONNX Runtime alone.
    #[track_caller]
    fn add_with(
        &mut self,
        name: &str,
        reader: &Reader,
        runs: Option<PathBuf>,
        without: &str,
        export: Export<'_>,
    ) -> Exported {
        let path = self.folder.path().join(format!("{name}.onnx"));
        let exported = export.durability(Durability::Cached).write(&path);
        let exported = exported.unwrap_or_else(|error| panic!("{name}: {error}"));
        self.compared += computes_the_same(name, reader, &path, runs.as_deref());
        let runs = runs.unwrap_or_else(|| "-".into());
        self.arguments.extend([path, runs, without.into()]);
        exported
    }

    /// Checks and runs all models; `None` where the clients are not installed.
    #[track_caller]
    fn run(&self) -> Option<Vec<Json>> {
        let printed = Client::ONNX_RUNTIME.run("onnx_run.py", &self.arguments)?;
        Some(serde_json::from_value(printed).unwrap())
    }
}

#[cfg(not(feature = "peers"))]
fn computes_the_same(
    _: &str,
    _: &Reader,
    _: &std::path::Path,
    _: Option<&std::path::Path>,
) -> usize {
    0
}

/// Asserts that the checker has nothing to say about a model, and that it was loaded and run.
#[track_caller]
fn assert_sound(name: &str, found: &Json) {
    assert_eq!(found["error"], Json::Null, "{name}");
    assert_eq!(found["check"], Json::Null, "{name}");
}

/// What the checker says of a model that has an input or output without a shape.
const NO_SHAPE: &str = "Field 'shape' of 'type' is required but missing.";
