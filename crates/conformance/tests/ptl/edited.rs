//! What we have edited PyTorch loads, and it gives what it gave.

use std::fs;

use bytes::Bytes;
use ptl_spec::{
    Editor, Reader, SPEC, Strip, WriteOptions, compact, rewrite, strip,
    tensor_core::output::Edited, with_extra_files,
};

use crate::{Job, Made, Model};

const TEXT: &str =
    r#"{"pack":{"type":"scalar_long","value":1},"unpack":{"type":"scalar_long","key":"k"}}"#;

fn set(file: &[u8], name: &str, content: &str) -> Vec<u8> {
    with_extra_files(file, [(name, Some(Bytes::from(content.to_owned())))]).unwrap()
}

/// Edits of extra files, one after another.
fn edits(model: &Model) -> Vec<Job> {
    let mut extra = model.extra();
    let mut jobs = vec![model.job("as it was", model.bytes.clone(), Some(extra.clone()))];
    let mut file = model.bytes.clone();
    let long = "x".repeat(100_000);
    for (what, name, content) in [
        ("a spec put in or replaced", SPEC, Some(TEXT)),
        ("a spec replaced by a long one", SPEC, Some(long.as_str())),
        ("a file put in", "größe/ß.txt", Some("1")),
        ("an empty file put in", "empty", Some("")),
        ("a spec removed", SPEC, None),
        ("a spec put in again", SPEC, Some(TEXT)),
    ] {
        file = match content {
            Some(content) => {
                extra.insert(name.to_owned(), content.to_owned());
                set(&file, name, content)
            }
            None => {
                extra.remove(name);
                with_extra_files(&file, [(name, None)]).unwrap()
            }
        };
        jobs.push(model.job(what, file.clone(), Some(extra.clone())));
    }
    if !model.is_flat() {
        // Of what is written in place some may be there, and the rest not.
        let tail = set(&file, "long", &"x".repeat(60_000)).split_off(file.len());
        for len in [1, tail.len() / 2, tail.len() - 22, tail.len() - 1] {
            let torn = [&file, &tail[..len]].concat();
            jobs.push(model.job("an edit that was killed", torn, Some(extra.clone())));
        }
    }
    jobs
}

#[test]
fn extra_files() {
    let Some(made) = Made::new() else { return };
    let jobs: Vec<Job> = made.models.iter().flat_map(edits).collect();
    made.assert_loaded(&jobs);
}

#[test]
fn extra_files_in_place() {
    let Some(made) = Made::new() else { return };
    let edit = |model: &Model| {
        let path = made.path(&model.file);
        let mut editor = Editor::open_with(&path, WriteOptions::default().allow_invalid()).unwrap();
        editor.set(SPEC, TEXT).unwrap();
        editor.set("notes", "n").unwrap();
        editor.commit().unwrap();
        let mut extra = model.extra();
        extra.extend([(SPEC, TEXT), ("notes", "n")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        model.job("edited in place", fs::read(&path).unwrap(), Some(extra))
    };
    let jobs: Vec<Job> = made.models.iter().map(edit).collect();
    made.assert_loaded(&jobs);
}

/// Files of which dead bytes, debug records and source were taken out.
fn rewritten(made: &Made, model: &Model) -> Vec<Job> {
    let path = made.path("rewritten.ptl");
    let write = |bytes: &[u8]| fs::write(&path, bytes).unwrap();
    let mut jobs = Vec::new();
    write(&set(&set(&model.bytes, SPEC, &"x".repeat(100_000)), SPEC, TEXT));
    let mut extra = model.extra();
    extra.insert(SPEC.to_owned(), TEXT.to_owned());
    let done = compact(&path, WriteOptions::default()).unwrap();
    let Edited::Replaced { before, after } = done else { panic!("{done:?}") };
    // A FlatBuffer has no dead bytes after an edit.
    assert!(model.is_flat() || before >= after + 100_000, "{done:?}");
    jobs.push(model.job("compacted", fs::read(&path).unwrap(), Some(extra)));
    let mut again = Vec::new();
    rewrite(&Reader::from_bytes(model.bytes.clone()).unwrap(), |_| true, &mut again).unwrap();
    assert!(again == model.bytes, "{}: rewritten as it was", model.file);
    if !model.is_flat() {
        write(&model.bytes);
        assert!(strip(&path, Strip::DebugRecords, WriteOptions::default()).unwrap().removed > 0);
        jobs.push(model.job(
            "without debug records",
            fs::read(&path).unwrap(),
            Some(model.extra()),
        ));
    }
    write(&model.bytes);
    assert!(strip(&path, Strip::Code, WriteOptions::default()).unwrap().removed > 0);
    // Only the lite interpreter does without the source.
    jobs.push(model.job("without code", fs::read(&path).unwrap(), None));
    jobs
}

#[test]
fn fewer_bytes() {
    let Some(made) = Made::new() else { return };
    let jobs: Vec<Job> = made.models.iter().flat_map(|model| rewritten(&made, model)).collect();
    for job in jobs.iter().filter(|job| job.what.ends_with("without code")) {
        let reader = Reader::from_bytes(job.bytes.clone()).unwrap();
        assert_eq!(reader.sources().unwrap().count(), 0, "{}", job.what);
        assert!(!job.bytes.windows(12).any(|window| window == b"def forward("), "{}", job.what);
    }
    made.assert_loaded(&jobs);
}
