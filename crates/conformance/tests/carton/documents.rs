//! Python's tomllib reads the documents that we write.

use carton_format::{
    Change, Description, NewValue, Reader, Sha256, Value, Writer, dtype,
    model_archive::Compression, replace_description,
};
use conformance::{
    carton::{Sample, texts},
    python::Client,
};
use serde_json::{Value as Json, json};
use tensor_core::{DType, Limits};

use crate::{Exchange, assert_json, options};

/// Returns what tomllib reads of the documents in a carton; `None` where there is none.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn documents(carton: &[u8]) -> Option<Json> {
    let exchange = Exchange::new();
    let path = exchange.put("ours.carton", carton);
    let found = Client::ZSTANDARD.run("toml_read.py", &[path])?;
    if found.is_null() {
        eprintln!("skipped: this Python has no tomllib");
        return None;
    }
    Some(found)
}

fn packed(sample: &Sample) -> Vec<u8> {
    sample.pack(options(Compression::Stored)).sink
}

#[test]
fn carton_toml() {
    for sample in [Sample::full(), Sample::minimal()] {
        let Some(found) = documents(&packed(&sample)) else { return };
        assert_json(&found["carton.toml"], &sample.document(), "carton.toml");
    }
}

#[test]
fn edited_carton_toml() {
    let mut sample = Sample::full();
    let text = sample.description.to_bytes().unwrap();
    let set = |(at, text)| Change::set(format!("runner.opts.t{at}"), NewValue::Text(text));
    let changes: Vec<Change> = texts().into_iter().enumerate().map(set).collect();
    let text = Description::edit(&text, &changes, &Limits::default()).unwrap();
    sample.description = Description::parse(&text, &Limits::default()).unwrap().description;
    let options = sample.description.runner.options.as_ref().unwrap();
    for (at, text) in texts().into_iter().enumerate() {
        assert_eq!(options.get(&format!("t{at}")), Some(&text.into()));
    }
    let reader = Reader::from_bytes(packed(&Sample::full())).unwrap();
    let writer = crate::options(Compression::Stored).write_to(Vec::new());
    let edited = replace_description(&reader, &text, writer).unwrap().sink;
    let Some(found) = documents(&edited) else { return };
    assert_json(&found["carton.toml"], &sample.document(), "carton.toml");
}

#[test]
fn index_and_strings() {
    let mut sample = Sample::full();
    let list = vec![sample.tensors[0].1.clone(), sample.tensors[2].1.clone()];
    let Some(found) = documents(&packed(&sample)) else { return };
    let mut entries = Vec::new();
    for (at, (name, value)) in sample.tensors.iter().enumerate() {
        let (dtype, shape) = (value.dtype().unwrap(), value.shape().unwrap().dims());
        let extension = if dtype == DType::Str { "toml" } else { "bin" };
        let file = format!("tensor_{at}.{extension}");
        if let Value::Strings { strings, .. } = value {
            let path = format!("tensor_data/{file}");
            assert_json(&found[&path], &json!({ "data": strings }), &path);
        }
        entries.push(json!({
            "name": name, "dtype": dtype::name(dtype), "shape": shape, "file": file, "inner": [],
        }));
    }
    let index = "tensor_data/index.toml";
    assert_json(&found[index], &json!({ "tensor": entries }), index);
    sample.tensors = vec![("a \"list\"".to_owned(), Value::Nested(list))];
    sample.description = Sample::minimal().description;
    let found = documents(&packed(&sample)).unwrap();
    let inner = [0, 1].map(|at| format!("_carton_nested_inner_a \"list\"_{at}"));
    let last = json!({ "name": "a \"list\"", "dtype": "nested", "inner": inner });
    assert_json(&found[index]["tensor"][2], &last, index);
    assert_eq!(found[index]["tensor"][0]["name"], inner[0]);
}

#[test]
fn no_tensors() {
    let Some(found) = documents(&packed(&Sample::minimal())) else { return };
    assert_eq!(found["tensor_data/index.toml"], json!({ "tensor": [] }));
}

#[test]
fn links() {
    let sha256 = Sha256::digest(b"content");
    // Texts that are no URLs too, which writers refuse else.
    let options = options(Compression::Stored).unchecked();
    let mut writer: Writer<Vec<u8>> = options.write_to(Vec::new());
    writer.description(&Sample::minimal().description).unwrap();
    let texts = texts();
    writer.link("model/a", sha256, texts.iter().map(String::as_str)).unwrap();
    let Some(found) = documents(&writer.finish().unwrap().sink) else { return };
    let expected = json!({ "version": 1, "urls": { sha256.to_string(): texts } });
    assert_json(&found["LINKS"], &expected, "LINKS");
}
