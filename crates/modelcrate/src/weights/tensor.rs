use std::io::{BufRead, BufReader, Read as _};

use bytes::Bytes;
use tensor_core::{
    DType, Error as Core, Extent, Limit, Shape, Source, TensorBuf, TensorInfo, Verified,
};

use super::{
    ElementType, Error, Reader, Result,
    contents::{Entry, Place},
};

/// A handle on a tensor; nothing is read before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    pub(super) reader: &'a Reader,
    pub(super) entry: &'a Entry,
}

impl<'a> Tensor<'a> {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'a str {
        &self.entry.name
    }

    pub(crate) const fn reader(self) -> &'a Reader {
        self.reader
    }

    /// Returns what its elements are.
    #[must_use]
    pub const fn element_type(self) -> ElementType {
        self.entry.element_type
    }

    /// Returns its dimensions, outermost first.
    #[must_use]
    pub const fn shape(self) -> &'a Shape {
        &self.entry.shape
    }

    /// Returns its element type and shape.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where it is made of blocks, or of elements that no other format has.
    pub fn info(self) -> Result<TensorInfo> {
        match self.entry.element_type {
            ElementType::Plain(dtype) => Ok(TensorInfo { dtype, shape: self.entry.shape.clone() }),
            ElementType::Packed { name, .. } | ElementType::Blocks { name, .. } => {
                let what =
                    format!("tensor {:?} is of {name}, expected plain elements", self.name());
                Err(Error::Unsupported { what })
            }
        }
    }

    /// Returns how many bytes it takes, decoded.
    #[must_use]
    pub const fn byte_len(self) -> u64 {
        self.entry.place.len()
    }

    /// Returns where its elements are in the file, where they stand there as they are: not compressed,
    /// little-endian, row-major, and in no shard.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info).
    pub fn extent(self) -> Result<Option<Extent>> {
        self.info()?;
        let is_plain = self.entry.order.is_plain() && self.reader.inner.sources.len() == 1;
        Ok(self.stored_extent().filter(|_| is_plain))
    }

    /// Returns where its bytes are in the file, or in the shard that holds it; `None` where they are
    /// compressed.
    #[must_use]
    pub const fn stored_extent(self) -> Option<Extent> {
        match self.entry.place {
            Place::File { extent, .. } => Some(extent),
            #[cfg(feature = "archive")]
            Place::Entry { stored, .. } => stored,
        }
    }

    /// Returns where its bytes stand in the file, or in a shard, in the usual order; `None` also where
    /// reading compares them with a checksum.
    pub(crate) fn place(self) -> Option<(&'a Source, Extent)> {
        match self.entry.place {
            Place::File { source, extent } if self.entry.order.is_plain() => {
                Some((self.source(source).ok()?, extent))
            }
            _ => None,
        }
    }

    /// Returns its bytes as they are stored, but decoded: without a copy where the file is in memory
    /// and they are not compressed.
    ///
    /// # Errors
    ///
    /// Where they cannot be read or decoded.
    pub fn stored_bytes(self) -> Result<Bytes> {
        let limits = &self.reader.inner.limits;
        match self.entry.place {
            Place::File { source, extent } => {
                let source = self.source(source)?;
                if source.as_slice().is_none() {
                    limits.check(Limit::DecodedBytes, "bytes of a tensor", extent.len())?;
                }
                Ok(source.read(extent, WHAT)?)
            }
            #[cfg(feature = "archive")]
            Place::Entry { index, skip, len, .. } => {
                let bytes = self.archived(index)?.checked_bytes()?;
                let part = Extent::new(skip, len)?.within(bytes.len() as u64, WHAT)?;
                Ok(Source::from_bytes(bytes).read(part, WHAT)?)
            }
        }
    }

    /// Returns its elements as bytes, little-endian and row-major: without a copy where the file is in
    /// memory and they stand in it like that.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info), and where they cannot be read.
    pub fn bytes(self) -> Result<Bytes> {
        let TensorInfo { dtype, shape } = self.info()?;
        self.entry.order.apply(dtype, &shape, self.stored_bytes()?)
    }

    /// Fills the caller's buffer with its elements, without a copy between where they stand in the
    /// file as they are.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the buffer has another length.
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        self.info()?;
        if let (Place::File { source, extent }, true) =
            (self.entry.place, self.entry.order.is_plain())
        {
            return Ok(self.source(source)?.read_into(extent, buffer, WHAT)?);
        }
        let (expected, found) = (self.byte_len(), buffer.len() as u64);
        if expected != found {
            return Err(Core::WrongBuffer { what: WHAT, expected, found }.into());
        }
        buffer.copy_from_slice(&self.bytes()?);
        Ok(())
    }

    /// Returns a stream of its bytes as they are stored, but decoded, in memory that does not grow
    /// with them.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn stored_stream(self) -> Result<Box<dyn BufRead + 'a>> {
        match self.entry.place {
            Place::File { source, extent } => {
                Ok(Box::new(self.source(source)?.stream(extent, WHAT)?))
            }
            #[cfg(feature = "archive")]
            Place::Entry { index, skip, .. } => {
                let mut stream = BufReader::new(self.archived(index)?.reader()?);
                std::io::copy(&mut (&mut stream).take(skip), &mut std::io::sink())
                    .map_err(Error::unread)?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Returns a stream of what [`bytes`](Self::bytes) returns, or, of elements that no other format
    /// has, of their bytes as they are stored: in memory that does not grow with them where they
    /// stand little-endian and row-major.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn stream(self) -> Result<Box<dyn BufRead + 'a>> {
        if self.entry.order.is_plain() {
            return self.stored_stream();
        }
        Ok(Box::new(std::io::Cursor::new(self.bytes()?)))
    }

    /// Reads its elements, in order.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn read(self) -> Result<TensorBuf> {
        let TensorInfo { dtype, shape } = self.info()?;
        let bytes = self.entry.order.apply(dtype, &shape, self.stored_bytes()?)?;
        Ok(TensorBuf::new(dtype, shape, bytes)?)
    }

    /// Tells that there is no digest to compare its bytes with.
    ///
    /// # Errors
    ///
    /// None.
    pub const fn verify(self) -> Result<Verified> {
        Ok(Verified::NoDigest)
    }

    /// Looks at every byte of it: whether they can be read, and truth values are such.
    pub(super) fn check(self, progress: impl Fn(u64)) -> Result<()> {
        let mut stream = self.stored_stream()?;
        let is_bool = self.entry.element_type == ElementType::Plain(DType::Bool);
        let mut at = 0_u64;
        loop {
            let bytes = stream.fill_buf().map_err(Error::unread)?;
            if bytes.is_empty() {
                return Ok(());
            }
            if is_bool
                && let Some((&found, index)) = bytes.iter().zip(at..).find(|(byte, _)| **byte > 1)
            {
                return Err(Core::NotABool { index, found }.into());
            }
            let len = bytes.len();
            stream.consume(len);
            at = at.saturating_add(len as u64);
            progress(len as u64);
        }
    }

    fn source(self, source: usize) -> Result<&'a Source> {
        self.reader.inner.sources.get(source).ok_or_else(lost)
    }

    #[cfg(feature = "archive")]
    fn archived(self, index: usize) -> Result<model_archive::Entry<'a>> {
        let archive = self.reader.inner.archive.as_ref();
        archive.and_then(|archive| archive.entry_at(index)).ok_or_else(lost)
    }
}

/// Does not happen: places are those of the files that are open.
fn lost() -> Error {
    Error::Unsupported { what: "the file of a tensor is not open".to_owned() }
}

/// What errors of reading are about.
const WHAT: &str = "tensor data";
