//! Writing files that are not forced to the disk: many small tensors, and one large one.

use std::path::PathBuf;

use anyhow::Result;
use criterion::Throughput;
use tempfile::TempDir;
use ztensor::Storage;
use ztensor_peer::{ChecksumAlgorithm, DType, ZTensorWriter, writer::Compression};

use crate::{
    Bound::{Informative, TimeAtMost},
    Case, Scale, Topic, fixture,
};

/// The data to write, and where to.
#[derive(Debug)]
pub struct Write {
    names: Vec<String>,
    small: Vec<u8>,
    large: Vec<u8>,
    /// Replaced by every run: the file that was there is removed before the clock runs.
    target: PathBuf,
    _folder: TempDir,
}

impl Topic for Write {
    const NAME: &'static str = "write";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let (small, large) = (fixture::elements(64), fixture::elements(scale.large));
        let (names, target) = (fixture::names(scale.tensors), folder.path().join("a"));
        Ok(Self { names, small, large, target, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let many = Throughput::Elements(self.names.len() as u64);
        let many = self
            .sides(Case::new("many", many), 4, || {
                self.names.iter().map(|name| (name.as_str(), self.small.as_slice()))
            })
            .check("write 100,000 tensors of 64 B", "ours", "safetensors", TimeAtMost(0.8))
            .check("write 100,000 tensors of 64 B", "ours", "ztensor 1.1.1", Informative);
        let dense = Throughput::Bytes(self.large.len() as u64);
        let width = self.large.len() / 16;
        let dense = self
            .sides(Case::new("dense", dense), width, || {
                [("weight", self.large.as_slice())].into_iter()
            })
            .check("write 1 GiB dense, no sync", "ours", "safetensors", TimeAtMost(1.05))
            .check("write 1 GiB dense, no sync", "ours", "ztensor 1.1.1", Informative);
        Ok(vec![many, dense])
    }
}

impl Write {
    /// Adds what each library does with tensors of the shape `[4, width]`.
    fn sides<'f, I>(
        &'f self,
        case: Case<'f>,
        width: usize,
        tensors: impl Fn() -> I + Copy + 'f,
    ) -> Case<'f>
    where
        I: Iterator<Item = (&'f str, &'f [u8])>,
    {
        case.make("ours", &self.target, move || {
            let writer = fixture::unsynced(Storage::default()).create(&self.target)?;
            fixture::write_ztensor(writer, &[4, width as u64], tensors())
        })
        .make("safetensors", &self.target, move || {
            let tensors = fixture::for_safetensors(&[4, width], tensors())?;
            Ok(safetensors::serialize_to_file(tensors, None, &self.target)?)
        })
        .make("ztensor 1.1.1", &self.target, move || {
            let mut writer = ZTensorWriter::create(&self.target)?;
            for (name, bytes) in tensors() {
                let (shape, raw) = (vec![4, width as u64], Compression::Raw);
                let digest = ChecksumAlgorithm::None;
                writer.add_object_bytes(name, shape, DType::F32, raw, bytes, digest)?;
            }
            Ok(writer.finalize()?)
        })
    }
}
