//! Opening cartons and reading what describes them.

use std::{
    fs::File,
    io::{BufReader, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use carton_format::Reader;
use criterion::Throughput;
use tempfile::TempDir;
use zip::ZipArchive;

use super::write_stored;
use crate::{
    Bound::{TimeAtMost, Within},
    Case, Scale, Topic, fixture,
};

/// Cartons of one file each, a small one and a large one, and one of many files.
#[derive(Debug)]
pub struct CartonOpen {
    small: PathBuf,
    large: PathBuf,
    many: PathBuf,
    files: u64,
    _folder: TempDir,
}

impl Topic for CartonOpen {
    const NAME: &'static str = "carton_open";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [small, large, many] = ["small", "large", "many"].map(|name| folder.path().join(name));
        let content = Bytes::from(fixture::elements(scale.large));
        let part = content.slice(..scale.large >> 10);
        write_stored(&small, [("weights".to_owned(), part)])?;
        write_stored(&large, [("weights".to_owned(), content.clone())])?;
        let names = fixture::names(scale.tensors / 10);
        let files = names.len() as u64;
        write_stored(&many, names.into_iter().map(|name| (name, content.slice(..64))))?;
        Ok(Self { small, large, many, files, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let describe = Case::new("describe", Throughput::Elements(1))
            .run("1 GiB", || describe(&self.large))
            .run("1 MiB", || describe(&self.small))
            .run("zip crate", || describe_by_zip(&self.large))
            .check(
                "carton: open 1 GiB, manifest and description",
                "1 GiB",
                "zip crate",
                Within(2.0),
            )
            .check("the same, against 1 MiB", "1 GiB", "1 MiB", TimeAtMost(1.25));
        let many = Case::new("many", Throughput::Elements(self.files))
            .run("ours", || Ok(Reader::open(&self.many)?))
            .run("zip crate", || Ok(ZipArchive::new(BufReader::new(File::open(&self.many)?))?))
            .check(
                "carton: open 10,000 files, all names checked",
                "ours",
                "zip crate",
                Within(20.0),
            );
        Ok(vec![describe, many])
    }
}

fn describe(path: &Path) -> Result<(Reader, Option<String>)> {
    let reader = Reader::open(path)?;
    let name = reader.description()?.model_name.clone();
    let weights = reader.file("model/weights").context("weights")?;
    weights.len()?;
    Ok((reader, name))
}

/// Reads the two texts, without a look at what they say.
fn describe_by_zip(path: &Path) -> Result<[String; 2]> {
    let mut archive = ZipArchive::new(BufReader::new(File::open(path)?))?;
    let mut texts = [const { String::new() }; 2];
    for (text, name) in texts.iter_mut().zip(["MANIFEST", "carton.toml"]) {
        archive.by_name(name)?.read_to_string(text)?;
    }
    Ok(texts)
}
