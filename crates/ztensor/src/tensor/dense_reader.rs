//! All elements of a sparse tensor, zeros included, one piece after another.

use std::{
    fmt,
    io::{self, Read},
};

use bytes::Bytes;
use tensor_core::{Budget, Limit, Shape, TensorBuf};

use super::{
    Tensor,
    layout::Checked,
    sparse::{Coo, Csr, place},
};
use crate::{Format, error::Result};

impl Tensor<'_> {
    /// Returns a stream of what [`bytes`](Self::bytes) returns of a sparse tensor, in memory for the
    /// stored elements alone.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read); [`Error::WrongFormat`](crate::Error::WrongFormat) of a tensor that
    /// is not sparse; where the parts are decoded to more than 16 MiB and
    /// [`Limits::expansion`](tensor_core::Limits::expansion) times what is stored.
    pub fn dense_reader(self) -> Result<DenseReader> {
        let (object, limits) = (self.object()?, self.reader().limits());
        let stored = object.components.iter().map(|(_, part)| part.length);
        let stored = stored.fold(0, u64::saturating_add);
        let allowed = stored.saturating_mul(limits.expansion).max(SMALL);
        let budget = Budget::new("parts of a sparse tensor in bytes", allowed, Limit::Expansion);
        for blob in self.blobs()? {
            budget.take(match blob.decoded_len() {
                Some(len) => len,
                // Files before 1.2 do not say, so it is decoded as far as that is allowed.
                None => {
                    let mut stream = blob.stream()?.take(allowed.saturating_add(1));
                    let counted = io::copy(&mut stream, &mut io::sink());
                    counted.map_err(|error| blob.stream_fault(error))?
                }
            })?;
        }
        let reader = match object.format {
            Format::SparseCsr | Format::InlineCsr => self.csr()?.into_reader(),
            Format::SparseCoo | Format::InlineCoo => self.coo()?.into_reader(),
            found => return Err(self.wrong_format(found, "sparse_csr or sparse_coo")),
        };
        let reader = reader.map_err(|error| self.layout(error))?;
        limits.check(Limit::DecodedBytes, "dense size in bytes", reader.left)?;
        Ok(reader)
    }
}

impl Csr {
    fn into_reader(self) -> Checked<DenseReader> {
        DenseReader::new(self.shape(), self.values(), self.places()?)
    }
}

impl Coo {
    fn into_reader(self) -> Checked<DenseReader> {
        DenseReader::new(self.shape(), self.values(), self.places()?)
    }
}

/// A stream of the elements of a sparse tensor, row-major and little-endian, made by
/// [`Tensor::dense_reader`].
pub struct DenseReader {
    values: Bytes,
    width: usize,
    /// Which element each stored one is, in order, and its place among those.
    stored: Vec<(u64, u64)>,
    next: usize,
    /// How many bytes come before the next one, and how many are left.
    at: u64,
    left: u64,
}

impl DenseReader {
    fn new(shape: &Shape, values: &TensorBuf, places: Vec<u64>) -> Checked<Self> {
        let left = shape.byte_len(values.dtype())?;
        let width = values.dtype().width().and_then(|width| usize::try_from(width).ok());
        let mut stored: Vec<(u64, u64)> = places.into_iter().zip(0..).collect();
        stored.sort_unstable();
        if let Some([(at, _), _]) = stored.array_windows().find(|[(a, _), (b, _)]| a == b) {
            return Err(format!("element {at} of shape {shape} is stored twice").into());
        }
        let values = values.clone().into_bytes();
        Ok(Self { values, width: width.unwrap_or(1), stored, next: 0, at: 0, left })
    }

    /// Returns what is left of the next stored element, and how many zeros come before it.
    fn ahead(&self) -> Option<(u64, &[u8])> {
        let &(element, index) = self.stored.get(self.next)?;
        let start = element.saturating_mul(self.width as u64);
        let value = self.values.get(place(index, self.width)?)?;
        let begun = usize::try_from(self.at.saturating_sub(start)).unwrap_or(usize::MAX);
        Some((start.saturating_sub(self.at), value.get(begun..)?))
    }
}

impl Read for DenseReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let (zeros, value) = self.ahead().unwrap_or((self.left, &[]));
        let (taken, is_through) = match usize::try_from(zeros) {
            Ok(0) => {
                let taken = room.min(value.len());
                let (to, from) = (out.get_mut(..taken), value.get(..taken));
                to.unwrap_or_default().copy_from_slice(from.unwrap_or_default());
                (taken, taken == value.len())
            }
            zeros => {
                let taken = room.min(zeros.unwrap_or(usize::MAX));
                out.get_mut(..taken).unwrap_or_default().fill(0);
                (taken, false)
            }
        };
        self.next = self.next.saturating_add(is_through.into());
        self.at = self.at.saturating_add(taken as u64);
        self.left = self.left.saturating_sub(taken as u64);
        Ok(taken)
    }
}

impl fmt::Debug for DenseReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenseReader").field("left", &self.left).finish_non_exhaustive()
    }
}

/// What parts may be decoded to in any case, in bytes.
const SMALL: u64 = 16 << 20;
