//! Values of tensors, piece by piece.

use std::ops::Range;

use serde::{Serializer, ser::SerializeStruct as _};
use tensor_core::{
    DType, Extent, Shape, Source, TensorView,
    compare::{Comparison, Difference, Tolerance, compare as compare_views},
    parallel,
};

use super::{Change, DiffOptions, Pair};
use crate::{Content, NamedTensor, Result, stream::Stream, weights};

/// Compares pairs of tensors, and returns how each differs; `None` where it does not.
pub(super) fn compare(
    pairs: &[Pair<'_, '_>],
    options: &DiffOptions,
    progress: &(impl Fn(u64) + Sync),
) -> Vec<Result<Option<Change>>> {
    let plans: Vec<Result<Plan<'_, '_>>> = pairs.iter().map(|pair| Plan::of(*pair)).collect();
    let mut tasks = Vec::new();
    for (at, plan) in plans.iter().enumerate() {
        if let Ok(Plan::Read(read)) = plan {
            tasks.extend(read.ranges().map(|range| (at, range)));
        }
    }
    let found = parallel::map(&tasks, options.threads, |(at, range)| match plans.get(*at) {
        Some(Ok(Plan::Read(read))) => read.compare(range.clone(), options, progress),
        _ => Ok(Found::default()),
    });
    let mut tasks = tasks.iter().map(|(at, _)| *at).zip(found).peekable();
    plans
        .into_iter()
        .enumerate()
        .map(|(index, plan)| {
            let mut whole: Result<Found> = Ok(Found::default());
            while let Some((_, found)) = tasks.next_if(|(at, _)| *at == index) {
                whole = whole.and_then(|whole| Ok(whole.and(&found?)));
            }
            Ok(match plan? {
                Plan::Known(change) => Some(change),
                Plan::Read(read) => read.change(whole?, options),
            })
        })
        .collect()
}

/// How two tensors are compared.
enum Plan<'s, 'a> {
    /// Nothing has to be read.
    Known(Change),
    Read(Read<'s, 'a>),
}

impl<'s, 'a> Plan<'s, 'a> {
    fn of(pair: Pair<'s, 'a>) -> Result<Self> {
        let (old, new) = match pair {
            (Some(old), Some(new)) => (old, new),
            (Some(_), None) => return Ok(Self::Known(Change::Removed)),
            (None, _) => return Ok(Self::Known(Change::Added)),
        };
        let ((old_content, old_shape), (new_content, new_shape)) = (old.content()?, new.content()?);
        if old_shape != new_shape {
            return Ok(Self::Known(Change::Shape { old_shape, new_shape }));
        }
        let dtypes = old_content.dtype().zip(new_content.dtype());
        let numbers = dtypes.filter(|(one, other)| one.bits().is_some() && other.bits().is_some());
        if numbers.is_none() && old_content != new_content {
            let (old_dtype, new_dtype) = (old_content, new_content);
            return Ok(Self::Known(Change::ElementType { old_dtype, new_dtype, values: None }));
        }
        let sides = [Side::of(old, &old_content), Side::of(new, &new_content)];
        let dtypes = numbers.unwrap_or((DType::U8, DType::U8));
        let contents = [old_content, new_content];
        let shape = old_shape;
        Ok(Self::Read(Read { sides, contents, shape, dtypes, is_numbers: numbers.is_some() }))
    }
}

/// Two tensors of one shape, read side by side.
struct Read<'s, 'a> {
    sides: [Side<'s, 'a>; 2],
    contents: [Content; 2],
    shape: Shape,
    /// What elements are compared as.
    dtypes: (DType, DType),
    is_numbers: bool,
}

/// Where the bytes of a tensor are.
enum Side<'s, 'a> {
    /// In a file as they are.
    At(&'a Source, Extent),
    /// To be decoded from the first to the last.
    Decoded(&'s NamedTensor<'a>),
}

impl<'s, 'a> Side<'s, 'a> {
    fn of(tensor: &'s NamedTensor<'a>, content: &Content) -> Self {
        let place = match content {
            Content::Elements(_) => tensor.tensor().place(),
            Content::Layout(_) => None,
        };
        place.map_or(Self::Decoded(tensor), |(source, extent)| Self::At(source, extent))
    }
}

impl Read<'_, '_> {
    /// Returns the ranges of elements that are compared one by one; all where they must be decoded.
    fn ranges(&self) -> impl Iterator<Item = Option<Range<u64>>> + use<> {
        let total = match &self.sides {
            [Side::At(_, extent), Side::At(..)] if self.is_numbers => {
                self.shape.elements().unwrap_or(extent.len())
            }
            [Side::At(_, extent), Side::At(..)] => extent.len(),
            _ => 0,
        };
        let is_decoded = total == 0;
        let ranges = (0..total).step_by(usize::try_from(RANGE).unwrap_or(usize::MAX));
        let ranges = ranges.map(move |start| Some(start..start.saturating_add(RANGE).min(total)));
        ranges.chain(is_decoded.then_some(None))
    }

    fn compare(
        &self,
        range: Option<Range<u64>>,
        options: &DiffOptions,
        progress: &impl Fn(u64),
    ) -> Result<Found> {
        let total = range.as_ref().map_or_else(
            || self.shape.elements().unwrap_or(u64::MAX),
            |range| range.end.saturating_sub(range.start),
        );
        let mut pieces = match (&self.sides, range) {
            ([Side::At(one, first), Side::At(other, second)], Some(range)) => {
                let part = |extent: Extent, dtype: DType| {
                    let start = dtype.byte_len(range.start).unwrap_or(u64::MAX);
                    let end = dtype.byte_len(range.end).unwrap_or(u64::MAX);
                    extent.part(start, end.saturating_sub(start), "tensor")
                };
                vec![[
                    Piece::At(one, part(*first, self.dtypes.0)?),
                    Piece::At(other, part(*second, self.dtypes.1)?),
                ]]
            }
            ([one, other], _) => {
                let (ones, others) = (one.pieces()?, other.pieces()?);
                let [names, other_names] =
                    [&ones, &others].map(|of| of.iter().map(|(name, _)| name.clone()));
                if !names.eq(other_names) {
                    return Ok(Found { other_parts: true, ..Found::default() });
                }
                let pairs = ones.into_iter().zip(others);
                pairs.map(|((_, one), (_, other))| [one, other]).collect()
            }
        };
        let mut found = Found { total, ..Found::default() };
        for [one, other] in &mut pieces {
            self.compare_pieces(one, other, options, progress, &mut found)?;
        }
        Ok(found)
    }

    fn compare_pieces(
        &self,
        one: &mut Piece<'_>,
        other: &mut Piece<'_>,
        options: &DiffOptions,
        progress: &impl Fn(u64),
        found: &mut Found,
    ) -> Result<()> {
        let (old, new) = self.dtypes;
        let len = |dtype: DType| {
            usize::try_from(dtype.byte_len(PIECE).unwrap_or(PIECE)).unwrap_or(usize::MAX)
        };
        let room = |piece: &Piece<'_>, len: usize| match piece {
            Piece::At(_, extent) => usize::try_from(extent.len()).unwrap_or(len).min(len),
            Piece::Stream(_) => len,
        };
        let mut ours = vec![0; room(one, len(old))];
        let mut theirs = vec![0; room(other, len(new))];
        loop {
            let ours = one.fill(&mut ours)?;
            let theirs = other.fill(&mut theirs)?;
            if ours.is_empty() && theirs.is_empty() {
                return Ok(());
            }
            progress((ours.len() as u64).saturating_add(theirs.len() as u64));
            let elements = self.elements(ours, old, found);
            if self.elements(theirs, new, found) != elements {
                let what = "tensors of one shape have parts of different lengths".to_owned();
                return Err(weights::Error::Unsupported { what }.into());
            }
            let mut values = Comparison::default();
            values.elements = elements;
            if old != new || ours != theirs {
                found.other_bits |= old == new;
                let shape = Shape::from([elements]);
                let ours = TensorView::new(old, shape.clone(), ours)?;
                let theirs = TensorView::new(new, shape, theirs)?;
                let tolerance = options.tolerance.unwrap_or(Tolerance::EXACT);
                values = compare_views(&theirs, &ours, tolerance)
                    .map_err(|error| not_numbers(&error))?;
            }
            found.values.append(&values);
        }
    }

    /// Returns how many elements a piece has: not more than are left of the shape.
    fn elements(&self, bytes: &[u8], dtype: DType, found: &Found) -> u64 {
        let bits = (bytes.len() as u64).saturating_mul(8);
        let elements = bits.checked_div(dtype.bits().unwrap_or(8).into()).unwrap_or_default();
        if !self.is_numbers || dtype.width().is_some() {
            return elements;
        }
        // The last byte may have room for one that is none.
        elements.min(found.total.saturating_sub(found.values.elements))
    }

    fn change(self, found: Found, options: &DiffOptions) -> Option<Change> {
        let [old_dtype, new_dtype] = self.contents;
        let Found { values, other_bits, other_parts, .. } = found;
        if other_parts {
            return Some(Change::Bytes { bytes: 0, first: 0 });
        }
        if old_dtype != new_dtype {
            return Some(Change::ElementType { old_dtype, new_dtype, values: Some(values) });
        }
        let is_same = match options.tolerance {
            Some(_) if self.is_numbers => values.is_close(),
            _ => !other_bits,
        };
        if is_same {
            return None;
        }
        Some(match self.is_numbers {
            true => Change::Values { shape: self.shape, values },
            false => {
                let first = values.first_mismatch.unwrap_or_default();
                Change::Bytes { bytes: values.mismatches, first }
            }
        })
    }
}

impl<'a> Side<'_, 'a> {
    fn pieces(&self) -> Result<Vec<(String, Piece<'a>)>> {
        Ok(match self {
            Self::At(source, extent) => vec![(String::new(), Piece::At(source, *extent))],
            Self::Decoded(tensor) => {
                let parts = tensor.parts()?.into_iter();
                parts.map(|(name, stream)| (name, Piece::Stream(stream))).collect()
            }
        })
    }
}

/// What is left to read of a side.
enum Piece<'a> {
    At(&'a Source, Extent),
    Stream(Stream<'a>),
}

impl Piece<'_> {
    /// Fills a buffer as far as there is something left.
    fn fill<'b>(&mut self, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
        let filled = match self {
            Self::At(source, extent) => {
                let len = extent.len().min(buffer.len() as u64);
                let next = extent.part(0, len, "tensor")?;
                *extent = extent.part(len, extent.len().saturating_sub(len), "tensor")?;
                let filled = usize::try_from(len).unwrap_or_default();
                let buffer = buffer.get_mut(..filled).unwrap_or_default();
                source.read_into(next, buffer, "tensor")?;
                filled
            }
            Self::Stream(stream) => stream.fill(buffer)?,
        };
        Ok(buffer.get(..filled).unwrap_or_default())
    }
}

/// What was found in some elements.
#[derive(Default)]
struct Found {
    /// How many elements there are to be.
    total: u64,
    values: Comparison,
    other_bits: bool,
    /// Tensors of one layout that have not the same parts.
    other_parts: bool,
}

impl Found {
    fn and(mut self, behind: &Self) -> Self {
        self.values.append(&behind.values);
        self.other_bits |= behind.other_bits;
        self.other_parts |= behind.other_parts;
        self
    }
}

/// Does not happen: elements without numbers are compared as bytes.
fn not_numbers(error: &tensor_core::compare::CompareError) -> crate::Error {
    weights::Error::Unsupported { what: error.to_string() }.into()
}

pub(super) fn serialize<S: Serializer>(
    values: &Comparison,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    struct Most<T> {
        value: T,
        index: u64,
    }
    let most = |found: &Option<Difference>| {
        found.map(|Difference { value, index, .. }| Most { value: json(value), index })
    };
    let mut map = serializer.serialize_struct("Comparison", 7)?;
    map.serialize_field("elements", &values.elements)?;
    map.serialize_field("different", &values.mismatches)?;
    map.serialize_field("nan", &values.nan_mismatches)?;
    map.serialize_field("first", &values.first_mismatch)?;
    map.serialize_field("max_abs", &most(&values.max_abs))?;
    map.serialize_field("max_rel", &most(&values.max_rel))?;
    let steps = values.max_ulp.map(|Difference { value, index, .. }| Most { value, index });
    map.serialize_field("max_ulp", &steps)?;
    map.end()
}

#[expect(clippy::ref_option, reason = "serde asks for it")]
pub(super) fn serialize_option<S: Serializer>(
    values: &Option<Comparison>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match values {
        Some(values) => serialize(values, serializer),
        None => serializer.serialize_none(),
    }
}

/// Returns a number as JSON has it; a text for infinity, which it lacks.
fn json(value: f64) -> serde_json::Value {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

/// Elements that one thread compares at a time: each side a few MiB.
const RANGE: u64 = 4 << 20;

/// Elements that are compared at a time: both sides fit a processor's cache.
const PIECE: u64 = 32 << 10;
