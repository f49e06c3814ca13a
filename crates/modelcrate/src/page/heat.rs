//! Where in a tensor values differ.

use tensor_core::{
    Shape, TensorView,
    compare::{Tolerance, compare},
};

use crate::{AnyReader, Change, Content, Diff, NamedTensor, Result, TensorDiff};

/// How far the elements of a tensor are from those of another, along its memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strip {
    /// The greatest difference in each of up to [`CELLS`] ranges of as many elements.
    pub(super) cells: Vec<f64>,
}

impl Strip {
    /// Returns how hot each range is, from 0, where nothing differs, to 9.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 9")]
    pub(super) fn levels(&self) -> impl Iterator<Item = u8> {
        let most = self.cells.iter().copied().filter(|cell| cell.is_finite()).fold(0.0, f64::max);
        self.cells.iter().map(move |cell| match *cell {
            0.0 => 0,
            cell if cell >= most || cell.is_nan() => 9,
            cell => (cell / most * 9.0).ceil().clamp(1.0, 9.0) as u8,
        })
    }
}

/// Compares the tensors whose values differ range by range.
pub(super) fn strips(old: &AnyReader, new: &AnyReader, diff: &Diff) -> Vec<Option<Strip>> {
    let (Ok(old), Ok(new)) = (old.tensor_set(), new.tensor_set()) else { return Vec::new() };
    let strip = |of: &TensorDiff| {
        let Change::Values { shape, .. } = &of.change else { return None };
        let old = old.tensor(of.old.as_deref()?)?;
        let new = new.tensor(of.new.as_deref()?)?;
        // What cannot be read has no strip; that it cannot is in the findings.
        strip(old, new, shape).ok().flatten()
    };
    diff.tensors.iter().take(super::ROWS).map(strip).collect()
}

fn strip(old: &NamedTensor<'_>, new: &NamedTensor<'_>, shape: &Shape) -> Result<Option<Strip>> {
    let (Content::Elements(_), elements) = (old.content()?.0, shape.elements()?) else {
        return Ok(None);
    };
    let Some(dtype) = old.content()?.0.dtype() else { return Ok(None) };
    let (mut old, mut new) = (old.parts()?, new.parts()?);
    let ([(_, old)], [(_, new)]) = (old.as_mut_slice(), new.as_mut_slice()) else {
        return Ok(None);
    };
    // Whole bytes, also where two elements share one.
    let each = elements.div_ceil(CELLS).next_multiple_of(2);
    let (mut cells, mut left) = (Vec::new(), elements);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    while left > 0 {
        let (mut most, mut cell) = (0.0_f64, each.min(left));
        left = left.saturating_sub(cell);
        while cell > 0 {
            let count = cell.min(PIECE);
            cell = cell.saturating_sub(count);
            let bytes = dtype.byte_len(count).and_then(|bytes| usize::try_from(bytes).ok());
            let bytes = bytes.unwrap_or_default();
            for (buffer, stream) in [(&mut ours, &mut *old), (&mut theirs, &mut *new)] {
                buffer.resize(bytes, 0);
                stream.fill(buffer)?;
            }
            if ours == theirs {
                continue;
            }
            let view = |bytes| TensorView::new(dtype, Shape::from([count]), bytes);
            let found = compare(&view(&theirs)?, &view(&ours)?, Tolerance::EXACT);
            let found = found.ok().filter(|found| found.mismatches > 0);
            // NaN on one side alone is as far as can be.
            most = found.map_or(most, |found| match found.nan_mismatches {
                0 => most.max(found.max_abs.map_or(0.0, |greatest| greatest.value)),
                _ => f64::INFINITY,
            });
        }
        cells.push(most);
    }
    Ok(Some(Strip { cells }))
}

/// Ranges of a strip.
const CELLS: u64 = 64;

/// Elements that are compared at a time; even, as two may share a byte.
const PIECE: u64 = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hottest_is_nine() {
        let strip = Strip { cells: vec![0.0, 0.1, 1.0, 0.5, f64::INFINITY] };
        assert_eq!(strip.levels().collect::<Vec<_>>(), [0, 1, 9, 5, 9]);
        assert_eq!(Strip { cells: vec![0.0, 0.0] }.levels().max(), Some(0));
    }
}
