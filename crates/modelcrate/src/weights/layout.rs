use std::io::{self, Write};

use serde_json::Value;
use tensor_core::{Extent, Shape, Source};

use super::{ElementType, Error, Result};

/// A tensor that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its elements are.
    pub element_type: ElementType,
    /// Its dimensions, outermost first.
    pub shape: &'a Shape,
}

/// A value of metadata that is to be written.
#[derive(Clone, Debug)]
pub enum Metadata {
    /// As JSON has it.
    Value(Value),
    /// As it stands with its type in a GGUF file.
    Stored(Source),
}

impl Metadata {
    pub(crate) const fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Stored(_) => None,
        }
    }
}

impl Planned<'_> {
    pub(crate) fn byte_len(&self) -> Result<u64> {
        let Self { name, element_type, shape } = self;
        self.element_type.byte_len(shape)?.ok_or_else(|| {
            let what = format!("rows of shape {shape} are no whole blocks of {element_type}");
            Error::Unwritable { what: format!("tensor {name:?}: {what}") }
        })
    }

    pub(super) fn unwritable(&self, what: impl std::fmt::Display) -> Error {
        Error::Unwritable { what: format!("tensor {:?}: {what}", self.name) }
    }
}

/// Where everything is in a file that is to be written: the header, and a place for each tensor.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(super) header: Vec<u8>,
    /// The positions of the tensors among those that were given, in the order of their data.
    pub(super) order: Vec<usize>,
    /// Their places in that order, counted from the end of the header.
    pub(super) places: Vec<Extent>,
    pub(super) end: u64,
}

impl Layout {
    /// Returns how long the file will be, in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.end.saturating_add(self.header.len() as u64)
    }

    /// Returns the positions of the tensors among those that were given, in the order of their data.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Writes the file; `write` is called with the position of each tensor among those that were
    /// given, in the order of the file, and writes its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; [`Error::Unwritable`] where other than its bytes were written for a tensor;
    /// those of `write`.
    pub fn write<E: From<Error>>(
        &self,
        sink: &mut dyn Write,
        mut write: impl FnMut(usize, &mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        sink.write_all(&self.header).map_err(Error::from)?;
        let mut at = 0_u64;
        for (index, place) in self.order.iter().zip(&self.places) {
            pad(sink, place.offset().saturating_sub(at))?;
            let mut counted = Counted { sink: &mut *sink, written: 0 };
            write(*index, &mut counted)?;
            let (found, expected) = (counted.written, place.len());
            if found != expected {
                let what =
                    format!("tensor {index} was written as {found} bytes, expected {expected}");
                return Err(Error::Unwritable { what }.into());
            }
            at = place.end();
        }
        Ok(pad(sink, self.end.saturating_sub(at))?)
    }
}

/// Counts what is written.
struct Counted<'w> {
    sink: &'w mut dyn Write,
    written: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.written = self.written.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn pad(sink: &mut dyn Write, len: u64) -> Result<()> {
    Ok(io::copy(&mut io::Read::take(io::repeat(0), len), sink).map(drop)?)
}
