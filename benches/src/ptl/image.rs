//! Making a picture of 12 megapixels into a tensor.

use std::time::Duration;

use ::image::{
    ImageBuffer, Rgb,
    imageops::{self, FilterType as PeerFilter},
};
use anyhow::{Context as _, Result, ensure};
use criterion::Throughput;
use fast_image_resize::{
    FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer,
    images::{CroppedImage, Image as Resized, ImageRef},
};
use ptl_spec::{Image, Params, Spec, Value};

use crate::{
    Bound::{SpeedAtLeast, TimeAtMost},
    Case, Scale, Topic,
    case::time,
    fixture::Random,
};

/// A picture, and the spec that makes a tensor of it.
#[derive(Debug)]
pub struct PtlImage {
    width: u32,
    height: u32,
    photo: Image,
    spec: Spec,
    params: Params,
}

impl Topic for PtlImage {
    const NAME: &'static str = "ptl_image";

    fn prepare(scale: Scale) -> Result<Self> {
        let this = Self::new(scale)?;
        this.compare()?;
        Ok(this)
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let elements = u64::from(self.width) * u64::from(self.height);
        let case = Case::new("pack", Throughput::Elements(elements))
            .run("ours", || self.pack())
            .run("image crate", || self.peer())
            .side("fast_image_resize", || self.resize().map(|(took, _)| took))
            .check(
                "ptl: 4032 × 3024 pixels, cropped, to 224 × 224, normalised NCHW",
                "ours",
                "image crate",
                SpeedAtLeast(2.0),
            )
            .check(
                "the same, against the scaling alone",
                "ours",
                "fast_image_resize",
                TimeAtMost(1.2),
            );
        Ok(vec![case])
    }
}

impl PtlImage {
    /// Makes the picture and reads the spec.
    ///
    /// # Errors
    ///
    /// None that a picture of this size gives.
    pub fn new(scale: Scale) -> Result<Self> {
        let (width, height) = if scale == Scale::TEST { (504, 378) } else { (4032, 3024) };
        let photo = Image::from_rgb(width, height, picture(width, height))?;
        let spec = Spec::parse(SPEC)?;
        let params = Params::new()
            .with("photo", photo.clone())
            .with("crop", i64::from(height))
            .with("side", i64::from(SIDE));
        Ok(Self { width, height, photo, spec, params })
    }

    /// Makes a tensor of the picture.
    ///
    /// # Errors
    ///
    /// None that this spec gives.
    pub fn pack(&self) -> Result<Value> {
        Ok(self.spec.call(&self.params)?.pack()?)
    }

    /// Does with the crate `image` what users of it do: a pass for each step.
    fn peer(&self) -> Result<Vec<f32>> {
        let (width, height, pixels) = (self.width, self.height, self.photo.pixels());
        let picture = ImageBuffer::<Rgb<u8>, _>::from_raw(width, height, pixels);
        let picture = picture.context("picture")?;
        let part = imageops::crop_imm(&picture, (width - height) / 2, 0, height, height);
        let small = imageops::resize(&*part, SIDE, SIDE, PeerFilter::Triangle);
        let mut floats: Vec<f32> = small.into_raw().into_iter().map(f32::from).collect();
        for pixel in floats.as_chunks_mut::<3>().0 {
            for (channel, (mean, std)) in pixel.iter_mut().zip(NORMS) {
                *channel = (*channel / 255.0 - mean) / std;
            }
        }
        let pixels = floats.as_chunks::<3>().0;
        Ok((0..3).flat_map(|channel| pixels.iter().map(move |pixel| pixel[channel])).collect())
    }

    /// Only scales, as the filter of our own side does.
    fn resize(&self) -> Result<(Duration, Vec<u8>)> {
        let mut pixels = Vec::new();
        let took = time(|| {
            let (width, height) = (self.width, self.height);
            let picture = ImageRef::new(width, height, self.photo.pixels(), PixelType::U8x3)?;
            let part = CroppedImage::new(&picture, (width - height) / 2, 0, height, height)?;
            let mut small = Resized::new(SIDE, SIDE, PixelType::U8x3);
            let options = ResizeOptions::new()
                .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
                .use_alpha(false);
            Resizer::new().resize(&part, &mut small, &options)?;
            pixels = small.into_vec();
            Ok(())
        })?;
        Ok((took, pixels))
    }

    /// Proves that the sides make the same tensor: exactly that of the scaled pixels, and within
    /// one step of a channel of what the other crate makes.
    fn compare(&self) -> Result<()> {
        let Value::Tensor(ours) = self.pack()? else { anyhow::bail!("the spec makes a tensor") };
        ensure!(ours.info().to_string() == format!("f32 [1, 3, {SIDE}, {SIDE}]"), "shape");
        let (ours, (_, small)) = (ours.view().to_vec::<f32>()?, self.resize()?);
        let plane = ours.len() / 3;
        for (at, (&ours, theirs)) in ours.iter().zip(self.peer()?).enumerate() {
            let (mean, std) = NORMS[at / plane];
            let scaled = f32::from(small[at % plane * 3 + at / plane]);
            ensure!(ours == (scaled / 255.0 - mean) / std, "element {at} differs from the pixel");
            let step = 1.0 / 255.0 / std;
            ensure!((ours - theirs).abs() < 1.01 * step, "element {at}: {ours}, theirs {theirs}");
        }
        Ok(())
    }
}

/// Makes a picture of soft colours with the noise of a sensor.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let mut random = Random::new(7);
    let mut pixels = Vec::with_capacity(width as usize * height as usize * 3);
    for y in 0..height {
        for x in 0..width {
            let noise = random.next();
            let at = |value: u32, noise: u64| (value % 240) as u8 + (noise & 15) as u8;
            pixels.extend([
                at(x / 16, noise),
                at(y / 12, noise >> 8),
                at((x + y) / 23, noise >> 16),
            ]);
        }
    }
    pixels
}

/// Pixels of a side of what the model sees.
const SIDE: u32 = 224;
/// Mean and deviation of each channel.
const NORMS: [(f32, f32); 3] = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)];

const SPEC: &str = r#"{
    "pack": {
        "type": "tensor_from_image",
        "image": "photo",
        "transforms": [
            {"type": "image_to_image", "name": "center_crop", "width": "$crop", "height": "$crop"},
            {"type": "image_to_image", "name": "scale", "width": "$side", "height": "$side"},
            {"type": "image_to_tensor", "name": "rgb_norm",
             "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
        ]
    },
    "unpack": {"type": "tensor", "dtype": "float", "key": "scores"}
}"#;
