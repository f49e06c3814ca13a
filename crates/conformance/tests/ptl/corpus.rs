//! The files of `testdata` that PyTorch has made, 2.5.1 among them, after our edits.

use std::{collections::BTreeMap, fs};

use bytes::Bytes;
use ptl_spec::{File, Reader, SPEC, Strip, rewrite, with_extra_files};
use serde_json::Value as Json;
use test_support::{files, testdata};

use crate::{Job, load};

const TEXT: &str = "{}";

/// A file as it was, with another spec, and that without source and dead bytes.
fn jobs(what: &str, bytes: &[u8]) -> [Job; 3] {
    let reader = Reader::from_bytes(bytes.to_vec()).unwrap();
    let forward = reader.bytecode().unwrap().forward().unwrap();
    let argument = &forward.arguments.as_deref().unwrap()[1];
    let job = |how: &str, bytes: Vec<u8>, extra| Job {
        what: format!("{what}: {how}"),
        bytes,
        model: argument.type_name.clone(),
        extra,
        output: Json::Null,
    };
    let content = |file: File<'_>| {
        let text = String::from_utf8(file.bytes().unwrap().into()).unwrap();
        (file.path().to_owned(), text)
    };
    let mut extra: BTreeMap<String, String> = reader.extra_files().map(content).collect();
    let as_it_was = job("as it was", bytes.to_vec(), Some(extra.clone()));
    extra.insert(SPEC.to_owned(), TEXT.to_owned());
    let edited = with_extra_files(bytes, [(SPEC, Some(Bytes::from(TEXT)))]).unwrap();
    let mut stripped = Vec::new();
    let reader = Reader::from_bytes(edited.clone()).unwrap();
    rewrite(&reader, |name| !Strip::Code.removes(name), &mut stripped).unwrap();
    [as_it_was, job("edited", edited, Some(extra)), job("stripped", stripped, None)]
}

#[test]
fn edited_files_give_what_they_gave() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for of in ["torch113", "torch251", "backport"] {
        for path in files(&format!("ptl/valid/{of}"), "ptl") {
            let what = path.strip_prefix(testdata("ptl/valid")).unwrap().display().to_string();
            all.extend(jobs(&what, &fs::read(&path).unwrap()));
        }
    }
    let Some(found) = load(&folder, &all) else { return };
    let mut computed = 0;
    for (jobs, found) in all.as_chunks_mut::<3>().0.iter_mut().zip(found.as_chunks::<3>().0) {
        for (job, result) in jobs.iter_mut().zip(found) {
            job.output = found[0]["output"].clone();
            job.assert(result);
        }
        computed += u32::from(found[0]["output"].get("error").is_none());
    }
    // Some take another input than we give them, and say so each time.
    assert!(computed > 30, "{computed} of {}", all.len() / 3);
}
