//! Writing files, front to back. Format text: Part I; key order and defaults as in the reference
//! writer 1.1.1.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    io::{self, BufRead, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{
    DType, Error as Core, Extent, Limits, Shape, Tensor as Elements, TensorView, output::NewFile,
};

use crate::{
    Attributes, Component, Coo, Csr, Encoding, Fault, Format, Generation, Manifest, Object, Role,
    Storage, StoredType, Tensor, Value, Version, WriteOptions,
    attributes::Encoded,
    cbor::{Decoder, Emitter},
    codec::{Codec, Output},
    container::footer,
    dtype,
    error::{Error, Result},
    index::Index,
    plain::Plain,
    quantized::{GroupLayout, Part},
};

/// Writes a file of generation 1.1 or 1.2 to any sink, from front to back.
///
/// The same calls make the same bytes on every machine, whatever the number of threads: blobs in
/// the order in which they are added, the manifest sorted by name. Memory does not grow with the
/// size of the tensors. The file is complete once [`finish`](Self::finish) has returned; before
/// that it has no footer, and nothing opens it.
///
/// # Examples
///
/// ```
/// use ztensor::{Compression, Storage, Writer, tensor_core::Tensor};
///
/// let storage = Storage::default().compression(Compression::Zstd { level: 3, frame: None });
/// let mut writer = Writer::options().storage(storage).write_to(Vec::new())?;
/// writer.set_attributes(&[("framework", "none")].into_iter().collect());
/// writer.add("weight", &Tensor::from_slice([2, 2], &[1_i32, 2, 3, 4])?)?;
/// let file: Vec<u8> = writer.finish()?;
/// # Ok::<(), ztensor::Error>(())
/// ```
#[must_use = "a file without its footer cannot be opened; call finish"]
pub struct Writer<W: Write> {
    out: Output<W>,
    options: WriteOptions,
    complete: fn(&mut W, &WriteOptions) -> tensor_core::Result<()>,
    root: Root,
    index: Index,
    /// The object or component that was begun and not finished.
    unfinished: Option<String>,
}

/// The fields of the root map other than the objects, as they are encoded.
#[derive(Default)]
struct Root {
    version: Option<String>,
    attributes: Option<Bytes>,
    other: Vec<(String, Bytes)>,
    /// Why the attributes that were set cannot be written.
    refused: Option<Error>,
}

impl<W: Write> Writer<W> {
    /// Starts a file with the default options.
    ///
    /// Nothing is written before the first object is begun.
    pub fn new(sink: W) -> Self {
        Self::start(sink, WriteOptions::default(), |_, _| Ok(()))
    }

    pub(crate) fn start(
        sink: W,
        options: WriteOptions,
        complete: fn(&mut W, &WriteOptions) -> tensor_core::Result<()>,
    ) -> Self {
        let out = Output { sink, position: 0 };
        let (root, index) = (Root::default(), Index::default());
        Self { out, options, complete, root, index, unfinished: None }
    }

    /// Goes on at byte `position` of a file whose objects stand in `manifest`.
    pub(crate) fn resume(
        sink: W,
        position: u64,
        manifest: &Manifest,
        options: WriteOptions,
    ) -> Result<Self> {
        let mut writer = Self::start(sink, options, |_, _| Ok(()));
        writer.out.position = position;
        let (attributes, other) = manifest.encoded_root();
        let version = Some(manifest.version().to_owned());
        writer.root = Root { version, attributes, other, refused: None };
        for (index, name) in manifest.names().enumerate() {
            writer.index.push(name, &manifest.encoded_object(index))?;
        }
        Ok(writer)
    }

    /// Sets the attributes of the file, in place of any that were set before.
    ///
    /// The format's text takes values of any type; the reference implementation of generation 1.1
    /// opens only files whose values are text. Values that nest more than 126 levels deep, maps
    /// that hold a key twice, and more than 64 MiB in all are refused by [`finish`](Self::finish).
    pub fn set_attributes(&mut self, attributes: &Attributes) {
        let encoded = encode_attributes("", attributes);
        (self.root.attributes, self.root.refused) = match encoded {
            Ok(encoded) => (Some(encoded.bytes), None),
            Err(error) => (None, Some(error)),
        };
    }

    pub(crate) fn set_encoded_attributes(&mut self, attributes: Option<Bytes>) {
        self.root.attributes = attributes;
        self.root.refused = None;
    }

    pub(crate) fn set_version_text(&mut self, version: &str) {
        self.root.version = Some(version.to_owned());
    }

    /// Keeps fields of the root map that the format does not name.
    pub(crate) fn set_unknown_fields(&mut self, other: Vec<(String, Bytes)>) {
        self.root.other = other;
    }

    /// Writes a dense tensor, stored as the options say.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateObject`]; [`Error::Component`] where the element type is none of the
    /// format's, or a bool is neither 0 nor 1; [`Error::Write`].
    pub fn add(&mut self, name: &str, tensor: &Elements) -> Result<()> {
        self.add_view(name, &tensor.view())
    }

    /// Writes a dense tensor over borrowed bytes, stored as the options say.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn add_view(&mut self, name: &str, tensor: &TensorView<'_>) -> Result<()> {
        if let Some(dtype) = self.plain_name(tensor) {
            return self.add_plain(name, tensor, dtype);
        }
        let mut object = self.object(name)?;
        object.put(Role::Data, tensor.dtype(), tensor.bytes())?;
        object.finish(Format::Dense, tensor.shape().clone())
    }

    /// Returns the name of an element type whose tensors are written as they are, with no more to
    /// check or to say of them.
    fn plain_name(&self, tensor: &TensorView<'_>) -> Option<&'static str> {
        let (dtype, rank) = (tensor.dtype(), tensor.shape().rank() as u64);
        let WriteOptions { version, storage, .. } = self.options;
        let is_plain = version == Version::V1_1 && storage == Storage::default();
        dtype::name_of(dtype).filter(|_| is_plain && dtype != DType::Bool && rank <= MAX_RANK)
    }

    fn add_plain(&mut self, name: &str, tensor: &TensorView<'_>, dtype: &str) -> Result<()> {
        self.check_finished()?;
        if self.index.position(name).is_some() {
            return Err(Error::DuplicateObject { name: name.to_owned() });
        }
        let written = self.out.align(self.options.alignment).and_then(|offset| {
            self.out.put(tensor.bytes())?;
            Ok(offset)
        });
        let offset = written.inspect_err(|_| self.unfinished = Some(name.to_owned()))?;
        let length = tensor.bytes().len() as u64;
        let encode = |out: &mut _| Plain::write(out, tensor.shape(), dtype, offset, length);
        self.index.push_with(name, encode)
    }

    /// Writes a sparse matrix in compressed rows.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn add_csr(&mut self, name: &str, matrix: &Csr) -> Result<()> {
        self.object(name)?.finish_csr(matrix)
    }

    /// Writes a sparse tensor as a list of coordinates.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn add_coo(&mut self, name: &str, tensor: &Coo) -> Result<()> {
        self.object(name)?.finish_coo(tensor)
    }

    /// Begins an object of any format, whose components are written one after another.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateObject`]; [`Error::Unfinished`] where another object was begun and not
    /// finished.
    pub fn object(&mut self, name: &str) -> Result<ObjectWriter<'_, W>> {
        self.check_finished()?;
        if self.index.position(name).is_some() {
            return Err(Error::DuplicateObject { name: name.to_owned() });
        }
        self.unfinished = Some(name.to_owned());
        let storage = self.options.storage;
        let object = Object::new(Shape::scalar(), Format::Dense);
        let (attributes, refused, component_begun) = (None, None, false);
        Ok(ObjectWriter { writer: self, storage, object, attributes, refused, component_begun })
    }

    /// Copies an object of another file: its definition, and its stored bytes as they are.
    ///
    /// What the definition says that this crate does not know is copied as well. Between
    /// generations 1.1 and 1.2, element types are named as the generation that is written names
    /// them; an encoded component gets `uncompressed_length` in 1.2, where its length can be told,
    /// and loses it in 1.1, where the shape tells it. Objects of generations before 1.1 are
    /// [migrated](crate::migrate) instead.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateObject`]; [`Error::NotEditable`] for a file of an older generation;
    /// [`Error::Component`] where a blob does not lie where it may; [`Error::Layout`] where blobs
    /// overlap and are not the same.
    pub fn copy(&mut self, tensor: Tensor<'_>) -> Result<()> {
        let version = self.version();
        let mut object = tensor.object()?;
        match (tensor.reader().generation(), version) {
            (Generation::V1_1, Version::V1_1) | (Generation::V1_2, Version::V1_2) => {}
            (Generation::V1_1, Version::V1_2) => translate_to_v1_2(tensor, &mut object),
            (Generation::V1_2, Version::V1_1) => {
                for (role, component) in &mut object.components {
                    translate_to_v1_1(&object.format, role, component);
                }
            }
            (found, _) => return Err(Error::NotEditable { found }),
        }
        self.copy_as(tensor.name(), tensor, object, &mut Moved::default())
    }

    /// Copies the stored bytes of a tensor under a definition that may say the same otherwise.
    ///
    /// Blobs that `moved` knows are not written again. One that overlaps another without being the
    /// same is refused, so that a copy is never longer than what it is made from.
    pub(crate) fn copy_as(
        &mut self,
        name: &str,
        tensor: Tensor<'_>,
        definition: Object,
        moved: &mut Moved,
    ) -> Result<()> {
        let mut object = self.object(name)?;
        object.object = Object { components: Vec::new(), ..definition.clone() };
        let mut components = definition.components;
        // Blobs keep the order that they have in the file; an empty one comes before the blob that
        // starts where it does.
        let place = |(_, component): &(Role, Component)| (component.offset, component.length);
        let mut order: Vec<usize> = (0..components.len()).collect();
        order.sort_by_key(|&index| components.get(index).map(place));
        for index in order {
            let Some((role, component)) = components.get_mut(index) else {
                continue;
            };
            object.copy_blob(tensor, role, component, moved)?;
        }
        object.object.components = components;
        object.commit()
    }

    /// Removes an object from the manifest; its blobs stay where they are.
    pub(crate) fn forget(&mut self, name: &str) -> Result<()> {
        self.index.remove(name)
    }

    pub(crate) const fn version(&self) -> Version {
        self.options.version
    }

    /// Tells whether an object of a name was added.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.index.position(name).is_some()
    }

    /// Writes the manifest and the footer, and returns the sink.
    ///
    /// A writer from [`WriteOptions::create`] has put its file in place by then.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]; [`Error::Write`]; where the attributes are none that can be
    /// [set](Self::set_attributes); where the manifest is over 1 GiB; where the file cannot be put
    /// in its place, which leaves what was there before.
    pub fn finish(mut self) -> Result<W> {
        self.check_finished()?;
        if let Some(refused) = self.root.refused.take() {
            return Err(refused);
        }
        self.out.begin()?;
        let start = self.out.position;
        self.put_manifest()?;
        let found = self.out.position.saturating_sub(start);
        let limit = Limits::default().manifest_bytes;
        if found > limit {
            let (what, field) = ("manifest size in bytes", "manifest_bytes");
            return Err(Core::OverLimit { what, found, limit, field }.into());
        }
        self.out.put(&footer(found))?;
        let position = self.out.position;
        let mut sink = self.out.sink;
        sink.flush().map_err(|source| Error::Write { offset: position, source })?;
        (self.complete)(&mut sink, &self.options)?;
        Ok(sink)
    }

    /// Writes the manifest as [`Manifest::parse`] reads it, a piece at a time.
    fn put_manifest(&mut self) -> Result<()> {
        let Self { out, root, index, options, .. } = self;
        let mut piece = Vec::with_capacity(PIECE);
        let mut emitter = Emitter::new(&mut piece);
        let optional = usize::from(root.attributes.is_some());
        emitter.map(optional.saturating_add(root.other.len()).saturating_add(2));
        emitter.text("version").text(root.version.as_deref().unwrap_or(options.version.text()));
        if let Some(attributes) = &root.attributes {
            emitter.text("attributes").raw(attributes);
        }
        let entries = index.sorted();
        emitter.text("objects").map(entries.len());
        for (name, body) in entries {
            Emitter::new(&mut piece).text(name).raw(body);
            if piece.len() >= PIECE {
                out.put(&piece)?;
                piece.clear();
            }
        }
        let mut emitter = Emitter::new(&mut piece);
        for (key, item) in &root.other {
            emitter.text(key).raw(item);
        }
        out.put(&piece)
    }

    fn check_finished(&self) -> Result<()> {
        match &self.unfinished {
            None => Ok(()),
            Some(name) => Err(Error::Unfinished { name: name.clone() }),
        }
    }
}

impl Writer<NewFile> {
    /// Starts a file that will stand at `path` once it is finished, in place of any that is there.
    ///
    /// # Errors
    ///
    /// Where the folder does not let a file be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        WriteOptions::default().create(path)
    }
}

impl Writer<Vec<u8>> {
    /// Returns the options of writing, to be set and written with.
    #[must_use]
    pub fn options() -> WriteOptions {
        WriteOptions::default()
    }
}

impl<W: Write> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("position", &self.out.position)
            .field("objects", &self.index.live())
            .finish_non_exhaustive()
    }
}

/// An object in the making: its components are written, then its shape and format are named.
///
/// Dropped before [`finish`](Self::finish), it leaves a writer that refuses to go on.
#[derive(Debug)]
#[must_use = "an object that is not finished makes the file unusable"]
pub struct ObjectWriter<'w, W: Write> {
    writer: &'w mut Writer<W>,
    storage: Storage,
    object: Object,
    attributes: Option<Attributes>,
    /// Why the attributes that were set cannot be written.
    refused: Option<Error>,
    /// A component was begun and not finished: what it wrote belongs to nothing.
    component_begun: bool,
}

impl<W: Write> ObjectWriter<'_, W> {
    /// Sets how the components that follow are stored, in place of the writer's option.
    pub fn set_storage(&mut self, storage: Storage) {
        self.storage = storage;
    }

    /// Sets the attributes of the object, in place of any that were set before.
    ///
    /// [`finish`](Self::finish) refuses those that [`Writer::set_attributes`] cannot take.
    pub fn set_attributes(&mut self, attributes: &Attributes) {
        match encode_attributes(&self.name(), attributes) {
            Ok(encoded) => {
                self.object.attributes = Some(encoded);
                (self.attributes, self.refused) = (Some(attributes.clone()), None);
            }
            Err(error) => self.refused = Some(error),
        }
    }

    pub(crate) fn set_encoded_attributes(&mut self, attributes: Option<Encoded>) {
        self.object.attributes = attributes;
    }

    /// Begins a component, whose decoded bytes are then written to it in pieces of any size,
    /// elements little-endian.
    ///
    /// # Errors
    ///
    /// [`Error::Layout`] where the role was written before; [`Error::Component`] where the element
    /// type is none of the format's; [`Error::Unfinished`] where a component was begun before and
    /// not finished; [`Error::Write`].
    pub fn component(&mut self, role: Role, dtype: DType) -> Result<ComponentWriter<'_, W>> {
        self.check_finished()?;
        let role = role.normalized();
        let Self { writer, storage, object, component_begun, .. } = self;
        let Writer { out, options, unfinished, .. } = &mut **writer;
        let name = unfinished.as_deref().unwrap_or_default();
        if object.component(&role).is_some() {
            let problem = format!("component {:?} is written twice", role.as_str());
            return Err(Error::Layout { object: name.to_owned(), problem });
        }
        if dtype::name_of(dtype).is_none() {
            let fault = Fault::UnknownDtype { found: dtype.name().to_owned() };
            return Err(Error::Component { object: name.to_owned(), role, fault: Box::new(fault) });
        }
        *component_begun = true;
        let offset = out.align(options.alignment)?;
        let codec = Codec::new(out, storage, options.threads)?;
        let mut component = Component::new(StoredType::Known(dtype), offset, 0);
        if options.version == Version::V1_2 {
            name_as_in_v1_2(&mut component);
        }
        let decoded = 0;
        Ok(ComponentWriter {
            name,
            codec,
            component,
            role,
            dtype,
            decoded,
            object,
            component_begun,
        })
    }

    /// Writes a whole component.
    ///
    /// # Errors
    ///
    /// As for [`component`](Self::component).
    pub fn put(&mut self, role: Role, dtype: DType, bytes: &[u8]) -> Result<()> {
        let mut component = self.component(role, dtype)?;
        component.put(bytes)?;
        component.finish()?;
        Ok(())
    }

    fn put_tensor(&mut self, role: Role, tensor: &Elements) -> Result<()> {
        self.put(role, tensor.info().dtype, tensor.bytes())
    }

    /// Ends the object: all its components are written.
    ///
    /// Sparse tensors end with [`finish_csr`](Self::finish_csr) and
    /// [`finish_coo`](Self::finish_coo), which take parts that are proved to fit together.
    ///
    /// # Errors
    ///
    /// [`Error::MissingComponent`] where the format requires another; [`Error::Component`] where
    /// the data of a dense tensor is not as long as its shape needs; [`Error::Layout`] where sizes
    /// do not fit the attributes of a quantized tensor, or the format is one of generation 0.1;
    /// [`Error::Unfinished`] where a component was begun and not finished; where the rank is over
    /// 65,536; where the attributes are none that can be [set](Self::set_attributes).
    pub fn finish(self, format: Format, shape: impl Into<Shape>) -> Result<()> {
        let format = format.normalized();
        let problem = match format {
            Format::SparseCsr | Format::SparseCoo => "is written by finish_csr and finish_coo",
            Format::InlineCsr | Format::InlineCoo => "is one of generation 0.1, expected a later",
            _ => return self.complete(format, shape.into()),
        };
        let problem = format!("format {format} {problem}");
        Err(Error::Layout { object: self.name(), problem })
    }

    /// Writes the parts of a sparse matrix in compressed rows, and ends the object.
    ///
    /// # Errors
    ///
    /// As for [`Writer::add`].
    pub fn finish_csr(mut self, matrix: &Csr) -> Result<()> {
        self.put_tensor(Role::Values, matrix.values())?;
        self.put_tensor(Role::Indices, matrix.indices())?;
        self.put_tensor(Role::Indptr, matrix.indptr())?;
        self.complete(Format::SparseCsr, matrix.shape().clone())
    }

    /// Writes the parts of a sparse tensor as a list of coordinates, and ends the object.
    ///
    /// # Errors
    ///
    /// As for [`Writer::add`].
    pub fn finish_coo(mut self, tensor: &Coo) -> Result<()> {
        self.put_tensor(Role::Values, tensor.values())?;
        self.put_tensor(Role::Coords, tensor.coords())?;
        self.complete(Format::SparseCoo, tensor.shape().clone())
    }

    pub(crate) fn complete(mut self, format: Format, shape: Shape) -> Result<()> {
        self.check_finished()?;
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let (found, limit) = (shape.rank() as u64, MAX_RANK);
        if found > limit {
            return Err(Core::OverLimit { what: "rank", found, limit, field: "rank" }.into());
        }
        (self.object.format, self.object.shape) = (format, shape);
        for role in crate::validate::required_roles(&self.object.format) {
            if self.object.component(role).is_none() {
                let (format, role) = (self.object.format.clone(), role.clone());
                return Err(Error::MissingComponent { object: self.name(), format, role });
            }
        }
        self.object.shape.elements()?;
        self.check_lengths()?;
        let keeps_lengths = self.writer.options.version == Version::V1_2;
        for (_, component) in &mut self.object.components {
            if !keeps_lengths || component.encoding == Encoding::Raw {
                component.uncompressed_length = None;
            }
        }
        self.commit()
    }

    fn check_finished(&self) -> Result<()> {
        if self.component_begun {
            return Err(Error::Unfinished { name: self.name() });
        }
        Ok(())
    }

    /// Proves that components are as long as shape and attributes need.
    fn check_lengths(&self) -> Result<()> {
        match self.object.format {
            Format::Dense => self.check_dense(),
            Format::QuantizedGroup => self.check_quantized(),
            _ => Ok(()),
        }
    }

    fn check_dense(&self) -> Result<()> {
        let object = &self.object;
        let data = object.component(&Role::Data);
        let Some((data, dtype)) = data.and_then(|data| Some((data, data.element_type()?))) else {
            return Ok(());
        };
        let expected = object.shape.byte_len(dtype)?;
        let found = data.uncompressed_length.unwrap_or_default();
        if found == expected {
            return Ok(());
        }
        let (offset, shape) = (data.offset, object.shape.clone());
        let fault = Fault::WrongLength { offset, found, expected, dtype, shape };
        Err(Error::Component { object: self.name(), role: Role::Data, fault: Box::new(fault) })
    }

    fn check_quantized(&self) -> Result<()> {
        let part = |role: Role| {
            let component = self.object.component(&role)?;
            let (dtype, len) = (component.element_type()?, component.uncompressed_length?);
            Some(Part { dtype, len })
        };
        let [Some(packed_weight), Some(scales), Some(zeros)] =
            [Role::PackedWeight, Role::Scales, Role::Zeros].map(part)
        else {
            return Ok(());
        };
        let attributes = self.attributes.clone().unwrap_or_default();
        GroupLayout::parse(&self.object.shape, &attributes)
            .and_then(|layout| layout.check(packed_weight, scales, zeros))
            .map_err(|error| error.of(&self.name()))
    }

    /// Adds the object to the manifest.
    fn commit(self) -> Result<()> {
        let Self { writer, object, .. } = self;
        let name = writer.unfinished.take().unwrap_or_default();
        writer.out.begin()?;
        writer.index.push_object(&name, &object)
    }

    fn copy_blob(
        &mut self,
        tensor: Tensor<'_>,
        role: &Role,
        component: &mut Component,
        moved: &mut Moved,
    ) -> Result<()> {
        let blob = tensor.unsized_blob(role, component);
        let extent = blob.extent()?;
        if let Some(offset) = moved.find(extent).map_err(|problem| {
            let problem = format!("component {:?} {problem}", role.as_str());
            Error::Layout { object: tensor.name().to_owned(), problem }
        })? {
            component.offset = offset;
            return Ok(());
        }
        let out = &mut self.writer.out;
        component.offset = out.align(self.writer.options.alignment)?;
        let mut stored = tensor.reader().source().stream(extent, "component")?;
        loop {
            let ready = stored.fill_buf().map_err(|error| blob.stream_fault(error))?;
            if ready.is_empty() {
                break;
            }
            out.put(ready)?;
            let copied = ready.len();
            stored.consume(copied);
        }
        moved.insert(extent, component.offset);
        Ok(())
    }

    fn name(&self) -> String {
        self.writer.unfinished.clone().unwrap_or_default()
    }
}

/// Where blobs of a file that is being copied have gone.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Length and new offset by offset; no two overlap.
    blobs: BTreeMap<u64, (u64, u64)>,
    /// New offsets of blobs without bytes, by offset.
    empty: HashMap<u64, u64>,
}

impl Moved {
    /// Returns where a blob has gone, or what it overlaps without being the same.
    fn find(&self, extent: Extent) -> Result<Option<u64>, String> {
        if extent.is_empty() {
            return Ok(self.empty.get(&extent.offset()).copied());
        }
        let (start, len) = (extent.offset(), extent.len());
        // None overlap, so no other before the end of this one reaches further.
        let Some((&before, &(before_len, moved))) = self.blobs.range(..extent.end()).next_back()
        else {
            return Ok(None);
        };
        if (before, before_len) == (start, len) {
            return Ok(Some(moved));
        }
        if before.saturating_add(before_len) <= start {
            return Ok(None);
        }
        Err(format!(
            "covers {len} bytes at byte {start}, which overlap {before_len} bytes at byte {before} \
             that were copied, expected the same or others"
        ))
    }

    fn insert(&mut self, extent: Extent, moved: u64) {
        if extent.is_empty() {
            self.empty.insert(extent.offset(), moved);
        } else {
            self.blobs.insert(extent.offset(), (extent.len(), moved));
        }
    }
}

/// Says of the components of an object what they say in the words of generation 1.2.
pub(crate) fn translate_to_v1_2(tensor: Tensor<'_>, object: &mut Object) {
    let definition = object.clone();
    for (role, component) in &mut object.components {
        if component.encoding == Encoding::Zstd && component.uncompressed_length.is_none() {
            // Where sizes contradict each other, the copy says as little as the original.
            let blob = tensor.blob_of(&definition, role, component).ok();
            component.uncompressed_length = blob.and_then(|blob| {
                let counted = || io::copy(&mut blob.stream().ok()?, &mut io::sink()).ok();
                blob.decoded_len().or_else(counted)
            });
        }
        name_as_in_v1_2(component);
    }
}

/// Says of a component what it says in the words of generation 1.1; a `type` that is not known
/// stays.
pub(crate) fn translate_to_v1_1(format: &Format, role: &Role, component: &mut Component) {
    let Some(dtype) = component.element_type() else {
        return;
    };
    if !component.logical_type_is_unknown() && component.logical_type.take().is_some() {
        component.dtype = StoredType::Known(dtype);
    }
    // Elsewhere the shape does not tell the length, so the key that does is kept, though 1.1
    // ignores it.
    if (format, role) == (&Format::Dense, &Role::Data) {
        component.uncompressed_length = None;
    }
}

/// Names the element type by storage type and `type`, where generation 1.2 has such.
fn name_as_in_v1_2(component: &mut Component) {
    if component.logical_type.is_none()
        && let StoredType::Known(dtype) = component.dtype
        && let Some((stored, logical)) = dtype::storage_of(dtype)
    {
        component.dtype = StoredType::Known(stored);
        component.logical_type = Some(logical.to_owned());
    }
}

/// Encodes attributes, once they are proved to be such as a reader takes with its default limits.
fn encode_attributes(object: &str, attributes: &Attributes) -> Result<Encoded> {
    let found = attributes.iter().map(|(_, value)| levels(value)).max().unwrap_or_default();
    if found > MAX_LEVELS {
        let (what, expected) = ("nesting of attributes in levels", "at most 126");
        return Err(Error::Setting { what, found: found.into(), expected });
    }
    let encoded = Encoded::from_attributes(attributes);
    let (found, limit) = (encoded.bytes.len() as u64, Limits::default().metadata_bytes);
    if found > limit {
        let (what, field) = ("length of attributes in bytes", "metadata_bytes");
        return Err(Core::OverLimit { what, found, limit, field }.into());
    }
    // Encoded keys are what must differ, so it takes the decoder to tell.
    let Err(error) = Decoder::new(&encoded.bytes, 0, u32::MAX).value(0) else {
        return Ok(encoded);
    };
    Err(match error.inside("attributes").into_error(0) {
        Error::Manifest { path, problem, .. } => {
            Error::Layout { object: object.to_owned(), problem: format!("{path} {problem}") }
        }
        error => error,
    })
}

/// Returns how many arrays, maps and tags of a value lie inside one another.
fn levels(value: &Value) -> u32 {
    let mut deepest = 0_u32;
    let mut open = vec![(value, 1_u32)];
    while let Some((value, level)) = open.pop() {
        let inner = level.saturating_add(1);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, inner))),
            Value::Map(pairs) => {
                open.extend(pairs.iter().flat_map(|(key, value)| [(key, inner), (value, inner)]));
            }
            Value::Tag(_, value) => open.push((value, inner)),
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// A component in the making, made by [`ObjectWriter::component`]: a sink for its decoded bytes.
///
/// Dropped before [`finish`](Self::finish), it leaves an object that refuses to go on.
#[must_use = "a component that is not finished makes its object unusable"]
pub struct ComponentWriter<'o, W: Write> {
    /// The name of the object.
    name: &'o str,
    codec: Codec<'o, W>,
    component: Component,
    role: Role,
    dtype: DType,
    decoded: u64,
    object: &'o mut Object,
    component_begun: &'o mut bool,
}

impl<W: Write> ComponentWriter<'_, W> {
    /// Ends the component and returns how many bytes were written to it.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; [`Error::Layout`] where the bytes are no whole number of elements.
    pub fn finish(mut self) -> Result<u64> {
        let width = self.dtype.width().unwrap_or(1);
        if self.decoded.checked_rem(width) != Some(0) {
            let problem = format!(
                "component {:?} has {} bytes, expected whole elements of {width}",
                self.role.as_str(),
                self.decoded
            );
            return Err(Error::Layout { object: self.name.to_owned(), problem });
        }
        let encoded = self.codec.is_encoded();
        let (length, digest) = self.codec.finish()?;
        self.component.length = length;
        self.component.digest = digest;
        if encoded {
            self.component.encoding = Encoding::Zstd;
        }
        // Proved against the shape when the object is finished, and then kept or not.
        self.component.uncompressed_length = Some(self.decoded);
        self.object.components.push((self.role, self.component));
        *self.component_begun = false;
        Ok(self.decoded)
    }

    /// Writes all of some bytes.
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(source) => Error::Write { offset: self.codec.position(), source },
        })
    }
}

impl<W: Write> fmt::Debug for ComponentWriter<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComponentWriter")
            .field("role", &self.role)
            .field("dtype", &self.dtype)
            .field("decoded", &self.decoded)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Write for ComponentWriter<'_, W> {
    /// Takes the next decoded bytes; a bool that is neither 0 nor 1 is an error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.dtype == DType::Bool
            && let Some((at, &found)) = bytes.iter().enumerate().find(|(_, byte)| **byte > 1)
        {
            let index = self.decoded.saturating_add(at as u64);
            let (role, fault) = (self.role.clone(), Fault::NotABool { index, found });
            let error =
                Error::Component { object: self.name.to_owned(), role, fault: Box::new(fault) };
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let taken = self.codec.write(bytes)?;
        self.decoded = self.decoded.saturating_add(taken as u64);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How much of a manifest is encoded before it is written.
const PIECE: usize = 64 << 10;
/// What a reader takes with its default options.
const MAX_RANK: u64 = 1 << 16;

/// Two levels below the default limit of readers: one for the map of attributes, one for an integer
/// that is written as a bignum.
const MAX_LEVELS: u32 = 126;
