//! Pictures from files.

use std::io::Cursor;

use png::{BitDepth, ColorType, Transformations};
use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

use super::picture::{Image, MAX_SIDE};
use crate::{Error, Fault, Result};

impl Image {
    /// Decodes a PNG or JPEG file; which of them, its content says. Of an animation it is the first
    /// picture, and colour profiles and the camera's position do not count.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] where it is neither, is broken, has a side over 16,384 pixels, or takes more
    /// than 512 MiB of memory.
    pub fn decode(file: &[u8]) -> Result<Self> {
        let decoded = match file {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png(file),
            [0xff, 0xd8, 0xff, ..] => jpeg(file),
            _ => Err("it is neither PNG nor JPEG".to_owned()),
        };
        let Decoded { width, height, channels, bytes } = decoded.map_err(broken)?;
        match channels {
            1 => Self::from_rgb(width, height, grey(bytes, |&[grey]| [grey; 3]).map_err(broken)?),
            2 => {
                let pixels = grey(bytes, |&[grey, alpha]| [grey, grey, grey, alpha]);
                Self::from_rgba(width, height, pixels.map_err(broken)?)
            }
            3 => Self::from_rgb(width, height, bytes),
            _ => Self::from_rgba(width, height, bytes),
        }
    }
}

fn broken(reason: String) -> Error {
    Error::spec("picture", Fault::Picture { reason })
}

/// A picture as its decoder gives it, eight bits a channel.
struct Decoded {
    width: u32,
    height: u32,
    channels: usize,
    bytes: Vec<u8>,
}

fn png(file: &[u8]) -> Result<Decoded, String> {
    let limits = png::Limits { bytes: MAX_MEMORY };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(|error| error.to_string())?;
    let (width, height) = header.size();
    check_size(width, height)?;
    // Palettes become colours, and one to four bits eight.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let len = reader.output_buffer_size().filter(|len| *len <= MAX_MEMORY).ok_or_else(too_large)?;
    let mut bytes = reserved(len)?;
    bytes.resize(len, 0);
    reader.next_frame(&mut bytes).map_err(|error| error.to_string())?;
    let (colour, depth) = reader.output_color_type();
    if depth == BitDepth::Sixteen {
        narrow(&mut bytes);
    }
    let channels = match colour {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
        ColorType::Indexed => return Err("its palette was not resolved".to_owned()),
    };
    Ok(Decoded { width, height, channels, bytes })
}

fn jpeg(file: &[u8]) -> Result<Decoded, String> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(MAX_SIDE as usize)
        .set_max_height(MAX_SIDE as usize);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let (width, height) = (side(width), side(height));
    check_size(width, height)?;
    let (colour, channels) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        _ => (ColorSpace::RGB, 3),
    };
    decoder.set_options(options.jpeg_set_out_colorspace(colour));
    let len = decoder.output_buffer_size().filter(|len| *len <= MAX_MEMORY);
    let len = len.ok_or_else(too_large)?;
    let components = decoder.info().map_or(u8::MAX, |info| info.components);
    if has_several_scans(file, components) {
        let pixels = (width as usize).saturating_mul(height as usize);
        let coefficients = pixels.saturating_mul(components.into()).saturating_mul(2);
        if coefficients.saturating_add(len) > MAX_MEMORY {
            return Err(too_large());
        }
    }
    let mut bytes = reserved(len)?;
    bytes.resize(len, 0);
    decoder.decode_into(&mut bytes).map_err(|error| error.to_string())?;
    Ok(Decoded { width, height, channels, bytes })
}

/// Tells whether a JPEG file may have several scans, so that its decoder holds two bytes for every
/// component of every pixel until it has seen the last one.
fn has_several_scans(file: &[u8], components: u8) -> bool {
    let mut rest = file.get(2..).unwrap_or_default();
    // Whatever is not plain may be anything.
    while let [0xff, marker, high, low, tail @ ..] = rest {
        match marker {
            // Start of scan, with the number of its components.
            0xda => return tail.first() != Some(&components),
            // Frames that are not progressive, tables, restarts, texts and data of applications.
            0xc0 | 0xc1 | 0xc4 | 0xdb | 0xdd | 0xe0..=0xef | 0xfe => {}
            _ => return true,
        }
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        rest = len.checked_sub(2).and_then(|len| tail.get(len..)).unwrap_or_default();
    }
    true
}

/// Refuses a picture before anything is set aside for it.
fn check_size(width: u32, height: u32) -> Result<(), String> {
    if width <= MAX_SIDE && height <= MAX_SIDE {
        // Three bytes a pixel at least, whatever the file has.
        let pixels = (width as usize).saturating_mul(height as usize);
        return if pixels.saturating_mul(3) > MAX_MEMORY { Err(too_large()) } else { Ok(()) };
    }
    Err(format!("{width} x {height} pixels, expected 1 to {MAX_SIDE} on each side"))
}

/// Leaves the upper halves of numbers of 16 bits, rounded to the nearest.
fn narrow(bytes: &mut Vec<u8>) {
    let len = bytes.len() / 2;
    for at in 0..len {
        let pair = bytes.get(at.saturating_mul(2)..).and_then(<[u8]>::first_chunk);
        let pair = pair.copied().map_or(0, u16::from_be_bytes);
        let rounded = u32::from(pair).saturating_add(128) / 257;
        if let Some(byte) = bytes.get_mut(at) {
            *byte = u8::try_from(rounded).unwrap_or(u8::MAX);
        }
    }
    bytes.truncate(len);
}

/// Returns the pixels of a picture without colours, as those of one with.
fn grey<const FROM: usize, const TO: usize>(
    bytes: Vec<u8>,
    pixel: impl Fn(&[u8; FROM]) -> [u8; TO],
) -> Result<Vec<u8>, String> {
    let (pixels, _) = bytes.as_chunks::<FROM>();
    let len = pixels.len().saturating_mul(TO);
    if len.saturating_add(bytes.capacity()) > MAX_MEMORY {
        return Err(too_large());
    }
    let mut all = reserved(len)?;
    pixels.iter().for_each(|found| all.extend(pixel(found)));
    drop(bytes);
    Ok(all)
}

fn reserved(len: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    if len > MAX_MEMORY || bytes.try_reserve_exact(len).is_err() {
        return Err(too_large());
    }
    Ok(bytes)
}

fn too_large() -> String {
    "it takes more than 512 MiB of memory".to_owned()
}

/// Bytes that a picture may take.
const MAX_MEMORY: usize = 512 << 20;

#[cfg(test)]
mod tests {
    use test_support::{files, truncations};

    use super::*;

    #[test]
    fn every_kind_of_png() {
        for path in files("ptl/calls/images", "png") {
            let file = std::fs::read(&path).unwrap();
            let image = Image::decode(&file).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let size = format!("{}x{}", image.width(), image.height());
            assert!(name.ends_with(&size), "{name} is {size}");
            let channels = image.pixels().len() as u32 / (image.width() * image.height());
            assert_eq!(channels, if name.starts_with("rgba") { 4 } else { 3 }, "{name}");
        }
    }

    #[test]
    fn cut_files() {
        let path = files("ptl/calls/images", "png").remove(0);
        truncations(&std::fs::read(path).unwrap(), |cut| {
            let _ = Image::decode(cut);
        });
        let error = Image::decode(b"GIF89a").unwrap_err();
        assert!(error.to_string().starts_with("picture is not a picture that can be decoded: "));
    }

    #[test]
    fn only_pictures_in_one_scan_are_decoded_in_pieces() {
        for path in files("ptl/calls/jpeg", "jpg") {
            let (file, name) = (std::fs::read(&path).unwrap(), path.file_stem().unwrap());
            let name = name.to_str().unwrap();
            let components = match name {
                "cmyk" => 4,
                _ if name.starts_with("grey") => 1,
                _ => 3,
            };
            let is_progressive = name.contains("progressive");
            assert_eq!(has_several_scans(&file, components), is_progressive, "{name}");
            assert!(has_several_scans(&file, components + 1));
            assert!(has_several_scans(&file[..20], components));
        }
    }

    #[test]
    fn bytes_that_do_not_fit() {
        let error = Image::from_rgb(2, 2, vec![0; 11]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "picture is not a picture that can be decoded: 11 bytes for 2 x 2 pixels of 3 bytes"
        );
        Image::from_rgba(0, 2, vec![]).unwrap_err();
        Image::from_rgb(16_385, 1, vec![0; 16_385 * 3]).unwrap_err();
    }
}
