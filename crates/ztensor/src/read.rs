//! Opening files.

use std::{
    collections::{BTreeMap, HashSet},
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tensor_core::{ErrorKind, Extent, Limits, Profile, Source, Verify, parallel};

use crate::{
    Component, Generation, Manifest, ShardFiles,
    container::{Container, last_complete},
    error::Result,
};

/// An open zTensor file of any generation.
///
/// Opening reads the magic, the footer and the manifest, whatever the size of the tensors, and
/// proves that the manifest is well formed, fits the schema, and names no object twice. Where the
/// blobs of an object lie, whether they fit its shape, and what they hold is checked when the
/// object is read; [`validate`](Self::validate) checks all of it.
///
/// In generation 2, opening proves all that the format's text asks of a manifest; what the blobs hold
/// is left.
///
/// Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
    /// The other files that hold blobs, as far as they were found.
    pub(crate) shards: Arc<BTreeMap<String, Source>>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    container: Container,
    manifest: Manifest,
    options: ReadOptions,
    /// Bytes behind the last complete file, where the end is missing.
    lost: Option<u64>,
    /// What needs no second look under [`Verify::Once`].
    proved: Mutex<HashSet<Stored>>,
}

/// Offset, length and digest of a blob, as a manifest says them.
pub(crate) type Stored = (u64, u64, String);

impl Reader {
    /// Opens a file, which is read by position and only where it is asked for. One that an editor
    /// makes longer just then is looked at again. [Shards](crate::ShardFiles::Beside) beside it are
    /// opened as well; those that are not there are missed when something in them is read.
    ///
    /// # Errors
    ///
    /// Where the file is not a zTensor file, was cut off, or has a broken manifest; where a shard is
    /// another file than it names.
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
    /// missing: see [`ReadOptions::profile`].
    #[must_use]
    pub fn recovered(&self) -> Option<u64> {
        self.inner.lost
    }

    /// Returns the file of a shard, where it was found.
    #[must_use]
    pub fn shard(&self, name: &str) -> Option<&Source> {
        self.shards.get(name)
    }

    pub(crate) fn blobs(&self) -> Extent {
        self.inner.container.blobs()
    }

    /// Returns where the blob of a component is; `None` where none may be.
    pub(crate) fn extent_of(&self, component: &Component) -> Option<Extent> {
        let (extent, room) = (Extent::new(component.offset, component.length).ok()?, self.blobs());
        if component.shard.is_some() {
            // It lies in another file, as opening has proved.
            return Some(extent);
        }
        let is_behind_header = extent.is_empty() || extent.offset() >= room.offset();
        (extent.end() <= room.end() && is_behind_header).then_some(extent)
    }

    /// Returns the ceilings on what the file may make the reader do.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }

    /// Tells whether the digest of a stored blob is to be compared now.
    pub(crate) fn verifies(&self, blob: impl FnOnce() -> Stored) -> bool {
        match self.inner.options.verify {
            Verify::Never => false,
            Verify::Always => true,
            Verify::Once => !self.proved().contains(&blob()),
        }
    }

    /// Notes that the digest of a stored blob was compared, and is right.
    pub(crate) fn note_proved(&self, blob: impl FnOnce() -> Stored) {
        if self.inner.options.verify == Verify::Once {
            self.proved().insert(blob());
        }
    }

    fn proved(&self) -> MutexGuard<'_, HashSet<Stored>> {
        // A set is whole after every call, so a panic elsewhere leaves nothing half done.
        self.inner.proved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn options_of(&self) -> ReadOptions {
        self.inner.options
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
/// use ztensor::tensor_core::Verify;
///
/// let reader = ztensor::Reader::options().verify(Verify::Always).open("model.zt")?;
/// # Ok::<(), ztensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    limits: Limits,
    profile: Profile,
    verify: Verify,
    threads: Option<NonZeroUsize>,
}

impl ReadOptions {
    /// Sets what the file may make the reader do.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what is tolerated; strict by default. The lenient profile reads a file whose end is
    /// missing as the last complete file inside it: what an append leaves that was cut off.
    #[must_use]
    pub const fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets when reading a component compares its digest; never by default. Streams compare none.
    #[must_use]
    pub const fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Sets how many threads checks use; by default as many as the system offers.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    pub(crate) const fn into_limits(self) -> Limits {
        self.limits
    }

    /// Like [`Reader::open`], with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        let reader = Source::open_for(path, |source| self.from_source(source))?;
        if reader.manifest().shards().len() == 0 {
            return Ok(reader);
        }
        reader.with_shards(&ShardFiles::Beside(path.to_owned()))
    }

    /// Like [`Reader::from_bytes`], with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Like [`Reader::from_source`], with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let opened = Container::read(&source, &self.limits)
            .and_then(|container| Ok((container, container.manifest(&source, &self.limits)?)));
        let (source, container, manifest, lost) = match opened {
            Ok((container, manifest)) => (source, container, manifest, None),
            // What is over a limit is not torn: what stands before it is not what the file holds.
            Err(error)
                if self.profile == Profile::Lenient && error.kind() == ErrorKind::Malformed =>
            {
                // Where nothing can be recovered, what is wrong with the file as it is says more.
                let last = last_complete(&source, &self.limits);
                let (len, container, manifest) = last.map_err(|_| error)?;
                let lost = source.len().saturating_sub(len);
                (source.window(Extent::first(len), "file")?, container, manifest, Some(lost))
            }
            Err(error) => return Err(error),
        };
        let proved = Mutex::default();
        let inner = Inner { source, container, manifest, options: self, lost, proved };
        Ok(Reader { inner: Arc::new(inner), shards: Arc::default() })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        // The format's text bounds neither rank nor depth. Facts: files of rank 5,000 are read, and
        // the reference follows 124 levels of nesting.
        let limits = Limits::default().with_rank(1 << 16).with_depth(128);
        Self { limits, profile: Profile::Strict, verify: Verify::Never, threads: None }
    }
}
