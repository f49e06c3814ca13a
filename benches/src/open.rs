//! Opening files of many tensors from memory, and looking tensors up by name.

use std::{hint::black_box, io::Cursor};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use criterion::Throughput;
use safetensors::SafeTensors;
use ztensor::{Reader, Storage};
use ztensor_peer::ZTensorReader;

use crate::{
    Bound::{Informative, TimeAtMost},
    Case, Scale, Topic, fixture,
};

/// The same tensors of 64 bytes in a file of each format, all in memory.
#[derive(Debug)]
pub struct Open {
    tensors: u64,
    ztensor: Bytes,
    /// A file of ten times as many tensors.
    many: Bytes,
    safetensors: Vec<u8>,
    /// All names, in an order that is not that of the file.
    names: Vec<String>,
}

impl Topic for Open {
    const NAME: &'static str = "open";

    fn prepare(scale: Scale) -> Result<Self> {
        let data = fixture::elements(64);
        let mut names = fixture::names(scale.tensors * 10);
        let tensors = || names.iter().map(|name| (name.as_str(), data.as_slice()));
        let few = || tensors().take(scale.tensors);
        let sink = || anyhow::Ok(fixture::unsynced(Storage::default()).write_to(Vec::new())?);
        let many = fixture::write_ztensor(sink()?, &[4, 4], tensors())?;
        let ztensor = fixture::write_ztensor(sink()?, &[4, 4], few())?;
        let safetensors = fixture::for_safetensors(&[4, 4], few())?;
        let safetensors = safetensors::serialize(safetensors, None)?;
        names.truncate(scale.tensors);
        fixture::Random::new(4).shuffle(&mut names);
        let tensors = scale.tensors as u64;
        Ok(Self { tensors, ztensor: ztensor.into(), many: many.into(), safetensors, names })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.open(), self.open_and_look_up(), self.open_many(), self.look_up()?])
    }
}

impl Open {
    fn open(&self) -> Case<'_> {
        Case::new("open", Throughput::Elements(self.tensors))
            .run("ours", || Ok(Reader::from_bytes(self.ztensor.clone())?))
            .run("safetensors", || Ok(SafeTensors::deserialize(&self.safetensors)?))
            .run("ztensor 1.1.1", || Ok(ZTensorReader::new(Cursor::new(self.ztensor.as_ref()))?))
            .check("open 100,000 tensors", "ours", "safetensors", TimeAtMost(0.15))
            .check("open 100,000 tensors", "ours", "ztensor 1.1.1", Informative)
    }

    /// The first look-up makes the table of names, which opening alone does not.
    fn open_and_look_up(&self) -> Case<'_> {
        let name = self.names.first().map_or("", String::as_str);
        Case::new("open and look up", Throughput::Elements(self.tensors))
            .run("ours", move || {
                let reader = Reader::from_bytes(self.ztensor.clone())?;
                let info = reader.tensor(name).context("tensor")?.info()?;
                Ok((reader, info))
            })
            .run("safetensors", move || {
                let file = SafeTensors::deserialize(&self.safetensors)?;
                let tensor = file.tensor(name)?;
                Ok((file, tensor))
            })
            .check("open them and look one up", "ours", "safetensors", TimeAtMost(0.2))
    }

    fn open_many(&self) -> Case<'_> {
        Case::new("open ten times as many", Throughput::Elements(self.tensors * 10))
            .run("1,000,000", || Ok(Reader::from_bytes(self.many.clone())?))
            .run("100,000", || Ok(Reader::from_bytes(self.ztensor.clone())?))
            .check("open 1,000,000 tensors", "1,000,000", "100,000", TimeAtMost(12.0))
    }

    fn look_up(&self) -> Result<Case<'_>> {
        let reader = Reader::from_bytes(self.ztensor.clone())?;
        let other = reader.clone();
        // A look-up before the clock runs makes the table of names, as safetensors has it from
        // opening.
        ensure!(reader.tensor("").is_none(), "no name is empty");
        let file = SafeTensors::deserialize(&self.safetensors)?;
        let missing = "every name is there";
        Ok(Case::new("look up", Throughput::Elements(self.tensors))
            .run("handle, dtype and shape", move || {
                for name in &self.names {
                    black_box(reader.tensor(name).context(missing)?.info()?);
                }
                Ok(())
            })
            .run("handle only", move || {
                for name in &self.names {
                    black_box(other.tensor(name).context(missing)?);
                }
                Ok(())
            })
            .run("safetensors", move || {
                for name in &self.names {
                    black_box(file.tensor(name)?);
                }
                Ok(())
            })
            .check(
                "100,000 look-ups, with dtype and shape",
                "handle, dtype and shape",
                "safetensors",
                TimeAtMost(0.9),
            )
            .check(
                "100,000 look-ups, the handle only",
                "handle only",
                "safetensors",
                TimeAtMost(1.0),
            ))
    }
}
