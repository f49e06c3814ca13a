//! Catalogues: a row for each of many files, and where asked for one for each of their tensors.
//!
//! A catalogue is sorted by path, the same for the same files, and made again from an old one without
//! reading what has not changed since. Memory does not grow with the number of files but for their
//! paths.
//!
//! Until a catalogue is whole, what was found so far is beside it: that of `a.jsonl` or `a.parquet` in
//! `a.jsonl.part` or `a.parquet.part`, as JSON lines. A run that was killed is taken up from there by the
//! next one, which takes the file away.
//!
//! # Data path
//!
//! ```text
//! 1. Entry          a file, and what is known of it without opening it   entry.rs
//! 2. Shard          whether it is of this part of the work               entry.rs
//! 3. Old, Journal   whether an old row still holds                       old.rs, journal.rs
//! 4. Entry::row     opens and describes it                               row.rs
//! 5. Rows           writes it, as JSON lines or Parquet                  rows.rs, parquet.rs
//! ```
//!
//! # Examples
//!
//! ```no_run
//! use modelcrate::catalog::{Catalog, CatalogOptions, Entry};
//!
//! let entries = vec![Entry::at_path("a.zt"), Entry::at_path("b.rten")];
//! let mut catalog = Catalog::create("models.jsonl", CatalogOptions::default().tensors(true))?;
//! catalog.update_from("models.jsonl")?;
//! catalog.run(entries, |row, _| println!("{}: {}", row.path, row.verdict))?;
//! # Ok::<(), modelcrate::catalog::Error>(())
//! ```

mod entry;
mod error;
mod journal;
mod old;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod rows;

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use tensor_core::parallel;

pub use entry::{Entry, InvalidShard, Shard};
pub use error::{Error, Result};
pub use options::CatalogOptions;
pub use row::{FileRow, PartRow, PortRow, TensorRow};
pub use rows::tensors_path;

use self::{journal::Journal, old::Old, rows::Rows};

/// A catalogue that is being written. It stands at its path once it is whole.
#[derive(Debug)]
pub struct Catalog {
    options: CatalogOptions,
    files: Rows<FileRow>,
    tensors: Option<Rows<TensorRow>>,
    old: Option<Old>,
    journal: Journal,
}

/// What became of the files of a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Rows of files.
    pub files: u64,
    /// Those that were taken from the old catalogue, or from a run that was killed.
    pub unchanged: u64,
    /// Those of files that are invalid.
    pub invalid: u64,
    /// Those of files that could not be read.
    pub unread: u64,
    /// Rows of tensors.
    pub tensors: u64,
}

impl Catalog {
    /// Starts a catalogue whose path ends in `.jsonl` or, with the feature `parquet`, `.parquet`.
    ///
    /// # Errors
    ///
    /// [`Error::Extension`]; [`Error::Core`] where no file can be made there, or another process makes
    /// that catalogue; [`Error::Old`] where what a killed run left is malformed.
    pub fn create(path: impl AsRef<Path>, options: CatalogOptions) -> Result<Self> {
        let path = path.as_ref();
        let tensors = options.tensors.then(|| Rows::create(&tensors_path(path))).transpose()?;
        let (files, journal) = (Rows::create(path)?, Journal::open(path)?);
        Ok(Self { options, files, tensors, old: None, journal })
    }

    /// Takes from an old catalogue the rows of files that have not changed since, nor their shards: whose
    /// length and entity tag, or else whose length and time of change, are the same. It may be the one
    /// that this one replaces. Rows of files that could not be read, or that lack what is asked for, are
    /// not taken; those that say more are.
    ///
    /// # Errors
    ///
    /// [`Error::Old`] where it is no catalogue, or not whole; [`Error::Core`] where it cannot be read.
    pub fn update_from(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.old = Some(Old::open(path.as_ref(), self.options)?);
        Ok(())
    }

    /// Describes all files, in the order of their paths, writes the catalogue, and puts it in its place.
    /// `progress` is given each row, and told whether it is from the old catalogue.
    ///
    /// A file that is broken or cannot be read is a row that says so.
    ///
    /// # Errors
    ///
    /// [`Error::Old`] where a row of the old catalogue is malformed; [`Error::Core`] and
    /// [`Error::Write`] where the new one cannot be written. The old one stays as it is then.
    pub fn run(
        mut self,
        entries: Vec<Entry>,
        mut progress: impl FnMut(&FileRow, bool),
    ) -> Result<Counts> {
        let entries = Entry::sort(entries);
        let (options, mut counts) = (self.options, Counts::default());
        let threads = options.threads.unwrap_or_else(parallel::available);
        for some in entries.chunks(AT_ONCE.saturating_mul(threads.get())) {
            let mut work = Vec::with_capacity(some.len());
            for entry in some {
                let killed = self.journal.row(entry.path()).filter(|row| row.is_whole(options));
                let old = match &mut self.old {
                    Some(old) => old.row(entry.path())?,
                    None => None,
                };
                work.push((entry, killed.into_iter().chain(old).collect::<Vec<_>>()));
            }
            let journal = Mutex::new(&mut self.journal);
            let described = parallel::map(&work, threads, |(entry, old)| {
                let described = entry.describe(old, &entries, options);
                if !described.is_old {
                    journal.lock().unwrap_or_else(PoisonError::into_inner).add(&described)?;
                }
                Ok::<_, Error>(described)
            });
            for described in described {
                let described = described?;
                counts.add(&described.file, described.tensors.len(), described.is_old);
                self.files.add(&described.file)?;
                if let Some(rows) = &mut self.tensors {
                    described.tensors.iter().try_for_each(|tensor| rows.add(tensor))?;
                }
                progress(&described.file, described.is_old);
            }
        }
        // What was read is closed before it is replaced.
        self.old = None;
        let tensors = self.tensors.map(Rows::finish).transpose()?;
        let mut files = self.files.finish()?;
        if let Some(mut tensors) = tensors {
            tensors.commit(tensor_core::output::Existing::Replace)?;
        }
        files.commit(tensor_core::output::Existing::Replace)?;
        self.journal.end();
        Ok(counts)
    }
}

impl Counts {
    fn add(&mut self, row: &FileRow, tensors: usize, is_old: bool) {
        let count =
            |counter: &mut u64, counts: bool| *counter = counter.saturating_add(counts.into());
        count(&mut self.files, true);
        count(&mut self.unchanged, is_old);
        count(&mut self.invalid, row.verdict == "invalid");
        count(&mut self.unread, row.verdict == "unread");
        self.tensors = self.tensors.saturating_add(tensors as u64);
    }
}

/// How many files are begun for each thread before what was found is written.
const AT_ONCE: usize = 16;
