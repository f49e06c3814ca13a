//! zTensor 2 beside the format's own library: opening many tensors, writing, verifying, reading one.

use std::{
    hint::black_box,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use criterion::Throughput;
use tempfile::TempDir;
use ztensor::{
    Compression, Form, Reader, Storage, Version, WriteOptions,
    tensor_core::{DType, Extent, Shape, Source, TensorView},
};
use ztensor2_peer::{DType as PeerType, Source as Peer, Writer as PeerWriter};

use crate::{
    Bound::{Informative, SpeedAtLeast, TimeAtMost, Within},
    Case, Scale, Topic, fixture,
};

/// Files of many small tensors and of a large one, and where new ones go.
#[derive(Debug)]
pub struct ZTensor2 {
    tensors: u64,
    many: PathBuf,
    large: PathBuf,
    /// Four large tensors and a small one.
    several: PathBuf,
    data: Vec<u8>,
    /// What compresses to about half.
    text: Vec<u8>,
    target: PathBuf,
    _folder: TempDir,
}

impl Topic for ZTensor2 {
    const NAME: &'static str = "ztensor2";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let path = |name: &str| folder.path().join(name);
        let (many, large, target) = (path("many.zt"), path("large.zt"), path("new.zt"));
        let several = path("several.zt");
        let small = fixture::elements(64);
        let names = fixture::names(scale.tensors);
        let tensors = names.iter().map(|name| (name.as_str(), small.as_slice()));
        fixture::write_ztensor(free(4096).create(&many)?, &[4, 4], tensors)?;
        let mut data = fixture::elements(scale.large);
        let width = data.len() as u64 / 4;
        fixture::write_ztensor(canonical().create(&large)?, &[width], [("w", &data[..])])?;
        write_several(&several, &mut data)?;
        let text = data.iter().take(scale.compressed).map(|byte| byte & 0x0f).collect();
        fixture::warm(&many)?;
        fixture::warm(&large)?;
        fixture::warm(&several)?;
        let tensors = scale.tensors as u64;
        Ok(Self { tensors, many, large, several, data, text, target, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.open(), self.write(), self.compress(), self.verify()?, self.read_one()?])
    }
}

/// Writes tensors that are large and not alike, which the canonical form would have once, and one of a
/// mebibyte.
fn write_several(path: &Path, data: &mut [u8]) -> Result<()> {
    let mut writer = canonical().create(path)?;
    for name in ["a", "b", "c", "d"] {
        let (first, width) = (data.first().copied(), data.len() as u64);
        if let Some(byte) = data.first_mut() {
            *byte = name.as_bytes()[0];
        }
        writer.add_view(name, &TensorView::new(DType::U8, Shape::from([width]), data)?)?;
        if let (Some(byte), Some(first)) = (data.first_mut(), first) {
            *byte = first;
        }
    }
    let one = data.get(..data.len().min(1 << 20)).unwrap_or_default();
    let view = TensorView::new(DType::U8, Shape::from([one.len() as u64]), one)?;
    writer.add_view("one", &view)?;
    writer.finish()?;
    Ok(())
}

fn canonical() -> WriteOptions {
    WriteOptions::default().version(Version::V2)
}

fn free(alignment: u64) -> WriteOptions {
    canonical().form(Form::Free).alignment(alignment)
}

impl ZTensor2 {
    fn open(&self) -> Case<'_> {
        Case::new("open", Throughput::Elements(self.tensors))
            .run("ours", || Ok(Reader::open(&self.many)?))
            .run("ztensor 2.1.1", || Ok(Peer::open(&self.many)?))
            .check("zTensor 2: open 100,000 tensors", "ours", "ztensor 2.1.1", TimeAtMost(0.3))
    }

    /// Both force the file to the disk.
    fn write(&self) -> Case<'_> {
        let width = self.data.len() as u64 / 4;
        Case::new("write", Throughput::Bytes(self.data.len() as u64))
            .make("ours", &self.target, move || {
                let mut writer = canonical().create(&self.target)?;
                let view = TensorView::new(DType::F32, Shape::from([width]), &self.data)?;
                writer.add_view("w", &view)?;
                Ok(writer.finish()?)
            })
            .make("ztensor 2.1.1", &self.target, move || {
                let mut writer = PeerWriter::create(&self.target)?;
                writer.add("w", [width], PeerType::F32, &self.data)?;
                Ok(writer.finish()?)
            })
            .check("zTensor 2: write 1 GiB, canonical", "ours", "ztensor 2.1.1", TimeAtMost(1.0))
    }

    fn compress(&self) -> Case<'_> {
        let len = self.text.len() as u64;
        Case::new("compress", Throughput::Bytes(len))
            .make("ours", &self.target, move || {
                let compression = Compression::Zstd { level: 3, frame: None };
                let storage = Storage::default().compression(compression);
                let mut writer = free(4096).storage(storage).create(&self.target)?;
                let view = TensorView::new(DType::U8, Shape::from([len]), &self.text)?;
                writer.add_view("w", &view)?;
                Ok(writer.finish()?)
            })
            .make("ztensor 2.1.1", &self.target, move || {
                let options = PeerWriter::options().canonical(false).align(4096);
                let mut writer = options.create(&self.target)?;
                writer.object("w", |object| {
                    object.shape([len]).part("data", |part| {
                        part.dtype(PeerType::U8).encoding("zt.zstd-seekable/1").bytes(&self.text)
                    })
                })?;
                Ok(writer.finish()?)
            })
            .check("zTensor 2: write 256 MiB as zstd", "ours", "ztensor 2.1.1", TimeAtMost(0.6))
    }

    fn verify(&self) -> Result<Case<'_>> {
        let source = Source::from_bytes(self.file()?);
        let reader = Reader::options().threads(NonZeroUsize::MIN).from_source(source)?;
        let peer = Peer::open(&self.large)?;
        Ok(Case::new("verify", Throughput::Bytes(self.data.len() as u64))
            .run("ours", move || {
                ensure!(reader.validate().is_valid());
                Ok(())
            })
            .run("ztensor 2.1.1", move || Ok(peer.tensor("w")?.verify()?))
            .run("memory", || {
                let (words, _) = self.data.as_chunks::<8>();
                let sum = words.iter().map(|word| u64::from_le_bytes(*word));
                Ok(black_box(sum.fold(0_u64, u64::wrapping_add)))
            })
            .check("zTensor 2: verify 1 GiB by XXH3", "ours", "memory", SpeedAtLeast(0.9))
            .check("zTensor 2: verify 1 GiB by XXH3", "ours", "ztensor 2.1.1", Informative))
    }

    /// Returns the large file in memory, as a mapping has it.
    fn file(&self) -> Result<Vec<u8>> {
        std::fs::read(&self.large).with_context(|| format!("{:?}", self.large))
    }

    /// One tensor of several, from opening to its bytes: what is read by position.
    fn read_one(&self) -> Result<Case<'_>> {
        let reader = Reader::open(&self.several)?;
        let blobs = reader.tensor("one").context("tensor")?.blobs()?;
        let len = blobs.first().context("blob")?.bytes()?.len() as u64;
        let piece = Extent::first(len);
        Ok(Case::new("read one", Throughput::Bytes(len))
            .run("ours", move || {
                let reader = Reader::open(&self.several)?;
                let blobs = reader.tensor("one").context("tensor")?.blobs()?;
                Ok(blobs.first().context("blob")?.bytes()?)
            })
            .run("a read", move || Ok(Source::open(&self.several)?.read(piece, "piece")?))
            .check(
                "zTensor 2: a tensor of 1 MiB in a file of 4 GiB",
                "ours",
                "a read",
                Within(2.0),
            ))
    }
}
