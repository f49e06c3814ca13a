//! Models on their way from one file to another.

use std::{
    borrow::Cow,
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{Extent, SourceReader, TensorInfo, output::NewFile};

use crate::{
    Constant, ConstantData, ConstantDataType, Error, Fault, Header, Model, NodeKind, Pending,
    Reader, Result, Version, WriteOptions, Writer,
    edit::check::{self, Unknown},
    topology,
};

/// Writes the model of a file, as it is or changed, to another file of either version.
///
/// Constants with a [data offset](Constant::data_offset) have their elements in the file that is
/// read; those with inline data bring their own, so that replacing the data of a constant and taking
/// its data offset away replaces its weights. Constants that share bytes share them again, and parts
/// that this crate does not know survive.
///
/// # Examples
///
/// ```no_run
/// use rten_format::{Reader, Rewrite};
///
/// let reader = Reader::open("old.rten")?;
/// Rewrite::new(&reader).to_v2("new.rten")?;
/// # Ok::<(), rten_format::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is written before a version is asked for"]
pub struct Rewrite<'a> {
    reader: &'a Reader,
    model: Cow<'a, Model>,
    options: WriteOptions,
}

impl<'a> Rewrite<'a> {
    /// Takes the model of a file as it is.
    pub fn new(reader: &'a Reader) -> Self {
        let model = Cow::Borrowed(reader.model());
        Self { reader, model, options: WriteOptions::default() }
    }

    /// Takes a model that was made from that of the file.
    pub fn model(mut self, model: Model) -> Self {
        self.model = Cow::Owned(model);
        self
    }

    /// Sets how files are written; in version 1 only what happens to files counts.
    pub fn options(mut self, options: WriteOptions) -> Self {
        self.options = options;
        self
    }

    /// Writes a file of version 2 as RTen's converter lays it out.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where a changed model has an error that the file has not;
    /// [`Error::Constant`] where a constant has no elements, or not as many as its shape needs; as
    /// for [`Model::to_bytes`]; [`Error::Write`] and [`Error::Core`] where the file cannot be
    /// written. What was at its place is as it was before.
    pub fn to_v2(self, path: impl AsRef<Path>) -> Result<()> {
        let Self { reader, options, .. } = self;
        let model = self.into_laid_out()?;
        copy(options.unchecked().create(path, &model)?, reader)?;
        Ok(())
    }

    /// Like [`to_v2`](Self::to_v2), but to any sink, which is returned.
    ///
    /// # Errors
    ///
    /// As for [`to_v2`](Self::to_v2).
    pub fn write_v2<W: Write>(self, sink: W) -> Result<W> {
        let Self { reader, options, .. } = self;
        let model = self.into_laid_out()?;
        copy(options.unchecked().write_to(sink, &model)?, reader)
    }

    /// Writes a file of version 1, which has all elements in the model data.
    ///
    /// A model that is not changed and has them there already keeps its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where they do not fit, before any of them is read; else as for
    /// [`to_v2`](Self::to_v2).
    pub fn to_v1(self, path: impl AsRef<Path>) -> Result<()> {
        let options = self.options;
        let bytes = self.to_v1_bytes()?;
        replace(path, options, |file| file.write_all(&bytes))
    }

    /// Like [`to_v1`](Self::to_v1), but to any sink, which is returned.
    ///
    /// # Errors
    ///
    /// As for [`to_v1`](Self::to_v1).
    pub fn write_v1<W: Write>(self, mut sink: W) -> Result<W> {
        let bytes = self.to_v1_bytes()?;
        let written = sink.write_all(&bytes).and_then(|()| sink.flush());
        written.map_err(|source| Error::Write { offset: 0, source })?;
        Ok(sink)
    }

    /// Returns a file of version 1.
    ///
    /// # Errors
    ///
    /// As for [`to_v1`](Self::to_v1).
    pub fn to_v1_bytes(self) -> Result<Vec<u8>> {
        check::elements(self.reader, &self.model, Unknown::Refused)?;
        if let Cow::Borrowed(model) = self.model
            && is_inline(model)
        {
            let reader = self.reader;
            return Ok(reader.source().read(reader.model_data(), "model data")?.into());
        }
        let is_checked = self.is_checked();
        let Self { reader, model, .. } = self;
        reader.require_known()?;
        let model = inline(reader, model.into_owned(), u64::MAX)?;
        Ok(version_1(reader, &model, is_checked)?.into())
    }

    /// Tells whether errors are looked for, as an unchanged model brings none.
    const fn is_checked(&self) -> bool {
        matches!(self.model, Cow::Owned(_)) && !self.options.is_unchecked()
    }

    /// Writes a file of version 2 around the model data of one of version 1, which keeps its bytes:
    /// constants stay inline.
    ///
    /// # Errors
    ///
    /// [`Error::Wrapped`] where the file has a header already; [`Error::Core`] where it cannot be
    /// read or the other one written.
    pub fn wrap(self, path: impl AsRef<Path>) -> Result<()> {
        let (header, padding) = self.wrapping()?;
        replace(path, self.options, |file| {
            file.write_all(&header)?;
            io::copy(&mut self.stream()?, file)?;
            file.write_all(&padding)
        })
    }

    /// Like [`wrap`](Self::wrap), but to any sink, which is returned.
    ///
    /// # Errors
    ///
    /// As for [`wrap`](Self::wrap).
    pub fn write_wrapped<W: Write>(self, mut sink: W) -> Result<W> {
        let (header, padding) = self.wrapping()?;
        let written = sink.write_all(&header).and_then(|()| {
            io::copy(&mut self.stream()?, &mut sink)?;
            sink.write_all(&padding)?;
            sink.flush()
        });
        written.map_err(|source| Error::Write { offset: 0, source })?;
        Ok(sink)
    }

    fn stream(&self) -> io::Result<SourceReader> {
        let stream = self.reader.source().stream(self.reader.model_data(), "model data");
        stream.map_err(io::Error::other)
    }

    /// Returns what stands before and behind the model data.
    fn wrapping(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        if self.reader.version() != Version::V1 {
            return Err(Error::Wrapped);
        }
        if let Cow::Owned(_) = &self.model {
            return Err(Error::Changed);
        }
        // A data offset means nothing in version 1; it must not come to mean something.
        check::elements(self.reader, &self.model, Unknown::Refused)?;
        let model_data = Extent::new(Header::LEN, self.reader.model_data().len())?;
        let end = model_data.end();
        let aligned = end.checked_next_multiple_of(64).unwrap_or(end);
        let padding = vec![0; usize::try_from(aligned.saturating_sub(end)).unwrap_or_default()];
        Ok((Header { model_data, tensor_data_offset: aligned }.to_bytes(), padding))
    }

    /// Returns the model with small constants inline.
    fn into_laid_out(self) -> Result<Model> {
        self.reader.require_known()?;
        if self.is_checked() {
            check::sound(&self.model.lint(), &self.reader.model().lint())?;
        }
        inline(self.reader, self.model.into_owned(), self.options.most_inline_elements())
    }
}

/// Gives a writer all elements that it wants from the file that the model was read from.
fn copy<W: Write>(mut writer: Writer<W>, reader: &Reader) -> Result<W> {
    while writer.pending().is_some() {
        writer.copy_from(reader)?;
    }
    writer.finish()
}

/// Writes a model that was read from `reader`, in the same version, to any sink. Constants without
/// elements get theirs from `elements`, one after another.
pub(crate) fn write<W: Write>(
    reader: &Reader,
    mut model: Model,
    options: WriteOptions,
    mut sink: W,
    elements: &mut dyn FnMut(&Pending) -> Result<Bytes>,
) -> Result<W> {
    reader.require_known()?;
    if reader.version() == Version::V1 {
        fill(&mut model, u64::MAX, elements)?;
        check::elements(reader, &model, Unknown::Refused)?;
        let bytes = version_1(reader, &model, !options.is_unchecked())?;
        let written = sink.write_all(&bytes).and_then(|()| sink.flush());
        written.map_err(|source| Error::Write { offset: 0, source })?;
        return Ok(sink);
    }
    fill(&mut model, options.most_inline_elements(), elements)?;
    let model = inline(reader, model, options.most_inline_elements())?;
    let mut writer = options.unchecked().write_to(sink, &model)?;
    while let Some(pending) = writer.pending() {
        if pending.data_offset.is_some() {
            writer.copy_from(reader)?;
        } else {
            let bytes = elements(pending)?;
            writer.add(&bytes)?;
        }
    }
    writer.finish()
}

/// Returns a file of version 1, in which there may be no error that the other file has not.
fn version_1(reader: &Reader, model: &Model, is_checked: bool) -> Result<Bytes> {
    let bytes = Bytes::from(model.to_bytes()?);
    if is_checked {
        check::sound(&Reader::from_bytes(bytes.clone())?.lint(), &reader.lint())?;
    }
    Ok(bytes)
}

/// Gives constants of up to so many elements, that have none, theirs.
fn fill(
    model: &mut Model,
    most: u64,
    elements: &mut dyn FnMut(&Pending) -> Result<Bytes>,
) -> Result<()> {
    let mut found = Vec::new();
    let scopes = topology::walk(&model.graph, |scope, node, it| {
        if let NodeKind::Constant(constant) = &it.kind {
            found.push((scope, node, it.name.clone(), described(constant, most)));
        }
    });
    let mut pending = Vec::with_capacity(found.len());
    for (scope, node, name, info) in found {
        let path = scopes.get(scope).map(|scope| scope.node_path(node)).unwrap_or_default();
        pending.push(match info {
            Ok(None) => None,
            Ok(Some(info)) => Some(Pending { path, name, scope, node, info, data_offset: None }),
            Err(fault) => return Err(Error::Constant { path: path.into(), fault }),
        });
    }
    let mut pending = pending.into_iter();
    model.graph.visit_constants(&mut |constant| {
        if let (Some(pending), Some(dtype)) = (pending.next().flatten(), constant.dtype) {
            constant.data = ConstantData::new(dtype, elements(&pending)?);
        }
        Ok(())
    })
}

/// Describes a constant that has no elements and is to have few of them; `None` for others.
fn described(constant: &Constant, most: u64) -> Result<Option<TensorInfo>, Fault> {
    if constant.data.is_some() || constant.data_offset.is_some() {
        return Ok(None);
    }
    let Some(info) = constant.info()? else { return Ok(None) };
    let is_chosen = info.shape.elements()? <= most;
    Ok(is_chosen.then_some(info))
}

/// Tells whether no constant has elements elsewhere.
fn is_inline(model: &Model) -> bool {
    let mut inline = true;
    topology::walk(&model.graph, |_, _, node| {
        if let NodeKind::Constant(constant) = &node.kind {
            inline &= constant.data_offset.is_none();
        }
    });
    inline
}

/// Reads the elements of constants of up to so many elements into a model whose data offsets count
/// in the file of `reader`.
fn inline(reader: &Reader, mut model: Model, elements: u64) -> Result<Model> {
    let mut places = Vec::new();
    let scopes = topology::walk(&model.graph, |scope, id, node| {
        if let NodeKind::Constant(constant) = &node.kind {
            places.push((scope, id, place(reader, constant, elements)));
        }
    });
    let mut chosen = Vec::with_capacity(places.len());
    let mut found = 0_u64;
    for (scope, id, place) in places {
        let place = place.map_err(|fault| {
            let path = scopes.get(scope).map(|scope| scope.node_path(id)).unwrap_or_default();
            Error::Constant { path: path.into(), fault }
        })?;
        found = found.saturating_add(place.map_or(0, |(_, extent)| extent.len()));
        chosen.push(place);
    }
    // Given elements that are not to stay in the model data do not count.
    match elements {
        u64::MAX => model.measure(found)?,
        _ => Model::default().measure(found)?,
    }
    let mut chosen = chosen.into_iter();
    model.graph.visit_constants(&mut |constant| {
        if let Some((dtype, extent)) = chosen.next().flatten() {
            let bytes = reader.source().read(extent, "tensor data")?;
            constant.data = ConstantData::new(dtype, bytes);
            constant.data_offset = None;
        }
        Ok(())
    })?;
    Ok(model)
}

/// Returns where the elements of a constant are that is to be inline and is not; `None` for others.
fn place(
    reader: &Reader,
    constant: &Constant,
    elements: u64,
) -> Result<Option<(ConstantDataType, Extent)>, Fault> {
    let Some(data_offset) = constant.data_offset else { return Ok(None) };
    let Some(info) = constant.info()? else { return Ok(None) };
    let header = reader.header().ok_or(Fault::NoTensorData { offset: data_offset })?;
    let extent = header.tensor(data_offset, info.byte_len()?, reader.source().len())?;
    let is_chosen = info.shape.elements()? <= elements;
    Ok(constant.dtype.filter(|_| is_chosen).map(|dtype| (dtype, extent)))
}

/// Writes a file and puts it in its place.
fn replace(
    path: impl AsRef<Path>,
    options: WriteOptions,
    write: impl FnOnce(&mut NewFile) -> io::Result<()>,
) -> Result<()> {
    let mut file = options.output_of().create(path)?;
    let written = write(&mut file);
    written.map_err(|source| Error::Write { offset: file.written(), source })?;
    Ok(file.commit(options.output_of().existing)?)
}
