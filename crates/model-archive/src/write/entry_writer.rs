use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
};

use tensor_core::digest::{Digest, Hasher};

use crate::{
    ArchiveWriter, Encoded, EntryOptions, Error, Kind, Result, WriteFault, Written,
    write::encode::Encoder,
    write::headers::{Header, MARK_32, Sums, SumsPlace},
    write::options::Plan,
};

/// A file in the making, made by [`ArchiveWriter::stream`]: a sink for its content.
///
/// Dropped before [`finish`](Self::finish), it leaves an archive that refuses to go on.
#[must_use = "an entry that is not finished makes the archive unusable"]
pub struct EntryWriter<'w, W: Write> {
    archive: &'w mut ArchiveWriter<W>,
    name: String,
    plan: Plan,
    expected: Option<u64>,
    hasher: Option<Hasher>,
    /// What has come and is not encoded yet, at most [`BLOCK`] bytes.
    block: Vec<u8>,
    /// What has come, in bytes.
    size: u64,
    /// `None` as long as the content may fit one block.
    begun: Option<Begun>,
    /// A write has failed.
    is_broken: bool,
}

/// An entry whose local header is written.
struct Begun {
    header: Header,
    data_offset: u64,
    encoder: Encoder,
    crc: crc32fast::Hasher,
}

impl<'w, W: Write> EntryWriter<'w, W> {
    pub(crate) fn new(
        archive: &'w mut ArchiveWriter<W>,
        name: &str,
        plan: Plan,
        options: &EntryOptions,
    ) -> Self {
        let (name, expected) = (name.to_owned(), options.size);
        let (hasher, block) = (options.digest.map(Hasher::new), Vec::new());
        let (size, begun, is_broken) = (0, None, false);
        Self { archive, name, plan, expected, hasher, block, size, begun, is_broken }
    }

    /// Ends the entry.
    ///
    /// # Errors
    ///
    /// [`WriteFault::Size`] where less came than the options say; [`Error::Io`] where the sink
    /// fails; [`Error::Unfinished`] where a write has failed before.
    pub fn finish(mut self) -> Result<Written> {
        let digest = self.hasher.take().map(Hasher::finish);
        self.complete(digest)
    }

    /// Hands over the hasher, so that the content can be hashed elsewhere.
    pub(crate) fn take_hasher(&mut self) -> Option<Hasher> {
        self.hasher.take()
    }

    /// Ends an entry whose content was hashed elsewhere.
    pub(crate) fn complete(mut self, digest: Option<Digest>) -> Result<Written> {
        self.check()?;
        if let Some(expected) = self.expected.filter(|&expected| expected != self.size) {
            return Err(self.refused(WriteFault::Size { found: self.size, expected }));
        }
        let block = std::mem::take(&mut self.block);
        let Some(begun) = &mut self.begun else {
            let encoded = Encoded::planned(&self.name, Cow::Owned(block), self.plan)?;
            return self.archive.append(Encoded { digest, ..encoded });
        };
        begun.encode(&block, self.archive)?;
        let Some(Begun { mut header, data_offset, encoder, crc }) = self.begun.take() else {
            return Err(self.unfinished());
        };
        self.archive.put(&encoder.finish().map_err(Error::compressing)?)?;
        let stored_size = self.archive.position().saturating_sub(data_offset);
        header.sums = Sums { crc32: crc.finalize(), size: self.size, stored_size };
        if !header.fits() {
            let (found, expected) = (stored_size.max(self.size), u64::from(MARK_32 - 1));
            return Err(self.refused(WriteFault::Size { found, expected }));
        }
        self.archive.commit(header, data_offset, digest)
    }

    /// Takes the next bytes of the content.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.is_broken = true;
        let size = self.size.saturating_add(bytes.len() as u64);
        if let Some(expected) = self.expected.filter(|&expected| expected < size) {
            return Err(self.refused(WriteFault::Size { found: size, expected }));
        }
        self.size = size;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        self.put_blocks(bytes)?;
        self.is_broken = false;
        Ok(())
    }

    /// Cuts the content into blocks that do not depend on how it arrives. A full one is encoded as
    /// soon as more comes.
    fn put_blocks(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.block.len() == BLOCK {
                self.spill()?;
            }
            if let (true, Some(begun), Some((whole, rest))) =
                (self.block.is_empty(), &mut self.begun, bytes.split_at_checked(BLOCK))
            {
                begun.encode(whole, self.archive)?;
                bytes = rest;
                continue;
            }
            let room = BLOCK.saturating_sub(self.block.len());
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.block.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Encodes the block that is full.
    fn spill(&mut self) -> Result<()> {
        let begun = match &mut self.begun {
            Some(begun) => begun,
            none => none.insert(Begun::new(
                self.archive,
                &self.name,
                self.plan,
                self.expected,
                &self.block,
            )?),
        };
        begun.encode(&self.block, self.archive)?;
        self.block.clear();
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.is_broken { Err(self.unfinished()) } else { Ok(()) }
    }

    fn unfinished(&self) -> Error {
        Error::Unfinished { entry: self.name.clone() }
    }

    fn refused(&self, fault: WriteFault) -> Error {
        Error::write(&self.name, fault)
    }
}

impl Begun {
    /// Writes the local header of an entry that starts with the block `first` and goes on.
    fn new<W: Write>(
        archive: &mut ArchiveWriter<W>,
        name: &str,
        plan: Plan,
        size: Option<u64>,
        first: &[u8],
    ) -> Result<Self> {
        let codec = plan.choose(first).map_err(Error::compressing)?;
        let encoder = codec.encoder(size).map_err(Error::compressing)?;
        let sums_place = match size {
            Some(size) if codec.worst(size) < MARK_32.into() => SumsPlace::Descriptor,
            _ => SumsPlace::LargeDescriptor,
        };
        let (kind, method, sums) = (Kind::File, codec.method(), Sums::default());
        let alignment = plan.alignment(method);
        let (header, data_offset) =
            archive.put_header(name, kind, method, alignment, sums, sums_place)?;
        Ok(Self { header, data_offset, encoder, crc: crc32fast::Hasher::new() })
    }

    fn encode<W: Write>(&mut self, block: &[u8], archive: &mut ArchiveWriter<W>) -> Result<()> {
        self.crc.update(block);
        archive.put(self.encoder.encode(block).map_err(Error::compressing)?)
    }
}

impl<W: Write> Write for EntryWriter<'_, W> {
    /// Takes the next bytes of the content, all of them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.put(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(Error::Io { source, .. }) => Err(source),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> fmt::Debug for EntryWriter<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryWriter")
            .field("name", &self.name)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// What is encoded at once, and what the choice of a method is made from.
pub(crate) const BLOCK: usize = 1 << 20;
