//! Writing archives, front to back. ZIP application note, version 6.3.

pub(crate) mod append;
mod encode;
pub(crate) mod encoded;
pub(crate) mod entry_writer;
pub(crate) mod headers;
mod names;
pub(crate) mod options;
mod pipeline;

use std::{
    fmt,
    io::{self, BufRead, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{
    Limit, Limits,
    digest::Digest,
    output::{NewFile, Output},
};

use crate::{
    Encoded, EntryOptions, EntryWriter, Error, Info, Kind, Method, Result, TargetFault, WriteFault,
    name,
    write::headers::{Directory, Header, Layout, Sums, SumsPlace},
    write::names::Names,
    write::options::check_alignment,
};

/// Writes an archive to any sink, from front to back.
///
/// The same calls make the same bytes on every machine: entries in the order in which they are
/// added, times and modes fixed, no comments. The archive is complete once
/// [`finish`](Self::finish) has returned; before that it has no directory, and nothing opens it.
/// Entries whose name or options are refused leave the writer as it was. Once a write has failed,
/// or an entry was begun and dropped, it refuses to go on.
///
/// # Examples
///
/// ```
/// use model_archive::{ArchiveWriter, EntryOptions};
///
/// let mut archive = ArchiveWriter::new(Vec::new());
/// let written = archive.add("weights", &[0; 100], &EntryOptions::default().alignment(64))?;
/// assert_eq!(written.data_offset, 64);
/// let archive: Vec<u8> = archive.finish()?;
/// # Ok::<(), model_archive::Error>(())
/// ```
#[must_use = "an archive without its directory cannot be opened; call finish"]
pub struct ArchiveWriter<W: Write> {
    sink: W,
    layout: Layout,
    /// Bytes that are in the sink.
    position: u64,
    names: Names,
    /// The records of all entries.
    directory: Vec<u8>,
    entries: u64,
    /// The entry that was begun and not finished.
    unfinished: Option<String>,
    comment: Bytes,
    output: Output,
    /// What is done with the sink once all is in it.
    put_in_place: fn(&mut W, Output) -> tensor_core::Result<()>,
}

/// What was written of an entry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// Its name.
    pub name: String,
    /// How it is stored.
    pub method: Method,
    /// Bytes of its content.
    pub size: u64,
    /// Bytes in the archive.
    pub stored_size: u64,
    /// The checksum of its content.
    pub crc32: u32,
    /// The digest of its content, where the options ask for one.
    pub digest: Option<Digest>,
    /// Where its data starts, in bytes from the start of the archive.
    pub data_offset: u64,
}

/// What is known of an entry whose stored bytes are copied.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    /// What it is.
    pub kind: Kind,
    /// How it is stored.
    pub method: Method,
    /// Bytes of its content.
    pub size: u64,
    /// Bytes in the archive.
    pub stored_size: u64,
    /// The checksum of its content.
    pub crc32: u32,
}

impl Raw {
    /// Reads content, and returns what stands for it where it is stored as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where it cannot be read.
    pub fn stored(mut content: impl BufRead) -> Result<Self> {
        let (mut sum, mut size) = (crc32fast::Hasher::new(), 0_u64);
        loop {
            let ready = match content.fill_buf() {
                Ok([]) => break,
                Ok(ready) => ready,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(Error::reading(source)),
            };
            let read = ready.len();
            sum.update(ready);
            size = size.saturating_add(read as u64);
            content.consume(read);
        }
        let (kind, method, crc32) = (Kind::File, Method::Stored, sum.finalize());
        Ok(Self { kind, method, size, stored_size: size, crc32 })
    }
}

impl From<Info> for Raw {
    fn from(info: Info) -> Self {
        let Info { kind, method, size, stored_size, crc32, .. } = info;
        Self { kind, method, size, stored_size, crc32 }
    }
}

impl ArchiveWriter<NewFile> {
    /// Starts an archive that will stand at `path` once it is finished.
    ///
    /// # Errors
    ///
    /// As for [`Output::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::create_as(path, Output::default())
    }

    /// Like [`create`](Self::create), but replaces what stands there, and forces the archive to the
    /// disk, as `output` says.
    ///
    /// # Errors
    ///
    /// As for [`Output::create`].
    pub fn create_as(path: impl AsRef<Path>, output: Output) -> Result<Self> {
        let mut writer = Self::new(output.create(path)?);
        writer.output = output;
        writer.put_in_place = |file, output| file.commit(output.existing);
        Ok(writer)
    }
}

impl<W: Write> ArchiveWriter<W> {
    /// Starts an archive in any sink; nothing is written before the first entry.
    ///
    /// Large pieces are written as they are, and a few small ones for each entry: a `File` wants a
    /// `BufWriter`, a [`NewFile`](tensor_core::output::NewFile) has one.
    pub fn new(sink: W) -> Self {
        Self::behind(sink, 0)
    }

    /// Starts an archive behind `position` bytes that are in the sink already. Offsets and
    /// alignment count them, as those of an archive at the end of another file do.
    pub fn behind(sink: W, position: u64) -> Self {
        Self {
            sink,
            layout: Layout::default(),
            position,
            names: Names::default(),
            directory: Vec::new(),
            entries: 0,
            unfinished: None,
            comment: Bytes::new(),
            output: Output::default(),
            put_in_place: |_, _| Ok(()),
        }
    }

    /// Sets whose records those of the archive are like; to be called before the first entry.
    ///
    /// In that of PyTorch, alignments that are asked for do not count, and there are neither
    /// streams nor symbolic links. Names may be ones that are not portable.
    pub fn layout(mut self, layout: Layout) -> Self {
        (self.layout, self.names.layout) = (layout, layout);
        self
    }

    /// Sets the comment of the archive, which was read from another.
    pub(crate) fn comment(mut self, comment: Bytes) -> Self {
        self.comment = comment;
        self
    }

    /// Adds an entry that is in the archive already to the directory, by its record there.
    pub(crate) fn list(&mut self, name: &str, record: &[u8]) {
        self.names.note(name);
        self.directory.extend_from_slice(record);
        self.entries = self.entries.saturating_add(1);
    }

    /// Writes a file whose content is in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where the name or the options are refused; [`Error::Io`] where the sink
    /// fails; [`Error::Unfinished`] where it has failed before; [`Error::Core`] where there are more
    /// entries than [`Limits`] let a reader take.
    pub fn add(&mut self, name: &str, content: &[u8], options: &EntryOptions) -> Result<Written> {
        self.add_encoded(Encoded::new(name, content, options)?)
    }

    /// Writes a file that was compressed before.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn add_encoded(&mut self, encoded: Encoded<'_>) -> Result<Written> {
        self.begin(&encoded.name, encoded.kind)?;
        self.append(encoded)
    }

    /// Writes a folder, whose name may end in a slash and always does in the archive.
    ///
    /// Folders need no entry for what lies in them to be unpacked.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn add_folder(&mut self, name: &str) -> Result<Written> {
        let name = format!("{}/", name.strip_suffix('/').unwrap_or(name));
        self.add_encoded(Encoded::plain(&name, Kind::Folder, &[]))
    }

    /// Writes a symbolic link.
    ///
    /// The target is the name of another entry as seen from the folder of the link, such as
    /// `../weights`. That there is such an entry is not checked.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add); [`WriteFault::Target`] where the target is absolute, leads out of
    /// the archive, is not a path of plain components, or is longer than [`Limits`] let a reader take.
    pub fn add_symlink(&mut self, name: &str, target: &str) -> Result<Written> {
        let limit = Limits::default().name_bytes;
        let fault = match name::resolve(name, target) {
            Ok(_) if target.len() as u64 > limit => Some(TargetFault::Long(limit)),
            resolved => resolved.err(),
        };
        if let Some(fault) = fault {
            let target = target.to_owned();
            return Err(Error::write(name, WriteFault::Target { target, fault }));
        }
        self.add_encoded(Encoded::plain(name, Kind::Symlink, target.as_bytes()))
    }

    /// Writes an entry of another archive, whose bytes stay compressed as they are.
    ///
    /// Its data starts at a multiple of `alignment` bytes from the start of the archive, whatever
    /// the method. Neither the data nor the checksum is looked at. A file whose size and checksum
    /// are known can be written this way too: its header is then complete, as that of a streamed
    /// one is not.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add); [`WriteFault::Size`] where `stored` has another number of bytes
    /// than `raw` says, or `raw` contradicts itself; [`Error::Io`] where `stored` cannot be read.
    pub fn copy_raw(
        &mut self,
        name: &str,
        raw: Raw,
        alignment: u32,
        stored: impl BufRead,
    ) -> Result<Written> {
        let Raw { kind, method, size, stored_size, crc32 } = raw;
        let refused = |fault| Error::write(name, fault);
        let alignment = check_alignment(alignment).map_err(refused)?;
        let expected = match (kind, method) {
            (Kind::Folder, _) => 0,
            (_, Method::Stored) => size,
            _ => stored_size,
        };
        if stored_size != expected {
            return Err(refused(WriteFault::Size { found: stored_size, expected }));
        }
        self.begin(name, kind)?;
        let sums = Sums { crc32, size, stored_size };
        let (header, data_offset) =
            self.put_header(name, kind, method, alignment, sums, SumsPlace::Local)?;
        let copied = self.copy(stored, stored_size)?;
        if copied != stored_size {
            return Err(refused(WriteFault::Size { found: copied, expected: stored_size }));
        }
        self.commit(header, data_offset, None)
    }

    /// Copies a stream and returns its length in bytes; of one that is too long, no more than shows
    /// it.
    fn copy(&mut self, mut stored: impl BufRead, expected: u64) -> Result<u64> {
        let mut copied = 0_u64;
        while copied <= expected {
            let ready = match stored.fill_buf() {
                Ok([]) => break,
                Ok(ready) => ready,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(Error::reading(source)),
            };
            let read = ready.len();
            copied = copied.saturating_add(read as u64);
            if copied <= expected {
                self.put(ready)?;
            }
            stored.consume(read);
        }
        Ok(copied)
    }

    /// Begins a file whose content is then written to it in pieces of any size.
    ///
    /// Content of up to 1 MiB makes the same bytes as [`add`](Self::add) does. Of a longer one, the
    /// size and the checksum stand behind the data.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn stream(&mut self, name: &str, options: &EntryOptions) -> Result<EntryWriter<'_, W>> {
        let plan = options.plan().map_err(|fault| Error::write(name, fault))?;
        self.refuse_in_torch(name, "streams")?;
        self.begin(name, Kind::File)?;
        Ok(EntryWriter::new(self, name, plan, options))
    }

    /// Tells whether an entry of a name was added; that of a folder ends in a slash.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns how many bytes are in the sink.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Writes the directory, flushes the sink and returns it; a file that was
    /// [created](Self::create) takes its place.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]; [`Error::Io`] where the sink fails; [`Error::Core`] where the file
    /// cannot take its place.
    pub fn finish(mut self) -> Result<W> {
        self.check_finished()?;
        let records = std::mem::take(&mut self.directory);
        let (entries, len, offset) = (self.entries, records.len() as u64, self.position);
        self.put(&records)?;
        let end = Directory { entries, len, offset }.end(self.layout, &self.comment);
        self.put(&end)?;
        self.sink.flush().map_err(Error::writing)?;
        (self.put_in_place)(&mut self.sink, self.output)?;
        Ok(self.sink)
    }

    /// Takes in the name of the next entry; from here until it is committed, nothing else can be
    /// written.
    fn begin(&mut self, name: &str, kind: Kind) -> Result<()> {
        self.check_finished()?;
        if kind == Kind::Symlink {
            self.refuse_in_torch(name, "symbolic links")?;
        }
        let limits = Limits::default();
        limits.check(Limit::Entries, "number of entries", self.entries.saturating_add(1))?;
        let bytes = (self.directory.len() as u64).saturating_add(RECORD);
        limits.check(Limit::DirectoryBytes, "length of the directory in bytes", bytes)?;
        self.names.insert(name, kind).map_err(|fault| Error::write(name, fault))?;
        self.unfinished = Some(name.to_owned());
        Ok(())
    }

    fn refuse_in_torch(&self, name: &str, what: &'static str) -> Result<()> {
        match self.layout {
            Layout::Plain => Ok(()),
            Layout::PyTorch => Err(Error::write(name, WriteFault::Layout { what })),
        }
    }

    fn check_finished(&self) -> Result<()> {
        match &self.unfinished {
            None => Ok(()),
            Some(entry) => Err(Error::Unfinished { entry: entry.clone() }),
        }
    }

    /// Writes the entry that was begun, all at once.
    pub(crate) fn append(&mut self, encoded: Encoded<'_>) -> Result<Written> {
        let Encoded { name, kind, method, alignment, sums, digest, stored } = encoded;
        let (header, data_offset) =
            self.put_header(&name, kind, method, alignment, sums, SumsPlace::Local)?;
        self.put(&stored)?;
        self.commit(header, data_offset, digest)
    }

    /// Writes a local header, and returns it with the offset of what follows it.
    pub(crate) fn put_header(
        &mut self,
        name: &str,
        kind: Kind,
        method: Method,
        alignment: u32,
        sums: Sums,
        sums_place: SumsPlace,
    ) -> Result<(Header, u64)> {
        let (layout, name, offset) = (self.layout, name.to_owned(), self.position);
        let sums_place = match layout {
            Layout::Plain => sums_place,
            // All sums are known: there are no streams.
            Layout::PyTorch => layout.sums_place(sums, offset),
        };
        let header = Header { layout, name, kind, method, sums, offset, sums_place };
        self.put(&header.local(alignment))?;
        Ok((header, self.position))
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes).map_err(Error::writing)?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Adds the entry that was begun to the directory.
    pub(crate) fn commit(
        &mut self,
        header: Header,
        data_offset: u64,
        digest: Option<Digest>,
    ) -> Result<Written> {
        self.put(&header.descriptor())?;
        self.directory.extend(header.record());
        self.entries = self.entries.saturating_add(1);
        self.unfinished = None;
        let Header { name, method, sums: Sums { crc32, size, stored_size }, .. } = header;
        Ok(Written { name, method, size, stored_size, crc32, digest, data_offset })
    }
}

impl<W: Write> fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveWriter")
            .field("position", &self.position)
            .field("entries", &self.entries)
            .field("unfinished", &self.unfinished)
            .finish_non_exhaustive()
    }
}

/// The longest record of a directory: its fields, a name and a zip64 field, rounded up.
const RECORD: u64 = 8 << 10;
