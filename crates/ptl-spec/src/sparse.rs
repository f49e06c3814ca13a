//! A handle on a tensor of which only some elements are stored.

use std::fmt;

use tensor_core::{DType, Shape, Verified};

use crate::{
    Error, Place, Reader, Result, Tensor, TensorFault,
    module::stored::{StoredParts, StoredSparse},
};

/// A handle on a sparse tensor: nothing of its data was read.
#[derive(Clone, Copy, Debug)]
pub struct SparseTensor<'a> {
    reader: &'a Reader,
    stored: &'a StoredSparse,
}

/// The dense tensors that a sparse one is made of. Elements that none of them names are 0.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SparseParts<'a> {
    /// A list of coordinates.
    Coo {
        /// Shape `[dimensions, elements]`: a column for each element, with its place along the first
        /// dimensions.
        indices: Tensor<'a>,
        /// Shape `[elements, …]`, with the dimensions that have no coordinates behind.
        values: Tensor<'a>,
    },
    /// Rows of a matrix, without the elements that are 0.
    Csr {
        /// Shape `[…, rows + 1]`: row `i` owns the elements from number `i` to number `i + 1`.
        crow_indices: Tensor<'a>,
        /// Shape `[…, elements]`: the column of each element.
        col_indices: Tensor<'a>,
        /// Shape `[…, elements, …]`, with the dimensions behind those of the matrix.
        values: Tensor<'a>,
    },
}

impl Reader {
    /// Returns handles on the tensors of which only some elements are stored.
    ///
    /// # Errors
    ///
    /// As for [`tensors`](Self::tensors).
    pub fn sparse_tensors(&self) -> Result<impl ExactSizeIterator<Item = SparseTensor<'_>>> {
        let stored = &self.listing()?.sparse;
        Ok(stored.iter().map(|stored| SparseTensor::new(self, stored)))
    }
}

impl<'a> SparseTensor<'a> {
    pub(crate) const fn new(reader: &'a Reader, stored: &'a StoredSparse) -> Self {
        Self { reader, stored }
    }

    /// Returns its name; those of its parts start with it and a dot.
    #[must_use]
    pub fn name(self) -> &'a str {
        &self.stored.name
    }

    /// Returns where it is in its part of the model, as [`Tensor::path`] does.
    #[must_use]
    pub fn path(self) -> &'a str {
        let name = self.name();
        name.strip_prefix(self.place().prefix()).unwrap_or(name)
    }

    /// Returns which part of the model it is in.
    #[must_use]
    pub const fn place(self) -> Place {
        self.stored.place
    }

    /// Returns the dimensions, outermost first.
    #[must_use]
    pub const fn shape(self) -> &'a Shape {
        &self.stored.shape
    }

    /// Returns whether training would have changed it.
    #[must_use]
    pub const fn requires_grad(self) -> bool {
        self.stored.requires_grad
    }

    /// Returns the tensors that it is made of.
    #[must_use]
    pub fn parts(self) -> SparseParts<'a> {
        let tensor = |stored| Tensor::new(self.reader, stored);
        match &self.stored.parts {
            StoredParts::Coo { indices, values } => {
                SparseParts::Coo { indices: tensor(indices), values: tensor(values) }
            }
            StoredParts::Csr { crow_indices, col_indices, values } => SparseParts::Csr {
                crow_indices: tensor(crow_indices),
                col_indices: tensor(col_indices),
                values: tensor(values),
            },
        }
    }

    /// Proves that its parts belong together, without reading them.
    pub(crate) fn check(self) -> Result<()> {
        let dims = self.shape().dims();
        match self.parts() {
            SparseParts::Coo { indices, values } => {
                self.expect_indices("indices", indices)?;
                let [sparse, elements] = *indices.shape().dims() else {
                    return Err(self.shape_fault("indices", indices, &["dimensions", "elements"]));
                };
                let rest = usize::try_from(sparse).ok().and_then(|sparse| dims.get(sparse..));
                let rest = rest.ok_or_else(|| {
                    let expected = ["at most the dimensions of the tensor", "elements"];
                    self.shape_fault("indices", indices, &expected)
                })?;
                self.expect_shape("values", values, &[&[elements], rest].concat())
            }
            SparseParts::Csr { crow_indices, col_indices, values } => {
                self.expect_indices("crow_indices", crow_indices)?;
                self.expect_indices("col_indices", col_indices)?;
                let batch = crow_indices.shape().rank().saturating_sub(1);
                let (Some((batch, [rows, _, rest @ ..])), Some(elements)) =
                    (dims.split_at_checked(batch), col_indices.shape().dims().last())
                else {
                    return Err(self.shape_fault("crow_indices", crow_indices, &["rows + 1"]));
                };
                let starts = rows.saturating_add(1);
                self.expect_shape("crow_indices", crow_indices, &[batch, &[starts]].concat())?;
                self.expect_shape("col_indices", col_indices, &[batch, &[*elements]].concat())?;
                self.expect_shape("values", values, &[batch, &[*elements], rest].concat())
            }
        }
    }

    /// Returns the bytes of its indices, however they are stored.
    pub(crate) fn index_len(self) -> u64 {
        let parts = match self.parts() {
            SparseParts::Coo { indices, .. } => [Some(indices), None],
            SparseParts::Csr { crow_indices, col_indices, .. } => {
                [Some(crow_indices), Some(col_indices)]
            }
        };
        let len = |part: Tensor<'_>| {
            let elements = part.shape().elements().unwrap_or(u64::MAX);
            elements.saturating_mul(part.scalar_type().width())
        };
        parts.into_iter().flatten().map(len).fold(0, u64::saturating_add)
    }

    /// Proves that its parts belong together, that each of its indices is inside, and that what
    /// holds the parts has its checksums; a FlatBuffer has none.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] with what is wrong; as for [`Tensor::bytes`] and [`Tensor::verify`].
    pub fn verify(self) -> Result<Verified> {
        self.check_indices()?;
        let (first, others) = match self.parts() {
            SparseParts::Coo { indices, values } => (indices, vec![values]),
            SparseParts::Csr { crow_indices, col_indices, values } => {
                (crow_indices, vec![col_indices, values])
            }
        };
        others.into_iter().try_fold(first.verify()?, |least, part| Ok(least.min(part.verify()?)))
    }

    /// Reads its indices and proves that each is inside.
    pub(crate) fn check_indices(self) -> Result<()> {
        self.check()?;
        let dims = self.shape().dims();
        match self.parts() {
            SparseParts::Coo { indices, .. } => {
                let row = last(indices).max(1);
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                let bytes = indices.bytes()?;
                let mut numbers = numbers(&bytes, indices);
                let mut inside = |dim| self.inside("indices", numbers.by_ref().take(row), dim);
                dims.iter().try_for_each(|dim| inside(*dim))
            }
            SparseParts::Csr { crow_indices, col_indices, .. } => {
                let column = crow_indices.shape().rank();
                let columns = dims.get(column).copied().unwrap_or_default();
                let bytes = col_indices.bytes()?;
                self.inside("col_indices", numbers(&bytes, col_indices), columns)?;
                self.rise(crow_indices, last(col_indices))
            }
        }
    }

    /// Proves that the starts of rows rise from 0 to the number of elements, in each matrix.
    fn rise(self, rows: Tensor<'_>, elements: u64) -> Result<()> {
        let (starts, bytes) = (last(rows), rows.bytes()?);
        let (mut at, mut before) = (0_u64, 0_i64);
        for start in numbers(&bytes, rows) {
            at = at.saturating_add(1);
            let is_right = match at {
                1 => start == 0,
                _ => start >= before,
            };
            let is_end = at == starts;
            if !is_right || is_end && u64::try_from(start) != Ok(elements) {
                return Err(self.fault(TensorFault::Rows { elements }));
            }
            (at, before) = if is_end { (0, 0) } else { (at, start) };
        }
        Ok(())
    }

    fn inside(
        self,
        part: &'static str,
        mut numbers: impl Iterator<Item = i64>,
        limit: u64,
    ) -> Result<()> {
        let is_outside = |number: &i64| u64::try_from(*number).map_or(true, |at| at >= limit);
        match numbers.find(is_outside) {
            None => Ok(()),
            Some(found) => Err(self.fault(TensorFault::Index { part, found, limit })),
        }
    }

    fn expect_indices(self, part: &'static str, tensor: Tensor<'_>) -> Result<()> {
        match tensor.scalar_type().dtype() {
            Some(DType::I64 | DType::I32) => Ok(()),
            _ => Err(self.fault(TensorFault::IndexType { part, found: tensor.scalar_type() })),
        }
    }

    fn expect_shape(self, part: &'static str, tensor: Tensor<'_>, expected: &[u64]) -> Result<()> {
        if tensor.shape().dims() == expected {
            return Ok(());
        }
        Err(self.shape_fault(part, tensor, expected))
    }

    fn shape_fault(
        self,
        part: &'static str,
        tensor: Tensor<'_>,
        expected: &[impl fmt::Display],
    ) -> Error {
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        let expected = format!("[{}]", expected.join(", "));
        self.fault(TensorFault::Part { part, found: tensor.shape().clone(), expected })
    }

    fn fault(self, fault: TensorFault) -> Error {
        Error::Tensor { name: self.name().to_owned(), fault }
    }
}

/// Returns the innermost dimension; 0 for a scalar.
fn last(tensor: Tensor<'_>) -> u64 {
    tensor.shape().dims().last().copied().unwrap_or_default()
}

/// Returns indices of either width.
fn numbers(bytes: &[u8], tensor: Tensor<'_>) -> impl Iterator<Item = i64> {
    let (wide, narrow) = match tensor.scalar_type().dtype() {
        Some(DType::I32) => (&[][..], bytes.as_chunks().0),
        _ => (bytes.as_chunks().0, &[][..]),
    };
    let wide = wide.iter().map(|number| i64::from_le_bytes(*number));
    wide.chain(narrow.iter().map(|number| i64::from(i32::from_le_bytes(*number))))
}
