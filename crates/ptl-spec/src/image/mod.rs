//! Pictures: what is done to them, and how they become tensors and back.

use bytes::Bytes;
use tensor_core::Tensor;

use crate::{
    Call, Error, Fault, ImageStep, PackImage, Param, Profile, Result, Value,
    packer::at,
    path::Path,
    unpacker::{floats, output_fault},
    value::ResultValue,
};

mod crop;
mod decode;
mod normalise;
mod scale;

pub use scale::Filter;

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

    fn view(&self) -> View<'_> {
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
struct View<'p> {
    pixels: &'p [u8],
    /// Bytes of a pixel.
    channels: usize,
    /// Pixels of a row of the whole picture.
    stride: u32,
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

impl<'p> View<'p> {
    /// Returns the bytes of the rows of the part, from the top.
    fn rows(self) -> impl Iterator<Item = &'p [u8]> {
        let bytes = |pixels: u32| (pixels as usize).saturating_mul(self.channels);
        let rows = self.pixels.chunks_exact(bytes(self.stride).max(1));
        let (skipped, taken) = (self.y as usize, self.height as usize);
        let (start, len) = (bytes(self.x), bytes(self.width));
        let part = move |row: &'p [u8]| row.get(start..start.saturating_add(len)).unwrap_or(&[]);
        rows.skip(skipped).take(taken).map(part)
    }
}

/// Takes a picture through its transforms. Format text: type `ImageTransform`.
pub(crate) fn tensor(call: &Call<'_>, picture: &PackImage, path: &mut Path) -> Result<Tensor> {
    let name = at(path, picture.image.bound())?;
    let image = match call.params.get(name) {
        Some(Param::Image(image)) => Ok(image),
        Some(other) => Err(Fault::Value { found: other.described(), expected: "a picture" }),
        None => Err(Fault::MissingParam { name: name.clone() }),
    };
    let image = path.member("image", |path| at(path, image))?;
    let options = call.spec.run_options();
    let filter = options.filter.unwrap_or(match options.profile {
        Profile::Documented => Filter::Bilinear,
        Profile::Android => Filter::Nearest,
    });
    path.member("transforms", |path| {
        let mut scaled: Scaled;
        let mut view = image.view();
        for (index, step) in picture.steps.iter().enumerate() {
            let result = match step {
                ImageStep::CenterCrop { width, height } => {
                    crop::size(width.as_ref(), height.as_ref())
                        .and_then(|size| crop::apply(view, size, options.profile))
                }
                ImageStep::Scale { width, height } => {
                    let size = width.bound().and_then(|width| Ok((*width, *height.bound()?)));
                    match size.and_then(|size| scale::apply(view, size, filter)) {
                        Ok(picture) => {
                            scaled = picture;
                            Ok(scaled.view())
                        }
                        Err(fault) => Err(fault),
                    }
                }
            };
            view = path.item(index, |path| at(path, result))?;
        }
        path.item(picture.steps.len(), |path| at(path, normalise::tensor(view, &picture.tensor)))
    })
}

/// A picture that a step has made.
struct Scaled {
    pixels: Vec<u8>,
    channels: usize,
    width: u32,
    height: u32,
}

impl Scaled {
    fn view(&self) -> View<'_> {
        let Self { ref pixels, channels, width, height } = *self;
        View { pixels, channels, stride: width, x: 0, y: 0, width, height }
    }
}

/// Makes a picture of a tensor `[1, 3, height, width]`: its smallest element becomes 0, its largest
/// 255.
pub(crate) fn of_tensor(output: &Value, profile: Profile, path: &Path) -> Result<ResultValue> {
    let expected = "a tensor [1, 3, height, width] of f32";
    let wrong = || Error::spec(path, output_fault(output, expected));
    let Value::Tensor(tensor) = output else { return Err(wrong()) };
    let &[1, 3, height, width] = tensor.info().shape.dims() else { return Err(wrong()) };
    let (width, height) = (u32::try_from(width), u32::try_from(height));
    let (width, height) = (width.map_err(|_| wrong())?, height.map_err(|_| wrong())?);
    let elements = at(path, floats(output))?;
    // One infinite element would make all others black.
    if profile == Profile::Documented && !elements.iter().all(|element| element.is_finite()) {
        let (found, expected) = ("a tensor with infinite elements or NaN".to_owned(), "numbers");
        return Err(Error::spec(path, Fault::ModelOutput { found, expected }));
    }
    let pixels = normalise::to_rgb(&elements, profile);
    Image::from_rgb(width, height, pixels).map(ResultValue::Image).map_err(|_| wrong())
}

/// Pixels of the longest side of a picture.
const MAX_SIDE: u32 = 1 << 14;
