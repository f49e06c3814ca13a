//! Writing models, front to back.
//!
//! ```text
//! [tables][bytes of buffers, as lists][bytes of buffers outside][associated files]
//! ```
//!
//! The tables refer to the lists, which FlatBuffers may have anywhere behind what refers to them,
//! so tables are built first, and bytes of any size follow from wherever they are.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{
    Budget, Extent, Limit, Source,
    output::{Durability, Existing, NewFile, Output},
};

use crate::{
    Error, Reader, Result, WriteFault,
    model::{Buffer, Model, Operator},
    tables::{Placed, tables},
};

/// Where the bytes of buffers go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferPlacement {
    /// Each stays where it is, in the tables or outside. Where the tables could not reach all, they
    /// go outside as tools for Circle do.
    #[default]
    Keep,
    /// Into the tables, which reach 2 GiB.
    Inline,
    /// Outside of the tables: every buffer of more than one byte that is not metadata. onert 0.1.0
    /// crashes on constants outside.
    Outside,
}

/// How a model is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    placement: BufferPlacement,
    pub(crate) is_unchecked: bool,
    pub(crate) output: Output,
}

impl WriteOptions {
    /// Sets where the bytes of buffers go; by default they stay where they are.
    #[must_use]
    pub const fn placement(mut self, placement: BufferPlacement) -> Self {
        self.placement = placement;
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

    /// Lets an [`Editor`](crate::Editor) also write what [`Reader::lint`] calls an error, and what the
    /// file has not: for callers that look at the result themselves.
    #[must_use]
    pub const fn unchecked(mut self) -> Self {
        self.is_unchecked = true;
        self
    }

    /// Starts a file that will stand at `path` once it is finished; a failure before leaves what
    /// was there.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where the folder does not let a file be created.
    pub fn create(self, path: impl AsRef<Path>, model: &Model) -> Result<Writer<'_, NewFile>> {
        let sink = self.output.create(path)?;
        let commit = |file: &mut NewFile, options: Self| file.commit(options.output.existing);
        Ok(Writer { sink, model, origin: None, options: self, commit })
    }

    /// Starts a file in any sink. Nothing is sought.
    pub fn write_to<W: Write>(self, sink: W, model: &Model) -> Writer<'_, W> {
        Writer { sink, model, origin: None, options: self, commit: |_, _| Ok(()) }
    }

    /// Tells whether buffers may go elsewhere than they are.
    pub(crate) fn moves_buffers(self) -> bool {
        self.placement != BufferPlacement::Keep
    }
}

/// Writes a Circle or TFLite model as a file.
///
/// The same model makes the same bytes. Bytes of buffers start at multiples of 16 of the file, and
/// are copied from where they are: the memory it takes is that of the tables. Bytes outside of the
/// tables that several buffers share stay shared outside, and are copied for each inside. What reads
/// the file finds the model as it is here; whether it makes sense is for [`Reader::validate`] to
/// tell.
///
/// # Examples
///
/// ```
/// use circle_format::{
///     Reader, Writer,
///     model::{
///         BuiltinOperator, ModelBuilder, Operator, Schema, Tensor, TensorType,
///         options::AddOptions,
///     },
/// };
///
/// let mut model = ModelBuilder::new(Schema::Circle);
/// let mut graph = model.subgraph("main");
/// let x = graph.input(Tensor::new("x", TensorType::Float32, [1, 2]));
/// let one = graph.constant(Tensor::new("one", TensorType::Float32, [1]), vec![0, 0, 128, 63]);
/// let sum = graph.output(Tensor::new("sum", TensorType::Float32, [1, 2]));
/// let add = Operator::new([x, one], [sum]).options(AddOptions::default());
/// graph.operator(BuiltinOperator::ADD, add);
/// graph.finish();
///
/// let bytes = Writer::new(Vec::new(), &model.finish()).finish()?;
/// let reader = Reader::from_bytes(bytes)?;
/// assert_eq!(reader.tensor("one").unwrap().bytes()?, [0, 0, 128, 63][..]);
/// # Ok::<(), circle_format::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is written before it is finished"]
pub struct Writer<'a, W> {
    sink: W,
    model: &'a Model,
    origin: Option<&'a Reader>,
    options: WriteOptions,
    /// Makes a finished file take its place.
    commit: fn(&mut W, WriteOptions) -> tensor_core::Result<()>,
}

impl<'a> Writer<'a, NewFile> {
    /// Starts a file that will stand at `path` once it is finished, with the default options.
    ///
    /// # Errors
    ///
    /// As for [`WriteOptions::create`].
    pub fn create(path: impl AsRef<Path>, model: &'a Model) -> Result<Self> {
        Self::options().create(path, model)
    }

    /// Returns the options of writing, to be set and written with.
    #[must_use]
    pub fn options() -> WriteOptions {
        WriteOptions::default()
    }
}

impl<'a, W: Write> Writer<'a, W> {
    /// Starts a file in any sink with the default options. Nothing is sought.
    pub fn new(sink: W, model: &'a Model) -> Self {
        WriteOptions::default().write_to(sink, model)
    }

    /// Says which file the model was made from: bytes outside of its tables, and files behind them,
    /// are copied from there. Without one a model has to have the bytes of all its buffers.
    pub const fn origin(mut self, origin: &'a Reader) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Writes everything and returns the sink; a file then takes its place.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] before anything is written; [`Error::Output`] where the sink fails;
    /// [`Error::Core`] where bytes cannot be read, or buffers that share them would come to more
    /// than [`Limits::expansion`](tensor_core::Limits::expansion) times the file.
    pub fn finish(self) -> Result<W> {
        let plan = Plan { model: self.model, origin: self.origin, options: self.options };
        let mut sink = plan.write(self.sink)?;
        (self.commit)(&mut sink, self.options)?;
        Ok(sink)
    }
}

impl Model {
    /// Returns the bytes of a file of the model, which has the bytes of all its buffers.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Writer::new(Vec::new(), self).finish()
    }
}

/// What is written, and from where.
struct Plan<'a> {
    model: &'a Model,
    origin: Option<&'a Reader>,
    options: WriteOptions,
}

impl<'a> Plan<'a> {
    fn write<W: Write>(self, sink: W) -> Result<W> {
        let Layout { tables, parts, end, .. } = self.layout()?;
        let mut out = Out { sink, position: 0 };
        out.put(&tables)?;
        drop(tables);
        for part in parts {
            out.pad(part.offset)?;
            if let Some(count) = part.count {
                out.put(&count.to_le_bytes())?;
            }
            match part.content {
                Content::Given(bytes) => out.put(&bytes)?,
                Content::At(source, extent) => out.copy(source, extent)?,
            }
        }
        out.pad(end)?;
        let mut out = match self.origin {
            Some(reader) => tail(reader, out)?,
            None => out,
        };
        out.sink.flush().map_err(|source| out.failed(source))?;
        Ok(out.sink)
    }

    /// Returns the tables, and what comes behind them.
    fn layout(&self) -> Result<Layout<'a>> {
        if let Some(offset) = self.origin.and_then(Reader::unknown_field) {
            let fault = WriteFault::UnknownFields { offset };
            return Err(Error::Unwritable { path: "model".to_owned(), fault });
        }
        let buffers = self.buffers()?;
        let options = self.large_options()?;
        let placed = self.placed(&buffers);
        let (tables, places) = tables(self.model, &placed)?;
        let mut layout = Layout::new(tables);
        let buffers = buffers.into_iter().zip(placed).zip(places.buffers);
        let buffers: Vec<_> = buffers
            .filter_map(|((content, placed), place)| Some((content?, placed, place?)))
            .collect();
        for (content, _, place) in buffers.iter().filter(|(_, placed, _)| *placed == Placed::Inline)
        {
            layout.inline(content.clone(), *place)?;
        }
        for (content, placed, place) in buffers {
            if placed != Placed::Inline {
                layout.outside(content, place);
            }
        }
        for (content, place) in options.into_iter().zip(places.options.into_iter().flatten()) {
            if let (Some(content), Some(place)) = (content, place) {
                layout.outside(content, place);
            }
        }
        self.check_copied(&layout)?;
        Ok(layout)
    }

    /// Makes sure that what is copied from the file is not out of proportion to it: buffers may
    /// share bytes, each in part.
    fn check_copied(&self, layout: &Layout<'_>) -> Result<()> {
        let Some(reader) = self.origin else { return Ok(()) };
        let copied = layout.parts.iter().map(|part| part.content.copied());
        let copied = copied.fold(0, u64::saturating_add);
        let allowed = reader.source().len().saturating_mul(reader.limits().expansion);
        let budget = Budget::new("bytes of buffers to copy", allowed, Limit::Expansion);
        Ok(budget.take(copied)?)
    }

    /// Returns the bytes of each buffer that has any.
    fn buffers(&self) -> Result<Vec<Option<Content<'a>>>> {
        let content = |(at, buffer): (usize, &'a Buffer)| {
            let found = match (buffer.is_in_file(), buffer.data.is_empty()) {
                (true, true) => self.outside(buffer.offset, buffer.size),
                (true, false) => Err(WriteFault::TwoPlaces),
                (false, true) => Ok(None),
                (false, false) => Ok(Some(Content::Given(buffer.data.clone()))),
            };
            found.map_err(|fault| Error::Unwritable { path: format!("buffer {at}"), fault })
        };
        self.model.buffers.iter().enumerate().map(content).collect()
    }

    /// Returns the large custom options of each operator of all graphs.
    fn large_options(&self) -> Result<Vec<Option<Content<'a>>>> {
        let graphs = self.model.subgraphs.iter().enumerate();
        let operators = graphs.flat_map(|(graph, subgraph)| {
            let operators = subgraph.operators.iter().enumerate();
            operators.map(move |(at, operator)| (graph, at, operator))
        });
        let content = |(graph, at, operator): (usize, usize, &Operator)| {
            let offset = operator.large_custom_options_offset;
            if offset <= 1 {
                return Ok(None);
            }
            let found = self.outside(offset, operator.large_custom_options_size);
            let path = || format!("subgraph {graph}/operator {at}");
            found.map_err(|fault| Error::Unwritable { path: path(), fault })
        };
        operators.map(content).collect()
    }

    /// Returns bytes that are outside of the tables of the file.
    fn outside(&self, offset: u64, len: u64) -> Result<Option<Content<'a>>, WriteFault> {
        let source = self.origin.ok_or(WriteFault::NoFile { offset })?.source();
        let file_len = source.len();
        let extent = Extent::new(offset, len).ok().filter(|extent| extent.end() <= file_len);
        let extent = extent.ok_or(WriteFault::OutOfBounds { offset, len, file_len })?;
        Ok(Some(Content::At(source, extent)))
    }

    /// Returns where each buffer goes.
    fn placed(&self, buffers: &[Option<Content<'_>>]) -> Vec<Placed> {
        let lens: Vec<u64> =
            buffers.iter().map(|content| content.as_ref().map_or(0, Content::len)).collect();
        let are_metadata = self.metadata_buffers();
        let in_tables = self.model.buffers.iter().zip(&lens);
        let in_tables = in_tables.filter(|(buffer, _)| !buffer.is_external());
        let total = in_tables.fold(0_u64, |total, (_, len)| total.saturating_add(*len));
        let placement = match self.options.placement {
            BufferPlacement::Keep if total > MOST_INLINE => BufferPlacement::Outside,
            placement => placement,
        };
        let place = |(at, size): (usize, u64)| {
            let is_external = self.model.buffers.get(at).is_some_and(Buffer::is_external);
            let is_metadata = are_metadata.get(at).copied().unwrap_or_default();
            let goes_out = match placement {
                BufferPlacement::Keep => is_external,
                BufferPlacement::Inline => false,
                BufferPlacement::Outside => at > 0 && size > 1 && !is_metadata,
            };
            match size {
                0 => Placed::Nowhere,
                _ if goes_out => Placed::Outside { size },
                _ => Placed::Inline,
            }
        };
        lens.into_iter().enumerate().map(place).collect()
    }

    /// Tells for each buffer whether it is metadata, which onert looks for in the tables alone.
    fn metadata_buffers(&self) -> Vec<bool> {
        let mut are_metadata = vec![false; self.model.buffers.len()];
        for metadata in &self.model.metadata {
            let index = usize::try_from(metadata.buffer).ok();
            if let Some(is_metadata) = index.and_then(|index| are_metadata.get_mut(index)) {
                *is_metadata = true;
            }
        }
        are_metadata
    }
}

/// Bytes on their way.
#[derive(Clone, Debug)]
enum Content<'a> {
    Given(Bytes),
    At(&'a Source, Extent),
}

impl Content<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Given(bytes) => bytes.len() as u64,
            Self::At(_, extent) => extent.len(),
        }
    }

    /// Returns where they are, in memory or in the file, and how many: what is equal in that is the
    /// same.
    fn place(&self) -> (bool, u64, u64) {
        match self {
            Self::Given(bytes) => (true, bytes.as_ptr().addr() as u64, bytes.len() as u64),
            Self::At(_, extent) => (false, extent.offset(), extent.len()),
        }
    }

    /// Returns how many bytes are copied from a file.
    fn copied(&self) -> u64 {
        match self {
            Self::Given(_) => 0,
            Self::At(_, extent) => extent.len(),
        }
    }
}

/// What comes behind the tables.
#[derive(Debug)]
struct Part<'a> {
    /// Where it starts, in bytes from the start of the file.
    offset: u64,
    /// The number of its bytes, where that stands before them.
    count: Option<u32>,
    content: Content<'a>,
}

/// A file in the making.
struct Layout<'a> {
    tables: Vec<u8>,
    parts: Vec<Part<'a>>,
    end: u64,
    /// Where bytes of the old file are outside of the tables, in bytes from the start of the new
    /// one: what several buffers share is copied once.
    outside: BTreeMap<(bool, u64, u64), u64>,
}

impl<'a> Layout<'a> {
    fn new(tables: Vec<u8>) -> Self {
        Self { end: tables.len() as u64, tables, parts: Vec::new(), outside: BTreeMap::new() }
    }

    /// Adds bytes as a list, to which the reference at `place` leads.
    fn inline(&mut self, content: Content<'a>, place: usize) -> Result<()> {
        let len = content.len();
        let start = self.end.saturating_add(COUNT).next_multiple_of(ALIGNMENT);
        let offset = start.saturating_sub(COUNT);
        let end = start.saturating_add(len);
        let distance = u32::try_from(offset.saturating_sub(place as u64)).ok();
        let (Some(distance), Ok(count), true) = (distance, u32::try_from(len), end <= MAX_INLINE)
        else {
            let fault = WriteFault::TooLarge { found: end, limit: MAX_INLINE };
            return Err(Error::Unwritable { path: "model".to_owned(), fault });
        };
        self.fill(place, &distance.to_le_bytes());
        self.parts.push(Part { offset, count: Some(count), content });
        // As all tables do.
        self.end = end.next_multiple_of(COUNT);
        Ok(())
    }

    /// Adds bytes outside of the tables, unless they are there, whose offset is at `place`.
    fn outside(&mut self, content: Content<'a>, place: usize) {
        let key = content.place();
        let known = self.outside.get(&key).copied();
        let offset = known.unwrap_or_else(|| self.add_outside(content));
        self.outside.insert(key, offset);
        self.fill(place, &offset.to_le_bytes());
    }

    fn add_outside(&mut self, content: Content<'a>) -> u64 {
        // No sum of lengths of bytes that there are comes near 64 bits.
        let offset = self.end.next_multiple_of(ALIGNMENT);
        self.end = offset.saturating_add(content.len());
        self.parts.push(Part { offset, count: None, content });
        offset
    }

    fn fill(&mut self, place: usize, bytes: &[u8]) {
        let field = self.tables.get_mut(place..).and_then(|rest| rest.get_mut(..bytes.len()));
        if let Some(field) = field {
            field.copy_from_slice(bytes);
        }
    }
}

/// A sink, and how far it is.
struct Out<W> {
    sink: W,
    position: u64,
}

impl<W: Write> Out<W> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes).map_err(|source| self.failed(source))?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Writes zeros up to an offset, which is never far.
    fn pad(&mut self, offset: u64) -> Result<()> {
        let count = usize::try_from(offset.saturating_sub(self.position)).ok();
        let zeros = count.and_then(|count| ZEROS.get(..count)).unwrap_or_default();
        self.put(zeros)
    }

    fn copy(&mut self, source: &Source, extent: Extent) -> Result<()> {
        if let Some(bytes) = source.as_slice().and_then(|all| extent.slice(all)) {
            return self.put(bytes);
        }
        let mut stream = source.stream(extent, WHAT)?;
        loop {
            let ready = match stream.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                ready => ready,
            };
            let offset = extent.offset();
            let ready =
                ready.map_err(|source| tensor_core::Error::Read { what: WHAT, offset, source })?;
            let count = ready.len();
            if count == 0 {
                return Ok(());
            }
            self.put(ready)?;
            stream.consume(count);
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Output { offset: self.position, source }
    }
}

#[cfg(feature = "archive")]
impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.sink.write(bytes)?;
        self.position = self.position.saturating_add(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Copies what stands behind all that the model of a file refers to: files that tools for TFLite
/// append as an archive, whose offsets count from the start of the model.
fn tail<W: Write>(reader: &Reader, mut out: Out<W>) -> Result<Out<W>> {
    let source = reader.source();
    let rest = Extent::between(reader.end(), source.len());
    if !reader.has_files()? {
        let is_padding =
            rest.len() <= ALIGNMENT && source.read(rest, WHAT)?.iter().all(|b| *b == 0);
        if !is_padding {
            out.copy(source, rest)?;
        }
        return Ok(out);
    }
    append_files(reader, out)
}

/// Refuses to lose what stands behind the model.
#[cfg(not(feature = "archive"))]
fn append_files<W: Write>(_: &Reader, _: Out<W>) -> Result<Out<W>> {
    let fault = WriteFault::AssociatedFiles;
    Err(Error::Unwritable { path: "model".to_owned(), fault })
}

#[cfg(feature = "archive")]
fn append_files<W: Write>(reader: &Reader, out: Out<W>) -> Result<Out<W>> {
    use model_archive::{Archive, ArchiveWriter, Kind};
    use tensor_core::Profile;

    let source = reader.source();
    let archive = Archive::options().profile(Profile::Lenient).from_source(source.clone())?;
    let position = out.position;
    let mut writer = ArchiveWriter::behind(out, position);
    for entry in archive.entries() {
        let info = entry.info();
        let alignment = if info.kind == Kind::File { entry.alignment()? } else { 1 };
        writer.copy_raw(entry.name(), info.into(), alignment, entry.stored_reader()?)?;
    }
    Ok(writer.finish()?)
}

/// What bytes of buffers start at a multiple of. Schemas: `Buffer.data`.
const ALIGNMENT: u64 = 16;

/// Bytes of the number that stands before a list.
const COUNT: u64 = 4;

/// What offsets in tables reach.
const MAX_INLINE: u64 = i32::MAX as u64;

/// The bytes of buffers that tools for Circle put into tables at most, all together.
const MOST_INLINE: u64 = MAX_INLINE - (16 << 20);

/// More than there ever is between two parts.
const ZEROS: [u8; 32] = [0; 32];

const WHAT: &str = "bytes of a model";
