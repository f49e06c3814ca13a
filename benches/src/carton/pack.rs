//! Packing, unpacking and copying one large file.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Result;
use carton_format::{
    Links, Pack, Reader, UnpackOptions, model_archive::Compression, shrink, unpack,
};
use criterion::Throughput;
use tempfile::TempDir;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use super::{DESCRIPTION, PIECE, hash_file, remove, threads, unsynced, write_stored};
use crate::{Bound, Case, Scale, Topic, case::time, fixture};

/// Files to pack, and a carton of one of them.
#[derive(Debug)]
pub struct CartonPack {
    len: u64,
    /// Nothing that compression could find.
    noise: PathBuf,
    weights: PathBuf,
    carton: PathBuf,
    /// Replaced by every run: what was there is removed before the clock runs.
    target: PathBuf,
    _folder: TempDir,
}

impl Topic for CartonPack {
    const NAME: &'static str = "carton_pack";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [noise, weights, carton, target] =
            ["noise", "weights", "carton", "target"].map(|name| folder.path().join(name));
        // Repeated further away than level 3 of zstd looks back.
        let block = fixture::weights(scale.large.min(64 << 20));
        let mut file = File::create(&weights)?;
        for _ in 0..scale.large / block.len() {
            file.write_all(&block)?;
        }
        let content = fixture::noise(scale.large);
        fs::write(&noise, &content)?;
        write_stored(&carton, [("weights".to_owned(), content.into())])?;
        Ok(Self { len: scale.large as u64, noise, weights, carton, target, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.store(), self.compress(), self.unpack(), self.copy()])
    }
}

impl CartonPack {
    fn store(&self) -> Case<'_> {
        let case = Case::new("pack noise", Throughput::Bytes(self.len));
        let default = Compression::ZstdIfSmaller { level: LEVEL };
        self.packs(case, &self.noise, default)
            .side("sha2, read loop", || time(|| hash_file(&self.noise)))
            .side("copy loop", || self.timed(|| copy(&self.noise, &self.target)))
            .side("zip crate", || self.timed(|| self.pack_by_zip()))
            .check(
                "carton: pack 1 GiB of noise, 2 threads",
                "ours, 2 threads",
                &["sha2, read loop"],
                Bound::TimeAtMost(1.25),
            )
            .check("the same, 1 thread", "ours, 1 thread", &["sha2, read loop"], Bound::Informative)
            .check("a plain copy of it", "copy loop", &["sha2, read loop"], Bound::Informative)
            .check(
                "pack 1 GiB of noise, 1 thread",
                "ours, 1 thread",
                &["zip crate"],
                Bound::Informative,
            )
    }

    fn compress(&self) -> Case<'_> {
        let case = Case::new("pack weights", Throughput::Bytes(self.len));
        self.packs(case, &self.weights, Compression::Zstd { level: LEVEL })
            .side("libzstd", || self.timed(|| self.compress_by_zstd()))
            .side("sha2, read loop", || time(|| hash_file(&self.weights)))
            .check(
                "carton: pack 1 GiB of weights with zstd, 2 threads",
                "ours, 2 threads",
                &["libzstd"],
                Bound::TimeAtMost(1.1),
            )
            .check("the same, 1 thread", "ours, 1 thread", &["libzstd"], Bound::Informative)
            .check("hashing it", "sha2, read loop", &["libzstd"], Bound::Informative)
    }

    fn unpack(&self) -> Case<'_> {
        Case::new("unpack", Throughput::Bytes(self.len))
            .side("ours", || {
                self.timed(|| {
                    let reader = Reader::open(&self.carton)?;
                    let options = UnpackOptions::default();
                    Ok(unpack(&reader, &self.target, &options, |_| ())?)
                })
            })
            .side("zip crate", || {
                self.timed(
                    || Ok(ZipArchive::new(File::open(&self.carton)?)?.extract(&self.target)?),
                )
            })
            .side("sha2, read loop", || time(|| hash_file(&self.carton)))
            .check("carton: unpack 1 GiB", "ours", &["sha2, read loop"], Bound::Informative)
            .check("the same, without digests there", "ours", &["zip crate"], Bound::Informative)
    }

    fn copy(&self) -> Case<'_> {
        Case::new("copy", Throughput::Bytes(self.len))
            .side("ours", || {
                self.timed(|| {
                    let reader = Reader::open(&self.carton)?;
                    let writer = unsynced(Compression::Stored).create(&self.target)?;
                    Ok(shrink(&reader, &Links::default(), writer)?)
                })
            })
            .side("copy loop", || self.timed(|| copy(&self.carton, &self.target)))
            .side("fs::copy", || self.timed(|| Ok(fs::copy(&self.carton, &self.target)?)))
            .check(
                "carton: copy 1 GiB with another MANIFEST",
                "ours",
                &["copy loop"],
                Bound::TimeAtMost(1.1),
            )
            .check("the same", "ours", &["fs::copy"], Bound::Informative)
    }

    /// Adds packing of a file on one thread and on two.
    fn packs<'f>(&'f self, case: Case<'f>, file: &'f Path, compression: Compression) -> Case<'f> {
        let pack = move |count| {
            self.timed(|| {
                let mut pack = Pack::from_toml(DESCRIPTION)?;
                pack.model(file)?;
                let options = unsynced(compression).threads(threads(count));
                Ok(pack.write(options.create(&self.target)?)?)
            })
        };
        case.side("ours, 1 thread", move || pack(1)).side("ours, 2 threads", move || pack(2))
    }

    /// Times what makes the target, which is not there before.
    fn timed<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<std::time::Duration> {
        remove(&self.target)?;
        time(work)
    }

    fn pack_by_zip(&self) -> Result<()> {
        let mut archive = ZipWriter::new(BufWriter::new(File::create(&self.target)?));
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(true);
        archive.start_file("model/noise", options)?;
        pieces(&self.noise, |piece| archive.write_all(piece))?;
        archive.finish()?.flush()?;
        Ok(())
    }

    fn compress_by_zstd(&self) -> Result<()> {
        let file = BufWriter::new(File::create(&self.target)?);
        let mut encoder = zstd::stream::write::Encoder::new(file, LEVEL)?;
        pieces(&self.weights, |piece| encoder.write_all(piece))?;
        encoder.finish()?.flush()?;
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut file = File::create(to)?;
    pieces(from, |piece| file.write_all(piece))
}

/// Reads a file piece by piece.
fn pieces(path: &Path, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> Result<()> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; PIECE]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => take(&buffer[..read])?,
        }
    }
}

const LEVEL: i32 = 3;
