use std::{
    fs::File,
    io::{self, IoSlice, Write},
};

/// A file that is written from its start in blocks that start where the pages of the system do:
/// those that do not cost it a third more. What fills blocks is written from where it is.
#[derive(Debug)]
pub(super) struct Blocks {
    file: File,
    /// What was taken and not written: less than a block.
    rest: Vec<u8>,
    /// How many bytes the block has yet to get.
    room: usize,
}

impl Blocks {
    pub(super) const fn new(file: File) -> Self {
        Self { file, rest: Vec::new(), room: BLOCK }
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// Writes what is left, and returns the file.
    pub(super) fn into_file(mut self) -> io::Result<File> {
        self.flush()?;
        Ok(self.file)
    }

    /// Writes what was kept and then `bytes`, in one call of the system where that takes all.
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !self.rest.is_empty() {
            let written =
                self.file.write_vectored(&[IoSlice::new(&self.rest), IoSlice::new(bytes)]);
            let written = match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                written => written?,
            };
            let kept = self.rest.len().min(written);
            self.rest.drain(..kept);
            bytes = bytes.get(written.saturating_sub(kept)..).unwrap_or_default();
        }
        self.file.write_all(bytes)
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(beyond) = bytes.len().checked_sub(self.room) else {
            self.rest.reserve_exact(self.room);
            self.rest.extend_from_slice(bytes);
            self.room = self.room.saturating_sub(bytes.len());
            return Ok(bytes.len());
        };
        let whole = beyond.checked_rem(BLOCK).and_then(|over| bytes.len().checked_sub(over));
        let whole = whole.and_then(|whole| bytes.get(..whole)).unwrap_or(bytes);
        self.put(whole)?;
        self.room = BLOCK;
        Ok(whole.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put(&[])?;
        self.file.flush()
    }
}

/// Bytes of a block.
const BLOCK: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pieces_of_any_size_are_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..3 * BLOCK + 77).map(|at| (at % 251) as u8).collect();
        for len in [1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5, bytes.len()] {
            let mut blocks = Blocks::new(File::create(&path).unwrap());
            blocks.write_all(&bytes[..10]).unwrap();
            blocks.flush().unwrap();
            for piece in bytes[10..].chunks(len) {
                blocks.write_all(piece).unwrap();
                let written = blocks.file().metadata().unwrap().len();
                assert!(written == 10 || written.is_multiple_of(BLOCK as u64), "{written}");
            }
            blocks.into_file().unwrap();
            assert!(fs::read(&path).unwrap() == bytes, "{len}");
        }
    }
}
