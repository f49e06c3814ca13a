//! Entries that are read and hashed on one thread while they are compressed and written on another.

use std::{
    io::{self, Read, Write},
    num::NonZeroUsize,
    panic,
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use tensor_core::digest::{Digest, Hasher};

use crate::{ArchiveWriter, EntryOptions, Error, Result, Written, write::entry_writer::BLOCK};

impl<W: Write> ArchiveWriter<W> {
    /// Writes a file whose content is read to its end.
    ///
    /// With two threads or more, one reads and hashes while the caller's compresses and writes; the
    /// bytes do not depend on it. Memory does not grow with the content.
    ///
    /// # Errors
    ///
    /// As for [`stream`](Self::stream); [`WriteFault::Size`](crate::WriteFault::Size) where the
    /// content has another size than the options say; [`Error::Io`] where it cannot be read.
    pub fn stream_from(
        &mut self,
        name: &str,
        content: impl Read + Send,
        options: &EntryOptions,
        threads: NonZeroUsize,
    ) -> Result<Written> {
        let mut entry = self.stream(name, options)?;
        let mut blocks = Blocks { content, hasher: entry.take_hasher() };
        blocks.pass_to(|block| entry.put(block), threads)?;
        entry.complete(blocks.finish())
    }
}

/// Content on its way in.
struct Blocks<R> {
    content: R,
    hasher: Option<Hasher>,
}

impl<R: Read + Send> Blocks<R> {
    /// Passes on all blocks; only the last one is short.
    fn pass_to(
        &mut self,
        mut put: impl FnMut(&[u8]) -> Result<()>,
        threads: NonZeroUsize,
    ) -> Result<()> {
        let mut block = Vec::new();
        // A file of one block is not worth a thread.
        let mut is_parallel = false;
        while !is_parallel {
            self.read(&mut block).map_err(Error::reading)?;
            put(&block)?;
            if block.len() < BLOCK {
                return Ok(());
            }
            is_parallel = threads.get() > 1 && self.pass_from_thread(&mut put)?;
        }
        Ok(())
    }

    /// Passes on the rest of the blocks, which a second thread reads; `false` where the system does
    /// not give one.
    fn pass_from_thread(&mut self, put: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let (to_read, empty) = mpsc::channel();
        let (full, to_write) = mpsc::channel();
        thread::scope(|scope| {
            let read = || self.read_all(empty, full);
            let Ok(reader) = thread::Builder::new().spawn_scoped(scope, read) else {
                return Ok(false);
            };
            let written = write_all(to_read, to_write, put);
            // A panic of the caller's stream goes on to the caller.
            reader.join().unwrap_or_else(|cause| panic::resume_unwind(cause));
            written.map(|()| true)
        })
    }

    /// Fills empty blocks until the content ends or nobody asks.
    #[expect(clippy::needless_pass_by_value, reason = "to drop them ends the other thread")]
    fn read_all(&mut self, empty: Receiver<Vec<u8>>, full: Sender<io::Result<Vec<u8>>>) {
        for mut block in empty {
            let read = self.read(&mut block);
            let is_last = read.is_err() || block.len() < BLOCK;
            if full.send(read.map(|()| block)).is_err() || is_last {
                break;
            }
        }
    }

    /// Fills a block, empty or full, as far as there is content, and hashes it.
    fn read(&mut self, block: &mut Vec<u8>) -> io::Result<()> {
        if block.is_empty() {
            *block = vec![0; BLOCK];
        }
        let mut filled = 0_usize;
        while let Some(rest @ [_, ..]) = block.get_mut(filled..) {
            match self.content.read(rest) {
                Ok(0) => break,
                Ok(read) => filled = filled.saturating_add(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        block.truncate(filled);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(block);
        }
        Ok(())
    }

    fn finish(self) -> Option<Digest> {
        self.hasher.map(Hasher::finish)
    }
}

/// Writes full blocks and gives them back, until a short one or a failure comes.
#[expect(clippy::needless_pass_by_value, reason = "to drop them ends the other thread")]
fn write_all(
    empty: Sender<Vec<u8>>,
    full: Receiver<io::Result<Vec<u8>>>,
    put: &mut impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    for _ in 0..BLOCKS {
        // Where the other thread is gone already, there is nothing to receive either.
        let _ = empty.send(Vec::new());
    }
    for block in full {
        let block = block.map_err(Error::reading)?;
        put(&block)?;
        // The other thread ends itself after a short block.
        let _ = empty.send(block);
    }
    Ok(())
}

/// How many blocks are on their way between the two threads.
const BLOCKS: usize = 4;
