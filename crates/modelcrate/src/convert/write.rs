//! Writing tensors one after another, while the next ones are decoded.

use std::{
    borrow::Cow,
    io::{BufRead as _, Write},
};

use bytes::Bytes;
use tensor_core::{DType, Extent, Source, TensorInfo, parallel};

use super::{
    cast::only_bools,
    conversion::Conversion,
    metadata,
    plan::{Item, Step},
    shards::{Content, Planned},
    target::Target,
};
use crate::{
    Error, Result,
    weights::{self, ElementType},
};

/// A file of a [`Conversion`], to be written.
#[derive(Clone, Copy, Debug)]
pub struct ConvertedFile<'c, 's, 'a> {
    conversion: &'c Conversion<'s, 'a>,
    file: &'c Planned,
}

impl<'c, 's, 'a> ConvertedFile<'c, 's, 'a> {
    pub(super) const fn new(conversion: &'c Conversion<'s, 'a>, file: &'c Planned) -> Self {
        Self { conversion, file }
    }

    /// Returns its name, by which an index leads to it; a file alone may be called otherwise.
    #[must_use]
    pub fn name(self) -> &'c str {
        &self.file.name
    }

    /// Returns how long it will be in bytes, where that is known before it is written.
    #[must_use]
    pub fn byte_len(self) -> Option<u64> {
        self.file.byte_len()
    }

    /// Writes it, and tells `progress` how many bytes of elements were done each time some are:
    /// [`Conversion::tensor_bytes`] in all files.
    ///
    /// Elements that stand in a file as they are to be are copied in pieces. Others are decoded while
    /// the tensors before them are written; those in memory at once take no more than the largest and
    /// 64 MiB.
    ///
    /// # Errors
    ///
    /// Where a tensor cannot be read, or has an element that its new type does not have; where the
    /// sink fails.
    pub fn write<W: Write>(self, mut sink: W, progress: impl Fn(u64)) -> Result<W> {
        let Self { conversion, file } = self;
        let (inside, layout) = match &file.content {
            Content::Index(text) => {
                sink.write_all(text).map_err(weights::Error::Write)?;
                return Ok(sink);
            }
            Content::Tensors { items, layout } => (items, layout.as_ref()),
        };
        let order =
            layout.map_or_else(|| (0..inside.len()).collect(), |layout| layout.order().to_vec());
        let items = order.iter().filter_map(|at| conversion.items.get(*inside.get(*at)?));
        #[cfg_attr(not(feature = "ztensor"), expect(unused_mut, reason = "order is as it is"))]
        let mut items: Vec<&Item<'_, '_>> = items.collect();
        #[cfg(feature = "ztensor")]
        if conversion.target == Target::ZTensor2 {
            // What the canonical form asks for.
            items.sort_by_key(|item| item.name.as_str());
        }
        let largest = items.iter().map(|item| item.byte_len).max().unwrap_or_default();
        let room = largest.saturating_add(AHEAD);
        parallel::ahead(
            &items,
            conversion.threads,
            room,
            |item| item.cost(),
            |item| item.fetch(),
            |next| {
                let mut put = |item: &Item<'_, '_>, sink: &mut dyn Write| match next() {
                    Some(fetched) => item.put(fetched?, sink, &progress),
                    None => Ok(()),
                };
                match (conversion.target, layout) {
                    (Target::Gguf | Target::Safetensors, Some(layout)) => {
                        let mut rest = items.iter();
                        layout.write(&mut sink, |_, sink| {
                            rest.next().map_or(Ok(()), |item| put(item, sink))
                        })?;
                        Ok(sink)
                    }
                    #[cfg(feature = "archive")]
                    (Target::Npz, _) => conversion.npz(&items, sink, put),
                    #[cfg(feature = "ztensor")]
                    (Target::ZTensor | Target::ZTensor2, _) => {
                        conversion.ztensor(&items, sink, put)
                    }
                    _ => {
                        for (item, info) in
                            items.iter().filter_map(|item| Some((item, item.info()?)))
                        {
                            weights::npy::write_header(&info, &mut sink)?;
                            put(item, &mut sink)?;
                        }
                        Ok(sink)
                    }
                }
            },
        )
    }
}

impl Conversion<'_, '_> {
    #[cfg(feature = "archive")]
    fn npz<W: Write>(
        &self,
        items: &[&Item<'_, '_>],
        sink: W,
        mut put: impl FnMut(&Item<'_, '_>, &mut dyn Write) -> Result<()>,
    ) -> Result<W> {
        let mut writer = weights::npz::Writer::new(sink);
        if let Some(level) = self.compression {
            writer = writer.deflate(level);
        }
        for (item, info) in items.iter().filter_map(|item| Some((item, item.info()?))) {
            writer.stream(&item.name, &info, |sink| put(item, sink))?;
        }
        Ok(writer.finish()?)
    }

    #[cfg(feature = "ztensor")]
    fn ztensor<W: Write>(
        &self,
        items: &[&Item<'_, '_>],
        sink: W,
        mut put: impl FnMut(&Item<'_, '_>, &mut dyn Write) -> Result<()>,
    ) -> Result<W> {
        use ztensor::{Compression, Form, Storage, Version};
        let mut options = ztensor::Writer::options().threads(self.threads);
        if self.target == Target::ZTensor2 {
            options = options.version(Version::V2);
            if self.compression.is_some() {
                options = options.form(Form::Free);
            }
        }
        if let Some(level) = self.compression {
            let compression = Compression::Zstd { level, frame: None };
            options = options.storage(Storage::default().compression(compression));
        }
        let mut writer = options.write_to(sink)?;
        let values = self.metadata.values.iter();
        let texts = values.filter_map(|(key, value)| Some((key, metadata::text(value.value()?))));
        let mut attributes = ztensor::Attributes::default();
        for (key, text) in texts {
            attributes.insert(key, text);
        }
        writer.set_attributes(&attributes);
        for item in items {
            item.add_to(&mut writer, |sink| put(item, sink))?;
        }
        Ok(writer.finish()?)
    }
}

/// Elements on their way.
pub(super) enum Fetched {
    /// As they are in a file.
    InFile(Source, Extent),
    Bytes(Bytes),
}

impl Item<'_, '_> {
    pub(super) fn planned(&self) -> weights::Planned<'_> {
        let Self { name, element_type, shape, .. } = self;
        weights::Planned { name: name.as_str(), element_type: *element_type, shape }
    }

    pub(super) fn info(&self) -> Option<TensorInfo> {
        match self.element_type {
            ElementType::Plain(dtype) => Some(TensorInfo { dtype, shape: self.shape.clone() }),
            _ => None,
        }
    }

    /// Adds an object whose elements `write` writes.
    #[cfg(feature = "ztensor")]
    pub(super) fn add_to<W: Write>(
        &self,
        writer: &mut ztensor::Writer<W>,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let Some(elements) = crate::set::ztensor_elements(self.element_type) else { return Ok(()) };
        let mut object = writer.object(&self.name)?;
        let mut component = object.component(ztensor::Role::Data, elements)?;
        write(&mut component)?;
        component.finish()?;
        Ok(object.finish(ztensor::Format::Dense, self.shape.clone())?)
    }

    /// Returns where its elements stand as they are to be.
    fn place(&self) -> Option<(Source, Extent)> {
        let (source, extent) = self.tensor.tensor().place().filter(|_| self.step == Step::Copy)?;
        Some((source.clone(), extent))
    }

    /// Returns how many bytes it takes in memory before it is written.
    fn cost(&self) -> u64 {
        if self.place().is_some() { 0 } else { self.byte_len }
    }

    pub(super) fn fetch(&self) -> Result<Fetched> {
        if let Some((source, extent)) = self.place() {
            return Ok(Fetched::InFile(source, extent));
        }
        if self.step == Step::Dequantize {
            return Ok(Fetched::Bytes(self.tensor.tensor().dequantize()?.into_bytes()));
        }
        Ok(Fetched::Bytes(self.tensor.bytes()?))
    }

    /// Writes its elements as they are to be.
    pub(super) fn put(
        &self,
        fetched: Fetched,
        sink: &mut dyn Write,
        progress: impl Fn(u64),
    ) -> Result<()> {
        let mut before = 0_u64;
        let mut write = |bytes: &[u8]| {
            let piece = self.piece(bytes, &mut before)?;
            progress(piece.len() as u64);
            sink.write_all(&piece).map_err(|error| Error::from(weights::Error::Write(error)))
        };
        match fetched {
            Fetched::InFile(source, extent) => {
                let mut stream = source.stream(extent, "tensor data")?;
                loop {
                    let bytes = stream.fill_buf().map_err(weights::Error::Read)?;
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    let len = bytes.len().min(PIECE);
                    write(bytes.get(..len).unwrap_or(bytes))?;
                    stream.consume(len);
                }
            }
            Fetched::Bytes(bytes) => bytes.chunks(PIECE).try_for_each(write),
        }
    }

    /// Returns elements as they are to be; `before` counts those in front of them.
    fn piece<'b>(&self, bytes: &'b [u8], before: &mut u64) -> Result<Cow<'b, [u8]>> {
        let (from, elements, piece) = match (self.step, self.element_type) {
            (Step::Cast(cast), _) => {
                let left = self.shape.elements()?.saturating_sub(*before);
                let elements = cast.elements_of(bytes.len() as u64).min(left);
                (cast.from, elements, cast.apply(bytes, elements).map(Cow::Owned))
            }
            (Step::Copy, ElementType::Plain(DType::Bool)) => {
                let piece = only_bools(bytes).map(|()| Cow::Borrowed(bytes));
                (DType::Bool, bytes.len() as u64, piece)
            }
            _ => return Ok(Cow::Borrowed(bytes)),
        };
        let piece = piece.map_err(|found| {
            let index = before.saturating_add(found.index);
            let (name, to) = (self.tensor.name(), self.element_type);
            let what = match from {
                DType::Bool => "neither 0 nor 1".to_owned(),
                _ => format!("more than {to} has"),
            };
            let what = format!("tensor {name:?}: element {index} is {what}");
            weights::Error::Unwritable { what }
        })?;
        *before = before.saturating_add(elements);
        Ok(piece)
    }
}

/// What is written at once, in bytes: whole elements of every type.
const PIECE: usize = 1 << 20;

/// What may be decoded ahead besides the largest tensor, in bytes.
const AHEAD: u64 = 64 << 20;
