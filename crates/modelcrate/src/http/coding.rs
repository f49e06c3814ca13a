//! Content codings: what a server says about a body, and how that is undone. Format text: "LINKS".

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, Write},
};

use brotli_decompressor::{
    BrotliState, StandardAlloc,
    reader::{BrotliDecompressStream, BrotliResult},
};
use carton_format::fetch::UrlFault;
use flate2::{Decompress, FlushDecompress, Status, bufread::MultiGzDecoder};
use serde::{Deserialize, Serialize};
use tensor_core::{
    digest::{Algorithm, Digest, Hasher},
    text::short,
};
use ureq::http::{HeaderMap, header::CONTENT_ENCODING};

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Coding {
    Identity,
    Zstd,
    Gzip,
    Br,
    Deflate,
}

impl Coding {
    /// Finds the one coding of a body; chains of codings are refused, because each one multiplies
    /// what a small body can become.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, UrlFault> {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let Some(value) = values.next() else {
            return Ok(Self::Identity);
        };
        let found = String::from_utf8_lossy(value.as_bytes());
        let coding = match found.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "zstd" => Some(Self::Zstd),
            // RFC 9110, section 8.4.1.3: the two are equivalent.
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "br" => Some(Self::Br),
            "deflate" => Some(Self::Deflate),
            _ => None,
        };
        match coding {
            Some(coding) if values.next().is_none() => Ok(coding),
            Some(_) => Err(UrlFault::Coding { found: format!("{}, …", short(&found)) }),
            None => Err(UrlFault::Coding { found: short(&found).into_owned() }),
        }
    }

    /// Returns its name in HTTP.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Br => "br",
            Self::Deflate => "deflate",
        }
    }

    /// Decodes all of a file into another; returns the digest of what was decoded, at most `limit`
    /// bytes.
    pub(crate) fn decode(
        self,
        coded: &mut File,
        out: &mut File,
        limit: u64,
    ) -> Result<Digest, DecodeError> {
        let mut first = None;
        for stream in self.streams() {
            coded.rewind()?;
            out.set_len(0)?;
            out.rewind()?;
            match copy(&mut *stream.open(coded)?, out, limit) {
                Err(DecodeError::Coded(error)) => first = first.or(Some(error)),
                other => return other,
            }
        }
        let error = first.unwrap_or_else(|| io::ErrorKind::InvalidData.into());
        Err(DecodeError::Coded(error))
    }

    /// What may stand behind the name, in the order in which it is tried.
    const fn streams(self) -> &'static [Stream] {
        match self {
            Self::Identity => &[Stream::Plain],
            Self::Zstd => &[Stream::Zstd],
            Self::Gzip => &[Stream::Gzip],
            Self::Br => &[Stream::Brotli],
            // RFC 9110, section 8.4.1.2: zlib, but some servers leave its header out.
            Self::Deflate => &[Stream::Zlib, Stream::Deflate],
        }
    }
}

/// Why nothing was decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// The coded bytes are broken.
    Coded(io::Error),
    /// There is more than allowed.
    OverLimit,
    /// A file could not be written.
    Local(io::Error),
}

impl From<io::Error> for DecodeError {
    fn from(error: io::Error) -> Self {
        Self::Local(error)
    }
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Plain,
    Zstd,
    Gzip,
    Brotli,
    Zlib,
    Deflate,
}

impl Stream {
    fn open(self, coded: &File) -> io::Result<Box<dyn Read + '_>> {
        let coded = BufReader::with_capacity(BUFFER, coded);
        Ok(match self {
            Self::Plain => Box::new(coded),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(coded)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
            Self::Gzip => Box::new(MultiGzDecoder::new(coded)),
            Self::Brotli => Box::new(Brotli::new(coded)),
            Self::Zlib => Box::new(Inflate::new(coded, Decompress::new(true))),
            Self::Deflate => Box::new(Inflate::new(coded, Decompress::new(false))),
        })
    }
}

fn copy(input: &mut dyn Read, out: &mut File, limit: u64) -> Result<Digest, DecodeError> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; BUFFER];
    let mut total = 0_u64;
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(DecodeError::Coded(error)),
        };
        total = total.saturating_add(read as u64);
        if total > limit {
            return Err(DecodeError::OverLimit);
        }
        let ready = buffer.get(..read).unwrap_or_default();
        hasher.update(ready);
        out.write_all(ready)?;
    }
}

/// One zlib or raw deflate stream and nothing behind it. The decoders of flate2 take a stream that
/// was cut off for one that ended, and say nothing about what follows.
struct Inflate<R> {
    input: R,
    state: Decompress,
    has_ended: bool,
}

impl<R> Inflate<R> {
    fn new(input: R, state: Decompress) -> Self {
        Self { input, state, has_ended: false }
    }
}

impl<R: BufRead> Read for Inflate<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended && !out.is_empty() {
            let input = self.input.fill_buf()?;
            let is_last = input.is_empty();
            let (read, written) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(input, out, FlushDecompress::None)?;
            // Both are at most the lengths of the buffers.
            let step = |now: u64, before| usize::try_from(now.saturating_sub(before)).unwrap_or(0);
            let read = step(self.state.total_in(), read);
            let written = step(self.state.total_out(), written);
            self.input.consume(read);
            self.has_ended = status == Status::StreamEnd;
            if written > 0 {
                return Ok(written);
            }
            if !self.has_ended && (is_last || read == 0) {
                return Err(cut_off());
            }
        }
        end(&mut self.input)
    }
}

/// One brotli stream and nothing behind it; the decoder's own reader does not always see that.
struct Brotli<R> {
    input: R,
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    total: usize,
    has_ended: bool,
}

impl<R> Brotli<R> {
    fn new(input: R) -> Self {
        let memory = StandardAlloc::default;
        // Strict: windows of up to 16 MiB, as RFC 7932 has them, and not of up to 1 GiB.
        let state = Box::new(BrotliState::new_strict(memory(), memory(), memory()));
        Self { input, state, total: 0, has_ended: false }
    }
}

impl<R: BufRead> Read for Brotli<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended && !out.is_empty() {
            let input = self.input.fill_buf()?;
            let is_last = input.is_empty();
            let (mut unread, mut read) = (input.len(), 0);
            let (mut free, mut written) = (out.len(), 0);
            let result = BrotliDecompressStream(
                &mut unread,
                &mut read,
                input,
                &mut free,
                &mut written,
                out,
                &mut self.total,
                &mut self.state,
            );
            self.input.consume(read);
            match result {
                BrotliResult::ResultSuccess => self.has_ended = true,
                BrotliResult::ResultFailure => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "malformed data"));
                }
                BrotliResult::NeedsMoreInput if is_last && written == 0 => return Err(cut_off()),
                BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
        end(&mut self.input)
    }
}

fn end(input: &mut impl BufRead) -> io::Result<usize> {
    if input.fill_buf()?.is_empty() {
        return Ok(0);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "bytes behind the end of the compressed data"))
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "compressed data ends before its end")
}

const BUFFER: usize = 128 << 10;

/// 128 MiB, the largest window that a decoder of zstd has to support.
const ZSTD_WINDOW_LOG: u32 = 27;

#[cfg(test)]
mod tests {
    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };
    use ureq::http::HeaderValue;

    use super::*;

    fn decode(coding: Coding, coded: &[u8]) -> Result<Vec<u8>, String> {
        let (mut input, mut out) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        input.write_all(coded).unwrap();
        let digest = coding.decode(&mut input, &mut out, 1 << 20).map_err(|error| match error {
            DecodeError::Coded(error) => error.to_string(),
            DecodeError::OverLimit => "over the limit".to_owned(),
            DecodeError::Local(error) => panic!("{error}"),
        })?;
        let mut decoded = Vec::new();
        out.rewind().unwrap();
        out.read_to_end(&mut decoded).unwrap();
        assert_eq!(digest, Algorithm::Sha256.digest(&decoded));
        Ok(decoded)
    }

    fn text() -> Vec<u8> {
        (0..5000).flat_map(|at: u32| at.to_string().into_bytes()).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(bytes, 3).unwrap()
    }

    /// "hello\n", one of the test vectors of the decoder.
    const BROTLI: [u8; 10] = *b"\x8f\x02\x80hello\n\x03";

    fn samples() -> Vec<(Coding, Vec<u8>, Vec<u8>)> {
        vec![
            (Coding::Identity, text(), text()),
            (Coding::Zstd, zstd(&text()), text()),
            (Coding::Gzip, gzip(&text()), text()),
            (Coding::Br, BROTLI.to_vec(), b"hello\n".to_vec()),
            (Coding::Deflate, zlib(&text()), text()),
            (Coding::Deflate, deflate(&text()), text()),
        ]
    }

    #[test]
    fn several_members_and_frames() {
        for (coding, one) in [(Coding::Gzip, gzip(b"one")), (Coding::Zstd, zstd(b"one"))] {
            let two = [one.clone(), one].concat();
            assert_eq!(decode(coding, &two).unwrap(), b"oneone");
        }
    }

    #[test]
    fn every_truncation() {
        for (coding, coded, _) in samples().into_iter().skip(1) {
            let step = (coded.len() / 50).max(1);
            for len in (0..coded.len()).step_by(step).chain([coded.len() - 1]) {
                decode(coding, &coded[..len]).expect_err("a truncated stream must not decode");
            }
        }
    }

    #[test]
    fn bytes_behind_the_end() {
        for (coding, mut coded, _) in samples().into_iter().skip(1) {
            coded.extend_from_slice(b"junk");
            decode(coding, &coded).expect_err("bytes behind the end must not be ignored");
        }
    }

    #[test]
    fn bombs() {
        let zeros = vec![0; (1 << 20) + 1];
        for (coding, coded) in [
            (Coding::Zstd, zstd(&zeros)),
            (Coding::Gzip, gzip(&zeros)),
            (Coding::Deflate, zlib(&zeros)),
            (Coding::Deflate, deflate(&zeros)),
        ] {
            assert_eq!(decode(coding, &coded).unwrap_err(), "over the limit");
        }
        assert_eq!(decode(Coding::Gzip, &gzip(&zeros[1..])).unwrap().len(), 1 << 20);
    }

    #[test]
    fn large_windows() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(28).unwrap();
        encoder.write_all(b"x").unwrap();
        encoder.flush().unwrap();
        encoder.write_all(b"y").unwrap();
        let error = decode(Coding::Zstd, &encoder.finish().unwrap()).unwrap_err();
        assert_eq!(error, "Frame requires too much memory for decoding");
        // A large-window brotli stream starts with 0x11 and the size of its window.
        assert_eq!(decode(Coding::Br, b"\x11\x1e\x03").unwrap_err(), "malformed data");
    }

    #[test]
    fn names_in_headers() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            Coding::from_headers(&headers).map_err(|fault| fault.to_string())
        };
        assert_eq!(of(&[]), Ok(Coding::Identity));
        assert_eq!(of(&[""]), Ok(Coding::Identity));
        assert_eq!(of(&["GZip "]), Ok(Coding::Gzip));
        assert_eq!(of(&["x-gzip"]), Ok(Coding::Gzip));
        for values in [&["gzip, gzip"][..], &["gzip", "gzip"], &["compress"], &["identity, br"]] {
            let error = of(values).unwrap_err();
            assert!(error.ends_with("expected one of zstd, gzip, br and deflate, or none"));
        }
    }
}
