//! The samples, as the converter wrote them and in everything that we make of them.

use std::{fs, path::Path};

use rten_format::{Editor, Reader, Rewrite, Version, WriteOptions};
use test_support::files;

use super::client::{file_runs_like, load_both_ways, runs_like};

/// Calls `check` with every sample, and with the name of what it computes where that is known.
fn for_each_sample(mut check: impl FnMut(&Path, Option<&str>)) {
    for path in files("rten/valid", "rten") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (model, _) = name.split_once('.').unwrap();
        let is_known = path.with_file_name(format!("{model}.run.json")).exists();
        // Nothing can be said of what the operators of random numbers give.
        assert_eq!(is_known, model != "random_ops");
        check(&path, is_known.then_some(model));
    }
}

/// Runs what we make of every sample, or loads it where nothing can be said of its outputs.
fn for_each_made(make: impl Fn(&Reader) -> Option<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    for_each_sample(|path, model| {
        let Some(file) = make(&Reader::open(path).unwrap()) else { return };
        let reader = Reader::from_bytes(file.clone()).unwrap();
        assert!(reader.validate().is_valid(), "{path:?}");
        let Some(model) = model else {
            let made = folder.path().join("model.rten");
            fs::write(&made, &file).unwrap();
            drop(load_both_ways(&made));
            return;
        };
        runs_like(&file, model);
    });
}

#[test]
fn samples_give_their_outputs() {
    for_each_sample(|path, model| match model {
        Some(model) => file_runs_like(path, model),
        None => drop(load_both_ways(path)),
    });
}

#[test]
fn version_1_gives_the_same() {
    for_each_made(|reader| Some(Rewrite::new(reader).to_v1_bytes().unwrap()));
}

#[test]
fn version_2_gives_the_same() {
    for_each_made(|reader| Some(Rewrite::new(reader).write_v2(Vec::new()).unwrap()));
}

#[test]
fn every_layout_gives_the_same() {
    for (elements, alignment) in [(0, 1), (u64::MAX, 64), (4, 4096)] {
        let options = WriteOptions::default().inline_elements(elements).alignment(alignment);
        for_each_made(|reader| {
            Some(Rewrite::new(reader).options(options).write_v2(Vec::new()).unwrap())
        });
    }
}

/// A header in front of version 1 makes version 2.
#[test]
fn wrapped_samples_give_the_same() {
    for_each_made(|reader| {
        let is_first = reader.version() == Version::V1;
        is_first.then(|| Rewrite::new(reader).write_wrapped(Vec::new()).unwrap())
    });
}

#[test]
fn edited_samples_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.rten");
    for_each_made(|reader| {
        let whole = tensor_core::Extent::first(reader.source().len());
        fs::write(&path, reader.source().read(whole, "file").unwrap()).unwrap();
        for text in ["once", "twice"] {
            let mut editor = Editor::open(&path).unwrap();
            let metadata = editor.model_mut().metadata.get_or_insert_default();
            metadata.description = Some(text.to_owned());
            editor.commit().unwrap();
        }
        Some(fs::read(&path).unwrap())
    });
}

/// A model of which everything is asked for is the whole of it, but for what nothing reads.
#[test]
fn extracted_samples_give_the_same() {
    for_each_made(|reader| {
        let model = reader.model();
        let whole = model.extract(&model.graph.inputs, &model.graph.outputs).unwrap();
        Some(Rewrite::new(reader).model(whole).write_v2(Vec::new()).unwrap())
    });
}

#[test]
fn golden_files_load() {
    for path in files("rten/golden", "rten") {
        drop(load_both_ways(&path));
    }
}
