//! Packing, unpacking and copying one large file.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Result;
use carton_format::{
    Links, Pack, Reader, UnpackOptions, model_archive::Compression, shrink, unpack,
};
use criterion::Throughput;
use tempfile::TempDir;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use super::{DESCRIPTION, unsynced, write_stored};
use crate::{
    Bound::{Informative, TimeAtMost},
    Case, Scale, Topic, fixture,
};

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
            .run("sha2, read loop", || fixture::hash_file(&self.noise))
            .make("copy loop", &self.target, || {
                fixture::copy_file(&self.noise, &self.target, PIECE)
            })
            .make("zip crate", &self.target, || self.pack_by_zip())
            .check(
                "carton: pack 1 GiB of noise, 2 threads",
                "ours, 2 threads",
                "sha2, read loop",
                TimeAtMost(1.25),
            )
            .check("the same, 1 thread", "ours, 1 thread", "sha2, read loop", TimeAtMost(1.6))
            .check("a plain copy of it", "copy loop", "sha2, read loop", Informative)
            .check("pack 1 GiB of noise, 1 thread", "ours, 1 thread", "zip crate", Informative)
    }

    fn compress(&self) -> Case<'_> {
        let case = Case::new("pack weights", Throughput::Bytes(self.len));
        self.packs(case, &self.weights, Compression::Zstd { level: LEVEL })
            .make("libzstd", &self.target, || self.compress_by_zstd())
            .run("sha2, read loop", || fixture::hash_file(&self.weights))
            .check(
                "carton: pack 1 GiB of weights with zstd, 2 threads",
                "ours, 2 threads",
                "libzstd",
                TimeAtMost(1.1),
            )
            .check("the same, 1 thread", "ours, 1 thread", "libzstd", TimeAtMost(1.5))
            .check("hashing it", "sha2, read loop", "libzstd", Informative)
    }

    fn unpack(&self) -> Case<'_> {
        Case::new("unpack", Throughput::Bytes(self.len))
            .make("ours", &self.target, || {
                let reader = Reader::open(&self.carton)?;
                let options = UnpackOptions::default();
                Ok(unpack(&reader, &self.target, &options, |_| ())?)
            })
            .make("zip crate", &self.target, || {
                Ok(ZipArchive::new(File::open(&self.carton)?)?.extract(&self.target)?)
            })
            .run("sha2, read loop", || fixture::hash_file(&self.carton))
            .check("carton: unpack 1 GiB", "ours", "sha2, read loop", TimeAtMost(1.6))
            .check("the same, without digests there", "ours", "zip crate", Informative)
    }

    fn copy(&self) -> Case<'_> {
        Case::new("copy", Throughput::Bytes(self.len))
            .make("ours", &self.target, || {
                let reader = Reader::open(&self.carton)?;
                let writer = unsynced(Compression::Stored).create(&self.target)?;
                Ok(shrink(&reader, &Links::default(), writer)?)
            })
            .make("copy loop", &self.target, || {
                fixture::copy_file(&self.carton, &self.target, PIECE)
            })
            .make("fs::copy", &self.target, || Ok(fs::copy(&self.carton, &self.target)?))
            .check("carton: copy 1 GiB with another MANIFEST", "ours", "copy loop", TimeAtMost(1.1))
            .check("the same", "ours", "fs::copy", Informative)
    }

    /// Adds packing of a file on one thread and on two.
    fn packs<'f>(&'f self, case: Case<'f>, file: &'f Path, compression: Compression) -> Case<'f> {
        let pack = move |count| {
            let mut pack = Pack::from_toml(DESCRIPTION)?;
            pack.model(file)?;
            let options = unsynced(compression).threads(fixture::threads(count));
            Ok(pack.write(options.create(&self.target)?)?)
        };
        case.make("ours, 1 thread", &self.target, move || pack(1)).make(
            "ours, 2 threads",
            &self.target,
            move || pack(2),
        )
    }

    fn pack_by_zip(&self) -> Result<()> {
        let mut archive = ZipWriter::new(BufWriter::new(File::create(&self.target)?));
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(true);
        archive.start_file("model/noise", options)?;
        fixture::pieces(&self.noise, PIECE, |piece| archive.write_all(piece))?;
        archive.finish()?.flush()?;
        Ok(())
    }

    fn compress_by_zstd(&self) -> Result<()> {
        let file = BufWriter::new(File::create(&self.target)?);
        let mut encoder = zstd::stream::write::Encoder::new(file, LEVEL)?;
        fixture::pieces(&self.weights, PIECE, |piece| encoder.write_all(piece))?;
        encoder.finish()?.flush()?;
        Ok(())
    }
}

const LEVEL: i32 = 3;

/// What a plain loop reads at once.
const PIECE: usize = 1 << 20;
