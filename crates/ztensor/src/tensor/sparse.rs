//! Sparse tensors. Format text: Part III, sections 2 and 3.

use std::ops::Range;

use tensor_core::{AlignedBuf, DType, Error as Core, Limit, Limits, Shape, TensorBuf};

use super::{
    Blob, BlobReader,
    layout::{Checked, LayoutError, ensure},
};
use crate::{ByteOrder, Role, error::Result};

/// A matrix in compressed sparse rows whose parts are proved to fit together.
///
/// ```text
/// values   [nnz]        the stored elements, row by row
/// indices  [nnz]        the column of each, below the number of columns
/// indptr   [rows + 1]   row i owns values[indptr[i]..indptr[i + 1]]; from 0 to nnz, not falling
/// ```
#[derive(Clone, Debug)]
pub struct Csr {
    shape: Shape,
    values: TensorBuf,
    indices: TensorBuf,
    indptr: TensorBuf,
}

impl Csr {
    /// Joins the parts of a matrix of shape `[rows, columns]`.
    ///
    /// Indices may be of any integer type; columns need not be in order within a row.
    pub(crate) fn new(
        shape: Shape,
        values: TensorBuf,
        indices: TensorBuf,
        indptr: TensorBuf,
    ) -> Checked<Self> {
        let nnz = elements(&values);
        check_csr(
            &shape,
            nnz,
            elements(&indices),
            &mut integers(&indptr)?,
            &mut integers(&indices)?,
        )?;
        Ok(Self { shape, values, indices, indptr })
    }

    /// Joins the parts of a matrix of shape `[rows, columns]`.
    ///
    /// # Errors
    ///
    /// [`Error::Given`](crate::Error::Given) where the rank is not 2, an index type is not an
    /// integer, counts contradict each other, or an index is out of range.
    pub fn from_parts(
        shape: impl Into<Shape>,
        values: TensorBuf,
        indices: TensorBuf,
        indptr: TensorBuf,
    ) -> Result<Self> {
        Self::new(shape.into(), values, indices, indptr).map_err(LayoutError::given)
    }

    /// Returns the shape, `[rows, columns]`.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the stored elements, shape `[nnz]`.
    #[must_use]
    pub const fn values(&self) -> &TensorBuf {
        &self.values
    }

    /// Returns the column indices, shape `[nnz]`.
    #[must_use]
    pub const fn indices(&self) -> &TensorBuf {
        &self.indices
    }

    /// Returns the row pointers, shape `[rows + 1]`.
    #[must_use]
    pub const fn indptr(&self) -> &TensorBuf {
        &self.indptr
    }

    pub(crate) fn into_parts(self) -> Vec<(Role, TensorBuf)> {
        let roles = CSR_ROLES.into_iter();
        roles.zip([self.values, self.indices, self.indptr]).collect()
    }

    /// Returns the same matrix with the columns of each row in ascending order.
    pub(crate) fn sorted(&self) -> Checked<Self> {
        let width = self.values.dtype().width().and_then(|width| usize::try_from(width).ok());
        let width = width.unwrap_or(1);
        let columns = to_u64s(&self.indices)?;
        let mut order: Vec<u64> = (0..columns.len() as u64).collect();
        let column = |&at: &u64| usize::try_from(at).ok().and_then(|at| columns.get(at)).copied();
        let pointers = to_u64s(&self.indptr)?;
        for [start, end] in pointers.array_windows() {
            let row =
                place(*start, 1).zip(place(*end, 1)).map(|(start, end)| start.start..end.start);
            if let Some(row) = row.and_then(|row| order.get_mut(row)) {
                row.sort_by_key(column);
            }
        }
        let permuted = |tensor: &TensorBuf, width: usize| {
            let mut bytes = AlignedBuf::with_capacity(tensor.bytes().len())?;
            for &at in &order {
                let place = place(at, width).and_then(|place| tensor.bytes().get(place));
                bytes.extend_from_slice(place.unwrap_or_default())?;
            }
            TensorBuf::new(tensor.dtype(), tensor.shape().clone(), bytes.into_bytes())
        };
        let values = permuted(&self.values, width)?;
        let indices = permuted(&self.indices, index_width(self.indices.dtype())?)?;
        Ok(Self { shape: self.shape.clone(), values, indices, indptr: self.indptr.clone() })
    }

    /// Proves what generation 2 asks for beyond this.
    pub(crate) fn check_v2(&self) -> Checked<()> {
        let [indices, indptr] = [&self.indices, &self.indptr].map(TensorBuf::dtype);
        ensure!(
            indices == indptr && matches!(indices, DType::U32 | DType::U64),
            "indices are {indices} and indptr {indptr}, expected u32 or u64 for both"
        );
        let order = check_csr(
            &self.shape,
            elements(&self.values),
            elements(&self.indices),
            &mut integers(&self.indptr)?,
            &mut integers(&self.indices)?,
        )?;
        match order {
            RowOrder::Ascending => Ok(()),
            RowOrder::BrokenIn(row) => {
                Err(format!("columns of row {row} are not in ascending order").into())
            }
        }
    }

    /// Returns the matrix with all its elements, those that are not stored as zeros.
    pub(crate) fn to_dense(&self, limits: &Limits) -> Checked<TensorBuf> {
        to_dense(&self.shape, &self.values, limits, |bytes| self.fill(bytes))
    }

    /// Fills a buffer with all elements.
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> Checked<()> {
        let mut dense = Dense::new(&self.shape, &self.values, bytes)?;
        self.places()?.into_iter().zip(0..).try_for_each(|(at, stored)| dense.put(at, stored))
    }

    /// Returns which element of the matrix each stored one is.
    pub(crate) fn places(&self) -> Checked<Vec<u64>> {
        let columns = self.shape.dims().get(1).copied().unwrap_or_default();
        let mut columns_of = integers(&self.indices)?;
        let mut row_ends = integers(&self.indptr)?.skip(1);
        let mut places = room_for(elements(&self.values))?;
        let (mut row, mut stored) = (0_u64, 0_u64);
        while let Some(end) = row_ends.next().transpose()? {
            while stored < end {
                let column = columns_of.next().transpose()?.unwrap_or_default();
                // Row and column were proved to lie in the shape, whose product fits.
                places.push(row.saturating_mul(columns).saturating_add(column));
                stored = stored.saturating_add(1);
            }
            row = row.saturating_add(1);
        }
        Ok(places)
    }
}

/// A tensor as a list of coordinates whose parts are proved to fit together.
///
/// ```text
/// values   [nnz]             the stored elements
/// coords   [rank × nnz]      their coordinates in dimension 0, then those in dimension 1, …
/// ```
#[derive(Clone, Debug)]
pub struct Coo {
    shape: Shape,
    values: TensorBuf,
    coords: TensorBuf,
}

impl Coo {
    pub(crate) fn new(shape: Shape, values: TensorBuf, coords: TensorBuf) -> Checked<Self> {
        check_coo(&shape, elements(&values), elements(&coords), &mut integers(&coords)?)?;
        Ok(Self { shape, values, coords })
    }

    /// Joins the parts of a tensor of any rank.
    ///
    /// # Errors
    ///
    /// [`Error::Given`](crate::Error::Given) where the coordinates are not integers, not one
    /// for each dimension of each element, or out of range.
    pub fn from_parts(
        shape: impl Into<Shape>,
        values: TensorBuf,
        coords: TensorBuf,
    ) -> Result<Self> {
        Self::new(shape.into(), values, coords).map_err(LayoutError::given)
    }

    /// Returns the shape.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the stored elements, shape `[nnz]`.
    #[must_use]
    pub const fn values(&self) -> &TensorBuf {
        &self.values
    }

    /// Returns the coordinates, all of dimension 0 first, shape `[rank × nnz]`.
    #[must_use]
    pub const fn coords(&self) -> &TensorBuf {
        &self.coords
    }

    pub(crate) fn into_parts(self) -> Vec<(Role, TensorBuf)> {
        COO_ROLES.into_iter().zip([self.values, self.coords]).collect()
    }

    /// Proves what generation 2 asks for beyond this.
    pub(crate) fn check_v2(&self) -> Checked<()> {
        let dtype = self.coords.dtype();
        ensure!(
            matches!(dtype, DType::U32 | DType::U64),
            "coords are {dtype}, expected u32 or u64"
        );
        ensure!(self.shape.rank() > 0, "a tensor of rank 0 has no coordinates");
        let nnz = elements(&self.values);
        repeated_cell(&self.shape, nnz, &mut integers(&self.coords)?)
    }

    /// Returns the tensor with all its elements, those that are not stored as zeros.
    pub(crate) fn to_dense(&self, limits: &Limits) -> Checked<TensorBuf> {
        to_dense(&self.shape, &self.values, limits, |bytes| self.fill(bytes))
    }

    /// Fills a buffer with all elements.
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> Checked<()> {
        let mut dense = Dense::new(&self.shape, &self.values, bytes)?;
        self.places()?.into_iter().zip(0..).try_for_each(|(at, stored)| dense.put(at, stored))
    }

    /// Returns which element of the tensor each stored one is.
    pub(crate) fn places(&self) -> Checked<Vec<u64>> {
        places(&self.shape, elements(&self.values), &mut integers(&self.coords)?)
    }
}

/// Returns which elements of a tensor its coordinates are those of.
fn places(shape: &Shape, nnz: u64, coordinates: &mut Integers<'_>) -> Checked<Vec<u64>> {
    let mut places = room_for(nnz)?;
    places.extend((0..nnz).map(|_| 0));
    for stride in shape.strides()? {
        for place in &mut places {
            let coordinate = coordinates.next().transpose()?.unwrap_or_default();
            *place = place.saturating_add(coordinate.saturating_mul(stride));
        }
    }
    Ok(places)
}

fn room_for(nnz: u64) -> Checked<Vec<u64>> {
    let out_of_memory = || Core::OutOfMemory { bytes: nnz.saturating_mul(8) };
    let count = usize::try_from(nnz).map_err(|_| out_of_memory())?;
    let mut places = Vec::new();
    places.try_reserve_exact(count).map_err(|_| out_of_memory())?;
    Ok(places)
}

/// Returns a tensor whose elements `fill` puts in their places.
fn to_dense(
    shape: &Shape,
    values: &TensorBuf,
    limits: &Limits,
    fill: impl FnOnce(&mut [u8]) -> Checked<()>,
) -> Checked<TensorBuf> {
    let dtype = values.dtype();
    let bytes = shape.byte_len(dtype)?;
    limits.check(Limit::DecodedBytes, "dense size in bytes", bytes)?;
    let len = usize::try_from(bytes).map_err(|_| Core::OutOfMemory { bytes })?;
    let mut dense = AlignedBuf::zeroed(len)?;
    fill(&mut dense)?;
    Ok(TensorBuf::new(dtype, shape.clone(), dense.into_bytes())?)
}

/// A dense tensor in the making, over a buffer that is exactly as long.
struct Dense<'a> {
    shape: &'a Shape,
    values: &'a TensorBuf,
    width: usize,
    bytes: &'a mut [u8],
    /// A bit for each element, set once it is stored.
    stored: Vec<u64>,
}

impl<'a> Dense<'a> {
    /// Fills the buffer with zeros.
    fn new(shape: &'a Shape, values: &'a TensorBuf, bytes: &'a mut [u8]) -> Checked<Self> {
        let (expected, found) = (shape.byte_len(values.dtype())?, bytes.len() as u64);
        if found != expected {
            return Err(Core::WrongBuffer { what: "tensor", expected, found }.into());
        }
        let width = values.dtype().width().and_then(|width| usize::try_from(width).ok());
        let width = width.unwrap_or(1);
        let words = bytes.len().div_ceil(width).div_ceil(64);
        let mut stored = Vec::new();
        let out_of_memory = |_| Core::OutOfMemory { bytes: words.saturating_mul(8) as u64 };
        stored.try_reserve_exact(words).map_err(out_of_memory)?;
        stored.resize(words, 0);
        bytes.fill(0);
        Ok(Self { shape, values, width, bytes, stored })
    }

    /// Puts the stored element `index` at element `at`.
    fn put(&mut self, at: u64, index: u64) -> Checked<()> {
        let (word, bit) = (at >> 6, 1_u64 << (at & 63));
        let word = usize::try_from(word).ok().and_then(|word| self.stored.get_mut(word));
        let from = place(index, self.width).and_then(|place| self.values.bytes().get(place));
        let to = place(at, self.width).and_then(|place| self.bytes.get_mut(place));
        let (Some(word), Some(from), Some(to)) = (word, from, to) else {
            return Err(format!("element {at} lies outside shape {}", self.shape).into());
        };
        ensure!(*word & bit == 0, "element {at} of shape {} is stored twice", self.shape);
        *word |= bit;
        to.copy_from_slice(from);
        Ok(())
    }
}

/// Returns where an element is among others, in bytes.
pub(super) fn place(index: u64, width: usize) -> Option<Range<usize>> {
    let start = usize::try_from(index).ok()?.checked_mul(width)?;
    Some(start..start.checked_add(width)?)
}

/// How the columns of a matrix are ordered within their rows; the format does not ask for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// Every row is in ascending order, each column once.
    Ascending,
    /// In this row a column is not greater than the one before it.
    BrokenIn(u64),
}

/// Integers that come one after another, from memory or from a stream.
pub(crate) type Integers<'a> = dyn Iterator<Item = Checked<u64>> + 'a;

/// Returns the dimensions of a matrix.
pub(crate) fn matrix(shape: &Shape) -> Checked<[u64; 2]> {
    let dims = shape.dims().try_into();
    dims.map_err(|_| format!("shape {shape} has rank {}, expected 2", shape.rank()).into())
}

/// Proves that row pointers and column indices fit the shape and each other, in one pass.
pub(crate) fn check_csr(
    shape: &Shape,
    nnz: u64,
    found_indices: u64,
    indptr: &mut Integers<'_>,
    indices: &mut Integers<'_>,
) -> Checked<RowOrder> {
    let [rows, columns] = matrix(shape)?;
    ensure!(found_indices == nnz, "values has {nnz} elements, but indices has {found_indices}");
    let mut order = RowOrder::Ascending;
    let mut start = 0;
    let mut position = 0_u64;
    for row in 0..=rows {
        let Some(end) = indptr.next().transpose()? else {
            return Err(
                format!("indptr has {row} elements, expected rows + 1 of shape {shape}").into()
            );
        };
        ensure!(row != 0 || end == 0, "indptr[0] is {end}, expected 0");
        ensure!(end >= start, "indptr[{row}] is {end}, below the {start} before it");
        ensure!(end <= nnz, "indptr[{row}] is {end}, but values has {nnz} elements");
        let mut last = None;
        while position < end {
            // There are as many indices as values, and `end` is at most that.
            let column = indices.next().transpose()?.unwrap_or(u64::MAX);
            ensure!(column < columns, "indices[{position}] is {column}, expected below {columns}");
            if last >= Some(column) && order == RowOrder::Ascending {
                order = RowOrder::BrokenIn(row.saturating_sub(1));
            }
            last = Some(column);
            position = position.saturating_add(1);
        }
        start = end;
    }
    ensure!(start == nnz, "indptr ends at {start}, but values has {nnz} elements");
    let is_at_end = indptr.next().is_none();
    ensure!(is_at_end, "indptr has more than rows + 1 elements of shape {shape}");
    Ok(order)
}

/// Proves that no cell is listed twice by coordinates that fit the shape, `nnz` for each dimension.
pub(crate) fn repeated_cell(
    shape: &Shape,
    nnz: u64,
    coordinates: &mut Integers<'_>,
) -> Checked<()> {
    if nnz < 2 {
        return Ok(());
    }
    let mut cells = places(shape, nnz, coordinates)?;
    cells.sort_unstable();
    match cells.array_windows().find(|[a, b]| a == b) {
        Some([cell, _]) => Err(format!("element {cell} of shape {shape} is stored twice").into()),
        None => Ok(()),
    }
}

/// Proves that coordinates fit the shape and the number of values, in one pass.
pub(crate) fn check_coo(
    shape: &Shape,
    nnz: u64,
    found_coords: u64,
    coords: &mut Integers<'_>,
) -> Checked<()> {
    let rank = shape.rank() as u64;
    ensure!(
        rank.checked_mul(nnz) == Some(found_coords),
        "coords has {found_coords} elements, expected {rank} for each of {nnz} values"
    );
    for (dimension, &size) in shape.dims().iter().enumerate() {
        for index in 0..nnz {
            let coordinate = coords.next().transpose()?.unwrap_or(u64::MAX);
            ensure!(
                coordinate < size,
                "coordinate {coordinate} of value {index} in dimension {dimension} is out of \
                 range, expected below {size}"
            );
        }
    }
    Ok(())
}

fn elements(tensor: &TensorBuf) -> u64 {
    let width = tensor.dtype().width().unwrap_or(1);
    (tensor.bytes().len() as u64).checked_div(width).unwrap_or_default()
}

/// Iterates over the elements of an integer tensor.
fn integers(tensor: &TensorBuf) -> Checked<impl Iterator<Item = Checked<u64>>> {
    let dtype = tensor.dtype();
    let width = index_width(dtype)?;
    Ok(tensor.bytes().chunks_exact(width).map(move |bytes| whole(dtype, bytes)))
}

/// Returns the elements of an integer tensor.
pub(crate) fn to_u64s(tensor: &TensorBuf) -> Checked<Vec<u64>> {
    integers(tensor)?.collect()
}

/// Iterates over the elements of an integer component as they are decoded.
pub(crate) fn stream_integers<'a>(
    blob: &'a Blob<'_>,
    stream: &'a mut BlobReader,
) -> Checked<impl Iterator<Item = Checked<u64>> + 'a> {
    let dtype = blob.element_type()?;
    let width = index_width(dtype)?;
    let mut chunk = vec![0; CHUNK.next_multiple_of(width)];
    let (mut at, mut filled) = (0_usize, 0_usize);
    Ok(std::iter::from_fn(move || {
        if at >= filled {
            filled = match stream.fill(&mut chunk) {
                Ok(0) => return None,
                Ok(filled) if filled.checked_rem(width) != Some(0) => {
                    let problem = format!("{} ends within an element", blob.role());
                    return Some(Err(problem.into()));
                }
                Ok(filled) => filled,
                Err(error) => return Some(Err(blob.stream_fault(error).into())),
            };
            at = 0;
        }
        let bytes = chunk.get(at..at.saturating_add(width)).unwrap_or_default();
        at = at.saturating_add(width);
        Some(whole(dtype, bytes))
    }))
}

pub(crate) fn index_width(dtype: DType) -> Checked<usize> {
    let width = dtype.width().filter(|_| dtype.is_integer());
    let width = width.and_then(|width| usize::try_from(width).ok());
    width.ok_or_else(|| format!("indices are {dtype}, expected integers").into())
}

fn whole(dtype: DType, bytes: &[u8]) -> Checked<u64> {
    integer(dtype, bytes).ok_or_else(|| format!("an index of {dtype} is below zero").into())
}

/// Reads the first integer of some bytes; `None` where it is below zero or not there.
fn integer(dtype: DType, bytes: &[u8]) -> Option<u64> {
    match dtype {
        DType::U64 => bytes.first_chunk().map(|b| u64::from_le_bytes(*b)),
        DType::U32 => bytes.first_chunk().map(|b| u32::from_le_bytes(*b).into()),
        DType::U16 => bytes.first_chunk().map(|b| u16::from_le_bytes(*b).into()),
        DType::U8 => bytes.first().map(|b| (*b).into()),
        DType::I64 => bytes.first_chunk().and_then(|b| i64::from_le_bytes(*b).try_into().ok()),
        DType::I32 => bytes.first_chunk().and_then(|b| i32::from_le_bytes(*b).try_into().ok()),
        DType::I16 => bytes.first_chunk().and_then(|b| i16::from_le_bytes(*b).try_into().ok()),
        DType::I8 => bytes.first_chunk().and_then(|b| i8::from_le_bytes(*b).try_into().ok()),
        _ => None,
    }
}

/// Takes apart a matrix of generation 0.1.
///
/// ```text
/// indptr u64 [rows + 1], indices u64 [nnz], values [nnz]
/// ```
pub(crate) fn inline_csr(shape: Shape, data: &Blob<'_>) -> Checked<Csr> {
    let (dtype, width) = inline(data)?;
    let bytes = data.bytes()?;
    let [rows, _] = matrix(&shape)?;
    let len = bytes.len() as u64;
    let pointers = rows.checked_add(1).and_then(|rows| rows.checked_mul(8)).filter(|p| *p <= len);
    let Some(pointers) = pointers else {
        return Err(format!("{len} bytes are too few for the row pointers of shape {shape}").into());
    };
    let nnz = whole_records(len.saturating_sub(pointers), width.saturating_add(8))?;
    let split = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let values_at = split(pointers.saturating_add(nnz.saturating_mul(8)));
    let indptr =
        TensorBuf::new(DType::U64, [rows.saturating_add(1)], bytes.slice(..split(pointers)))?;
    let indices = TensorBuf::new(DType::U64, [nnz], bytes.slice(split(pointers)..values_at))?;
    let values = TensorBuf::new(dtype, [nnz], bytes.slice(values_at..))?;
    Csr::new(shape, values, indices, indptr)
}

/// Takes apart a tensor of generation 0.1.
///
/// ```text
/// for each stored element: its coordinates u64 [rank], its value
/// ```
pub(crate) fn inline_coo(shape: Shape, data: &Blob<'_>) -> Checked<Coo> {
    let (dtype, width) = inline(data)?;
    // Unlike `bytes`, this holds to the limits also where the source is in memory; the parts that
    // are built take as much again.
    let bytes = data.to_buf()?;
    let coordinates = (shape.rank() as u64).saturating_mul(8);
    let record = coordinates.saturating_add(width);
    let nnz = whole_records(bytes.len() as u64, record)?;
    let records = || bytes.chunks_exact(usize::try_from(record).unwrap_or(usize::MAX));
    let room = |width: u64| {
        let len = usize::try_from(nnz.saturating_mul(width)).unwrap_or(usize::MAX);
        AlignedBuf::with_capacity(len)
    };
    let mut coords = room(coordinates)?;
    for dimension in 0..shape.rank() {
        for record in records() {
            coords.extend_from_slice(
                place(dimension as u64, 8).and_then(|place| record.get(place)).unwrap_or_default(),
            )?;
        }
    }
    let coordinates = usize::try_from(coordinates).unwrap_or(usize::MAX);
    let mut values = room(width)?;
    for record in records() {
        values.extend_from_slice(record.get(coordinates..).unwrap_or_default())?;
    }
    let listed = [nnz.saturating_mul(shape.rank() as u64)];
    let coords = TensorBuf::new(DType::U64, listed, coords.into_bytes())?;
    Coo::new(shape, TensorBuf::new(dtype, [nnz], values.into_bytes())?, coords)
}

/// Returns the type of the values and its width in bytes.
fn inline(data: &Blob<'_>) -> Checked<(DType, u64)> {
    if data.component().byte_order == ByteOrder::Big {
        return Err("sparse data is big-endian, which has no defined layout".to_owned().into());
    }
    let dtype = data.element_type()?;
    Ok((dtype, dtype.width().unwrap_or(1)))
}

fn whole_records(len: u64, record: u64) -> Checked<u64> {
    match (len.checked_div(record), len.checked_rem(record)) {
        (Some(records), Some(0)) => Ok(records),
        _ => Err(format!("{len} bytes are not a whole number of records of {record} bytes").into()),
    }
}

pub(crate) const CSR_ROLES: [Role; 3] = [Role::Values, Role::Indices, Role::Indptr];
pub(crate) const COO_ROLES: [Role; 2] = [Role::Values, Role::Coords];

const CHUNK: usize = 64 << 10;
