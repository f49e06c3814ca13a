//! An open file at an address: what was read of it stays for a while, and what is likely to be read
//! next comes along.

use std::{
    collections::HashMap,
    fmt, io,
    num::NonZeroU64,
    ops::Range,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tensor_core::{ReadAt, Source};

use super::{
    Error, Location, Result,
    answer::{Pin, Version},
    runtime::wait,
    target::Target,
};

/// An open file: its bytes, and which version of it they are of.
#[derive(Clone, Debug)]
pub struct Opened {
    pub(super) source: Source,
    pub(super) version: Version,
    pub(super) fault: Fault,
}

impl Opened {
    /// Returns its bytes. Of a file at an address, all are of one version: once it has changed, reads
    /// fail.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the entity tag that the store has for this version; `None` where it has none, or for a
    /// path.
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        self.version.etag.as_deref()
    }

    /// Returns when the file was changed last, where that is known.
    #[must_use]
    pub const fn modified(&self) -> Option<SystemTime> {
        self.version.modified
    }

    /// Returns what went wrong when bytes of the file, or of a shard beside it, could not be read first,
    /// for whoever reads them through something that takes this for a fault of the file.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.said.get().map(String::as_str)
    }
}

/// Reads a file in blocks.
pub(super) struct RemoteFile {
    target: Target,
    pin: Pin,
    blocks: Blocks,
    state: Mutex<State>,
    changed: Condvar,
    fault: Fault,
}

/// What is said of the first read that failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Fault {
    said: Arc<OnceLock<String>>,
    /// What the file is called, where it is a part of the one that was opened.
    part: Option<Location>,
}

impl Fault {
    /// Returns what says the faults of a part of the file, too.
    pub(super) fn of_part(&self, part: &Location) -> Self {
        Self { said: Arc::clone(&self.said), part: Some(part.clone()) }
    }

    fn say(&self, error: &Error) {
        self.said.get_or_init(|| match &self.part {
            Some(part) => format!("{:?}: {error}", part.to_string()),
            None => error.to_string(),
        });
    }
}

/// Where blocks are.
#[derive(Clone, Copy)]
struct Blocks {
    /// Bytes of each but the last.
    size: NonZeroU64,
    /// Bytes of the file.
    len: u64,
}

#[derive(Default)]
struct State {
    kept: HashMap<u64, Kept>,
    /// Counts uses, so that the block that was used least recently is known.
    uses: u64,
    /// Blocks that somebody waits for.
    pending: Vec<Range<u64>>,
    /// Whether the end of the file was asked for.
    has_end: bool,
    /// The blocks behind what was read last, and how many were read: who comes there reads on.
    ends: Vec<(u64, u64)>,
}

struct Kept {
    bytes: Bytes,
    used: u64,
}

/// What there is to do for a block.
enum Step {
    Have(Bytes),
    /// Somebody else waits for it.
    Wait,
    Fetch(Range<u64>),
}

impl RemoteFile {
    /// Starts with the first bytes, which came when the file was opened.
    pub(super) fn new(target: Target, pin: Pin, start: &Bytes, fault: Fault) -> Self {
        let size = NonZeroU64::new(target.options.block_size).unwrap_or(NonZeroU64::MIN);
        let blocks = Blocks { size, len: pin.len };
        let mut state = State::default();
        let came = blocks.of(start.len() as u64);
        state.ends.push((came, came));
        state.keep(0..came, start, blocks, u64::MAX);
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { target, pin, blocks, state, changed, fault }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills a buffer from blocks.
    fn read_blocks(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        let wanted = offset / self.blocks.size..self.blocks.of(end);
        let mut at = wanted.start;
        while at < wanted.end {
            let mut state = self.state();
            match state.step(at, wanted.end, self) {
                Step::Have(bytes) => {
                    drop(state);
                    self.blocks.copy(at, &bytes, offset, buffer);
                    at = at.saturating_add(1);
                }
                Step::Wait => {
                    drop(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
                }
                Step::Fetch(run) => {
                    state.pending.push(run.clone());
                    drop(state);
                    let fetched = self.target.read(self.blocks.bytes(&run), Some(&self.pin));
                    let mut state = self.state();
                    state.pending.retain(|pending| *pending != run);
                    if let Ok(answer) = &fetched {
                        state.keep(run.clone(), &answer.bytes, self.blocks, self.most_blocks());
                    }
                    drop(state);
                    self.changed.notify_all();
                    // Those of them that are wanted may be out again before they are used.
                    let (bytes, start) = (fetched?.bytes, self.blocks.bytes(&run).start);
                    self.blocks.copy_from(start, &bytes, offset, buffer);
                    at = at.max(run.end);
                }
            }
        }
        Ok(())
    }

    /// Fills a large buffer by several requests at once; nothing is kept.
    fn read_whole(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        for (at, part) in buffer.chunks_mut(AT_ONCE * CHUNK).enumerate() {
            let start = offset.saturating_add((at as u64).saturating_mul((AT_ONCE * CHUNK) as u64));
            let end = start.saturating_add(part.len() as u64);
            let (target, pin) = (self.target.clone(), self.pin.clone());
            let bytes = wait(async move {
                let starts = (start..end).step_by(CHUNK);
                let ranges = starts.map(|at| at..end.min(at.saturating_add(CHUNK as u64)));
                let answers = ranges.map(|range| target.get(range, Some(&pin)));
                let answers = stream::iter(answers).buffered(AT_ONCE);
                answers.map_ok(|answer| answer.bytes).try_collect::<Vec<_>>().await
            })?;
            for (bytes, part) in bytes.iter().zip(part.chunks_mut(CHUNK)) {
                // Each answer has exactly the bytes that were asked for.
                part.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Returns how many blocks are kept.
    fn most_blocks(&self) -> u64 {
        self.target.options.kept() / self.blocks.size
    }
}

impl ReadAt for RemoteFile {
    fn len(&self) -> u64 {
        self.blocks.len
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.blocks.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let read = match buffer.len() {
            0 => Ok(()),
            WHOLE.. => self.read_whole(offset, buffer),
            _ => self.read_blocks(offset, buffer),
        };
        read.map_err(|error| {
            self.fault.say(&error);
            error.into()
        })
    }
}

impl State {
    /// Says what there is to do for a block, where those up to `end` are wanted.
    fn step(&mut self, at: u64, end: u64, file: &RemoteFile) -> Step {
        self.uses = self.uses.saturating_add(1);
        if let Some(kept) = self.kept.get_mut(&at) {
            kept.used = self.uses;
            return Step::Have(kept.bytes.clone());
        }
        if self.pending.iter().any(|run| run.contains(&at)) {
            return Step::Wait;
        }
        let is_there = |block: u64| {
            self.kept.contains_key(&block) || self.pending.iter().any(|run| run.contains(&block))
        };
        let (blocks, count) = (file.blocks, file.blocks.of(file.blocks.len));
        let end_len = blocks.size.get().saturating_mul(END);
        let first_of_end = blocks.len.saturating_sub(end_len) / blocks.size;
        let mut run = at..end;
        if !self.has_end && at >= first_of_end {
            // What is read from its end is read backwards: directories, indices, what they lead to.
            run = (first_of_end..at)
                .rev()
                .find(|block| is_there(*block))
                .map_or_else(|| first_of_end..count, |block| block.saturating_add(1)..count);
        } else if let Some(ahead) = self.ends.iter().find(|(end, _)| *end == at) {
            // Who reads on in order reads more and more.
            let most = (file.most_blocks() / 8).clamp(1, AHEAD);
            let more = ahead.1.saturating_mul(2).min(most);
            run.end = run.end.max(at.saturating_add(more)).min(count);
        }
        let end = (at..run.end).find(|block| is_there(*block)).unwrap_or(run.end);
        run.end = end;
        self.has_end |= run.end == count;
        self.ends.retain(|(end, _)| *end != at);
        self.ends.push((run.end, run.end.saturating_sub(run.start)));
        if self.ends.len() > READERS {
            self.ends.remove(0);
        }
        Step::Fetch(run)
    }

    /// Keeps blocks, in the place of those that were not used for the longest time.
    fn keep(&mut self, run: Range<u64>, bytes: &Bytes, blocks: Blocks, most: u64) {
        let start = blocks.bytes(&run).start;
        self.uses = self.uses.saturating_add(1);
        for block in run {
            let range = blocks.bytes(&(block..block.saturating_add(1)));
            let part = |at: u64| usize::try_from(at.saturating_sub(start)).ok();
            let part = part(range.start).zip(part(range.end));
            let Some(part) = part.and_then(|(start, end)| bytes.get(start..end)) else { break };
            // A slice would keep all that came with it.
            let kept = Kept { bytes: Bytes::copy_from_slice(part), used: self.uses };
            self.kept.insert(block, kept);
        }
        while self.kept.len() as u64 > most {
            let oldest = self.kept.iter().min_by_key(|(block, kept)| (kept.used, **block));
            let Some(oldest) = oldest.map(|(block, _)| *block) else { break };
            self.kept.remove(&oldest);
        }
    }
}

impl Blocks {
    /// Returns how many blocks so many bytes from the start of the file touch.
    const fn of(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.size.get())
    }

    /// Returns the bytes that some blocks have.
    fn bytes(self, run: &Range<u64>) -> Range<u64> {
        let start = |block: u64| block.saturating_mul(self.size.get());
        start(run.start)..start(run.end).min(self.len)
    }

    /// Copies what a buffer that starts at `offset` in the file wants of a block.
    fn copy(self, block: u64, bytes: &[u8], offset: u64, buffer: &mut [u8]) {
        self.copy_from(block.saturating_mul(self.size.get()), bytes, offset, buffer);
    }

    /// Copies what a buffer that starts at `offset` in the file wants of bytes that start at `start`.
    fn copy_from(self, start: u64, bytes: &[u8], offset: u64, buffer: &mut [u8]) {
        let skip = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let from = bytes.get(skip(offset.saturating_sub(start))..).unwrap_or_default();
        let to = buffer.get_mut(skip(start.saturating_sub(offset))..).unwrap_or_default();
        let len = from.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
            to.copy_from_slice(from);
        }
    }
}

impl fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteFile").field("pin", &self.pin).finish_non_exhaustive()
    }
}

/// How many blocks at its end are asked for where the end of a file is wanted.
const END: u64 = 2;

/// How many blocks are read ahead at most.
const AHEAD: u64 = 32;

/// How many that read on in order are told apart.
const READERS: usize = 8;

/// From how many bytes on a read is made by several requests at once.
const WHOLE: usize = 2 * CHUNK;

/// How many bytes each of them asks for.
const CHUNK: usize = 8 << 20;

/// How many of them there are at once.
const AT_ONCE: usize = 4;
