//! Files of named tensors that the packages of Python wrote.

use modelcrate::{
    AnyReader, Format, SummaryOptions,
    tensor_core::{Chain, ErrorKind},
    weights::{Layout, Planned, Reader},
};
use test_support::testdata;

fn open(name: &str) -> AnyReader {
    AnyReader::open(testdata("weights").join(name)).unwrap()
}

#[test]
fn all_have_the_same_tensor() {
    for (file, format, name) in [
        ("rows.npy", Format::Npy, "arr_0"),
        ("columns_big_endian.npy", Format::Npy, "arr_0"),
        ("arrays.npz", Format::Npz, "w"),
        ("compressed.npz", Format::Npz, "w"),
        ("model.safetensors", Format::Safetensors, "w"),
        ("model.safetensors.index.json", Format::Safetensors, "w"),
        ("model.gguf", Format::Gguf, "w"),
        ("aligned_64.gguf", Format::Gguf, "w"),
    ] {
        let reader = open(file);
        assert_eq!(reader.format(), format, "{file}");
        assert!(reader.validate().is_empty(), "{file}: {:?}", reader.validate());
        let tensor = reader.tensor(name).unwrap().unwrap().read().unwrap();
        assert_eq!(tensor.shape().dims(), [2, 3], "{file}");
        assert_eq!(tensor.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{file}");
    }
}

#[test]
fn element_types_and_metadata() {
    let arrays = open("compressed.npz");
    let found: Vec<String> =
        arrays.tensors().unwrap().map(|tensor| tensor.info().unwrap().to_string()).collect();
    assert_eq!(found, ["f32 [2, 3]", "i64 [3]", "bool [2]", "c64 [1]"]);
    let summary = open("model.gguf").summary(SummaryOptions::default().digests(true).stats(true));
    assert_eq!(summary.metadata["general.name"], "tiny");
    assert_eq!(summary.metadata["nested"], serde_json::json!([[1, 2], [3, 4]]));
    let [.., q] = summary.tensors.as_slice() else { panic!("{summary:?}") };
    assert_eq!((q.logical_type.as_deref(), q.bytes), (Some("q8_0"), 68));
    assert_eq!(summary.tensors[0].stats.as_ref().unwrap().mean, Some(2.5));
    assert!(
        summary.tensors.iter().all(|tensor| tensor.sha256.is_some()) && summary.findings.is_empty()
    );
    let safetensors = open("model.safetensors").summary(SummaryOptions::default());
    assert_eq!(safetensors.metadata["name"], "tiny");
}

#[test]
fn layouts_are_those_of_safetensors() {
    let path = testdata("weights/model.safetensors");
    let reader = Reader::open(&path).unwrap();
    let metadata = reader.metadata().iter();
    let metadata = metadata.map(|(key, text)| (key.clone(), text.as_str().unwrap().to_owned()));
    let tensors: Vec<_> = reader.tensors().collect();
    let planned: Vec<Planned<'_>> = tensors
        .iter()
        .map(|tensor| Planned {
            name: tensor.name(),
            element_type: tensor.element_type(),
            shape: tensor.shape(),
        })
        .collect();
    let layout = Layout::safetensors(&metadata.collect(), &planned).unwrap();
    let mut written = Vec::new();
    let write = |index: usize, sink: &mut dyn std::io::Write| {
        sink.write_all(&tensors[index].stored_bytes()?)?;
        Ok::<(), modelcrate::weights::Error>(())
    };
    layout.write(&mut written, write).unwrap();
    assert_eq!(written, std::fs::read(path).unwrap());
}

#[test]
fn an_index_needs_its_shards() {
    let index = std::fs::read(testdata("weights/model.safetensors.index.json")).unwrap();
    let error = AnyReader::from_bytes(index.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors.index.json");
    std::fs::write(&path, index).unwrap();
    assert_eq!(AnyReader::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
    for shard in ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"] {
        std::fs::write(folder.path().join(shard), b"PK\x03\x04 and so on").unwrap();
    }
    let error = AnyReader::open(&path).unwrap_err();
    let shown = Chain(&error).to_string();
    assert_eq!(shown, "shard \"model-00001-of-00002.safetensors\": is not a safetensors file");
}
