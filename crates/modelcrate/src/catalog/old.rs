//! An old catalogue, read beside the new one: both are sorted by path.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _},
    iter::Peekable,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};
use tensor_core::text::short;

use super::{
    error::{Error, Result},
    options::CatalogOptions,
    row::{FileRow, SCHEMA, TensorRow},
    rows::{Kind, tensors_path},
};

/// An old catalogue.
#[derive(Debug)]
pub(super) struct Old {
    path: PathBuf,
    files: Stream<FileRow>,
    tensors: Option<Stream<TensorRow>>,
    options: CatalogOptions,
    last: String,
    row: u64,
    tensor_row: u64,
}

/// What an old catalogue says of a file.
#[derive(Debug, Deserialize)]
pub(super) struct OldRow {
    pub(super) file: FileRow,
    pub(super) tensors: Vec<TensorRow>,
}

impl OldRow {
    /// Tells whether there is a row for each tensor, with what is asked for.
    pub(super) fn is_whole(&self, options: CatalogOptions) -> bool {
        let Self { file, tensors } = self;
        let has_hashes = !options.hash || tensors.iter().any(|row| row.sha256.is_some());
        let has_stats = !options.stats || tensors.iter().any(|row| row.zeros.is_some());
        let count = tensors.len() as u64;
        let has_all = count == 0 || has_hashes && has_stats;
        !options.tensors || file.tensors.unwrap_or_default() == count && has_all
    }
}

/// Rows as they come.
pub(super) type RowsOf<T> = Box<dyn Iterator<Item = Result<T, String>> + Send>;

struct Stream<T>(Peekable<RowsOf<T>>);

impl<T> std::fmt::Debug for Stream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Old {
    pub(super) fn open(path: &Path, options: CatalogOptions) -> Result<Self> {
        let files = Stream(open(path)?.peekable());
        let beside = tensors_path(path);
        let has_tensors = options.tensors && beside.exists();
        let tensors = has_tensors.then(|| open(&beside)).transpose()?;
        let tensors = tensors.map(|rows| Stream(rows.peekable()));
        let (path, last) = (path.to_owned(), String::new());
        Ok(Self { path, files, tensors, options, last, row: 0, tensor_row: 0 })
    }

    /// Returns what it says of a file. Paths are asked for in their order.
    pub(super) fn row(&mut self, path: &str) -> Result<Option<OldRow>> {
        loop {
            let is_before = match self.files.0.peek() {
                Some(Ok(row)) => row.path.as_str() < path,
                Some(Err(_)) => true,
                None => return Ok(None),
            };
            if !is_before {
                break;
            }
            self.next()?;
        }
        let is_it = matches!(self.files.0.peek(), Some(Ok(row)) if row.path == path);
        let file = if is_it { self.next()? } else { None };
        let Some(file) = file else { return Ok(None) };
        let tensors = self.tensors_of(path)?;
        Ok(Some(OldRow { file, tensors }).filter(|row| row.is_whole(self.options)))
    }

    fn next(&mut self) -> Result<Option<FileRow>> {
        self.row = self.row.saturating_add(1);
        let row = match self.files.0.next() {
            Some(Ok(row)) => row,
            Some(Err(reason)) => return Err(self.wrong(reason)),
            None => return Ok(None),
        };
        if row.schema != SCHEMA {
            return Err(self.wrong(format!("has schema {}, expected {SCHEMA}", row.schema)));
        }
        if self.row > 1 && row.path <= self.last {
            let (path, last) = (&row.path, &self.last);
            return Err(self.wrong(format!("is of {path:?}, expected one behind {last:?}")));
        }
        self.last.clone_from(&row.path);
        Ok(Some(row))
    }

    fn tensors_of(&mut self, path: &str) -> Result<Vec<TensorRow>> {
        let Some(Stream(rows)) = &mut self.tensors else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        while let Some(row) = rows.next_if(|row| match row {
            Ok(row) => row.path.as_str() <= path,
            Err(_) => true,
        }) {
            self.tensor_row = self.tensor_row.saturating_add(1);
            match row {
                Ok(row) if row.path == path => found.push(row),
                Ok(_) => {}
                Err(reason) => {
                    let (path, row) = (tensors_path(&self.path), self.tensor_row);
                    return Err(Error::Old { path, row, reason });
                }
            }
        }
        Ok(found)
    }

    fn wrong(&self, reason: String) -> Error {
        Error::Old { path: self.path.clone(), row: self.row, reason }
    }
}

fn open<T: DeserializeOwned + Send + 'static>(path: &Path) -> Result<RowsOf<T>> {
    let failed =
        |source| tensor_core::Error::File { path: path.to_owned(), what: "opening", source };
    let file = File::open(path).map_err(failed)?;
    match Kind::of(path)? {
        Kind::Jsonl => {
            let mut file = BufReader::new(file);
            let lines = std::iter::from_fn(move || line(&mut file).transpose());
            Ok(Box::new(lines.map(|line| parse(&line?))))
        }
        #[cfg(feature = "parquet")]
        Kind::Parquet => super::parquet::read(file).map_err(|reason| Error::Old {
            path: path.to_owned(),
            row: 0,
            reason,
        }),
    }
}

/// Reads a line, without its end; none where there are no more.
pub(super) fn line(file: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let read = file.take(MOST_LINE).read_until(b'\n', &mut line);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if (line.len() as u64) < MOST_LINE.saturating_sub(1) => {
            Err("has no end: the file is truncated, or no catalogue".to_owned())
        }
        Some(_) => Err(format!("is over the limit of {MOST_LINE} bytes")),
    }
}

/// Reads a row of a line.
pub(super) fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    let malformed = |error: serde_json::Error| short(&error.to_string()).into_owned();
    serde_json::from_slice(line).map_err(|error| format!("is malformed: {}", malformed(error)))
}

/// How many bytes a line has at most.
pub(super) const MOST_LINE: u64 = 64 << 20;
