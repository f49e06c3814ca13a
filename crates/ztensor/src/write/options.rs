//! What a caller can choose about the files that are written.

use std::num::NonZeroUsize;

use tensor_core::{
    Finding, Severity, Verify,
    output::{Durability, Existing, Output},
    parallel,
};

use crate::{
    container::ALIGNMENT,
    error::{Error, Result},
    tensor::digest,
};

/// How a file is written.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub(crate) version: Version,
    pub(crate) alignment: u64,
    pub(crate) storage: Storage,
    pub(crate) threads: NonZeroUsize,
    pub(crate) verify: Verify,
    pub(crate) output: Output,
}

impl WriteOptions {
    /// Sets the version of the format; 1.1 by default.
    #[must_use]
    pub const fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Sets what every blob starts at a multiple of, in bytes: itself a multiple of 64, which is
    /// the default, and at most 64 MiB.
    #[must_use]
    pub const fn alignment(mut self, alignment: u64) -> Self {
        self.alignment = alignment;
        self
    }

    /// Sets how components are stored, unless an object says otherwise; raw and without digest by
    /// default.
    #[must_use]
    pub const fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Sets how many threads compress frames; by default as many as the system offers. The bytes
    /// of the file do not depend on it.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets whether stored bytes that are copied from a file are compared with their digest, and its
    /// definitions checked, so that damage is not passed on; they are by default.
    #[must_use]
    pub const fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Sets how a finished file takes its place.
    #[must_use]
    pub const fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets whether a finished file is forced to the disk; it is by default.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.output.durability = durability;
        self
    }

    /// Sets what happens to a file that is there already; it is replaced by default.
    #[must_use]
    pub const fn existing(mut self, existing: Existing) -> Self {
        self.output.existing = existing;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let in_range = (ALIGNMENT..=MAX_ALIGNMENT).contains(&self.alignment);
        if !in_range || !self.alignment.is_multiple_of(ALIGNMENT) {
            let (found, expected) = (self.alignment.into(), "a multiple of 64, at most 67108864");
            return Err(Error::Setting { what: "alignment in bytes", found, expected });
        }
        self.storage.check()
    }

    /// Refuses errors that are to be written, unless [`verify`](Self::verify) lets damage pass.
    pub(crate) fn refuse(&self, faults: impl IntoIterator<Item = Finding>) -> Result<()> {
        let fault = faults.into_iter().find(|fault| fault.severity == Severity::Error);
        match fault.filter(|_| self.verify != Verify::Never) {
            Some(Finding { message, .. }) => Err(Error::Faulty { message }),
            None => Ok(()),
        }
    }
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            version: Version::V1_1,
            alignment: ALIGNMENT,
            storage: Storage::default(),
            threads: parallel::available(),
            verify: Verify::Always,
            output: Output::default(),
        }
    }
}

/// A version of the format that can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 1.1, which this crate's format text describes.
    #[default]
    V1_1,
    /// 1.2: 8-bit floats and complex numbers are named by a `type` beside the `dtype` that stores
    /// them, and encoded components say how long they are decoded.
    V1_2,
}

impl Version {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::V1_1 => "1.1.0",
            Self::V1_2 => "1.2.0",
        }
    }
}

/// How a component is stored: raw and without digest by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Storage {
    /// How its bytes are encoded.
    pub compression: Compression,
    /// The algorithm of its digest, which is computed over the stored bytes.
    #[cfg(feature = "digest")]
    pub digest: Option<tensor_core::digest::Algorithm>,
}

impl Storage {
    /// Sets how its bytes are encoded.
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the algorithm of its digest.
    #[cfg(feature = "digest")]
    #[must_use]
    pub const fn digest(mut self, algorithm: tensor_core::digest::Algorithm) -> Self {
        self.digest = Some(algorithm);
        self
    }

    pub(crate) fn hasher(&self) -> Option<digest::Hasher> {
        #[cfg(feature = "digest")]
        return self.digest.map(digest::Hasher::new);
        #[cfg(not(feature = "digest"))]
        None
    }

    fn check(&self) -> Result<()> {
        #[cfg(feature = "zstd")]
        if let Compression::Zstd { level, .. } = self.compression
            && !zstd::compression_level_range().contains(&level)
        {
            let (found, expected) = (level.into(), "a level of zstd, at most 22");
            return Err(Error::Setting { what: "compression level", found, expected });
        }
        Ok(())
    }
}

/// How the bytes of a component are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By zstd.
    #[cfg(feature = "zstd")]
    Zstd {
        /// The level: 1 to 22, or below zero for speed.
        level: i32,
        /// How many decoded bytes go into one frame; frames are compressed on several threads.
        /// `None` makes one frame of a component, as the reference does.
        frame: Option<std::num::NonZeroU64>,
    },
}

/// The format sets no such bound; padding beyond it is a mistake in a unit.
const MAX_ALIGNMENT: u64 = 1 << 26;
