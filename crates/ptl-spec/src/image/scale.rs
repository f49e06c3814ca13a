//! The transform `scale`.

use fast_image_resize::{
    FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer,
    images::{Image as Resized, TypedCroppedImage, TypedImageRef},
    pixels::U8x3,
};

use super::picture::{MAX_SIDE, Scaled, View};
use crate::Fault;

/// How pixels of a scaled picture are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// Each is the nearest one of the picture, of two as near the upper left: as on Android.
    Nearest,
    /// Weighted means of all pixels that it covers (a triangle filter), as Pillow's `BILINEAR`, and
    /// torchvision with antialiasing.
    Bilinear,
    /// Weighted means of the four nearest, as torchvision without antialiasing.
    BilinearNoAntialias,
}

/// Scales a part of a picture to a size in pixels.
pub(super) fn apply(
    view: View<'_>,
    (width, height): (i64, i64),
    filter: Filter,
) -> Result<Scaled, Fault> {
    let side = |side: i64| u32::try_from(side).ok().filter(|side| (1..=MAX_SIDE).contains(side));
    let (Some(to_width), Some(to_height)) = (side(width), side(height)) else {
        let target = "1 to 16384 pixels on each side";
        return Err(Fault::Range { found: format!("{width} x {height} pixels"), target });
    };
    let how = match filter {
        Filter::Nearest => None,
        Filter::Bilinear => Some(ResizeAlg::Convolution(FilterType::Bilinear)),
        Filter::BilinearNoAntialias => Some(ResizeAlg::Interpolation(FilterType::Bilinear)),
    };
    let (pixels, channels) = match how {
        None => (nearest(view, to_width, to_height), view.channels),
        Some(how) => (filtered(view, to_width, to_height, how)?, 3),
    };
    Ok(Scaled { pixels, channels, width: to_width, height: to_height })
}

fn nearest(view: View<'_>, width: u32, height: u32) -> Vec<u8> {
    let columns: Vec<usize> = (0..width).map(|index| source_of(index, view.width, width)).collect();
    let rows: Vec<&[u8]> = view.rows().collect();
    let len = [height as usize, columns.len(), view.channels];
    let mut pixels = Vec::with_capacity(len.into_iter().fold(1, usize::saturating_mul));
    for index in 0..height {
        let row = rows.get(source_of(index, view.height, height)).copied().unwrap_or_default();
        for column in &columns {
            let start = column.saturating_mul(view.channels);
            let pixel = row.get(start..start.saturating_add(view.channels));
            pixels.extend_from_slice(pixel.unwrap_or_default());
        }
    }
    pixels
}

/// Returns the index of the nearest of `from` pixels to the middle of one of `to`; where two are as
/// near, the lower one: `ceil((2 index + 1) from / (2 to)) - 1`.
fn source_of(index: u32, from: u32, to: u32) -> usize {
    let middle = u64::from(index).saturating_mul(2).saturating_add(1).saturating_mul(from.into());
    let source = middle.div_ceil(u64::from(to).saturating_mul(2).max(1)).saturating_sub(1);
    usize::try_from(source).unwrap_or(usize::MAX)
}

/// Scales red, green and blue by a filter: nothing behind it looks at how opaque a pixel is. What
/// pixels are is said by type, and is always the same: each kind of them is 700 kB of code.
fn filtered(view: View<'_>, width: u32, height: u32, how: ResizeAlg) -> Result<Vec<u8>, Fault> {
    if view.channels == 4 {
        let rows = view.rows().flat_map(|row| row.as_chunks::<4>().0);
        let pixels: Vec<[u8; 3]> = rows.map(|&[red, green, blue, _]| [red, green, blue]).collect();
        let opaque = View {
            pixels: pixels.as_flattened(),
            channels: 3,
            stride: view.width,
            x: 0,
            y: 0,
            ..view
        };
        return filtered(opaque, width, height, how);
    }
    let row = (view.stride as usize).saturating_mul(view.channels);
    let rows = view.pixels.len().checked_div(row).and_then(|rows| u32::try_from(rows).ok());
    let rows = rows.unwrap_or_default();
    let failed = |error: String| Fault::Picture { reason: error };
    let source = TypedImageRef::<U8x3>::from_buffer(view.stride, rows, view.pixels);
    let source = source.map_err(|error| failed(error.to_string()))?;
    let mut target = Resized::new(width, height, PixelType::U8x3);
    let no_pixels = || failed("its pixels are of another kind".to_owned());
    let mut pixels = target.typed_image_mut::<U8x3>().ok_or_else(no_pixels)?;
    // Cropped before, not by the options: those let pixels around the part have a say.
    let View { x, y, .. } = view;
    let source = TypedCroppedImage::new(source, x, y, view.width, view.height);
    let source = source.map_err(|error| failed(error.to_string()))?;
    let options = ResizeOptions::new().resize_alg(how).use_alpha(false);
    let done = Resizer::new().resize_typed(&source, &mut pixels, &options);
    done.map_err(|error| failed(error.to_string()))?;
    Ok(target.into_vec())
}

#[cfg(test)]
mod tests {
    use test_support::testdata;

    use super::*;
    use crate::{Json, image::Image};

    fn oracles() -> Vec<(Image, i64, i64, Json)> {
        let text = std::fs::read(testdata("ptl/calls/scale_oracles.json")).unwrap();
        let oracle = Json::parse(&text, &tensor_core::Limits::default()).unwrap();
        let Some(Json::Array(rows)) = oracle.get("oracles") else { panic!("oracles") };
        assert_eq!(rows.len(), 5);
        let side = |row: &Json, key: &str| match row.get(key) {
            Some(Json::Int(side)) => *side,
            _ => panic!("{key}"),
        };
        let row = |row: &Json| {
            let image = testdata("ptl/calls").join(row.get("image").unwrap().as_str().unwrap());
            let image = Image::decode(&std::fs::read(image).unwrap()).unwrap();
            let results = row.get("rgb_hwc_u8").unwrap().clone();
            (image, side(row, "width"), side(row, "height"), results)
        };
        rows.iter().map(row).collect()
    }

    /// Returns the difference of each pixel to what another program made of the pictures.
    fn differences(filter: Filter, oracle: &str) -> Vec<(i64, usize, i64)> {
        let mut differences = Vec::new();
        for (image, width, height, results) in oracles() {
            let scaled = apply(image.view(), (width, height), filter).unwrap();
            let found = scaled.pixels.chunks(scaled.channels).map(|pixel| &pixel[..3]);
            let Some(Json::Array(expected)) = results.get(oracle) else { panic!("{oracle}") };
            assert_eq!(expected.len(), (width * height * 3) as usize);
            for (index, (found, expected)) in found.zip(expected.chunks(3)).enumerate() {
                let channel = |(found, expected): (&u8, &Json)| match expected {
                    Json::Int(expected) => (i64::from(*found) - expected).abs(),
                    other => panic!("{other}"),
                };
                let worst = found.iter().zip(expected).map(channel).max().unwrap();
                differences.push((width, index % width as usize, worst));
            }
        }
        differences
    }

    fn difference(filter: Filter, oracle: &str) -> i64 {
        differences(filter, oracle).into_iter().map(|(.., worst)| worst).max().unwrap()
    }

    /// Of the 56 ties in 64 to 28 pixels, Skia's 32-bit floats miss those in two columns.
    #[test]
    fn nearest_is_that_of_skia() {
        let differing = differences(Filter::Nearest, "nearest_skia");
        let differing = differing.into_iter().filter(|(.., worst)| *worst > 0);
        let columns: std::collections::BTreeSet<_> =
            differing.map(|(width, column, _)| (width, column)).collect();
        assert_eq!(columns.into_iter().collect::<Vec<_>>(), [(28, 10), (28, 24)]);
    }

    #[test]
    fn bilinear_is_within_one_of_others() {
        assert!(difference(Filter::Bilinear, "bilinear_pil") <= 1);
        assert!(difference(Filter::Bilinear, "bilinear_torch_antialias") <= 1);
        assert!(difference(Filter::BilinearNoAntialias, "bilinear_torch_noantialias") <= 1);
    }

    #[test]
    fn a_part_is_scaled_as_if_it_were_alone() {
        for (image, ..) in oracles() {
            let view = View { x: 1, y: 1, width: 3, height: 2, ..image.view() };
            let alone: Vec<u8> = view.rows().flatten().copied().collect();
            let alone = View { pixels: &alone, x: 0, y: 0, stride: 3, ..view };
            for filter in [Filter::Nearest, Filter::Bilinear, Filter::BilinearNoAntialias] {
                let scaled = |view| apply(view, (7, 5), filter).unwrap().pixels;
                assert_eq!(scaled(view), scaled(alone), "{filter:?}");
            }
        }
    }

    #[test]
    fn ties_go_to_the_lower_index() {
        let sources = |from, to| (0..to).map(|at| source_of(at, from, to)).collect::<Vec<_>>();
        assert_eq!(sources(8, 4), [0, 2, 4, 6]);
        assert_eq!(sources(3, 6), [0, 0, 1, 1, 2, 2]);
        assert_eq!(sources(5, 1), [2]);
    }

    #[test]
    fn impossible_sizes() {
        let image = Image::from_rgb(1, 1, vec![0; 3]).unwrap();
        for size in [(0, 1), (1, -1), (16_385, 1), (i64::MAX, 1)] {
            let Err(fault) = apply(image.view(), size, Filter::Nearest) else { panic!("{size:?}") };
            assert!(matches!(fault, Fault::Range { .. }));
        }
    }
}
