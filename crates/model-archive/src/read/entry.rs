use std::{
    fmt,
    io::{BufRead, Read},
};

use bytes::Bytes;
use tensor_core::{AlignedBuf, Extent, Limit, Source, SourceReader};

use crate::{
    Archive, Error, Fault, FaultAt, Info, Kind, Method, Result, TargetFault, name,
    read::decode::EntryReader, read::local::Local,
};

/// A handle on an entry of an archive: two words, nothing read.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    archive: &'a Archive,
    index: usize,
}

impl<'a> Entry<'a> {
    pub(crate) const fn new(archive: &'a Archive, index: usize) -> Self {
        Self { archive, index }
    }

    /// Returns its name: `/` between components, a folder's perhaps with one at the end.
    #[must_use]
    pub fn name(self) -> &'a str {
        let directory = self.archive.directory();
        directory.record(self.index).map_or("", |record| directory.name(record))
    }

    /// Returns its position in the directory, which [`Archive::entry_at`] takes.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index
    }

    /// Returns what the directory says of it.
    #[must_use]
    pub fn info(self) -> Info {
        self.archive.info(self.index)
    }

    /// Returns where its stored bytes are in the archive; reads its local header.
    ///
    /// # Errors
    ///
    /// Where the local header is malformed, or reaches into the next entry; in the strict profile
    /// also where it differs from the directory.
    pub fn extent(self) -> Result<Extent> {
        Ok(self.local(0)?.data)
    }

    /// Returns what its data was aligned to by its writer, in bytes, where its local header says so
    /// and it is true; 1 for any other.
    ///
    /// # Errors
    ///
    /// As for [`extent`](Self::extent).
    pub fn alignment(self) -> Result<u32> {
        let local = self.local(0)?;
        let aligned = local.alignment.filter(|&alignment| {
            alignment.is_power_of_two() && local.data.is_aligned(alignment.into())
        });
        Ok(aligned.map_or(1, u32::from))
    }

    /// Returns its content: a slice of the archive without a copy where it is stored as it is and
    /// the archive is in memory.
    ///
    /// What is decoded is compared with size and CRC-32; what is stored as it is has the right size
    /// and **no checksum is compared**: [`verify`](Self::verify) does that.
    ///
    /// # Errors
    ///
    /// Those of [`extent`](Self::extent) and of decoding;
    /// [`Limits::decoded_bytes`](tensor_core::Limits::decoded_bytes) where it is larger.
    pub fn bytes(self) -> Result<Bytes> {
        if self.info().method == Method::Stored {
            self.check_size()?;
            let local = self.local(self.ahead())?;
            let Some(stored) = local.stored else {
                return Ok(self.archive.source().read(local.data, "entry")?);
            };
            let mut content = AlignedBuf::with_capacity(stored.len())?;
            content.extend_from_slice(&stored)?;
            return Ok(content.into_bytes());
        }
        self.checked_bytes()
    }

    /// Returns its content, compared with size and CRC-32 whatever the method.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the checksum differs.
    pub fn checked_bytes(self) -> Result<Bytes> {
        self.check_size()?;
        let info = self.info();
        let mut reader = self.reader()?;
        // The size is a claim: no more memory is taken for it than real data usually fills, and the
        // rest as it comes.
        let likely = info.stored_size.saturating_mul(LIKELY).saturating_add(1 << 20);
        let first = usize::try_from(info.size.min(likely)).unwrap_or(usize::MAX);
        let mut content = AlignedBuf::with_capacity(first)?;
        loop {
            let ready = reader.fill_buf().map_err(EntryReader::fault)?;
            if ready.is_empty() {
                return Ok(content.into_bytes());
            }
            content.extend_from_slice(ready)?;
            let taken = ready.len();
            reader.consume(taken);
        }
    }

    /// Returns its content as a source: where it lies in the archive, or else decoded in memory.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn source(self) -> Result<Source> {
        if self.info().method == Method::Stored {
            return Ok(self.archive.source().window(self.extent()?, "entry")?);
        }
        Ok(Source::from_bytes(self.bytes()?))
    }

    /// Fills the caller's buffer with its content, compared with size and CRC-32.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::WrongBuffer`] where the buffer has another length; else as for
    /// [`checked_bytes`](Self::checked_bytes).
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        let (expected, found) = (self.info().size, buffer.len() as u64);
        if expected != found {
            return Err(tensor_core::Error::WrongBuffer { what: "entry", expected, found }.into());
        }
        if self.info().method == Method::Stored && found > AHEAD {
            return self.read_stored_into(buffer);
        }
        let mut reader = self.reader()?;
        reader.read_exact(buffer).map_err(EntryReader::fault)?;
        // The end is where size and checksum are compared.
        reader.fill_buf().map_err(EntryReader::fault)?;
        Ok(())
    }

    /// Fills the caller's buffer with bytes that are stored as they are, without another one.
    fn read_stored_into(self, buffer: &mut [u8]) -> Result<()> {
        let data = self.local(0)?.data;
        let (mut offset, mut crc) = (0_u64, crc32fast::Hasher::new());
        // What was read is still in the processor's cache when its checksum is computed.
        for chunk in buffer.chunks_mut(CHUNK) {
            let extent = data.part(offset, chunk.len() as u64, "entry")?;
            self.archive.source().read_into(extent, chunk, "entry")?;
            crc.update(chunk);
            offset = offset.saturating_add(chunk.len() as u64);
        }
        let (found, expected) = (crc.finalize(), self.info().crc32);
        if found == expected {
            return Ok(());
        }
        Err(self.fault_at(Fault::Crc { found, expected }).into())
    }

    /// Returns its content as a stream, which ends well only where size and CRC-32 are right.
    ///
    /// # Errors
    ///
    /// Those of [`extent`](Self::extent); [`Error::Kind`] for a folder.
    pub fn reader(self) -> Result<EntryReader> {
        self.refuse_folder()?;
        self.content()
    }

    /// Like [`reader`](Self::reader), but also for a folder, which has no content.
    fn content(self) -> Result<EntryReader> {
        let local = self.local(self.ahead())?;
        let (source, extent) = match local.stored {
            Some(stored) => {
                let extent = Extent::first(stored.len() as u64);
                (&Source::from_bytes(stored), extent)
            }
            None => (self.archive.source(), local.data),
        };
        EntryReader::new(source.stream(extent, "entry")?, self.archive, self.index)
    }

    /// Returns its bytes as they are stored, not decoded, as a stream.
    ///
    /// # Errors
    ///
    /// As for [`reader`](Self::reader).
    pub fn stored_reader(self) -> Result<SourceReader> {
        self.refuse_folder()?;
        let extent = self.extent()?;
        Ok(self.archive.source().stream(extent, "entry")?)
    }

    /// Reads all of it and compares size and CRC-32.
    ///
    /// # Errors
    ///
    /// As for [`checked_bytes`](Self::checked_bytes), without the limit.
    pub fn verify(self) -> Result<()> {
        self.verify_with(&|_| {})
    }

    /// Like [`verify`](Self::verify), but tells `progress` how many bytes were done each time.
    pub(crate) fn verify_with(self, progress: &impl Fn(u64)) -> Result<()> {
        let info = self.info();
        if info.kind == Kind::Folder && info.stored_size == 0 {
            self.extent()?;
            return Ok(());
        }
        let mut reader = self.content()?;
        loop {
            let ready = reader.fill_buf().map_err(EntryReader::fault)?.len();
            if ready == 0 {
                return Ok(());
            }
            reader.consume(ready);
            progress(ready as u64);
        }
    }

    /// Returns the text of a symbolic link.
    ///
    /// # Errors
    ///
    /// [`Error::Kind`] for any other entry; [`Fault::Target`] where the text is not a path.
    pub fn target(self) -> Result<String> {
        let info = self.info();
        if info.kind != Kind::Symlink {
            let (found, expected) = (info.kind, Kind::Symlink);
            return Err(Error::Kind { entry: self.name().to_owned(), found, expected });
        }
        let limit = self.archive.limits().name_bytes;
        if info.size > limit {
            return Err(self.target_fault(String::new(), TargetFault::Long(limit)));
        }
        let bytes = self.checked_bytes()?;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            return Err(self.target_fault(shown, TargetFault::Malformed));
        };
        Ok(text.to_owned())
    }

    /// Returns the file that a symbolic link leads to, over any number of links; any other entry
    /// itself.
    ///
    /// # Errors
    ///
    /// [`Fault::Target`] where a link is absolute, leads out of the archive, to nothing, to a
    /// folder, or back to itself.
    pub fn resolve(self) -> Result<Self> {
        let mut at = self;
        for _ in 0..=HOPS {
            if at.info().kind != Kind::Symlink {
                return Ok(at);
            }
            let target = at.target()?;
            let found = name::resolve(at.name(), &target).and_then(|path| {
                let folder = format!("{path}/");
                match self.archive.entry(&path) {
                    Some(entry) if entry.info().kind != Kind::Folder => Ok(entry),
                    Some(_) => Err(TargetFault::Folder),
                    None if self.archive.entries_below(&folder).next().is_some() => {
                        Err(TargetFault::Folder)
                    }
                    None => Err(TargetFault::Missing),
                }
            });
            at = found.map_err(|fault| at.target_fault(target, fault))?;
        }
        let target = self.target()?;
        Err(self.target_fault(target, TargetFault::Loop))
    }

    fn refuse_folder(self) -> Result<()> {
        let kind = self.info().kind;
        if kind != Kind::Folder {
            return Ok(());
        }
        let (found, expected) = (kind, Kind::File);
        Err(Error::Kind { entry: self.name().to_owned(), found, expected })
    }

    fn check_size(self) -> Result<()> {
        let (what, found) = ("size of an entry in bytes", self.info().size);
        Ok(self.archive.limits().check(Limit::DecodedBytes, what, found)?)
    }

    /// Reads the local header, and with it data of up to `ahead` bytes.
    fn local(self, ahead: u64) -> Result<Local> {
        let directory = self.archive.directory();
        let mut local = Local::read(self.archive.source(), directory, self.index, ahead)?;
        match local.fault.take() {
            Some(fault) if self.archive.is_strict() => Err(self.fault_at(fault).into()),
            _ => Ok(local),
        }
    }

    /// Returns how many bytes of data are worth reading with the header: nothing in memory is read.
    fn ahead(self) -> u64 {
        if self.archive.source().as_slice().is_some() { 0 } else { AHEAD }
    }

    fn fault_at(self, fault: Fault) -> FaultAt {
        self.archive.directory().fault_at(self.index, fault)
    }

    fn target_fault(self, target: String, fault: TargetFault) -> Error {
        self.fault_at(Fault::Target { target, fault }).into()
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name()).field("info", &self.info()).finish()
    }
}

/// Data up to this is read with the header: to copy it costs less than to read again, in bytes.
const AHEAD: u64 = 16 << 10;
/// What is read and compared at once, in bytes.
const CHUNK: usize = 1 << 20;
/// How many times its stored bytes the content of an entry usually has at most.
const LIKELY: u64 = 64;
/// More links in a row than any system follows.
const HOPS: usize = 40;
