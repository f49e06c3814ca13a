//! Writing files, front to back.

pub(crate) mod layout;
pub(crate) mod rewrite;

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
};

use tensor_core::{
    Error as Core, Extent, Report, Source,
    output::{Durability, Existing, NewFile, Output},
};

use crate::{
    Error, Fault, Header, Model, Reader, Result, Tensor,
    edit::check,
    write::layout::{Elements, Layout, Part, Pending, Rule},
};

/// How a file of version 2 is written.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    inline_elements: u64,
    alignment: u32,
    is_unchecked: bool,
    output: Output,
}

impl WriteOptions {
    /// Sets how many elements a constant may have to stay in the model data. The default is 16, as
    /// in RTen's converter; `u64::MAX` keeps all there whose elements the model has.
    #[must_use]
    pub const fn inline_elements(mut self, elements: u64) -> Self {
        self.inline_elements = elements;
        self
    }

    /// Sets what the tensor data and each tensor in it start at a multiple of, in bytes: a power of
    /// two up to 65,536. The default is 64, as in RTen's converter.
    #[must_use]
    pub const fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment;
        self
    }

    /// Sets whether a finished file is forced to the disk; it is by default.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.output.durability = durability;
        self
    }

    /// Sets what happens to a file that is there already; it is replaced by default.
    #[must_use]
    pub const fn existing(mut self, existing: Existing) -> Self {
        self.output.existing = existing;
        self
    }

    /// Sets how a finished file takes its place.
    #[must_use]
    pub const fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Writes also what [`Reader::lint`] calls an error, and what the model is made of has not: for
    /// callers that look at the result themselves.
    #[must_use]
    pub const fn unchecked(mut self) -> Self {
        self.is_unchecked = true;
        self
    }

    /// Starts a file in any sink: writes the header and the model data. Nothing is sought.
    ///
    /// # Errors
    ///
    /// As for [`Writer::new`].
    pub fn write_to<W: Write>(self, sink: W, model: &Model) -> Result<Writer<W>> {
        Writer::start(sink, model, self, |_, _| Ok(()))
    }

    /// Starts a file that will stand at `path` once it is finished; a failure before leaves what
    /// was there.
    ///
    /// # Errors
    ///
    /// As for [`Writer::new`], and where the folder does not let a file be created.
    pub fn create(self, path: impl AsRef<Path>, model: &Model) -> Result<Writer<NewFile>> {
        let file = self.output.create(path)?;
        Writer::start(file, model, self, |file, options| file.commit(options.output.existing))
    }

    pub(crate) const fn output_of(&self) -> Output {
        self.output
    }

    pub(crate) const fn is_unchecked(&self) -> bool {
        self.is_unchecked
    }

    pub(crate) const fn most_inline_elements(&self) -> u64 {
        self.inline_elements
    }

    fn rule(&self) -> Result<Rule> {
        let found = self.alignment;
        if !found.is_power_of_two() || found > MAX_ALIGNMENT {
            return Err(Error::Alignment { found, limit: MAX_ALIGNMENT });
        }
        Ok(Rule { inline_elements: self.inline_elements, alignment: found })
    }
}

impl Default for WriteOptions {
    fn default() -> Self {
        let output = Output::default();
        Self { inline_elements: 16, alignment: 64, is_unchecked: false, output }
    }
}

/// More only makes files longer: no system maps files by more.
pub(crate) const MAX_ALIGNMENT: u32 = 1 << 16;

/// Writes a file of version 2 front to back: header, model data, tensor data.
///
/// The model comes first and says what follows: large constants that the model has the elements of
/// are written by themselves, the others are asked for one after another, in the order of the file.
/// Those are the constants without inline data: with a [data offset](crate::Constant::data_offset),
/// as in a model that was read, or [described](crate::Constant::described). So the memory it takes
/// is that of the model data, however large the weights are.
///
/// The same model and elements make the same bytes. What reads the file finds the constants as the
/// model has them, unknown parts included. What [`Model::lint`] calls an error is refused, unless it
/// is [unchecked](WriteOptions::unchecked).
///
/// # Examples
///
/// ```
/// use rten_format::{Constant, ConstantDataType, GraphBuilder, Model, Reader, Writer};
///
/// let mut graph = GraphBuilder::new();
/// let weights = graph.constant("w", Constant::described([100, 10], ConstantDataType::Float32))?;
/// graph.output(weights)?;
/// let model = Model { graph: graph.finish(), metadata: None };
///
/// let mut writer = Writer::new(Vec::new(), &model)?;
/// while let Some(pending) = writer.pending() {
///     let bytes = vec![0; pending.info.byte_len()? as usize];
///     writer.add(&bytes)?;
/// }
/// let reader = Reader::from_bytes(writer.finish()?)?;
/// assert_eq!(reader.tensor("w").unwrap().bytes()?.len(), 4000);
/// # Ok::<(), rten_format::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a file that is not finished is none"]
pub struct Writer<W: Write> {
    sink: W,
    /// Bytes written.
    position: u64,
    tensor_data_offset: u64,
    /// Parts of the tensor data that are not written; the first one is pending, if there is any.
    parts: VecDeque<Part>,
    /// Whether something was written in part.
    failed: bool,
    options: WriteOptions,
    commit: fn(&mut W, &WriteOptions) -> tensor_core::Result<()>,
}

impl Writer<NewFile> {
    /// Starts a file that will stand at `path` once it is finished.
    ///
    /// # Errors
    ///
    /// As for [`WriteOptions::create`].
    pub fn create(path: impl AsRef<Path>, model: &Model) -> Result<Self> {
        WriteOptions::default().create(path, model)
    }

    /// Returns the options of writing, to be set and started with.
    #[must_use]
    pub fn options() -> WriteOptions {
        WriteOptions::default()
    }
}

impl<W: Write> Writer<W> {
    /// Starts a file in any sink: writes the header and the model data.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`]; [`Error::Constant`] where a constant has another number of bytes than its
    /// shape needs, or lacks an element type; as for [`Model::to_bytes`]; [`Error::Write`] where the
    /// sink fails.
    pub fn new(sink: W, model: &Model) -> Result<Self> {
        WriteOptions::default().write_to(sink, model)
    }

    fn start(
        sink: W,
        model: &Model,
        options: WriteOptions,
        commit: fn(&mut W, &WriteOptions) -> tensor_core::Result<()>,
    ) -> Result<Self> {
        let rule = options.rule()?;
        if !options.is_unchecked {
            check::sound(&model.lint(), &Report::default())?;
        }
        let Layout { model, parts } = Layout::new(model, rule)?;
        let model_data = model.to_bytes()?;
        drop(model);
        let extent = Extent::new(Header::LEN, model_data.len() as u64)?;
        // Model data is shorter than 2 GiB.
        let tensor_data_offset = extent.end().next_multiple_of(u64::from(rule.alignment));
        let header = Header { model_data: extent, tensor_data_offset };
        let parts = parts.into();
        let (position, failed) = (0, false);
        let mut writer =
            Self { sink, position, tensor_data_offset, parts, failed, options, commit };
        writer.write(&header.to_bytes())?;
        writer.write(&model_data)?;
        writer.pad(tensor_data_offset)?;
        writer.write_given()?;
        Ok(writer)
    }

    /// Returns the constant whose elements come next; `None` where all are there.
    #[must_use]
    pub fn pending(&self) -> Option<&Pending> {
        self.parts.front().and_then(Part::pending)
    }

    /// Returns all constants whose elements are still to come, in their order.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn all_pending(&self) -> impl Iterator<Item = &Pending> {
        self.parts.iter().filter_map(Part::pending)
    }

    /// Writes the elements of the constant that comes next: little-endian, in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::NonePending`]; [`Error::Constant`] where there are too many or too few, of which
    /// nothing is written; [`Error::Write`].
    pub fn add(&mut self, elements: &[u8]) -> Result<()> {
        let (_, len) = self.next()?;
        let found = elements.len() as u64;
        if found != len {
            return Err(self.wrong_length(len, found));
        }
        self.begin_part()?;
        self.write(elements)?;
        self.end_part()
    }

    /// Writes the elements of the constant that comes next from a stream, in memory that does not
    /// grow with them. The stream has to end with them.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add), but where there are too few or too many, or they cannot be read,
    /// the file cannot be finished any more.
    pub fn stream(&mut self, elements: impl Read) -> Result<()> {
        self.stream_buffered(BufReader::with_capacity(BUFFER, elements))
    }

    /// Copies the elements of the constant that comes next from another file.
    ///
    /// # Errors
    ///
    /// [`Error::Constant`] where it has another type or shape, and where it cannot be read; else as
    /// for [`stream`](Self::stream).
    pub fn copy(&mut self, tensor: Tensor<'_>) -> Result<()> {
        let (pending, _) = self.next()?;
        let found = tensor.info()?;
        if found != pending.info {
            let expected = pending.info.clone();
            return Err(self.fault(Fault::GivenTensor { found, expected }));
        }
        let extent = tensor.place()?;
        self.copy_extent(tensor.reader().source(), extent)
    }

    /// Copies the elements of the constant that comes next from the file that the model was read
    /// from, where its data offset says.
    ///
    /// # Errors
    ///
    /// [`Error::Constant`] where it has no data offset, or there are no such bytes; else as for
    /// [`stream`](Self::stream).
    pub fn copy_from(&mut self, reader: &Reader) -> Result<()> {
        let (pending, len) = self.next()?;
        let data_offset = pending.data_offset.ok_or(Fault::NoData);
        let extent = data_offset.and_then(|offset| {
            let header = reader.header().ok_or(Fault::NoTensorData { offset })?;
            header.tensor(offset, len, reader.source().len())
        });
        let extent = extent.map_err(|fault| self.fault(fault))?;
        self.copy_extent(reader.source(), extent)
    }

    /// Finishes the file; one that has a path is put in its place.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`] where elements are missing; [`Error::Failed`]; [`Error::Write`] and [`Error::Core`] where
    /// the file cannot be written. What was at its place is as it was before.
    pub fn finish(mut self) -> Result<W> {
        if self.failed {
            return Err(Error::Failed);
        }
        if let Some(first) = self.pending() {
            let (path, more) = (first.path.clone(), self.all_pending().skip(1).count() as u64);
            return Err(Error::Unfinished { path, more });
        }
        let flushed = self.sink.flush();
        flushed.map_err(|source| Error::Write { offset: self.position, source })?;
        (self.commit)(&mut self.sink, &self.options)?;
        Ok(self.sink)
    }

    fn next(&self) -> Result<(&Pending, u64)> {
        if self.failed {
            return Err(Error::Failed);
        }
        let part = self.parts.front().ok_or(Error::NonePending)?;
        Ok((part.pending().ok_or(Error::NonePending)?, part.len))
    }

    fn copy_extent(&mut self, source: &Source, extent: Extent) -> Result<()> {
        self.stream_buffered(source.stream(extent, "tensor data")?)
    }

    fn stream_buffered(&mut self, mut elements: impl BufRead) -> Result<()> {
        let (_, len) = self.next()?;
        self.begin_part()?;
        self.failed = true;
        let mut rest = len;
        loop {
            let ready = match elements.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                ready => ready.map_err(|source| self.unread(len.saturating_sub(rest), source))?,
            };
            let count = ready.len();
            if count == 0 && rest == 0 {
                self.failed = false;
                return self.end_part();
            }
            let found = len.saturating_sub(rest).saturating_add(count as u64);
            if count == 0 || found > len {
                return Err(self.wrong_length(len, found));
            }
            self.write(ready)?;
            elements.consume(count);
            rest = len.saturating_sub(found);
        }
    }

    fn unread(&self, offset: u64, source: io::Error) -> Error {
        self.fault(Core::Read { what: "elements", offset, source })
    }

    fn wrong_length(&self, expected: u64, found: u64) -> Error {
        let shape = self.pending().map(|pending| pending.info.shape.clone()).unwrap_or_default();
        self.fault(Fault::GivenLength { shape, expected, found })
    }

    /// Returns a fault of the constant that comes next.
    fn fault(&self, fault: impl Into<Fault>) -> Error {
        let path = self.pending().map(|pending| pending.path.clone()).unwrap_or_default();
        Error::Constant { path: path.into(), fault: fault.into() }
    }

    fn begin_part(&mut self) -> Result<()> {
        let offset = self.parts.front().map_or(0, |part| part.offset);
        // The layout has proved that the tensor data ends within 64 bits of its start.
        self.pad(self.tensor_data_offset.saturating_add(offset))
    }

    fn end_part(&mut self) -> Result<()> {
        self.parts.pop_front();
        self.write_given()
    }

    /// Writes what the model has the elements of, up to the next constant that is pending.
    fn write_given(&mut self) -> Result<()> {
        while let Some(Part { elements: Elements::Given(bytes), .. }) = self.parts.front() {
            let bytes = bytes.clone();
            self.begin_part()?;
            self.write(&bytes)?;
            self.parts.pop_front();
        }
        Ok(())
    }

    /// Writes zeros up to an offset from the start of the file.
    fn pad(&mut self, offset: u64) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut rest = offset.saturating_sub(self.position);
        while rest > 0 {
            let count = rest.min(ZEROS.len() as u64);
            let zeros = usize::try_from(count).ok().and_then(|count| ZEROS.get(..count));
            self.write(zeros.unwrap_or_default())?;
            rest = rest.saturating_sub(count);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.sink.write_all(bytes);
        written.map_err(|source| {
            self.failed = true;
            Error::Write { offset: self.position, source }
        })?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

impl Part {
    const fn pending(&self) -> Option<&Pending> {
        match &self.elements {
            Elements::Pending(pending) => Some(pending),
            Elements::Given(_) => None,
        }
    }
}

/// Bytes read at once from a stream.
const BUFFER: usize = 256 << 10;
