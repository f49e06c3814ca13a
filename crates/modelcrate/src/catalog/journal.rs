//! What a run has described so far, beside the catalogue until that is whole: a run that is killed is
//! taken up where it stopped.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File, TryLockError},
    io::{self, BufReader, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    entry::Described,
    error::{Error, Result},
    old::{MOST_LINE, OldRow, line, parse},
    row::{FileRow, TensorRow},
};

/// A file with a line of JSON for each file that was described, in the order of their turn.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Where the line of a file starts, in bytes.
    lines: HashMap<String, u64>,
    read: BufReader<File>,
    write: File,
    is_empty: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    file: &'a FileRow,
    tensors: &'a [TensorRow],
}

impl Journal {
    /// Opens the journal of a catalogue, or begins one. What is torn at its end is cut off.
    pub(super) fn open(catalog: &Path) -> Result<Self> {
        let path = path_of(catalog);
        let failed = |what| {
            let path = path.clone();
            move |source| tensor_core::Error::File { path, what, source }
        };
        let open = || File::options().read(true).append(true).create(true).open(&path);
        let file = open().map_err(failed("opening"))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => tensor_core::Error::Locked { path: path.clone() },
            TryLockError::Error(error) => failed("locking")(error),
        })?;
        let mut read = BufReader::new(File::open(&path).map_err(failed("opening"))?);
        let (mut lines, mut end, mut row) = (HashMap::new(), 0_u64, 0_u64);
        // What is behind the last whole line was being written.
        while let Ok(Some(text)) = line(&mut read) {
            row = row.saturating_add(1);
            let wrong = |reason| Error::Old { path: path.clone(), row, reason };
            let old: OldRow = parse(&text).map_err(wrong)?;
            lines.insert(old.file.path, end);
            end = end.saturating_add(text.len() as u64).saturating_add(1);
        }
        file.set_len(end).map_err(failed("truncating"))?;
        Ok(Self { path, lines, read, write: file, is_empty: end == 0 })
    }

    /// Returns what was found of a file.
    pub(super) fn row(&mut self, path: &str) -> Option<OldRow> {
        let start = self.lines.get(path)?;
        self.read.seek(SeekFrom::Start(*start)).ok()?;
        let line = line(&mut self.read).ok()??;
        parse(&line).ok()
    }

    /// Adds what was found of a file.
    pub(super) fn add(&mut self, described: &Described) -> Result<()> {
        let Described { file, tensors, .. } = described;
        let mut line = serde_json::to_vec(&Line { file, tensors }).map_err(io::Error::from)?;
        line.push(b'\n');
        // What is not written is read again.
        if (line.len() as u64) < MOST_LINE {
            self.is_empty = false;
            self.write.write_all(&line)?;
        }
        Ok(())
    }

    /// Takes it away, as the catalogue is whole.
    pub(super) fn end(mut self) {
        self.is_empty = true;
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // One that stays is no harm: what it has is not newer than the catalogue.
        if self.is_empty {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns where the journal of a catalogue is: of `a.jsonl` in `a.jsonl.part`.
fn path_of(catalog: &Path) -> PathBuf {
    let mut name = OsString::from(catalog);
    name.push(".part");
    name.into()
}
