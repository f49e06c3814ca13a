use anyhow::bail;
use clap::ValueEnum;

/// How what is new is stored, as far as a format has a choice.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Store {
    /// Compress tensors that are put into a zTensor file
    #[arg(long, value_enum)]
    compression: Option<Method>,
    /// How hard: 1 to 22 for zstd, 3 by default, or below zero for speed; in an nnpackage 1 to 9, 6
    /// by default, or 0 for not at all
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) level: Option<i32>,
    /// What models of an nnpackage start at a multiple of, in bytes: a power of two up to 32768, 4096
    /// by default
    #[arg(long, value_name = "BYTES")]
    pub(super) alignment: Option<u32>,
    /// Give tensors that are put into a zTensor file a digest
    #[arg(long, value_enum)]
    digest: Option<DigestName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// By zstd
    Zstd,
    /// Not at all
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DigestName {
    Sha256,
    /// Of files before zTensor 2
    Crc32c,
    /// Of zTensor 2, whose tensors have it where none is named
    Xxh3,
}

#[cfg(feature = "ztensor")]
impl Store {
    /// Tells whether nothing was asked for.
    pub(super) const fn is_default(&self) -> bool {
        matches!(self, Self { compression: None, level: None, alignment: None, digest: None })
    }

    /// Returns how components of zTensor files are stored.
    pub(super) fn ztensor(self) -> anyhow::Result<modelcrate::ztensor::Storage> {
        use modelcrate::{
            tensor_core::digest::Algorithm,
            ztensor::{Compression, Storage},
        };
        let storage = match (self.compression, self.level) {
            (Some(Method::Zstd), level) => {
                let level = level.unwrap_or(3);
                Storage::default().compression(Compression::Zstd { level, frame: None })
            }
            (_, Some(_)) => bail!("--level means nothing without --compression zstd"),
            (_, None) => Storage::default(),
        };
        Ok(match self.digest {
            Some(DigestName::Sha256) => storage.digest(Algorithm::Sha256),
            Some(DigestName::Crc32c) => storage.digest(Algorithm::Crc32c),
            Some(DigestName::Xxh3) => storage.digest(Algorithm::Xxh3),
            None => storage,
        })
    }
}
