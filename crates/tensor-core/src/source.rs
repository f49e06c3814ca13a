use std::{
    fmt,
    fs::{self, File},
    io::{self, BufRead, Read},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;

#[cfg(unix)]
use crate::parallel;
use crate::{AlignedBuf, Error, Extent, Result};

/// Bytes at random positions: what a caller implements for a store of their own, such as HTTP
/// ranges or objects in a bucket.
pub trait ReadAt: Send + Sync {
    /// Returns how many bytes there are. It must not change.
    fn len(&self) -> u64;

    /// Tells whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills all of `buffer` with the bytes that start at `offset`.
    ///
    /// # Errors
    ///
    /// Whatever stands in the way; [`io::ErrorKind::UnexpectedEof`] where the bytes end before.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A cheap handle on random-access bytes: memory, a file, a mapped file, or a caller's own store.
///
/// Nothing is read before it is asked for, clones share what they stand on, and no call moves a
/// position that another could see.
#[derive(Clone)]
pub struct Source {
    kind: Kind,
    window: Extent,
    /// Nobody else can see the position of the file.
    is_own: bool,
}

#[derive(Clone)]
enum Kind {
    Memory(Bytes),
    File(Arc<File>),
    Custom(Arc<dyn ReadAt>),
}

impl Source {
    /// Stands on bytes in memory; a `Vec<u8>`, a `&'static [u8]` or `Bytes` is not copied.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let window = Extent::first(bytes.len() as u64);
        Self { kind: Kind::Memory(bytes), window, is_own: false }
    }

    /// Stands on a caller's own store.
    #[must_use]
    pub fn from_read_at(store: impl ReadAt + 'static) -> Self {
        let window = Extent::first(store.len());
        Self { kind: Kind::Custom(Arc::new(store)), window, is_own: false }
    }

    /// Opens a regular file, which is read by position, and only where it is asked for.
    ///
    /// The length is taken here: what is appended later is not seen, and a file that shrinks gives
    /// errors, not crashes.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be opened; [`Error::NotAFile`] for a folder, a pipe, a
    /// device.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let (file, len) = open_regular(path.as_ref())?;
        Ok(Self { kind: Kind::File(Arc::new(file)), window: Extent::first(len), is_own: true })
    }

    /// Opens a file for `read`; where that fails, and an editor has changed the length of the file
    /// meanwhile, once more: what is read from its end may have moved.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open) and `read`.
    pub fn open_for<T, E: From<Error>>(
        path: impl AsRef<Path>,
        read: impl Fn(Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let path = path.as_ref();
        let mut attempts = ATTEMPTS;
        loop {
            let source = Self::open(path)?;
            let len = source.len();
            let result = read(source);
            let has_changed = || path.metadata().is_ok_and(|now| now.len() != len);
            if result.is_ok() || attempts == 0 || !has_changed() {
                return result;
            }
            attempts = attempts.saturating_sub(1);
        }
    }

    /// Stands on an open file, which is read by position.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] where its length cannot be read.
    pub fn from_file(file: File) -> Result<Self> {
        let metadata = file.metadata();
        let metadata =
            metadata.map_err(|source| Error::Read { what: "file length", offset: 0, source })?;
        let window = Extent::first(metadata.len());
        Ok(Self { kind: Kind::File(Arc::new(file)), window, is_own: false })
    }

    /// Reads several sources as one, each behind the one before: what a file will be, before it is
    /// written.
    #[must_use]
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut end = 0_u64;
        let parts = parts.into_iter().map(|part| {
            end = end.saturating_add(part.len());
            (end, part)
        });
        let parts = parts.collect();
        Self::from_read_at(Joined { parts, len: end })
    }

    /// Maps a regular file into memory, so that reads are slices without a copy.
    ///
    /// # Safety
    ///
    /// Nothing may change or truncate the file while a handle on it, or bytes read from it, live:
    /// changed bytes are undefined behaviour, and truncated pages end the process.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    #[cfg(feature = "mmap")]
    #[expect(unsafe_code, reason = "a mapping is only as good as the promise of the caller")]
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, len) = open_regular(path)?;
        let failed = |source| Error::File { path: path.to_owned(), what: "mapping", source };
        let len = usize::try_from(len).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
        // SAFETY: the caller promises that the file does not change; `len` is what the system said
        // of this open file.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(&file) }.map_err(failed)?;
        Ok(Self::from_bytes(Bytes::from_owner(map)))
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.window.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Returns all bytes where they are in memory already.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.kind {
            Kind::Memory(bytes) => self.window.slice(bytes),
            _ => None,
        }
    }

    /// Returns a source on a part of this one; its offsets count from the start of the part.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] that names `what`.
    pub fn window(&self, extent: Extent, what: &'static str) -> Result<Self> {
        let window = self.window.part(extent.offset(), extent.len(), what)?;
        Ok(Self { kind: self.kind.clone(), window, is_own: self.is_own })
    }

    /// Returns exactly the bytes of `extent`: a slice of what is in memory, or else an owned copy
    /// that starts at a multiple of 64 in memory.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] before anything is allocated; [`Error::Read`]. Both name `what`.
    pub fn read(&self, extent: Extent, what: &'static str) -> Result<Bytes> {
        let extent = extent.within(self.len(), what)?;
        if let Kind::Memory(bytes) = &self.kind {
            let part = self.window.part(extent.offset(), extent.len(), what)?;
            // A part of the window lies in the bytes, so both ends fit usize.
            let bounds = usize::try_from(part.offset()).ok().zip(usize::try_from(part.end()).ok());
            return Ok(bounds.map_or_else(Bytes::new, |(start, end)| bytes.slice(start..end)));
        }
        Ok(self.read_owned(extent, what)?.into_bytes())
    }

    /// Returns a copy of the bytes of `extent`, starting at a multiple of 64 in memory.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read), and [`Error::OutOfMemory`].
    pub fn read_owned(&self, extent: Extent, what: &'static str) -> Result<AlignedBuf> {
        let extent = extent.within(self.len(), what)?;
        let len = usize::try_from(extent.len())
            .map_err(|_| Error::OutOfMemory { bytes: extent.len() })?;
        match &self.kind {
            #[cfg(unix)]
            Kind::File(file) => {
                let start = self.position(extent.offset());
                AlignedBuf::fill(len, parallel::available(), |offset, memory| {
                    read_uninit_at(file, memory, start.saturating_add(offset))
                })
                .map_err(|source| read_error(source, what, extent))
            }
            Kind::Memory(_) => {
                let mut buffer = AlignedBuf::with_capacity(len)?;
                buffer.extend_from_slice(&self.read(extent, what)?)?;
                Ok(buffer)
            }
            _ => {
                let mut buffer = AlignedBuf::zeroed(len)?;
                self.read_into(extent, &mut buffer, what)?;
                Ok(buffer)
            }
        }
    }

    /// Fills the caller's buffer with the bytes of `extent`.
    ///
    /// # Errors
    ///
    /// [`Error::WrongBuffer`] where the buffer has another length; else as for
    /// [`read`](Self::read).
    pub fn read_into(&self, extent: Extent, buffer: &mut [u8], what: &'static str) -> Result<()> {
        let extent = extent.within(self.len(), what)?;
        let (expected, found) = (extent.len(), buffer.len() as u64);
        if expected != found {
            return Err(Error::WrongBuffer { what, expected, found });
        }
        let start = self.position(extent.offset());
        match &self.kind {
            Kind::Memory(_) => {
                buffer.copy_from_slice(&self.read(extent, what)?);
                Ok(())
            }
            Kind::File(file) => read_exact_at(file, start, buffer),
            Kind::Custom(store) => store.read_exact_at(start, buffer),
        }
        .map_err(|source| read_error(source, what, extent))
    }

    /// Returns where, at `offset` or behind it, the next byte is that may be other than 0: what lies
    /// before it is a hole of a file, which takes no room on the disk. It is `offset` itself where that
    /// cannot be told without reading: on some systems, and of what was not opened by
    /// [`open`](Self::open).
    #[must_use]
    pub fn skip_hole(&self, offset: u64) -> u64 {
        let start = self.position(offset.min(self.len()));
        let found = match &self.kind {
            Kind::File(file) if self.is_own => next_data(file, start),
            _ => None,
        };
        // What comes behind a hole may lie behind the window, too.
        let found = found.unwrap_or(start).clamp(start, self.position(self.len()).max(start));
        offset.saturating_add(found.saturating_sub(start))
    }

    /// Returns a stream over the bytes of `extent`, which takes the same memory however long it
    /// is: a slice where the bytes are in memory, or else one buffer of 256 KiB.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] that names `what`.
    pub fn stream(&self, extent: Extent, what: &'static str) -> Result<SourceReader> {
        let source = self.window(extent, what)?;
        let rest = Extent::first(source.len());
        Ok(SourceReader { source, rest, what, ready: Bytes::new(), buffer: Vec::new(), at: 0 })
    }

    /// Turns an offset in this source into one in what it stands on.
    fn position(&self, offset: u64) -> u64 {
        // Callers have checked the offset against the window, so the sum is inside its end.
        self.window.offset().saturating_add(offset)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Memory(_) => "memory",
            Kind::File(_) => "file",
            Kind::Custom(_) => "custom",
        };
        f.debug_struct("Source").field("kind", &kind).field("window", &self.window).finish()
    }
}

/// Sources one behind the other, each with where it ends.
struct Joined {
    parts: Vec<(u64, Source)>,
    len: u64,
}

impl ReadAt for Joined {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        let first = self.parts.partition_point(|(end, _)| *end <= offset);
        for (end, part) in self.parts.iter().skip(first) {
            let rest =
                Extent::between(offset.saturating_sub(end.saturating_sub(part.len())), part.len());
            let extent = Extent::first(rest.len().min(buffer.len() as u64));
            let extent = rest.part(0, extent.len(), "part").map_err(into_io)?;
            // No more than the buffer holds.
            let (filled, left) =
                buffer.split_at_mut(usize::try_from(extent.len()).unwrap_or_default());
            part.read_into(extent, filled, "part").map_err(into_io)?;
            offset = *end;
            buffer = left;
            if buffer.is_empty() {
                break;
            }
        }
        if buffer.is_empty() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// A stream over a part of a [`Source`], made by [`Source::stream`].
#[derive(Debug)]
pub struct SourceReader {
    source: Source,
    rest: Extent,
    what: &'static str,
    /// What is in memory and not consumed; used where the source is in memory.
    ready: Bytes,
    /// What was read last; used where it is not.
    buffer: Vec<u8>,
    at: usize,
}

impl SourceReader {
    /// Returns how many bytes have not been fetched.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        let buffered = self.buffer.len().saturating_sub(self.at).saturating_add(self.ready.len());
        self.rest.len().saturating_add(buffered as u64)
    }

    /// Reads into place, where that is as much as the buffer would hold.
    fn read_past(&mut self, out: &mut [u8], len: u64) -> Result<usize> {
        let next = self.rest.part(0, len, self.what)?;
        let taken = usize::try_from(len).unwrap_or(out.len());
        self.source.read_into(next, out.get_mut(..taken).unwrap_or_default(), self.what)?;
        self.rest = Extent::between(next.end(), self.rest.end());
        Ok(taken)
    }

    fn refill(&mut self) -> Result<()> {
        let memory = matches!(self.source.kind, Kind::Memory(_));
        let len = if memory { self.rest.len() } else { self.rest.len().min(STREAM) };
        let next = self.rest.part(0, len, self.what)?;
        if memory {
            self.ready = self.source.read(next, self.what)?;
        } else {
            // At most STREAM bytes, so it fits.
            self.buffer.resize(usize::try_from(len).unwrap_or_default(), 0);
            self.at = 0;
            // What could not be read must not be taken for data by a caller that tries again.
            let read = self.source.read_into(next, &mut self.buffer, self.what);
            read.inspect_err(|_| self.buffer.clear())?;
        }
        self.rest = Extent::between(next.end(), self.rest.end());
        Ok(())
    }
}

impl BufRead for SourceReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ready.is_empty() && self.at >= self.buffer.len() && !self.rest.is_empty() {
            self.refill().map_err(into_io)?;
        }
        if self.ready.is_empty() {
            return Ok(self.buffer.get(self.at..).unwrap_or_default());
        }
        Ok(&self.ready)
    }

    fn consume(&mut self, amount: usize) {
        if self.ready.is_empty() {
            self.at = self.at.saturating_add(amount);
        } else {
            let taken = amount.min(self.ready.len());
            drop(self.ready.split_to(taken));
        }
    }
}

impl Read for SourceReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let is_empty = self.ready.is_empty() && self.at >= self.buffer.len();
        let len = self.rest.len().min(out.len() as u64);
        if is_empty && len >= STREAM && !matches!(self.source.kind, Kind::Memory(_)) {
            return self.read_past(out, len).map_err(into_io);
        }
        let mut ready = self.fill_buf()?;
        let taken = ready.read(out)?;
        self.consume(taken);
        Ok(taken)
    }
}

fn open_regular(path: &Path) -> Result<(File, u64)> {
    let failed = |source| Error::File { path: path.to_owned(), what: "opening", source };
    // Asked of the path first: to open a pipe would wait for its other end.
    refuse_irregular(path, &fs::metadata(path).map_err(failed)?)?;
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    refuse_irregular(path, &metadata)?;
    Ok((file, metadata.len()))
}

pub(crate) fn refuse_irregular(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let found = if metadata.is_dir() { "a folder" } else { "a pipe or a device" };
    Err(Error::NotAFile { path: path.to_owned(), found })
}

fn read_error(source: io::Error, what: &'static str, extent: Extent) -> Error {
    match source.kind() {
        io::ErrorKind::OutOfMemory => Error::OutOfMemory { bytes: extent.len() },
        _ => Error::Read { what, offset: extent.offset(), source },
    }
}

/// Unwraps an error of the system and wraps any other, so that neither is shown twice.
fn into_io(error: Error) -> io::Error {
    match error {
        Error::Read { source, .. } => source,
        other => io::Error::other(other),
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                offset = offset.saturating_add(read as u64);
                buffer = buffer.split_at_mut(read).1;
            }
        }
    }
    Ok(())
}

#[cfg(not(any(unix, windows)))]
fn read_exact_at(_: &File, _: u64, _: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns where the next byte is that is in no hole, or the end of the file; moves the position of the
/// file.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "freebsd"))]
fn next_data(file: &File, offset: u64) -> Option<u64> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => Some(data),
        Err(rustix::io::Errno::NXIO) => Some(u64::MAX),
        Err(_) => None,
    }
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "macos",
    target_os = "freebsd"
)))]
const fn next_data(_: &File, _: u64) -> Option<u64> {
    None
}

/// Reads once at `offset`; returns the part of `memory` that was filled.
#[cfg(unix)]
fn read_uninit_at<'m>(
    file: &File,
    memory: &'m mut [std::mem::MaybeUninit<u8>],
    offset: u64,
) -> io::Result<&'m mut [u8]> {
    let (filled, _) = rustix::io::pread(file, memory, offset)?;
    Ok(filled)
}

/// What a stream reads at once: it stays in the cache of one core while it is hashed or decoded.
const STREAM: u64 = 256 << 10;

/// How often a file is opened again that an editor changes just then.
const ATTEMPTS: u32 = 100;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Notes which ranges are read.
    struct Counting {
        bytes: Vec<u8>,
        reads: Mutex<Vec<(u64, usize)>>,
    }

    impl ReadAt for Arc<Counting> {
        fn len(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.reads.lock().unwrap().push((offset, buffer.len()));
            let start = usize::try_from(offset).unwrap();
            buffer.copy_from_slice(&self.bytes[start..start + buffer.len()]);
            Ok(())
        }
    }

    fn counting(len: usize) -> (Source, Arc<Counting>) {
        let bytes = (0..len).map(|at| (at % 251) as u8).collect();
        let store = Arc::new(Counting { bytes, reads: Mutex::default() });
        (Source::from_read_at(Arc::clone(&store)), store)
    }

    /// One source of each kind over the same bytes, with the file that one of them reads.
    fn kinds(len: usize) -> (Vec<Source>, tempfile::NamedTempFile) {
        let (custom, store) = counting(len);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &store.bytes).unwrap();
        let memory = Source::from_bytes(store.bytes.clone());
        (vec![memory, Source::open(file.path()).unwrap(), custom], file)
    }

    #[test]
    fn every_kind_reads_the_same() {
        let len = 700_000;
        let (sources, _file) = kinds(len);
        let extent = Extent::new(1000, 600_000).unwrap();
        for source in &sources {
            assert_eq!(source.len(), len as u64);
            let bytes = source.read(extent, "blob").unwrap();
            assert!((1000_usize..).zip(&bytes).all(|(at, &byte)| byte == (at % 251) as u8));
            let mut copy = vec![0; 600_000];
            source.read_into(extent, &mut copy, "blob").unwrap();
            let mut streamed = Vec::new();
            source.stream(extent, "blob").unwrap().read_to_end(&mut streamed).unwrap();
            assert!(copy == bytes && streamed == bytes, "{source:?}");
        }
    }

    #[test]
    fn joined_parts_read_as_one() {
        let (sources, _file) = kinds(10);
        let expected: Vec<u8> = (0..30).map(|at| at % 10).collect();
        let joined =
            Source::joined(sources.into_iter().flat_map(|part| [part, Source::from_bytes("")]));
        assert_eq!(joined.len(), 30);
        for start in 0..30 {
            for end in start..=30 {
                let read = joined.read(Extent::between(start, end), "x").unwrap();
                assert_eq!(read, expected[start as usize..end as usize]);
            }
        }
        assert!(Source::joined([]).is_empty());
    }

    #[test]
    fn windows_count_from_their_start() {
        let (sources, _file) = kinds(100);
        for source in sources {
            let window = source.window(Extent::between(10, 50), "part").unwrap();
            let inner = window.window(Extent::between(5, 9), "part").unwrap();
            assert_eq!(inner.read(Extent::first(4), "x").unwrap(), [15, 16, 17, 18][..]);
            let error = inner.read(Extent::between(2, 5), "x").unwrap_err();
            assert_eq!(error.to_string(), "x at byte 2 needs 3 bytes, but 2 remain");
        }
    }

    #[test]
    fn nothing_is_read_before_it_is_asked_for() {
        let (source, store) = counting(1_000_000);
        let window = source.window(Extent::between(100, 900_000), "part").unwrap();
        let mut stream = window.stream(Extent::between(0, 800_000), "part").unwrap();
        assert!(store.reads.lock().unwrap().is_empty());
        stream.fill_buf().unwrap();
        window.read(Extent::between(7, 9), "field").unwrap();
        assert_eq!(*store.reads.lock().unwrap(), [(100, 256 << 10), (107, 2)]);
    }

    #[test]
    fn large_buffers_are_filled_in_place() {
        let (source, store) = counting(1_000_000);
        let mut stream = source.stream(Extent::between(0, 900_000), "part").unwrap();
        let mut bytes = vec![0; 700_000];
        assert_eq!(stream.read(&mut bytes[..7]).unwrap(), 7);
        let buffered = stream.read(&mut bytes[7..]).unwrap();
        assert_eq!(buffered, (256 << 10) - 7);
        assert_eq!(stream.read(&mut bytes[256 << 10..]).unwrap(), 700_000 - (256 << 10));
        assert_eq!(bytes, store.bytes[..700_000]);
        // What is left is less than the stream would hold.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, store.bytes[700_000..900_000]);
        let direct = 700_000 - (256 << 10);
        let reads = [(0, 256 << 10), (256 << 10, direct), (700_000, 200_000)];
        assert_eq!(*store.reads.lock().unwrap(), reads);
    }

    /// Fails once.
    struct Interrupted(Mutex<bool>);

    impl ReadAt for Interrupted {
        fn len(&self) -> u64 {
            1000
        }

        fn read_exact_at(&self, _offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            if std::mem::replace(&mut *self.0.lock().unwrap(), false) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            buffer.fill(7);
            Ok(())
        }
    }

    #[test]
    fn a_failed_read_is_not_taken_for_data() {
        let source = Source::from_read_at(Interrupted(Mutex::new(true)));
        let mut streamed = Vec::new();
        // `read_to_end` tries again where a read was interrupted.
        let mut stream = source.stream(Extent::first(1000), "blob").unwrap();
        stream.read_to_end(&mut streamed).unwrap();
        assert_eq!(streamed, [7; 1000]);
    }

    #[test]
    fn ranges_are_checked_before_memory_is_taken() {
        let (sources, _file) = kinds(10);
        for source in sources {
            let error = source.read(Extent::between(4, u64::MAX), "blob").unwrap_err();
            let expected = "blob at byte 4 needs 18446744073709551611 bytes, but 6 remain";
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn memory_is_not_copied() {
        let bytes = Bytes::from_static(b"0123456789");
        let read = Source::from_bytes(bytes.clone()).read(Extent::between(3, 5), "x").unwrap();
        assert_eq!(read.as_ptr(), bytes[3..].as_ptr());
    }

    #[test]
    fn holes_are_skipped_where_the_system_tells() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(3 << 30).unwrap();
        let write = |offset| {
            let mut file = file.as_file();
            io::Seek::seek(&mut file, io::SeekFrom::Start(offset)).unwrap();
            io::Write::write_all(&mut file, b"data").unwrap();
        };
        write(0);
        write(2 << 30);
        let source = Source::open(file.path()).unwrap();
        let window = source.window(Extent::between(1 << 20, 1 << 30), "part").unwrap();
        assert_eq!(source.skip_hole(0), 0);
        if cfg!(target_os = "linux") {
            assert_eq!(source.skip_hole(1 << 20), 2 << 30);
            assert_eq!(source.skip_hole((2 << 30) + (1 << 20)), 3 << 30);
            assert_eq!(
                (window.skip_hole(7), window.skip_hole(window.len())),
                (window.len(), window.len())
            );
        }
        // A position that others see is not moved.
        let shared = Source::from_file(file.reopen().unwrap()).unwrap();
        assert_eq!(shared.skip_hole(1 << 20), 1 << 20);
        assert_eq!(Source::from_bytes(vec![0; 9]).skip_hole(3), 3);
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let (sources, file) = kinds(100);
        file.as_file().set_len(50).unwrap();
        let error = sources[1].read(Extent::between(40, 60), "blob").unwrap_err();
        assert_eq!(error.to_string(), "blob at byte 40 could not be read");
    }

    #[test]
    fn only_regular_files_open() {
        let error = Source::open(std::env::temp_dir()).unwrap_err();
        assert!(error.to_string().ends_with("is a folder, expected a regular file"), "{error}");
        #[cfg(unix)]
        {
            let error = Source::open("/dev/zero").unwrap_err();
            let expected = "\"/dev/zero\" is a pipe or a device, expected a regular file";
            assert_eq!(error.to_string(), expected);
        }
    }

    #[cfg(feature = "mmap")]
    #[test]
    #[expect(unsafe_code, reason = "the test owns the file")]
    fn a_mapping_reads_as_the_file_does() {
        let (sources, file) = kinds(5000);
        // SAFETY: nothing else knows this temporary file, and it is not changed.
        let mapped = unsafe { Source::map(file.path()) }.unwrap();
        assert_eq!(mapped.as_slice(), sources[0].as_slice());
    }
}
