//! Opening files.

use std::{num::NonZeroUsize, path::Path, sync::Arc};

use bytes::Bytes;
use tensor_core::{Extent, Limits, Source, parallel};

use crate::{
    Generation, Manifest,
    container::{Container, last_complete},
    error::Result,
};

/// An open zTensor file of any generation from 0.1 to 1.2.
///
/// Opening reads the magic, the footer and the manifest, whatever the size of the tensors, and
/// proves that the manifest is well formed, fits the schema, and names no object twice. Where the
/// blobs of an object lie, whether they fit its shape, and what they hold is checked when the
/// object is read; [`validate`](Self::validate) checks all of it.
///
/// Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    container: Container,
    manifest: Manifest,
    options: ReadOptions,
    /// Bytes behind the last complete file, where the end is missing.
    lost: Option<u64>,
}

impl Reader {
    /// Opens a file, which is read by position and only where it is asked for.
    ///
    /// # Errors
    ///
    /// Where the file is no zTensor file, was cut off, or has a broken manifest.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Reads a file that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Reads a file from any source: memory, a file, a mapping, the caller's store.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_source(source: Source) -> Result<Self> {
        Self::options().from_source(source)
    }

    /// Returns the options of opening, to be set and opened with.
    #[must_use]
    pub fn options() -> ReadOptions {
        ReadOptions::default()
    }

    /// Returns which generation of the format the file is.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.manifest().generation()
    }

    /// Returns the document: version, attributes, and the objects by name.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// Returns what the file is read from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// Returns how many bytes stand behind the file that was read, where the end of a later one is
    /// missing: see [`ReadOptions::recover`].
    #[must_use]
    pub fn recovered(&self) -> Option<u64> {
        self.inner.lost
    }

    pub(crate) fn blobs(&self) -> Extent {
        self.inner.container.blobs()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }

    pub(crate) fn verifies(&self) -> bool {
        self.inner.options.verify
    }

    pub(crate) fn thread_count(&self) -> NonZeroUsize {
        self.inner.options.threads.unwrap_or_else(parallel::available)
    }
}

/// How a file is opened and read.
///
/// # Examples
///
/// ```no_run
/// let reader = ztensor::Reader::options().verify(true).open("model.zt")?;
/// # Ok::<(), ztensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    limits: Limits,
    verify: bool,
    recover: bool,
    threads: Option<NonZeroUsize>,
}

impl ReadOptions {
    /// Sets what the file may make the reader do.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether reading a component compares its digest first; off by default.
    #[must_use]
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets whether a file whose end is missing is read as the last complete file inside it; off by
    /// default. That is what an append leaves that was cut off.
    #[must_use]
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// Sets how many threads validation uses; by default as many as the system offers.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    pub(crate) const fn into_limits(self) -> Limits {
        self.limits
    }

    /// Does as [`Reader::open`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        self.from_source(Source::open(path)?)
    }

    /// Does as [`Reader::from_bytes`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Does as [`Reader::from_source`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let opened = Container::read(&source, &self.limits)
            .and_then(|container| Ok((container, container.manifest(&source, &self.limits)?)));
        let (source, container, manifest, lost) = match opened {
            Ok((container, manifest)) => (source, container, manifest, None),
            Err(error) if self.recover => {
                // Where nothing can be recovered, what is wrong with the file as it is says more.
                let last = last_complete(&source, &self.limits);
                let (len, container, manifest) = last.map_err(|_| error)?;
                let lost = source.len().saturating_sub(len);
                (source.window(Extent::first(len), "file")?, container, manifest, Some(lost))
            }
            Err(error) => return Err(error),
        };
        let inner = Inner { source, container, manifest, options: self, lost };
        Ok(Reader { inner: Arc::new(inner) })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        // The format's text bounds neither rank nor depth. Facts: files of rank 5,000 are read, and
        // the reference follows 124 levels of nesting.
        let limits = Limits::default().with_rank(1 << 16).with_depth(128);
        Self { limits, verify: false, recover: false, threads: None }
    }
}
