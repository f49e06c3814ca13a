//! The transform `center_crop`.

use super::picture::View;
use crate::{Dialect, Fault, Slot};

/// The size of a crop in pixels; `None` for the largest square.
pub(super) type Size = Option<(i64, i64)>;

pub(super) fn size(width: Option<&Slot<i64>>, height: Option<&Slot<i64>>) -> Result<Size, Fault> {
    match (width, height) {
        (Some(width), Some(height)) => Ok(Some((*width.bound()?, *height.bound()?))),
        _ => Ok(None),
    }
}

/// Returns the part in the middle.
pub(super) fn apply(view: View<'_>, size: Size, dialect: Dialect) -> Result<View<'_>, Fault> {
    let (whole_width, whole_height) = (view.width, view.height);
    let (width, height) = match (size, dialect) {
        (None, _) => (whole_width.min(whole_height), whole_width.min(whole_height)),
        (Some((width, height)), Dialect::Documented) => fit(view, width, height)?,
        (Some(ratio), Dialect::Android) => largest_box(view, ratio)?,
    };
    // Neither is larger than the picture.
    let x = view.x.saturating_add(whole_width.saturating_sub(width) / 2);
    let y = view.y.saturating_add(whole_height.saturating_sub(height) / 2);
    Ok(View { x, y, width, height, ..view })
}

fn fit(view: View<'_>, width: i64, height: i64) -> Result<(u32, u32), Fault> {
    let side = |wanted: i64, there: u32| u32::try_from(wanted).ok().filter(|&side| side <= there);
    match (side(width, view.width), side(height, view.height)) {
        (Some(0), _) | (_, Some(0)) => Err(Fault::NoPixels { width, height }),
        (Some(width), Some(height)) => Ok((width, height)),
        _ => {
            let (picture_width, picture_height) = (view.width, view.height);
            Err(Fault::Crop { width, height, picture_width, picture_height })
        }
    }
}

/// Returns the size of the largest box of an aspect ratio, in the 32-bit arithmetic of phones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate, as Java's do"
)]
fn largest_box(view: View<'_>, (width, height): (i64, i64)) -> Result<(u32, u32), Fault> {
    let (picture_width, picture_height) = (view.width as f32, view.height as f32);
    let ratio = width as f32 / height as f32;
    let (width, height) = if ratio > picture_width / picture_height {
        (view.width, (picture_width / ratio).floor() as u32)
    } else {
        ((picture_height * ratio).floor() as u32, view.height)
    };
    if width == 0 || height == 0 {
        return Err(Fault::NoPixels { width: width.into(), height: height.into() });
    }
    // The rounding of a ratio that is the picture's own can not make it larger than that.
    Ok((width.min(view.width), height.min(view.height)))
}

#[cfg(test)]
mod tests {
    use test_support::testdata;

    use super::*;
    use crate::Json;

    fn boxed((width, height): (u32, u32), size: Size, dialect: Dialect) -> Result<[u32; 4], Fault> {
        let view = View { pixels: &[], channels: 3, stride: width, x: 0, y: 0, width, height };
        let part = apply(view, size, dialect)?;
        Ok([part.x, part.y, part.width, part.height])
    }

    fn numbers(row: &Json, key: &str) -> Option<Vec<i64>> {
        let Some(Json::Array(items)) = row.get(key) else { return None };
        Some(
            items
                .iter()
                .map(|item| if let Json::Int(n) = item { *n } else { panic!("{row}") })
                .collect(),
        )
    }

    /// Rows computed by the reference and by integer division.
    #[test]
    fn offsets_of_the_oracle() {
        let text = std::fs::read(testdata("ptl/calls/crop_offsets.json")).unwrap();
        let oracle = Json::parse(&text, &tensor_core::Limits::default()).unwrap();
        let Some(Json::Array(rows)) = oracle.get("rows") else { panic!("rows") };
        assert_eq!(rows.len(), 10);
        for row in rows {
            let (image, crop) = (numbers(row, "image").unwrap(), numbers(row, "crop").unwrap());
            let image = (image[0] as u32, image[1] as u32);
            let size = Some((crop[0], crop[1]));
            let literal = boxed(image, size, Dialect::Documented);
            match numbers(row, "floor") {
                Some(offset) => {
                    let expected = [offset[0], offset[1], crop[0], crop[1]].map(|n| n as u32);
                    assert_eq!(literal, Ok(expected), "{row}");
                }
                None => assert!(matches!(literal, Err(Fault::Crop { .. })), "{row}"),
            }
            let expected: Vec<u32> =
                numbers(row, "reference_box").unwrap().iter().map(|&n| n as u32).collect();
            assert_eq!(boxed(image, size, Dialect::Android).unwrap()[..], expected, "{row}");
        }
    }

    #[test]
    fn boxes_without_pixels() {
        for (size, found) in
            [((100, 1), (5, 0)), ((1, 0), (5, 0)), ((0, 1), (0, 3)), ((0, 0), (0, 3))]
        {
            let fault = boxed((5, 3), Some(size), Dialect::Android).unwrap_err();
            assert_eq!(fault, Fault::NoPixels { width: found.0, height: found.1 }, "{size:?}");
        }
    }

    #[test]
    fn the_largest_square_without_a_size() {
        for dialect in [Dialect::Documented, Dialect::Android] {
            assert_eq!(boxed((5, 3), None, dialect), Ok([1, 0, 3, 3]));
            assert_eq!(boxed((3, 6), None, dialect), Ok([0, 1, 3, 3]));
        }
    }
}
