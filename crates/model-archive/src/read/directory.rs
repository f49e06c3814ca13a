//! The directory at the end of an archive: read once by the `zip` crate, then checked.

use std::{
    collections::HashSet,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
};

use bytes::Bytes;
use tensor_core::{Cursor, Extent, Limit, Profile, Source};
use zip::{
    CompressionMethod, ZipArchive,
    read::{ArchiveOffset, ZipFileEntry},
};

use crate::{
    Class, Error, Fault, FaultAt, Kind, Method, ReadOptions, Result,
    name::{self, NameFault},
    read::{
        end::{BYTES, ENTRIES, End},
        extra::Extra,
    },
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
    /// Positions in `records`, sorted by where the local header starts.
    by_offset: Vec<u32>,
    /// Where the directory starts: entries end before.
    pub(crate) start: u64,
    /// Where the headers of the directory end.
    pub(crate) end: u64,
    /// By how many bytes offsets in the file are too small.
    pub(crate) shift: u64,
    /// Where the comment of the archive is.
    pub(crate) comment: Extent,
    /// What the strict profile refuses and the lenient one does not.
    pub(crate) faults: Vec<FaultAt>,
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
    /// The entry whose local header is next.
    next: Option<u32>,
}

impl Directory {
    /// Reads the directory and refuses what no profile allows.
    pub(crate) fn read(source: &Source, options: &ReadOptions) -> Result<Self> {
        let mut faults = Vec::new();
        let End { directory: extent, entries, shift, tail, comment } =
            End::read(source, &options.limits, &mut faults)?;
        let headers = Extent::first(extent.len()).slice(&tail).unwrap_or_default();
        if entries > 0 && !headers.starts_with(b"PK\x01\x02") {
            let text = format!("there is no header at byte {}", extent.offset());
            return Err(Error::Directory { source: text.into(), has_end: true });
        }
        let (start, end) = (extent.offset(), extent.end());
        let mut directory = Self { start, end, shift, comment, faults, ..Self::default() };
        let stream = Tail { bytes: tail.clone(), start: extent.offset(), position: 0 };
        let malformed = |source: zip::result::ZipError| Error::Directory {
            source: source.into(),
            has_end: true,
        };
        let config = zip::read::Config { archive_offset: ArchiveOffset::Known(shift) };
        let found = ZipArchive::with_config(config, stream).map_err(malformed)?;
        let mut cursor = Cursor::new(headers, extent.offset());
        if found.has_duplicate_names() {
            return Err(Self::duplicate(cursor)?);
        }
        let metadata = found.metadata();
        let is_there = entries == 0 || found.central_directory_start() == extent.offset();
        if metadata.len() as u64 != entries || !is_there {
            let text = format!("{entries} headers are not all at byte {}", extent.offset());
            return Err(Error::Directory { source: text.into(), has_end: true });
        }
        for index in 0..metadata.len() {
            let entry = metadata.entry(index).map_err(malformed)?;
            directory.add(&entry, &Header::parse(&mut cursor)?, options)?;
        }
        let bytes = cursor.rest().len() as u64;
        if bytes > 0 {
            directory.faults.push(FaultAt::archive(cursor.offset(), Fault::Gap { bytes }));
        }
        directory.sort()?;
        directory.bound()?;
        Ok(directory)
    }

    /// Refuses what other options than those that it was read with do not allow.
    pub(crate) fn check(&self, options: &ReadOptions) -> Result<()> {
        let bytes = Extent::between(self.start, self.end).len();
        options.limits.check(Limit::Entries, ENTRIES, self.len() as u64)?;
        options.limits.check(Limit::DirectoryBytes, BYTES, bytes)?;
        for (index, record) in self.records.iter().enumerate() {
            let name = name::check(self.name(record), &options.limits).map_err(Fault::Name);
            name.and_then(|()| options.method(record.info.method.code()))
                .and_then(|_| options.check_kind(record.info.kind))
                .map_err(|fault| self.fault_at(index, fault))?;
        }
        Ok(())
    }

    /// Refuses what a profile does not allow.
    pub(crate) fn check_profile(&self, profile: Profile) -> Result<()> {
        let is_refused = |found: &&FaultAt| found.fault.class() >= Class::Strict;
        match self.faults.iter().find(is_refused) {
            Some(found) if profile == Profile::Strict => Err(found.clone().into()),
            _ => Ok(()),
        }
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

    fn add(
        &mut self,
        entry: &ZipFileEntry<'_>,
        stored: &Header<'_>,
        options: &ReadOptions,
    ) -> Result<()> {
        let header = entry.header_start();
        let Ok(text) = std::str::from_utf8(stored.name) else {
            let shown = String::from_utf8_lossy(stored.name);
            return Err(FaultAt::entry(shown, header, Fault::Name(NameFault::NotUtf8)).into());
        };
        let refuse = |fault| Err(FaultAt::entry(text, header, fault).into());
        if let Err(fault) = name::check(text, &options.limits) {
            return refuse(Fault::Name(fault));
        }
        let flags = stored.flags;
        if ![0, u16::MAX].contains(&stored.disk) {
            return refuse(Fault::Disk { found: stored.disk });
        }
        if flags & ENCRYPTED != 0 {
            return refuse(Fault::Encrypted);
        }
        let method = match options.method(method_code(entry.compression())) {
            Ok(method) => method,
            Err(fault) => return refuse(fault),
        };
        let mode = Some(entry.external_attributes() >> 16).filter(|&mode| mode != 0);
        let kind = match mode.unwrap_or_default() & MODE_TYPE {
            0 | MODE_FILE if text.ends_with('/') => Kind::Folder,
            0 | MODE_FILE => Kind::File,
            MODE_FOLDER => Kind::Folder,
            MODE_SYMLINK if text.ends_with('/') => return refuse(Fault::Symlink),
            MODE_SYMLINK => Kind::Symlink,
            _ => return refuse(Fault::Special { mode: mode.unwrap_or_default() }),
        };
        if let Err(fault) = options.check_kind(kind) {
            return refuse(fault);
        }
        let (size, stored_size) = (entry.size(), entry.compressed_size());
        if kind == Kind::Folder && size != 0 {
            return refuse(Fault::FolderContent { bytes: size });
        }
        if method == Method::Stored && size != stored_size {
            return refuse(Fault::StoredSize { stored: stored_size, size });
        }
        if let Err(fault) = name::check_portable(text) {
            self.faults.push(FaultAt::entry(text, header, Fault::Unportable(fault)));
        }
        if !text.is_ascii() && flags & UTF8 == 0 {
            self.faults.push(FaultAt::entry(text, header, Fault::Utf8Flag));
        }
        if !stored.extra.is_empty() {
            let extra = Extra::parse(stored.extra);
            if let Some(fault) = extra.fault(text) {
                self.faults.push(FaultAt::entry(text, header, fault));
            }
        }
        let start = self.names.len();
        self.names.push_str(text);
        self.records.push(Record {
            name: start..self.names.len(),
            info: Info { kind, method, size, stored_size, crc32: entry.crc32(), mode },
            flags,
            header,
            room_end: self.start,
            next: None,
        });
        Ok(())
    }

    /// Sorts by name and by place; a name that stands twice is refused, and a file that others lie
    /// in.
    fn sort(&mut self) -> Result<()> {
        // The limit on entries is far below 2^32.
        let mut by_name: Vec<u32> =
            (0..u32::try_from(self.records.len()).unwrap_or(u32::MAX)).collect();
        let mut by_offset = by_name.clone();
        by_name.sort_by(|&a, &b| self.name_at(a).cmp(self.name_at(b)));
        by_offset.sort_by_key(|&index| self.record(index as usize).map(|record| record.header));
        (self.by_name, self.by_offset) = (by_name, by_offset);
        for pair in self.by_name.windows(2) {
            let &[first, second] = pair else { continue };
            let (name, next) = (self.name_at(first), self.name_at(second));
            // Most names are followed by one that does not start with them.
            let Some(rest) = next.strip_prefix(name) else { continue };
            if rest.is_empty() {
                return Err(self.fault_at(second as usize, Fault::Duplicate).into());
            }
            if self.record(first as usize).is_some_and(|file| file.info.kind == Kind::Folder) {
                continue;
            }
            // What lies in it need not come right behind it: "a" is followed by "a b" and "a/b".
            if let Some(other) = self.below(&format!("{name}/")).next() {
                let other = self.record(other).map_or("", |other| self.name(other)).to_owned();
                return Err(self.fault_at(first as usize, Fault::FileAndFolder { other }).into());
            }
        }
        Ok(())
    }

    /// Finds the name that stands twice, be it in an extra field, which the parser prefers.
    fn duplicate(mut cursor: Cursor<'_>) -> Result<Error> {
        let mut seen = HashSet::new();
        loop {
            let position = cursor.offset();
            let header = Header::parse(&mut cursor)?;
            let name = String::from_utf8_lossy(header.name).into_owned();
            let second = Extra::parse(header.extra).name.filter(|second| *second != name);
            for name in [Some(name), second].into_iter().flatten() {
                if seen.contains(&name) {
                    return Ok(FaultAt::entry(name, position, Fault::Duplicate).into());
                }
                seen.insert(name);
            }
        }
    }

    /// Finds the room of every entry: up to the next local header, or to the directory. What cannot
    /// lie there shares bytes with something.
    fn bound(&mut self) -> Result<()> {
        let mut room_end = self.start;
        let mut next = None;
        for &index in self.by_offset.iter().rev() {
            let Some(record) = self.records.get_mut(index as usize) else { continue };
            record.room_end = room_end;
            record.next = next;
            let header = Extent::new(record.header, LOCAL_HEADER).map(Extent::end);
            let least = header.ok().and_then(|end| {
                end.checked_add(record.name.len() as u64)?.checked_add(record.info.stored_size)
            });
            if least.is_none_or(|end| end > room_end) {
                return Err(self.overlap(index as usize, least.unwrap_or(u64::MAX)).into());
            }
            room_end = record.header;
            next = Some(index);
        }
        if room_end > 0 {
            self.faults.push(FaultAt::archive(0, Fault::Prefix { bytes: room_end }));
        }
        Ok(())
    }

    /// Returns the fault of an entry that ends at `end`, where it has no room any more.
    pub(crate) fn overlap(&self, index: usize, end: u64) -> FaultAt {
        let next = self.record(index).and_then(|record| self.record(record.next? as usize));
        let fault = match next {
            Some(next) => Fault::Overlap { other: self.name(next).to_owned() },
            None => Fault::IntoDirectory { end, directory: self.start },
        };
        self.fault_at(index, fault)
    }

    /// Returns the positions of all entries in the order of their local headers.
    pub(crate) fn by_offset(&self) -> impl Iterator<Item = usize> {
        self.by_offset.iter().map(|&index| index as usize)
    }

    pub(crate) fn fault_at(&self, index: usize, fault: Fault) -> FaultAt {
        match self.record(index) {
            Some(record) => FaultAt::entry(self.name(record), record.header, fault),
            None => FaultAt::archive(self.start, fault),
        }
    }
}

#[expect(deprecated, reason = "the number of a method that the crate does not know is asked for")]
const fn method_code(method: CompressionMethod) -> u16 {
    method.to_u16()
}

/// A header of the directory as it stands there: what the `zip` crate does not hand out, or puts
/// something else in the place of. Application note, section 4.3.12.
pub(crate) struct Header<'a> {
    flags: u16,
    disk: u16,
    name: &'a [u8],
    extra: &'a [u8],
}

impl<'a> Header<'a> {
    pub(crate) fn parse(cursor: &mut Cursor<'a>) -> tensor_core::Result<Self> {
        cursor.take::<8>("header in the directory")?;
        let flags = cursor.u16("flags")?;
        cursor.take::<18>("header in the directory")?;
        let name = cursor.u16("length of the name")?;
        let extra = cursor.u16("length of the extra field")?;
        let comment = cursor.u16("length of the comment")?;
        let disk = cursor.u16("disk")?;
        cursor.take::<10>("header in the directory")?;
        let name = cursor.bytes(name.into(), "name in the directory")?;
        let extra = cursor.bytes(extra.into(), "extra field in the directory")?;
        cursor.bytes(comment.into(), "comment in the directory")?;
        Ok(Self { flags, disk, name, extra })
    }
}

/// The end of a file as a stream, with zeros before it: the parser finds the directory that was
/// found before, or none.
struct Tail {
    bytes: Bytes,
    start: u64,
    position: u64,
}

impl Read for Tail {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let before = self.start.saturating_sub(self.position);
        let taken = if before > 0 {
            let taken = out.len().min(usize::try_from(before).unwrap_or(usize::MAX));
            out.get_mut(..taken).unwrap_or_default().fill(0);
            taken
        } else {
            let at = usize::try_from(self.position.saturating_sub(self.start));
            at.ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default().read(out)?
        };
        self.position = self.position.saturating_add(taken as u64);
        Ok(taken)
    }
}

impl Seek for Tail {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let end = self.start.saturating_add(self.bytes.len() as u64);
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => end.checked_add_signed(offset),
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
