//! We read what the reference implementation writes, made from what it reads of ours.

use std::path::Path;

use carton_format::{Links, Place, Reader, WriteOptions, Writer, shrink};
use conformance::carton::Sample;
use serde_json::Value as Json;

use crate::{Exchange, assert_json, compressions, is_sound, options};

/// Asserts that a carton holds those files of a sample that are below a folder, each where it is not
/// linked.
#[track_caller]
fn assert_files(reader: &Reader, sample: &Sample, folder: &str) {
    for (path, content) in sample.below(folder) {
        let file = reader.file(&format!("{folder}{path}")).unwrap();
        if file.place() == Place::Here {
            assert!(file.bytes().unwrap() == content, "{path}");
        }
    }
}

#[test]
fn written_again_by_the_reference() {
    let exchange = Exchange::new();
    let sample = Sample::full();
    for compression in compressions() {
        let finished = sample.pack(options(compression));
        let path = exchange.put("ours.carton", &finished.sink);
        let out = exchange.path("theirs.carton");
        let Some(_) = exchange.run("carton_shrink.py", [&path, &out]) else { return };
        let reader = is_sound(&std::fs::read(out).unwrap());
        assert_eq!(reader.manifest().as_str(), finished.manifest.as_str());
        assert_eq!(reader.description().unwrap(), &sample.description);
        assert_files(&reader, &sample, "");
        assert_json(&Sample::read(&reader).resolved(), &sample.resolved(), "");
    }
}

#[test]
fn shrunk_by_us_and_by_the_reference() {
    let exchange = Exchange::new();
    let sample = Sample::full();
    let reader = is_sound(&sample.pack(WriteOptions::default()).sink);
    let [noise, text] =
        ["model/noise.bin", "model/text.txt"].map(|path| reader.file(path).unwrap());
    let mut links = Links::default();
    links.add(noise.sha256(), "https://models.example.com/\"a\\b\"");
    let ours = shrink(&reader, &links, Writer::new(Vec::new())).unwrap().sink;
    let path = exchange.put("ours.carton", &ours);
    let out = exchange.path("theirs.carton");
    let added = [
        format!("{}=https://mirror.example.com/noise", noise.sha256()),
        format!("{}=https://mirror.example.com/text", text.sha256()),
    ];
    let args = [path.clone(), out.clone()].into_iter().chain(added.map(Into::into));
    let Some(_) = exchange.run("carton_shrink.py", args) else { return };
    links.add(noise.sha256(), "https://mirror.example.com/noise");
    links.add(text.sha256(), "https://mirror.example.com/text");
    let theirs = is_sound(&std::fs::read(out).unwrap());
    assert_eq!(theirs.links(), Some(&links));
    assert_eq!(theirs.model_hash(), reader.model_hash());
    // Every file with one of the digests is left out, links among them.
    for path in ["model/noise.bin", "model/sub/link", "model/text.txt"] {
        assert_eq!(theirs.file(path).unwrap().place(), Place::Linked, "{path}");
    }
    assert_files(&theirs, &sample, "");
}

/// Returns what the binding to Python makes of options: it has integers in place of booleans.
fn without_booleans(mut options: Json) -> Json {
    for (_, value) in options.as_object_mut().unwrap() {
        if let Some(boolean) = value.as_bool() {
            *value = u8::from(boolean).into();
        }
    }
    options
}

#[test]
fn packed_by_the_reference() {
    let exchange = Exchange::new();
    let sample = Sample::full();
    let path = exchange.put("ours.carton", &sample.pack(WriteOptions::default()).sink);
    let folder = exchange.path("folder");
    for (path, content) in &sample.files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    for (path, target) in &sample.links {
        std::os::unix::fs::symlink(target, folder.join(path)).unwrap();
    }
    let out = exchange.path("theirs.carton");
    let args = [path, folder.join("model"), out.clone()];
    let Some(_) = exchange.run("carton_pack.py", args) else { return };
    let reader = is_sound(&std::fs::read(out).unwrap());
    let found = Sample::read(&reader);
    let mut expected = sample.resolved();
    let options = without_booleans(expected["runner"]["opts"].take());
    expected["runner"]["opts"] = options;
    assert_json(&found.resolved(), &expected, "");
    assert_files(&reader, &sample, "model/");
    let flat = |path: &&String| !path.contains('/');
    let misc = sample.below("misc/");
    for path in misc.keys().filter(flat) {
        let file = reader.file(&format!("misc/{path}")).unwrap();
        assert!(file.bytes().unwrap() == misc[path], "{path}");
    }
    let link = reader.archive().unwrap().entry("model/sub/link").unwrap();
    assert_eq!(Path::new(&link.target().unwrap()), Path::new("../noise.bin"));
}
