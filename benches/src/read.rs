//! Reading one large tensor from a warm page cache: in place, copied, and into a buffer.

use std::{cell::RefCell, fs::File, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use criterion::Throughput;
use memmap2::Mmap;
use safetensors::SafeTensors;
use tempfile::TempDir;
use ztensor::{Reader, Role, Storage};
use ztensor_peer::ZTensorReader;

use crate::{Bound::TimeAtMost, Case, Scale, Topic, case::time, fixture};

/// One tensor of `f32` in a file of each format.
#[derive(Debug)]
pub struct Read {
    len: usize,
    /// Where the tensor starts in the zTensor file.
    offset: u64,
    ztensor: PathBuf,
    safetensors: PathBuf,
    /// What the caller of `read_into` has: the same pages for every side, touched before.
    buffer: RefCell<Vec<u8>>,
    _folder: TempDir,
}

impl Topic for Read {
    const NAME: &'static str = "read";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let (ztensor, safetensors) = (folder.path().join("a.zt"), folder.path().join("a.st"));
        // Becomes the buffer of `read_into`, as writing it touched its pages.
        let data = fixture::elements(scale.large);
        let tensor = || [(NAME, data.as_slice())];
        let elements = scale.large / 4;
        let writer = fixture::unsynced(Storage::default()).create(&ztensor)?;
        fixture::write_ztensor(writer, &[elements as u64], tensor())?;
        let tensors = fixture::for_safetensors(&[elements], tensor())?;
        safetensors::serialize_to_file(tensors, None, &safetensors)?;
        let reader = Reader::open(&ztensor)?;
        let offset = reader.tensor(NAME).and_then(|tensor| tensor.blob(&Role::Data).ok()?);
        let offset = offset.context(NAME)?.extent()?.offset();
        fixture::warm(&ztensor)?;
        fixture::warm(&safetensors)?;
        let (len, buffer) = (scale.large, RefCell::new(data));
        Ok(Self { len, offset, ztensor, safetensors, buffer, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.map(), self.own(), self.fill()?])
    }
}

impl Read {
    fn case(&self, name: &'static str) -> Case<'_> {
        Case::new(name, Throughput::Bytes(self.len as u64))
    }

    fn map(&self) -> Case<'_> {
        self.case("map and sum")
            .side("ours", || self.sum_ours())
            .side("bare mapping", || self.sum_bare())
            .check("map and sum 1 GiB", "ours", "bare mapping", TimeAtMost(1.03))
    }

    fn own(&self) -> Case<'_> {
        self.case("owned copy")
            .run("ours", || {
                let reader = Reader::open(&self.ztensor)?;
                let blob = reader.tensor(NAME).context(NAME)?.blob(&Role::Data)?;
                Ok(blob.context(NAME)?.to_buf()?)
            })
            .run("ztensor 1.1.1", || {
                Ok(ZTensorReader::open(&self.ztensor)?.read_object(NAME, false)?)
            })
            .run("safetensors, read", || Ok(std::fs::read(&self.safetensors)?))
            .side("safetensors, mapped", || self.copy_mapped())
            .check("owned copy of 1 GiB, fresh buffer", "ours", "ztensor 1.1.1", TimeAtMost(0.65))
            .or("safetensors, read")
            .or("safetensors, mapped")
    }

    fn fill(&self) -> Result<Case<'_>> {
        let reader = Reader::open(&self.ztensor)?;
        let file = File::open(&self.ztensor)?;
        Ok(self
            .case("caller's buffer")
            .side("ours", move || {
                let mut buffer = self.buffer.borrow_mut();
                time(|| Ok(reader.tensor(NAME).context(NAME)?.read_into(&mut buffer)?))
            })
            .side("bare read", move || {
                let mut buffer = self.buffer.borrow_mut();
                time(|| Ok(read_at(&file, &mut buffer, self.offset)?))
            })
            .check("the same into a warm buffer", "ours", "bare read", TimeAtMost(1.15)))
    }

    fn sum_ours(&self) -> Result<Duration> {
        time(|| {
            let reader = Reader::from_source(fixture::map(&self.ztensor)?)?;
            let tensor = reader.tensor(NAME).context(NAME)?.read()?;
            let total = sum(tensor.as_slice()?);
            Ok((reader, total))
        })
    }

    #[expect(unsafe_code, reason = "mapping is what is measured")]
    fn sum_bare(&self) -> Result<Duration> {
        let start = usize::try_from(self.offset)?;
        time(|| {
            // SAFETY: the file is in a folder of this process, which writes it only in `prepare`.
            let map = unsafe { Mmap::map(&File::open(&self.ztensor)?)? };
            let bytes = map.get(start..start + self.len).context("the file is longer")?;
            let total = sum(bytemuck::cast_slice(bytes));
            Ok((map, total))
        })
    }

    #[expect(unsafe_code, reason = "mapping is what is measured")]
    fn copy_mapped(&self) -> Result<Duration> {
        time(|| {
            // SAFETY: as in `sum_bare`.
            let map = unsafe { Mmap::map(&File::open(&self.safetensors)?)? };
            let copy = SafeTensors::deserialize(&map)?.tensor(NAME)?.data().to_vec();
            Ok((map, copy))
        })
    }
}

/// Adds numbers up as fast as they come from memory, in the same machine code for every side.
#[inline(never)]
fn sum(numbers: &[f32]) -> f32 {
    const LANES: usize = 64;
    let mut totals = [0.0_f32; LANES];
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    for chunk in chunks {
        for (total, number) in totals.iter_mut().zip(chunk) {
            *total += number;
        }
    }
    totals.iter().chain(rest).sum()
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    use std::io::{Read as _, Seek as _};
    file.seek(std::io::SeekFrom::Start(offset))?;
    file.read_exact(buffer)
}

const NAME: &str = "weight";
