//! The encoded entries of a manifest that is being written.

use std::{
    hash::{BuildHasher, RandomState},
    ops::Range,
};

use hashbrown::HashTable;
use tensor_core::{Limit, Limits};

use crate::{
    Object,
    error::{Error, Result},
    manifest::emit::Emitter,
};

/// The encoded objects by name.
#[derive(Default)]
pub(crate) struct Index {
    names: String,
    /// In pieces, which stay where they are: memory is touched once.
    bodies: Vec<Vec<u8>>,
    entries: Vec<Entry>,
    hasher: RandomState,
    by_name: HashTable<Slot>,
    /// What is written is read back.
    limits: Limits,
}

/// A place in the table of names; the hash is kept, so that growing looks at no name.
#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    index: usize,
}

/// The hash of a name that may be given to an object.
#[derive(Clone, Copy)]
pub(crate) struct Free {
    hash: u64,
}

struct Entry {
    name: Range<usize>,
    body: Body,
    live: bool,
}

/// Where a body is: in which of the pieces, and where there.
#[derive(Clone)]
struct Body {
    piece: usize,
    range: Range<usize>,
}

impl Index {
    fn name(&self, index: usize) -> &str {
        let name = self.entries.get(index).map(|entry| entry.name.clone());
        name.and_then(|name| self.names.get(name)).unwrap_or_default()
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.find(self.hasher.hash_one(name), name).map(|slot| slot.index)
    }

    fn find(&self, hash: u64, name: &str) -> Option<Slot> {
        let same = |slot: &Slot| slot.hash == hash && self.name(slot.index) == name;
        self.by_name.find(hash, same).copied()
    }

    /// Returns the encoded body of an object.
    pub(crate) fn body(&self, name: &str) -> Option<&[u8]> {
        self.at(&self.entries.get(self.position(name)?)?.body)
    }

    fn at(&self, body: &Body) -> Option<&[u8]> {
        self.bodies.get(body.piece)?.get(body.range.clone())
    }

    /// Returns the hash of a name that no object has.
    pub(crate) fn free(&self, name: &str) -> Result<Free> {
        let hash = self.hasher.hash_one(name);
        match self.find(hash, name) {
            None => Ok(Free { hash }),
            Some(_) => Err(Error::DuplicateObject { name: name.to_owned() }),
        }
    }

    pub(crate) fn push_object(&mut self, name: &str, object: &Object) -> Result<()> {
        let hash = self.hasher.hash_one(name);
        self.push_with(name, Free { hash }, |body| object.encode(&mut Emitter::new(body)))
    }

    /// Adds an entry whose body `encode` appends.
    pub(crate) fn push_with(
        &mut self,
        name: &str,
        Free { hash }: Free,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let count = (self.live() as u64).saturating_add(1);
        self.limits.check(Limit::Tensors, "number of objects", count)?;
        let last = self.bodies.pop_if(|piece| piece.len() < FULL);
        let mut bodies = last.unwrap_or_else(|| Vec::with_capacity(PIECE));
        let start = bodies.len();
        encode(&mut bodies);
        let body = Body { piece: self.bodies.len(), range: start..bodies.len() };
        self.bodies.push(bodies);
        let from = self.names.len();
        self.names.push_str(name);
        let index = self.entries.len();
        self.entries.push(Entry { name: from..self.names.len(), body, live: true });
        self.by_name.insert_unique(hash, Slot { hash, index }, |slot| slot.hash);
        Ok(())
    }

    pub(crate) fn push(&mut self, name: &str, body: &[u8]) -> Result<()> {
        let free = Free { hash: self.hasher.hash_one(name) };
        self.push_with(name, free, |out| out.extend_from_slice(body))
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<()> {
        let missing = || Error::MissingObject { name: name.to_owned() };
        let hash = self.hasher.hash_one(name);
        let Slot { index, .. } = self.find(hash, name).ok_or_else(missing)?;
        if let Ok(found) = self.by_name.find_entry(hash, |slot| slot.index == index) {
            found.remove();
        }
        if let Some(entry) = self.entries.get_mut(index) {
            entry.live = false;
        }
        Ok(())
    }

    pub(crate) fn live(&self) -> usize {
        self.by_name.len()
    }

    /// Returns names and bodies, sorted by the UTF-8 bytes of the name.
    pub(crate) fn sorted(&self) -> Vec<(&str, &[u8])> {
        let mut entries: Vec<(&str, &[u8])> = self
            .entries
            .iter()
            .filter(|entry| entry.live)
            .filter_map(|entry| {
                let name = self.names.get(entry.name.clone())?;
                Some((name, self.at(&entry.body)?))
            })
            .collect();
        entries.sort_unstable_by_key(|(name, _)| *name);
        entries
    }
}

/// Bytes of a piece, and from how many on it takes no more bodies: most are shorter than what is left.
const PIECE: usize = 256 << 10;
const FULL: usize = PIECE - (4 << 10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_objects_than_readers_take() {
        let mut index = Index { limits: Limits::default().with_tensors(2), ..Index::default() };
        index.push("a", b"").unwrap();
        index.push("b", b"").unwrap();
        let error = index.push("c", b"").unwrap_err().to_string();
        assert_eq!(error, "number of objects is 3, over the limit of 2 (Limits::tensors)");
        index.remove("a").unwrap();
        index.push("c", b"").unwrap();
        assert_eq!(index.sorted(), [("b", &b""[..]), ("c", b"")]);
    }
}
