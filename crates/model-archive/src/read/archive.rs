use std::{path::Path, sync::Arc};

use tensor_core::{Extent, Source};

#[cfg(feature = "zstd")]
use crate::read::decode::pool::Pool;
use crate::{Class, Entry, Flaw, Info, Options, Profile, Result, read::directory::Directory};

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
    directory: Directory,
    options: Options,
    #[cfg(feature = "zstd")]
    pool: Arc<Pool>,
}

impl Archive {
    /// Opens an archive with the options as they are by default: strict, without symbolic links.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`](crate::Error::Directory) where it is no archive or was cut off;
    /// [`Error::Flaw`](crate::Error::Flaw) with what is refused;
    /// [`Error::Core`](crate::Error::Core) where a limit is exceeded.
    pub fn open(source: Source) -> Result<Self> {
        Self::read(source, Options::default())
    }

    /// Returns the options of opening, to be set and opened with.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn read(source: Source, options: Options) -> Result<Self> {
        let mut directory = Directory::read(&source, &options)?;
        if options.profile == Profile::Strict {
            let refused = |flaw: &Flaw| flaw.fault.class() >= Class::Strict;
            if let Some(index) = directory.flaws.iter().position(refused) {
                return Err(directory.flaws.swap_remove(index).into());
            }
        }
        let inner = Inner {
            source,
            directory,
            options,
            #[cfg(feature = "zstd")]
            pool: Arc::default(),
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
        let limits = &self.inner.options.limits;
        let limit = self.source().len().saturating_mul(limits.expansion).max(limits.decoded_bytes);
        let found = self.total_size();
        if found <= limit {
            return Ok(());
        }
        let (what, field) = ("size of all entries in bytes", "expansion");
        Err(tensor_core::Error::OverLimit { what, found, limit, field }.into())
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.inner.directory
    }

    pub(crate) fn limits(&self) -> &tensor_core::Limits {
        &self.inner.options.limits
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

impl Options {
    /// Opens a file, which is read by position and only where it is asked for.
    ///
    /// # Errors
    ///
    /// As for [`Archive::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Archive> {
        self.from_source(Source::open(path)?)
    }

    /// Does as [`open`](Self::open) with any source.
    ///
    /// # Errors
    ///
    /// As for [`Archive::open`].
    pub fn from_source(self, source: Source) -> Result<Archive> {
        Archive::read(source, self)
    }
}
