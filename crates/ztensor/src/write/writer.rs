//! Writing files, front to back. Format text: Part I; key order and defaults as in the reference
//! writer 1.1.1.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{DType, Limit, Limits, TensorBuf, TensorView, Verify, output::NewFile};

use super::{
    Form, Storage, Version, WriteOptions,
    attributes::encode_attributes,
    codec::Sink,
    index::Index,
    object::MAX_RANK,
    share::{Blobs, ReadBack},
};
use crate::{
    Attributes, Format, Manifest, Role, Shard, Tensor,
    container::footer,
    error::{Error, Result},
    manifest::{Encoded, Key, dtype, emit::Emitter, plain::Plain},
    v2::{
        self,
        container::Footer,
        document::{self, Document},
        emit::Fields,
    },
};

/// Writes a file of generation 1.1, 1.2 or 2 to any sink, from front to back.
///
/// The same calls make the same bytes on every machine, whatever the number of threads: blobs in
/// the order in which they are added, the manifest sorted by name. Memory does not grow with the
/// size of the tensors. The file is complete once [`finish`](Self::finish) has returned; before
/// that it has no footer, and nothing opens it.
///
/// # Examples
///
/// ```
/// use ztensor::{Compression, Storage, Writer, tensor_core::TensorBuf};
///
/// let storage = Storage::default().compression(Compression::Zstd { level: 3, frame: None });
/// let mut writer = Writer::options().storage(storage).write_to(Vec::new())?;
/// writer.set_attributes(&[("framework", "none")].into_iter().collect());
/// writer.add("weight", &TensorBuf::from_slice([2, 2], &[1_i32, 2, 3, 4])?)?;
/// let file: Vec<u8> = writer.finish()?;
/// # Ok::<(), ztensor::Error>(())
/// ```
#[must_use = "a file without its footer cannot be opened; call finish"]
pub struct Writer<W: Write> {
    pub(super) out: Sink<W>,
    pub(super) options: WriteOptions,
    complete: fn(&mut W, &WriteOptions) -> tensor_core::Result<()>,
    pub(super) root: Root,
    pub(super) index: Index,
    /// The blobs of generation 2 that were written, and how to read them.
    pub(super) blobs: Blobs,
    pub(super) read_back: Option<ReadBack<W>>,
    /// The object that was added last.
    last: Option<String>,
    /// The object or component that was begun and not finished.
    pub(super) unfinished: Option<String>,
}

/// The fields of the root map other than the objects, as they are encoded.
#[derive(Default)]
pub(super) struct Root {
    version: Option<String>,
    pub(super) attributes: Option<Encoded>,
    other: Vec<(Key, Bytes)>,
    pub(super) shards: BTreeMap<String, Shard>,
    /// Why the attributes that were set cannot be written.
    refused: Option<Error>,
}

impl Root {
    /// Passes the manifest on as [`Manifest::parse`] reads it, a piece at a time.
    fn put(
        &self,
        index: &Index,
        version: Version,
        mut put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut piece = Vec::with_capacity(PIECE);
        let mut emitter = Emitter::new(&mut piece);
        let optional = usize::from(self.attributes.is_some());
        emitter.map(optional.saturating_add(self.other.len()).saturating_add(2));
        emitter.text("version").text(self.version.as_deref().unwrap_or(version.text()));
        if let Some(attributes) = &self.attributes {
            emitter.text("attributes").raw(&attributes.bytes);
        }
        let entries = index.sorted();
        emitter.text("objects").map(entries.len());
        for (name, body) in entries {
            Emitter::new(&mut piece).text(name).raw(body);
            if piece.len() >= PIECE {
                put(&piece)?;
                piece.clear();
            }
        }
        let mut emitter = Emitter::new(&mut piece);
        for (key, item) in &self.other {
            emitter.text(key.as_str()).raw(item);
        }
        put(&piece)
    }
}

impl Root {
    /// Encodes the manifest of generation 2.
    fn emit_v2(&self, index: &Index, bytes: &mut Vec<u8>) {
        let mut objects = Vec::new();
        let mut entries = index.sorted();
        // Keys are in the order of their encoded bytes, of which the first say how long they are.
        entries.sort_by_key(|(name, _)| name.len());
        let mut out = Emitter::new(&mut objects);
        out.map(entries.len());
        for (name, body) in entries {
            out.text(name).raw(body);
        }
        let mut fields = Fields::default();
        fields.raw("objects", &objects);
        if let Some(attributes) = &self.attributes {
            fields.raw("attributes", &attributes.bytes);
        }
        if !self.shards.is_empty() {
            fields.with("shards", |out| {
                let mut shards = Fields::default();
                for (name, Shard { size, digest, other }) in &self.shards {
                    shards.with(name, |out| {
                        let mut fields = Fields::default();
                        fields.with("size", |out| drop_mut(out.unsigned(*size)));
                        fields.with("digest", |out| drop_mut(out.text(digest)));
                        other.iter().for_each(|(key, item)| fields.other(key, item));
                        fields.emit(out);
                    });
                }
                shards.emit(out);
            });
        }
        for (key, item) in &self.other {
            fields.other(key, item);
        }
        fields.emit(&mut Emitter::new(bytes));
    }
}

const fn drop_mut(_: &mut Emitter<'_>) {}

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
        let out = Sink { sink, position: 0, version: options.version };
        let (root, index, blobs) = (Root::default(), Index::default(), Blobs::default());
        let (read_back, last, unfinished) = (None, None, None);
        Self { out, options, complete, root, index, blobs, read_back, last, unfinished }
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
        writer.set_root(Some(manifest.version().to_owned()), manifest.encoded_root());
        writer.set_shards(manifest);
        for (index, name) in manifest.names().enumerate() {
            writer.index.push(name, &manifest.encoded_object(index))?;
        }
        Ok(writer)
    }

    /// Tells whether a writer that went on at `position` would leave the objects and attributes that
    /// `manifest` has; how they are encoded may differ, as another writer may have made that.
    pub(crate) fn changes_nothing(&self, position: u64, manifest: &Manifest) -> Result<bool> {
        let Self { out, root, index, .. } = self;
        if out.position != position || self.unfinished.is_some() || root.refused.is_some() {
            return Ok(false);
        }
        let before = Writer::resume(io::sink(), position, manifest, self.options)?;
        let bytes = |root: &Root| root.attributes.as_ref().map(|encoded| encoded.bytes.clone());
        let is_same_root = bytes(root) == bytes(&before.root) && root.other == before.root.other;
        Ok(is_same_root && index.sorted() == before.index.sorted())
    }

    /// Sets the attributes of the file, in place of any that were set before.
    ///
    /// The format's text takes values of any type; the reference implementation of generation 1.1
    /// opens only files whose values are text. Values that nest more than 126 levels deep, maps
    /// that hold a key twice, and more than 64 MiB in all are refused by [`finish`](Self::finish).
    pub fn set_attributes(&mut self, attributes: &Attributes) {
        if self.options.version == Version::V2 && attributes.is_empty() {
            // None at all say the same, in fewer ways.
            (self.root.attributes, self.root.refused) = (None, None);
            return;
        }
        let encoded = encode_attributes("", attributes, self.options.version);
        (self.root.attributes, self.root.refused) = match encoded {
            Ok(encoded) => (Some(encoded), None),
            Err(error) => (None, Some(error)),
        };
    }

    pub(crate) fn set_shards(&mut self, manifest: &Manifest) {
        let shards = manifest.shards().map(|(name, shard)| (name.to_owned(), shard.clone()));
        self.root.shards = shards.collect();
    }

    /// Sets the fields of the root map other than the objects, as they are encoded.
    pub(crate) fn set_root(
        &mut self,
        version: Option<String>,
        (attributes, other): (Option<Encoded>, Vec<(Key, Bytes)>),
    ) {
        let shards = std::mem::take(&mut self.root.shards);
        self.root = Root { version, attributes, other, shards, refused: None };
    }

    /// Writes a dense tensor, stored as the options say.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateObject`]; [`Error::Given`] where the element type is not one of the
    /// format's, or a bool is neither 0 nor 1; [`Error::Write`].
    pub fn add(&mut self, name: &str, tensor: &TensorBuf) -> Result<()> {
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
        let free = self.index.free(name)?;
        let written = self.out.align(self.options.grid()).and_then(|offset| {
            self.out.put(tensor.bytes())?;
            Ok(offset)
        });
        let offset = written.inspect_err(|_| self.unfinished = Some(name.to_owned()))?;
        let length = tensor.bytes().len() as u64;
        let encode = |out: &mut _| Plain::write(out, tensor.shape(), dtype, offset, length);
        self.index.push_with(name, free, encode)
    }

    /// Names a shard, in which objects that are [linked](Self::link) lie; generation 2 only.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] where the name or the identity is not one that the format allows, where there
    /// is a shard of the name, and for the canonical form, which has none.
    pub fn add_shard(&mut self, name: &str, shard: &Shard) -> Result<()> {
        let WriteOptions { version, form, .. } = self.options;
        if version != Version::V2 || form == Form::Canonical {
            let reason = "shards are for files of generation 2 that are not canonical".to_owned();
            return Err(Error::Given { reason });
        }
        document::check_shard_name(0, name).map_err(|broken| broken.into_error(0).given())?;
        if self.root.shards.insert(name.to_owned(), shard.clone()).is_some() {
            return Err(Error::Given { reason: format!("shard {name:?} is there already") });
        }
        Ok(())
    }

    /// Adds an object that lies in a shard: the definition of a tensor of that file, whose bytes stay
    /// where they are.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateObject`]; [`Error::Given`] where no shard has the name, or the tensor is not
    /// one of a file of generation 2 that holds it itself.
    pub fn link(&mut self, name: &str, tensor: Tensor<'_>, shard: &str) -> Result<()> {
        self.check_finished()?;
        document::check_new_name(name, false)?;
        let free = self.index.free(name)?;
        let mut object = tensor.object()?;
        let is_own = object.components.iter().all(|(_, part)| part.is_v2 && part.shard.is_none());
        let is_there =
            self.root.shards.get(shard).is_some_and(|it| it.size == tensor.source().len());
        if !is_own || !is_there {
            let reason = format!("object {name:?} does not lie in a file that is shard {shard:?}");
            return Err(Error::Given { reason });
        }
        for (_, part) in &mut object.components {
            part.shard = Some(shard.to_owned());
        }
        self.out.begin()?;
        self.index.push_with(name, free, |body| object.encode_v2(&mut Emitter::new(body)))
    }

    /// Proves that an object of a name may be added now.
    pub(super) fn check_name(&mut self, name: &str) -> Result<()> {
        if self.options.version != Version::V2 {
            return Ok(());
        }
        let is_canonical = self.options.is_canonical();
        document::check_new_name(name, is_canonical)?;
        if let Some(last) = self.last.as_deref().filter(|last| is_canonical && *last >= name) {
            let reason = format!(
                "object {name:?} comes after {last:?}, expected them in the order of the canonical form"
            );
            return Err(Error::Given { reason });
        }
        self.last = Some(name.to_owned());
        Ok(())
    }

    /// Removes an object from the manifest; its blobs stay where they are.
    pub(crate) fn forget(&mut self, name: &str) -> Result<()> {
        self.index.remove(name)
    }

    /// Gives objects other names, all at once, or none of them.
    pub(crate) fn rename(&mut self, names: &[(&str, &str)]) -> Result<()> {
        let (mut bodies, mut old, mut new) = (Vec::new(), HashSet::new(), HashSet::new());
        for (name, _) in names {
            let body = self.index.body(name).filter(|_| old.insert(*name));
            let body = body.ok_or_else(|| Error::MissingObject { name: (*name).to_owned() })?;
            bodies.push(body.to_owned());
        }
        for (_, name) in names {
            let is_taken = self.contains(name) && !old.contains(name);
            if is_taken || !new.insert(*name) {
                return Err(Error::DuplicateObject { name: (*name).to_owned() });
            }
        }
        names.iter().try_for_each(|(name, _)| self.index.remove(name))?;
        names.iter().zip(bodies).try_for_each(|((_, name), body)| self.index.push(name, &body))
    }

    pub(crate) const fn position(&self) -> u64 {
        self.out.position
    }

    /// Writes bytes that are as they are to be.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.put(bytes)
    }

    /// Returns the manifest and the footer as [`finish`](Self::finish) writes them.
    pub(crate) fn end(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let Self { root, index, options, .. } = self;
        if options.version == Version::V2 {
            let at = self.out.position.next_multiple_of(options.grid());
            let padding = at.saturating_sub(self.out.position);
            bytes.resize(usize::try_from(padding).unwrap_or_default(), 0);
            bytes.extend_from_slice(&self.manifest_v2(at)?);
            return Ok(bytes);
        }
        root.put(index, options.version, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        bytes.extend_from_slice(&footer(bytes.len() as u64));
        Ok(bytes)
    }

    pub(crate) const fn verify(&self) -> Verify {
        self.options.verify
    }

    pub(crate) fn is_canonical(&self) -> bool {
        self.options.is_canonical()
    }

    pub(crate) const fn storage(&self) -> Storage {
        self.options.storage
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
    /// [`Error::Unfinished`]; [`Error::Write`]; where the attributes cannot be written, see
    /// [`set_attributes`](Self::set_attributes); where the manifest is over 1 GiB; where the
    /// file cannot be put in its place, which leaves what was there before.
    pub fn finish(mut self) -> Result<W> {
        self.check_finished()?;
        if let Some(refused) = self.root.refused.take() {
            return Err(refused);
        }
        self.out.begin()?;
        if self.options.version == Version::V2 {
            let at = self.out.align(self.options.grid())?;
            let end = self.manifest_v2(at)?;
            self.out.put(&end)?;
            return self.completed();
        }
        let start = self.out.position;
        let Self { out, root, index, options, .. } = &mut self;
        root.put(index, options.version, |piece| out.put(piece))?;
        let found = self.out.position.saturating_sub(start);
        Limits::default().check(Limit::ManifestBytes, "manifest size in bytes", found)?;
        self.out.put(&footer(found))?;
        self.completed()
    }

    /// Returns the manifest and the footer of generation 2, of which the manifest stands at an offset:
    /// once it is proved that readers take them.
    fn manifest_v2(&self, at: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.root.emit_v2(&self.index, &mut bytes);
        let limits = Limits::default();
        limits.check(Limit::ManifestBytes, "manifest size in bytes", bytes.len() as u64)?;
        let footer = Footer::of(at, &bytes);
        let len = footer.manifest.end().saturating_add(v2::FOOTER);
        v2::cbor::check(&bytes).map_err(|broken| broken.into_error(at).given())?;
        Document::check(&bytes, footer.manifest, len, &limits).map_err(Error::given)?;
        bytes.extend_from_slice(&footer.to_bytes());
        Ok(bytes)
    }

    /// Puts the file in its place, where it has one.
    fn completed(self) -> Result<W> {
        let position = self.out.position;
        let mut sink = self.out.sink;
        sink.flush().map_err(|source| Error::Write { offset: position, source })?;
        (self.complete)(&mut sink, &self.options)?;
        Ok(sink)
    }

    pub(super) fn check_finished(&self) -> Result<()> {
        match &self.unfinished {
            None => Ok(()),
            Some(name) => Err(Error::Unfinished { name: name.clone() }),
        }
    }
}

impl WriteOptions {
    /// Starts a file in any sink. Many small writes are made: a `File` wants a `BufWriter`.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] where the alignment is not a multiple of 64 or is over 64 MiB, or the
    /// level is not one of zstd's.
    pub fn write_to<W: Write>(self, sink: W) -> Result<Writer<W>> {
        self.check()?;
        Ok(Writer::start(sink, self, |_, _| Ok(())))
    }

    /// Starts a file that will stand at `path` once it is finished; a failure before leaves what
    /// was there.
    ///
    /// # Errors
    ///
    /// As for [`write_to`](Self::write_to), and where the folder does not let a file be created.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer<NewFile>> {
        self.check()?;
        let file = self.output.create(path)?;
        let mut writer =
            Writer::start(file, self, |file, options| file.commit(options.output.existing));
        if self.version == Version::V2 {
            writer.read_back = Some(|file, extent| Ok(file.source()?.read(extent, "blob")?));
        }
        Ok(writer)
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

/// How much of a manifest is encoded before it is written.
const PIECE: usize = 64 << 10;
