//! The encoding `zt.zstd-seekable/1`: zstd frames that stand for themselves, and behind them a table
//! of their lengths in a frame that decoders skip.
//!
//! ```text
//! [frame][frame] …  5E 2A 4D 18, length u32, (stored u32, decoded u32 [, checksum u32])…,
//!                   frames u32, descriptor u8, B1 EA 92 8F
//! ```

use std::io::{self, BufRead, BufReader, Read};

use tensor_core::{Extent, Source, SourceReader};
use zstd::stream::raw::{DParameter, Decoder as Zstd, Operation};

/// What a frame takes in the file, and what it decodes to, in bytes.
#[derive(Clone, Copy, Debug)]
struct Frame {
    stored: u32,
    decoded: u32,
}

/// The frames of a part that have not been decoded.
pub(crate) struct Frames {
    source: Source,
    stored: SourceReader,
    /// Where the next stored byte is.
    at: u64,
    frames: Table,
    zstd: Zstd<'static>,
    current: Option<Frame>,
}

impl Frames {
    /// Reads the table, and goes to the frame in which byte `from` of the decoded bytes is; returns
    /// how many bytes of that frame come before it.
    pub(crate) fn open(
        source: &Source,
        extent: Extent,
        decoded_len: u64,
        from: u64,
        window_log: u32,
    ) -> io::Result<(Self, u64)> {
        let (place, data) = place(source, extent)?;
        check(place.read(source)?, decoded_len, data.len())?;
        let (mut skipped, mut at, mut before) = (0_u64, extent.offset(), from);
        let mut frames = place.read(source)?;
        while let Some(frame) = frames.next()? {
            let Some(rest) = before.checked_sub(frame.decoded.into()) else { break };
            (skipped, before) = (skipped.saturating_add(1), rest);
            at = at.saturating_add(frame.stored.into());
        }
        let frames = place.behind(skipped).read(source)?;
        let rest = Extent::between(at, data.end());
        let stored = source.stream(rest, "frames").map_err(io::Error::other)?;
        let mut zstd = Zstd::new()?;
        zstd.set_parameter(DParameter::WindowLogMax(window_log))?;
        let source = source.clone();
        Ok((Self { source, stored, at, frames, zstd, current: None }, before))
    }

    /// Proves that the next frame starts as one does, and carries a checksum of its content.
    fn begin(&mut self, frame: Frame) -> io::Result<()> {
        let head = Extent::new(self.at, HEAD.min(frame.stored.into())).map_err(io::Error::other)?;
        let head = self.source.read(head, "frame").map_err(io::Error::other)?;
        match &*head {
            [magic @ .., _] if magic != FRAME => Err(bad("a frame does not start with its magic")),
            [.., descriptor] if head.len() as u64 == HEAD && descriptor & CHECKSUM != 0 => {
                self.zstd.reinit()?;
                self.current = Some(frame);
                Ok(())
            }
            _ => Err(bad("a frame has no checksum of its content")),
        }
    }
}

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let Some(mut frame) = self.current else {
                match self.frames.next()? {
                    Some(next) => self.begin(next)?,
                    None => return Ok(0),
                }
                continue;
            };
            let ready = self.stored.fill_buf()?;
            let stored = usize::try_from(frame.stored).unwrap_or(usize::MAX).min(ready.len());
            let room = usize::try_from(frame.decoded).unwrap_or(usize::MAX).min(out.len());
            // Where nothing more is due, a byte is room enough to see that there is more.
            let mut more = [0];
            let target =
                if room == 0 { &mut more[..] } else { out.get_mut(..room).unwrap_or_default() };
            let status =
                self.zstd.run_on_buffers(ready.get(..stored).unwrap_or_default(), target)?;
            self.stored.consume(status.bytes_read);
            self.at = self.at.saturating_add(status.bytes_read as u64);
            let (read, written) = (status.bytes_read, status.bytes_written);
            let left = |whole: u32, part: usize| {
                u32::try_from(part).ok().and_then(|part| whole.checked_sub(part))
            };
            let (Some(stored), Some(decoded)) =
                (left(frame.stored, read), left(frame.decoded, written))
            else {
                return Err(bad("a frame decodes to more than the table says"));
            };
            frame = Frame { stored, decoded };
            self.current = Some(frame);
            if status.remaining == 0 {
                if stored > 0 || decoded > 0 {
                    return Err(bad("a frame ends before the table says"));
                }
                self.current = None;
            } else if stored == 0 && written == 0 {
                return Err(bad("a frame is longer than the table says"));
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

/// Where the entries of a table are.
#[derive(Clone, Copy)]
struct Place {
    entries: Extent,
    /// Bytes of an entry.
    width: u64,
}

impl Place {
    fn read(self, source: &Source) -> io::Result<Table> {
        let stream = source.stream(self.entries, "seek table").map_err(io::Error::other)?;
        let left = self.entries.len().checked_div(self.width).unwrap_or_default();
        Ok(Table { stream: BufReader::new(stream), left, has_checksums: self.width > 8 })
    }

    /// Leaves out the first entries.
    fn behind(self, entries: u64) -> Self {
        let start = self.entries.offset().saturating_add(entries.saturating_mul(self.width));
        Self { entries: Extent::between(start.min(self.entries.end()), self.entries.end()), ..self }
    }
}

/// The entries of a table that were not read yet: it may be larger than memory.
struct Table {
    stream: BufReader<SourceReader>,
    left: u64,
    has_checksums: bool,
}

impl Table {
    fn next(&mut self) -> io::Result<Option<Frame>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let mut number = || {
            let mut bytes = [0; 4];
            self.stream.read_exact(&mut bytes).map(|()| u32::from_le_bytes(bytes))
        };
        let (stored, decoded) = (number()?, number()?);
        if self.has_checksums {
            number()?;
        }
        Ok(Some(Frame { stored, decoded }))
    }
}

/// Finds the table of frames at the end of an extent, and the frames themselves.
fn place(source: &Source, extent: Extent) -> io::Result<(Place, Extent)> {
    let part = |offset: u64, len: u64| {
        let extent = extent.part(offset, len, "seek table").map_err(io::Error::other)?;
        source.read(extent, "seek table").map_err(io::Error::other)
    };
    let Some(tail) = extent.len().checked_sub(TAIL) else {
        return Err(bad("it is too short for a seek table"));
    };
    let end = part(tail, TAIL)?;
    let (Some((count, rest)), true) = (end.split_first_chunk(), end.ends_with(SEEKABLE)) else {
        return Err(bad("it does not end with a seek table"));
    };
    let width = match rest.first() {
        Some(0) => 8_u64,
        Some(0x80) => 12,
        _ => return Err(bad("its seek table has a descriptor with reserved bits")),
    };
    let entries = u64::from(u32::from_le_bytes(*count)).saturating_mul(width);
    let content = entries.saturating_add(TAIL);
    let Some(start) = extent.len().checked_sub(content.saturating_add(8)) else {
        return Err(bad("its seek table is longer than it is"));
    };
    let content = u32::try_from(content).map_err(|_| bad("its seek table is too long"))?;
    if *part(start, 8)? != [SKIPPABLE, &content.to_le_bytes()[..]].concat() {
        return Err(bad("its seek table has no frame of its length around it"));
    }
    let inside =
        |offset: u64, len: u64| extent.part(offset, len, "frames").map_err(io::Error::other);
    let entries = inside(start.saturating_add(8), entries)?;
    Ok((Place { entries, width }, inside(0, start)?))
}

/// Proves that a table is one of frames that take and decode to so many bytes.
fn check(mut table: Table, decoded_len: u64, stored_len: u64) -> io::Result<()> {
    let (mut stored_sum, mut decoded_sum) = (0_u64, 0_u64);
    let mut size = None;
    while let Some(Frame { stored, decoded }) = table.next()? {
        if decoded > MAX_FRAME {
            return Err(bad("a frame decodes to more than 16 MiB"));
        }
        stored_sum = stored_sum.saturating_add(stored.into());
        decoded_sum = decoded_sum.saturating_add(decoded.into());
        if *size.get_or_insert(decoded) != decoded && table.left > 0 {
            return Err(bad("its frames before the last differ in what they decode to"));
        }
    }
    if decoded_sum != decoded_len {
        return Err(bad(format!(
            "its frames decode to {decoded_sum} bytes, but the part has {decoded_len}"
        )));
    }
    if stored_sum != stored_len {
        return Err(bad(format!(
            "its frames take {stored_sum} bytes, but {stored_len} are before the table"
        )));
    }
    Ok(())
}

fn bad(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// What a frame starts with, and the byte behind that with the bit of its checksum.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const HEAD: u64 = 5;
const CHECKSUM: u8 = 1 << 2;
/// What a frame that decoders skip starts with.
pub(crate) const SKIPPABLE: &[u8] = &[0x5e, 0x2a, 0x4d, 0x18];
/// What a table ends with: number of frames, descriptor, magic.
const TAIL: u64 = 9;
pub(crate) const SEEKABLE: &[u8] = &[0xb1, 0xea, 0x92, 0x8f];
/// What a frame may decode to, in bytes.
pub(crate) const MAX_FRAME: u32 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(entries: &[[u32; 2]], before: usize, decoded: u64) -> String {
        let mut bytes = vec![0; before];
        bytes.extend(SKIPPABLE);
        bytes.extend((entries.len() as u32 * 8 + TAIL as u32).to_le_bytes());
        bytes.extend(entries.iter().flatten().flat_map(|number| number.to_le_bytes()));
        bytes.extend((entries.len() as u32).to_le_bytes());
        bytes.push(0);
        bytes.extend(SEEKABLE);
        let source = Source::from_bytes(bytes);
        let opened = Frames::open(&source, Extent::first(source.len()), decoded, 0, 27);
        opened.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn tables_fit_their_frames() {
        assert_eq!(opened(&[[20, 8], [10, 3]], 30, 11), "");
        assert_eq!(opened(&[], 0, 0), "");
        for (entries, decoded, message) in [
            (&[[20, 8], [10, 9]][..], 17, ""),
            (
                &[[10, 8], [10, 9], [10, 1]],
                18,
                "its frames before the last differ in what they decode to",
            ),
            (&[[30, 8]], 9, "its frames decode to 8 bytes, but the part has 9"),
            (&[[29, 8]], 8, "its frames take 29 bytes, but 30 are before the table"),
            (&[[30, MAX_FRAME + 1]], 1, "a frame decodes to more than 16 MiB"),
        ] {
            assert_eq!(opened(entries, 30, decoded), message);
        }
    }
}
