//! Reading many small tensors of a carton.

use std::{
    fs::{self, File},
    hint::black_box,
    io::{BufReader, Cursor, Read, Seek},
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use bytes::Bytes;
use carton_format::{
    Pack, Reader, Value,
    model_archive::Compression,
    tensor_core::{DType, Source, TensorBuf},
};
use criterion::Throughput;
use tempfile::TempDir;
use zip::ZipArchive;

use super::{DESCRIPTION, unsynced};
use crate::{Bound::Within, Case, Scale, Topic, fixture};

/// Cartons of the same tensors: stored as they are, and compressed.
#[derive(Debug)]
pub struct CartonTensors {
    count: usize,
    stored: PathBuf,
    zstd: PathBuf,
    _folder: TempDir,
}

impl Topic for CartonTensors {
    const NAME: &'static str = "carton_tensors";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [stored, zstd] = ["stored", "zstd"].map(|name| folder.path().join(name));
        let count = scale.tensors / 10;
        write(&stored, Compression::Stored, count)?;
        write(&zstd, Compression::Zstd { level: 3 }, count)?;
        Ok(Self { count, stored, zstd, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![
            self.case(["stored", "carton: open, read 10,000 tensors, stored"], &self.stored)?,
            self.case(["zstd", "carton: open, read 10,000 tensors, zstd"], &self.zstd)?,
        ])
    }
}

impl CartonTensors {
    fn case<'f>(&'f self, [name, title]: [&'static str; 2], path: &'f Path) -> Result<Case<'f>> {
        let bytes = Bytes::from(fs::read(path)?);
        let same = bytes.clone();
        Ok(Case::new(name, Throughput::Elements(self.count as u64))
            .run("file", move || self.read(Source::open(path)?))
            .run("memory", move || self.read(Source::from_bytes(bytes.clone())))
            .run("zip crate, file", move || self.read_by_zip(BufReader::new(File::open(path)?)))
            .run("zip crate, memory", move || self.read_by_zip(Cursor::new(&same)))
            .check(title, "file", "zip crate, file", Within(60.0))
            .check("the same, in memory", "memory", "zip crate, memory", Within(60.0)))
    }

    /// Opens a carton and reads all tensors, whose digests are compared.
    fn read(&self, source: Source) -> Result<Reader> {
        let reader = Reader::from_source(source)?;
        let mut count = 0;
        for tensor in reader.tensors()? {
            black_box(tensor.bytes()?);
            count += 1;
        }
        ensure!(count == self.count, "all tensors are read");
        Ok(reader)
    }

    /// Reads all entries, with their checksums alone.
    fn read_by_zip<R: Read + Seek>(&self, stream: R) -> Result<()> {
        let mut archive = ZipArchive::new(stream)?;
        ensure!(archive.len() > self.count, "all tensors are there");
        for index in 0..archive.len() {
            let mut content = Vec::new();
            archive.by_index(index)?.read_to_end(&mut content)?;
            black_box(content);
        }
        Ok(())
    }
}

fn write(path: &Path, compression: Compression, count: usize) -> Result<()> {
    let mut pack = Pack::from_toml(DESCRIPTION)?;
    let content = Bytes::from(fixture::weights(BYTES));
    for name in fixture::names(count) {
        let tensor = TensorBuf::new(DType::F32, [BYTES as u64 / 4], content.clone())?;
        pack.tensor(&name, &Value::Numeric(tensor))?;
    }
    pack.write(unsynced(compression).create(path)?)?;
    Ok(())
}

/// Bytes of a tensor.
const BYTES: usize = 1 << 10;
