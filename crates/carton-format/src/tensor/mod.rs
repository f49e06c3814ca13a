use std::fmt;

use bytes::Bytes;
use tensor_core::{DType, Extent, Limit, Limits, Report, Shape, TensorBuf, TensorInfo, Verified};

use crate::{
    Error, File, Place, Reader, Result,
    error::TensorFault,
    paths::{INDEX, INDEX_BYTES},
    tensor::index::{Content, Index, IndexEntry},
    text::{Document, Unknown, report_toml_1_1, report_unknown},
};

pub mod dtype;
pub(crate) mod index;
pub(crate) mod index_writer;

/// A handle on a tensor: two words, nothing read. Format text: "`tensor_data`".
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    reader: &'a Reader,
    entry: &'a IndexEntry,
}

/// What kind of tensor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorKind {
    /// Numbers, little-endian and row-major.
    Numeric,
    /// Texts, row-major.
    Strings,
    /// A list of tensors that may differ in shape.
    Nested,
}

impl<'a> Tensor<'a> {
    pub(crate) const fn new(reader: &'a Reader, entry: &'a IndexEntry) -> Self {
        Self { reader, entry }
    }

    /// Returns its name in the index, which references use.
    #[must_use]
    pub fn name(self) -> &'a str {
        &self.entry.name
    }

    /// Returns what kind it is.
    #[must_use]
    pub fn kind(self) -> TensorKind {
        match self.entry.content {
            Content::Plain { dtype: DType::Str, .. } => TensorKind::Strings,
            Content::Plain { .. } => TensorKind::Numeric,
            Content::Nested { .. } => TensorKind::Nested,
        }
    }

    /// Returns the type of its elements; `None` for a nested tensor.
    #[must_use]
    pub fn dtype(self) -> Option<DType> {
        match self.entry.content {
            Content::Plain { dtype, .. } => Some(dtype),
            Content::Nested { .. } => None,
        }
    }

    /// Returns its dimensions, outermost first; `None` for a nested tensor.
    #[must_use]
    pub fn shape(self) -> Option<&'a Shape> {
        match &self.entry.content {
            Content::Plain { shape, .. } => Some(shape),
            Content::Nested { .. } => None,
        }
    }

    /// Returns element type and shape.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] for a nested tensor, which has neither.
    pub fn info(self) -> Result<TensorInfo> {
        match &self.entry.content {
            Content::Plain { dtype, shape, .. } => {
                Ok(TensorInfo { dtype: *dtype, shape: shape.clone() })
            }
            Content::Nested { .. } => {
                let expected = "a tensor of numbers or strings";
                Err(self.entry.fault(TensorFault::Kind { found: self.kind().name(), expected }))
            }
        }
    }

    /// Returns the file that holds it; `None` for a nested tensor.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] where `MANIFEST` does not list it.
    pub fn file(self) -> Result<Option<File<'a>>> {
        Ok(self.entry.line_of_file()?.map(|line| File::new(self.reader, line)))
    }

    /// Returns the bytes of a numeric tensor, little-endian and row-major: a slice without a copy
    /// where they are stored as they are and in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] where it is of another kind, or its length is not that of its shape; as
    /// for [`File::bytes`].
    pub fn bytes(self) -> Result<Bytes> {
        self.check_len()?.bytes()
    }

    /// Fills the caller's buffer with the bytes of a numeric tensor; they are held nowhere else.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::WrongBuffer`] where the buffer has another length; else as for
    /// [`bytes`](Self::bytes).
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        self.check_len()?.read_into(buffer)
    }

    /// Reads a numeric tensor.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn read(self) -> Result<TensorBuf> {
        let (bytes, TensorInfo { dtype, shape }) = (self.bytes()?, self.info()?);
        Ok(TensorBuf::new(dtype, shape, bytes)?)
    }

    /// Returns the texts of a string tensor, row-major.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] where it is of another kind, or its texts are not as many as its shape has
    /// elements; [`Error::Document`] where its file is broken; as for [`File::bytes`].
    pub fn strings(self) -> Result<Vec<String>> {
        let (file, ..) = self.plain(TensorKind::Strings)?;
        check_strings_len(file.stored()?.len(), self.reader.limits())?;
        let strings = parse_strings(file.path(), &file.bytes()?)?;
        self.check_count(strings.len() as u64)?;
        Ok(strings)
    }

    /// Returns handles on the tensors that a nested tensor holds, in its order; none for others.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn inner(self) -> impl Iterator<Item = Self> {
        let names = match &self.entry.content {
            Content::Nested { inner } => inner.as_slice(),
            Content::Plain { .. } => &[],
        };
        // Opening the index has proved that they are there.
        let index = self.reader.index().ok();
        names.iter().filter_map(move |name| {
            let entry = index?.entry(name)?;
            Some(Self { reader: self.reader, entry })
        })
    }

    /// Reads it whole, whatever its kind.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes) and [`strings`](Self::strings).
    pub fn value(self) -> Result<Value> {
        match self.kind() {
            TensorKind::Numeric => self.read().map(Value::Numeric),
            TensorKind::Strings => {
                let (_, _, shape) = self.plain(TensorKind::Strings)?;
                Ok(Value::Strings { shape: shape.clone(), strings: self.strings()? })
            }
            TensorKind::Nested => {
                self.check_total()?;
                self.inner().map(Self::value).collect::<Result<_>>().map(Value::Nested)
            }
        }
    }

    /// Refuses a nested tensor whose inner ones hold more in all than one tensor may: one that
    /// stands there many times takes its memory as often.
    fn check_total(self) -> Result<()> {
        let mut found = 0_u64;
        for inner in self.inner() {
            let file = inner.file()?;
            let len = file.map(|file| Ok::<_, Error>(file.stored()?.len())).transpose()?;
            found = found.saturating_add(len.unwrap_or_default()).saturating_add(VALUE);
        }
        let limits = self.reader.limits();
        Ok(limits.check(Limit::DecodedBytes, "nested tensor in bytes", found)?)
    }

    /// Returns where its bytes are in the archive; `None` where they are compressed, in a folder,
    /// only linked, or texts, which stand there as TOML.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), and where the header in front of them is broken.
    pub fn extent(self) -> Result<Option<Extent>> {
        match self.file()?.filter(|file| file.place() == Place::Here) {
            Some(file) if self.kind() == TensorKind::Numeric => Ok(file.stored()?.extent()?),
            _ => Ok(None),
        }
    }

    /// Reads it whole and compares digest, length and, for texts, their number; a nested tensor is
    /// as sound as those that it holds.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes) and [`strings`](Self::strings).
    pub fn verify(self) -> Result<Verified> {
        if let Some(file) = self.file()? {
            file.verify()?;
        }
        match self.kind() {
            TensorKind::Numeric => self.check_len().map(drop)?,
            TensorKind::Strings => self.strings().map(drop)?,
            TensorKind::Nested => {
                for inner in self.inner() {
                    inner.verify()?;
                }
            }
        }
        Ok(Verified::Digest)
    }

    /// Compares the length of the file of a numeric tensor, which is returned, with that of its
    /// shape; its content is not read.
    pub(crate) fn check_len(self) -> Result<File<'a>> {
        let (file, dtype, shape) = self.plain(TensorKind::Numeric)?;
        self.entry.check_len(file.stored()?.len(), shape.byte_len(dtype)?)?;
        Ok(file)
    }

    /// Compares the number of strings of a file with that of the shape.
    pub(crate) fn check_count(self, found: u64) -> Result<()> {
        let Content::Plain { shape, file, .. } = &self.entry.content else { return Ok(()) };
        let expected = shape.elements()?;
        if found == expected {
            return Ok(());
        }
        let (file, shape) = (file.clone(), shape.clone());
        Err(self.entry.fault(TensorFault::Strings { file, shape, found, expected }))
    }

    pub(crate) const fn entry(self) -> &'a IndexEntry {
        self.entry
    }

    fn plain(self, wanted: TensorKind) -> Result<(File<'a>, DType, &'a Shape)> {
        if let Content::Plain { dtype, shape, .. } = &self.entry.content
            && self.kind() == wanted
            && let Some(file) = self.file()?
        {
            return Ok((file, *dtype, shape));
        }
        let (found, expected) = (self.kind().name(), wanted.name());
        Err(self.entry.fault(TensorFault::Kind { found, expected }))
    }
}

impl Reader {
    /// Returns handles on the tensors, in the order of the index; none where there is no index.
    ///
    /// # Errors
    ///
    /// [`Error::Document`] and [`Error::Tensor`] where the index is broken; as for [`File::bytes`].
    pub fn tensors(&self) -> Result<impl ExactSizeIterator<Item = Tensor<'_>>> {
        Ok(self.index()?.entries().iter().map(|entry| Tensor::new(self, entry)))
    }

    /// Returns a handle on the tensor of a name; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`tensors`](Self::tensors).
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor<'_>>> {
        Ok(self.index()?.entry(name).map(|entry| Tensor::new(self, entry)))
    }

    pub(crate) fn index(&self) -> Result<&Index> {
        if let Some(index) = self.index_cell().get() {
            return Ok(index);
        }
        let index = match self.file(INDEX) {
            Some(file) => {
                let len = file.stored()?.len();
                self.limits().check(Limit::MetadataBytes, INDEX_BYTES, len)?;
                Index::parse(&file.bytes()?, self.limits(), self.manifest())?
            }
            None => Index::default(),
        };
        Ok(self.index_cell().get_or_init(|| index))
    }
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("name", &self.name())
            .field("content", &self.entry.content)
            .finish()
    }
}

impl TensorKind {
    /// Returns the words for messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Numeric => "a tensor of numbers",
            Self::Strings => "a tensor of strings",
            Self::Nested => "a nested tensor",
        }
    }
}

/// A tensor in memory, of any kind that the format stores.
#[derive(Clone, Debug)]
pub enum Value {
    /// Numbers.
    Numeric(TensorBuf),
    /// Texts, row-major.
    Strings {
        /// Dimensions, outermost first.
        shape: Shape,
        /// As many as the shape has elements.
        strings: Vec<String>,
    },
    /// Tensors that may differ in shape; none of them nested.
    Nested(Vec<Value>),
}

impl Value {
    /// Returns the type of its elements; `None` where it is nested, or of a type that Carton does
    /// not store.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Self::Numeric(tensor) => {
                Some(tensor.dtype()).filter(|dtype| dtype::name(*dtype).is_some())
            }
            Self::Strings { .. } => Some(DType::Str),
            Self::Nested(_) => None,
        }
    }

    /// Returns its dimensions, outermost first; `None` where it is nested.
    #[must_use]
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            Self::Numeric(tensor) => Some(tensor.shape()),
            Self::Strings { shape, .. } => Some(shape),
            Self::Nested(_) => None,
        }
    }
}

/// Reads the texts of a file of strings. Format text: "`tensor_data`".
pub(crate) fn parse_strings(path: &str, bytes: &[u8]) -> Result<Vec<String>> {
    let document = Document::parse(path.to_owned(), bytes)?;
    let data = document.root().required("data")?;
    data.array()?.map(|node| node.string().map(str::to_owned)).collect()
}

/// Refuses a file of strings that is larger than may be parsed.
pub(crate) fn check_strings_len(len: u64, limits: &Limits) -> Result<()> {
    Ok(limits.check(Limit::StringsBytes, "file of strings in bytes", len)?)
}

/// Counts the strings of a file and reports what readers tolerate; what validation needs of it.
pub(crate) fn count_strings(path: &str, bytes: &[u8], report: &mut Report) -> Result<u64> {
    let document = Document::parse(path.to_owned(), bytes)?;
    let mut root = document.root();
    let mut count = 0_u64;
    for node in root.required("data")?.array()? {
        node.string()?;
        count = count.saturating_add(1);
    }
    let mut unknown = Unknown::new(&document);
    root.finish(&mut unknown);
    report_toml_1_1(document.needs_toml_1_1(), path, report);
    report_unknown(&unknown.into_keys(), path, report);
    Ok(count)
}

/// Bytes that a tensor in a list takes besides its content.
const VALUE: u64 = size_of::<Value>() as u64;
