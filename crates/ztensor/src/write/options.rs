//! What a caller can choose about the files that are written.

use std::num::NonZeroUsize;

use tensor_core::{
    Finding, Severity, Verify,
    output::{Durability, Existing, Output},
    parallel,
};

use super::share::{ReadBack, Sharing};
#[cfg(feature = "zstd")]
use crate::tensor::seekable::MAX_FRAME;
use crate::{
    container::ALIGNMENT,
    error::{Error, Result},
    tensor::digest,
    v2::{CANONICAL, FLOOR},
};

/// How a file is written.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub(crate) version: Version,
    pub(crate) form: Form,
    alignment: Option<u64>,
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

    /// Sets which of the files of generation 2 that hold the same is written; before, there is no
    /// choice.
    #[must_use]
    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets what every blob starts at a multiple of, in bytes: itself a multiple of 64, which is
    /// the default, and at most 64 MiB. In generation 2 it is a power of two from 4096 to 65,536, which
    /// is the default and what the canonical form asks for.
    #[must_use]
    pub const fn alignment(mut self, alignment: u64) -> Self {
        self.alignment = Some(alignment);
        self
    }

    /// Like [`alignment`](Self::alignment), but only where none was set.
    pub(crate) fn or_alignment(mut self, alignment: u64) -> Self {
        self.alignment = self.alignment.or(Some(alignment));
        self
    }

    /// Returns what every blob starts at a multiple of, in bytes.
    pub(crate) fn grid(&self) -> u64 {
        let default = if self.version == Version::V2 { CANONICAL } else { ALIGNMENT };
        self.alignment.unwrap_or(default)
    }

    /// Returns how blobs that hold the same bytes are found to.
    pub(crate) fn sharing<W>(&self, read_back: Option<ReadBack<W>>) -> Sharing<W> {
        match read_back {
            Some(read_back) => Sharing::Bytes(read_back),
            None if self.is_canonical() => Sharing::Digest,
            None => Sharing::Off,
        }
    }

    /// Tells whether the canonical form of generation 2 is written.
    pub(crate) fn is_canonical(&self) -> bool {
        self.version == Version::V2 && self.form == Form::Canonical
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
        let grid = self.grid();
        let expected = match (self.version, self.form) {
            (Version::V2, Form::Canonical) if grid != CANONICAL => {
                "65536, the only one of the canonical form"
            }
            (Version::V2, _) if !grid.is_power_of_two() || !(FLOOR..=CANONICAL).contains(&grid) => {
                "a power of two from 4096 to 65536"
            }
            (Version::V1_1 | Version::V1_2, _)
                if !(ALIGNMENT..=MAX_ALIGNMENT).contains(&grid)
                    || !grid.is_multiple_of(ALIGNMENT) =>
            {
                "a multiple of 64, at most 67108864"
            }
            _ => return self.check_storage(&self.storage),
        };
        Err(Error::Setting { what: "alignment in bytes", found: grid.into(), expected })
    }

    /// Refuses what a component of the version cannot be stored as.
    pub(crate) fn check_storage(&self, storage: &Storage) -> Result<()> {
        storage.check()?;
        if cfg!(not(feature = "digest")) && self.version == Version::V2 {
            let (what, expected) = ("version", "1.1 or 1.2 in a build without digests");
            return Err(Error::Setting { what, found: 2, expected });
        }
        #[cfg(feature = "digest")]
        {
            use tensor_core::digest::Algorithm::{Crc32c, Sha256, Xxh3};
            let is_v2 = self.version == Version::V2;
            let refused = match storage.digest {
                Some(Xxh3) if !is_v2 => Some("sha256 or crc32c before generation 2"),
                Some(Crc32c) if is_v2 => Some("xxh3 or sha256 in generation 2"),
                Some(Sha256) if self.is_canonical() => Some("xxh3 in the canonical form"),
                _ => None,
            };
            if let Some(expected) = refused {
                let reason = format!("digest is another, expected {expected}");
                return Err(Error::Given { reason });
            }
        }
        if self.is_canonical() && storage.compression != Compression::None {
            let reason = "compression is zstd, expected none in the canonical form".to_owned();
            return Err(Error::Given { reason });
        }
        #[cfg(feature = "zstd")]
        if let (Version::V2, Compression::Zstd { frame: Some(frame), .. }) =
            (self.version, storage.compression)
            && frame.get() > MAX_FRAME.into()
        {
            let (what, expected) = ("frame in bytes", "at most 16777216");
            return Err(Error::Setting { what, found: frame.get().into(), expected });
        }
        Ok(())
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
            form: Form::default(),
            alignment: None,
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
    /// 2, another container: larger gaps, a digest for every part, and a [canonical form](Form).
    V2,
}

/// Which of the files of generation 2 that hold the same is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// The one in which equal tensors make equal files: objects in the order of their names, roles in
    /// the order of theirs, all raw and with an XXH3, on multiples of 65,536 bytes, equal bytes once.
    ///
    /// Objects and components are to be written in that order. One that is written in pieces is held
    /// back as long as it may turn out to equal another: up to 16 MiB in memory, more in a temporary
    /// file.
    #[default]
    Canonical,
    /// As the other options say, objects in the order in which they are added.
    Free,
}

impl Version {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::V1_1 => "1.1.0",
            Self::V1_2 => "1.2.0",
            Self::V2 => "2",
        }
    }
}

/// How a component is stored: raw and without digest by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Storage {
    /// How its bytes are encoded.
    pub compression: Compression,
    /// The algorithm of its digest, which is computed over the stored bytes. In generation 2 it is over
    /// the decoded ones, and an XXH3 where none is named.
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

    /// Returns what hashes the decoded bytes of a part of generation 2.
    pub(crate) fn hasher_v2(&self) -> Option<digest::Hasher> {
        #[cfg(feature = "digest")]
        return Some(digest::Hasher::new(self.digest.unwrap_or(digest::Algorithm::Xxh3)));
        #[cfg(not(feature = "digest"))]
        None
    }

    /// Tells whether digests are by SHA-256.
    pub(crate) fn wants_sha256(&self) -> bool {
        #[cfg(feature = "digest")]
        return self.digest == Some(digest::Algorithm::Sha256);
        #[cfg(not(feature = "digest"))]
        false
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
        /// `None` makes one frame of a component, as the reference does, and in generation 2 frames
        /// of 1 MiB; they may be of up to 16 MiB there.
        frame: Option<std::num::NonZeroU64>,
    },
}

/// The format sets no such bound; padding beyond it is a mistake in a unit.
const MAX_ALIGNMENT: u64 = 1 << 26;
