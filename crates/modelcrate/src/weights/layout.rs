use std::io::Write;

use tensor_core::{Error as Core, Extent, Shape};

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

impl Planned<'_> {
    pub(super) fn byte_len(&self) -> Result<u64> {
        let partial = || Core::ShapeOverflow { shape: self.shape.clone() };
        Ok(self.element_type.byte_len(self.shape)?.ok_or_else(partial)?)
    }

    pub(super) fn unwritable(&self, format: &'static str, what: &str) -> Error {
        Error::Unwritable { format, what: format!("{what}, as tensor {:?} has", self.name) }
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

    /// Writes the file; `write` is called with the position of each tensor among those that were
    /// given, in the order of the file, and writes exactly its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; those of `write`.
    pub fn write<W: Write, E: From<Error>>(
        &self,
        sink: &mut W,
        mut write: impl FnMut(usize, &mut W) -> Result<(), E>,
    ) -> Result<(), E> {
        sink.write_all(&self.header).map_err(Error::from)?;
        let mut at = 0_u64;
        for (index, place) in self.order.iter().zip(&self.places) {
            pad(sink, place.offset().saturating_sub(at))?;
            write(*index, sink)?;
            at = place.end();
        }
        Ok(pad(sink, self.end.saturating_sub(at))?)
    }
}

fn pad(sink: &mut impl Write, len: u64) -> Result<()> {
    Ok(std::io::copy(&mut std::io::Read::take(std::io::repeat(0), len), sink).map(drop)?)
}
