//! Decoding of entries, with every promise of the directory enforced on the real bytes.

use std::io::{self, BufRead, Read};

use tensor_core::SourceReader;

use crate::{Archive, Error, Fault, Info, Method, Result};

#[cfg(feature = "zstd")]
pub(crate) mod pool;
#[cfg(any(feature = "deflate", feature = "zstd"))]
mod step;
#[cfg(feature = "zstd")]
mod zstd;

#[cfg(feature = "deflate")]
use step::Step;

/// The content of an entry as a stream, in memory that does not grow with it.
///
/// The end of the stream is only reached where size and CRC-32 are those of the directory: what was
/// read before an error must not be relied on. Errors carry an [`Error`](crate::Error), which
/// [`fault`](Self::fault) gives back.
#[derive(Debug)]
pub struct EntryReader {
    stored: SourceReader,
    codec: Codec,
    /// Decoded bytes; unused where there is nothing to decode.
    #[cfg(any(feature = "deflate", feature = "zstd"))]
    output: Vec<u8>,
    /// The bytes that were counted and not consumed: in `output`, or the next of `stored`.
    ready: std::ops::Range<usize>,
    crc: crc32fast::Hasher,
    /// Bytes that were counted.
    produced: u64,
    state: State,
    info: Info,
    archive: Archive,
    /// Its position in the directory.
    index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Done,
    Failed,
}

/// What turns stored bytes into content.
enum Codec {
    Stored,
    #[cfg(feature = "deflate")]
    Deflate(Box<flate2::Decompress>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::Frames),
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stored => "Stored",
            #[cfg(feature = "deflate")]
            Self::Deflate(_) => "Deflate",
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => "Zstd",
        })
    }
}

impl EntryReader {
    pub(crate) fn new(stored: SourceReader, archive: &Archive, index: usize) -> Result<Self> {
        let info = archive.info(index);
        let codec = match info.method {
            Method::Stored => Codec::Stored,
            #[cfg(feature = "deflate")]
            Method::Deflate => Codec::Deflate(Box::new(flate2::Decompress::new(false))),
            #[cfg(feature = "zstd")]
            Method::Zstd => zstd::Frames::new(archive.pool(), archive.limits().zstd_window_log)
                .map(Codec::Zstd)
                .map_err(|source| Error::Io { what: "making a zstd decoder", source })?,
            #[cfg(not(all(feature = "deflate", feature = "zstd")))]
            method => {
                let expected = "0, which is all that this build decodes".to_owned();
                let fault = Fault::Method { found: method.code(), expected };
                return Err(archive.directory().fault_at(index, fault).into());
            }
        };
        #[cfg(any(feature = "deflate", feature = "zstd"))]
        let output = match codec {
            Codec::Stored => Vec::new(),
            // One byte more than the content shows that there is more than there should be.
            _ => {
                let most = usize::try_from(info.size).unwrap_or(usize::MAX);
                vec![0; most.saturating_add(1).min(OUTPUT)]
            }
        };
        Ok(Self {
            stored,
            codec,
            #[cfg(any(feature = "deflate", feature = "zstd"))]
            output,
            ready: 0..0,
            crc: crc32fast::Hasher::new(),
            produced: 0,
            state: State::Running,
            info,
            archive: archive.clone(),
            index,
        })
    }

    /// Returns how many zstd frames were decoded so far, those that are skipped counted; 0 for other
    /// methods.
    #[must_use]
    pub fn frames(&self) -> u64 {
        match &self.codec {
            #[cfg(feature = "zstd")]
            Codec::Zstd(frames) => frames.count(),
            _ => 0,
        }
    }

    /// Returns how many stored bytes stand behind the end of the data; known at the end of the
    /// stream. The strict profile refuses them.
    #[must_use]
    pub fn leftover(&self) -> u64 {
        if self.state == State::Done { self.stored.remaining() } else { 0 }
    }

    /// Turns an error of this stream into what it is about.
    #[must_use]
    pub fn fault(error: io::Error) -> Error {
        let source = match error.downcast::<Error>() {
            Ok(error) => return error,
            Err(source) => source,
        };
        match source.downcast::<tensor_core::Error>() {
            Ok(error) => error.into(),
            Err(source) => Error::Io { what: "reading an entry", source },
        }
    }

    fn fail(&mut self, fault: Fault) -> io::Error {
        self.state = State::Failed;
        io::Error::other(Error::from(self.archive.directory().fault_at(self.index, fault)))
    }

    /// Decodes into `output` until there is something, or the end.
    #[cfg(any(feature = "deflate", feature = "zstd"))]
    fn decode(&mut self) -> io::Result<()> {
        loop {
            let input = self.stored.fill_buf()?;
            let is_last = input.is_empty();
            let step = match &mut self.codec {
                Codec::Stored => return Ok(()),
                #[cfg(feature = "deflate")]
                Codec::Deflate(inflate) => deflate_step(inflate, input, &mut self.output),
                #[cfg(feature = "zstd")]
                Codec::Zstd(frames) => frames.step(input, &mut self.output),
            };
            let step = match step {
                Ok(step) => step,
                Err(error) => {
                    let (method, reason) = (self.info.method, error.to_string());
                    return Err(self.fail(Fault::Decode { method, reason }));
                }
            };
            self.stored.consume(step.consumed);
            if step.produced > 0 {
                self.ready = 0..step.produced;
                return Ok(());
            }
            if step.is_end && (is_last || step.consumed == 0) {
                return Ok(());
            }
            if is_last {
                let (method, reason) = (self.info.method, "its end is missing".to_owned());
                return Err(self.fail(Fault::Decode { method, reason }));
            }
        }
    }

    /// Proves at the end that nothing is missing and nothing differs.
    fn end(&mut self) -> io::Result<()> {
        let (found, expected) = (self.produced, self.info.size);
        if found != expected {
            return Err(self.fail(Fault::Size { found, expected }));
        }
        let leftover = self.stored.remaining();
        if leftover > 0 && self.archive.is_strict() {
            return Err(self.fail(Fault::Leftover { bytes: leftover }));
        }
        let (found, expected) = (self.crc.clone().finalize(), self.info.crc32);
        if found != expected {
            return Err(self.fail(Fault::Crc { found, expected }));
        }
        self.state = State::Done;
        Ok(())
    }

    /// Counts the bytes that are next; the end is reached where there are none.
    fn account(&mut self) -> io::Result<()> {
        let ready = match self.codec {
            Codec::Stored => {
                let ready = self.stored.fill_buf()?;
                self.ready = 0..ready.len().min(OUTPUT);
                ready.get(self.ready.clone()).unwrap_or_default()
            }
            #[cfg(any(feature = "deflate", feature = "zstd"))]
            _ => self.output.get(self.ready.clone()).unwrap_or_default(),
        };
        self.crc.update(ready);
        self.produced = self.produced.saturating_add(ready.len() as u64);
        let (found, expected) = (self.produced, self.info.size);
        if found > expected {
            return Err(self.fail(Fault::Size { found, expected }));
        }
        if ready.is_empty() { self.end() } else { Ok(()) }
    }
}

impl BufRead for EntryReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.state == State::Failed {
            return Err(io::Error::other("the entry failed before"));
        }
        if self.state == State::Running && self.ready.is_empty() {
            #[cfg(any(feature = "deflate", feature = "zstd"))]
            self.decode()?;
            self.account()?;
        }
        match self.codec {
            Codec::Stored => {
                let ready = self.stored.fill_buf()?;
                Ok(ready.get(..self.ready.len()).unwrap_or_default())
            }
            #[cfg(any(feature = "deflate", feature = "zstd"))]
            _ => Ok(self.output.get(self.ready.clone()).unwrap_or_default()),
        }
    }

    fn consume(&mut self, amount: usize) {
        let taken = amount.min(self.ready.len());
        self.ready.start = self.ready.start.saturating_add(taken);
        if matches!(self.codec, Codec::Stored) {
            self.stored.consume(taken);
        }
    }
}

impl Read for EntryReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.fill_buf()?;
        let taken = ready.read(out)?;
        self.consume(taken);
        Ok(taken)
    }
}

#[cfg(feature = "deflate")]
fn deflate_step(
    inflate: &mut flate2::Decompress,
    input: &[u8],
    output: &mut [u8],
) -> io::Result<Step> {
    let (read, written) = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, output, flate2::FlushDecompress::None)?;
    let since =
        |now: u64, then: u64| usize::try_from(now.saturating_sub(then)).unwrap_or(usize::MAX);
    let consumed = since(inflate.total_in(), read);
    let produced = since(inflate.total_out(), written);
    let is_end = status == flate2::Status::StreamEnd;
    if !is_end && consumed == 0 && produced == 0 && !input.is_empty() {
        return Err(io::Error::other("no progress"));
    }
    Ok(Step { consumed, produced, is_end })
}

/// Bytes that are decoded at once.
const OUTPUT: usize = 128 << 10;
