//! PyTorch Live models, made, loaded and run by PyTorch, and edited by us in between.
//!
//! Debian's `python3-torch` is 1.13.1, which writes both containers. It makes the models itself, in a
//! temporary folder, or has made those of `testdata`; where it is absent a test says so and passes.

mod corpus;
mod edited;
mod full;
mod listed;
mod tokens;

use std::{collections::BTreeMap, fs, path::PathBuf};

use conformance::torch;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tensor_core::digest::Algorithm;

/// A folder with the models that PyTorch made, and what it says is in each.
struct Made {
    folder: TempDir,
    models: Vec<Model>,
}

/// A model file.
struct Model {
    file: String,
    /// What it is called with.
    model: String,
    described: Json,
    bytes: Vec<u8>,
}

/// A file that PyTorch is to load.
struct Job {
    bytes: Vec<u8>,
    /// What it is in messages.
    what: String,
    /// The model that it was.
    model: String,
    /// The extra files that it has to have, where the full runtime can load it.
    extra: Option<BTreeMap<String, String>>,
    /// What it has to give.
    output: Json,
}

impl Made {
    /// Has PyTorch make models; `None` where there is none.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let made = torch::run("ptl_make.py", &[folder.path()])?;
        let read = |described: &Json| {
            let text = |key: &str| described[key].as_str().unwrap().to_owned();
            let bytes = fs::read(folder.path().join(text("file"))).unwrap();
            Model { file: text("file"), model: text("model"), described: described.clone(), bytes }
        };
        let models: Vec<Model> = made["made"].as_array().unwrap().iter().map(read).collect();
        assert!(models.len() > 40, "{}", models.len());
        Some(Self { folder, models })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Has PyTorch load files, and asserts that each is what it was.
    fn assert_loaded(&self, jobs: &[Job]) {
        let found = load(&self.folder, jobs).unwrap();
        for (job, found) in jobs.iter().zip(&found) {
            job.assert(found);
        }
    }
}

/// Has PyTorch load files; `None` where there is none.
fn load(folder: &TempDir, jobs: &[Job]) -> Option<Vec<Json>> {
    let mut listed = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let path = folder.path().join(format!("edited_{index}.ptl"));
        fs::write(&path, &job.bytes).unwrap();
        let names: Vec<&String> = job.extra.iter().flatten().map(|(name, _)| name).collect();
        listed.push(json!({
            "path": path, "model": job.model, "full": job.extra.is_some(), "extra": names,
        }));
    }
    let list = folder.path().join("jobs.json");
    fs::write(&list, Json::from(listed).to_string()).unwrap();
    let found = torch::run("ptl_load.py", &[list])?;
    let found = found.as_array().unwrap().clone();
    assert_eq!(found.len(), jobs.len());
    Some(found)
}

impl Job {
    fn assert(&self, found: &Json) {
        let what = &self.what;
        assert_eq!(found.get("error"), None, "{what}");
        assert_eq!(found["output"], self.output, "{what}");
        if let Some(records) = found.get("records") {
            let reader = ptl_spec::Reader::from_bytes(self.bytes.clone()).unwrap();
            assert_eq!(records, &digests(&reader), "{what}");
        }
        if let Some(extra) = &self.extra {
            assert_eq!(found["full"], self.output, "{what}");
            assert_eq!(found["extra"], json!(extra), "{what}");
        }
    }
}

impl Model {
    fn is_flat(&self) -> bool {
        self.described["container"] == "flatbuffer"
    }

    /// Returns the extra files that PyTorch put in.
    fn extra(&self) -> BTreeMap<String, String> {
        let all = [("labels.txt", "a\nb\n"), (ptl_spec::SPEC, "{}"), ("unicode/ü.txt", "ü")];
        let all = all.map(|(name, content)| (name.to_owned(), content.to_owned()));
        let is_bare = self.file.ends_with("_bare.ptl");
        // Its tool for old versions loses what is in a folder.
        let is_kept = |name: &str| !is_bare && (self.version() > 7 || !name.contains('/'));
        all.into_iter().filter(|(name, _)| is_kept(name)).collect()
    }

    fn version(&self) -> u64 {
        self.described["version"].as_u64().unwrap()
    }

    /// Returns what PyTorch has to make of a file that came of this one.
    fn job(&self, what: &str, bytes: Vec<u8>, extra: Option<BTreeMap<String, String>>) -> Job {
        Job {
            bytes,
            what: format!("{}: {what}", self.file),
            model: self.model.clone(),
            extra,
            output: self.described["output"].clone(),
        }
    }
}

/// Returns the digests of all records, as the scripts print them.
fn digests(reader: &ptl_spec::Reader) -> Json {
    let digest = |record: ptl_spec::File<'_>| {
        record.verify().unwrap();
        (record.path().to_owned(), Json::from(sha256(&record.bytes().unwrap())))
    };
    Json::Object(reader.records().map(digest).collect())
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Algorithm::Sha256.digest(bytes).to_string();
    digest.strip_prefix("sha256:").unwrap().to_owned()
}
