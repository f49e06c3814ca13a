//! An index of shards: a JSON object that says which tensor is in which file beside it.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use tensor_core::{Extent, Finding, Limit, Limits, Source};

use super::{
    Error, Reader, Result,
    contents::{Contents, Plain},
    reader::Inner,
    safetensors::{self, Unique},
};
use crate::Format;

/// Tells whether a file starts as an index does.
pub(crate) fn sniff(source: &Source) -> Result<bool> {
    let read = |len| source.read(Extent::first(source.len().min(len)), "start of the file");
    if read(1)?.first() != Some(&b'{') {
        return Ok(false);
    }
    let start = read(LOOK)?;
    let text: Vec<u8> = start.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let starts = [&b"{\"metadata\":{"[..], b"{\"weight_map\":{"];
    let is_named = text.windows(WEIGHT_MAP.len()).any(|window| window == WEIGHT_MAP);
    Ok(is_named && starts.iter().any(|start| text.starts_with(start)))
}

/// Opens an index and the shards that it names, which are files beside it.
pub(crate) fn open(
    index: &Source,
    beside: &dyn Fn(&str) -> tensor_core::Result<Source>,
    limits: Limits,
) -> Result<Reader> {
    limits.check(Limit::DocumentBytes, "length of the index in bytes", index.len())?;
    let text = index.read(Extent::first(index.len()), "index")?;
    let index: Index = serde_json::from_slice(&text)
        .map_err(|error| Error::malformed("safetensors/index", 0, format!("index: {error}")))?;
    let mut files: Vec<&String> = index.weight_map.0.values().collect();
    files.sort_unstable();
    files.dedup();
    limits.check(Limit::Entries, "number of shards", files.len() as u64)?;
    let (mut sources, mut contents) = (Vec::new(), Contents::default());
    for (number, file) in files.iter().enumerate() {
        let in_shard = |source| Error::Shard { file: (*file).clone(), source: Box::new(source) };
        let source = beside(plain(file)?)?;
        let tensors = read(&source, &limits).map_err(in_shard)?;
        sources.push(source);
        for tensor in tensors {
            let name = &tensor.name;
            if index.weight_map.0.get(name) == Some(*file) {
                contents.entries.push(tensor.in_source(number));
                continue;
            }
            let message =
                format!("tensor {name:?} is in shard {file:?}, but the index does not say so");
            let found = Finding::warning("safetensors/unlisted", message).tensor(name);
            contents.findings.add(found);
        }
        limits.check(Limit::Tensors, "number of tensors", contents.entries.len() as u64)?;
    }
    let found: HashMap<&str, ()> =
        contents.entries.iter().map(|entry| (&*entry.name, ())).collect();
    if let Some((name, file)) =
        index.weight_map.0.iter().find(|(name, _)| !found.contains_key(&***name))
    {
        let reason =
            format!("tensor {name:?} is not in shard {file:?}, where the index says it is");
        return Err(Error::malformed("safetensors/shard", 0, reason));
    }
    contents.shards = files.into_iter().cloned().collect();
    contents.metadata = index.metadata;
    Inner::new(Format::Safetensors, sources, limits, contents)?.finish()
}

fn read(shard: &Source, limits: &Limits) -> Result<Vec<Plain>> {
    let start = shard.read(Extent::first(shard.len().min(16)), "start of the file")?;
    if safetensors::sniff(&start) {
        return Ok(safetensors::read(shard, limits)?.1);
    }
    Err(Error::Unsupported { what: "is not a safetensors file".to_owned() })
}

/// Returns the name of a shard, where it is one of a file in the same folder.
fn plain(file: &str) -> Result<&str> {
    if !file.is_empty() && !file.contains(['/', '\\', ':', '\0']) && file != "." && file != ".." {
        return Ok(file);
    }
    let reason = format!("index names the shard {file:?}, expected a file beside it");
    Err(Error::malformed("safetensors/shard-path", 0, reason))
}

#[derive(serde::Deserialize)]
struct Index {
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    weight_map: Unique<String>,
}

/// How many bytes tell.
const LOOK: u64 = 4096;

const WEIGHT_MAP: &[u8] = b"\"weight_map\":{";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shard(names: &[&str]) -> Vec<u8> {
        let tensors = names.iter().enumerate().map(|(index, name)| {
            let (start, end) = (index * 2, index * 2 + 2);
            format!(r#""{name}":{{"dtype":"U8","shape":[2],"data_offsets":[{start},{end}]}}"#)
        });
        let header = format!("{{{}}}", tensors.collect::<Vec<_>>().join(","));
        let data = vec![names.len() as u8; names.len() * 2];
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
    }

    /// Opens an index of two shards, whose map of tensors is given.
    fn open(map: &str) -> Result<Reader> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1.safetensors"), shard(&["a", "b"])).unwrap();
        fs::write(folder.path().join("2.safetensors"), shard(&["c"])).unwrap();
        let path = folder.path().join("model.safetensors.index.json");
        let index = format!(
            r#"{{ "metadata": {{"total_size": 6}},
 "weight_map": {{{map}}} }}"#
        );
        fs::write(&path, index.replace("\\n", "\n")).unwrap();
        Reader::open(path)
    }

    #[test]
    fn shards_are_one_file() {
        let reader =
            open(r#""a":"1.safetensors","b":"1.safetensors","c":"2.safetensors""#).unwrap();
        let names: Vec<_> = reader.tensors().map(crate::weights::Tensor::name).collect();
        assert_eq!(
            (names, reader.metadata()["total_size"].as_u64()),
            (vec!["a", "b", "c"], Some(6))
        );
        assert_eq!(reader.tensor("c").unwrap().bytes().unwrap()[..], [1, 1]);
        assert_eq!(reader.tensor("b").unwrap().bytes().unwrap()[..], [2, 2]);
        assert!(reader.source().is_none() && reader.validate().is_empty());
    }

    #[test]
    fn what_the_index_does_not_list() {
        let report = open(r#""a":"1.safetensors","c":"2.safetensors""#).unwrap().lint();
        assert_eq!(report.findings()[0].rule, "safetensors/unlisted");
    }

    #[track_caller]
    fn rejects(map: &str, message: &str) {
        assert_eq!(open(map).unwrap_err().to_string(), message);
    }

    #[test]
    fn broken_indexes() {
        rejects(
            r#""d":"1.safetensors""#,
            "tensor \"d\" is not in shard \"1.safetensors\", where the index says it is",
        );
        rejects(
            r#""a":"../1.safetensors""#,
            "index names the shard \"../1.safetensors\", expected a file beside it",
        );
        rejects(
            r#""a":"1.safetensors","a":"2.safetensors""#,
            "index: \"a\" stands twice, expected once at line 2 column 56",
        );
        assert!(
            open(r#""a":"3.safetensors""#).unwrap_err().kind() == tensor_core::ErrorKind::NotFound
        );
    }
}
