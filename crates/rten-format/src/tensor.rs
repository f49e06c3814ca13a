//! The lazy handle on one constant.

use std::cmp::Reverse;

use bytes::Bytes;
use tensor_core::{
    DType, Error as Core, Extent, Limit, Shape, Source, SourceReader, TensorBuf, TensorInfo,
    text::short,
};

use crate::{
    Constant, ConstantData, ConstantDataType, DataType, Error, Fault, Reader, Result,
    read::index::{Entry, Inline},
};

/// A handle on a constant; nothing is read before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    reader: &'a Reader,
    entry: &'a Entry,
}

impl Reader {
    /// Returns handles on the constants of all graphs in the order of the file: those of a subgraph
    /// come where its operator is.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.index().constants.iter().map(|entry| Tensor::new(self, entry))
    }

    /// Returns a handle on the constant of a name; `None` where there is none.
    ///
    /// Names in the main graph come before those in subgraphs. Of several constants of one name in
    /// the same graph the last is returned, as in RTen; [`tensors`](Self::tensors) has all.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let by_name = self.by_name(|| self.sort_names());
        let wanted = Some(name.as_bytes());
        let entry = |index: &usize| self.index().constants.get(*index);
        let name_of = |entry: &Entry| entry.name(self.model_bytes());
        let at = by_name.partition_point(|index| entry(index).and_then(name_of) < wanted);
        let found = by_name.get(at).and_then(entry).filter(|entry| name_of(entry) == wanted);
        found.map(|entry| Tensor::new(self, entry))
    }

    /// Sorts constants by name, those first that a look-up prefers.
    fn sort_names(&self) -> Vec<usize> {
        let constants = &self.index().constants;
        let mut sorted: Vec<usize> = (0..constants.len()).collect();
        let model_data = self.model_bytes();
        let key = |entry: &Entry| (entry.name(model_data), entry.scope, Reverse(entry.node));
        sorted.sort_by_key(|&index| constants.get(index).map(key));
        sorted
    }
}

impl<'a> Tensor<'a> {
    pub(crate) const fn new(reader: &'a Reader, entry: &'a Entry) -> Self {
        Self { reader, entry }
    }

    pub(crate) const fn reader(self) -> &'a Reader {
        self.reader
    }

    /// Returns the file, in which its [extent](Self::extent) counts.
    #[must_use]
    pub fn source(self) -> &'a Source {
        self.reader.source()
    }

    /// Returns the name of its node; `None` where it has none.
    ///
    /// Names are not unique: a name may be there once in each graph, or more often where a file is
    /// not as it should be.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        str::from_utf8(self.entry.name(self.reader.model_bytes())?).ok()
    }

    /// Returns the path of the graph that it is in, such as `graph/then_branch`.
    #[must_use]
    pub fn graph_path(self) -> &'a str {
        self.reader.place(self.entry.scope).map_or("graph", |place| &place.path)
    }

    /// Returns the path of its node, such as `graph/then_branch/node 12 "w"`.
    #[must_use]
    pub fn path(self) -> String {
        let quoted = self.name().filter(|name| !name.is_empty());
        let quoted = quoted.map(|name| format!(" {:?}", short(name)));
        format!("{}/node {}{}", self.graph_path(), self.node(), quoted.unwrap_or_default())
    }

    /// Returns which graph it is in, as [`Topology::scopes`](crate::topology::Topology::scopes)
    /// counts them.
    #[must_use]
    pub const fn scope(self) -> usize {
        self.entry.scope
    }

    /// Returns the id of its node in that graph.
    #[must_use]
    pub const fn node(self) -> u32 {
        self.entry.node
    }

    /// Returns what the file says about it, as a part of [`Reader::model`].
    #[must_use]
    pub fn constant(self) -> &'a Constant {
        self.reader.constant(self.scope(), self.node())
    }

    /// Tells whether it is in the tensor data, not in the model data.
    #[must_use]
    pub const fn is_external(self) -> bool {
        self.entry.data_offset.is_some()
    }

    /// Returns the element type and the shape.
    ///
    /// Of a constant with a data offset `dtype` says the element type, of one with inline data the
    /// data itself, whatever `dtype` says: so does RTen.
    ///
    /// # Errors
    ///
    /// [`Error::Constant`] where the element type is missing or unknown, and where the rank is over
    /// the limit.
    pub fn info(self) -> Result<TensorInfo> {
        let dims = self.entry.dims(self.reader.model_bytes());
        let rank = self.reader.limits().check(Limit::Rank, "rank", dims.len() as u64);
        rank.map_err(|error| self.fault(error))?;
        let dtype = self.dtype().map_err(|fault| self.fault(fault))?;
        let shape: Shape = dims.map(u64::from).collect();
        Ok(TensorInfo { dtype, shape })
    }

    /// Returns where its bytes are, counted from the start of the file; never `None`, as the format
    /// stores all elements as they are.
    ///
    /// # Errors
    ///
    /// [`Error::Constant`] where there are other bytes than the shape needs, or where they do not
    /// lie in the file; else as for [`info`](Self::info).
    pub fn extent(self) -> Result<Option<Extent>> {
        self.place().map(Some)
    }

    /// Returns its bytes, row-major, elements little-endian: without a copy where they are in the
    /// model data or the source is in memory.
    ///
    /// # Errors
    ///
    /// As for [`extent`](Self::extent), and where they cannot be read.
    pub fn bytes(self) -> Result<Bytes> {
        let extent = self.place()?;
        if !self.is_external() {
            let model = self.reader.model_bytes();
            let data = self.elements().and_then(|elements| elements.slice(model));
            return Ok(data.map(|data| model.slice_ref(data)).unwrap_or_default());
        }
        if self.reader.source().as_slice().is_none() {
            let limits = self.reader.limits();
            limits.check(Limit::DecodedBytes, "bytes of a constant", extent.len())?;
        }
        Ok(self.reader.source().read(extent, "tensor data")?)
    }

    /// Fills the caller's buffer with its bytes.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the buffer has another length.
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        let extent = self.place()?;
        if self.is_external() {
            return Ok(self.reader.source().read_into(extent, buffer, "tensor data")?);
        }
        let (data, found) = (self.bytes()?, buffer.len() as u64);
        if extent.len() != found {
            let (what, expected) = ("inline data", extent.len());
            return Err(Core::WrongBuffer { what, expected, found }.into());
        }
        buffer.copy_from_slice(&data);
        Ok(())
    }

    /// Returns it as typed elements, over the same bytes as [`bytes`](Self::bytes).
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn read(self) -> Result<TensorBuf> {
        let TensorInfo { dtype, shape } = self.info()?;
        Ok(TensorBuf::new(dtype, shape, self.bytes()?)?)
    }

    /// Returns a stream of its bytes, in memory that does not grow with them.
    ///
    /// # Errors
    ///
    /// As for [`extent`](Self::extent).
    pub fn stream(self) -> Result<SourceReader> {
        Ok(self.reader.source().stream(self.place()?, "tensor data")?)
    }

    /// Returns where its bytes are, in bytes from the start of the file.
    pub(crate) fn place(self) -> Result<Extent> {
        let info = self.info()?;
        let len = info.byte_len().map_err(|error| self.fault(error))?;
        let extent = match self.entry.data_offset {
            Some(data_offset) => self.external(data_offset, len),
            None => self.inline(&info.shape, len),
        };
        extent.map_err(|fault| self.fault(fault))
    }

    fn dtype(self) -> Result<DType, Fault> {
        if self.is_external() {
            let dtype = self.entry.dtype.ok_or(Fault::NoDtype)?;
            return dtype.dtype().ok_or(Fault::UnknownDtype { code: dtype.code() });
        }
        match self.entry.data {
            None => Err(Fault::NoData),
            Some(Inline::Unknown(tag)) => Err(Fault::UnknownData { tag }),
            Some(Inline::Elements(dtype, _)) => Ok(dtype),
        }
    }

    /// Returns where its inline elements are, in bytes from the start of the model data.
    fn elements(self) -> Option<Extent> {
        match self.entry.data {
            Some(Inline::Elements(_, elements)) => Some(elements),
            _ => None,
        }
    }

    fn external(self, data_offset: u64, len: u64) -> Result<Extent, Fault> {
        let header = self.reader.header().ok_or(Fault::NoTensorData { offset: data_offset })?;
        header.tensor(data_offset, len, self.reader.source().len())
    }

    fn inline(self, shape: &Shape, expected: u64) -> Result<Extent, Fault> {
        let elements = self.elements().ok_or(Fault::NoData)?;
        if elements.len() != expected {
            let (shape, found) = (shape.clone(), elements.len());
            return Err(Fault::WrongLength { shape, expected, found });
        }
        Ok(self.reader.model_data().part(elements.offset(), elements.len(), "inline data")?)
    }

    fn fault(self, fault: impl Into<Fault>) -> Error {
        Error::Constant { path: self.path().into(), fault: fault.into() }
    }
}

impl DataType {
    /// Returns the element type; `None` for an unknown number.
    #[must_use]
    pub const fn dtype(self) -> Option<DType> {
        match self {
            Self::Int32 => Some(DType::I32),
            Self::Float => Some(DType::F32),
            Self::Int8 => Some(DType::I8),
            Self::UInt8 => Some(DType::U8),
            Self::Unknown(_) => None,
        }
    }
}

impl ConstantDataType {
    /// Returns the element type; `None` for an unknown number.
    #[must_use]
    pub const fn dtype(self) -> Option<DType> {
        match self {
            Self::Int32 => Some(DType::I32),
            Self::Float32 => Some(DType::F32),
            Self::Int8 => Some(DType::I8),
            Self::UInt8 => Some(DType::U8),
            Self::Unknown(_) => None,
        }
    }
}

impl ConstantData {
    /// Returns the element type; `None` for a table that this crate does not know.
    #[must_use]
    pub const fn dtype(&self) -> Option<DType> {
        match self {
            Self::Int32(_) => Some(DType::I32),
            Self::Float(_) => Some(DType::F32),
            Self::Int8(_) => Some(DType::I8),
            Self::UInt8(_) => Some(DType::U8),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the elements; `None` for a table that this crate does not know.
    #[must_use]
    pub const fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Int32(bytes) | Self::Float(bytes) | Self::Int8(bytes) | Self::UInt8(bytes) => {
                Some(bytes)
            }
            Self::Unknown(_) => None,
        }
    }
}
