//! The transforms `rgb_norm` and `greyscale_norm`: from bytes to a tensor, in one pass.

use tensor_core::{AlignedBuf, DType, TensorBuf};

use super::picture::View;
use crate::{Colour, Dialect, Fault, Slot, TensorStep};

pub(super) fn tensor(view: View<'_>, step: &TensorStep) -> Result<TensorBuf, Fault> {
    match step {
        TensorStep::RgbNorm { mean, std } => {
            let (mean, std) = (channels(mean)?, channels(std)?);
            rgb(view, [0, 1, 2].map(|at: usize| (pick(mean, at), pick(std, at))))
        }
        TensorStep::GreyscaleNorm { background, foreground, mean, std } => {
            let (background, foreground) = (*background.bound()?, *foreground.bound()?);
            let (mean, std) = (single(*mean.bound()?), single(*std.bound()?));
            let grey = |pixel: [u8; 3]| {
                let (back, fore) = (distance(pixel, background), distance(pixel, foreground));
                (back / (back + fore) - mean) / std
            };
            greyscale(view, grey)
        }
    }
}

fn channels(values: &Slot<[Slot<f64>; 3]>) -> Result<[f32; 3], Fault> {
    let [red, green, blue] = values.bound()?;
    Ok([single(*red.bound()?), single(*green.bound()?), single(*blue.bound()?)])
}

fn pick(values: [f32; 3], at: usize) -> f32 {
    values.get(at).copied().unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, reason = "phones compute in 32 bits")]
const fn single(value: f64) -> f32 {
    value as f32
}

/// Makes a tensor `[1, 3, height, width]`. A byte has 256 values, so each is computed once.
fn rgb(view: View<'_>, norms: [(f32, f32); 3]) -> Result<TensorBuf, Fault> {
    let tables = norms.map(|(mean, std)| table(mean, std));
    let (mut buffer, plane) = buffer(view, 3)?;
    let (red, rest) = buffer.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    let [mut red, mut green, mut blue] =
        [red, green, blue].map(|p| p.as_chunks_mut::<4>().0.iter_mut());
    for row in view.rows() {
        match view.channels {
            4 => {
                let pixels = row.as_chunks::<4>().0.iter().map(|&[r, g, b, _]| [r, g, b]);
                put_row(pixels, &tables, &mut red, &mut green, &mut blue);
            }
            _ => {
                let pixels = row.as_chunks::<3>().0.iter().copied();
                put_row(pixels, &tables, &mut red, &mut green, &mut blue);
            }
        }
    }
    finish(view, 3, buffer)
}

fn put_row<'b>(
    pixels: impl Iterator<Item = [u8; 3]>,
    [reds, greens, blues]: &[Table; 3],
    red: &mut impl Iterator<Item = &'b mut [u8; 4]>,
    green: &mut impl Iterator<Item = &'b mut [u8; 4]>,
    blue: &mut impl Iterator<Item = &'b mut [u8; 4]>,
) {
    for ((([r, g, b], red), green), blue) in pixels.zip(red).zip(green).zip(blue) {
        (*red, *green, *blue) = (entry(reds, r), entry(greens, g), entry(blues, b));
    }
}

/// Little-endian floats, one for each value of a byte.
type Table = [[u8; 4]; 256];

fn table(mean: f32, std: f32) -> Table {
    let mut table = [[0; 4]; 256];
    for (entry, byte) in table.iter_mut().zip(0_u8..=255) {
        *entry = ((f32::from(byte) / 255.0 - mean) / std).to_le_bytes();
    }
    table
}

#[expect(clippy::indexing_slicing, reason = "a byte is a place in a table of 256")]
const fn entry(table: &Table, byte: u8) -> [u8; 4] {
    table[byte as usize]
}

/// Makes a tensor `[1, 1, height, width]`.
fn greyscale(view: View<'_>, grey: impl Fn([u8; 3]) -> f32) -> Result<TensorBuf, Fault> {
    let (mut buffer, _) = buffer(view, 1)?;
    let mut elements = buffer.as_chunks_mut::<4>().0.iter_mut();
    for row in view.rows() {
        for (pixel, element) in row.chunks_exact(view.channels).zip(&mut elements) {
            let pixel = pixel.first_chunk::<3>().copied().unwrap_or_default();
            *element = grey(pixel).to_le_bytes();
        }
    }
    finish(view, 1, buffer)
}

/// Returns how far apart two colours are, in steps of a channel.
fn distance([red, green, blue]: [u8; 3], colour: Colour) -> f32 {
    let square = |one: u8, other: u8| (f32::from(one) - f32::from(other)).powi(2);
    let sum = square(red, colour.red) + square(green, colour.green) + square(blue, colour.blue);
    sum.sqrt()
}

/// Returns memory for a tensor of floats, and the bytes of one of its planes.
fn buffer(view: View<'_>, planes: usize) -> Result<(AlignedBuf, usize), Fault> {
    let sides = [view.width as usize, view.height as usize];
    let plane = sides.into_iter().fold(size_of::<f32>(), usize::saturating_mul);
    Ok((AlignedBuf::zeroed(plane.saturating_mul(planes))?, plane))
}

fn finish(view: View<'_>, planes: u64, buffer: AlignedBuf) -> Result<TensorBuf, Fault> {
    let shape = [1, planes, view.height.into(), view.width.into()];
    Ok(TensorBuf::new(DType::F32, shape, buffer.into_bytes())?)
}

/// Makes red, green and blue bytes of three planes: the smallest element becomes 0, the largest 255.
/// On phones nothing below 0 counts as the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "scaled to 0 to 255, and casts saturate"
)]
pub(super) fn to_rgb(elements: &[f32], dialect: Dialect) -> Vec<u8> {
    let least = elements.iter().copied().fold(f32::INFINITY, f32::min);
    let floor = match dialect {
        Dialect::Documented => f32::NEG_INFINITY,
        Dialect::Android => 0.0,
    };
    let most = elements.iter().copied().fold(floor, f32::max);
    let range = if most > least { most - least } else { 1.0 };
    let byte = |element: &f32| ((element - least) / range * 255.0).round() as u8;
    let plane = (elements.len() / 3).max(1);
    let mut planes = elements.chunks_exact(plane);
    let (red, green, blue) = (planes.next(), planes.next(), planes.next());
    let each = red.into_iter().flatten().zip(green.into_iter().flatten());
    let each = each.zip(blue.into_iter().flatten());
    each.flat_map(|((red, green), blue)| [byte(red), byte(green), byte(blue)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;

    fn elements(tensor: &TensorBuf) -> Vec<f32> {
        tensor.view().as_slice::<f32>().unwrap().to_vec()
    }

    #[test]
    fn planes_stand_behind_each_other() {
        let norms = [(0.0, 1.0), (0.5, 0.5), (0.0, 2.0)];
        let rgb_pixels = vec![255, 255, 255, 0, 0, 0];
        let rgba_pixels = vec![255, 255, 255, 7, 0, 0, 0, 9];
        for image in [Image::from_rgb(2, 1, rgb_pixels), Image::from_rgba(2, 1, rgba_pixels)] {
            let tensor = rgb(image.unwrap().view(), norms).unwrap();
            assert_eq!(tensor.info().to_string(), "f32 [1, 3, 1, 2]");
            assert_eq!(tensor.bytes().as_ptr().addr() % 64, 0);
            assert_eq!(elements(&tensor), [1.0, 0.0, 1.0, -1.0, 0.5, 0.0]);
        }
    }

    #[test]
    fn grey_is_how_near_a_colour_is() {
        let image = Image::from_rgb(2, 1, vec![0, 0, 255, 255, 255, 0]).unwrap();
        let step = TensorStep::GreyscaleNorm {
            background: Colour::from_rgb(0x00_00_ff).into(),
            foreground: Colour::from_rgb(0xff_ff_00).into(),
            mean: 0.0.into(),
            std: 1.0.into(),
        };
        let tensor = tensor(image.view(), &step).unwrap();
        assert_eq!(tensor.info().to_string(), "f32 [1, 1, 1, 2]");
        assert_eq!(elements(&tensor), [0.0, 1.0]);
    }

    #[test]
    fn tensors_become_pictures() {
        let documented = |elements: &[f32]| to_rgb(elements, Dialect::Documented);
        assert_eq!(documented(&[-1.0, 0.0, 0.0, 1.0, 1.0, 1.0]), [0, 128, 255, 128, 255, 255]);
        assert_eq!(documented(&[3.0; 3]), [0, 0, 0]);
        assert_eq!(documented(&[]), [0; 0]);
        assert_eq!(documented(&[-4.0, -3.0, -2.0]), [0, 128, 255]);
        assert_eq!(to_rgb(&[-4.0, -3.0, -2.0], Dialect::Android), [0, 64, 128]);
    }
}
