//! Looking at one large tensor in a warm file: what its elements are like, and whether those of
//! another file are the same.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use criterion::Throughput;
use modelcrate::{AnyReader, DiffOptions, SummaryOptions};
use tempfile::TempDir;
use ztensor::Storage;

use crate::{Bound::SpeedAtLeast, Case, Scale, Topic, case::time, fixture};

/// One tensor of `f32` in two files.
#[derive(Debug)]
pub struct Content {
    len: usize,
    files: [PathBuf; 2],
    _folder: TempDir,
}

impl Topic for Content {
    const NAME: &'static str = "content";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let files = ["a.zt", "b.zt"].map(|name| folder.path().join(name));
        let data = fixture::elements(scale.large);
        for path in &files {
            let writer = fixture::unsynced(Storage::default()).create(path)?;
            let tensor = [("weight", data.as_slice())];
            fixture::write_ztensor(writer, &[(scale.large / 4) as u64], tensor)?;
            fixture::warm(path)?;
        }
        Ok(Self { len: scale.large, files, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.stats(), self.diff()])
    }
}

impl Content {
    fn stats(&self) -> Case<'_> {
        let [path, _] = &self.files;
        Case::new("statistics of f32", Throughput::Bytes(self.len as u64))
            .run("ours", move || {
                let summary = AnyReader::open(path)?.summary(SummaryOptions::default().stats(true));
                summary.tensors.first().and_then(|of| of.stats.clone()).context("no tensor")
            })
            .run("read and sum", move || read(path))
            .check(
                "statistics of 1 GiB of f32, one thread",
                "ours",
                "read and sum",
                SpeedAtLeast(0.5),
            )
    }

    fn diff(&self) -> Case<'_> {
        let [one, other] = &self.files;
        Case::new("equal files", Throughput::Bytes(2 * self.len as u64))
            .run("ours", move || {
                let (old, new) = (AnyReader::open(one)?, AnyReader::open(other)?);
                let found = old.diff(&new, &DiffOptions::default(), |_| true, |_| ())?;
                anyhow::ensure!(found.is_empty() && found.same == 1, "{found:?}");
                Ok(found)
            })
            .side("read and sum", || self.read_both())
            .check("diff of two equal files of 1 GiB", "ours", "read and sum", SpeedAtLeast(0.8))
    }

    /// Reads both files, each on a thread of its own.
    fn read_both(&self) -> Result<Duration> {
        let [one, other] = &self.files;
        time(|| {
            thread::scope(|scope| {
                let first = scope.spawn(|| read(one));
                let second = read(other)?;
                let first = first.join().ok().context("a thread panicked")??;
                Ok(first + second)
            })
        })
    }
}

/// Reads a file piece by piece and looks at every element.
pub(crate) fn read(path: &Path) -> Result<f32> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; 256 << 10]);
    let mut totals = [0.0_f32; 64];
    loop {
        let len = file.read(&mut piece)?;
        if len == 0 {
            return Ok(totals.iter().sum());
        }
        let numbers: &[f32] = bytemuck::cast_slice(&piece[..len / 4 * 4]);
        for chunk in numbers.as_chunks::<64>().0 {
            for (total, number) in totals.iter_mut().zip(chunk) {
                *total += number;
            }
        }
    }
}
