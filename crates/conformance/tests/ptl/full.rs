//! What the full runtime makes of our archives of `TorchScript` is what it makes of the models.

use std::{fs, path::Path};

use conformance::torch;
use ptl_spec::{Error, Reader, TorchScriptFault, torchscript};
use serde_json::{Value as Json, json};
use tensor_core::Severity;
use test_support::testdata;

/// Writes the archive of a model, which has no faults of its own.
fn converted(bytes: Vec<u8>, what: &str) -> Result<Vec<u8>, Error> {
    let reader = Reader::from_bytes(bytes)?;
    let mut written = Vec::new();
    torchscript(&reader, &mut written)?;
    let new = Reader::from_bytes(written.clone()).unwrap();
    let names = |reader: &Reader| -> Vec<String> {
        let tensors = reader.tensors().unwrap();
        let kept = tensors.filter(|tensor| tensor.place() != ptl_spec::Place::Bytecode);
        kept.map(|tensor| tensor.name().to_owned()).collect()
    };
    assert_eq!(names(&new), names(&reader), "{what}");
    let (before, after) = (reader.validate(), new.validate());
    let is_new =
        |rule: &str| rule != "ptl/not-lite" && !before.findings().iter().any(|b| b.rule == rule);
    let grave = after.findings().iter().filter(|found| found.severity > Severity::Note);
    assert_eq!(grave.filter(|found| is_new(&found.rule)).count(), 0, "{what}: {after:?}");
    Ok(written)
}

/// Has the full runtime load files, each with the model that it is called as; returns what it found.
fn load(folder: &Path, files: &[(String, &[u8])]) -> Option<Vec<Json>> {
    let mut jobs = Vec::new();
    for (index, (model, bytes)) in files.iter().enumerate() {
        let path = folder.join(format!("{index}.pt"));
        fs::write(&path, bytes).unwrap();
        jobs.push(json!({ "path": path, "model": model }));
    }
    let list = folder.join("jobs.json");
    fs::write(&list, Json::from(jobs).to_string()).unwrap();
    let found = torch::run("ptl_full.py", &["load".as_ref(), list.as_os_str()])?;
    let found = found.as_array().unwrap().clone();
    assert_eq!(found.len(), files.len());
    Some(found)
}

#[test]
fn models_of_both_containers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = torch::run("ptl_full.py", &["make".as_ref(), folder.path().as_os_str()])
    else {
        return;
    };
    let made = made.as_array().unwrap();
    let text = |one: &Json, key: &str| one[key].as_str().unwrap().to_owned();
    let written = made.iter().map(|one| {
        let file = text(one, "file");
        let written = converted(fs::read(folder.path().join(&file)).unwrap(), &file);
        (text(one, "model"), written.unwrap())
    });
    let written: Vec<_> = written.collect();
    assert!(written.len() > 30, "{}", written.len());
    let files: Vec<_> = written.iter().map(|(model, bytes)| (model.clone(), &**bytes)).collect();
    for (found, made) in load(folder.path(), &files).unwrap().iter().zip(made) {
        let what = text(made, "file");
        assert_eq!(found.get("error"), None, "{what}");
        assert_eq!(
            (&found["output"], &found["state"]),
            (&made["output"], &made["state"]),
            "{what}"
        );
        assert_eq!(found["output"].get("error"), None, "{what}");
    }
}

#[test]
fn files_of_testdata() {
    let folder = tempfile::tempdir().unwrap();
    let (mut names, mut files, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for of in ["torch113", "torch251", "backport", "variants"] {
        for path in test_support::files(&format!("ptl/valid/{of}"), "ptl") {
            let what = path.strip_prefix(testdata("ptl/valid")).unwrap().display().to_string();
            let before = fs::read(&path).unwrap();
            let after = match converted(before.clone(), &what) {
                Ok(after) => after,
                Err(error) => {
                    refused.push(format!("{what}: {error}"));
                    continue;
                }
            };
            let reader = Reader::from_bytes(before.clone()).unwrap();
            let forward = reader.bytecode().unwrap().forward().unwrap();
            let model = forward.arguments.as_deref().unwrap()[1].type_name.clone();
            files.extend([(model.clone(), before), (model, after)]);
            names.push(what);
        }
    }
    let twice = "variants/spec_twice.ptl: entry \"img/extra/model/live.spec.json\" at byte 5467: name \
                 stands twice in the directory";
    assert_eq!(refused, [twice]);
    let files: Vec<_> = files.iter().map(|(model, bytes)| (model.clone(), &**bytes)).collect();
    let Some(found) = load(folder.path(), &files) else { return };
    for ([before, after], what) in found.as_chunks::<2>().0.iter().zip(names) {
        assert_eq!(before.get("error"), None, "{what}");
        assert_eq!(after, before, "{what}");
    }
}

#[test]
fn without_source() {
    let reader = Reader::open(testdata("ptl/valid/torch113/img_fb.ptl")).unwrap();
    let mut bare = Vec::new();
    ptl_spec::rewrite(&reader, |name| !name.starts_with("code/"), &mut bare).unwrap();
    let error = converted(bare, "bare").unwrap_err();
    assert!(
        matches!(error, Error::NotTorchScript { fault: TorchScriptFault::NoSource }),
        "{error}"
    );
}
