use anyhow::bail;
use clap::ValueEnum;
use modelcrate::carton_format::{WriteOptions, model_archive::Compression};

use crate::options::manner;

/// How the files of a carton are stored.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Store {
    #[command(flatten)]
    how: Compress,
    /// How hard: 1 to 22 for zstd, 3 by default, or below zero for speed; 1 to 9 for deflate, 6 by
    /// default
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
    /// What files that are stored as they are start at a multiple of: a power of two up to 32768
    #[arg(long, value_name = "BYTES", default_value_t = ALIGNMENT)]
    alignment: u32,
}

/// How files are compressed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Compress {
    /// How files are compressed
    #[arg(long, value_enum, default_value_t)]
    compression: Method,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Method {
    /// By zstd where that saves a twentieth, and not at all elsewhere
    #[default]
    Auto,
    /// Not at all
    Stored,
    /// By zstd, all of them
    Zstd,
    /// By DEFLATE, all of them
    Deflate,
}

impl Store {
    pub(crate) fn options(self) -> anyhow::Result<WriteOptions> {
        self.how.options(self.level, Some(self.alignment))
    }
}

impl Compress {
    pub(crate) fn options(
        self,
        level: Option<i32>,
        alignment: Option<u32>,
    ) -> anyhow::Result<WriteOptions> {
        let zstd = level.unwrap_or(3);
        let compression = match self.compression {
            Method::Auto => Compression::ZstdIfSmaller { level: zstd },
            Method::Zstd => Compression::Zstd { level: zstd },
            Method::Deflate => Compression::Deflate { level: level.unwrap_or(6) },
            Method::Stored if level.is_some() => {
                bail!("--level means nothing with --compression stored")
            }
            Method::Stored => Compression::Stored,
        };
        let options = WriteOptions::default()
            .compression(compression)
            .alignment(alignment.unwrap_or(ALIGNMENT));
        Ok(options.threads(manner().threads()))
    }
}

/// What files that are stored as they are start at a multiple of, in bytes.
const ALIGNMENT: u32 = 64;
