//! The bytes of one component: bounds, decoding, byte order and digest. Format text: Part II,
//! section 3, and Part IV.

use std::{
    io::{self, BufRead, Read},
    ops::Range,
};

use bytes::Bytes;
use tensor_core::{
    AlignedBuf, DType, Error as Core, Extent, Limit, Shape, Source, Verified, Verify,
};

#[cfg(feature = "zstd")]
use super::seekable::Frames;
use super::{
    Len,
    digest::{self, DigestText},
    stream::{BlobReader, Decoder, StoredReader},
};
use crate::{
    ByteOrder, Component, ElementType, Encoding, Fault, Reader, Role,
    container::ALIGNMENT,
    error::{Decoded, Error, Result},
    read::Stored,
};

/// A handle on the bytes of a component; nothing is read before it is asked for.
#[derive(Clone, Debug)]
pub struct Blob<'a> {
    reader: &'a Reader,
    object: &'a str,
    role: Role,
    component: Component,
    len: Len,
}

impl<'a> Blob<'a> {
    pub(crate) const fn new(
        reader: &'a Reader,
        object: &'a str,
        role: Role,
        component: Component,
        len: Len,
    ) -> Self {
        Self { reader, object, role, component, len }
    }

    /// Returns the role of the component.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// Returns the definition of the component.
    #[must_use]
    pub const fn component(&self) -> &Component {
        &self.component
    }

    /// Returns the file that it lies in.
    ///
    /// # Errors
    ///
    /// [`Error::MissingShard`].
    pub fn source(&self) -> Result<&'a Source> {
        let Some(shard) = &self.component.shard else { return Ok(self.reader.source()) };
        self.reader.shard(shard).ok_or_else(|| Error::MissingShard {
            object: self.object.to_owned(),
            shard: shard.clone(),
        })
    }

    /// Returns the type of its elements.
    ///
    /// # Errors
    ///
    /// [`Fault::UnknownDtype`] and [`Fault::UnknownType`].
    pub fn element_type(&self) -> Result<DType> {
        self.component.element_type().ok_or_else(|| self.unknown_type())
    }

    /// Returns what its elements are, also where that is not a [`DType`].
    ///
    /// # Errors
    ///
    /// [`Fault::UnknownDtype`] and [`Fault::UnknownType`].
    pub fn elements(&self) -> Result<ElementType> {
        self.component.elements().ok_or_else(|| self.unknown_type())
    }

    fn unknown_type(&self) -> Error {
        let Component { dtype, logical_type, is_v2, .. } = &self.component;
        self.fault(match logical_type.clone().filter(|_| *is_v2) {
            Some(found) => Fault::UnknownType { found },
            None => Fault::UnknownDtype { found: dtype.name().to_owned() },
        })
    }

    /// Proves that the length of its bytes and their order are known, as they are in generation 2 also of
    /// elements that are not.
    fn check_elements(&self) -> Result<()> {
        if self.component.is_v2 { Ok(()) } else { self.elements().map(drop) }
    }

    /// Returns where the stored bytes are.
    ///
    /// # Errors
    ///
    /// [`Fault::Misaligned`] and [`Fault::OutOfBounds`].
    pub fn extent(&self) -> Result<Extent> {
        let (offset, length) = (self.component.offset, self.component.length);
        if self.component.is_v2 {
            // Opening has proved where it lies in the file that the table names.
            self.source()?;
            return Ok(Extent::new(offset, length)?);
        }
        let Some(extent) = self.reader.extent_of(&self.component) else {
            let (start, end) = (self.reader.blobs().offset(), self.reader.blobs().end());
            return Err(self.fault(Fault::OutOfBounds { offset, length, start, end }));
        };
        if !extent.is_aligned(ALIGNMENT) {
            return Err(self.fault(Fault::Misaligned { offset }));
        }
        Ok(extent)
    }

    /// Returns the stored bytes, before decoding; no copy where the source is in memory.
    ///
    /// # Errors
    ///
    /// As for [`extent`](Self::extent), and [`Fault::Read`].
    pub fn stored(&self) -> Result<Bytes> {
        let extent = self.extent()?;
        self.source()?.read(extent, "component").map_err(|source| self.read_fault(source))
    }

    /// Returns the decoded bytes, elements little-endian: without a copy where they are stored raw
    /// and the source is in memory, else in a buffer that is aligned to 64 bytes. In generation 2 that is
    /// so whatever the type of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the component lies outside the blobs, cannot be decoded, or has
    /// another length than its object needs; where [verification](crate::ReadOptions::verify) is
    /// on, also where its digest does not match.
    pub fn bytes(&self) -> Result<Bytes> {
        if !self.is_plain() {
            return Ok(self.decode()?.into_bytes());
        }
        let extent = self.exact_extent()?;
        if self.source()?.as_slice().is_none() {
            self.within_memory(extent.len())?;
        }
        let bytes = self.stored()?;
        self.verify_when_asked(&bytes)?;
        Ok(bytes)
    }

    /// Returns a copy of the decoded bytes, elements little-endian, aligned to 64 bytes.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn to_buf(&self) -> Result<AlignedBuf> {
        if !self.is_plain() {
            return self.decode();
        }
        let extent = self.exact_extent()?;
        self.within_memory(extent.len())?;
        let owned = self.source()?.read_owned(extent, "component");
        let owned = owned.map_err(|source| self.read_fault(source))?;
        self.verify_when_asked(&owned)?;
        Ok(owned)
    }

    /// Fills the caller's buffer with the decoded bytes, elements little-endian.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the buffer has another length.
    pub fn read_into(&self, buffer: &mut [u8]) -> Result<()> {
        let found = buffer.len() as u64;
        let wrong = |expected| Core::WrongBuffer { what: "component", expected, found };
        if self.is_plain() {
            let extent = self.exact_extent()?;
            let read = self.source()?.read_into(extent, buffer, "component");
            read.map_err(|source| self.read_fault(source))?;
            return self.verify_when_asked(buffer);
        }
        if let Len::Exactly(expected) = self.len
            && expected != found
        {
            return Err(self.read_fault(wrong(expected)));
        }
        self.check_elements()?;
        let mut stream = self.open(self.hasher_when_asked()?)?;
        let filled = stream.fill(buffer).map_err(|error| self.stream_fault(error))?;
        if filled < buffer.len() {
            return Err(self.read_fault(wrong(filled as u64)));
        }
        self.finish(stream)
    }

    /// Returns a stream of the decoded bytes, elements little-endian, in memory that does not grow
    /// with their number.
    ///
    /// The stream fails at its end where the length is not what the object needs, so what was read
    /// before is proved only then; what is left to prove is for [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the component cannot be used.
    pub fn stream(&self) -> Result<BlobReader> {
        self.check_elements()?;
        self.open(self.hasher_when_asked()?)
    }

    /// Reads the stored bytes and compares them with the digest; nothing is decoded.
    ///
    /// # Errors
    ///
    /// [`Fault::DigestMismatch`], [`Fault::MalformedDigest`], and as for
    /// [`extent`](Self::extent).
    pub fn verify(&self) -> Result<Verified> {
        let (algorithm, expected) = match self.digest()? {
            DigestText::Known(algorithm, expected) => (algorithm, expected),
            DigestText::None => return Ok(Verified::NoDigest),
            DigestText::Unknown => return Ok(Verified::UnknownAlgorithm),
        };
        if self.hashes_decoded() {
            let stream = self.open(Some(digest::Hasher::new(algorithm)))?;
            return self.finish_hashed(stream);
        }
        let extent = self.extent()?;
        let found = digest::stored(self.source()?, extent, algorithm);
        self.compare(found.map_err(|source| self.read_fault(source))?, expected)
    }

    /// Shows the stored bytes, piece by piece, and compares them with their digest where that is
    /// asked for and there is one.
    pub(crate) fn copy_stored(
        &self,
        verify: Verify,
        mut show: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let inner = self.source()?.stream(self.extent()?, "component");
        let inner = inner.map_err(|source| self.read_fault(source))?;
        let hasher = match verify {
            Verify::Never => None,
            Verify::Once | Verify::Always if self.hashes_decoded() => {
                if matches!(self.check_digest(), Ok(Verified::Digest)) {
                    self.verify()?;
                }
                None
            }
            // A digest that says nothing is for `validate` to report.
            Verify::Once | Verify::Always => self.hasher().unwrap_or_default(),
        };
        let mut stored = StoredReader { inner, hasher };
        loop {
            let ready = stored.fill_buf().map_err(|error| self.stream_fault(error))?;
            if ready.is_empty() {
                break;
            }
            show(ready)?;
            let shown = ready.len();
            stored.consume(shown);
        }
        self.compare_hashed(stored.hasher)
    }

    /// Opens a stream that also computes the digest of the stored bytes, where there is one.
    pub(crate) fn hashed_stream(&self) -> Result<BlobReader> {
        self.check_elements()?;
        self.open(self.hasher()?)
    }

    /// Reads what is left of a stream and says what its digest proves.
    pub(crate) fn finish_hashed(&self, mut stream: BlobReader) -> Result<Verified> {
        stream.visit(|_| ()).map_err(|error| self.stream_fault(error))?;
        self.compare_hashed(stream.into_hasher())?;
        self.check_digest()
    }

    /// Returns the algorithm of its digest, where there is one that is known.
    #[cfg(feature = "digest")]
    pub(crate) fn digest_algorithm(&self) -> Option<digest::Algorithm> {
        match self.digest() {
            Ok(DigestText::Known(algorithm, _)) => Some(algorithm),
            _ => None,
        }
    }

    pub(crate) const fn object(&self) -> &'a str {
        self.object
    }

    pub(crate) fn fault(&self, fault: Fault) -> Error {
        Error::Component {
            object: self.object.to_owned(),
            role: self.role.clone(),
            fault: Box::new(fault),
        }
    }

    /// Turns an error that reading a [stream](Self::stream) of this blob gave into one that names
    /// the object and the component.
    #[must_use]
    pub fn stream_fault(&self, error: io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => match error.downcast::<Core>() {
                Ok(reason) => self.read_fault(reason),
                Err(source) => self.io_fault(source),
            },
        }
    }

    fn io_fault(&self, source: io::Error) -> Error {
        let offset = self.component.offset;
        // The system's errors have a number, those of the decoder have none.
        let encoding = &self.component.encoding;
        let is_zstd = matches!(encoding, Encoding::Zstd | Encoding::ZstdSeekable);
        if is_zstd && source.raw_os_error().is_none() {
            return self.fault(Fault::Zstd { offset, reason: source });
        }
        self.read_fault(Core::Read { what: "component", offset, source })
    }

    /// Tells whether its digest is over what it decodes to and that is not what is stored.
    const fn hashes_decoded(&self) -> bool {
        self.component.is_v2 && !matches!(self.component.encoding, Encoding::Raw)
    }

    /// Tells whether decoding changes nothing.
    fn is_plain(&self) -> bool {
        self.component.encoding == Encoding::Raw && self.component.byte_order == ByteOrder::Little
    }

    /// Returns where the decoded bytes are in the file; `None` where they are stored otherwise.
    pub(super) fn plain_extent(&self) -> Result<Option<Extent>> {
        self.is_plain().then(|| self.exact_extent()).transpose()
    }

    /// Proves what can be said of its length without reading it.
    pub(crate) fn check_length(&self) -> Result<()> {
        match self.component.encoding {
            Encoding::Raw => self.exact_extent().map(drop),
            _ => Ok(()),
        }
    }

    /// Returns what comparing its digest could prove.
    pub(crate) fn check_digest(&self) -> Result<Verified> {
        Ok(match self.digest()? {
            DigestText::None => Verified::NoDigest,
            DigestText::Unknown => Verified::UnknownAlgorithm,
            DigestText::Known(..) => Verified::Digest,
        })
    }

    /// Returns where the stored bytes of a raw component are, once its length is proved.
    fn exact_extent(&self) -> Result<Extent> {
        self.check_elements()?;
        let extent = self.extent()?;
        let Len::Exactly(expected) = self.len else {
            return Ok(extent);
        };
        if extent.len() == expected {
            return Ok(extent);
        }
        // What opening refuses in generation 2 is not met here.
        let dtype = self.element_type()?;
        let width = dtype.width().unwrap_or(1);
        let shape = Shape::from([expected.checked_div(width).unwrap_or(expected)]);
        let (offset, found) = (extent.offset(), extent.len());
        Err(self.fault(Fault::WrongLength { offset, found, expected, dtype, shape }))
    }

    fn decode(&self) -> Result<AlignedBuf> {
        self.check_elements()?;
        let mut stream = self.open(self.hasher_when_asked()?)?;
        let mut decoded = AlignedBuf::new();
        if let Len::Exactly(len) = self.len {
            self.within_memory(len)?;
            // A short blob that claims to be long gets its memory as it proves so.
            let stored = self.component.length.saturating_mul(PLAUSIBLE).max(SMALL);
            let room = if self.component.is_v2 { len.min(stored) } else { len };
            let room = usize::try_from(room).map_err(|_| Core::OutOfMemory { bytes: len })?;
            decoded = AlignedBuf::with_capacity(room)?;
        }
        let mut full = Ok(());
        let visited = stream.visit(|piece| {
            if full.is_ok() {
                full = decoded.extend_from_slice(piece);
            }
        });
        visited.map_err(|error| self.stream_fault(error))?;
        full?;
        self.finish(stream)?;
        Ok(decoded)
    }

    /// Proves that a [stream](Self::stream) of this blob, all of which was read, has ended where it
    /// should, and its digest where [verification](crate::ReadOptions::verify) is on.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn finish(&self, mut stream: BlobReader) -> Result<()> {
        let mut beyond = [0; 1];
        if stream.read(&mut beyond).map_err(|error| self.stream_fault(error))? > 0 {
            let found = Decoded::MoreThan(stream.decoded.saturating_sub(1));
            let (offset, expected) = (self.component.offset, stream.decoded.saturating_sub(1));
            return Err(self.fault(Fault::DecodedLength { offset, found, expected }));
        }
        self.compare_hashed(stream.into_hasher())
    }

    fn open(&self, hasher: Option<digest::Hasher>) -> Result<BlobReader> {
        let extent = if self.is_plain() { self.exact_extent()? } else { self.extent()? };
        let (len, fault) = (self.len, (self.object.to_owned(), self.role.clone()));
        let offset = self.component.offset;
        #[cfg(feature = "zstd")]
        if self.component.encoding == Encoding::ZstdSeekable {
            let (frames, _) = self.frames(extent, 0)?;
            let decoder = Decoder::Frames(Box::new(frames));
            return Ok(BlobReader { decoder, len, decoded: 0, offset, fault, hasher });
        }
        let stored = self.source()?.stream(extent, "component");
        let stored =
            StoredReader { inner: stored.map_err(|source| self.read_fault(source))?, hasher };
        let decoder = match (&self.component.encoding, self.component.byte_order) {
            (Encoding::Raw, ByteOrder::Little) => Decoder::Raw(stored),
            (Encoding::Raw, ByteOrder::Big) => {
                self.exact_extent()?;
                let width = self.element_type()?.width().unwrap_or(1);
                let width = usize::try_from(width).unwrap_or(1);
                // Complex elements are two floats, each in its own order; this generation of the
                // format has none, so the width is that of the number.
                Decoder::Swapped { stored, width, ready: Vec::new(), at: 0 }
            }
            (Encoding::Zstd, _) => self.open_zstd(stored)?,
            (encoding, _) => return Err(self.unknown_encoding(encoding.as_str())),
        };
        Ok(BlobReader { decoder, len, decoded: 0, offset, fault, hasher: None })
    }

    /// Opens the frames from the one on in which a decoded byte is; returns how many bytes of it come
    /// before that.
    #[cfg(feature = "zstd")]
    fn frames(&self, extent: Extent, from: u64) -> Result<(Frames, u64)> {
        let decoded = self.component.uncompressed_length.unwrap_or_default();
        let window = self.reader.limits().zstd_window_log;
        let frames = Frames::open(self.source()?, extent, decoded, from, window);
        frames.map_err(|error| self.stream_fault(error))
    }

    /// Returns some of the decoded bytes, counted from the first: of what is stored raw, no others are
    /// read; of what is stored in frames, no other frame. Nothing is compared with a digest.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes); where the range does not lie in the decoded bytes.
    pub fn bytes_at(&self, range: Range<u64>) -> Result<Bytes> {
        let Range { start, end } = range;
        let wanted = Extent::between(start, end);
        self.within_memory(wanted.len())?;
        if let Some(len) = self.decoded_len() {
            wanted.within(len, "component").map_err(|reason| self.read_fault(reason))?;
        }
        if self.is_plain() {
            let part = self.exact_extent()?.part(start, wanted.len(), "component");
            let part = part.map_err(|reason| self.read_fault(reason))?;
            let read = self.source()?.read(part, "component");
            return read.map_err(|reason| self.read_fault(reason));
        }
        self.check_elements()?;
        let (mut stream, before) = self.stream_from(start)?;
        let skipped = io::copy(&mut stream.by_ref().take(before), &mut io::sink());
        skipped.map_err(|error| self.stream_fault(error))?;
        let bytes = wanted.len();
        let len = usize::try_from(bytes).map_err(|_| Core::OutOfMemory { bytes })?;
        let mut part = AlignedBuf::zeroed(len)?;
        stream.read_exact(&mut part).map_err(|error| self.stream_fault(error))?;
        Ok(part.into_bytes())
    }

    /// Opens what gives out the decoded bytes from somewhere before byte `start` on; returns how many
    /// come before it.
    fn stream_from(&self, start: u64) -> Result<(Box<dyn Read>, u64)> {
        #[cfg(feature = "zstd")]
        if self.component.encoding == Encoding::ZstdSeekable {
            let (frames, before) = self.frames(self.extent()?, start)?;
            return Ok((Box::new(frames), before));
        }
        Ok((Box::new(self.open(None)?), start))
    }

    #[cfg(feature = "zstd")]
    fn open_zstd(&self, stored: StoredReader) -> Result<Decoder> {
        let fault = |reason| self.fault(Fault::Zstd { offset: self.component.offset, reason });
        let mut decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(fault)?;
        let window = self.reader.limits().zstd_window_log;
        decoder.window_log_max(window).map_err(fault)?;
        Ok(Decoder::Zstd(decoder))
    }

    #[cfg(not(feature = "zstd"))]
    fn open_zstd(&self, _stored: StoredReader) -> Result<Decoder> {
        Err(self.unknown_encoding("zstd"))
    }

    /// Returns how many bytes it decodes to; `None` where only decoding would tell.
    #[must_use]
    pub const fn decoded_len(&self) -> Option<u64> {
        match self.len {
            Len::Exactly(len) => Some(len),
            Len::Within(_) | Len::AtMost(_) => None,
        }
    }

    /// Proves that this build can decode it.
    pub(crate) fn check_encoding(&self) -> Result<()> {
        match &self.component.encoding {
            Encoding::Raw => Ok(()),
            Encoding::Zstd | Encoding::ZstdSeekable if cfg!(feature = "zstd") => Ok(()),
            known @ (Encoding::Zstd | Encoding::ZstdSeekable) => {
                Err(self.unknown_encoding(known.as_str()))
            }
            Encoding::Other(found) => Err(self.unknown_encoding(found)),
        }
    }

    fn unknown_encoding(&self, found: &str) -> Error {
        let expected = match (cfg!(feature = "zstd"), self.component.is_v2) {
            (true, false) => "\"raw\" or \"zstd\"",
            (false, false) => "\"raw\"",
            (true, true) => "none or \"zt.zstd-seekable/1\"",
            (false, true) => "none",
        };
        self.fault(Fault::UnknownEncoding { found: found.to_owned(), expected })
    }

    fn within_memory(&self, found: u64) -> Result<()> {
        let limits = self.reader.limits();
        let checked = limits.check(Limit::DecodedBytes, "decoded size in bytes", found);
        checked.map_err(|reason| self.read_fault(reason))
    }

    fn read_fault(&self, reason: Core) -> Error {
        self.fault(Fault::Read { reason })
    }

    fn digest(&self) -> Result<DigestText> {
        let Some(text) = &self.component.digest else {
            return Ok(DigestText::None);
        };
        let is_v2 = self.component.is_v2;
        let expected = match is_v2 {
            true => "\"xxh3:\" and 16 hex digits",
            false => "\"crc32c:0x\" and hex digits",
        };
        let malformed = || self.fault(Fault::MalformedDigest { found: text.clone(), expected });
        let parsed =
            if self.component.is_v2 { digest::parse_v2(text) } else { digest::parse(text) };
        parsed.ok_or_else(malformed)
    }

    fn hasher_when_asked(&self) -> Result<Option<digest::Hasher>> {
        if self.reader.verifies(|| self.key()) { self.hasher() } else { Ok(None) }
    }

    /// Returns what computes its digest, where there is one.
    fn hasher(&self) -> Result<Option<digest::Hasher>> {
        Ok(match self.digest()? {
            DigestText::Known(algorithm, _) => Some(digest::Hasher::new(algorithm)),
            DigestText::None | DigestText::Unknown => None,
        })
    }

    /// Compares bytes that were stored raw with their digest, where that is asked for.
    fn verify_when_asked(&self, stored: &[u8]) -> Result<()> {
        let mut hasher = self.hasher_when_asked()?;
        if let Some(hasher) = &mut hasher {
            hasher.update(stored);
        }
        self.compare_hashed(hasher)
    }

    /// Compares stored bytes with their digest, where they were hashed.
    fn compare_hashed(&self, hasher: Option<digest::Hasher>) -> Result<()> {
        let Some(hasher) = hasher else { return Ok(()) };
        match self.digest()? {
            DigestText::Known(_, expected) => self.compare(hasher.finish(), expected).map(drop),
            DigestText::None | DigestText::Unknown => Ok(()),
        }
    }

    /// Returns what a reader knows a stored blob by.
    fn key(&self) -> Stored {
        let Component { offset, length, digest, shard, .. } = &self.component;
        let digest = digest.as_deref().unwrap_or_default();
        // A name of a shard has no space.
        let digest = shard.as_ref().map_or(digest.to_owned(), |shard| format!("{shard} {digest}"));
        (*offset, *length, digest)
    }

    fn compare(&self, found: digest::Digest, expected: digest::Digest) -> Result<Verified> {
        if found == expected {
            self.reader.note_proved(|| self.key());
            return Ok(Verified::Digest);
        }
        let (found, expected) = (digest::text(found), digest::text(expected));
        let offset = self.component.offset;
        Err(self.fault(Fault::DigestMismatch { offset, found, expected }))
    }
}

/// What a byte that is stored is expected to decode to, before it proves to.
const PLAUSIBLE: u64 = 64;
/// What is made room for in any case, in bytes.
const SMALL: u64 = 1 << 20;
