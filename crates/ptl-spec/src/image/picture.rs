//! Pictures in memory.

use bytes::Bytes;

use crate::{Error, Fault, Result};

/// A picture in memory: rows from the top, eight bits a channel, red first. Clones are cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    pixels: Pixels,
}

#[derive(Clone, PartialEq, Eq)]
enum Pixels {
    Rgb(Bytes),
    Rgba(Bytes),
}

impl Image {
    /// Makes a picture of red, green and blue bytes, which are not copied.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] where there are not `width * height * 3` bytes, or a side is not 1 to 16,384
    /// pixels.
    pub fn from_rgb(width: u32, height: u32, pixels: impl Into<Bytes>) -> Result<Self> {
        Self::new(width, height, Pixels::Rgb(pixels.into()))
    }

    /// Makes a picture of red, green, blue and alpha bytes, colours not multiplied by alpha. Alpha
    /// does not count.
    ///
    /// # Errors
    ///
    /// As for [`from_rgb`](Self::from_rgb), with four bytes a pixel.
    pub fn from_rgba(width: u32, height: u32, pixels: impl Into<Bytes>) -> Result<Self> {
        Self::new(width, height, Pixels::Rgba(pixels.into()))
    }

    fn new(width: u32, height: u32, pixels: Pixels) -> Result<Self> {
        let picture = Self { width, height, pixels };
        let view = picture.view();
        let needed = u64::from(width).checked_mul(u64::from(height));
        let needed = needed.and_then(|pixels| pixels.checked_mul(view.channels as u64));
        let reason = if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            format!("{width} x {height} pixels, expected 1 to {MAX_SIDE} on each side")
        } else if needed != Some(view.pixels.len() as u64) {
            let found = view.pixels.len();
            format!("{found} bytes for {width} x {height} pixels of {} bytes", view.channels)
        } else {
            return Ok(picture);
        };
        Err(Error::spec("picture", Fault::Picture { reason }))
    }

    /// Returns the width in pixels.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Returns the height in pixels.
    #[must_use]
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// Returns the bytes, three or four a pixel.
    #[must_use]
    pub fn pixels(&self) -> &[u8] {
        self.view().pixels
    }

    pub(super) fn view(&self) -> View<'_> {
        let (pixels, channels) = match &self.pixels {
            Pixels::Rgb(pixels) => (pixels, 3),
            Pixels::Rgba(pixels) => (pixels, 4),
        };
        let (stride, width, height) = (self.width, self.width, self.height);
        View { pixels, channels, stride, x: 0, y: 0, width, height }
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("width", &self.width)
            .field("height", &self.height)
            .finish_non_exhaustive()
    }
}

/// A part of a picture, without a copy.
#[derive(Clone, Copy)]
pub(super) struct View<'p> {
    pub(super) pixels: &'p [u8],
    /// Bytes of a pixel.
    pub(super) channels: usize,
    /// Pixels of a row of the whole picture.
    pub(super) stride: u32,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl<'p> View<'p> {
    /// Returns the bytes of the rows of the part, from the top.
    pub(super) fn rows(self) -> impl Iterator<Item = &'p [u8]> {
        let bytes = |pixels: u32| (pixels as usize).saturating_mul(self.channels);
        let rows = self.pixels.chunks_exact(bytes(self.stride).max(1));
        let (skipped, taken) = (self.y as usize, self.height as usize);
        let (start, len) = (bytes(self.x), bytes(self.width));
        let part = move |row: &'p [u8]| row.get(start..start.saturating_add(len)).unwrap_or(&[]);
        rows.skip(skipped).take(taken).map(part)
    }
}

/// A picture that a step has made.
pub(super) struct Scaled {
    pub(super) pixels: Vec<u8>,
    pub(super) channels: usize,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Scaled {
    pub(super) fn view(&self) -> View<'_> {
        let Self { ref pixels, channels, width, height } = *self;
        View { pixels, channels, stride: width, x: 0, y: 0, width, height }
    }
}

/// Pixels of the longest side of a picture.
pub(super) const MAX_SIDE: u32 = 1 << 14;
