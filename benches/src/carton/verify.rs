//! Verifying every digest of a carton.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use bytes::Bytes;
use carton_format::{Reader, tensor_core::Source};
use criterion::Throughput;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::write_stored;
use crate::{
    Bound::{Informative, SpeedAtLeast},
    Case, Scale, Topic,
    case::time,
    fixture,
};

/// Cartons of the same bytes: in many files, and in one.
#[derive(Debug)]
pub struct CartonVerify {
    content: Bytes,
    parts: PathBuf,
    single: PathBuf,
    _folder: TempDir,
}

impl Topic for CartonVerify {
    const NAME: &'static str = "carton_verify";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [parts, single] = ["parts", "single"].map(|name| folder.path().join(name));
        let content = Bytes::from(fixture::elements(scale.large));
        let part = content.len() / PARTS;
        let part = |index: usize| content.slice(index * part..(index + 1) * part);
        let names = (0..PARTS).map(|index| (index.to_string(), part(index)));
        write_stored(&parts, names)?;
        write_stored(&single, [("weights".to_owned(), content.clone())])?;
        fixture::warm(&parts)?;
        fixture::warm(&single)?;
        Ok(Self { content, parts, single, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.parts(), self.single()])
    }
}

impl CartonVerify {
    fn parts(&self) -> Case<'_> {
        let path = &self.parts;
        Case::new("16 files", Throughput::Bytes(self.content.len() as u64))
            .side("opened, 1 thread", move || validate(Source::open(path)?, 1))
            .side("opened, 2 threads", move || validate(Source::open(path)?, 2))
            .side("mapped, 1 thread", move || validate(fixture::map(path)?, 1))
            .side("mapped, 2 threads", move || validate(fixture::map(path)?, 2))
            .run("sha2, memory", || Ok(Sha256::digest(&self.content)))
            .run("sha2, memory, 2 threads", || fixture::hash_on_two_threads(&self.content))
            .run("sha2, read loop", move || fixture::hash_file(path))
            .run("sha2, read loop, 2 threads", move || fixture::hash_file_on_two_threads(path))
            .check(
                "carton: verify 1 GiB in 16 files, read by position, 1 thread",
                "opened, 1 thread",
                "sha2, memory",
                SpeedAtLeast(0.9),
            )
            .check("the same", "opened, 1 thread", "sha2, read loop", SpeedAtLeast(0.98))
            .check(
                "the same, 2 threads",
                "opened, 2 threads",
                "sha2, memory, 2 threads",
                SpeedAtLeast(0.9),
            )
            .check(
                "the same",
                "opened, 2 threads",
                "sha2, read loop, 2 threads",
                SpeedAtLeast(0.98),
            )
            .check(
                "carton: verify 1 GiB in 16 files, mapped, 1 thread",
                "mapped, 1 thread",
                "sha2, memory",
                SpeedAtLeast(0.9),
            )
            .check(
                "the same, 2 threads",
                "mapped, 2 threads",
                "sha2, memory, 2 threads",
                SpeedAtLeast(0.9),
            )
            .check("what 2 threads give", "opened, 2 threads", "opened, 1 thread", Informative)
    }

    /// One file, which only one core can hash.
    fn single(&self) -> Case<'_> {
        let path = &self.single;
        Case::new("1 file", Throughput::Bytes(self.content.len() as u64))
            .side("opened, 1 thread", move || validate(Source::open(path)?, 1))
            .side("opened, 2 threads", move || validate(Source::open(path)?, 2))
            .side("mapped, 2 threads", move || validate(fixture::map(path)?, 2))
            .run("sha2, memory", || Ok(Sha256::digest(&self.content)))
            .check(
                "carton: verify one file of 1 GiB, read by position, 1 thread",
                "opened, 1 thread",
                "sha2, memory",
                SpeedAtLeast(0.9),
            )
            .check("the same, 2 threads", "opened, 2 threads", "sha2, memory", SpeedAtLeast(0.9))
            .check(
                "the same, mapped, 2 threads",
                "mapped, 2 threads",
                "sha2, memory",
                SpeedAtLeast(0.9),
            )
    }
}

/// Opens a carton and verifies everything: a reader compares most digests only once.
fn validate(source: Source, count: usize) -> Result<Duration> {
    time(|| {
        let reader = Reader::options().threads(fixture::threads(count)).from_source(source)?;
        let report = reader.validate();
        ensure!(report.is_valid(), "{report:?}");
        Ok(())
    })
}

const PARTS: usize = 16;
