use std::{num::NonZeroUsize, path::Path, sync::Arc};

use bytes::Bytes;
use tensor_core::{Budget, Extent, Profile, Source};

#[cfg(feature = "zstd")]
use crate::read::decode::pool::Pool;
use crate::{
    Entry, Info, ReadOptions, Result,
    read::{directory::Directory, end},
};

/// An open archive.
///
/// Opening reads the directory at the end, whatever the size of the entries, and refuses what is
/// unsafe; the strict profile also refuses what readers may disagree about. Local headers and data
/// are read when an entry is. Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Archive {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    directory: Arc<Directory>,
    options: ReadOptions,
    #[cfg(feature = "zstd")]
    pool: Arc<Pool>,
}

impl Archive {
    /// Opens a file with the options as they are by default: strict, without symbolic links.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`](crate::Error::Directory) where it is not an archive or was cut off;
    /// [`Error::Fault`](crate::Error::Fault) with what is refused;
    /// [`Error::Core`](crate::Error::Core) where it cannot be read, or a limit is exceeded.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        ReadOptions::default().open(path)
    }

    /// Like [`open`](Self::open), but of an archive in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        ReadOptions::default().from_bytes(bytes)
    }

    /// Like [`open`](Self::open), but of any source.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_source(source: Source) -> Result<Self> {
        ReadOptions::default().from_source(source)
    }

    /// Returns the options of opening, to be set and opened with.
    #[must_use]
    pub fn options() -> ReadOptions {
        ReadOptions::default()
    }

    /// Tells whether a file is an archive, broken or not, by its first four bytes, or else by the
    /// end record in its last 64 KiB.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) where it cannot be read.
    pub fn sniff(source: &Source) -> Result<bool> {
        let start = source.read(Extent::first(source.len().min(4)), "first bytes")?;
        if *start == *b"PK\x03\x04" {
            return Ok(true);
        }
        end::is_there(source)
    }

    /// Returns the same archive as other options would have opened it; nothing is read again.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), where these options refuse what those that it was opened with
    /// did not.
    ///
    /// # Examples
    ///
    /// ```
    /// use model_archive::{Archive, ArchiveWriter, EntryOptions, tensor_core::Profile};
    ///
    /// let mut writer = ArchiveWriter::new(Vec::new());
    /// writer.add("weights", &[0; 64], &EntryOptions::default())?;
    /// let mut bytes = writer.finish()?;
    /// bytes.extend(b"more");
    /// let lenient = Archive::options().profile(Profile::Lenient).from_bytes(bytes)?;
    /// let refused = lenient.with_options(Archive::options()).unwrap_err();
    /// assert_eq!(refused.rule(), "zip/suffix");
    /// # Ok::<(), model_archive::Error>(())
    /// ```
    pub fn with_options(&self, options: ReadOptions) -> Result<Self> {
        self.directory().check(&options)?;
        self.directory().check_profile(options.profile)?;
        let inner = Inner {
            source: self.inner.source.clone(),
            directory: Arc::clone(&self.inner.directory),
            options,
            #[cfg(feature = "zstd")]
            pool: Arc::clone(&self.inner.pool),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns handles on all entries, in the order of the directory.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        (0..self.inner.directory.len()).map(|index| Entry::new(self, index))
    }

    /// Returns a handle on the entry of a name; `None` where there is none.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<Entry<'_>> {
        self.directory().position(name).map(|index| Entry::new(self, index))
    }

    /// Returns the entry of a position in the directory; `None` where there are not as many.
    #[must_use]
    pub fn entry_at(&self, index: usize) -> Option<Entry<'_>> {
        (index < self.inner.directory.len()).then(|| Entry::new(self, index))
    }

    /// Returns handles on the entries whose names start with `prefix`, sorted by name.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn entries_below(&self, prefix: &str) -> impl Iterator<Item = Entry<'_>> {
        self.directory().below(prefix).map(|index| Entry::new(self, index))
    }

    /// Returns handles on all entries, in the order in which they lie in the archive.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn entries_by_offset(&self) -> impl Iterator<Item = Entry<'_>> {
        self.directory().by_offset().map(|index| Entry::new(self, index))
    }

    /// Returns what the archive is read from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// Returns where the headers of the directory are in the source, without its end records: for
    /// whoever writes a new directory behind them.
    #[must_use]
    pub fn directory_extent(&self) -> Extent {
        let directory = self.directory();
        Extent::between(directory.start, directory.end)
    }

    /// Returns where the comment of the archive is in the source: right behind its end record, which
    /// is 22 bytes long.
    #[must_use]
    pub fn comment_extent(&self) -> Extent {
        self.directory().comment
    }

    /// Returns by how many bytes all offsets in it are too small: other bytes stand before it that
    /// they do not count, such as a program that unpacks it. 0 for most.
    #[must_use]
    pub fn shift(&self) -> u64 {
        self.directory().shift
    }

    /// Returns the sum of the sizes of all entries, in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.entries().fold(0, |sum, entry| sum.saturating_add(entry.info().size))
    }

    /// Refuses an archive whose entries hold more in all than
    /// [`Limits::expansion`](tensor_core::Limits::expansion) allows.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) that names the limit.
    pub fn check_total(&self) -> Result<()> {
        let (len, limits) = (self.source().len(), &self.inner.options.limits);
        Ok(Budget::expansion(TOTAL, limits, len).take(self.total_size())?)
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.inner.directory
    }

    pub(crate) fn limits(&self) -> &tensor_core::Limits {
        &self.inner.options.limits
    }

    pub(crate) fn threads(&self) -> NonZeroUsize {
        self.inner.options.thread_count()
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.inner.options.profile == Profile::Strict
    }

    #[cfg(feature = "zstd")]
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.inner.pool
    }

    pub(crate) fn info(&self, index: usize) -> Info {
        // Handles are made for entries that there are.
        self.directory().record(index).map_or(Info::NONE, |record| record.info)
    }
}

impl ReadOptions {
    /// Opens a file, which is read by position and only where it is asked for.
    ///
    /// # Errors
    ///
    /// As for [`Archive::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Archive> {
        self.from_source(Source::open(path)?)
    }

    /// Like [`open`](Self::open), but of an archive in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`Archive::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Archive> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Like [`open`](Self::open), but of any source.
    ///
    /// # Errors
    ///
    /// As for [`Archive::open`].
    pub fn from_source(self, source: Source) -> Result<Archive> {
        let directory = Directory::read(&source, &self)?;
        directory.check_profile(self.profile)?;
        let inner = Inner {
            source,
            directory: Arc::new(directory),
            options: self,
            #[cfg(feature = "zstd")]
            pool: Arc::default(),
        };
        Ok(Archive { inner: Arc::new(inner) })
    }
}

/// What a limit is on.
const TOTAL: &str = "size of all entries in bytes";
