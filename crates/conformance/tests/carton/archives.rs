//! Tools that know nothing of Carton read our archives: Python's zipfile and hashlib, Info-ZIP.

use std::{collections::BTreeSet, path::Path};

use carton_format::{
    Links, Reader, WriteOptions, Writer,
    model_archive::{Compression, Entry},
    shrink,
};
use conformance::{
    carton::Sample,
    process::{output, tool},
    python::Client,
};
use serde_json::Value as Json;

use crate::{Exchange, compressions, options};

/// Returns a carton of more entries than the old records of ZIP can count.
pub(crate) fn many() -> Vec<u8> {
    let mut writer = options(Compression::Stored).write_to(Vec::new());
    writer.description(&Sample::minimal().description).unwrap();
    for at in 0..FILES {
        writer.file(&format!("model/{:02}/{at}.ü", at % 100), at.to_string().as_bytes()).unwrap();
    }
    writer.finish().unwrap().sink
}

const FILES: usize = 70_000;

/// Asserts that zipfile finds the entries that a carton has, and hashlib the digests in `MANIFEST`;
/// `None` where the client is not installed.
#[track_caller]
fn assert_entries(path: &Path) -> Option<Json> {
    let found = Client::ZSTANDARD.run("zip_read.py", &[path])?;
    let reader = Reader::from_bytes(std::fs::read(path).unwrap()).unwrap();
    let entries = found[0]["entries"].as_array().unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    let archive = reader.archive().unwrap();
    assert!(names.iter().copied().eq(archive.entries().map(Entry::name)), "{names:?}");
    for (found, entry) in entries.iter().zip(archive.entries()) {
        let info = entry.info();
        assert_eq!(found["size"], info.size, "{}", entry.name());
        assert_eq!(found["data_offset"], entry.extent().unwrap().offset(), "{}", entry.name());
    }
    assert_eq!(found[0]["manifest"], reader.model_hash().to_string());
    Some(found[0]["entries"].clone())
}

fn entry<'a>(entries: &'a Json, name: &str) -> &'a Json {
    entries.as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap()
}

/// What the reference wrote is hashed to its end, which takes half a minute without optimisation.
#[cfg(feature = "peers")]
#[test]
fn every_byte_beyond_4_gib() {
    let path = test_support::testdata("carton/valid/ref_zip64_4gib.carton");
    let report = Reader::open(path).unwrap().validate();
    assert!(report.is_empty(), "{report:?}");
}

#[test]
fn zipfile_reads_every_compression() {
    let exchange = Exchange::new();
    let methods = [(0, 0), (8, 8), (8, 0), (93, 93), (93, 0)];
    for (compression, (of_text, of_noise)) in compressions().into_iter().zip(methods) {
        let path = exchange.put("ours.carton", &Sample::full().pack(options(compression)).sink);
        let Some(entries) = assert_entries(&path) else { return };
        assert_eq!(entry(&entries, "model/text.txt")["method"], of_text);
        assert_eq!(entry(&entries, "model/noise.bin")["method"], of_noise);
        assert_eq!(entry(&entries, "model/text.txt")["mode"], 0o100_644);
        assert_eq!(entry(&entries, "model/sub/link")["mode"], 0o120_777);
        for long in ["model/text.txt", "model/noise.bin", "misc/long.txt"] {
            assert_eq!(entry(&entries, long)["has_descriptor"], true, "{long}");
        }
        assert_eq!(entry(&entries, "model/empty")["has_descriptor"], false);
    }
}

#[test]
fn zipfile_finds_aligned_data() {
    let exchange = Exchange::new();
    for alignment in [1, 64, 4_096, 1 << 15] {
        let options = options(Compression::Stored).alignment(alignment);
        let path = exchange.put("ours.carton", &Sample::full().pack(options).sink);
        let Some(entries) = assert_entries(&path) else { return };
        for path in Sample::full().files.keys() {
            let offset = entry(&entries, path)["data_offset"].as_u64().unwrap();
            assert!(offset.is_multiple_of(alignment.into()), "{path} at byte {offset}");
        }
    }
}

#[test]
fn zipfile_reads_linked_cartons() {
    let exchange = Exchange::new();
    let reader = Reader::from_bytes(Sample::full().pack(WriteOptions::default()).sink).unwrap();
    let mut links = Links::default();
    links.add(reader.file("model/noise.bin").unwrap().sha256(), "https://models.example.com/n");
    let shrunk = shrink(&reader, &links, Writer::new(Vec::new())).unwrap();
    assert_entries(&exchange.put("shrunk.carton", &shrunk.sink));
}

#[test]
fn zipfile_reads_many_entries() {
    let exchange = Exchange::new();
    let Some(entries) = assert_entries(&exchange.put("many.carton", &many())) else { return };
    // Beside the model there are carton.toml, the index of tensors and MANIFEST.
    assert_eq!(entries.as_array().unwrap().len(), FILES + 3);
}

/// Asserts that Info-ZIP lists the entries of a carton; `None` where it is not installed.
#[track_caller]
fn assert_listed(path: &Path) -> Option<()> {
    let mut zipinfo = tool("zipinfo", "-h")?;
    zipinfo.env("LC_ALL", "C.UTF-8").arg("-1").arg(path);
    let listed = String::from_utf8(output(zipinfo).unwrap()).unwrap();
    let listed: BTreeSet<&str> = listed.lines().collect();
    let reader = Reader::open(path).unwrap();
    let names: BTreeSet<&str> = reader.archive().unwrap().entries().map(Entry::name).collect();
    assert_eq!(listed, names);
    Some(())
}

#[test]
fn info_zip_lists_every_compression() {
    let exchange = Exchange::new();
    for compression in compressions() {
        let path = exchange.put("ours.carton", &Sample::full().pack(options(compression)).sink);
        let Some(()) = assert_listed(&path) else { return };
    }
}

/// The ones that Info-ZIP decodes.
const COMMON: [Compression; 2] = [Compression::Stored, Compression::Deflate { level: 9 }];

#[test]
fn info_zip_finds_no_fault() {
    let exchange = Exchange::new();
    let mut cartons =
        COMMON.map(|compression| Sample::full().pack(options(compression)).sink).to_vec();
    cartons.push(Sample::full().pack(options(Compression::Stored).alignment(1 << 15)).sink);
    cartons.push(many());
    for carton in cartons {
        let path = exchange.put("ours.carton", &carton);
        let Some(mut unzip) = tool("unzip", "-v") else { return };
        unzip.args(["-t", "-qq"]).arg(path);
        // A warning is an exit status too.
        let printed = output(unzip).unwrap();
        assert_eq!(String::from_utf8_lossy(&printed), "");
    }
}

#[cfg(unix)]
#[test]
fn info_zip_extracts_what_was_packed() {
    let exchange = Exchange::new();
    let sample = Sample::full();
    for (at, compression) in COMMON.into_iter().enumerate() {
        let path = exchange.put("ours.carton", &sample.pack(options(compression)).sink);
        let Some(mut unzip) = tool("unzip", "-v") else { return };
        let folder = exchange.path(&at.to_string());
        unzip.env("LC_ALL", "C.UTF-8").arg("-q").arg(path).arg("-d").arg(&folder);
        output(unzip).unwrap();
        for (path, content) in sample.below("") {
            assert!(std::fs::read(folder.join(&path)).unwrap() == content, "{path}");
        }
        for (path, target) in &sample.links {
            assert_eq!(std::fs::read_link(folder.join(path)).unwrap(), Path::new(target));
        }
        // What is extracted is a carton too.
        let report = Reader::open(&folder).unwrap().validate();
        assert!(report.worst() < Some(tensor_core::Severity::Error), "{report:?}");
    }
}
