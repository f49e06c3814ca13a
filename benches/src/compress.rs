//! Writing zstd-compressed tensors.

use std::{
    io::{self, Write},
    num::NonZeroU64,
    time::Duration,
};

use anyhow::Result;
use criterion::Throughput;
use ztensor::{
    Compression, Storage,
    tensor_core::{DType, TensorView},
};

use crate::{
    Bound::{SpeedAtLeast, TimeAtMost},
    Case, Scale, Topic,
    case::time,
    fixture,
};

/// Weights to compress.
#[derive(Debug)]
pub struct Compress {
    data: Vec<u8>,
    frame: Option<NonZeroU64>,
}

impl Topic for Compress {
    const NAME: &'static str = "compress";

    fn prepare(scale: Scale) -> Result<Self> {
        Ok(Self { data: fixture::weights(scale.compressed), frame: NonZeroU64::new(scale.frame) })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let case = Case::new("zstd", Throughput::Bytes(self.data.len() as u64));
        Ok(vec![
            case.side("1 thread", || self.write(1, None))
                .side("frames, 1 thread", || self.write(1, self.frame))
                .side("frames, 2 threads", || self.write(2, self.frame))
                .run("libzstd", || {
                    let mut encoder = zstd::stream::write::Encoder::new(io::sink(), LEVEL)?;
                    encoder.write_all(&self.data)?;
                    Ok(encoder.finish()?)
                })
                .check("zstd write of 256 MiB, 1 thread", "1 thread", "libzstd", TimeAtMost(1.05))
                .check(
                    "the same in frames, 2 threads",
                    "frames, 2 threads",
                    "1 thread",
                    SpeedAtLeast(1.7),
                )
                .or("frames, 1 thread"),
        ])
    }
}

impl Compress {
    fn write(&self, threads: usize, frame: Option<NonZeroU64>) -> Result<Duration> {
        let threads = fixture::threads(threads);
        let storage = Storage::default().compression(Compression::Zstd { level: LEVEL, frame });
        let shape = [self.data.len() as u64 / 2];
        time(|| {
            let tensor = TensorView::new(DType::BF16, shape, &self.data)?;
            let mut writer = fixture::unsynced(storage).threads(threads).write_to(io::sink())?;
            writer.add_view("weight", &tensor)?;
            Ok(writer.finish()?)
        })
    }
}

const LEVEL: i32 = 3;
