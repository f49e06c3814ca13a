//! Catalogues: a row for each of many files, and where asked for one for each of their tensors.
//!
//! A catalogue is sorted by path, the same for the same files, and made again from an old one without
//! reading what has not changed since. Memory does not grow with the number of files but for their
//! paths.
//!
//! # Data path
//!
//! ```text
//! 1. Entry          a file, and what is known of it without opening it   entry.rs
//! 2. Shard          whether it is of this part of the work               entry.rs
//! 3. Old            whether an old row still holds                       old.rs
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
mod old;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod rows;

use std::path::Path;

use tensor_core::parallel;

pub use entry::{Entry, InvalidShard, Shard};
pub use error::{Error, Result};
pub use options::CatalogOptions;
pub use row::{FileRow, PortRow, TensorRow};
pub use rows::tensors_path;

use self::{entry::Described, old::Old, rows::Rows};

/// A catalogue that is being written. It stands at its path once it is whole.
#[derive(Debug)]
pub struct Catalog {
    options: CatalogOptions,
    files: Rows<FileRow>,
    tensors: Option<Rows<TensorRow>>,
    old: Option<Old>,
}

/// What became of the files of a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Rows of files.
    pub files: u64,
    /// Those that were taken from the old catalogue.
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
    /// [`Error::Extension`]; [`Error::Core`] where no file can be made there.
    pub fn create(path: impl AsRef<Path>, options: CatalogOptions) -> Result<Self> {
        let path = path.as_ref();
        let tensors = options.tensors.then(|| Rows::create(&tensors_path(path))).transpose()?;
        Ok(Self { options, files: Rows::create(path)?, tensors, old: None })
    }

    /// Takes from an old catalogue the rows of files that have not changed since: whose entity tag, or
    /// else whose length and time of change, are the same. It may be the one that this one replaces.
    /// Rows of files that could not be read, or that lack what is asked for, are not taken.
    ///
    /// # Errors
    ///
    /// [`Error::Old`] where it is no catalogue; [`Error::Core`] where it cannot be read.
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
    /// [`Error::Write`] where the new one cannot be written. Nothing is changed then.
    pub fn run(
        mut self,
        mut entries: Vec<Entry>,
        mut progress: impl FnMut(&FileRow, bool),
    ) -> Result<Counts> {
        entries.sort_by(|a, b| a.path().cmp(b.path()));
        entries.dedup_by(|a, b| a.path() == b.path());
        let threads = self.options.threads.unwrap_or_else(parallel::available);
        let mut counts = Counts::default();
        for some in entries.chunks(AT_ONCE.saturating_mul(threads.get())) {
            let mut work = Vec::with_capacity(some.len());
            for entry in some {
                let old = match &mut self.old {
                    Some(old) => old.row(entry.path())?,
                    None => None,
                };
                work.push((entry, old));
            }
            let options = self.options;
            let described =
                parallel::map(&work, threads, |(entry, old)| entry.describe(old.as_ref(), options));
            for Described { file, tensors, is_old } in described {
                counts.add(&file, tensors.len(), is_old);
                self.files.add(&file)?;
                if let Some(rows) = &mut self.tensors {
                    tensors.iter().try_for_each(|tensor| rows.add(tensor))?;
                }
                progress(&file, is_old);
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
