//! The directory at the end of an archive: read once by the `zip` crate, then checked.

use std::{
    collections::HashSet,
    io::{self, BufRead, Read, Seek, SeekFrom},
    ops::Range,
};

use bytes::Bytes;
use tensor_core::{Cursor, Extent, Source};
use zip::{CompressionMethod, ZipArchive, read::ZipFileEntry};

use crate::{
    Error, Fault, Flaw, Kind, Method, Result,
    name::{self, NameFault},
    options::{Options, Symlinks},
};

/// What the directory says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Whether it is a file, a folder or a symbolic link.
    pub kind: Kind,
    /// How its bytes are stored.
    pub method: Method,
    /// Bytes of its content.
    pub size: u64,
    /// Bytes that it takes in the archive, headers not counted.
    pub stored_size: u64,
    /// CRC-32 of its content.
    pub crc32: u32,
    /// The Unix mode with the bits of the type; `None` where none was stored.
    pub mode: Option<u32>,
}

impl Info {
    /// What is said of an entry that is not there.
    pub(crate) const NONE: Self = Self {
        kind: Kind::Folder,
        method: Method::Stored,
        size: 0,
        stored_size: 0,
        crc32: 0,
        mode: None,
    };
}

/// All entries, in the order of the directory and by name.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    records: Vec<Record>,
    names: String,
    /// Positions in `records`, sorted by name.
    by_name: Vec<u32>,
    /// Where the directory starts: entries end before.
    pub(crate) start: u64,
    /// What the strict profile refuses and the lenient one does not.
    pub(crate) flaws: Vec<Flaw>,
}

/// One entry as the directory has it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    name: Range<usize>,
    pub(crate) info: Info,
    pub(crate) flags: u16,
    /// Where its local header starts.
    pub(crate) header: u64,
    /// Where the next local header, or the directory, starts.
    pub(crate) room_end: u64,
    /// Where its header in the directory starts.
    pub(crate) central: u64,
}

impl Directory {
    /// Reads the directory and refuses what no profile allows.
    pub(crate) fn read(source: &Source, options: &Options) -> Result<Self> {
        let ends = EndRecords::find(source)?;
        let limits = &options.limits;
        over("entries of the directory", ends.entries, limits.entries, "entries")?;
        let bytes = limits.directory_bytes;
        over("directory in bytes", ends.directory_bytes, bytes, "directory_bytes")?;
        let malformed = |source: zip::result::ZipError| Error::Directory { source: source.into() };
        let found = ZipArchive::new(SourceCursor::new(source)).map_err(malformed)?;
        let mut directory = Self { start: found.central_directory_start(), ..Self::default() };
        if found.has_duplicate_names() {
            return Err(directory.duplicate(source, ends.position)?.into());
        }
        let metadata = found.metadata();
        for index in 0..metadata.len() {
            directory.add(&metadata.entry(index).map_err(malformed)?, options)?;
        }
        ends.check(source.len(), &mut directory.flaws);
        directory.sort()?;
        directory.bound()?;
        Ok(directory)
    }

    pub(crate) const fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn record(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    pub(crate) fn name(&self, record: &Record) -> &str {
        self.names.get(record.name.clone()).unwrap_or_default()
    }

    /// Returns the position of an entry.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        let found = self.by_name.binary_search_by(|&index| self.name_at(index).cmp(name)).ok()?;
        self.by_name.get(found).map(|&index| index as usize)
    }

    /// Returns the positions of the entries whose names start with `prefix`, sorted by name.
    pub(crate) fn below(&self, prefix: &str) -> impl Iterator<Item = usize> {
        let start = self.by_name.partition_point(|&index| self.name_at(index) < prefix);
        let rest = self.by_name.get(start..).unwrap_or_default();
        let end = rest.partition_point(|&index| self.name_at(index).starts_with(prefix));
        rest.get(..end).unwrap_or_default().iter().map(|&index| index as usize)
    }

    fn name_at(&self, index: u32) -> &str {
        self.records.get(index as usize).map_or("", |record| self.name(record))
    }

    fn add(&mut self, entry: &ZipFileEntry<'_>, options: &Options) -> Result<()> {
        let header = entry.header_start();
        let raw = entry.name_raw();
        let Ok(text) = std::str::from_utf8(raw) else {
            let shown = String::from_utf8_lossy(raw);
            return Err(Flaw::of(shown, header, Fault::Name(NameFault::NotUtf8)).into());
        };
        let refuse = |fault| Err(Flaw::of(text, header, fault).into());
        if let Err(fault) = name::check(text, &options.limits) {
            return refuse(Fault::Name(fault));
        }
        let flags = entry.flags().as_u16();
        if flags & ENCRYPTED != 0 {
            return refuse(Fault::Encrypted);
        }
        let code = method_code(entry.compression());
        let method = Method::from_code(code).filter(|code| options.methods.contains(code));
        let Some(method) = method else {
            let expected = options.methods.iter().map(|method| method.code().to_string());
            let expected = expected.collect::<Vec<_>>().join(" or ");
            return refuse(Fault::Method { found: code, expected });
        };
        let mode = Some(entry.external_attributes() >> 16).filter(|&mode| mode != 0);
        let kind = match mode.unwrap_or_default() & MODE_TYPE {
            _ if text.ends_with('/') => Kind::Folder,
            0 | MODE_FILE => Kind::File,
            MODE_FOLDER => Kind::Folder,
            MODE_SYMLINK if options.symlinks == Symlinks::Kept => Kind::Symlink,
            MODE_SYMLINK => return refuse(Fault::Symlink),
            _ => return refuse(Fault::Special { mode: mode.unwrap_or_default() }),
        };
        let (size, stored) = (entry.size(), entry.compressed_size());
        if kind == Kind::Folder && size != 0 {
            return refuse(Fault::FolderContent { bytes: size });
        }
        if method == Method::Stored && size != stored {
            return refuse(Fault::StoredSize { stored, size });
        }
        if let Err(fault) = name::check_portable(text) {
            self.flaws.push(Flaw::of(text, header, Fault::Unportable(fault)));
        }
        if !text.is_ascii() && flags & UTF8 == 0 {
            self.flaws.push(Flaw::of(text, header, Fault::Utf8Flag));
        }
        let start = self.names.len();
        self.names.push_str(text);
        self.records.push(Record {
            name: start..self.names.len(),
            info: Info { kind, method, size, stored_size: stored, crc32: entry.crc32(), mode },
            flags,
            header,
            room_end: self.start,
            central: entry.central_header_start(),
        });
        Ok(())
    }

    /// Sorts by name; a file that others lie in is refused.
    fn sort(&mut self) -> Result<()> {
        // The limit on entries is far below 2^32.
        self.by_name = (0..u32::try_from(self.records.len()).unwrap_or(u32::MAX)).collect();
        let mut by_name = std::mem::take(&mut self.by_name);
        by_name.sort_by(|&a, &b| self.name_at(a).cmp(self.name_at(b)));
        self.by_name = by_name;
        for (index, record) in self.records.iter().enumerate() {
            let name = self.name(record);
            if record.info.kind == Kind::Folder {
                continue;
            }
            if let Some(other) = self.inside(name).and_then(|other| self.record(other)) {
                let other = self.name(other).to_owned();
                return Err(self.flaw(index, Fault::FileAndFolder { other }).into());
            }
        }
        Ok(())
    }

    /// Returns an entry that lies in `name` as if that were a folder, or is the folder.
    fn inside(&self, name: &str) -> Option<usize> {
        let start = self.by_name.partition_point(|&index| self.name_at(index) <= name);
        // Most names are followed by one that does not start with them.
        let next = *self.by_name.get(start)?;
        if !self.name_at(next).starts_with(name) {
            return None;
        }
        self.below(&format!("{name}/")).next()
    }

    /// Finds the name that stands twice.
    fn duplicate(&self, source: &Source, end: u64) -> Result<Flaw> {
        let directory = source.read(Extent::between(self.start, end), "directory")?;
        let mut cursor = Cursor::new(&directory, self.start);
        let mut seen = HashSet::new();
        loop {
            let header = cursor.take::<CENTRAL_HEADER>("header in the directory")?;
            let field = |at: usize| header.get(at..).and_then(<[u8]>::first_chunk::<2>);
            let field = |at| u64::from(field(at).copied().map_or(0, u16::from_le_bytes));
            let name = cursor.bytes(field(28), "name in the directory")?;
            cursor.bytes(field(30).saturating_add(field(32)), "extra field in the directory")?;
            if !seen.insert(name) {
                let local = header.last_chunk::<4>().copied().map_or(0, u32::from_le_bytes);
                let name = String::from_utf8_lossy(name);
                return Ok(Flaw::of(name, local.into(), Fault::Duplicate));
            }
        }
    }

    /// Finds the room of every entry: up to the next local header, or to the directory. What cannot
    /// lie there shares bytes with something.
    fn bound(&mut self) -> Result<()> {
        let mut by_offset: Vec<usize> = (0..self.records.len()).collect();
        by_offset.sort_by_key(|&index| self.records.get(index).map(|record| record.header));
        let mut room_end = self.start;
        let mut next = None;
        for &index in by_offset.iter().rev() {
            let Some(record) = self.records.get_mut(index) else { continue };
            record.room_end = room_end;
            let header = Extent::new(record.header, LOCAL_HEADER).map(Extent::end);
            let least = header.ok().and_then(|end| {
                end.checked_add(record.name.len() as u64)?.checked_add(record.info.stored_size)
            });
            if least.is_none_or(|end| end > room_end) {
                let end = least.unwrap_or(u64::MAX);
                let other = next.and_then(|next| self.records.get(next));
                let fault = match other {
                    Some(other) => Fault::Overlap { other: self.name(other).to_owned() },
                    None => Fault::IntoDirectory { end, directory: self.start },
                };
                return Err(self.flaw(index, fault).into());
            }
            room_end = record.header;
            next = Some(index);
        }
        if room_end > 0 {
            self.flaws.push(Flaw::archive(0, Fault::Prefix { bytes: room_end }));
        }
        Ok(())
    }

    /// Returns the name of the entry whose local header starts at `offset`.
    pub(crate) fn starting_at(&self, offset: u64) -> Option<&str> {
        self.records.iter().find(|record| record.header == offset).map(|record| self.name(record))
    }

    pub(crate) fn flaw(&self, index: usize, fault: Fault) -> Flaw {
        match self.record(index) {
            Some(record) => Flaw::of(self.name(record), record.header, fault),
            None => Flaw::archive(self.start, fault),
        }
    }
}

fn over(what: &'static str, found: u64, limit: u64, field: &'static str) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    Err(tensor_core::Error::OverLimit { what, found, limit, field }.into())
}

/// The end records in the last bytes of a file. Application note, sections 4.3.14 to 4.3.16.
struct EndRecords {
    /// Where the last one is that fits.
    position: u64,
    /// Where its comment ends.
    end: u64,
    comment: u64,
    count: u64,
    /// What it claims, by the zip64 record where there is one.
    entries: u64,
    directory_bytes: u64,
}

impl EndRecords {
    fn find(source: &Source) -> Result<Self> {
        let longest = END_RECORD.saturating_add(u64::from(u16::MAX));
        let start = source.len().saturating_sub(longest);
        let tail = source.read(Extent::between(start, source.len()), "end record")?;
        let len = source.len();
        let mut found =
            Self { position: len, end: len, comment: 0, count: 0, entries: 0, directory_bytes: 0 };
        for (index, window) in tail.windows(END_SIGNATURE.len()).enumerate() {
            if window != END_SIGNATURE {
                continue;
            }
            let position = start.saturating_add(index as u64);
            let record = tail.get(index..).unwrap_or_default();
            let Ok((entries, directory_bytes, comment)) = Self::parse(record, position) else {
                continue;
            };
            let end = position.saturating_add(END_RECORD).saturating_add(comment);
            if end <= len {
                let count = found.count.saturating_add(1);
                found = Self { position, end, comment, count, entries, directory_bytes };
            }
        }
        found.widen(source)?;
        Ok(found)
    }

    /// Returns the numbers of entries, of bytes of the directory, and of bytes of the comment.
    fn parse(record: &[u8], position: u64) -> tensor_core::Result<(u64, u64, u64)> {
        let mut cursor = Cursor::new(record, position);
        cursor.take::<10>("end record")?;
        let entries = cursor.u16("number of entries")?;
        let directory = cursor.u32("bytes of the directory")?;
        cursor.u32("start of the directory")?;
        Ok((entries.into(), directory.into(), cursor.u16("bytes of the comment")?.into()))
    }

    /// Takes the numbers of the zip64 record, where there is one.
    fn widen(&mut self, source: &Source) -> Result<()> {
        let Some(locator) = self.position.checked_sub(LOCATOR) else { return Ok(()) };
        let locator = source.read(Extent::new(locator, LOCATOR)?, "zip64 locator")?;
        let Some(rest) = locator.strip_prefix(b"PK\x06\x07") else { return Ok(()) };
        let at = rest.get(4..).and_then(<[u8]>::first_chunk::<8>).copied();
        let at = at.map_or(u64::MAX, u64::from_le_bytes);
        // A record that is not there is found out by whoever parses the directory.
        let Ok(extent) = Extent::new(at, ZIP64_RECORD) else { return Ok(()) };
        let Ok(record) = source.read(extent, "zip64 end record") else { return Ok(()) };
        let number = |at: usize| record.get(at..).and_then(<[u8]>::first_chunk::<8>).copied();
        self.entries = number(32).map_or(self.entries, u64::from_le_bytes);
        self.directory_bytes = number(40).map_or(self.directory_bytes, u64::from_le_bytes);
        Ok(())
    }

    fn check(&self, len: u64, flaws: &mut Vec<Flaw>) {
        if self.count > 1 {
            flaws.push(Flaw::archive(self.position, Fault::EndRecords { found: self.count }));
        }
        if self.comment > 0 {
            flaws.push(Flaw::archive(self.position, Fault::Comment { bytes: self.comment }));
        }
        let behind = len.saturating_sub(self.end);
        if behind > 0 {
            flaws.push(Flaw::archive(self.end, Fault::Suffix { bytes: behind }));
        }
    }
}

#[expect(deprecated, reason = "the number of a method that the crate does not know is asked for")]
const fn method_code(method: CompressionMethod) -> u16 {
    method.to_u16()
}

/// A source as a stream with a position of its own, read in blocks.
#[derive(Clone)]
struct SourceCursor {
    source: Source,
    position: u64,
    block: Bytes,
    block_start: u64,
}

impl SourceCursor {
    fn new(source: &Source) -> Self {
        Self { source: source.clone(), position: 0, block: Bytes::new(), block_start: 0 }
    }
}

impl BufRead for SourceCursor {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let within = self.position.checked_sub(self.block_start);
        let is_loaded = within.is_some_and(|within| within < self.block.len() as u64);
        if !is_loaded && self.position < self.source.len() {
            let start = self.position.checked_div(BLOCK).unwrap_or(0).saturating_mul(BLOCK);
            let end = start.saturating_add(BLOCK).min(self.source.len());
            let block = self.source.read(Extent::between(start, end), "directory");
            self.block = block.map_err(io::Error::other)?;
            self.block_start = start;
        }
        let within = self.position.saturating_sub(self.block_start);
        Ok(usize::try_from(within).ok().and_then(|at| self.block.get(at..)).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.position = self.position.saturating_add(amount as u64);
    }
}

impl Read for SourceCursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.fill_buf()?;
        let taken = ready.read(out)?;
        self.consume(taken);
        Ok(taken)
    }
}

impl Seek for SourceCursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.source.len().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

// Application note, section 4.4.4.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
pub(crate) const DESCRIPTOR: u16 = 1 << 3;
pub(crate) const UTF8: u16 = 1 << 11;
// What stat(2) calls S_IFMT and its values.
const MODE_TYPE: u32 = 0o170_000;
const MODE_FILE: u32 = 0o100_000;
const MODE_FOLDER: u32 = 0o040_000;
const MODE_SYMLINK: u32 = 0o120_000;
/// Bytes of a local header without its name and extra fields. Section 4.3.7.
pub(crate) const LOCAL_HEADER: u64 = 30;
/// Bytes of a header in the directory without name, extra fields and comment. Section 4.3.12.
const CENTRAL_HEADER: usize = 46;
// Sections 4.3.14 to 4.3.16.
const ZIP64_RECORD: u64 = 56;
const LOCATOR: u64 = 20;
const END_RECORD: u64 = 22;
const END_SIGNATURE: [u8; 4] = *b"PK\x05\x06";
/// What is read at once, in bytes.
const BLOCK: u64 = 64 << 10;
