//! Archives of `NumPy`: ZIP files of [`npy`] files, one for each tensor.
//!
//! The crate `npyz` reads them too, but bounds neither what they decode to nor how many there are.

use std::io::{Read as _, Write};

use model_archive::{Archive, ArchiveWriter, Compression, EntryOptions, Method, name};
use tensor_core::{Limit, Limits, Source, TensorBuf, TensorInfo, Verify};

use super::{
    Error, Planned, Result,
    contents::{Contents, Entry, Place},
    element_type::ElementType,
    npy::{self, Header},
};

/// Tells whether an archive holds arrays of `NumPy`, and nothing else.
pub(crate) fn sniff_archive(archive: &Archive) -> bool {
    let mut entries = archive.entries().peekable();
    entries.peek().is_some() && entries.all(|entry| entry.name().ends_with(".npy"))
}

/// Reads the headers of all tensors.
pub(super) fn parse(archive: &Archive, limits: &Limits, verify: Verify) -> Result<Contents> {
    let mut contents = Contents { findings: archive.lint(), ..Contents::default() };
    limits.check(Limit::Tensors, "number of tensors", archive.entries().len() as u64)?;
    for entry in archive.entries() {
        let name = entry.name().strip_suffix(".npy").unwrap_or(entry.name());
        let broken = |error: Error| match error {
            Error::Malformed { rule, reason, at } => {
                Error::Malformed { rule, reason: format!("tensor {name:?}: {reason}"), at }
            }
            other => other,
        };
        let (header, place) = if entry.info().method == Method::Stored {
            let extent = entry.extent()?;
            let file = archive.source().window(extent, "array")?;
            let header = Header::read(&file, file.len()).map_err(broken)?;
            let (skip, len) = (header.data.offset(), header.data.len());
            let extent = extent.part(skip, len, "array")?;
            let stored = Some(extent);
            (
                header,
                match verify {
                    Verify::Never => Place::File { source: 0, extent },
                    _ => Place::Entry { index: entry.index(), skip, len, stored },
                },
            )
        } else {
            let (mut start, size) = (Vec::new(), entry.info().size);
            entry.reader()?.take(START).read_to_end(&mut start).map_err(Error::unread)?;
            let header = Header::read(&Source::from_bytes(start), size).map_err(broken)?;
            let (skip, len) = (header.data.offset(), header.data.len());
            (header, Place::Entry { index: entry.index(), skip, len, stored: None })
        };
        let Header { dtype, shape, order, .. } = header;
        let element_type = ElementType::Plain(dtype);
        contents.entries.push(Entry { name: name.to_owned(), element_type, shape, place, order });
    }
    Ok(contents)
}

/// Says what of a tensor an archive cannot have.
pub(crate) fn refuses(tensor: &Planned<'_>) -> Option<String> {
    if let Err(fault) = name::check(&format!("{}.npy", tensor.name), &Limits::default()) {
        return Some(format!("its name cannot be that of a file: {fault}"));
    }
    npy::refuses(tensor.shape)
}

/// A writer of an archive: tensors are stored as they are, each at a multiple of 64 bytes.
#[derive(Debug)]
pub struct Writer<W: Write> {
    archive: ArchiveWriter<W>,
    compression: Compression,
}

impl<W: Write> Writer<W> {
    /// Starts an archive.
    #[must_use]
    pub fn new(sink: W) -> Self {
        Self { archive: ArchiveWriter::new(sink), compression: Compression::Stored }
    }

    /// Compresses the tensors that follow by DEFLATE, by a level from 1 for speed to 9 for size.
    #[must_use]
    pub const fn deflate(mut self, level: i32) -> Self {
        self.compression = Compression::Deflate { level };
        self
    }

    /// Writes a tensor.
    ///
    /// # Errors
    ///
    /// As for [`npy::write`]; [`Error::Archive`] where a name cannot be that of a file, or stands
    /// twice.
    pub fn add(&mut self, name: &str, tensor: &TensorBuf) -> Result<()> {
        self.stream(name, tensor.info(), |sink| Ok(sink.write_all(tensor.bytes())?))
    }

    /// Writes a tensor whose elements `write` writes.
    pub(crate) fn stream<E: From<Error>>(
        &mut self,
        name: &str,
        info: &TensorInfo,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let options = EntryOptions::default().alignment(ALIGNMENT).compression(self.compression);
        let entry = self.archive.stream(&format!("{name}.npy"), &options);
        let mut entry = entry.map_err(Error::from)?;
        npy::write_header(info, &mut entry)?;
        write(&mut entry)?;
        entry.finish().map_err(Error::from)?;
        Ok(())
    }

    /// Writes the directory, and returns the sink.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`] where a write fails.
    pub fn finish(self) -> Result<W> {
        Ok(self.archive.finish()?)
    }
}

/// What the files of the tensors start at a multiple of, in bytes; so do then the elements.
const ALIGNMENT: u32 = 64;

/// Bytes that the longest header ends within.
const START: u64 = (1 << 16) + 12;

#[cfg(test)]
mod tests {
    use tensor_core::Source;

    use super::*;
    use crate::weights::Reader;

    fn tensors() -> [(&'static str, TensorBuf); 2] {
        [
            ("a", TensorBuf::from_slice([2, 2], &[1_i64, 2, 3, 4]).unwrap()),
            ("b/c", TensorBuf::from_slice([0], &[0.0_f32; 0]).unwrap()),
        ]
    }

    fn written() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        for (name, tensor) in tensors() {
            writer.add(name, &tensor).unwrap();
        }
        writer.finish().unwrap()
    }

    #[track_caller]
    fn is_sound(bytes: Vec<u8>) {
        let reader = Reader::from_bytes(bytes).unwrap();
        assert_eq!(reader.format(), crate::Format::Npz);
        assert_eq!(reader.tensors().count(), 2);
        for (name, expected) in tensors() {
            let tensor = reader.tensor(name).unwrap();
            let read = tensor.read().unwrap();
            assert_eq!((read.info(), read.bytes()), (expected.info(), expected.bytes()));
            let mut into = vec![0; expected.bytes().len()];
            tensor.read_into(&mut into).unwrap();
            assert_eq!(into, *expected.bytes());
        }
        assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    }

    #[test]
    fn what_is_written_is_read() {
        is_sound(written());
    }

    #[test]
    fn compressed_arrays() {
        let mut writer = ArchiveWriter::new(Vec::new());
        let options = EntryOptions::default().compression(Compression::Deflate { level: 6 });
        for (name, tensor) in tensors() {
            let mut file = Vec::new();
            npy::write(&tensor, &mut file).unwrap();
            writer.add(&format!("{name}.npy"), &file, &options).unwrap();
        }
        is_sound(writer.finish().unwrap());
    }

    #[test]
    fn damage_is_found() {
        let mut bytes = written();
        let at = bytes.windows(6).position(|window| window == b"\x93NUMPY").unwrap();
        bytes[at] = 0;
        let error = Reader::from_source(Source::from_bytes(bytes.clone())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tensor \"a\": magic at byte 0 is \"\\x00NUMPY\", expected \"\\x93NUMPY\""
        );
        bytes[at] = 0x93;
        // The last byte of an element.
        let at = bytes.windows(8).position(|window| window == 4_i64.to_le_bytes()).unwrap();
        bytes[at] = 5;
        let report = Reader::from_bytes(bytes.clone()).unwrap().validate();
        assert_eq!(report.findings()[0].rule, "zip/crc");
        let reader = Reader::options().verify(Verify::Always).from_bytes(bytes).unwrap();
        let tensor = reader.tensor("a").unwrap();
        assert!(tensor.extent().unwrap().is_some());
        assert_eq!(tensor.bytes().unwrap_err().rule(), "zip/crc");
        tensor.stream().unwrap().read_to_end(&mut Vec::new()).unwrap_err();
        reader.tensor("b/c").unwrap().bytes().unwrap();
    }
}
