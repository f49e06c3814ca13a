//! A file in memory that keeps what it was after each change.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tensor_core::output::WriteAt;

/// Bytes that are written at positions, with all that they have been before: what a reader may
/// find, and what a process that is killed may leave, as far as single writes are whole.
#[derive(Clone, Debug)]
pub struct Recorded {
    states: Arc<Mutex<Vec<Vec<u8>>>>,
    room: u64,
}

impl Recorded {
    /// Starts with these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self { states: Arc::new(Mutex::new(vec![bytes.to_vec()])), room: u64::MAX }
    }

    /// Takes only what fits into so many bytes, as a full disk does.
    #[must_use]
    pub fn with_room(self, room: u64) -> Self {
        Self { room, ..self }
    }

    /// Returns what it was at first and after each change.
    #[must_use]
    pub fn states(&self) -> Vec<Vec<u8>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut states = self.lock();
        let mut state = states.last().cloned().unwrap_or_default();
        change(&mut state);
        states.push(state);
    }
}

impl WriteAt for Recorded {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.lock().last().map_or(0, |state| state.len() as u64))
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let room = usize::try_from(self.room.saturating_sub(offset)).unwrap_or(usize::MAX);
        let fits = &bytes[..room.min(bytes.len())];
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        self.change(|state| {
            state.resize(state.len().max(start + fits.len()), 0);
            state[start..start + fits.len()].copy_from_slice(fits);
        });
        if fits.len() < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        self.change(|state| state.resize(len, 0));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tensor_core::output::{Append, Durability};

    use super::*;

    const OLD: &[u8] = b"[old end]";

    fn started(file: &Recorded) -> Append<Recorded> {
        let start = file.byte_len().unwrap();
        Append::new(Some(file.clone()), start, Durability::Synced, |_| Ok(OLD.into()))
    }

    fn append(file: &Recorded, len: usize) -> io::Result<u64> {
        let mut append = started(file);
        append.write_all(&vec![b'x'; len])?;
        append.write_all(b"[new end]")?;
        append.commit()
    }

    #[test]
    fn ends_as_before_or_as_after_at_every_write() {
        for len in [0, 1, 5000, 4 << 20, (13 << 20) + 7] {
            let file = Recorded::new(&[b"data".as_slice(), OLD].concat());
            let end = append(&file, len).unwrap();
            let states = file.states();
            let (last, others) = states.split_last().unwrap();
            assert!(others.iter().all(|state| state.ends_with(OLD)), "{len}");
            assert!(last.ends_with(b"x[new end]") || len == 0);
            assert_eq!((last.len(), end), (13 + len + 9, 13 + len as u64 + 9));
            assert_eq!(&last[..13], &states[0]);
        }
    }

    /// In a page of its own, the copy is there whole or not at all.
    #[test]
    fn copies_of_the_end_lie_in_one_page() {
        let file = Recorded::new(OLD);
        append(&file, 100).unwrap();
        assert_eq!(file.states()[1].len(), 4096 + OLD.len());
    }

    #[test]
    fn full_disks_leave_no_trace() {
        for room in [9, 14, 4096, 4100, 4 << 20, 9 << 20] {
            let file = Recorded::new(OLD).with_room(room);
            let error = append(&file, 9 << 20).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(file.states().last().unwrap(), OLD, "{room} bytes of room");
        }
    }

    #[test]
    fn dropped_before_its_commit() {
        let file = Recorded::new(OLD);
        let mut append = started(&file);
        append.write_all(&[1; 5 << 20]).unwrap();
        assert!(append.has_written());
        drop(append);
        assert_eq!(file.states().last().unwrap(), OLD);
    }

    #[test]
    fn what_another_program_has_written_is_not_cut() {
        let file = Recorded::new(OLD);
        let mut append = started(&file);
        append.write_all(&[1; 5 << 20]).unwrap();
        let len = file.byte_len().unwrap();
        file.clone().write_all_at(b"theirs", len).unwrap();
        append.commit().unwrap_err();
        assert!(file.states().last().unwrap().ends_with(b"theirs"));
    }
}
