//! Digests and checksums: their text form, hashing of streams on the way through, and hashing of
//! many ranges on several threads.

use std::{
    fmt,
    io::{self, BufRead, Read},
    num::NonZeroUsize,
    str::FromStr,
};

use sha2::Digest as _;
use twox_hash::xxhash3_64 as xxh3;

use crate::{Extent, Result, Source, parallel};

/// How a digest is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// SHA-256: 32 bytes, cryptographic.
    Sha256,
    /// CRC-32 with the Castagnoli polynomial: 4 bytes, against accidents only.
    Crc32c,
    /// XXH3 of 64 bits with seed 0: 8 bytes, against accidents only, as fast as memory is read.
    Xxh3,
}

impl Algorithm {
    /// Returns the name that stands before the colon of a digest's text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Crc32c => "crc32c",
            Self::Xxh3 => "xxh3",
        }
    }

    /// Returns the digest of bytes in memory.
    #[must_use]
    pub fn digest(self, bytes: &[u8]) -> Digest {
        if self == Self::Xxh3 {
            return Digest::Xxh3(xxh3::Hasher::oneshot(bytes));
        }
        let mut hasher = Hasher::new(self);
        hasher.update(bytes);
        hasher.finish()
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A digest: the algorithm and its bytes, most significant first.
///
/// The text form is the name, a colon and lower-case hex digits, two a byte; reading takes either
/// case.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Digest {
    /// The 32 bytes of a SHA-256.
    Sha256([u8; 32]),
    /// A CRC-32C.
    Crc32c(u32),
    /// An XXH3 of 64 bits.
    Xxh3(u64),
}

impl Digest {
    /// Returns how it was computed.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Sha256(_) => Algorithm::Sha256,
            Self::Crc32c(_) => Algorithm::Crc32c,
            Self::Xxh3(_) => Algorithm::Xxh3,
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.algorithm())?;
        match self {
            Self::Sha256(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Crc32c(value) => write!(f, "{value:08x}"),
            Self::Xxh3(value) => write!(f, "{value:016x}"),
        }
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        let malformed = || ParseDigestError { found: text.to_owned() };
        match text.split_once(':') {
            Some(("sha256", digits)) => from_hex(digits).map(Self::Sha256),
            Some(("crc32c", digits)) => {
                from_hex(digits).map(|bytes| Self::Crc32c(u32::from_be_bytes(bytes)))
            }
            Some(("xxh3", digits)) => {
                from_hex(digits).map(|bytes| Self::Xxh3(u64::from_be_bytes(bytes)))
            }
            _ => None,
        }
        .ok_or_else(malformed)
    }
}

/// A text that is not a digest of a known algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "digest is {found:?}, expected \"sha256:\" and 64 hex digits, \"xxh3:\" and 16, or \"crc32c:\" \
     and 8"
)]
pub struct ParseDigestError {
    /// The text.
    pub found: String,
}

/// Reads exactly `N` bytes from `2 * N` hex digits of either case; `None` for anything else.
#[must_use]
pub fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let value =
            |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// A digest in the making.
#[derive(Clone)]
pub struct Hasher(State);

#[derive(Clone)]
enum State {
    Sha256(sha2::Sha256),
    Crc32c(u32),
    Xxh3(Box<xxh3::Hasher>),
}

impl Hasher {
    /// Starts with no bytes.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Crc32c => State::Crc32c(0),
            Algorithm::Xxh3 => State::Xxh3(Box::new(xxh3::Hasher::new())),
        })
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(state) => state.update(bytes),
            State::Crc32c(state) => *state = crc32c::crc32c_append(*state, bytes),
            State::Xxh3(state) => std::hash::Hasher::write(&mut **state, bytes),
        }
    }

    /// Returns the digest of all bytes taken.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha256(state) => Digest::Sha256(state.finalize().into()),
            State::Crc32c(state) => Digest::Crc32c(state),
            State::Xxh3(state) => Digest::Xxh3(std::hash::Hasher::finish(&*state)),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hasher").field(&self.clone().finish()).finish()
    }
}

/// Hashes what is read through it.
#[derive(Debug)]
pub struct DigestReader<R> {
    inner: R,
    hasher: Hasher,
}

impl<R> DigestReader<R> {
    /// Hashes what is read from `inner` from now on.
    pub fn new(inner: R, algorithm: Algorithm) -> Self {
        Self { inner, hasher: Hasher::new(algorithm) }
    }

    /// Returns the inner reader and the digest of what was read or consumed.
    pub fn finish(self) -> (R, Digest) {
        (self.inner, self.hasher.finish())
    }
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.hasher.update(out.get(..read).unwrap_or_default());
        Ok(read)
    }
}

impl<R: BufRead> BufRead for DigestReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // What is consumed was just offered, so this neither fails nor reads.
        if let Ok(ready) = self.inner.fill_buf() {
            self.hasher.update(ready.get(..amount).unwrap_or_default());
        }
        self.inner.consume(amount);
    }
}

/// Returns the digest of the bytes of `extent`, in memory that does not grow with their number.
///
/// # Errors
///
/// [`Error::OutOfBounds`](crate::Error::OutOfBounds) and [`Error::Read`](crate::Error::Read), which
/// name `what`.
pub fn digest(
    source: &Source,
    extent: Extent,
    algorithm: Algorithm,
    what: &'static str,
) -> Result<Digest> {
    let mut hasher = Hasher::new(algorithm);
    let mut stream = source.stream(extent, what)?;
    loop {
        let offset = extent.end().saturating_sub(stream.remaining());
        let ready =
            stream.fill_buf().map_err(|source| crate::Error::Read { what, offset, source })?;
        if ready.is_empty() {
            return Ok(hasher.finish());
        }
        hasher.update(ready);
        let taken = ready.len();
        stream.consume(taken);
    }
}

/// Returns the digests of many ranges in their order, hashed on up to `threads` threads.
pub fn digests(
    source: &Source,
    ranges: &[(Extent, Algorithm)],
    threads: NonZeroUsize,
    what: &'static str,
) -> Vec<Result<Digest>> {
    parallel::map(ranges, threads, |&(extent, algorithm)| digest(source, extent, algorithm, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 3720, appendix B.4: CRC of 32 bytes of zero.
    const CRC_OF_ZEROS: Digest = Digest::Crc32c(0x8a91_36aa);
    // FIPS 180-2, appendix B.1: SHA-256 of "abc".
    const SHA_OF_ABC: &str =
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn known_values() {
        assert_eq!(Algorithm::Crc32c.digest(&[0; 32]), CRC_OF_ZEROS);
        assert_eq!(Algorithm::Sha256.digest(b"abc").to_string(), SHA_OF_ABC);
        // zTensor 2.1.1 writes this for no bytes.
        assert_eq!(Algorithm::Xxh3.digest(b"").to_string(), "xxh3:2d06800538d394c2");
        let mut pieces = Hasher::new(Algorithm::Xxh3);
        let bytes = [7; 1000];
        bytes.chunks(300).for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.finish(), Algorithm::Xxh3.digest(&bytes));
    }

    #[test]
    fn text_reads_back() {
        for digest in [CRC_OF_ZEROS, Algorithm::Sha256.digest(b""), Algorithm::Xxh3.digest(b"")] {
            assert_eq!(digest.to_string().parse(), Ok(digest));
        }
        assert_eq!("crc32c:8A9136AA".parse(), Ok(CRC_OF_ZEROS));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "sha256", "sha256:ab", "md5:00", "crc32c:8a9136ag", "crc32c:8a9136a"] {
            let error = text.parse::<Digest>().unwrap_err();
            assert_eq!(error.found, text);
        }
    }

    #[test]
    fn streams_hash_on_the_way_through() {
        let mut reader = DigestReader::new(&b"abc"[..], Algorithm::Sha256);
        reader.fill_buf().unwrap();
        reader.consume(1);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.finish().1.to_string(), SHA_OF_ABC);
    }

    #[test]
    fn ranges_keep_their_order() {
        let source = Source::from_bytes(b"xabcy".as_slice());
        let ranges =
            [(Extent::between(1, 4), Algorithm::Sha256), (Extent::first(9), Algorithm::Crc32c)];
        let threads = NonZeroUsize::new(2).unwrap();
        let digests = digests(&source, &ranges, threads, "blob");
        assert_eq!(digests[0].as_ref().unwrap().to_string(), SHA_OF_ABC);
        let error = digests[1].as_ref().unwrap_err();
        assert_eq!(error.to_string(), "blob at byte 0 needs 9 bytes, but 5 remain");
    }
}
