//! Verifying the digests of a file.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use criterion::Throughput;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use ztensor::{
    Reader, Storage,
    tensor_core::{Source, digest::Algorithm},
};

use crate::{
    Bound::{Informative, SpeedAtLeast},
    Case, Scale, Topic,
    case::time,
    fixture,
};

/// A file of 16 tensors with sha256 digests, and their bytes.
#[derive(Debug)]
pub struct Verify {
    data: Vec<u8>,
    path: PathBuf,
    _folder: TempDir,
}

impl Topic for Verify {
    const NAME: &'static str = "verify";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let path = folder.path().join("a.zt");
        let data = fixture::elements(scale.large);
        let part = data.len() / TENSORS;
        let names = fixture::names(TENSORS);
        let storage = Storage::default().digest(Algorithm::Sha256);
        let writer = fixture::unsynced(storage).create(&path)?;
        let tensors = names.iter().map(String::as_str).zip(data.chunks(part));
        fixture::write_ztensor(writer, &[part as u64 / 4], tensors)?;
        fixture::warm(&path)?;
        Ok(Self { data, path, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let part = self.data.len() / TENSORS;
        let case = Case::new("sha256", Throughput::Bytes(self.data.len() as u64));
        Ok(vec![
            case.side("opened, 1 thread", self.validation(Source::open(&self.path)?, 1)?)
                .side("opened, 2 threads", self.validation(Source::open(&self.path)?, 2)?)
                .side("mapped, 1 thread", self.validation(fixture::map(&self.path)?, 1)?)
                .side("mapped, 2 threads", self.validation(fixture::map(&self.path)?, 2)?)
                .run("sha2, 1 thread", move || {
                    Ok(self.data.chunks(part).map(Sha256::digest).collect::<Vec<_>>())
                })
                .run("sha2, 2 threads", || fixture::hash_on_two_threads(&self.data))
                .check(
                    "sha256 verify of 1 GiB, mapped, 1 thread",
                    "mapped, 1 thread",
                    "sha2, 1 thread",
                    SpeedAtLeast(0.95),
                )
                .check(
                    "the same, 2 threads",
                    "mapped, 2 threads",
                    "sha2, 1 thread",
                    SpeedAtLeast(1.8),
                )
                .check(
                    "what 2 threads give sha2 itself",
                    "sha2, 2 threads",
                    "sha2, 1 thread",
                    Informative,
                )
                .check(
                    "sha256 verify of 1 GiB, read by position, 1 thread",
                    "opened, 1 thread",
                    "sha2, 1 thread",
                    SpeedAtLeast(0.95),
                )
                .check(
                    "the same, 2 threads",
                    "opened, 2 threads",
                    "sha2, 1 thread",
                    SpeedAtLeast(1.8),
                ),
        ])
    }
}

impl Verify {
    fn validation(
        &self,
        source: Source,
        threads: usize,
    ) -> Result<impl FnMut() -> Result<Duration> + use<>> {
        let reader = Reader::options().threads(fixture::threads(threads)).from_source(source)?;
        Ok(move || {
            time(|| {
                let report = reader.validate();
                ensure!(report.is_empty(), "the file has faults");
                Ok(())
            })
        })
    }
}

const TENSORS: usize = 16;
