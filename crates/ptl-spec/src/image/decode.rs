//! Pictures from files.

use std::io::Cursor;

use image::{DynamicImage, ImageReader};

use super::picture::{Image, MAX_SIDE};
use crate::{Error, Fault, Result};

impl Image {
    /// Decodes a PNG or JPEG file; which of them, its content says.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] where it is neither, is broken, has a side over 16,384 pixels, or takes more
    /// than 512 MiB of memory.
    pub fn decode(file: &[u8]) -> Result<Self> {
        let failed = |reason: String| Error::spec("picture", Fault::Picture { reason });
        let reader = ImageReader::new(Cursor::new(file)).with_guessed_format();
        let mut reader = reader.map_err(|error| failed(error.to_string()))?;
        let mut limits = image::Limits::default();
        limits.max_image_width = Some(MAX_SIDE);
        limits.max_image_height = Some(MAX_SIDE);
        limits.max_alloc = Some(MAX_MEMORY);
        reader.limits(limits);
        let picture = reader.decode().map_err(|error| failed(error.to_string()))?;
        let (width, height) = (picture.width(), picture.height());
        match picture {
            DynamicImage::ImageRgb8(picture) => Self::from_rgb(width, height, picture.into_raw()),
            picture if picture.color().has_alpha() => {
                Self::from_rgba(width, height, picture.into_rgba8().into_raw())
            }
            picture => Self::from_rgb(width, height, picture.into_rgb8().into_raw()),
        }
    }
}

/// Bytes that a decoder may take.
const MAX_MEMORY: u64 = 512 << 20;

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
        assert!(error.to_string().starts_with("picture is no picture that can be decoded: "));
    }

    #[test]
    fn bytes_that_do_not_fit() {
        let error = Image::from_rgb(2, 2, vec![0; 11]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "picture is no picture that can be decoded: 11 bytes for 2 x 2 pixels of 3 bytes"
        );
        Image::from_rgba(0, 2, vec![]).unwrap_err();
        Image::from_rgb(16_385, 1, vec![0; 16_385 * 3]).unwrap_err();
    }
}
