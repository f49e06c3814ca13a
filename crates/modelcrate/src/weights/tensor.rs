use std::io::BufRead;

use bytes::Bytes;
use tensor_core::{
    DType, Error as Core, Extent, Limit, Shape, Source, TensorBuf, TensorInfo, Verified,
};

use super::{ElementType, Error, Reader, Result, contents::Entry};

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

    /// Returns where its bytes are in the file that holds them, which is another where there are
    /// shards.
    #[must_use]
    pub const fn stored_extent(self) -> Extent {
        self.entry.extent
    }

    /// Returns where its elements are in the file, where they stand there as they are.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info).
    pub fn extent(self) -> Result<Option<Extent>> {
        self.info()?;
        Ok((self.reader.inner.sources.len() == 1).then_some(self.entry.extent))
    }

    /// Returns its bytes as they are stored, whatever they are; without a copy where the file is in
    /// memory.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn stored_bytes(self) -> Result<Bytes> {
        let (source, extent) = (self.source()?, self.entry.extent);
        if source.as_slice().is_none() {
            self.reader.inner.limits.check(
                Limit::DecodedBytes,
                "bytes of a tensor",
                extent.len(),
            )?;
        }
        Ok(source.read(extent, WHAT)?)
    }

    /// Returns its elements as bytes, little-endian and in order; without a copy where the file is in
    /// memory.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info), and where they cannot be read.
    pub fn bytes(self) -> Result<Bytes> {
        self.info()?;
        self.stored_bytes()
    }

    /// Fills the caller's buffer with its elements, without a copy between.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the buffer has another length.
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        self.info()?;
        Ok(self.source()?.read_into(self.entry.extent, buffer, WHAT)?)
    }

    /// Returns a stream of its bytes as they are stored, in memory that does not grow with them.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn stream(self) -> Result<impl BufRead + use<>> {
        Ok(self.source()?.stream(self.entry.extent, WHAT)?)
    }

    /// Reads its elements, in order.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn read(self) -> Result<TensorBuf> {
        let TensorInfo { dtype, shape } = self.info()?;
        Ok(TensorBuf::new(dtype, shape, self.stored_bytes()?)?)
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
        let mut stream = self.source()?.stream(self.entry.extent, WHAT)?;
        let is_bool = self.entry.element_type == ElementType::Plain(DType::Bool);
        let mut at = self.entry.extent.offset();
        loop {
            let read = |source| Core::Read { what: WHAT, offset: at, source };
            let bytes = stream.fill_buf().map_err(read)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let other = bytes.iter().position(|byte| *byte > 1).filter(|_| is_bool);
            if let Some((index, byte)) = other.and_then(|index| Some((index, bytes.get(index)?))) {
                let index =
                    at.saturating_sub(self.entry.extent.offset()).saturating_add(index as u64);
                return Err(Core::NotABool { index, found: *byte }.into());
            }
            let len = bytes.len();
            stream.consume(len);
            at = at.saturating_add(len as u64);
            progress(len as u64);
        }
    }

    fn source(self) -> Result<&'a Source> {
        let missing = || Error::Unsupported { what: "the file of a tensor is not open".to_owned() };
        self.reader.inner.sources.get(self.entry.source).ok_or_else(missing)
    }
}

/// What errors of reading are about.
const WHAT: &str = "tensor data";
