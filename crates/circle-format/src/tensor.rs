//! The lazy handle on one constant of a model.

use std::io::{self, BufRead as _};

use bytes::Bytes;
use tensor_core::{
    Error as Core, Extent, Limit, Shape, Source, TensorBuf, TensorInfo, Verified, text,
};

use crate::{
    ConstantFault, Error, Reader, Result,
    model::{self, Buffer},
};

/// A handle on a constant of a model; nothing is read before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    reader: &'a Reader,
    subgraph: u32,
    index: u32,
}

impl<'a> Tensor<'a> {
    pub(crate) const fn new(reader: &'a Reader, subgraph: u32, index: u32) -> Self {
        Self { reader, subgraph, index }
    }

    /// Returns its name; `None` where it has none. Names are not unique.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        self.tensor()?.name.as_deref()
    }

    /// Returns the position of its graph in the model.
    #[must_use]
    pub const fn subgraph(self) -> u32 {
        self.subgraph
    }

    /// Returns its position among the tensors of its graph.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Returns the file of the model, in which its [extent](Self::extent) counts.
    #[must_use]
    pub fn source(self) -> &'a Source {
        self.reader.source()
    }

    /// Returns the path of it, such as `subgraph 0/tensor 3 "w"`.
    #[must_use]
    pub fn path(self) -> String {
        let name = self.name().map(|name| format!(" {:?}", text::short(name)));
        format!("subgraph {}/tensor {}{}", self.subgraph, self.index, name.unwrap_or_default())
    }

    /// Returns what the model says about it: element type, quantization, sparsity. `None` does not
    /// happen for a handle that a reader gave out.
    #[must_use]
    pub fn tensor(self) -> Option<&'a model::Tensor> {
        let subgraph = self.reader.model().subgraphs.get(usize::try_from(self.subgraph).ok()?)?;
        subgraph.tensors.get(usize::try_from(self.index).ok()?)
    }

    /// Tells whether its bytes stand outside of the tables of the model.
    #[must_use]
    pub fn is_external(self) -> bool {
        self.buffer().is_some_and(Buffer::is_external) || self.is_elsewhere()
    }

    /// Returns the element type and the shape.
    ///
    /// # Errors
    ///
    /// [`Error::Constant`] where elements are not such as other formats have, but GGML blocks or the
    /// like, or a dimension is negative; [`stored_bytes`](Self::stored_bytes) gives those out as they are.
    pub fn info(self) -> Result<TensorInfo> {
        let found = self.described().and_then(|tensor| {
            let shape = self.shape(tensor)?;
            let tensor_type = tensor.tensor_type;
            let dtype = tensor.dtype().ok_or(ConstantFault::ElementType { tensor_type })?;
            Ok(TensorInfo { dtype, shape })
        });
        found.map_err(|fault| self.fault(fault))
    }

    /// Returns where its bytes are as they are stored, counted from the start of the file.
    ///
    /// # Errors
    ///
    /// [`Error::Constant`] where they are in another file, or do not lie in this one.
    pub fn stored_extent(self) -> Result<Extent> {
        self.place().map_err(|fault| self.fault(fault))
    }

    /// Returns its bytes as they are stored, whatever they are: without a copy where the source is
    /// in memory, or they were read with the tables.
    ///
    /// # Errors
    ///
    /// As for [`stored_extent`](Self::stored_extent), and where they cannot be read.
    pub fn stored_bytes(self) -> Result<Bytes> {
        let extent = self.stored_extent()?;
        if let Some(buffer) = self.buffer().filter(|buffer| !buffer.is_in_file()) {
            return Ok(buffer.data.clone());
        }
        if self.reader.source().as_slice().is_none() {
            let limits = self.reader.limits();
            limits.check(Limit::DecodedBytes, "bytes of a constant", extent.len())?;
        }
        Ok(self.reader.source().read(extent, "constant")?)
    }

    /// Returns where its elements are, counted from the start of the file; `None` where the bytes
    /// that are stored are not those of its elements in order, as those of a sparse constant.
    ///
    /// # Errors
    ///
    /// [`Error::Constant`] where there are other bytes than its shape needs; else as for
    /// [`stored_extent`](Self::stored_extent) and [`info`](Self::info).
    pub fn extent(self) -> Result<Option<Extent>> {
        match self.elements() {
            Err(Error::Constant { fault: ConstantFault::Sparse, .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Like [`extent`](Self::extent), but where elements that are not stored in order are an error.
    fn elements(self) -> Result<Extent> {
        self.info()?;
        let extent = self.stored_extent()?;
        self.check_length(extent.len()).map_err(|fault| self.fault(fault))?;
        Ok(extent)
    }

    /// Returns its elements, row-major and little-endian: without a copy where the source is in
    /// memory, or they are in the tables. 4-bit elements stay two a byte, quantized ones as they
    /// are.
    ///
    /// # Errors
    ///
    /// As for [`extent`](Self::extent), where there is none, and where they cannot be read.
    pub fn bytes(self) -> Result<Bytes> {
        self.elements()?;
        self.stored_bytes()
    }

    /// Fills the caller's buffer with its elements, without a copy between.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the buffer has another length.
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        let extent = self.elements()?;
        if self.buffer().is_some_and(Buffer::is_in_file) {
            return Ok(self.reader.source().read_into(extent, buffer, "constant")?);
        }
        let (data, found) = (self.bytes()?, buffer.len() as u64);
        if extent.len() != found {
            let (what, expected) = ("constant", extent.len());
            return Err(Core::WrongBuffer { what, expected, found }.into());
        }
        buffer.copy_from_slice(&data);
        Ok(())
    }

    /// Returns its elements with their type and shape.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn read(self) -> Result<TensorBuf> {
        let TensorInfo { dtype, shape } = self.info()?;
        Ok(TensorBuf::new(dtype, shape, self.bytes()?)?)
    }

    /// Reads all of it. The format has no digests, so that all that this proves is that the bytes
    /// are there.
    ///
    /// # Errors
    ///
    /// As for [`stored_bytes`](Self::stored_bytes).
    pub fn verify(self) -> Result<Verified> {
        self.touch(|_| ())?;
        Ok(Verified::NoDigest)
    }

    /// Reads all of it piece by piece, and tells how many bytes each piece has.
    pub(crate) fn touch(self, progress: impl Fn(u64)) -> Result<()> {
        let extent = self.stored_extent()?;
        let mut stream = self.reader.source().stream(extent, "constant")?;
        loop {
            let count = match stream.fill_buf() {
                Ok(piece) => piece.len(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    let (what, offset) = ("constant", extent.offset());
                    return Err(Core::Read { what, offset, source }.into());
                }
            };
            if count == 0 {
                return Ok(());
            }
            stream.consume(count);
            progress(count as u64);
        }
    }

    /// Checks that there are as many bytes as the shape needs, where that can be told.
    pub(crate) fn check_length(self, found: u64) -> Result<(), ConstantFault> {
        let tensor = self.described()?;
        if tensor.sparsity.is_some() {
            return Err(ConstantFault::Sparse);
        }
        let (shape, tensor_type) = (self.shape(tensor)?, tensor.tensor_type);
        shape.elements()?;
        match (tensor_type.byte_len(&shape), tensor_type.dtype()) {
            (Some(expected), _) if expected != found => {
                Err(ConstantFault::WrongLength { tensor_type, shape, expected, found })
            }
            // Elements of one size, but more bytes of them than can be.
            (None, Some(dtype)) if dtype.bits().is_some() => {
                Err(Core::SizeOverflow { shape, dtype }.into())
            }
            (None, _) if tensor_type.has_blocks() => {
                Err(ConstantFault::Blocks { tensor_type, shape })
            }
            _ => Ok(()),
        }
    }

    /// Returns where its bytes are.
    pub(crate) fn place(self) -> Result<Extent, ConstantFault> {
        let tensor = self.described()?;
        if self.is_elsewhere() {
            return Err(ConstantFault::OtherFile { id: tensor.external_buffer });
        }
        let Some(buffer) = self.buffer() else {
            let (index, count) = (tensor.buffer, self.reader.model().buffers.len());
            return Err(ConstantFault::NoBuffer { index, count });
        };
        if !buffer.is_in_file() {
            // Bytes that are not there are nowhere: they count as at the start of the file.
            let offset = self.reader.position(&buffer.data).unwrap_or_default();
            return Ok(Extent::new(offset, buffer.data.len() as u64)?);
        }
        let (offset, len, file_len) = (buffer.offset, buffer.size, self.reader.source().len());
        let extent = Extent::new(offset, len).ok().filter(|extent| extent.end() <= file_len);
        extent.ok_or(ConstantFault::OutOfBounds { offset, len, file_len })
    }

    fn described(self) -> Result<&'a model::Tensor, ConstantFault> {
        let missing = ConstantFault::NoBuffer { index: self.index, count: 0 };
        self.tensor().ok_or(missing)
    }

    fn shape(self, tensor: &model::Tensor) -> Result<Shape, ConstantFault> {
        self.reader.limits().check(Limit::Rank, "rank", tensor.shape.len() as u64)?;
        tensor.shape().ok_or_else(|| ConstantFault::Shape { shape: tensor.shape.clone() })
    }

    fn buffer(self) -> Option<&'a Buffer> {
        self.reader.model().buffer(self.tensor()?.buffer)
    }

    /// Tells whether its bytes are in another file.
    fn is_elsewhere(self) -> bool {
        self.tensor().is_some_and(|tensor| tensor.external_buffer != 0)
    }

    fn fault(self, fault: ConstantFault) -> Error {
        Error::Constant { path: self.path(), fault }
    }
}
