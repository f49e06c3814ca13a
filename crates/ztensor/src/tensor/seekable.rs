//! The encoding `zt.zstd-seekable/1`: zstd frames that stand for themselves, and behind them a table
//! of their lengths in a frame that decoders skip.
//!
//! ```text
//! [frame][frame] …  5E 2A 4D 18, length u32, (stored u32, decoded u32 [, checksum u32])…,
//!                   frames u32, descriptor u8, B1 EA 92 8F
//! ```

use std::{
    io::{self, BufRead, Read},
    vec,
};

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
    frames: vec::IntoIter<Frame>,
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
        let (frames, data) = table(source, extent, decoded_len)?;
        let (mut skipped, mut at, mut before) = (0_usize, extent.offset(), from);
        for frame in &frames {
            let Some(rest) = before.checked_sub(frame.decoded.into()) else { break };
            (skipped, before) = (skipped.saturating_add(1), rest);
            at = at.saturating_add(frame.stored.into());
        }
        let mut frames = frames.into_iter();
        frames.by_ref().take(skipped).for_each(drop);
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
                match self.frames.next() {
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

/// Reads the table of frames at the end of an extent; returns where the frames themselves are.
fn table(source: &Source, extent: Extent, decoded_len: u64) -> io::Result<(Vec<Frame>, Extent)> {
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
    let bytes = part(start, entries.saturating_add(8))?;
    let content = u32::try_from(content).map_err(|_| bad("its seek table is too long"))?;
    let (head, entries) = bytes.split_at_checked(8).unwrap_or_default();
    if head != [SKIPPABLE, &content.to_le_bytes()[..]].concat() {
        return Err(bad("its seek table has no frame of its length around it"));
    }
    let width = usize::try_from(width).unwrap_or(8);
    let mut frames = Vec::new();
    frames.try_reserve_exact(entries.len().checked_div(width).unwrap_or_default())?;
    let (mut stored_sum, mut decoded_sum) = (0_u64, 0_u64);
    for entry in entries.chunks_exact(width) {
        let number = |at: usize| entry.get(at..).and_then(<[u8]>::first_chunk).copied();
        let [stored, decoded] = [0, 4].map(|at| u32::from_le_bytes(number(at).unwrap_or_default()));
        if decoded > MAX_FRAME {
            return Err(bad("a frame decodes to more than 16 MiB"));
        }
        stored_sum = stored_sum.saturating_add(stored.into());
        decoded_sum = decoded_sum.saturating_add(decoded.into());
        frames.push(Frame { stored, decoded });
    }
    if decoded_sum != decoded_len {
        return Err(bad(format!(
            "its frames decode to {decoded_sum} bytes, but the part has {decoded_len}"
        )));
    }
    if stored_sum != start {
        return Err(bad(format!(
            "its frames take {stored_sum} bytes, but {start} are before the table"
        )));
    }
    let size = frames.first().map(|frame| frame.decoded);
    if let Some((_, all_but_last)) = frames.split_last()
        && all_but_last.iter().any(|frame| Some(frame.decoded) != size)
    {
        return Err(bad("its frames before the last differ in what they decode to"));
    }
    let data = extent.part(0, start, "frames").map_err(io::Error::other)?;
    Ok((frames, data))
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
