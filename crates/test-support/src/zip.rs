//! ZIP archives built field by field, so that a test changes one field of a good archive and the
//! reason of a refusal is visible in it.
//!
//! ```
//! use test_support::zip::Zip;
//!
//! let mut zip = Zip::of(&[("a.txt", b"hello"), ("b.txt", b"world")]);
//! zip.entries[1].local.name = b"c.txt".to_vec();
//! let bytes = zip.to_bytes();
//! assert_eq!(bytes[..4], *b"PK\x03\x04");
//! ```

use tensor_core::CursorMut;

/// An archive: entries, directory, end records. What is `None` is filled in as it should be.
#[derive(Clone, Debug, Default)]
pub struct Zip {
    /// Bytes before the first entry.
    pub prefix: Vec<u8>,
    /// Whether offsets count from behind the prefix, as where an archive was put behind a program.
    pub is_shifted: bool,
    /// The entries, in the order of the file and of the directory.
    pub entries: Vec<Entry>,
    /// Bytes behind the last header of the directory that belong to it.
    pub directory_rest: Vec<u8>,
    /// The zip64 end record and its locator; left out where `None`.
    pub zip64: Option<Zip64End>,
    /// The end record.
    pub end: End,
    /// Bytes behind the comment.
    pub suffix: Vec<u8>,
}

/// An entry: what stands at its place, and its header in the directory.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Bytes before the local header.
    pub gap: Vec<u8>,
    /// Whether the local header is left out.
    pub no_local: bool,
    /// The local header.
    pub local: Header,
    /// The stored bytes.
    pub data: Vec<u8>,
    /// The data descriptor, as it stands there.
    pub descriptor: Vec<u8>,
    /// Whether the header in the directory is left out.
    pub is_unlisted: bool,
    /// The header in the directory.
    pub central: Header,
    /// Its fields that a local header does not have.
    pub listing: Listing,
}

/// The fields that both headers of an entry have. Application note, sections 4.3.7 and 4.3.12.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// `PK\x03\x04` or `PK\x01\x02`.
    pub signature: [u8; 4],
    /// Version needed to extract.
    pub needed: u16,
    /// General purpose bits.
    pub flags: u16,
    /// Compression method.
    pub method: u16,
    /// Time and date, as MS-DOS has them.
    pub time: u32,
    /// CRC-32 of the content.
    pub crc32: u32,
    /// Bytes of the stored data.
    pub stored_size: u32,
    /// Bytes of the content.
    pub size: u32,
    /// The name.
    pub name: Vec<u8>,
    /// The length of the name; that of `name` where `None`.
    pub name_len: Option<u16>,
    /// The extra fields; [`extra`] makes one.
    pub extra: Vec<u8>,
    /// The length of the extra fields; that of `extra` where `None`.
    pub extra_len: Option<u16>,
}

/// The fields that only a header in the directory has. Application note, section 4.3.12.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Version and system that made it; 3 in the upper byte is Unix.
    pub made_by: u16,
    /// The disk on which the entry starts.
    pub disk: u16,
    /// External attributes; the Unix mode in the upper 16 bits.
    pub external: u32,
    /// Where the local header starts.
    pub offset: Option<u32>,
    /// The comment of the entry.
    pub comment: Vec<u8>,
}

/// The end record. Application note, section 4.3.16.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The number of this disk.
    pub disk: u16,
    /// The disk on which the directory starts.
    pub directory_disk: u16,
    /// Entries on this disk; as `entries` where `None`.
    pub entries_here: Option<u16>,
    /// Entries in all.
    pub entries: Option<u16>,
    /// Bytes of the directory.
    pub directory_bytes: Option<u32>,
    /// Where the directory starts.
    pub directory_offset: Option<u32>,
    /// The comment.
    pub comment: Vec<u8>,
    /// The length of the comment.
    pub comment_len: Option<u16>,
}

/// The zip64 end record and its locator. Application note, sections 4.3.14 and 4.3.15.
#[derive(Clone, Debug, Default)]
pub struct Zip64End {
    /// Bytes of the record behind this field; 44 and those of `rest` where `None`.
    pub record_size: Option<u64>,
    /// The number of this disk.
    pub disk: u32,
    /// The disk on which the directory starts.
    pub directory_disk: u32,
    /// Entries on this disk; as `entries` where `None`.
    pub entries_here: Option<u64>,
    /// Entries in all.
    pub entries: Option<u64>,
    /// Bytes of the directory.
    pub directory_bytes: Option<u64>,
    /// Where the directory starts.
    pub directory_offset: Option<u64>,
    /// The extensible data of the record.
    pub rest: Vec<u8>,
    /// The disk on which the record is, in the locator.
    pub locator_disk: u32,
    /// Where the record starts, in the locator.
    pub locator_offset: Option<u64>,
    /// The number of disks, in the locator; 1 where `None`.
    pub locator_disks: Option<u32>,
}

impl Zip {
    /// Makes an archive of files that are stored as they are.
    #[must_use]
    pub fn of(files: &[(&str, &[u8])]) -> Self {
        let entries = files.iter().map(|(name, content)| Entry::stored(name, content)).collect();
        Self { entries, ..Self::default() }
    }

    /// Puts the parts one behind another.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = self.prefix.clone();
        let base = if self.is_shifted { self.prefix.len() } else { 0 };
        let mut directory = Vec::new();
        let mut listed = 0_u64;
        for entry in &self.entries {
            file.extend(&entry.gap);
            let offset = (file.len() - base) as u32;
            if !entry.no_local {
                entry.local.put(&mut file, None, offset);
            }
            file.extend(&entry.data);
            file.extend(&entry.descriptor);
            if !entry.is_unlisted {
                entry.central.put(&mut directory, Some(&entry.listing), offset);
                listed += 1;
            }
        }
        directory.extend(&self.directory_rest);
        let start = (file.len() - base) as u64;
        let bytes = directory.len() as u64;
        file.extend(directory);
        if let Some(zip64) = &self.zip64 {
            let position = (file.len() - base) as u64;
            file.extend(zip64.to_bytes(listed, bytes, start, position));
        }
        file.extend(self.end.to_bytes(listed, bytes, start));
        file.extend(&self.suffix);
        file
    }

    /// Returns where the local header of an entry starts in [`to_bytes`](Self::to_bytes).
    ///
    /// # Panics
    ///
    /// Where there is no such entry.
    #[must_use]
    pub fn header_offset(&self, index: usize) -> usize {
        let before: usize = self.entries[..index].iter().map(Entry::len).sum();
        self.prefix.len() + before + self.entries[index].gap.len()
    }

    /// Returns where the data of an entry starts.
    ///
    /// # Panics
    ///
    /// Where there is no such entry.
    #[must_use]
    pub fn data_offset(&self, index: usize) -> usize {
        self.header_offset(index) + self.entries[index].local_len()
    }

    /// Returns where the directory starts.
    #[must_use]
    pub fn directory_offset(&self) -> usize {
        self.prefix.len() + self.entries.iter().map(Entry::len).sum::<usize>()
    }
}

impl Entry {
    /// Makes a file that is stored as it is.
    #[must_use]
    pub fn stored(name: &str, content: &[u8]) -> Self {
        Self::coded(name, content, 0, content.to_vec())
    }

    /// Makes a file of a content whose stored bytes, of a method, were made elsewhere.
    #[must_use]
    pub fn coded(name: &str, content: &[u8], method: u16, data: Vec<u8>) -> Self {
        let local = Header {
            signature: *b"PK\x03\x04",
            needed: 20,
            flags: if name.is_ascii() { 0 } else { 1 << 11 },
            method,
            time: 33 << 16,
            crc32: crc32fast::hash(content),
            stored_size: data.len() as u32,
            size: content.len() as u32,
            name: name.into(),
            ..Header::default()
        };
        let central = Header { signature: *b"PK\x01\x02", ..local.clone() };
        let listing = Listing { made_by: 3 << 8 | 20, ..Listing::default() };
        Self { local, data, central, listing, ..Self::default() }
    }

    /// Sets the Unix mode, with the bits of the type.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.listing.external = mode << 16;
        self
    }

    /// Changes both headers in the same way.
    #[must_use]
    pub fn both(mut self, change: impl Fn(&mut Header)) -> Self {
        change(&mut self.local);
        change(&mut self.central);
        self
    }

    /// Moves sizes and CRC-32 from the local header into a data descriptor with a signature and
    /// sizes of 4 bytes.
    #[must_use]
    pub fn described(self) -> Self {
        let mut entry = self.both(|header| header.flags |= 1 << 3);
        let Header { crc32, stored_size, size, .. } = entry.central;
        (entry.local.crc32, entry.local.stored_size, entry.local.size) = (0, 0, 0);
        entry.descriptor = b"PK\x07\x08".to_vec();
        for field in [crc32, stored_size, size] {
            entry.descriptor.extend(field.to_le_bytes());
        }
        entry
    }

    /// Moves the sizes of both headers into zip64 extra fields, and the offset in the directory to
    /// `offset`.
    #[must_use]
    pub fn zip64(mut self, offset: u64) -> Self {
        let sizes = [u64::from(self.central.size), u64::from(self.central.stored_size)];
        self = self.both(|header| (header.size, header.stored_size) = (u32::MAX, u32::MAX));
        let numbers = |numbers: &[u64]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
        };
        self.local.extra = extra(1, &numbers(&sizes));
        self.central.extra = extra(1, &numbers(&[sizes[0], sizes[1], offset]));
        self.listing.offset = Some(u32::MAX);
        self
    }

    fn local_len(&self) -> usize {
        if self.no_local { 0 } else { 30 + self.local.name.len() + self.local.extra.len() }
    }

    fn len(&self) -> usize {
        self.gap.len() + self.local_len() + self.data.len() + self.descriptor.len()
    }
}

impl Header {
    fn put(&self, file: &mut Vec<u8>, listing: Option<&Listing>, offset: u32) {
        let mut out = CursorMut::default();
        out.bytes(&self.signature);
        if let Some(listing) = listing {
            out.u16(listing.made_by);
        }
        out.u16(self.needed).u16(self.flags).u16(self.method).u32(self.time);
        out.u32(self.crc32).u32(self.stored_size).u32(self.size);
        out.u16(self.name_len.unwrap_or(self.name.len() as u16));
        out.u16(self.extra_len.unwrap_or(self.extra.len() as u16));
        if let Some(listing) = listing {
            out.u16(listing.comment.len() as u16).u16(listing.disk).u16(0);
            out.u32(listing.external).u32(listing.offset.unwrap_or(offset));
        }
        out.bytes(&self.name).bytes(&self.extra);
        out.bytes(listing.map_or(&[], |listing| &listing.comment));
        file.extend(out.into_bytes());
    }
}

impl End {
    fn to_bytes(&self, entries: u64, bytes: u64, offset: u64) -> Vec<u8> {
        let entries = self.entries.unwrap_or(entries as u16);
        let mut out = CursorMut::default();
        out.bytes(b"PK\x05\x06").u16(self.disk).u16(self.directory_disk);
        out.u16(self.entries_here.unwrap_or(entries)).u16(entries);
        out.u32(self.directory_bytes.unwrap_or(bytes as u32));
        out.u32(self.directory_offset.unwrap_or(offset as u32));
        out.u16(self.comment_len.unwrap_or(self.comment.len() as u16)).bytes(&self.comment);
        out.into_bytes()
    }
}

impl Zip64End {
    fn to_bytes(&self, entries: u64, bytes: u64, offset: u64, position: u64) -> Vec<u8> {
        let entries = self.entries.unwrap_or(entries);
        let mut out = CursorMut::default();
        out.bytes(b"PK\x06\x06").u64(self.record_size.unwrap_or(44 + self.rest.len() as u64));
        out.u16(45).u16(45).u32(self.disk).u32(self.directory_disk);
        out.u64(self.entries_here.unwrap_or(entries)).u64(entries);
        out.u64(self.directory_bytes.unwrap_or(bytes));
        out.u64(self.directory_offset.unwrap_or(offset)).bytes(&self.rest);
        out.bytes(b"PK\x06\x07").u32(self.locator_disk);
        out.u64(self.locator_offset.unwrap_or(position)).u32(self.locator_disks.unwrap_or(1));
        out.into_bytes()
    }
}

/// Makes an extra field.
#[must_use]
pub fn extra(id: u16, content: &[u8]) -> Vec<u8> {
    let mut out = CursorMut::default();
    out.u16(id).u16(content.len() as u16).bytes(content);
    out.into_bytes()
}

/// Makes an extra field that gives an entry of `name` another one. Section 4.6.9.
#[must_use]
pub fn unicode_path(name: &str, other: &str) -> Vec<u8> {
    let mut out = CursorMut::default();
    out.u8(1).u32(crc32fast::hash(name.as_bytes())).bytes(other.as_bytes());
    extra(0x7075, &out.into_bytes())
}
