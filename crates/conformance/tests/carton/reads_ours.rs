//! The reference implementation reads what we write.

use std::sync::Arc;

use carton_format::{
    Change, Description, Example, Links, Named, NewValue, Reader, Reference, Value, WriteOptions,
    fetch::{Fetch, FetchError, Fetched, Link},
    fill, repack, replace_description, shrink,
};
use conformance::carton::{Sample, sha256};
use serde_json::{Value as Json, json};
use tensor_core::{Limits, Source};

use crate::{Exchange, assert_json, compressions, is_sound, options};

/// Asserts that the reference implementation reads a sample from each of some cartons; `None` where
/// it is not installed.
#[track_caller]
fn assert_read(exchange: &Exchange, cartons: &[Vec<u8>], sample: &Sample) -> Option<()> {
    let mut paths = Vec::new();
    for (at, carton) in cartons.iter().enumerate() {
        is_sound(carton);
        paths.push(exchange.put(&format!("{at}.carton"), carton));
    }
    let found = exchange.run("carton_read.py", paths)?;
    let misc: Json = sample.below("misc/").iter().map(|(k, v)| (k.clone(), sha256(v))).collect();
    let expected = json!({ "description": sample.resolved(), "misc": misc });
    assert_eq!(found.as_array().unwrap().len(), cartons.len());
    for (at, found) in found.as_array().unwrap().iter().enumerate() {
        assert_json(found, &expected, &format!("{at}.carton: "));
    }
    Some(())
}

fn packed(sample: &Sample) -> Vec<u8> {
    sample.pack(WriteOptions::default()).sink
}

/// A fetcher that has the content of some files.
struct Store(Vec<Vec<u8>>);

impl Fetch for Store {
    fn fetch(&self, link: &Link<'_>) -> Result<Fetched, FetchError> {
        let wanted = link.sha256.to_string();
        let content = self.0.iter().find(|content| sha256(content) == wanted).unwrap();
        Ok(Fetched::new(Source::from_bytes(content.clone())))
    }
}

#[test]
fn every_field_in_every_compression() {
    let sample = Sample::full();
    let packed = compressions().map(|compression| sample.pack(options(compression)).sink);
    assert_read(&Exchange::new(), &packed, &sample);
}

#[test]
fn every_alignment() {
    let sample = Sample::full();
    let packed = [1, 64, 4_096, 1 << 15]
        .map(|alignment| sample.pack(WriteOptions::default().alignment(alignment)).sink);
    assert_read(&Exchange::new(), &packed, &sample);
}

#[test]
fn as_little_as_there_can_be() {
    let exchange = Exchange::new();
    let mut sample = Sample::minimal();
    let Some(()) = assert_read(&exchange, &[packed(&sample)], &sample) else { return };
    sample.description.required_platforms = Some(Vec::new());
    sample.description.inputs = Some(Vec::new());
    sample.description.outputs = Some(Vec::new());
    sample.description.self_tests = Some(Vec::new());
    sample.description.examples = Some(Vec::new());
    sample.description.runner.options = Some(Named::default());
    assert_read(&exchange, &[packed(&sample)], &sample);
    // One list with items behind one without.
    sample.description.inputs = Sample::full().description.inputs;
    assert_read(&exchange, &[packed(&sample)], &sample);
}

#[test]
fn repacked() {
    let sample = Sample::full();
    let reader = is_sound(&packed(&sample));
    let repacked = compressions().map(|compression| {
        repack(&reader, options(compression).write_to(Vec::new()), |_| ()).unwrap().sink
    });
    assert_read(&Exchange::new(), &repacked, &sample);
}

#[test]
fn shrunk_and_filled() {
    let exchange = Exchange::new();
    let sample = Sample::full();
    let reader = is_sound(&packed(&sample));
    let mut links = Links::default();
    // Tensors without elements have the digest of an empty file.
    for file in reader.model().filter(|file| file.len().is_ok_and(|len| len > 0)) {
        links.add(file.sha256(), format!("https://models.example.com/{}", file.sha256()));
    }
    let writer = WriteOptions::default().write_to(Vec::new());
    let shrunk = shrink(&reader, &links, writer).unwrap().sink;
    let Some(()) = assert_read(&exchange, std::slice::from_ref(&shrunk), &sample) else { return };
    let store = Store(sample.files.values().cloned().collect());
    let reader = Reader::options().fetch(Arc::new(store)).from_bytes(shrunk).unwrap();
    let filled = fill(&reader, WriteOptions::default().write_to(Vec::new()), |_| ()).unwrap();
    assert!(is_sound(&filled.sink).links().is_none());
    assert_read(&exchange, &[filled.sink], &sample);
}

#[test]
fn edited() {
    let mut sample = Sample::full();
    let reader = is_sound(&packed(&sample));
    let text = reader.file("carton.toml").unwrap().bytes().unwrap();
    let name = "a \"new\" näme\nof two lines\u{1}";
    let changes = [
        Change::set("model_name", NewValue::Text(name.to_owned())),
        Change::remove("license"),
        Change::set("input[0].shape", NewValue::guess("[1, \"*\", \"n\"]")),
        Change::set("runner.opts.'a b'", NewValue::guess("-inf")),
    ];
    let text = Description::edit(&text, &changes, &Limits::default()).unwrap();
    // The tensors of self tests do not have the shape that the edit asks for.
    let writer = WriteOptions::default().unchecked().write_to(Vec::new());
    let edited = replace_description(&reader, &text, writer).unwrap().sink;
    let reader = Reader::from_bytes(edited.clone()).unwrap();
    sample.description = reader.description().unwrap().clone();
    assert_eq!(sample.description.model_name.as_deref(), Some(name));
    assert!(sample.description.license.is_none());
    sample.description.self_tests = None;
    let writer = WriteOptions::default().write_to(Vec::new());
    let text = sample.description.to_bytes().unwrap();
    let written = replace_description(&reader, &text, writer).unwrap().sink;
    assert_read(&Exchange::new(), &[written], &sample);
}

#[test]
fn nested_tensors() {
    let exchange = Exchange::new();
    let mut sample = Sample::full();
    let list = sample.tensors.iter().take(30).map(|(_, value)| value.clone()).collect();
    sample.tensors.push(("a/\"list\"".to_owned(), Value::Nested(list)));
    let Some(()) = assert_read(&exchange, &[packed(&sample)], &sample) else { return };
    let reference = Reference::Tensor("a/\"list\"".to_owned());
    let inputs = [("list", reference)].into_iter().collect();
    sample.description.examples = Some(vec![Example::new(inputs, Named::default())]);
    let path = exchange.put("nested.carton", &packed(&sample));
    let found = exchange.run("carton_nested.py", [path]).unwrap();
    let found = found.as_str().unwrap();
    assert!(found.contains("Nested tensor output not implemented yet"), "{found}");
}

#[test]
fn model_hash_and_what_a_runner_is_told() {
    let exchange = Exchange::new();
    for sample in [Sample::full(), Sample::minimal()] {
        let finished = sample.pack(WriteOptions::default());
        let path = exchange.put("ours.carton", &finished.sink);
        let Some(found) = exchange.run("carton_load.py", [path]) else { return };
        let expected = json!([{
            "runner_name": "noop",
            "required_framework_version": ">=1.0, <2",
            "runner_compat_version": 1,
            "opts": sample.options(),
            "model_hash": finished.manifest.model_hash().to_string(),
        }]);
        assert_json(&found, &expected, "");
    }
}

#[test]
fn many_files() {
    let exchange = Exchange::new();
    let path = exchange.put("many.carton", &crate::archives::many());
    let Some(found) = exchange.run("carton_read.py", [path]) else { return };
    assert_json(&found[0]["description"], &Sample::minimal().resolved(), "");
}
