//! Archives of `NumPy`: ZIP files of [`npy`] files, one for each tensor.
//!
//! The crate `npyz` reads them too, but bounds neither what they decode to nor how many there are.
//!
//! # Examples
//!
//! ```
//! use modelcrate::{npz, tensor_core::{Source, TensorBuf}};
//!
//! let scores = TensorBuf::from_slice([2], &[0.5_f32, 1.0])?;
//! let bytes = npz::write([("scores", &scores)], Vec::new())?;
//! let reader = npz::Reader::from_source(Source::from_bytes(bytes))?;
//! assert_eq!(reader.names().collect::<Vec<_>>(), ["scores"]);
//! let read = reader.read("scores")?.ok_or("no scores")?;
//! assert_eq!(read.bytes(), scores.bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use model_archive::{Archive, ArchiveWriter, Entry, EntryOptions};
use tensor_core::{Limits, Profile, Source, TensorBuf};

use crate::npy::{self, Result};

/// Writes an archive of tensors by their names, stored as they are, each at a multiple of 64 bytes.
///
/// # Errors
///
/// As for [`npy::write`]; [`npy::Error::Archive`] where a name cannot be that of a file, or stands
/// twice.
pub fn write<'t, W: Write>(
    tensors: impl IntoIterator<Item = (&'t str, &'t TensorBuf)>,
    sink: W,
) -> Result<W> {
    let mut writer = ArchiveWriter::new(sink);
    let options = EntryOptions::default().alignment(ALIGNMENT);
    for (name, tensor) in tensors {
        let mut file = Vec::new();
        npy::write(tensor, &mut file)?;
        writer.add(&format!("{name}.npy"), &file, &options)?;
    }
    Ok(writer.finish()?)
}

/// An open archive of tensors.
#[derive(Clone, Debug)]
pub struct Reader {
    archive: Archive,
    limits: Limits,
}

impl Reader {
    /// Opens an archive; tensors are read when they are asked for.
    ///
    /// # Errors
    ///
    /// [`npy::Error::Archive`] where it is not a ZIP file.
    pub fn from_source(source: Source) -> Result<Self> {
        Self::with_limits(source, Limits::default())
    }

    /// Like [`from_source`](Self::from_source), but with other limits.
    ///
    /// # Errors
    ///
    /// As for [`from_source`](Self::from_source).
    pub fn with_limits(source: Source, limits: Limits) -> Result<Self> {
        // NumPy streams: sizes stand behind the data.
        let options = Archive::options().profile(Profile::Lenient).limits(limits);
        Ok(Self { archive: options.from_source(source)?, limits })
    }

    /// Returns the names of the tensors, in the order of the archive.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.archive.entries().filter_map(|entry| entry.name().strip_suffix(".npy"))
    }

    /// Reads a tensor; `None` where there is none of that name.
    ///
    /// # Errors
    ///
    /// As for [`npy::read`], with places counted from the start of the tensor's own file;
    /// [`npy::Error::Archive`] where that cannot be decoded, or its checksum differs.
    pub fn read(&self, name: &str) -> Result<Option<TensorBuf>> {
        let entry = self.archive.entry(&format!("{name}.npy"));
        let bytes = entry.map(Entry::checked_bytes).transpose()?;
        bytes.map(|bytes| npy::read(&Source::from_bytes(bytes), &self.limits)).transpose()
    }
}

/// What the files of the tensors start at a multiple of, in bytes; so do then the elements.
const ALIGNMENT: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let [one, other] = [
            TensorBuf::from_slice([2, 2], &[1_i64, 2, 3, 4]).unwrap(),
            TensorBuf::from_slice([0], &[0.0_f32; 0]).unwrap(),
        ];
        let bytes = write([("a", &one), ("b/c", &other)], Vec::new()).unwrap();
        let reader = Reader::from_source(Source::from_bytes(bytes)).unwrap();
        assert_eq!(reader.names().collect::<Vec<_>>(), ["a", "b/c"]);
        for (name, tensor) in [("a", one), ("b/c", other)] {
            let read = reader.read(name).unwrap().unwrap();
            assert_eq!((read.info(), read.bytes()), (tensor.info(), tensor.bytes()));
        }
        assert!(reader.read("c").unwrap().is_none());
    }

    #[test]
    fn other_files() {
        let bytes = write([], Vec::new()).unwrap();
        assert_eq!(Reader::from_source(Source::from_bytes(bytes)).unwrap().names().count(), 0);
        let error = Reader::from_source(Source::from_bytes(&b"\x93NUMPY"[..])).unwrap_err();
        assert!(error.kind().is_file_fault(), "{error}");
        let tensor = TensorBuf::from_slice([1], &[1_u8]).unwrap();
        let twice = write([("a", &tensor), ("a", &tensor)], Vec::new()).unwrap_err();
        assert!(!twice.kind().is_file_fault(), "{twice}");
        let mut bytes = write([("a", &tensor)], Vec::new()).unwrap();
        let at = bytes.windows(6).position(|window| window == b"\x93NUMPY").unwrap();
        bytes[at] = 0;
        let reader = Reader::from_source(Source::from_bytes(bytes)).unwrap();
        assert!(reader.read("a").unwrap_err().kind().is_file_fault());
    }
}
